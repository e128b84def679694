//! A store of keys: within its budget, whoever asks for which.

use crate::support::{Files, Watchdog};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tandem_engine::{DeviceChoice, Engine, ErrorCode, KeyStore, Progress, Silent};

/// Counts the keys that are loaded.
#[derive(Default)]
struct Loads(AtomicUsize);

impl Progress for Loads {
    fn start(&self, task: &'static str, _: u64) {
        self.0.fetch_add(usize::from(task == "load key"), SeqCst);
    }
}

#[test]
fn keys_come_and_go_within_the_budget() {
    let files = [3, 4, 5].map(Files::new);
    let sizes = files.each_ref().map(|files| std::fs::metadata(files.at("zkey")).unwrap().len());
    let engine = || Engine::open(&DeviceChoice::Sim(2)).unwrap();
    // Room for the first two, or for the last.
    let store = KeyStore::new(engine(), sizes[2].max(sizes[0] + sizes[1]));
    for (i, files) in files.iter().enumerate() {
        store.add_file(&i.to_string(), &files.at("zkey")).unwrap();
    }
    let loads = Loads::default();
    let prove = |i: usize| {
        let key = store.get(&i.to_string(), &loads).unwrap();
        let proved = store.engine().prove(&key, &files[i].witness(), &Silent).unwrap();
        files[i].check(&proved, "proof");
        key
    };
    drop((prove(0), prove(1), prove(0)));
    assert_eq!((store.resident(), loads.0.load(SeqCst)), (vec!["1".to_string(), "0".into()], 2));
    drop(prove(2));
    assert_eq!((store.resident().last().unwrap().as_str(), loads.0.load(SeqCst)), ("2", 3));
    assert!(store.used_bytes() >= sizes[2]);
    let held = prove(0);
    let error = store.get("2", &loads).map(drop);
    if store.resident() == ["0"] || error.is_err() {
        let error = error.unwrap_err();
        let figures = [sizes[2], sizes[0]].map(|bytes| bytes.to_string());
        assert!(error.code() == ErrorCode::OutOfMemory, "{error}");
        assert!(figures.iter().all(|figure| error.to_string().contains(figure)), "{error}");
    }
    assert!(!store.evict("0"));
    drop(held);
    assert!(store.evict("0"));
    drop(prove(2));

    // With tables of multiples one is there at a time, whatever its file takes.
    let large = KeyStore::new(engine(), 1 << 30).for_proofs(1000);
    for (i, files) in files.iter().enumerate() {
        large.add_file(&i.to_string(), &files.at("zkey")).unwrap();
        let key = large.get(&i.to_string(), &Silent).unwrap();
        files.check(&large.engine().prove(&key, &files.witness(), &Silent).unwrap(), "proof");
        drop(key);
        assert_eq!((large.resident(), large.used_bytes()), (vec![i.to_string()], 1 << 30));
    }

    let small = KeyStore::new(engine(), sizes[0] - 1);
    small.add_file("0", &files[0].at("zkey")).unwrap();
    let error = small.get("0", &Silent).err().unwrap();
    let figures = [sizes[0], sizes[0] - 1].map(|bytes| bytes.to_string());
    assert!(error.code() == ErrorCode::OutOfMemory, "{error}");
    assert!(figures.iter().all(|figure| error.to_string().contains(figure)), "{error}");
}

/// Keys of PLONK and FFLONK take more than their files: the values of their polynomials on cosets, and less where these hold Lagrange
/// polynomials. From a file and from bytes.
#[test]
fn keys_of_other_systems_count_with_what_they_take() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/tests/data");
    // Of a row: eleven vectors for each coset, and a map for all; twelve vectors, three maps and room for additions besides.
    let row = 3 * 11 * 32 + 4 + 12 * 32 + 3 * 4 + 72;
    // Rows, and the powers of tau.
    for (file, bytes) in [
        ("mul.plonk.zkey", 8 * row + (8 + 6) * 64),
        ("mul_bls.plonk.zkey", 8 * row + (8 + 6) * 96),
        ("mul.fflonk.zkey", 8 * row + (9 * 8 + 18) * 64),
    ] {
        let path = data.join(file);
        let engine = || Engine::open(&DeviceChoice::Cpu).unwrap();
        for is_file in [true, false] {
            let get = |budget| {
                let store = KeyStore::new(engine(), budget);
                match is_file {
                    true => store.add_file("key", &path).unwrap(),
                    false => store.add_bytes("key", std::fs::read(&path).unwrap()).unwrap(),
                }
                store.get("key", &Silent).map(|key| (key.info().device_bytes(), store.used_bytes()))
            };
            assert_eq!(get(bytes).unwrap(), (bytes, bytes), "{file}");
            let error = get(bytes - 1).unwrap_err();
            assert!(
                error.code() == ErrorCode::OutOfMemory && error.to_string().contains(&bytes.to_string()),
                "{error}"
            );
        }
    }
}

#[test]
fn names_are_of_one_key_each() {
    let (one, other) = (Files::new(3), Files::new(4));
    let store = KeyStore::new(Engine::open(&DeviceChoice::Cpu).unwrap(), u64::MAX);
    store.add_file("a", &one.at("zkey")).unwrap();
    store.add_file("a", &one.at("zkey")).unwrap();
    let taken = store.add_file("a", &other.at("zkey")).unwrap_err();
    assert!(taken.code() == ErrorCode::BadInput && taken.to_string().contains("'a'"), "{taken}");
    assert_eq!(store.get("b", &Silent).err().unwrap().code(), ErrorCode::BadInput);
    assert_eq!(store.add_file("w", &one.at("wtns")).unwrap_err().code(), ErrorCode::BadInput);
    let bytes = std::fs::read(other.at("zkey")).unwrap();
    let name = store.add_hashed(bytes.clone()).unwrap();
    assert_eq!(store.add_hashed(bytes).unwrap(), name);
    let proved = store.engine().prove(&store.get(&name, &Silent).unwrap(), &other.witness(), &Silent).unwrap();
    other.check(&proved, "hashed");
    store.add_bytes("bad", vec![1, 2, 3]).unwrap();
    assert_eq!(store.get("bad", &Silent).err().unwrap().code(), ErrorCode::BadInput);
}

/// Whoever replaces the file of a key that is not on the device does not give its name to another one.
#[test]
fn a_file_that_changes_is_refused_when_it_is_loaded_again() {
    let (one, other) = (Files::new(3), Files::new(4));
    let store = KeyStore::new(Engine::open(&DeviceChoice::Cpu).unwrap(), u64::MAX);
    store.add_file("a", &one.at("zkey")).unwrap();
    drop(store.get("a", &Silent).unwrap());
    assert!(store.evict("a"));
    let bytes = std::fs::read(one.at("zkey")).unwrap();
    std::fs::copy(other.at("zkey"), one.at("zkey")).unwrap();
    let error = store.get("a", &Silent).err().unwrap();
    assert!(error.code() == ErrorCode::BadInput && error.to_string().contains("changed since 'a'"), "{error}");
    assert_eq!((store.resident(), store.used_bytes()), (vec![], 0));
    std::fs::write(one.at("zkey"), bytes).unwrap();
    store.get("a", &Silent).unwrap();
}

#[test]
fn sixteen_threads_share_the_keys() {
    let _bound = Watchdog::new("sixteen threads", Duration::from_secs(120));
    let files = [3, 4].map(Files::new);
    let store = KeyStore::new(Engine::open(&DeviceChoice::Cpu).unwrap(), u64::MAX);
    files.iter().enumerate().for_each(|(i, files)| store.add_file(&i.to_string(), &files.at("zkey")).unwrap());
    let loads = Loads::default();
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let (store, files, loads) = (&store, &files, &loads);
            scope.spawn(move || {
                let i = thread % 2;
                let key = store.get(&i.to_string(), loads).unwrap();
                let proved = store.engine().prove(&key, &files[i].witness(), &Silent).unwrap();
                files[i].check(&proved, &thread.to_string());
            });
        }
    });
    assert_eq!(loads.0.load(SeqCst), 2, "each is loaded once");
}
