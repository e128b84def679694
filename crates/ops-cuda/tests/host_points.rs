//! What the threads of a transform of points do, on the fields' host path and on the device's carry chains with the instructions emulated,
//! compiled with the C++ compiler alone, against multiples of the generator by transformed scalars.

mod support;

use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::{AdditiveGroup, Field, UniformRand};
use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};
use support::{compile, run};
use tandem_ops::point_ntt::{biased, factors};
use tandem_ops::{naive, Bls12_381, Bn254, Coset, Curve, CurveId, Direction, Group, NttOp, Order};

/// The file of cases in the making.
#[derive(Default)]
struct Cases {
    bytes: Vec<u8>,
    count: usize,
}

impl Cases {
    fn add<C: Curve>(&mut self, scalars: &[C::Fr], threads: usize) {
        let curve = u64::from(C::ID == CurveId::Bls12_381);
        let n = scalars.len();
        [curve, n.ilog2().into(), threads as u64].iter().for_each(|x| self.bytes.extend(x.to_le_bytes()));
        for factor in factors::<C>(n).unwrap() {
            self.bytes.extend(bytemuck::bytes_of(&biased::<C>(factor)));
        }
        let (direction, coset, order) = (Direction::Inverse, Coset::Subgroup, Order::Natural);
        let expected = naive::ntt::<C>(scalars, NttOp { direction, coset, input: order, output: order }).unwrap();
        let generator = <C::G1 as Group>::Ark::generator();
        for scalar in scalars.iter().chain(&expected) {
            self.bytes.extend(bytemuck::bytes_of(&C::G1::from_ark(&(generator * scalar).into_affine())));
        }
        self.count += 1;
    }

    fn of<C: Curve>(&mut self) {
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        let (zero, one) = (C::Fr::ZERO, C::Fr::ONE);
        for log_n in 0..6 {
            let n = 1 << log_n;
            let scalars: Vec<C::Fr> = (0..n).map(|_| C::Fr::rand(&mut rng)).collect();
            for threads in [1, n / 2, n].into_iter().filter(|&threads| threads > 0) {
                self.add::<C>(&scalars, threads);
            }
        }
        // Infinity, doublings, sums that are infinity.
        for of in [[zero; 4], [one; 4], [one, -one, one, -one], [one, zero, zero, zero], [zero, one, one, zero]] {
            self.add::<C>(&of, 2);
        }
    }
}

#[test]
fn threads_do_what_is_defined() {
    let mut cases = Cases::default();
    cases.of::<Bn254>();
    cases.of::<Bls12_381>();
    for (name, arguments) in [("host_points", &[][..]), ("host_points_device", &["-DTANDEM_EMULATE_PTX"])] {
        let program = compile("points.cpp", name, arguments);
        let output = run(&program, &cases.bytes, &format!("{name}.bin"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{}\n", cases.count));
    }
    // A wrong point must be found, and a file that ends early.
    let program = compile("points.cpp", "host_points_wrong", &[]);
    let end = cases.bytes.len();
    assert_eq!(run(&program, &cases.bytes[..end - 1], "host_points_short.bin").status.code(), Some(2));
    cases.bytes[end - 8] ^= 1;
    assert_eq!(run(&program, &cases.bytes, "host_points_wrong.bin").status.code(), Some(1));
}
