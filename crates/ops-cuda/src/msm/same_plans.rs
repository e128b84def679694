//! The plans of today's curves as a number: whoever changes how plans are chosen sees that they changed.

use super::plan::{plan, Field};
use super::rounds::BatchAffinePlan;
use tandem_ops::{Bls12_381, Bn254, MsmRequest, MsmSet};

/// FNV-1a, which is the same on every machine.
fn mixed(hash: u64, text: &str) -> u64 {
    text.bytes().fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// The numbers of a value and what stands between them: names may change.
fn numbers(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}").chars().filter(|c| !c.is_alphabetic() && *c != '_').collect()
}

/// Of the plans for thousands of requests: sizes, sets in both groups, room for tables, uses and GPUs.
fn digest(field: Field) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for log_n in [0, 1, 5, 8, 10, 12, 14, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27] {
        for scalars in [1usize << log_n, (1 << log_n) * 3 / 4, (1 << log_n) + 1] {
            let set = |g2, first: usize| MsmSet { g2, first, points: scalars - first };
            let of_key = vec![set(true, 0), set(false, 0), set(false, 0), set(false, scalars / 3)];
            for sets in [vec![set(false, 0)], vec![set(true, 0)], of_key] {
                let bytes = |set: &MsmSet| set.points as u64 * field.point_bytes[usize::from(set.g2)];
                let once: u64 = sets.iter().map(bytes).sum();
                for (times, uses, pipelined) in [
                    (1, 1, false),
                    (3, 100, true),
                    (16, 100, false),
                    (16, 100, true),
                    (40, 10_000, true),
                    (300, 1_000_000, false),
                ] {
                    let memory_bytes = once * times;
                    let request = MsmRequest { scalars, sets: sets.clone(), memory_bytes, uses, pipelined };
                    let shape = plan(&request, field).unwrap();
                    hash = mixed(hash, &numbers(&shape));
                    for (shape, set) in shape.iter().flat_map(|shape| sets.iter().map(move |set| (shape, set))) {
                        for gib in [24, 80, 141] {
                            let rounds = BatchAffinePlan::new(shape, field, &request, set, gib << 30);
                            hash = mixed(hash, &numbers(&rounds));
                        }
                    }
                }
            }
        }
    }
    hash
}

/// A digest that changes means that sums take other times on GPUs: to be measured before the number here is.
#[test]
fn plans_are_those_that_were_measured() {
    let digests = [digest(Field::of::<Bn254>()), digest(Field::of::<Bls12_381>())];
    assert_eq!(digests, [0x89af_8c21_bf38_097b, 0xc385_2ca4_7888_b6d8], "{digests:#x?}");
}

/// What is loaded for one sum takes what its points take.
#[test]
fn one_sum_gets_no_tables() {
    for (field, log_n) in
        [Field::of::<Bn254>(), Field::of::<Bls12_381>()].into_iter().flat_map(|field| (0..=24).map(move |n| (field, n)))
    {
        let points = (1 << log_n) + 6;
        let sets = vec![MsmSet { g2: false, first: 0, points }];
        let request = MsmRequest { scalars: points, sets, memory_bytes: 70 << 30, uses: 1, pipelined: false };
        assert_eq!(plan(&request, field).unwrap().unwrap().table_levels, 1, "2^{log_n}");
    }
}
