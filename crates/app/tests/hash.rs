//! `tandem hash poseidon`: files against the definition, on one lane and on several, and bad input.

mod support;

use std::fs;
use std::path::Path;
use support::{changes_under_way_are_refused, interrupts_leave_the_output, refused_in, run_in, while_it_grows};
use tandem_ops::{naive, Bls12_381, Bn254, Canonical, Curve, Family, PoseidonParams};

/// Elements of no pattern, as the bytes of a file.
fn elements<C: Curve>(count: usize) -> (Vec<C::Fr>, Vec<u8>) {
    let all: Vec<C::Fr> = (1..=count as u64).map(|i| -C::Fr::from(i * i) / C::Fr::from(i + 6)).collect();
    let bytes = bytes::<C>(&all);
    (all, bytes)
}

fn bytes<C: Curve>(elements: &[C::Fr]) -> Vec<u8> {
    elements.iter().flat_map(|&x| C::canonical(x).0).flat_map(u64::to_le_bytes).collect()
}

fn hashes_files<C: Curve>(curve: &str, family: Family, name: &str) {
    let folder = tempfile::tempdir().unwrap();
    for arity in [2usize, 11] {
        let constants = PoseidonParams::new(family, arity).unwrap().constants::<C::Fr>();
        let (all, file) = elements::<C>(arity * arity);
        fs::write(folder.path().join("in"), &file).unwrap();
        let expected: Vec<C::Fr> = all.chunks(arity).map(|column| naive::poseidon(&constants, column)).collect();
        let root = naive::merkle(&constants, &all).pop().unwrap();
        for device in ["cpu", "sim:1", "sim:3", "sim:8"] {
            let arity = arity.to_string();
            let args = ["hash", "poseidon", "in", "out", "--arity", &arity, "--family", name, "--curve", curve];
            let args: Vec<&str> = args.into_iter().chain(["--device", device, "-q"]).collect();
            let (stdout, stderr) = run_in(folder.path(), 0, &args);
            assert_eq!((stdout.as_str(), stderr.as_str()), ("", ""), "{args:?}");
            assert_eq!(fs::read(folder.path().join("out")).unwrap(), bytes::<C>(&expected), "{args:?}");
            run_in(folder.path(), 0, &[&args[..], &["--tree"]].concat());
            assert_eq!(fs::read(folder.path().join("out")).unwrap(), bytes::<C>(&root), "{args:?} --tree");
        }
    }
}

#[test]
fn circomlib_over_bn254() {
    hashes_files::<Bn254>("bn254", Family::Circomlib, "circomlib");
}

#[test]
fn filecoin_over_bls12_381() {
    hashes_files::<Bls12_381>("bls12-381", Family::Filecoin, "filecoin");
}

/// circomlibjs: poseidon([1, 2]).
#[test]
fn the_hash_of_1_and_2_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let one_two: Vec<u8> = [Canonical([1, 0, 0, 0]), Canonical([2, 0, 0, 0])]
        .iter()
        .flat_map(|x| x.0)
        .flat_map(u64::to_le_bytes)
        .collect();
    fs::write(folder.path().join("in"), one_two).unwrap();
    let (stdout, _) = run_in(folder.path(), 0, &["hash", "poseidon", "in", "out", "--device", "cpu", "--json"]);
    assert!(stdout.contains("\"hashes\":1") && stdout.contains("\"elements\":2"), "{stdout}");
    let hash: String = fs::read(folder.path().join("out")).unwrap().iter().rev().map(|b| format!("{b:02x}")).collect();
    assert_eq!(hash, "115cc0f5e7d690413df64c6b9662e9cf2a3617f2743245519e19607a4417189a");
}

#[track_caller]
fn refused(folder: &Path, args: &[&str], parts: &[&str]) {
    refused_in(folder, &[&["hash", "poseidon"], args, &["--device", "cpu"]].concat(), parts);
}

#[test]
fn bad_input_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (_, good) = elements::<Bn254>(88);
    fs::write(at.join("good"), &good).unwrap();
    fs::write(at.join("empty"), b"").unwrap();
    fs::write(at.join("cut"), &good[..good.len() - 1]).unwrap();
    fs::create_dir(at.join("folder")).unwrap();
    // The modulus itself at index 37; all ones at the end.
    let modulus = modulus();
    let mut large = good.clone();
    large[37 * 32..38 * 32].copy_from_slice(&modulus);
    fs::write(at.join("modulus"), &large).unwrap();
    let mut ones = good.clone();
    ones[87 * 32..].fill(0xff);
    fs::write(at.join("ones"), &ones).unwrap();

    refused(at, &["good", "out", "--arity", "3"], &["--arity", "arity 3", "2, 4, 8 or 11"]);
    refused(at, &["good", "out", "--arity", "0"], &["--arity", "2, 4, 8 or 11"]);
    refused(at, &["empty", "out"], &["empty:", "the file is empty"]);
    refused(at, &["cut", "out"], &["cut:", "2815 bytes", "multiple of 32"]);
    refused(at, &["folder", "out"], &["folder:", "a folder"]);
    refused(at, &["missing", "out"], &["missing:", "cannot open"]);
    refused(at, &["modulus", "out", "--arity", "11"], &["modulus:", "element 37", "not below the modulus"]);
    refused(at, &["modulus", "out", "--arity", "2", "--tree"], &["88 leaves", "power of the arity 2"]);
    refused(at, &["ones", "out", "--arity", "8"], &["ones:", "element 87", "--curve"]);
    fs::write(at.join("good"), &good[..86 * 32]).unwrap();
    refused(at, &["good", "out", "--arity", "11"], &["good:", "86 elements", "multiple of the arity 11"]);
    refused(at, &["good", "good"], &["would replace the input"]);
    refused(at, &["good", "folder"], &["folder"]);
    refused(at, &["good", "no/such/out"], &["no/such"]);
    // An output that is there stays as it was.
    fs::write(at.join("out"), "mine").unwrap();
    refused(at, &["ones", "out"], &["element 87"]);
    assert_eq!(fs::read(at.join("out")).unwrap(), b"mine");
    // What is no element of BN254's field can be one of BLS12-381's.
    run_in(at, 0, &["hash", "poseidon", "modulus", "out", "--curve", "bls12-381", "--device", "cpu", "-q"]);
    assert_eq!(fs::read(at.join("out")).unwrap().len(), 44 * 32);
}

/// BN254's r, least significant byte first.
fn modulus() -> [u8; 32] {
    let mut bytes = bytes::<Bn254>(&[-<Bn254 as Curve>::Fr::from(1u64)]);
    bytes[0] += 1;
    bytes.try_into().unwrap()
}

#[test]
fn a_file_that_changes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("growing");
    fs::write(&path, vec![1u8; 32 << 10]).unwrap();
    // A whole column at a time, so that only the change is wrong.
    while_it_grows(&path, 64, || {
        refused(folder.path(), &["growing", "out", "-q"], &["growing:", "changed while it was read"]);
    });
}

#[test]
fn a_file_that_is_cut_is_refused() {
    for more in [&["--tree"][..], &[]] {
        let args = [&["hash", "poseidon", "in", "out", "--device", "cpu", "-q"], more].concat();
        changes_under_way_are_refused(1 << 20, 32 << 10, &args);
    }
}

#[test]
fn more_leaves_than_memory_are_refused_with_the_sizes() {
    let folder = tempfile::tempdir().unwrap();
    fs::File::create(folder.path().join("huge")).unwrap().set_len(32 << 37).unwrap();
    refused(folder.path(), &["huge", "out", "--tree"], &["huge:", "needs 4398046511104 bytes of memory", "are free"]);
}

#[test]
fn interrupts_leave_the_old_output() {
    interrupts_leave_the_output(128 << 20, &["hash", "poseidon", "in", "out", "--device", "cpu"]);
    interrupts_leave_the_output(128 << 20, &["hash", "poseidon", "in", "out", "--device", "cpu", "--tree"]);
}

#[test]
fn bench_measures_what_it_has_checked() {
    let folder = tempfile::tempdir().unwrap();
    for more in [&["--arity", "11"][..], &["--pinned"], &["--tree"]] {
        let args =
            [&["bench", "poseidon", "--log-n", "6", "--runs", "2", "--device", "sim:2", "--json", "-"], more].concat();
        let (stdout, _) = run_in(folder.path(), 0, &args);
        assert!(stdout.contains("\"what\":\"poseidon_") && stdout.contains("\"log_n\":6"), "{stdout}");
    }
    let (_, stderr) = run_in(folder.path(), 2, &["bench", "poseidon", "--tree", "--arity", "11", "--device", "cpu"]);
    assert!(stderr.contains("power of the arity 11"), "{stderr}");
}
