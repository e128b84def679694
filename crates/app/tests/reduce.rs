//! `tandem reduce`: files against sums done here, on one lane and on several; bad input; the bench.

mod support;

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::process::Command;
use support::{expect, refused_in, run_in, text, while_it_grows};
use tandem_ops::{Bls12_381, Bn254, Curve};

const DEVICES: [&str; 4] = ["cpu", "sim:1", "sim:3", "sim:8"];

#[track_caller]
fn gives(folder: &Path, args: &[&str], expected: &str) {
    for device in DEVICES {
        let args = [&["reduce"], args, &["--device", device, "-q"]].concat();
        assert_eq!(run_in(folder, 0, &args), (format!("{expected}\n"), String::new()), "{args:?}");
    }
}

#[test]
fn numbers_in_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // More than two groups of 16 MiB of u64; sums wrap.
    let all: Vec<u64> = (1..=4_500_001u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let bytes: Vec<u8> = all.iter().flat_map(|x| x.to_le_bytes()).collect();
    fs::write(at.join("u64"), &bytes).unwrap();
    gives(at, &["u64"], &all.iter().fold(0u64, |a, b| a.wrapping_add(*b)).to_string());
    gives(at, &["u64", "--op", "min"], &all.iter().min().unwrap().to_string());
    gives(at, &["u64", "--op", "max"], &all.iter().max().unwrap().to_string());
    let halves: Vec<u32> = all.iter().flat_map(|x| [*x as u32, (x >> 32) as u32]).collect();
    gives(at, &["u64", "--element", "u32"], &halves.iter().fold(0u32, |a, b| a.wrapping_add(*b)).to_string());

    // Quarters add up exactly in every order.
    let quarters: Vec<f32> = (0..100_003).map(|i| (i % 64) as f32 / 4.0 - 3.0).collect();
    fs::write(at.join("f32"), quarters.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>()).unwrap();
    gives(at, &["f32", "--element", "f32"], &format!("{:?}", quarters.iter().sum::<f32>()));
    gives(at, &["f32", "--element", "f32", "--op", "min"], "-3.0");
    gives(at, &["f32", "--element", "f32", "--op", "max"], "12.75");
    fs::write(at.join("f64"), [1e308, 1e308, -1e308].iter().flat_map(|x: &f64| x.to_le_bytes()).collect::<Vec<u8>>())
        .unwrap();
    gives(at, &["f64", "--element", "f64"], "inf");
    fs::write(at.join("f64"), [1.5, f64::NAN, 2.5].iter().flat_map(|x: &f64| x.to_le_bytes()).collect::<Vec<u8>>())
        .unwrap();
    gives(at, &["f64", "--element", "f64", "--op", "max"], "NaN");
    fs::write(at.join("empty"), b"").unwrap();
    gives(at, &["empty"], "0");
}

#[test]
fn elements_of_fields_in_files() {
    fn of<C: Curve>(curve: &str) {
        let folder = tempfile::tempdir().unwrap();
        let all: Vec<C::Fr> = (1..=5000u64).map(|i| -C::Fr::from(i * i)).collect();
        let bytes: Vec<u8> = all.iter().flat_map(|x| C::canonical(*x).0).flat_map(u64::to_le_bytes).collect();
        fs::write(folder.path().join("in"), bytes).unwrap();
        let args = ["in", "--element", "scalar", "--curve", curve];
        gives(folder.path(), &args, &all.iter().sum::<C::Fr>().to_string());
        gives(folder.path(), &[&args[..], &["--op", "max"]].concat(), &all[0].to_string());
        gives(folder.path(), &[&args[..], &["--op", "min"]].concat(), &all[4999].to_string());
    }
    of::<Bn254>("bn254");
    of::<Bls12_381>("bls12-381");
}

#[track_caller]
fn refused(folder: &Path, args: &[&str], parts: &[&str]) {
    refused_in(folder, &[&["reduce"], args, &["--device", "sim:2"]].concat(), parts);
}

#[test]
fn bad_input_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("empty"), b"").unwrap();
    fs::write(at.join("cut"), [1u8; 31]).unwrap();
    fs::create_dir(at.join("folder")).unwrap();
    let mut scalars = vec![7u8; 32 * 70_001];
    scalars.iter_mut().skip(31).step_by(32).for_each(|top| *top = 0x17);
    fs::write(at.join("good"), &scalars).unwrap();
    // Too large at index 70000 and at 65536.
    scalars[32 * 70_001 - 1] = 0xff;
    scalars[32 * 65_537 - 1] = 0xff;
    fs::write(at.join("large"), &scalars).unwrap();
    refused(at, &["empty", "--op", "min"], &["empty:", "the file is empty", "no element is the least"]);
    refused(at, &["empty", "--op", "max"], &["empty:", "no element is the greatest"]);
    refused(at, &["cut"], &["cut:", "31 bytes", "multiple of 8"]);
    refused(at, &["cut", "--element", "f32"], &["cut:", "31 bytes", "multiple of 4"]);
    refused(at, &["cut", "--element", "scalar"], &["cut:", "31 bytes", "multiple of 32"]);
    refused(at, &["folder"], &["folder:", "a folder"]);
    refused(at, &["missing"], &["missing:", "cannot open"]);
    refused(at, &["large", "--element", "scalar"], &["large:", "element 65536", "not below the modulus", "--curve"]);
    refused(at, &["large", "--element", "scalar", "--op", "min"], &["large:", "element 65536"]);
    let (_, stderr) = run_in(at, 2, &["reduce", "good", "--element", "u16"]);
    assert!(stderr.contains("u16") && stderr.contains("u32"), "{stderr}");
    run_in(at, 0, &["reduce", "good", "--element", "scalar", "--device", "sim:2", "-q"]);
}

#[test]
fn a_file_that_changes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("growing");
    fs::write(&path, vec![1u8; 64 << 20]).unwrap();
    // A whole element at a time, so that only the change is wrong.
    while_it_grows(&path, 8, || {
        let (_, stderr) = run_in(folder.path(), 2, &["reduce", "growing", "--device", "cpu", "-q"]);
        assert!(stderr.contains("growing:") && stderr.contains("changed while it was read"), "{stderr}");
    });
}

#[test]
fn files_larger_than_memory_stream() {
    let folder = tempfile::tempdir().unwrap();
    // 3 GiB, most of it a hole, for a program that may have 1 GiB.
    let mut file = fs::File::create(folder.path().join("large")).unwrap();
    file.write_all(&5u64.to_le_bytes()).unwrap();
    file.set_len(3 << 30).unwrap();
    file.seek(SeekFrom::Start((3 << 30) - 8)).unwrap();
    file.write_all(&7u64.to_le_bytes()).unwrap();
    for device in ["cpu", "sim:2"] {
        let program = support::binary();
        let script = "ulimit -v 1048576; exec \"$@\"";
        let args = ["-c", script, "bash", text(&program), "reduce", "large", "--device", device, "-q"];
        let output = Command::new("bash").current_dir(folder.path()).args(args).output().unwrap();
        assert_eq!(expect(0, output, &args).0, "12\n");
    }
}

#[test]
fn bench_measures_what_it_has_checked() {
    let folder = tempfile::tempdir().unwrap();
    for (more, what) in
        [(&["--element", "f32"][..], "reduce_sum_f32"), (&["--element", "scalar", "--op", "max"], "reduce_max_scalar")]
    {
        let args =
            [&["bench", "reduce", "--log-n", "6..7", "--runs", "2", "--device", "sim:2", "--json", "-"], more].concat();
        let (stdout, stderr) = run_in(folder.path(), 0, &args);
        // Two sizes; three tests of what lies on lanes, and two of each of three places in the host's memory and files.
        assert_eq!(stdout.lines().count(), 2 * (3 + 2 * 3), "{stdout}");
        assert!(stdout.lines().all(|row| row.contains(&format!("\"what\":\"{what}\""))), "{stdout}");
        assert!(stderr.contains("read from the first") && stderr.contains("plan GB/s"), "{stderr}");
    }
    let args = ["bench", "reduce", "--collective", "--device", "sim:2", "-b", "4K", "-e", "4K", "-n", "1"];
    let (stdout, _) = run_in(folder.path(), 0, &args);
    assert!(stdout.contains("GB/s") && stdout.contains("4 KiB"), "{stdout}");
    let (_, stderr) =
        run_in(folder.path(), 2, &["bench", "reduce", "--collective", "--op", "min", "--device", "sim:2"]);
    assert!(stderr.contains("--collective"), "{stderr}");
}
