//! Prints hashes of the crate neptune as JSON: `cargo run > ../../../../crates/ops/tests/data/poseidon-filecoin.json`.
//!
//! Input element i of case k is (k + 1)^(5 (i + 1)) + i as an element of the field; case 0 is all zero, case 1 all -1.

use ff::PrimeField;
use generic_array::typenum::{U11, U2, U4, U8};
use neptune::{poseidon::PoseidonConstants, Arity, Poseidon};
use serde_json::{json, Value};

fn hex<F: PrimeField>(x: &F) -> String {
    let repr = x.to_repr();
    let digits: String = repr.as_ref().iter().rev().map(|b| format!("{b:02x}")).collect();
    format!("0x{digits}")
}

fn cases<F: PrimeField, A: Arity<F>>(curve: &str) -> Vec<Value> {
    let constants = PoseidonConstants::<F, A>::new();
    let arity = A::to_usize();
    (0..5u64)
        .map(|k| {
            let inputs: Vec<F> = (0..arity as u64)
                .map(|i| match k {
                    0 => F::ZERO,
                    1 => -F::ONE,
                    _ => F::from(k + 1).pow_vartime([5 * (i + 1)]) + F::from(i),
                })
                .collect();
            let output = Poseidon::new_with_preimage(&inputs, &constants).hash();
            json!({
                "curve": curve,
                "inputs": inputs.iter().map(hex).collect::<Vec<_>>(),
                "hash": hex(&output),
            })
        })
        .collect()
}

fn curve<F: PrimeField>(name: &str) -> Vec<Value>
where
    U2: Arity<F>,
    U4: Arity<F>,
    U8: Arity<F>,
    U11: Arity<F>,
{
    [cases::<F, U2>(name), cases::<F, U4>(name), cases::<F, U8>(name), cases::<F, U11>(name)].concat()
}

fn main() {
    let mut all = curve::<blstrs::Scalar>("bls12381");
    all.extend(curve::<halo2curves::bn256::Fr>("bn128"));
    let lines: Vec<String> = all.iter().map(|v| format!("  {v}")).collect();
    println!("[\n{}\n]", lines.join(",\n"));
}
