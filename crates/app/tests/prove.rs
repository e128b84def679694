//! `tandem prove` on several lanes: many proofs with one key, and the trace of one.

mod support;

use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use support::{binary, demo, names, root, run_in};

/// The demo's key and witness in a folder of the test's own.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, file) in [("key", "membership.zkey"), ("w", "membership.wtns"), ("v", "membership.vkey.json")] {
        fs::copy(demo(file), folder.path().join(name)).unwrap();
    }
    folder
}

/// The arguments for proofs 0 to `count` - 1.
fn many(count: usize) -> Vec<String> {
    let triple = |i: usize| ["w".to_string(), format!("proof{i}"), format!("public{i}")];
    let mut args: Vec<String> = ["prove", "key"].map(String::from).to_vec();
    args.extend(triple(0));
    (1..count).for_each(|i| args.extend(std::iter::once("--more".into()).chain(triple(i))));
    args
}

fn check(folder: &Path, count: usize) {
    let mut proofs = HashSet::new();
    for i in 0..count {
        let (proof, public) = (format!("proof{i}"), format!("public{i}"));
        assert_eq!(run_in(folder, 0, &["verify", "v", &public, &proof]).0, "OK\n");
        assert!(proofs.insert(fs::read(folder.join(proof)).unwrap()), "each proof is blinded by itself");
    }
}

#[test]
fn many_proofs_are_made_with_one_key() {
    for (device, schedule) in [("cpu", "auto"), ("sim:3", "each"), ("sim:2", "roles"), ("sim:2", "each")] {
        let folder = folder();
        let args = many(5);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let options = ["--device", device, "--schedule", schedule, "--json"];
        let (stdout, _) = run_in(folder.path(), 0, &[&args[..], &options].concat());
        check(folder.path(), 5);
        let report: Value = serde_json::from_str(&stdout).unwrap();
        let proofs = report["proofs"].as_array().unwrap();
        assert_eq!(proofs.len(), 5);
        assert!(proofs.iter().all(|proof| proof["seconds"].as_f64().unwrap() > 0.0));
        assert!(report["proofs_per_s"].as_f64().unwrap() > 0.0);
    }
}

/// What was proved until then is told, in the shape of the whole.
#[test]
fn a_report_that_ends_early_is_still_one() {
    let folder = folder();
    fs::write(folder.path().join("bad"), b"wtns").unwrap();
    let args = ["prove", "key", "w", "p", "x", "--more", "bad", "p1", "x1", "--device", "cpu", "--json"];
    let (stdout, _) = run_in(folder.path(), 2, &args);
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert!(report["proofs"].as_array().unwrap().len() <= 1 && report["proofs_per_s"].is_null(), "{report}");
}

/// The most memory that a command takes, in KiB, with AVX-512 where there is some, or without.
fn peak(folder: &Path, args: &[&str], avx512: &str) -> u64 {
    use std::os::unix::process::ExitStatusExt;
    let mut child = support::tandem()
        .current_dir(folder)
        .env("TANDEM_AVX512", avx512)
        .args(args)
        .args(["--device", "cpu", "--json"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let ended = loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let kib = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak = kib.and_then(|kib| kib.split_whitespace().next()?.parse().ok()).unwrap_or(peak);
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    assert!(ended.success(), "{ended} {:?}", ended.signal());
    peak
}

/// A folder with a key of a small circuit and its witness.
fn squarings() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (r1cs, wtns) = support::files::squarings(3);
    fs::write(folder.path().join("r1cs"), r1cs).unwrap();
    fs::write(folder.path().join("w"), wtns).unwrap();
    run_in(folder.path(), 0, &["setup", "r1cs", "key", "--seed", "x"]);
    folder
}

#[test]
fn a_row_of_any_length_takes_the_same_memory() {
    let folder = squarings();
    let of = |count: usize| {
        let args = many(count);
        // Outputs may be named as often as one likes only where they are no files.
        let is_output = |arg: &str| arg.starts_with("proof") || arg.starts_with("public");
        let args: Vec<&str> = args.iter().map(|arg| if is_output(arg) { "/dev/null" } else { arg }).collect();
        peak(folder.path(), &args, "1")
    };
    let (few, many) = (of(200), of(1400));
    // 33 KB a proof were 39 MB.
    assert!(many < few + 8 * 1024, "{few} KiB for 200 proofs, {many} KiB for 1,400");
}

/// What a proof takes is what `inspect` foretells, and not half of it.
#[test]
fn memory_is_foretold() {
    let folder = squarings();
    let at = folder.path();
    for (bench, key, size) in [("setup", "n14", "14"), ("plonk", "plonk12", "12"), ("fflonk", "fflonk12", "12")] {
        run_in(at, 0, &["bench", bench, "--log-n", size, "--runs", "1", "--keep", ".", "--device", "cpu"]);
        let (zkey, wtns) = (format!("{key}.zkey"), format!("{key}.wtns"));
        for avx512 in ["0", "1"] {
            // Each thread takes some.
            let mut inspect = support::tandem();
            inspect.current_dir(at).env("TANDEM_AVX512", avx512).args(["inspect", &zkey, "--json", "--threads", "2"]);
            let said: Value = serde_json::from_slice(&inspect.output().unwrap().stdout).unwrap();
            let of = |name: &str| said[name].as_u64().unwrap();
            let [gpus, beside, cpu] = ["memory_of_gpus", "memory_beside_gpus", "memory_of_cpu"].map(of);
            assert!(gpus > of("file_bytes") / 2 && beside < 2 * cpu, "{said}");
            let prove = |key: &str, w: &str, more: &[&str]| {
                peak(at, &[&["prove", key, w, "p", "u", "--threads", "2"], more].concat(), avx512) << 10
            };
            let program = prove("key", "w", &[]);
            // The first proof checks the key, too, as each does that is told to.
            let checked = prove(&zkey, &wtns, &["--check-key"]).saturating_sub(program);
            let took = prove(&zkey, &wtns, &[]).saturating_sub(program);
            let held = prove(&zkey, &wtns, &["--more", &wtns, "p2", "u2"]).saturating_sub(program);
            let holding = of("memory_holding_key");
            println!("{key}, {avx512}: {took} bytes, {checked} with the check, foretold {cpu}; {held} of {holding}");
            // What the program itself takes differs by some hundred KiB.
            let is_foretold = |took: u64, said: u64| said + (1 << 20) > took && said < 2 * took;
            assert!(is_foretold(took, cpu), "{key}, {avx512}: {took} bytes, foretold {cpu}");
            assert!(is_foretold(held, holding), "{key}, {avx512}, two proofs: {held} bytes, foretold {holding}");
            assert!(checked < holding + (1 << 20), "{key}, {avx512}, checked: {checked} bytes, foretold {holding}");
        }
        let (text, _) = run_in(at, 0, &["inspect", &zkey]);
        assert!(text.contains("memory of gpus ") && text.contains(" MiB\n"), "{text}");
    }
}

/// A Groth16 proof takes less memory than its key's file has bytes.
#[test]
fn a_proof_does_not_hold_its_key() {
    let folder = squarings();
    let at = folder.path();
    run_in(at, 0, &["bench", "setup", "--log-n", "15", "--runs", "1", "--keep", ".", "--device", "cpu"]);
    let file = fs::metadata(at.join("n15.zkey")).unwrap().len();
    for avx512 in ["0", "1"] {
        let prove = |key: &str, w: &str| peak(at, &["prove", key, w, "p", "u", "--threads", "2"], avx512) << 10;
        let (program, first) = (prove("key", "w"), prove("n15.zkey", "n15.wtns"));
        let took = prove("n15.zkey", "n15.wtns") - program;
        println!("{avx512}: {took} bytes of a key of {file}, {first} the first time");
        assert!(took < file, "{avx512}: {took} bytes of a key of {file}");
    }
}

#[test]
fn a_bad_witness_among_many_is_named() {
    let folder = folder();
    fs::write(folder.path().join("bad"), b"wtns").unwrap();
    let args = ["prove", "key", "w", "p", "x", "--more", "bad", "p1", "x1", "--device", "sim:2", "--schedule", "each"];
    let (_, stderr) = run_in(folder.path(), 2, &args);
    assert!(stderr.contains("bad: "), "{stderr}");
    assert!(!names(folder.path()).iter().any(|name| name == "p1" || name == "x1"));
}

#[test]
fn outputs_of_many_may_not_meet() {
    let folder = folder();
    for (more, what) in [(["w", "p", "x1"], "p: "), (["w", "p1", "w"], "w: "), (["w", "key", "x1"], "key: ")] {
        let args = [&["prove", "key", "w", "p", "x", "--more"][..], &more].concat();
        let (_, stderr) = run_in(folder.path(), 2, &args);
        assert!(stderr.contains(what), "{more:?}: {stderr}");
        assert_eq!(names(folder.path()), ["key", "v", "w"]);
    }
    run_in(folder.path(), 2, &["prove", "key", "w", "p", "x", "--more", "w", "p1"]);
}

/// Begin and end of the events of one row, and their names.
type Row = Vec<(f64, f64, String)>;

/// The name of each process, and of each of its rows.
type Names = HashMap<(u64, Option<u64>), String>;

/// By process and row: the events of a trace; and the names of processes and rows.
fn trace(file: &Path) -> (HashMap<(u64, u64), Row>, Names) {
    let trace: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let (mut rows, mut titles) = (HashMap::<_, Row>::new(), HashMap::new());
    for event in trace["traceEvents"].as_array().unwrap() {
        let process = event["pid"].as_u64().unwrap();
        match event["ph"].as_str().unwrap() {
            "M" => {
                let title = event["args"]["name"].as_str().unwrap().to_string();
                titles.insert((process, event["tid"].as_u64()), title);
            }
            "X" => {
                let (begin, length) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
                let row = rows.entry((process, event["tid"].as_u64().unwrap())).or_default();
                row.push((begin, begin + length, event["name"].as_str().unwrap().to_string()));
            }
            other => panic!("an event of kind {other}"),
        }
    }
    (rows, titles)
}

#[test]
fn a_trace_shows_all_lanes_and_the_copies() {
    for (schedule, copies) in [("split", ["upload witness", "copy to lane"]), ("roles", ["upload witness"; 2])] {
        let folder = folder();
        let args = ["prove", "key", "w", "p", "x", "--device", "sim:2", "--schedule", schedule, "--trace", "t"];
        run_in(folder.path(), 0, &args);
        let (mut rows, titles) = trace(&folder.path().join("t"));
        assert_eq!(titles[&(0, None)], "host");
        for lane in [1, 2] {
            assert_eq!(titles[&(lane, None)], format!("lane {}", lane - 1));
            let row = |title: &str| titles.iter().find(|(id, t)| id.0 == lane && *t == title).unwrap().0 .1.unwrap();
            let work = rows.get_mut(&(lane, row("in order"))).unwrap();
            assert!(work.iter().any(|(.., name)| name.starts_with("MSM ")), "{work:?}");
            // One after the other.
            work.sort_by(|a, b| a.0.total_cmp(&b.0));
            assert!(work.windows(2).all(|w| w[0].1 <= w[1].0 + 1e-3), "{work:?}");
            let copied: HashSet<&str> = rows[&(lane, row("copies"))].iter().map(|(.., name)| name.as_str()).collect();
            assert!(copied.contains(copies[0]), "{copied:?}");
        }
        let everywhere = |name: &str| rows.values().flatten().any(|(.., n)| n == name);
        assert!(copies.iter().all(|name| everywhere(name)));
        let proof = rows[&(0, 0)].iter().find(|(.., name)| name == "prove").unwrap();
        let of_lanes = rows.iter().filter(|((process, _), _)| *process > 0).flat_map(|(_, row)| row);
        // The two clocks are set by each other when the device is opened; a busy machine may hold up the thread between the two.
        for (begin, end, name) in of_lanes {
            assert!(*begin >= proof.0 - 2e4 && *end <= proof.1 + 2e4, "{name} is not within the proof");
        }
    }
}

/// `--explain` says who does what, for each protocol and schedule, and changes nothing else.
#[test]
fn a_plan_is_told_before_the_proof() {
    let folder = folder();
    let at = folder.path();
    fs::copy(root().join("crates/app/tests/data/multiplier.r1cs"), at.join("r1cs")).unwrap();
    fs::copy(root().join("crates/witness/tests/data/multiplier.wasm"), at.join("wasm")).unwrap();
    fs::write(at.join("input"), r#"{"a": 3, "b": 5}"#).unwrap();
    run_in(at, 0, &["ptau", "--test", "6", "tau"]);
    run_in(at, 0, &["setup", "--protocol", "plonk", "--ptau", "tau", "r1cs", "plonk"]);
    let groth16 = ["prove", "key", "w", "p", "x"];
    let plonk = ["fullprove", "input", "wasm", "plonk", "p", "x"];
    let told = |args: &[&str], device: &str, schedule: &str| -> Vec<String> {
        let options = ["--device", device, "--schedule", schedule, "--explain"];
        let (stdout, stderr) = run_in(at, 0, &[args, &options].concat());
        assert_eq!(stdout, "");
        stderr.lines().filter_map(|line| line.strip_prefix("plan: ")).map(String::from).collect()
    };
    let split = told(&groth16, "sim:2", "split");
    assert_eq!(split[0], "transforms: a on lane 0, b on lane 1, c from lane 0 to lane 1");
    assert!(split[1].starts_with("lane 0: witness 0..") && split[2].starts_with("lane 1: witness "), "{split:?}");
    assert_eq!(split[3], "H: lane 0 4096 points, lane 1 4096 points");
    let each = told(&[&groth16[..], &["--more", "w", "p2", "x2"]].concat(), "sim:3", "each");
    assert_eq!(each[0], "3 provers, each with a lane of its own and a proof of its own");
    assert_eq!(each[1], "transforms: a on lane 0, b on lane 0, c from lane 0 to lane 0");
    let blueprint = told(&groth16, "sim:2", "blueprint");
    assert!(blueprint[1].starts_with("lane 1: witness 0..") && blueprint[1].contains("points, B1 "), "{blueprint:?}");
    let has = |text: &str| blueprint.iter().any(|line| line.starts_with(text));
    assert!(has("all points on lane 1, which reads the witness on lane 0;") && has("foretold: "), "{blueprint:?}");
    let steps = [
        "1 witness, matrices",
        "2 quotient",
        "3 sums L, H",
        "4 C",
        "1 points",
        "2 sums A, B1",
        "3 sum B2",
        "4 A, B1 for C",
    ];
    assert!(has("memory of lane 1: points stay there") && steps.iter().all(|step| has(step)), "{blueprint:?}");
    for (device, schedule, lanes, plan) in [
        (
            "sim:3",
            "split",
            3,
            &["sums over 3 lanes, cosets on 0, 2, 1", "A, B and C are interpolated on lanes 0, 1, 1"][..],
        ),
        ("cpu", "auto", 1, &["sums over 1 lane, cosets on 0, 0, 0"]),
    ] {
        let told = told(&plonk, device, schedule);
        let (has, rest) = told.split_at(plan.len());
        assert!(has == plan && rest[0] == "all of the key stays", "{told:?}");
        let (memory, foretold): (Vec<_>, Vec<_>) =
            rest[1..].iter().partition(|line| line.starts_with("memory of lane "));
        assert!(memory.len() == lanes && memory[0].starts_with("memory of lane 0: key 1 MiB, "), "{told:?}");
        assert!(foretold.len() == usize::from(lanes > 1) && foretold.iter().all(|line| line.starts_with("foretold: ")));
    }
    assert!(!run_in(at, 0, &groth16).1.contains("plan: "));
    // The blueprint is for two GPUs and one protocol.
    let refused = |args: &[&str], device: &str, part: &str| {
        let (_, stderr) = run_in(at, 2, &[args, &["--device", device, "--schedule", "blueprint"]].concat());
        assert!(stderr.contains(part), "{stderr}");
    };
    refused(&groth16, "sim:3", "this schedule is for 2 GPUs and the device sim:3 is 3: name 2, as --device cuda:0,1");
    refused(&groth16, "cpu", "this schedule is for 2 GPUs and the device cpu is 1");
    refused(&plonk, "sim:2", "the schedule blueprint is for Groth16 keys with matrices (.zkey); this one is of PLONK");
}

/// Ways of transforms that do not go together are refused.
#[test]
fn a_cube_is_measured_in_one_form() {
    let folder = folder();
    for (args, part) in [
        (&["ntt", "--as", "spread", "--exchange", "host"][..], "--exchange is of --as cube"),
        (&["ntt", "--exchange", "host", "--inverse"], "a cube is measured from natural to bit-reversed order"),
        (&["ntt", "--as", "cube", "--batch", "2"], "a cube is measured from natural to bit-reversed order"),
        (&["ntt", "--as", "cube", "--field", "goldilocks", "--device", "cpu"], "expected bn254 or bls12-381"),
        (&["words", "--log-n", "32"], "7..=31"),
    ] {
        let (_, stderr) = run_in(folder.path(), 2, &[&["bench"], args].concat());
        assert!(stderr.contains(part), "{stderr}");
    }
    let bench =
        ["bench", "ntt", "--log-n", "10", "--as", "spread,cube", "--exchange", "nvlink,host", "--device", "sim:4"];
    let (stdout, _) = run_in(folder.path(), 0, &[&bench[..], &["--runs", "1", "--json", "-"]].concat());
    let rows: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let way = |row: &Value| (row["as"].as_str().map(String::from), row["exchange"].as_str().map(String::from));
    let of = |exchange: &str| (Some("cube".to_string()), Some(exchange.to_string()));
    assert_eq!(rows.iter().map(way).collect::<Vec<_>>(), [(None, None), of("nvlink"), of("host")]);
    assert!(
        rows[1..].iter().all(|row| row["lanes"] == 4 && row["exchange_ms_median"].as_f64().unwrap() > 0.0),
        "{rows:?}"
    );
}

#[test]
fn a_bench_compares_devices_and_schedules_with_one_key() {
    let folder = folder();
    for what in [&["--log-n", "6"][..], &["key", "w"]] {
        let options = ["--compare", "--runs", "2", "--device", "sim:2", "--schedule", "roles", "--json", "-"];
        let (stdout, stderr) = run_in(folder.path(), 0, &[&["bench", "groth16"][..], what, &options].concat());
        let rows: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let schedules: Vec<&str> = rows.iter().map(|row| row["schedule"].as_str().unwrap()).collect();
        assert_eq!(schedules, ["auto", "roles", "split", "each"], "{stderr}");
        // What a lane computes, copies and waits for is its whole time; each schedule uses both, `each` in turn.
        for (row, lanes) in rows.iter().zip([1, 2, 2, 1]) {
            assert_eq!(row["lanes"].as_array().unwrap().len(), lanes, "{row}");
            // Each row names what it was measured on: two pretend GPUs, or a CPU for each of their lanes that works alone.
            let pretend = row["device"].as_str().unwrap().matches("(sim:").count();
            assert_eq!(pretend, if lanes == 2 { 2 } else { 0 }, "{row}");
            assert!(row["ms_median"].as_f64().unwrap() > 0.0 && row["uses"] == 1_000_000, "{row}");
            let names: Vec<&str> =
                row["stages"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
            for name in ["upload witness", "inverse NTT c", "MSM B2", "MSM H", "verify"] {
                assert!(names.contains(&name), "{names:?}");
            }
        }
    }
    // A key of another system, a size without a circuit and a curve without FFLONK are refused before anything is made.
    for (args, part) in [
        (
            &["bench", "plonk", "key", "w"][..],
            "this is a Groth16 zkey file, expected a PLONK key: use tandem bench groth16",
        ),
        (&["bench", "plonk", "--log-n", "25"], "2^3 to 2^24"),
        (&["bench", "fflonk", "--curve", "bls12-381"], "for bn254 alone"),
    ] {
        let (_, stderr) = run_in(folder.path(), 2, args);
        assert!(stderr.contains(part), "{stderr}");
    }
    let (_, stderr) = run_in(folder.path(), 2, &["bench", "groth16", "--compare", "--device", "cpu"]);
    assert!(stderr.contains("--compare needs several devices"), "{stderr}");
    // Rows that cannot be written are refused before the key is made.
    let options = ["--log-n", "22", "--device", "sim:2", "--json", "nowhere/rows.jsonl"];
    let (_, stderr) = run_in(folder.path(), 2, &[&["bench", "groth16"][..], &options].concat());
    assert!(stderr.contains("nowhere/rows.jsonl: cannot append"), "{stderr}");
}

/// A few of the kills that scripts/killed.sh makes by hand and on GPUs.
#[test]
fn proofs_that_are_killed_leave_nothing_half_done() {
    let cache = tempfile::tempdir().unwrap();
    let mut script = Command::new("sh");
    script.arg(root().join("scripts/killed.sh")).arg(binary());
    script.args(["zkey", "wtns", "vkey.json"].map(|kind| demo(&format!("membership.{kind}"))));
    let output = script.args(["cpu", "4"]).env("TANDEM_CACHE_DIR", cache.path()).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("killed: 4 proofs on cpu"), "{out}{err}");
}

/// A PLONK or FFLONK key has 160 bytes a row and public signal, of which a proof needs none: they are hashed and not kept.
#[test]
fn many_public_signals_take_no_memory() {
    const PUBLICS: u32 = 400;
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    run_in(at, 0, &["ptau", "--test", "12", "pot"]);
    for (name, publics) in [("one", 1), ("many", PUBLICS)] {
        let (r1cs, wtns) = support::files::squarings_with(8, PUBLICS + 10, publics);
        fs::write(at.join(format!("{name}.r1cs")), r1cs).unwrap();
        fs::write(at.join(format!("{name}.wtns")), wtns).unwrap();
    }
    for protocol in ["plonk", "fflonk"] {
        let took = ["one", "many"].map(|name| {
            let (r1cs, zkey, wtns) =
                (format!("{name}.r1cs"), format!("{name}.{protocol}.zkey"), format!("{name}.wtns"));
            run_in(at, 0, &["setup", "--protocol", protocol, "--ptau", "pot", &r1cs, &zkey]);
            let took = peak(at, &["prove", &zkey, &wtns, "p", "u", "--check-key", "--threads", "2"], "1");
            (took << 10, fs::metadata(at.join(zkey)).unwrap().len())
        });
        let [(one, _), (many, file)] = took;
        println!("{protocol}: {one} bytes with one public signal, {many} with {PUBLICS}, whose key has {file}");
        // Nine tenths of the key are Lagrange polynomials; the domain is larger, too.
        assert!(file > 30 << 20 && many < one + (file / 2), "{protocol}: {one} {many} of {file}");
    }
}

/// A key of bellperson proves with the circuit that it was made of.
#[test]
fn keys_of_bellperson_prove_with_their_circuit() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for name in ["mul_bls.r1cs", "mul_bls.wtns", "mul.r1cs"] {
        fs::copy(root().join("crates/formats/tests/data").join(name), at.join(name)).unwrap();
    }
    run_in(at, 0, &["setup", "--params", "mul_bls.r1cs", "key.params", "--seed", "a test"]);
    let (facts, _) = run_in(at, 0, &["inspect", "--json", "key.params"]);
    let facts: Value = serde_json::from_str(&facts).unwrap();
    assert_eq!(facts["kind"], "Groth16 proving key of bellperson (params)");
    assert_eq!(facts["file_bytes"].as_u64(), Some(fs::metadata(at.join("key.params")).unwrap().len()));
    run_in(at, 0, &["prepare", "key.params", "--device", "cpu"]);
    run_in(at, 0, &["export-vkey", "key.params", "v"]);
    for device in ["cpu", "sim:2"] {
        run_in(at, 0, &["prove", "--r1cs", "mul_bls.r1cs", "key.params", "mul_bls.wtns", "p", "u", "--device", device]);
        assert_eq!(run_in(at, 0, &["verify", "v", "u", "p"]).0, "OK\n");
    }
    let (_, stderr) = run_in(at, 2, &["prove", "key.params", "mul_bls.wtns", "p2", "u2", "--device", "cpu"]);
    assert!(stderr.contains("--r1cs"), "{stderr}");
    let other = ["prove", "--r1cs", "mul.r1cs", "key.params", "mul_bls.wtns", "p2", "u2", "--device", "cpu"];
    let (_, stderr) = run_in(at, 2, &other);
    assert!(stderr.contains("mul.r1cs: a circuit for bn254"), "{stderr}");
    let (_, stderr) = run_in(at, 2, &["setup", "--params", "mul.r1cs", "new.params"]);
    assert!(stderr.contains("--prime bls12381"), "{stderr}");
    assert!(!at.join("p2").exists() && !at.join("new.params").exists());
}
