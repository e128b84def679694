//! What the threads of a sumcheck's kernels do, on the fields' host path and on the device's carry chains with the instructions emulated, compiled
//! with the C++ compiler alone, against the definitions.

mod support;

use ark_ff::{AdditiveGroup, Field, UniformRand};
use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};
use support::{compile, run};
use tandem_ops::sumcheck::{SumcheckField, TABLES_MAX};
use tandem_ops::{naive, Bls12_381, Bn254, FieldId, Goldilocks, Wire};

const SUMS: u64 = 0;
const BIND: u64 = 1;
const FOLD: u64 = 2;

/// The file of cases in the making.
#[derive(Default)]
struct Cases {
    bytes: Vec<u8>,
    count: usize,
}

impl Cases {
    fn head<F: SumcheckField>(&mut self, operation: u64, tables: usize, n: usize, r: F::Extension) {
        let field = match F::FIELD {
            FieldId::Bn254 => 0,
            FieldId::Bls12_381 => 1,
            _ => 2,
        };
        [field, operation, tables as u64, n as u64].iter().for_each(|x| self.bytes.extend(x.to_le_bytes()));
        self.add([F::challenge(r)]);
        self.count += 1;
    }

    fn add<T: Wire>(&mut self, values: impl IntoIterator<Item = T>) {
        values.into_iter().for_each(|x| self.bytes.extend(bytemuck::bytes_of(&x)));
    }

    /// Columns of these tables.
    fn columns<F: SumcheckField>(&mut self, tables: &[Vec<F::Extension>]) {
        self.add(tables.iter().flatten().map(|&x| F::challenge(x)));
    }

    fn values<F: SumcheckField>(&mut self, tables: &[Vec<F::Extension>], bound: &[F::Extension], with_one: bool) {
        self.add((0..=TABLES_MAX).map(|t| match t {
            t if t > tables.len() || (t == 1 && !with_one) => F::Challenge::default(),
            t => F::challenge(naive::sumcheck_place(tables, bound, t)),
        }));
    }

    fn of<F: SumcheckField>(&mut self) {
        let rng = &mut ChaCha8Rng::seed_from_u64(12);
        let edges = [F::Ark::ZERO, F::Ark::ONE, -F::Ark::ONE];
        for (count, log_n) in (1..=TABLES_MAX).flat_map(|count| (1..=5).chain([8]).map(move |log_n| (count, log_n))) {
            let n = 1 << log_n;
            let mut draw = |i: usize| if i % 5 < 3 && i % 4 == 1 { edges[i % 5] } else { F::Ark::rand(rng) };
            let tables: Vec<Vec<F::Ark>> = (0..count).map(|_| (0..n).map(&mut draw).collect()).collect();
            let lifted: Vec<Vec<_>> = tables.iter().map(|table| table.iter().map(|&x| F::lift(x)).collect()).collect();
            let wire = || tables.iter().flatten().map(|&x| F::element(x));
            self.head::<F>(SUMS, count, n, F::Extension::ONE);
            self.add(wire());
            self.values::<F>(&lifted, &[], true);
            if n < 4 {
                continue;
            }
            for r in [F::Extension::rand(rng), F::Extension::ZERO, F::Extension::ONE, -F::Extension::ONE] {
                let bound: Vec<_> = lifted.iter().map(|table| naive::multilinear_bound(table, &[r])).collect();
                self.head::<F>(BIND, count, n, r);
                self.add(wire());
                self.columns::<F>(&bound);
                self.values::<F>(&lifted, &[r], false);
                // What comes out is all over the challenges' field.
                if n >= 8 {
                    let next = F::Extension::rand(rng);
                    let folded: Vec<_> = bound.iter().map(|table| naive::multilinear_bound(table, &[next])).collect();
                    self.head::<F>(FOLD, count, n / 2, next);
                    self.columns::<F>(&bound);
                    self.columns::<F>(&folded);
                    self.values::<F>(&bound, &[next], false);
                }
            }
        }
    }
}

#[test]
fn threads_do_what_is_defined() {
    let mut cases = Cases::default();
    cases.of::<Bn254>();
    cases.of::<Bls12_381>();
    cases.of::<Goldilocks>();
    for (name, arguments) in [("host_sumcheck", &[][..]), ("host_sumcheck_device", &["-DTANDEM_EMULATE_PTX"])] {
        let program = compile("sumcheck.cpp", name, arguments);
        let output = run(&program, &cases.bytes, &format!("{name}.bin"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{}\n", cases.count));
    }
    // A wrong value must be found, and a file that ends early. The last value is that at 4 of four tables.
    let program = compile("sumcheck.cpp", "host_sumcheck_wrong", &[]);
    let end = cases.bytes.len();
    assert_eq!(run(&program, &cases.bytes[..end - 1], "host_sumcheck_short.bin").status.code(), Some(2));
    cases.bytes[end - 8] ^= 1;
    assert_eq!(run(&program, &cases.bytes, "host_sumcheck_wrong.bin").status.code(), Some(1));
}
