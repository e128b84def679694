//! Witnesses that the engine reads for its devices: the same as those that are read for none.

use std::fs;
use std::path::Path;
use tandem_engine::{export_vkey, Synthetic, Witness};
use tandem_engine::{setup, verify, CurveId, DeviceChoice, Engine, KeyCheck, Layout, Schedule, SetupOptions, Silent};

fn engines() -> Vec<Engine> {
    let choices = [(DeviceChoice::Cpu, Schedule::default()), (DeviceChoice::Sim(3), Schedule::Each)];
    let mut engines: Vec<Engine> = choices.iter().map(|(choice, as_)| Engine::open_as(choice, *as_).unwrap()).collect();
    engines.push(Engine::open_as(&DeviceChoice::Sim(2), Schedule::Together(Layout::Roles)).unwrap());
    if !tandem_cuda::testing::gpus().is_empty() {
        engines.push(Engine::open(&DeviceChoice::Cuda(Vec::new())).unwrap());
    }
    engines
}

#[test]
fn witnesses_are_used_again_and_again() {
    for curve in [CurveId::Bn254, CurveId::Bls12_381] {
        let folder = tempfile::tempdir().unwrap();
        std::env::set_var(
            "TANDEM_CACHE_DIR",
            std::env::temp_dir().join(format!("tandem-tests-{}", std::process::id())),
        );
        let at = |name: &str| folder.path().join(name);
        Synthetic { curve, log_size: 9, dense: 0.5 }.write(&at("r1cs"), &at("wtns")).unwrap();
        let options = SetupOptions { seed: Some("a test".into()) };
        setup(&at("r1cs"), &at("zkey"), &options, &Silent).unwrap();
        fs::write(at("vkey"), export_vkey(&at("zkey")).unwrap()).unwrap();
        for engine in engines() {
            let key = engine.load_key(&at("zkey"), KeyCheck::Once, &Silent).unwrap();
            // One after the other in the same memory, then two at a time; each for two proofs.
            let mut kept: Vec<Witness> = Vec::new();
            for round in 0..4 {
                let witness = engine.read_witness(&at("wtns")).unwrap();
                assert_eq!((witness.curve(), witness.len()), (curve, Witness::read(&at("wtns")).unwrap().len()));
                for _ in 0..2 {
                    let proved = engine.prove(&key, &witness, &Silent).unwrap();
                    assert_eq!(proved.fallback, None);
                    fs::write(at("proof"), proved.proof.to_json()).unwrap();
                    fs::write(at("public"), proved.publics.to_json()).unwrap();
                    verify(&at("vkey"), &at("public"), &at("proof")).unwrap();
                }
                if round == 1 {
                    kept.push(witness);
                }
            }
        }
    }
}

#[test]
fn files_are_refused_in_the_same_words() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let circuit = Synthetic { curve: CurveId::Bn254, log_size: 4, dense: 1.0 };
    circuit.write(&at("r1cs"), &at("good")).unwrap();
    let good = fs::read(at("good")).unwrap();
    let mut large = good.clone();
    let end = large.len();
    large[end - 32..].fill(0xff);
    let none: &[u8] = &[];
    for (name, bytes) in [("empty", none), ("short", &good[..good.len() - 1]), ("large", &large), ("start", &good[..9])]
    {
        fs::write(at(name), bytes).unwrap();
    }
    let words = |result: tandem_engine::Result<Witness>| result.err().unwrap().to_string();
    for engine in engines() {
        for name in ["empty", "short", "large", "start", "missing"] {
            let path: &Path = &at(name);
            assert_eq!(words(engine.read_witness(path)), words(Witness::read(path)), "{name}");
        }
        assert_eq!(engine.read_witness(&at("good")).unwrap().len(), Witness::read(&at("good")).unwrap().len());
    }
}
