//! What somebody sees who comes from snarkjs or rapidsnark: every file is told for what it is, their words work or are answered, and what
//! is said is short.

mod support;

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use support::files::{container, element, patched, sections, squarings};
use support::{binary, demo, expect, refused_in, root, run_in, tandem};

/// A folder with the demo's files, a circuit and what it was made of.
fn place() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for name in ["zkey", "wtns", "vkey.json", "input.json"] {
        fs::copy(demo(&format!("membership.{name}")), at.join(format!("good.{name}"))).unwrap();
    }
    for name in
        ["mul.zkey", "mul_new.zkey", "mul_bls.zkey", "mul.proof.json", "mul.public.json", "bn128.ptau", "mul_bls.r1cs"]
    {
        fs::copy(root().join("crates/formats/tests/data").join(name), at.join(name)).unwrap();
    }
    fs::copy(root().join("crates/app/tests/data/multiplier.r1cs"), at.join("good.r1cs")).unwrap();
    fs::copy(root().join("crates/witness/tests/data/multiplier.wasm"), at.join("good.wasm")).unwrap();
    folder
}

/// Files of every kind, with what each is called.
fn kinds(at: &Path) -> Vec<(&'static str, &'static str)> {
    let made: [(&str, &[u8], &str); 17] = [
        ("graph", b"wtns.graph.001\x05\0\0\0", "a circom-witnesscalc graph"),
        ("lfs", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "a Git LFS pointer"),
        ("elf", b"\x7fELF\x02\x01\x01\0", "an ELF program or library"),
        ("gzip", b"\x1f\x8b\x08\0\0\0", "a gzip file"),
        ("zip", b"PK\x03\x04\x14\0", "a zip file"),
        ("zstd", b"\x28\xb5\x2f\xfd\x04", "a zstd file"),
        ("html", b"<!DOCTYPE html><html><title>404</title></html>", "a web page"),
        ("source", b"pragma circom 2.0.0;\n", "the source of a circuit"),
        ("sym", b"1,1,0,main.c\n2,2,0,main.a\n", "a sym file"),
        ("prose", b"some words\n", "a text file"),
        ("empty", b"", "an empty file"),
        ("noise", &[0x85; 5000], "a file of unknown type"),
        (
            "plonk.vkey",
            br#"{"protocol":"plonk","curve":"bn128","nPublic":1,"power":3}"#,
            "a PLONK verification key (JSON)",
        ),
        ("fflonk.vkey", br#"{"protocol":"fflonk","curve":"bn128","nPublic":1}"#, "an FFLONK verification key (JSON)"),
        ("plonk.proof", br#"{"A":["1"],"Wxi":["1"],"protocol":"plonk","curve":"bn128"}"#, "a PLONK proof (JSON)"),
        ("fflonk.proof", br#"{"polynomials":{},"evaluations":{},"protocol":"fflonk"}"#, "an FFLONK proof (JSON)"),
        ("xml", b"<system version=\"1\"></system>", "an XML file"),
    ];
    let mut all: Vec<_> = made.iter().map(|(name, _, what)| (*name, *what)).collect();
    for (name, bytes, _) in made {
        fs::write(at.join(name), bytes).unwrap();
    }
    for (name, system) in [("plonk.zkey", 2), ("fflonk.zkey", 10)] {
        let other = container(b"zkey", 1, &[(1, vec![system, 0, 0, 0]), (2, vec![0; 400])]);
        fs::write(at.join(name), other).unwrap();
    }
    run_in(at, 0, &["setup", "--params", "mul_bls.r1cs", "good.params"]);
    fs::create_dir(at.join("folder")).unwrap();
    all.extend([
        ("plonk.zkey", "a PLONK zkey file"),
        ("fflonk.zkey", "an FFLONK zkey file"),
        ("folder", "this is a folder"),
        ("good.zkey", "a zkey file"),
        ("good.wtns", "a wtns file"),
        ("good.r1cs", "an r1cs file"),
        ("good.wasm", "a WebAssembly module"),
        ("good.vkey.json", "a Groth16 verification key (JSON)"),
        ("good.input.json", "a JSON file of another kind"),
        ("mul.proof.json", "a Groth16 proof (JSON)"),
        ("mul.public.json", "public values (JSON)"),
        ("bn128.ptau", "a powers of tau file (ptau)"),
        ("good.params", "a Groth16 key of bellperson (params)"),
    ]);
    all
}

/// Every place of a file on every command line, marked by FILE, with the kinds that are taken there.
const PLACES: [(&str, &[&str]); 23] = [
    ("prove FILE good.wtns p u --device cpu", &["good.zkey", "plonk.zkey", "fflonk.zkey", "good.params"]),
    ("prove good.zkey FILE p u --device cpu", &["good.wtns"]),
    ("fullprove FILE good.wasm good.zkey p u --device cpu", &["good.input.json"]),
    ("fullprove good.input.json FILE good.zkey p u --device cpu", &["good.wasm", "graph"]),
    ("witness FILE good.input.json w", &["good.wasm", "graph"]),
    ("witness good.wasm FILE w", &["good.input.json"]),
    ("witness good.wasm good.input.json w --sym FILE", &["sym"]),
    ("verify FILE one.json mul.proof.json", &["good.vkey.json", "plonk.vkey", "fflonk.vkey"]),
    ("verify good.vkey.json FILE mul.proof.json", &["mul.public.json"]),
    ("verify good.vkey.json one.json FILE", &["mul.proof.json"]),
    ("check FILE good.wtns", &["good.r1cs"]),
    ("check good.r1cs FILE", &["good.wtns"]),
    ("setup FILE new", &["good.r1cs"]),
    ("setup --protocol plonk --ptau bn128.ptau FILE new", &["good.r1cs"]),
    ("setup --protocol plonk --ptau FILE good.r1cs new", &["bn128.ptau"]),
    ("prepare FILE", &["good.zkey", "plonk.zkey", "fflonk.zkey", "good.params"]),
    ("export-vkey FILE new", &["good.zkey", "plonk.zkey", "fflonk.zkey", "good.params"]),
    (
        "export-solidity FILE new",
        &["good.zkey", "plonk.zkey", "fflonk.zkey", "good.params", "good.vkey.json", "plonk.vkey", "fflonk.vkey"],
    ),
    (
        "inspect FILE",
        &[
            "good.zkey",
            "plonk.zkey",
            "fflonk.zkey",
            "good.wtns",
            "good.r1cs",
            "good.vkey.json",
            "plonk.vkey",
            "fflonk.vkey",
            "bn128.ptau",
            "good.params",
        ],
    ),
    ("bench groth16 FILE good.wtns --runs 1 --device cpu", &["good.zkey", "good.params"]),
    ("bench groth16 good.zkey FILE --runs 1 --device cpu", &["good.wtns"]),
    ("topo --from FILE", &["good.input.json", "xml"]),
    ("plan broadcast --gpus all --from FILE", &["good.input.json", "xml"]),
];

/// None is called damaged, or anything else than what it is.
#[test]
fn every_kind_of_file_is_told_in_every_place() {
    let folder = place();
    let at = folder.path();
    let kinds = kinds(at);
    fs::write(at.join("one.json"), r#"["1"]"#).unwrap();
    let mut told = 0;
    for (line, taken) in PLACES {
        for (name, what) in kinds.iter().filter(|(name, _)| !taken.contains(name)) {
            // Names of signals and nvidia-smi's text are text without a mark to tell it by.
            let is_text = *name == "prose" && (line.contains("--sym") || line.contains("--from"));
            let args: Vec<&str> = line.split(' ').map(|word| if word == "FILE" { name } else { word }).collect();
            let before = support::names(at);
            let (stdout, stderr) = run_in(at, 2, &args);
            assert!(stdout.is_empty() && stderr.lines().count() == 1 && stderr.contains(name), "{args:?}: {stderr}");
            assert!(is_text || stderr.contains(what), "{args:?}: expected {what:?} in {stderr}");
            assert!(!stderr.contains("damaged"), "{args:?}: {stderr}");
            assert_eq!(support::names(at), before);
            told += 1;
        }
    }
    assert!(told > 400, "{told}");
}

/// A key whose delta is not that of its points proves nothing; neither it nor the witness is blamed alone.
#[test]
fn a_key_with_a_wrong_delta_does_not_blame_the_witness() {
    let folder = place();
    let at = folder.path();
    let key = fs::read(at.join("good.zkey")).unwrap();
    // Header: the moduli, three counts, alpha 1, beta 1, beta 2, gamma 2, delta 1, delta 2. A smaller circuit's is as good.
    let of = |file: &[u8]| {
        let (_, _, start, _) = sections(file)[1];
        file[start + 84 + 2 * 64 + 2 * 128..][..64 + 128].to_vec()
    };
    let other = of(&fs::read(at.join("mul.zkey")).unwrap());
    assert_ne!(other, of(&key));
    fs::write(at.join("bad.zkey"), patched(&key, 2, 84 + 2 * 64 + 2 * 128, &other)).unwrap();
    let parts =
        ["good.wtns: ", "bad.zkey, or the key is wrong", "tandem check circuit.r1cs good.wtns", "if it says OK"];
    refused_in(at, &["prove", "bad.zkey", "good.wtns", "p", "u", "--device", "cpu"], &parts);
}

#[test]
fn keys_that_nobody_should_trust_are_told() {
    let folder = place();
    let at = folder.path();
    run_in(at, 0, &["setup", "good.r1cs", "test.zkey", "--quiet"]);
    let inspect = |name: &str| {
        let (stdout, _) = run_in(at, 0, &["inspect", name]);
        assert!(stdout.lines().all(|line| line.chars().count() <= 80), "{stdout}");
        let json: Value = serde_json::from_str(&run_in(at, 0, &["inspect", name, "--json"]).0).unwrap();
        (stdout, json["trust"].as_str().unwrap_or_default().to_string())
    };
    for (name, word) in [("test.zkey", "TEST KEY"), ("mul_new.zkey", "NO CONTRIBUTIONS")] {
        let (text, json) = inspect(name);
        assert!(text.contains(word) && text.contains("forge proofs") && json.starts_with(word), "{text}");
    }
    // Without section 10.
    let key = fs::read(at.join("mul.zkey")).unwrap();
    let kept: Vec<_> = sections(&key).into_iter().filter(|s| s.0 != 10).collect();
    let kept: Vec<_> =
        kept.into_iter().map(|(id, _, start, length)| (id, key[start..start + length].to_vec())).collect();
    fs::write(at.join("bare.zkey"), container(b"zkey", 1, &kept)).unwrap();
    assert!(inspect("bare.zkey").0.contains("NO CEREMONY"));
    let (text, json) = inspect("mul.zkey");
    assert!(!text.contains("trust") && json.is_empty(), "{text}");
}

#[test]
fn a_proof_is_told_in_one_line() {
    let folder = place();
    let at = folder.path();
    let prove = |more: &[&str]| {
        run_in(at, 0, &[&["prove", "good.zkey", "good.wtns", "p.json", "u.json", "--device", "cpu"], more].concat())
    };
    let (stdout, stderr) = prove(&[]);
    assert!(stdout.is_empty() && stderr.lines().count() == 1, "{stderr}");
    assert!(stderr.starts_with("p.json: proved and verified in ") && stderr.contains(" s on CPU, "), "{stderr}");
    assert_eq!(prove(&["--quiet"]), (String::new(), String::new()));
    for option in ["-v", "--verbose"] {
        let (_, stderr) = prove(&[option]);
        assert!(stderr.contains("bn254, 5075 variables, domain 2^13") && stderr.contains("  MSM H "), "{stderr}");
        assert!(stderr.lines().skip(1).all(|line| line.chars().count() <= 80 && !line.contains('=')), "{stderr}");
    }
    let (stdout, stderr) = prove(&["--json"]);
    let json: Value = serde_json::from_str(&stdout).unwrap();
    assert!(stderr.is_empty() && json["curve"] == "bn254" && json["stages"].as_array().unwrap().len() > 9, "{stdout}");
    let (_, stderr) = run_in(at, 0, &["setup", "good.r1cs", "k", "--verbose"]);
    assert!(stderr.contains("  make key "), "{stderr}");
}

#[test]
fn missing_and_unknown_inputs_are_named() {
    let folder = place();
    let at = folder.path();
    fs::create_dir(at.join("c_js")).unwrap();
    fs::copy(at.join("good.wasm"), at.join("c_js/c.wasm")).unwrap();
    let says = |json: &str, wasm: &str, more: &[&str], parts: &[&str]| {
        fs::write(at.join("in"), json).unwrap();
        refused_in(at, &[&["witness", wasm, "in", "w"], more].concat(), &[&["in: "], parts].concat());
    };
    let unnamed = ["1 value of 2 is missing", "given: a (1 value)", "circom --sym"];
    says(r#"{"a": 1}"#, "c_js/c.wasm", &[], &unnamed);
    let symbols = "1,1,0,main.c\n2,2,0,main.a\n3,3,0,main.b\n";
    // As circom leaves it, beside the program, and as the user says.
    for name in ["c.sym", "c_js/c.sym", "elsewhere"] {
        fs::write(at.join(name), symbols).unwrap();
        let more: &[&str] = if name == "elsewhere" { &["--sym", "elsewhere"] } else { &[] };
        says(r#"{"a": 1}"#, "c_js/c.wasm", more, &["b (1 value) is missing"]);
        says("{}", "c_js/c.wasm", more, &["a (1 value), b (1 value) are missing"]);
        says(r#"{"A": 1, "b": 1}"#, "c_js/c.wasm", more, &["signal A is not an input", "whose inputs are a, b"]);
        says(r#"{"a": [1, 2], "b": 1}"#, "c_js/c.wasm", more, &["signal a: too many values, expected 1"]);
        fs::remove_file(at.join(name)).unwrap();
    }
    // What is no list of names only makes the message poorer.
    fs::write(at.join("c.sym"), "nothing").unwrap();
    says(r#"{"a": 1}"#, "c_js/c.wasm", &[], &unnamed);
}

#[test]
fn words_of_snarkjs_work() {
    let folder = place();
    let at = folder.path();
    fs::write(at.join("in.json"), r#"{"a": 3, "b": 5}"#).unwrap();
    run_in(at, 0, &["setup", "good.r1cs", "c.zkey", "-q"]);
    for (line, made) in [
        ("wtns calculate good.wasm in.json w.wtns", "w.wtns"),
        ("wc good.wasm in.json w2.wtns", "w2.wtns"),
        ("groth16 prove c.zkey w.wtns p.json u.json --device cpu", "p.json"),
        ("--device cpu g16p c.zkey w.wtns p2.json u2.json", "u2.json"),
        ("prover c.zkey w.wtns p3.json u3.json --device cpu", "p3.json"),
        ("groth16 fullprove in.json good.wasm c.zkey p4.json u4.json --device cpu", "p4.json"),
        ("zkey export verificationkey c.zkey v.json", "v.json"),
        ("zkev c.zkey v2.json", "v2.json"),
        ("zkey export solidityverifier c.zkey s.sol", "s.sol"),
        ("zkesv c.zkey s2.sol", "s2.sol"),
    ] {
        run_in(at, 0, &line.split(' ').collect::<Vec<_>>());
        assert!(fs::metadata(at.join(made)).unwrap().len() > 0, "{line}");
    }
    for (line, expected) in [
        ("groth16 verify v.json u.json p.json", "OK\n"),
        ("g16v v.json u2.json p2.json", "OK\n"),
        ("verifier v.json u3.json p3.json", "OK\n"),
        ("wtns check good.r1cs w.wtns", "OK\n"),
        ("wchk good.r1cs w.wtns", "OK\n"),
        ("r1cs info good.r1cs", "constraints"),
        ("ri good.r1cs", "constraints"),
        ("file info c.zkey", "TEST KEY"),
    ] {
        let (stdout, _) = run_in(at, 0, &line.split(' ').collect::<Vec<_>>());
        assert!(stdout.contains(expected), "{line}: {stdout}");
    }
    // snarkjs's words for PLONK, with its own set-up.
    run_in(at, 0, &["ptau", "--test", "4", "t.ptau", "-q"]);
    for (line, made) in [
        ("plonk setup good.r1cs t.ptau pk.zkey", "pk.zkey"),
        ("pks good.r1cs t.ptau pk2.zkey", "pk2.zkey"),
        ("plonk prove pk.zkey w.wtns pp.json pu.json --device cpu", "pp.json"),
        ("pkp pk.zkey w.wtns pp2.json pu2.json --device cpu", "pp2.json"),
        ("plonk fullprove in.json good.wasm pk.zkey pp3.json pu3.json --device cpu", "pp3.json"),
        ("pkf in.json good.wasm pk.zkey pp4.json pu4.json --device cpu", "pp4.json"),
        ("zkev pk.zkey pv.json", "pv.json"),
    ] {
        run_in(at, 0, &line.split(' ').collect::<Vec<_>>());
        assert!(fs::metadata(at.join(made)).unwrap().len() > 0, "{line}");
    }
    for (line, expected) in [
        ("plonk verify pv.json pu.json pp.json", "OK\n"),
        ("pkv pv.json pu4.json pp4.json", "OK\n"),
        ("file info pk.zkey", "PLONK proving key"),
        ("file info pv.json", "PLONK verification key"),
        ("file info t.ptau", "NO CONTRIBUTIONS"),
    ] {
        let (stdout, _) = run_in(at, 0, &line.split(' ').collect::<Vec<_>>());
        assert!(stdout.contains(expected), "{line}: {stdout}");
    }
    // Outputs are looked after as for ours.
    refused_in(at, &["groth16", "prove", "c.zkey", "w.wtns", "c.zkey", "u9"], &["replace the input"]);
}

#[test]
fn other_words_of_snarkjs_are_answered_with_what_to_type() {
    let folder = place();
    let refused = |args: &[&str], parts: &[&str]| refused_in(folder.path(), args, parts);
    let verify = ["npx snarkjs zkey verify my.r1cs my.ptau my.zkey", "tandem inspect my.zkey"];
    refused(&["zkey", "verify", "my.r1cs", "my.ptau", "my.zkey"], &verify);
    let values = ["npx snarkjs wtns export json my.wtns my.json", "tandem inspect my.wtns"];
    refused(&["wtns", "export", "json", "my.wtns", "my.json"], &values);
    let contribute = ["npx snarkjs zkey contribute a.zkey b.zkey --name=me -e=x"];
    refused(&["zkey", "contribute", "a.zkey", "b.zkey", "--name=me", "-e=x"], &contribute);
    refused(&["zkey", "export", "json", "a.zkey", "a.json"], &["npx snarkjs zkey export json a.zkey a.json"]);
    refused(
        &["powersoftau", "new", "bn128", "12", "a.ptau", "-v"],
        &["npx snarkjs powersoftau new bn128 12 a.ptau -v"],
    );
    refused(&["r1cs", "print", "a.r1cs"], &["npx snarkjs r1cs print a.r1cs"]);
    refused(&["groth16", "prove", "a.zkey"], &["required", "see tandem groth16 prove --help"]);
}

#[test]
fn help_has_topics() {
    let folder = place();
    let help = |args: &[&str]| run_in(folder.path(), 0, args).0;
    assert_eq!(help(&["help"]), help(&["--help"]));
    assert_eq!(help(&["help", "prove"]), help(&["prove", "--help"]));
    assert_eq!(help(&["help", "bench", "ntt"]), help(&["bench", "ntt", "--help"]));
    let environment = help(&["help", "environment"]);
    assert!(["TANDEM_DEVICE", "TANDEM_CACHE_DIR", "NO_COLOR"].iter().all(|name| environment.contains(name)));
    assert!(help(&["help", "snarkjs"]).contains("groth16 prove ZKEY WTNS PROOF PUBLIC"));
    assert!(help(&["help", "snarkjs"]).lines().chain(environment.lines()).all(|line| line.chars().count() <= 80));
    refused_in(folder.path(), &["help", "nothing"], &["nothing", "see tandem --help"]);
}

/// Runs the program with variables of the environment.
#[track_caller]
fn run_with(at: &Path, variables: &[(&str, &str)], status: i32, args: &[&str]) -> (String, String) {
    let output = tandem().current_dir(at).envs(variables.iter().copied()).args(args).output().unwrap();
    expect(status, output, args)
}

#[test]
fn variables_set_options() {
    let folder = place();
    let at = folder.path();
    let device = |variables: &[(&str, &str)], more: &[&str]| {
        let (stdout, stderr) = run_with(at, variables, 0, &[&["doctor", "--json"], more].concat());
        assert_eq!(stderr, "");
        serde_json::from_str::<Value>(&stdout).unwrap()["device"].as_str().unwrap().to_string()
    };
    let sim = device(&[], &["--device", "sim:2"]);
    assert_eq!(device(&[("TANDEM_DEVICE", "sim:2")], &[]), sim);
    assert!(device(&[("TANDEM_DEVICE", "sim:2")], &["--device", "cpu"]).starts_with("CPU"));
    for threads in ["1", "3"] {
        let cpu = device(&[("TANDEM_THREADS", threads), ("TANDEM_DEVICE", "cpu")], &[]);
        assert!(cpu.starts_with(&format!("CPU, {threads} thread")), "{cpu}");
    }
    assert_eq!(
        device(&[("TANDEM_THREADS", "3")], &["--device", "cpu", "--threads", "1"]),
        device(&[], &["--device", "cpu", "--threads", "1"])
    );
    let steps = [("TANDEM_MAX_STEPS", "0")];
    for (variables, args) in [
        (&[("TANDEM_DEVICE", "gpu")][..], &["doctor"][..]),
        (&[("TANDEM_THREADS", "0")], &["doctor"]),
        (&[("TANDEM_SCHEDULE", "all")], &["doctor"]),
        (&steps, &["witness", "good.wasm", "good.input.json", "w"]),
    ] {
        let (_, stderr) = run_with(at, variables, 2, args);
        let name = variables[0].0;
        assert!(stderr.contains(&format!("(set by {name})")) && stderr.lines().count() == 1, "{stderr}");
    }
    // An empty one is none.
    assert_eq!(device(&[("TANDEM_DEVICE", ""), ("TANDEM_THREADS", "")], &["--device", "sim:2"]), sim);
    // The option is at fault where there is one.
    let (_, stderr) = run_with(at, &[("TANDEM_DEVICE", "cpu")], 2, &["doctor", "--device", "gpu"]);
    assert!(!stderr.contains("set by"), "{stderr}");
}

#[test]
fn unknown_variables_are_warned_of() {
    let folder = place();
    let run = |name: &str| run_with(folder.path(), &[(name, "x")], 0, &["inspect", "good.zkey"]).1;
    let warned = run("TANDEM_DEVISE");
    assert!(
        warned.starts_with("warning: TANDEM_DEVISE ") && warned.contains("did you mean TANDEM_DEVICE?"),
        "{warned}"
    );
    assert!(warned.contains("tandem help environment") && warned.lines().count() == 1, "{warned}");
    for name in ["TANDEM_NVCC", "TANDEM_REQUIRE_GPU", "TANDEM_CUDA_ARCHS", "OTHER"] {
        assert_eq!(run(name), "", "{name}");
    }
}

#[test]
fn the_version_names_its_commit_and_its_cuda() {
    let folder = place();
    let (version, _) = run_in(folder.path(), 0, &["--version"]);
    let doctor: Value =
        serde_json::from_str(&run_in(folder.path(), 0, &["doctor", "--json", "--device", "cpu"]).0).unwrap();
    let inner = version.trim_end().strip_prefix("tandem 0.1.0 (").unwrap().strip_suffix(')').unwrap();
    let mut parts = inner.split(", ");
    if let Some(commit) = doctor["commit"].as_str() {
        assert_eq!(parts.next(), Some(commit));
        assert!(commit.len() >= 7 && commit.chars().all(|c| c.is_ascii_hexdigit()), "{version}");
    }
    match doctor["nvcc"].as_str() {
        None => assert_eq!(parts.next(), Some("no CUDA")),
        Some(nvcc) => assert_eq!(parts.next().map(str::to_string), Some(format!("CUDA {nvcc}"))),
    }
    assert!(parts.all(|arch| arch.starts_with("sm_")), "{version}");
}

/// Sources need no git: the build script asks for the commit and goes on without one.
#[test]
fn sources_without_git_have_no_commit() {
    let folder = tempfile::tempdir().unwrap();
    let script = root().join("crates/console/build.rs");
    let program = folder.path().join("build");
    let rustc = Command::new("rustc").args(["--edition", "2021", "-o"]).arg(&program).arg(script).output().unwrap();
    expect(0, rustc, &["rustc"]);
    let commit_in = |at: &Path, path: &str| {
        let mut command = Command::new(&program);
        let output = command.current_dir(at).env("PATH", path).env_remove("TANDEM_COMMIT").output().unwrap();
        let (stdout, _) = expect(0, output, &["build.rs"]);
        stdout.lines().find_map(|line| line.strip_prefix("cargo:rustc-env=TANDEM_COMMIT_BUILT=")).unwrap().to_string()
    };
    let path = std::env::var("PATH").unwrap();
    // Unpacked somewhere, and within a checkout of something else.
    let at = folder.path().join("src/crates/console");
    fs::create_dir_all(&at).unwrap();
    assert_eq!(commit_in(&at, &path), "unknown");
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@b"];
        expect(0, Command::new("git").current_dir(folder.path()).args(identity).args(args).output().unwrap(), args);
    };
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    assert_eq!(commit_in(&at, &path), "unknown");
    assert_eq!(commit_in(&at, "/nowhere"), "unknown");
    // And as a checkout of its own.
    fs::rename(folder.path().join(".git"), folder.path().join("src/.git")).unwrap();
    assert_eq!(commit_in(&at, &path).len(), 12);
}

#[test]
fn curves_have_one_name_and_many_aliases() {
    let folder = place();
    let at = folder.path();
    for (name, curve) in [("mul.zkey", "bn254"), ("mul_bls.zkey", "bls12-381")] {
        let json: Value = serde_json::from_str(&run_in(at, 0, &["inspect", name, "--json"]).0).unwrap();
        assert_eq!(json["curve"], curve);
    }
    fs::write(at.join("leaves"), [element(1), element(2)].concat()).unwrap();
    let hash = |curve: &str| {
        run_in(at, 0, &["hash", "poseidon", "leaves", "out", "--curve", curve, "--device", "cpu", "-q"]);
        fs::read(at.join("out")).unwrap()
    };
    for alias in ["bn128", "BN128", "bn-128", "alt_bn128", "BN254"] {
        assert_eq!(hash(alias), hash("bn254"), "{alias}");
    }
}

/// Runs the program on a terminal of 80 columns.
fn on_terminal(at: &Path, variables: &[(&str, &str)], line: &str) -> String {
    let mut command = Command::new("script");
    command.current_dir(at).args(["-qec", &format!("stty cols 80; {} {line}", binary().display()), "/dev/null"]);
    command.env_remove("NO_COLOR").env("TERM", "xterm").envs(variables.iter().copied());
    String::from_utf8(command.output().expect("script, of util-linux").stdout).unwrap()
}

#[test]
fn colour_is_for_terminals() {
    let folder = place();
    let at = folder.path();
    let escape = "\x1b[";
    let missing = "inspect none";
    assert!(on_terminal(at, &[], missing).contains("\x1b[1;31merror:\x1b[0m none: "));
    assert!(!on_terminal(at, &[("NO_COLOR", "1")], missing).contains(escape));
    assert!(!on_terminal(at, &[("TERM", "dumb")], missing).contains(escape));
    assert!(!on_terminal(at, &[("TANDEM_COLOR", "never")], missing).contains(escape));
    assert!(!on_terminal(at, &[], "inspect none --color never").contains(escape));
    assert!(on_terminal(at, &[("NO_COLOR", "1")], "--color=always inspect none").contains(escape));
    assert!(!run_in(at, 2, &["inspect", "none"]).1.contains(escape));
    assert!(run_in(at, 2, &["inspect", "none", "--color", "always"]).1.contains(escape));
    assert!(run_in(at, 0, &["prove", "--help", "--color", "always"]).0.contains(escape));
    refused_in(at, &["inspect", "none", "--color", "blue"], &["blue"]);
    run_in(at, 0, &["setup", "good.r1cs", "test.zkey", "-q"]);
    assert!(on_terminal(at, &[], "inspect test.zkey").contains("\x1b[1;33mTEST KEY\x1b[0m: "));
}

#[test]
fn the_longest_part_has_a_bar_on_a_terminal() {
    let folder = place();
    let (r1cs, _) = squarings(2000);
    fs::write(folder.path().join("c.r1cs"), r1cs).unwrap();
    let shown = on_terminal(folder.path(), &[], "setup c.r1cs c.zkey --verbose");
    // Which part that is depends on what else the machine does.
    let milliseconds = |line: &str| line.split_once(" ms")?.0.split_whitespace().last()?.parse::<f64>().ok();
    let stages = shown.lines().filter_map(|line| Some((milliseconds(line)?, line.trim_end())));
    let (_, line) = stages.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
    assert!(line.ends_with("====") && line.len() == 80, "{shown}");
}
