//! The device's small fields on their host path, compiled with the C++ compiler alone, against arkworks.

mod support;

use ark_ff::{Field, UniformRand};
use rand_chacha::{rand_core::RngCore, rand_core::SeedableRng, ChaCha8Rng};
use support::{compile, run};
use tandem_ops::{naive, BabyBear, Coset, Direction, Goldilocks, NttField, NttOp, Order};

const CASES: usize = 200;
const MODULUS: u64 = 0xffff_ffff_0000_0001;

/// A field whose elements are numbers.
trait Numbers: NttField {
    const ID: u64;
    fn from(number: u64) -> Self::Element;
    fn number(element: Self::Element) -> u64;
    /// Any number that the device takes for an element.
    fn draw(case: usize, i: usize, rng: &mut ChaCha8Rng) -> u64;
}

impl Numbers for Goldilocks {
    const ID: u64 = 0;
    fn from(number: u64) -> Goldilocks {
        Goldilocks(number)
    }
    fn number(element: Goldilocks) -> u64 {
        element.0
    }
    fn draw(case: usize, i: usize, rng: &mut ChaCha8Rng) -> u64 {
        let edges = [0, 1, 0xffff_ffff, 1 << 32, 1 << 63, MODULUS - 1, MODULUS, u64::MAX];
        match case {
            0..8 => edges[case],
            8..16 => edges[(case + i) % 8],
            16..24 if i.is_multiple_of(2) => edges[case % 8],
            _ => rng.next_u64(),
        }
    }
}

impl Numbers for BabyBear {
    const ID: u64 = 1;
    fn from(number: u64) -> BabyBear {
        BabyBear(number as u32)
    }
    fn number(element: BabyBear) -> u64 {
        element.0.into()
    }
    fn draw(case: usize, i: usize, rng: &mut ChaCha8Rng) -> u64 {
        let last = Self::number(Self::element(-<Self as NttField>::Ark::ONE));
        let edges = [0, 1, 0x7800_0000, last];
        match case {
            0..4 => edges[case],
            4..8 => edges[(case + i) % 4],
            _ => Self::number(Self::element(<Self as NttField>::Ark::rand(rng))),
        }
    }
}

fn cases<F: Numbers>(out: &mut Vec<u8>) {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let op =
        NttOp { direction: Direction::Forward, coset: Coset::Subgroup, input: Order::Natural, output: Order::Natural };
    for h in 1..=5u64 {
        for case in 0..CASES {
            let numbers: Vec<u64> = (0..1 << h).map(|i| F::draw(case, i, &mut rng)).collect();
            let elements: Vec<F::Ark> = numbers.iter().map(|&x| F::value(F::from(x))).collect();
            let values = naive::ntt::<F>(&elements, op).unwrap();
            let (a, b) = (elements[0], elements[1]);
            let expected = values.into_iter().chain([a * b, a + b, a]).map(|x| F::number(F::element(x)));
            [F::ID, h].into_iter().chain(numbers).chain(expected).for_each(|x| out.extend(x.to_le_bytes()));
        }
    }
}

#[test]
fn small_fields_agree_with_arkworks() {
    let program = compile("ntt_small.cpp", "host_ntt", &[]);
    let mut file = Vec::new();
    cases::<Goldilocks>(&mut file);
    cases::<BabyBear>(&mut file);
    let output = run(&program, &file, "host_ntt.bin");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{}\n", 2 * 5 * CASES));
    // A wrong value must be found, and a file that ends early.
    let end = file.len();
    assert_eq!(run(&program, &file[..end - 1], "host_ntt_short.bin").status.code(), Some(2));
    file[end - 8] ^= 1;
    assert_eq!(run(&program, &file, "host_ntt_wrong.bin").status.code(), Some(1));
}

#[test]
fn complex_numbers_agree_with_the_definition() {
    let program = compile("ntt_complex.cpp", "host_ntt_complex", &[]);
    let output = std::process::Command::new(&program).output().unwrap();
    assert!(output.status.success(), "a value is off");
    // Both precisions, five sizes, a hundred of each.
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "1000\n");
    // A wrong value must be found.
    let wrong = std::process::Command::new(&program).arg("wrong").output().unwrap();
    assert_eq!(wrong.status.code(), Some(1));
}
