//! The device's Poseidon on its host path, compiled with the C++ compiler alone, against the CPU backend's tables.

mod support;

use ark_ff::{AdditiveGroup, UniformRand};
use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};
use std::path::Path;
use support::{compile, run};
use tandem_ops::poseidon::{Recurrence, Tables, WIDTHS};
use tandem_ops::{naive, Bls12_381, Bn254, Curve, Family, PoseidonParams};

const CASES: u32 = 6;
const FAMILIES: [Family; 2] = [Family::Circomlib, Family::Filecoin];

/// The file for one curve: all widths of both families, hashes of zeros, of -1 and of random elements.
fn hashes<C: Curve>(curve: u32, out: &mut Vec<u8>) {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for family in FAMILIES {
        for t in WIDTHS {
            let params = PoseidonParams::new(family, t - 1).unwrap();
            let (tables, constants) = (Tables::<C::Fr>::new(params), params.constants::<C::Fr>());
            let recurrence = Recurrence::<C::Fr>::new(params);
            let values = recurrence.as_ref().map_or(tables.values(), Recurrence::values);
            let numbers = [params.full_rounds(), params.partial_rounds(), tables.block(), values.len()];
            let head = [t].into_iter().chain(numbers).map(|n| u32::try_from(n).unwrap());
            std::iter::once(curve).chain(head).chain([CASES, 0]).for_each(|n| out.extend(n.to_le_bytes()));
            let mut put = |x: C::Fr| out.extend(bytemuck::bytes_of(&C::mont(x)));
            values.iter().for_each(|&x| put(x));
            for case in 0..CASES {
                let element = |rng: &mut ChaCha8Rng| match case {
                    0 => C::Fr::ZERO,
                    1 => -C::Fr::from(1u64),
                    _ => C::Fr::rand(rng),
                };
                let input: Vec<C::Fr> = (0..t - 1).map(|_| element(&mut rng)).collect();
                input.iter().for_each(|&x| put(x));
                put(naive::poseidon(&constants, &input));
            }
        }
    }
}

fn agrees(program: &Path, name: &str) -> Vec<u8> {
    let mut file = Vec::new();
    hashes::<Bn254>(0, &mut file);
    hashes::<Bls12_381>(1, &mut file);
    let output = run(program, &file, name);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let line = |curve: u32| FAMILIES.iter().flat_map(move |_| WIDTHS.map(|t| format!("{curve} {t} {CASES}\n")));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), line(0).chain(line(1)).collect::<String>());
    file
}

#[test]
fn host_path_agrees_with_the_definition() {
    let program = compile("poseidon.cpp", "host_poseidon_host", &[]);
    let mut file = agrees(&program, "host_poseidon_host.bin");
    // A wrong hash must be found, and a file that ends early.
    let end = file.len();
    let output = run(&program, &file[..end - 1], "host_poseidon_short.bin");
    assert_eq!(output.status.code(), Some(2));
    file[end - 8] ^= 1;
    let output = run(&program, &file, "host_poseidon_wrong.bin");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn device_carry_chains_agree_with_the_definition() {
    agrees(&compile("poseidon.cpp", "host_poseidon_device", &["-DTANDEM_EMULATE_PTX"]), "host_poseidon_device.bin");
}
