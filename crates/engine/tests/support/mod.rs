//! What tests of proofs from files share.
#![allow(dead_code)] // each test program uses its own part

use std::path::PathBuf;
use std::time::Duration;
use tandem_engine::{
    export_vkey, setup, verify, CurveId, Engine, Key, KeyCheck, Proved, SetupOptions, Silent, Synthetic, Witness,
};

/// Sets a cache folder of this process alone, which its tests share.
pub(crate) fn cache() {
    static SET: std::sync::Once = std::sync::Once::new();
    let folder = || std::env::temp_dir().join(format!("tandem-tests-{}", std::process::id()));
    SET.call_once(|| std::env::set_var("TANDEM_CACHE_DIR", folder()));
}

/// A folder with a small circuit's key and witness.
pub(crate) struct Files(tempfile::TempDir);

impl Files {
    pub(crate) fn new(log_size: u32) -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        cache();
        let circuit = Synthetic { curve: CurveId::Bn254, log_size, dense: 0.5 };
        circuit.write(&files.at("r1cs"), &files.at("wtns")).unwrap();
        let options = SetupOptions { seed: Some("a test".into()) };
        setup(&files.at("r1cs"), &files.at("zkey"), &options, &Silent).unwrap();
        std::fs::write(files.at("vkey"), export_vkey(&files.at("zkey")).unwrap()).unwrap();
        files
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn load(&self, engine: &Engine) -> tandem_engine::Result<Key> {
        engine.load_key(&self.at("zkey"), KeyCheck::Once, &Silent)
    }

    pub(crate) fn witness(&self) -> Witness {
        Witness::read(&self.at("wtns")).unwrap()
    }

    /// Fails unless the proof is right, as whoever gets it would find. `name` is of this proof alone.
    #[track_caller]
    pub(crate) fn check(&self, proved: &Proved, name: &str) {
        let (proof, public) = (self.at(&format!("{name}.proof")), self.at(&format!("{name}.public")));
        std::fs::write(&proof, proved.proof.to_json()).unwrap();
        std::fs::write(&public, proved.publics.to_json()).unwrap();
        verify(&self.at("vkey"), &public, &proof).unwrap();
    }
}

/// Ends the program, and so fails the test, unless this is dropped within `bound`.
pub(crate) struct Watchdog(std::sync::mpsc::Sender<()>);

impl Watchdog {
    pub(crate) fn new(what: &'static str, bound: Duration) -> Self {
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            if receiver.recv_timeout(bound) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                eprintln!("{what}: not done after {bound:?}");
                std::process::abort();
            }
        });
        Watchdog(sender)
    }
}
