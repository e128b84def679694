//! `tandem sort`: files against the definition, on one lane and on several, whole and in pieces, and bad input.

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;
use support::{
    changes_under_way_are_refused, expect, interrupts_leave_the_output, names, refused_in, run_in, tandem, text,
};
use tandem_ops::naive;

/// Keys of no pattern, some of them equal.
fn keys(n: u64, modulus: u64) -> Vec<u64> {
    (1..=n).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) % modulus).collect()
}

fn bytes(words: &[u64], width: usize) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()[..width].to_vec()).collect()
}

#[test]
fn files_are_sorted_as_it_is_defined() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (name, width) in [("u32", 4), ("u64", 8)] {
        for (n, modulus) in [(1, 9), (2, 2), (777, 50), (1000, u64::MAX >> (64 - 8 * width))] {
            let keys = keys(n, modulus);
            let pairs: Vec<u64> = keys.iter().zip(0..).flat_map(|(&key, i)| [key, i]).collect();
            fs::write(at.join("keys"), bytes(&keys, width)).unwrap();
            fs::write(at.join("pairs"), bytes(&pairs, width)).unwrap();
            for (more, descending) in [(&[][..], false), (&["--descending"], true), (&["--way", "merge"], false)] {
                let order = naive::sort(&keys, descending);
                let sorted: Vec<u64> = order.iter().map(|&i| keys[i]).collect();
                let sorted_pairs: Vec<u64> = order.iter().flat_map(|&i| [keys[i], i as u64]).collect();
                // 32 MiB and 5 KB: room for some hundred elements at a time.
                for (device, memory) in
                    [("cpu", None), ("sim:3", None), ("sim:8", Some("33559552")), ("cpu", Some("33559552"))]
                {
                    for (input, expected) in [("keys", &sorted), ("pairs", &sorted_pairs)] {
                        let mut args = vec!["sort", input, "out", "--key", name, "--device", device, "-q"];
                        args.extend(memory.iter().flat_map(|memory| ["--memory", memory]));
                        args.extend((input == "pairs").then_some("--pairs"));
                        args.extend(more);
                        let (stdout, stderr) = run_in(at, 0, &args);
                        assert_eq!((stdout.as_str(), stderr.as_str()), ("", ""), "{args:?}");
                        assert!(fs::read(at.join("out")).unwrap() == bytes(expected, width), "{n} keys: {args:?}");
                    }
                }
            }
        }
    }
    let (stdout, _) = run_in(at, 0, &["sort", "keys", "out", "--device", "cpu", "--memory", "33559552", "--json"]);
    assert!(stdout.contains("\"elements\":1000") && !stdout.contains("\"pieces\":1,"), "{stdout}");
}

#[track_caller]
fn refused(folder: &Path, args: &[&str], parts: &[&str]) {
    refused_in(folder, &[&["sort"], args, &["--device", "cpu"]].concat(), parts);
}

#[test]
fn bad_input_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let good = bytes(&keys(90, u64::MAX), 8);
    fs::write(at.join("good"), &good).unwrap();
    fs::write(at.join("empty"), b"").unwrap();
    fs::write(at.join("cut"), &good[..good.len() - 3]).unwrap();
    fs::create_dir(at.join("folder")).unwrap();
    refused(at, &["empty", "out"], &["empty:", "the file is empty"]);
    refused(at, &["cut", "out"], &["cut:", "717 bytes", "multiple of 8"]);
    refused(at, &["good", "out", "--key", "u64", "--pairs", "--memory", "1K"], &["32 MiB", "--memory"]);
    fs::write(at.join("odd"), &good[..88]).unwrap();
    refused(at, &["odd", "out", "--pairs"], &["odd:", "88 bytes", "multiple of 16"]);
    refused(at, &["missing", "out"], &["missing:", "cannot open"]);
    refused(at, &["folder", "out"], &["folder:", "a folder"]);
    refused(at, &["good", "good"], &["would replace the input"]);
    refused(at, &["good", "./good"], &["would replace the input"]);
    refused(at, &["good", "no/such/out"], &["no/such"]);
    assert_eq!(fs::read(at.join("good")).unwrap(), good);
    // An output that is there stays as it was.
    fs::write(at.join("out"), "mine").unwrap();
    refused(at, &["cut", "out"], &["717 bytes"]);
    assert_eq!(fs::read(at.join("out")).unwrap(), b"mine");
    // More than this machine's memory: a file with a hole.
    fs::File::create(at.join("huge")).unwrap().set_len(1 << 42).unwrap();
    refused(at, &["huge", "out"], &["huge:", "4398046511104 bytes", "are free"]);
}

#[test]
fn outputs_that_are_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let keys = keys(100_000, 1000);
    fs::write(at.join("in"), bytes(&keys, 8)).unwrap();
    let mut sorted = keys;
    sorted.sort_unstable();
    // A pipe takes the keys; a folder, a full disk and the input as a pipe are refused.
    let args = ["sort", "in", "/dev/stdout", "--device", "cpu", "-q"];
    assert!(tandem().current_dir(at).args(args).output().unwrap().stdout == bytes(&sorted, 8));
    fs::create_dir(at.join("folder")).unwrap();
    refused(at, &["in", "folder"], &["folder:", "a folder"]);
    refused(at, &["in", "/dev/full"], &["/dev/full:", "No space left"]);
    refused(at, &["/dev/stdin", "out"], &["/dev/stdin:", "not a regular file"]);
}

#[test]
fn a_disk_that_fills_up_half_way() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("in"), bytes(&keys(100_000, 1000), 8)).unwrap();
    fs::write(at.join("out"), "mine").unwrap();
    // 64 blocks of 1 KiB for each file; with the signal ignored, writing fails as on a full disk.
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$@\"";
    for memory in ["1G", "34000000"] {
        let program = support::binary();
        let args = ["-c", script, "bash", text(&program), "sort", "in", "out", "--device", "cpu", "--memory", memory];
        let output = Command::new("bash").current_dir(at).args(args).output().unwrap();
        let (_, stderr) = expect(2, output, &args);
        assert!(stderr.contains("out: ") && stderr.lines().count() == 1, "{stderr}");
        assert_eq!(names(at), ["in", "out"]);
        assert_eq!(fs::read(at.join("out")).unwrap(), b"mine");
    }
}

#[test]
fn a_file_that_changes_is_refused() {
    for length in [1 << 20, (64 << 20) + 8] {
        changes_under_way_are_refused(64 << 20, length, &["sort", "in", "out", "--device", "cpu", "-q"]);
    }
}

#[test]
fn interrupts_leave_the_old_output() {
    interrupts_leave_the_output(256 << 20, &["sort", "in", "out", "--device", "cpu"]);
}

#[test]
fn bench_measures_what_it_has_checked() {
    let folder = tempfile::tempdir().unwrap();
    let all = "random,equal,sorted,reversed,zipf,heavy";
    for more in [&["--key", "u32"][..], &["--pairs"], &["--descending", "--pairs", "--way", "merge"]] {
        let args = [
            &["bench", "sort", "--log-n", "8", "--runs", "1", "--keys", all, "--device", "sim:2", "--json", "-"],
            more,
        ];
        let (stdout, _) = run_in(folder.path(), 0, &args.concat());
        let rows =
            stdout.lines().filter(|line| line.contains("\"what\":\"sort_") && line.contains("\"log_n\":8")).count();
        assert_eq!(rows, if more.contains(&"merge") { 12 } else { 18 }, "{stdout}");
    }
}
