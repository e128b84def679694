//! Verifier contracts: solc compiles them, an EVM runs them, and snarkjs's contracts for the same keys answer as they do.

use super::plonk::powers;
use super::{compile, node, packages, read_json};
use crate::support::{root, run, text};
use serde_json::{json, Value};
use std::fs;
use std::path::{Path, PathBuf};

/// Order of the groups of BN254, and of their base field.
const R: &str = "30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000001";
const Q: &str = "30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd47";

/// Arguments of a call as hexadecimal words.
type Words = Vec<String>;

/// A key, with a proof of ours and one of snarkjs's.
struct Case {
    folder: PathBuf,
    /// Words of a proof, without the public signals.
    proof_words: usize,
    /// Those of them that are coordinates come first.
    points: usize,
    /// What `tandem calldata` gives for the proofs.
    good: Vec<Words>,
    ours: String,
    theirs: Option<String>,
}

fn word(number: u64) -> String {
    format!("{number:064x}")
}

/// The sum of two words modulo 2^256.
fn sum(a: &str, b: &str) -> String {
    let limbs = |word: &str| [0, 1].map(|i| u128::from_str_radix(&word[32 * i..32 * (i + 1)], 16).unwrap());
    let ([a1, a0], [b1, b0]) = (limbs(a), limbs(b));
    let (low, carry) = a0.overflowing_add(b0);
    format!("{:032x}{low:032x}", a1.wrapping_add(b1).wrapping_add(carry.into()))
}

/// The words in what `tandem calldata` prints.
fn words_of(calldata: &str) -> Words {
    calldata.split("0x").skip(1).map(|part| part[..64].to_string()).collect()
}

/// Runs tests/e2e/evm.mjs.
fn evm(folder: &Path, jobs: &[Value]) -> Vec<Value> {
    let file = folder.join("jobs.json");
    fs::write(&file, json!(jobs).to_string()).unwrap();
    let output = node(&[text(&root().join("tests/e2e/evm.mjs")), text(&file)]);
    serde_json::from_str(&output).unwrap()
}

fn calls(words: &[Words]) -> Value {
    words.iter().map(|words| json!({"data": words.concat()})).collect()
}

fn answers(result: &Value) -> Vec<Value> {
    result["calls"].as_array().unwrap().iter().map(|call| call["answer"].clone()).collect()
}

impl Case {
    fn new(protocol: &str, circuit: &str, power: u32, input: &Value) -> Self {
        // Tests run beside each other.
        let test = std::thread::current().name().unwrap_or_default().replace(':', "");
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join("e2e-solidity").join(format!("{protocol}-{circuit}-{test}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let file = |name: &str| text(&folder.join(name)).to_string();
        let (r1cs, wasm) = compile(&format!("tests/e2e/circuits/{circuit}.circom"), "bn128");
        let (r1cs, wasm, ptau) = (text(&r1cs), text(&wasm), powers("bn128", power));
        match protocol {
            "groth16" => run(0, &["setup", r1cs, &file("zkey")]),
            _ => run(0, &["setup", "--protocol", protocol, "--ptau", text(&ptau), r1cs, &file("zkey")]),
        };
        fs::write(file("input"), input.to_string()).unwrap();
        run(0, &["fullprove", &file("input"), wasm, &file("zkey"), &file("proof"), &file("public"), "--device", "cpu"]);
        run(0, &["witness", wasm, &file("input"), &file("wtns")]);
        run(0, &["export-vkey", &file("zkey"), &file("vkey")]);
        let (_, stderr) = run(0, &["export-solidity", &file("zkey"), &file("ours.sol")]);
        run(0, &["export-solidity", &file("vkey"), &file("of_vkey.sol")]);
        let ours = fs::read_to_string(file("ours.sol")).unwrap();
        // What the proving key says of its making, and nothing else, is not in the verification key.
        let is_remark = |line: &&str| line.contains("TEST KEY: made by tandem setup");
        let rest: String = ours.lines().filter(|line| !is_remark(line)).map(|line| format!("{line}\n")).collect();
        assert_eq!(rest, fs::read_to_string(file("of_vkey.sol")).unwrap());
        let remarks = usize::from(protocol == "groth16");
        assert_eq!(ours.lines().take(4).filter(is_remark).count(), remarks, "{ours}");
        assert_eq!(stderr.lines().filter(is_remark).count(), remarks, "{stderr}");
        assert_eq!(run(0, &["export-solidity", &file("vkey")]).0, rest);
        assert_eq!(run(0, &["zkey", "export", "solidityverifier", &file("vkey"), "-"]).0, rest);

        let calldata = |proof: &str, public: &str| words_of(&run(0, &["calldata", &file(public), &file(proof)]).0);
        let mut good = vec![calldata("proof", "public")];
        let has_publics = read_json(&folder.join("public")) != json!([]);
        if protocol != "plonk" || has_publics {
            let prove = match protocol {
                "groth16" => "prove".into(),
                _ => format!("{protocol}Prove"),
            };
            let job = json!([[prove, file("zkey"), file("wtns"), file("theirs.proof"), file("theirs.public")]]);
            node(&[text(&root().join("tests/e2e/reference.mjs")), &job.to_string()]);
            good.push(calldata("theirs.proof", "theirs.public"));
        }
        // Solidity has no arrays of length 0: without public signals snarkjs's contract does not compile, and that for FFLONK takes one.
        let theirs = has_publics.then(|| {
            let snarkjs = packages().join("snarkjs/build/cli.cjs");
            node(&[text(&snarkjs), "zkey", "export", "solidityverifier", &file("zkey"), &file("theirs.sol")]);
            fs::read_to_string(file("theirs.sol")).unwrap()
        });
        if !has_publics {
            // An empty array: where it begins, and its length.
            good.iter_mut().for_each(|words| words.extend([word(32 * (words.len() as u64 + 1)), word(0)]));
        }
        let (proof_words, points) = match protocol {
            "groth16" => (8, 8),
            "plonk" => (24, 18),
            _ => (24, 8),
        };
        Self { folder, proof_words, points, good, ours, theirs }
    }

    fn publics(&self) -> std::ops::Range<usize> {
        self.proof_words..if self.theirs.is_some() { self.good[0].len() } else { self.proof_words }
    }

    /// Calls that must be answered with false: `all` of them, or those that tell most.
    fn bad(&self, all: bool) -> Vec<Words> {
        let mut bad = Vec::new();
        let changed = |of: &Words, at: usize, to: String| {
            let mut words = of.clone();
            words[at] = to;
            words
        };
        for good in if all { &self.good[..] } else { &self.good[..1] } {
            for at in 0..self.publics().end {
                if !all && at != 1 && at + 1 < self.publics().end {
                    continue;
                }
                let is_scalar = at >= self.points;
                let mut flipped = good[at].clone();
                let last = if flipped.ends_with('0') { "1" } else { "0" };
                flipped.replace_range(63.., last);
                bad.push(changed(good, at, flipped));
                bad.push(changed(good, at, sum(&good[at], if is_scalar { R } else { Q })));
                bad.push(changed(good, at, "f".repeat(64)));
                bad.push(changed(good, at, word(0)));
            }
            // Points of the curve, but wrong ones; infinity; and its form in JSON, which is off the curve.
            for point in [[word(1), word(2)], [word(0), word(0)], [word(0), word(1)]] {
                let mut words = good.clone();
                words.splice(0..2, point);
                bad.push(words);
            }
            let mut words = good.clone();
            let other = good[self.points - 2..self.points].to_vec();
            words.splice(0..2, other);
            bad.push(words);
        }
        // A public signal that is zero stays what it is.
        bad.retain(|words| !self.good.contains(words));
        bad
    }

    fn check(&self, all: bool) {
        let bad = self.bad(all);
        assert!(bad.len() >= if all { 30 } else { 7 });
        let mut short = self.good[0].clone();
        short.pop();
        let every = calls(&[&self.good[..], &bad, &[short, vec![]]].concat());
        let mut expected = vec![json!(true); self.good.len()];
        expected.extend(vec![json!(false); bad.len()]);
        expected.extend(["reverted", "reverted"].map(|word| json!(word)));

        let sources = [Some(&self.ours), self.theirs.as_ref()].into_iter().flatten();
        let jobs: Vec<_> = sources.map(|source| json!({"text": source, "optimise": true, "calls": every})).collect();
        let results = evm(&self.folder, &jobs);
        let name = self.folder.file_name().unwrap().display();
        let size = |result: &Value| format!("{} bytes, gas {}", result["bytes"], result["calls"][0]["gas"]);
        println!("{name}: {} ours, {} snarkjs's", size(&results[0]), results.get(1).map_or("none".into(), size));
        assert_eq!(results[0]["messages"], json!([]), "{name}");
        assert_eq!(answers(&results[0]), expected, "{name}");
        assert!(results[0]["bytes"].as_u64().unwrap() < 24_576);
        if let Some(theirs) = results.get(1) {
            // snarkjs's PLONK and FFLONK contracts have code for each public signal, and that of a hundred is too long for a chain.
            if self.proof_words == 24 && self.publics().len() == 100 {
                assert_eq!(theirs["messages"], json!(["code size to deposit exceeds maximum code size"]));
            } else {
                assert_eq!(results[0]["signature"], theirs["signature"], "{name}");
                assert_eq!(answers(theirs), expected, "{name}: snarkjs's contract");
                let gas = |result: &Value| result["calls"][0]["gas"].as_u64().unwrap();
                let [ours, theirs] = [gas(&results[0]), gas(theirs)];
                assert!(ours <= theirs * 102 / 100, "{name}: gas {ours}, {theirs} for snarkjs's");
            }
        }
        // Not optimised, and by the oldest compiler that may be used.
        let good = calls(&self.good);
        let others = [(false, false), (true, true), (false, true)];
        let jobs = others.map(
            |(optimise, oldest)| json!({"text": self.ours, "optimise": optimise, "oldest": oldest, "calls": good}),
        );
        for result in evm(&self.folder, &jobs) {
            assert_eq!(result["messages"], json!([]), "{name}");
            assert_eq!(answers(&result), vec![json!(true); self.good.len()], "{name}");
        }
    }
}

fn factors() -> Value {
    json!({"a": "123456789012345678901234567890", "b": "0xfedcba9876543210fedcba9876543210"})
}

#[test]
fn groth16_of_one_public_signal() {
    Case::new("groth16", "multiplier", 4, &factors()).check(true);
}

#[test]
fn groth16_of_no_public_signal() {
    Case::new("groth16", "private", 4, &json!({"x": 3})).check(true);
}

#[test]
fn groth16_of_a_hundred_public_signals() {
    Case::new("groth16", "publics", 9, &json!({"x": 3})).check(false);
}

#[test]
fn plonk_of_one_public_signal() {
    Case::new("plonk", "multiplier", 4, &factors()).check(true);
}

#[test]
fn plonk_of_no_public_signal() {
    Case::new("plonk", "private", 4, &json!({"x": 3})).check(true);
}

#[test]
fn plonk_of_a_hundred_public_signals() {
    Case::new("plonk", "publics", 9, &json!({"x": 3})).check(false);
}

#[test]
fn fflonk_of_one_public_signal() {
    Case::new("fflonk", "multiplier", 6, &factors()).check(true);
}

#[test]
fn fflonk_of_no_public_signal() {
    Case::new("fflonk", "private", 6, &json!({"x": 3})).check(true);
}

#[test]
fn fflonk_of_a_hundred_public_signals() {
    Case::new("fflonk", "publics", 12, &json!({"x": 3})).check(false);
}

/// A contract without one of its checks accepts what the whole one refuses.
struct Removal<'a> {
    /// Texts to be replaced, each there once.
    edits: &'a [(&'a str, &'a str)],
    call: Words,
    /// What else the job says.
    chain: Value,
    gas: Option<u64>,
}

fn removed(folder: &Path, source: &str, removals: &[Removal<'_>]) {
    let mut jobs = Vec::new();
    for Removal { edits, call, chain, gas } in removals {
        let mut edited = source.to_string();
        for (from, to) in *edits {
            assert_eq!(edited.matches(from).count(), 1, "{from}");
            edited = edited.replace(from, to);
        }
        for source in [source, &edited] {
            let mut job = chain.clone();
            job["text"] = json!(source);
            job["optimise"] = json!(true);
            job["calls"] = json!([{"data": call.concat(), "gas": gas}]);
            jobs.push(job);
        }
    }
    for (results, Removal { edits, .. }) in evm(folder, &jobs).chunks(2).zip(removals) {
        let verdicts = [answers(&results[0]), answers(&results[1])];
        assert_eq!(verdicts, [[json!(false)], [json!(true)]], "{edits:?}: {results:?}");
    }
}

const OF_LENGTH: (&str, &str) = ("if (pub.length != N) return false;", "");
const OF_PUBLICS: (&str, &str) = ("if (pub[i] >= R) return false;", "");
const OF_ADDING: [(&str, &str); 2] = [
    (
        "if staticcall(gas(), 7, term, 0x60, term, 0x40) {",
        "done := 1 if staticcall(gas(), 7, term, 0x60, term, 0x40) {",
    ),
    ("done := staticcall(gas(), 6, s, 0x80, s, 0x40)", "pop(staticcall(gas(), 6, s, 0x80, s, 0x40))"),
];
const OF_PAIRING: (&str, &str) = ("return done && pairs[0] == 1;", "return done;");
const OF_ANSWER: (&str, &str) = ("done := and(done, eq(returndatasize(), 0x20))", "");

/// Without the check whether the pairing was done; `length` is that of its input.
fn of_pairing_done(length: &str) -> [(String, String); 1] {
    let call = format!("staticcall(gas(), 8, pairs, {length}, pairs, 0x20)");
    [(format!("done := {call}"), format!("pop({call}) done := 1"))]
}

#[test]
fn each_check_of_a_groth16_contract_is_needed() {
    // The product is zero.
    let case = Case::new("groth16", "multiplier", 4, &json!({"a": 0, "b": 11}));
    let good = &case.good[0];
    assert_eq!(good[8], word(0));
    let with = |at: usize, words: &[String]| {
        let mut changed = good.clone();
        changed.splice(at..at + words.len(), words.iter().cloned());
        changed
    };
    // The first word of the pairing's input is the proof's, and 1.
    let one = with(0, &[word(1), word(2)]);
    let mut one_off_curve = one.clone();
    one_off_curve[2] = word(5);
    let done = of_pairing_done("0x300");
    let done = [(done[0].0.as_str(), done[0].1.as_str())];
    let both = [done[0], OF_ANSWER];
    // A base of a public signal that is no point: it counts as nothing, and so does a signal that is zero.
    let base = case.ours.split("ic = [").nth(1).unwrap().lines().nth(2).unwrap().trim();
    let damaged = case.ours.replace(base, "0, 1");
    let chain = json!({});
    removed(
        &case.folder,
        &case.ours,
        &[
            Removal { edits: &[OF_PUBLICS], call: with(8, &[R.into()]), chain: chain.clone(), gas: None },
            Removal { edits: &[OF_PAIRING], call: with(8, &[word(1)]), chain: chain.clone(), gas: None },
            Removal { edits: &both, call: one_off_curve, chain, gas: None },
            Removal { edits: &[OF_ANSWER], call: one.clone(), chain: json!({"without": 8}), gas: None },
            Removal { edits: &done, call: one, chain: json!({"reverts": 8}), gas: None },
        ],
    );
    removed(&case.folder, &damaged, &[Removal { edits: &OF_ADDING, call: good.clone(), chain: json!({}), gas: None }]);

    let case = Case::new("groth16", "private", 4, &json!({"x": 3}));
    let mut call = case.good[0].clone();
    call.splice(9.., [word(1), word(0)]);
    removed(&case.folder, &case.ours, &[Removal { edits: &[OF_LENGTH], call, chain: json!({}), gas: None }]);
}

/// The contract of a key whose tau is known, and words of the proofs that tests/e2e/forge.mjs makes of the cases.
fn forged(case: &Case, cases: Value) -> (String, Vec<Words>) {
    let [vkey, to] = ["vkey", "forged.vkey"].map(|name| text(&case.folder.join(name)).to_string());
    let words = node(&[text(&root().join("tests/e2e/forge.mjs")), &vkey, &to, &cases.to_string()]);
    (run(0, &["export-solidity", &to]).0, serde_json::from_str(&words).unwrap())
}

/// Gas of a forged proof, which is one but for the checks.
fn gas_of(folder: &Path, source: &str, good: &Words) -> u64 {
    let job = json!({"text": source, "optimise": true, "calls": calls(std::slice::from_ref(good))});
    let results = evm(folder, &[job]);
    assert_eq!(answers(&results[0]), [true], "{results:?}");
    results[0]["calls"][0]["gas"].as_u64().unwrap()
}

fn removal<'a>(edits: &'a [(&'a str, &'a str)], call: &Words, chain: Value) -> Removal<'a> {
    Removal { edits, call: call.clone(), chain, gas: None }
}

/// R + 7
const ABOVE: &str = "21888242871839275222246405745257275088548364400416034343698204186575808495624";

/// What contracts of PLONK and FFLONK differ in, as far as their checks go.
struct Forgeable {
    protocol: &'static str,
    /// Of the powers of tau.
    power: u32,
    /// The number of the last evaluation.
    last: u32,
    of_evaluations: &'static str,
    of_inverse: &'static str,
    /// What stands for the inverse where it is wrong, and the chain on which it does.
    inverses: &'static [u32],
    of_chain: Value,
    /// Where the first point of the pairing is in a call, and what makes the word 1 of it.
    opening: std::ops::Range<usize>,
    one: &'static [u64],
}

fn each_check_is_needed(of: &Forgeable) {
    let case = Case::new(of.protocol, "multiplier", of.power, &factors());
    let mut cases = vec![
        json!({"hashed": [7]}),
        json!({"hashed": [ABOVE]}),
        json!({"hashed": [7], "lift": [0]}),
        json!({"hashed": [7], "lift": [of.last]}),
        json!({"hashed": [7], "offCurve": true}),
    ];
    cases.extend(of.inverses.iter().map(|inverse| json!({"hashed": [7], "inverse": inverse})));
    let (source, words) = forged(&case, json!(cases));
    let [good, public, first, last, off_curve, inverses @ ..] = &words[..] else { panic!() };
    let gas = gas_of(&case.folder, &source, good);
    let at = of.opening.clone();
    let mut wrong = good.clone();
    wrong.splice(at.start..at.start + 2, good[..2].iter().cloned());
    // The first word of the pairing's input is 1, as its answer would be.
    let mut one = good.clone();
    one.splice(at, of.one.iter().map(|&number| word(number)));
    let (of_evaluations, of_inverse) = ([(of.of_evaluations, "")], [(of.of_inverse, "")]);
    let done = of_pairing_done("0x180");
    let done = [(done[0].0.as_str(), done[0].1.as_str())];
    let both = [done[0], OF_ANSWER];
    // The pairing has too little gas, and what is left is enough to return.
    let mut short_of_gas = removal(&both, &one, json!({}));
    short_of_gas.gas = Some(gas - 8_000);
    let mut removals = vec![
        removal(&[OF_PUBLICS], public, json!({})),
        removal(&of_evaluations, first, json!({})),
        removal(&of_evaluations, last, json!({})),
        removal(&OF_ADDING, off_curve, json!({})),
        removal(&[OF_PAIRING], &wrong, json!({})),
        removal(&[OF_ANSWER], &one, json!({"without": 8})),
        removal(&done, &one, json!({"reverts": 8})),
        short_of_gas,
    ];
    removals.extend(inverses.iter().map(|inverse| removal(&of_inverse, inverse, of.of_chain.clone())));
    removed(&case.folder, &source, &removals);

    let case = Case::new(of.protocol, "private", of.power, &json!({"x": 3}));
    let (source, mut words) = forged(&case, json!([{"hashed": [5]}]));
    let mut call = words.remove(0);
    call.splice(24.., [word(25 * 32), word(1), word(5)]);
    removed(&case.folder, &source, &[removal(&[OF_LENGTH], &call, json!({}))]);
}

#[test]
fn each_check_of_a_plonk_contract_is_needed() {
    each_check_is_needed(&Forgeable {
        protocol: "plonk",
        power: 4,
        last: 5,
        of_evaluations: "if (proof[i] >= R) return false;",
        of_inverse: "if (Fr.unwrap(inverse * product) != 1) return false;",
        // Without the precompiled contract the first word of its input stays.
        inverses: &[32],
        of_chain: json!({"without": 5}),
        // Wxi is the generator, and Wxiw infinity.
        opening: 14..18,
        one: &[1, 2, 0, 0],
    });
}

#[test]
fn each_check_of_an_fflonk_contract_is_needed() {
    each_check_is_needed(&Forgeable {
        protocol: "fflonk",
        power: 6,
        last: 15,
        of_evaluations: "if (uint256(proof[i]) >= R) return false;",
        of_inverse: "if (Fr.unwrap(t.overZh * zh) != 1) return false;",
        inverses: &[32, 0],
        of_chain: json!({}),
        // W2 is the generator.
        opening: 6..8,
        one: &[1, 2],
    });
}

/// A Groth16 contract holds a point for each public signal, and the code of a contract has a limit: up to here it keeps to it.
#[test]
fn the_limit_of_public_signals_is_told() {
    let case = Case::new("groth16", "publics", 9, &json!({"x": 3}));
    let vkey = read_json(&case.folder.join("vkey"));
    let bases = vkey["IC"].as_array().unwrap();
    for (publics, is_too_many) in [(250, false), (251, true)] {
        let mut large = vkey.clone();
        large["nPublic"] = json!(publics);
        large["IC"] = bases.iter().cycle().take(publics + 1).cloned().collect();
        let file = case.folder.join("large.vkey");
        fs::write(&file, large.to_string()).unwrap();
        let (source, stderr) = run(0, &["export-solidity", text(&file)]);
        assert_eq!([&source, &stderr].map(|text| text.contains("TOO LARGE: ")), [is_too_many; 2], "{stderr}");
        // Not optimised, so that the compiler does not make points that are there twice one.
        let results = evm(&case.folder, &[json!({"text": source, "optimise": false, "calls": []})]);
        let bytes = results[0]["bytes"].as_u64().unwrap();
        assert!((18_000..24_576).contains(&bytes), "{bytes}");
    }
}
