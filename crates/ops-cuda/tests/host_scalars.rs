//! What the threads of kernels over vectors of scalars do, on the fields' host path and on the device's carry chains with the
//! instructions emulated, compiled with the C++ compiler alone, against the definitions.

mod support;

use ark_ff::{AdditiveGroup, Field, UniformRand};
use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};
use support::{compile, run};
use tandem_ops::{naive, Bls12_381, Bn254, Curve, CurveId};

const BATCH_INVERSE: u64 = 0;
const PREFIX_PRODUCT: u64 = 1;
const DIVIDE: u64 = 2;
const GATE_ROWS: u64 = 3;
const PERMUTED_ROWS: u64 = 4;
const QUOTIENT_ROWS: u64 = 5;
const COMBINED: u64 = 6;
const QUOTIENT_ROWS_OF_TWO_AND_THREE: u64 = 7;
const PRODUCT_SUM: u64 = 8;

/// The file of cases in the making.
#[derive(Default)]
struct Cases {
    bytes: Vec<u8>,
    count: usize,
}

impl Cases {
    fn add<C: Curve>(&mut self, operation: u64, number: usize, element: C::Fr, x: &[C::Fr], expected: &[C::Fr]) {
        let field = u64::from(C::ID == CurveId::Bls12_381);
        let head = [field, operation, x.len() as u64, number as u64];
        head.iter().for_each(|x| self.bytes.extend(x.to_le_bytes()));
        let elements = [&[element], x, expected].concat();
        elements.iter().for_each(|&x| self.bytes.extend(bytemuck::bytes_of(&C::mont(x))));
        self.count += 1;
    }

    fn of<C: Curve>(&mut self) {
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        let edges = [C::Fr::ZERO, C::Fr::ONE, -C::Fr::ONE];
        for n in [1usize, 2, 3, 7, 8, 9, 33, 100] {
            let mut draw = |i: usize| if i % 5 < 3 && i % 4 == 1 { edges[i % 5] } else { C::Fr::rand(&mut rng) };
            let x: Vec<C::Fr> = (0..n).map(&mut draw).collect();
            let inverses: Vec<C::Fr> = x.iter().map(|&x| naive::inverse(x)).collect();
            for threads in [1, 2, n.div_ceil(2), n].into_iter().filter(|&threads| threads <= n) {
                self.add::<C>(BATCH_INVERSE, threads, C::Fr::ZERO, &x, &inverses);
            }
        }
        for n in [1usize, 2, 15, 16, 17, 33, 255, 256, 257, 300] {
            let x: Vec<C::Fr> = (0..n).map(|_| C::Fr::rand(&mut rng)).collect();
            self.add::<C>(PREFIX_PRODUCT, 0, C::Fr::ZERO, &x, &naive::prefix_product(&x));
            let b = C::Fr::rand(&mut rng);
            for m in [1, 2, 3, 8, n.div_ceil(2), n].into_iter().filter(|&m| m <= n) {
                self.add::<C>(DIVIDE, m, b, &x, &naive::divide(&x, m, b));
            }
        }
    }

    fn rows<C: Curve>(&mut self) {
        let mut rng = ChaCha8Rng::seed_from_u64(10);
        for n in [1usize, 2, 7, 33] {
            let edges = [C::Fr::ZERO, C::Fr::ONE, -C::Fr::ONE];
            let mut draw = |i: usize| if i % 5 < 3 && i % 4 == 1 { edges[i % 5] } else { C::Fr::rand(&mut rng) };
            let x: Vec<C::Fr> = (0..16 * n).map(&mut draw).collect();
            let (all, x) = (&x[..], &x[..8 * n]);
            let gamma = draw(0);
            let at = |i: usize, vector: usize| x[vector * n + i];
            let gates = |i| naive::gate_row([0, 1, 2].map(|v| at(i, v)), [3, 4, 5, 6, 7].map(|v| at(i, v)));
            let expected: Vec<C::Fr> = (0..n).map(gates).chain(x[n..].iter().copied()).collect();
            self.add::<C>(GATE_ROWS, n, C::Fr::ZERO, x, &expected);
            let factors = [C::Fr::ONE, gamma, gamma.square()];
            let permuted =
                |i| naive::permuted_row([0, 1, 2].map(|v| at(i, v)), [3, 4, 5].map(|v| at(i, v)), factors, gamma);
            let expected: Vec<C::Fr> = (0..n).map(permuted).chain(x[n..].iter().copied()).collect();
            self.add::<C>(PERMUTED_ROWS, n, gamma, x, &expected);
            let x = &all[..15 * n];
            let powers = [0, 1, 2, 3, 4, 5].map(|i| gamma.pow([i]));
            let mut of_two_and_three = powers;
            [of_two_and_three[3], of_two_and_three[4]] = [C::Fr::from(2u64), C::Fr::from(3u64)];
            for (operation, numbers) in [(QUOTIENT_ROWS, powers), (QUOTIENT_ROWS_OF_TWO_AND_THREE, of_two_and_three)] {
                let quotient = |i| naive::quotient_row(std::array::from_fn(|v| x[v * n + i]), numbers);
                let expected: Vec<C::Fr> = (0..n).map(quotient).chain(x[n..].iter().copied()).collect();
                self.add::<C>(operation, n, gamma, x, &expected);
            }
            for terms in [1, 5, 16] {
                let x = &all[..terms * n];
                let term = |i: usize, j: usize| gamma.pow([j as u64]) * x[j * n + i];
                let combined = |i| (0..terms).filter(|j| i + j < n).map(|j| term(i, j)).sum();
                let expected: Vec<C::Fr> = (0..n).map(combined).chain(x[n..].iter().copied()).collect();
                self.add::<C>(COMBINED, n, gamma, x, &expected);
            }
        }
    }

    /// Sums of products of random elements, and of such whose Montgomery form is p - 1 or little less.
    fn sums<C: Curve>(&mut self) {
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        let largest = -naive::inverse(C::Fr::from(2u64).pow([256]));
        assert_eq!(
            C::mont(largest).0[0],
            C::mont(-C::Fr::ONE).0[0].wrapping_add(C::mont(C::Fr::ONE).0[0]).wrapping_sub(1)
        );
        for n in 1..=24 {
            let random: Vec<C::Fr> = (0..2 * n).map(|_| C::Fr::rand(&mut rng)).collect();
            let large = random.iter().map(|&x| largest - C::from_mont(tandem_ops::Mont([C::mont(x).0[0], 0, 0, 0])));
            for x in [vec![largest; 2 * n], large.collect(), random] {
                let mut expected = x.clone();
                expected[0] = (0..n).map(|i| x[i] * x[n + i]).sum();
                self.add::<C>(PRODUCT_SUM, n, C::Fr::ZERO, &x, &expected);
            }
        }
    }

    fn all() -> Self {
        let mut cases = Cases::default();
        cases.of::<Bn254>();
        cases.of::<Bls12_381>();
        cases.rows::<Bn254>();
        cases.rows::<Bls12_381>();
        cases.sums::<Bn254>();
        cases.sums::<Bls12_381>();
        cases
    }
}

#[test]
fn threads_do_what_is_defined() {
    let mut cases = Cases::all();
    for (name, arguments) in [("host_scalars", &[][..]), ("host_scalars_device", &["-DTANDEM_EMULATE_PTX"])] {
        let program = compile("scalars.cpp", name, arguments);
        let output = run(&program, &cases.bytes, &format!("{name}.bin"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{}\n", cases.count));
    }
    // A wrong value must be found, and a file that ends early.
    let program = compile("scalars.cpp", "host_scalars_wrong", &[]);
    let end = cases.bytes.len();
    assert_eq!(run(&program, &cases.bytes[..end - 1], "host_scalars_short.bin").status.code(), Some(2));
    cases.bytes[end - 8] ^= 1;
    assert_eq!(run(&program, &cases.bytes, "host_scalars_wrong.bin").status.code(), Some(1));
}
