//! Blobs in a real store, and what befalls them on the way.

#[path = "../../tests/service/support/proxy.rs"]
#[allow(dead_code)] // the drills use the rest
mod proxy;
#[path = "../../tests/service/support/s3.rs"]
#[allow(dead_code)] // the drills use the rest
mod s3;

use super::{Bucket, Upload};
use crate::blobs::{Blobs, Places, Root, Source};
use crate::config::Config;
use crate::seal::{Opener, Seal};
use crate::worker::have;
use proxy::{Blow, Proxy, Way};
use rand::{Rng, RngCore, SeedableRng};
use s3::S3;
use std::collections::HashSet;
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of a part.
const PART: usize = 8 << 20;

const MIB: u64 = 1 << 20;

struct Setting {
    server: S3,
    proxy: Proxy,
    data: tempfile::TempDir,
}

impl Setting {
    fn new(test: &str) -> Option<Setting> {
        let server = S3::start(&format!("objects::{test}"))?;
        let proxy = Proxy::start(server.port);
        Some(Setting { server, proxy, data: tempfile::tempdir().unwrap() })
    }

    fn config(&self, port: u16, more: &str) -> Config {
        let file = format!(
            "data = '{}'\ndatabase = 'postgres://a@127.0.0.1/b'\nstall_seconds = 5\n{}{more}",
            self.data.path().display(),
            self.server.settings(port)
        );
        Config::read(Some((Path::new("tandem.toml"), &file)), |_| None, []).unwrap()
    }

    /// By the proxy.
    fn places(&self) -> Places {
        Places::open(&self.config(self.proxy.port, "")).unwrap()
    }

    /// Blobs of somebody who waits a second.
    fn hasty(&self, port: u16) -> Blobs {
        Places::open(&Config { stall_seconds: 1, ..self.config(port, "") }).unwrap().witnesses
    }

    fn bucket(&self) -> Arc<Bucket> {
        bucket(&self.places())
    }
}

fn bucket(places: &Places) -> Arc<Bucket> {
    match &places.root {
        Root::Bucket(bucket) => bucket.clone(),
        Root::Folder(folder) => panic!("{folder:?}"),
    }
}

fn random(bytes: usize) -> Vec<u8> {
    let mut content = vec![0; bytes];
    rand::rngs::StdRng::seed_from_u64(bytes as u64).fill_bytes(&mut content);
    content
}

fn write(blobs: &Blobs, name: &str, content: &[u8]) -> io::Result<()> {
    let mut part = blobs.create(name, blake3::Hasher::new(), None)?;
    let (mut cuts, mut rest) = (rand::rngs::StdRng::seed_from_u64(7), content);
    while !rest.is_empty() {
        let (now, later) = rest.split_at(cuts.gen_range(1..=rest.len().min(3 << 20)));
        part.write(now)?;
        rest = later;
    }
    part.keep(name).map(drop)
}

fn read(source: &Source) -> io::Result<Vec<u8>> {
    let (mut from, bytes) = source.open(&|| true)?;
    let mut content = Vec::new();
    from.read_to_end(&mut content)?;
    assert_eq!(content.len() as u64, bytes);
    Ok(content)
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn objects_come_back_and_appear_whole() {
    let Some(setting) = Setting::new("objects_come_back_and_appear_whole") else { return };
    let Places { witnesses, .. } = setting.places();
    for bytes in [0, 1, 2, 65_537, PART - 1, PART, PART + 1, 2 * PART + 3] {
        let (name, content) = (format!("n{bytes}"), random(bytes));
        let mut part = witnesses.create(&name, blake3::Hasher::new(), None).unwrap();
        part.write(&content).unwrap();
        assert!(witnesses.list("").unwrap().is_empty() && setting.server.names("unit/witnesses").is_empty());
        assert_eq!((part.bytes(), part.hash()), (bytes as u64, blake3::hash(&content)));
        part.keep(&name).unwrap();
        assert_eq!(witnesses.list("").unwrap(), [(name.clone(), bytes as u64)]);
        assert!(std::fs::read(setting.server.at(&format!("unit/witnesses/{name}"))).unwrap() == content, "{bytes}");
        assert!(read(&witnesses.source(&name)).unwrap() == content, "{bytes}");
        witnesses.remove(&name).unwrap();
        wait_for("it to go", || witnesses.list("").unwrap().is_empty() && !witnesses.is_busy());
        let gone = read(&witnesses.source(&name)).unwrap_err();
        let text = gone.to_string();
        assert_eq!(gone.kind(), ErrorKind::NotFound);
        for part in ["s3://tandem/unit/witnesses/", &name, "127.0.0.1", "404"] {
            assert!(text.contains(part) && !text.contains("Signature="), "{text}");
        }
    }
    // What is given up leaves nothing, neither as an object nor as parts.
    let mut part = witnesses.create("half", blake3::Hasher::new(), None).unwrap();
    part.write(&random(PART + 1)).unwrap();
    assert!(setting.server.parts() > 0);
    drop(part);
    wait_for("the parts to go", || setting.server.parts() == 0);
    assert!(witnesses.list("").unwrap().is_empty());
    // More than a page of a list.
    let bucket = setting.bucket();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let bucket = &bucket;
            scope.spawn(move || {
                (0..260).for_each(|n| bucket.put(&format!("witnesses/{thread}-{n}"), vec![1].into()).unwrap())
            });
        }
    });
    assert_eq!(witnesses.list("").unwrap().into_iter().collect::<HashSet<_>>().len(), 1040);
    assert_eq!(witnesses.list("0-25").unwrap().len(), 11);
    // A start sweeps what is old and not needed.
    let needed = HashSet::from(["0-0".to_string()]);
    assert_eq!(witnesses.sweep(&needed, Duration::from_secs(3600)).unwrap(), 0);
    assert_eq!(witnesses.sweep(&needed, Duration::ZERO).unwrap(), 1039);
    wait_for("the sweep", || !witnesses.is_busy());
    assert_eq!(setting.server.names("unit/witnesses"), ["0-0"]);
}

#[test]
fn names_do_not_lead_out_of_the_prefix() {
    let Some(setting) = Setting::new("names_do_not_lead_out_of_the_prefix") else { return };
    let Places { witnesses, .. } = setting.places();
    setting.bucket().put("outside", vec![1].into()).unwrap();
    for name in ["../outside", "/unit/outside", "a/../../outside"] {
        witnesses.remove(name).unwrap();
        assert_eq!(read(&witnesses.source(name)).unwrap_err().kind(), ErrorKind::NotFound);
    }
    wait_for("the removals", || !witnesses.is_busy());
    assert!(setting.server.at("unit/outside").exists());
}

#[test]
fn broken_connections_are_made_again() {
    let Some(setting) = Setting::new("broken_connections_are_made_again") else { return };
    let (proxy, content) = (&setting.proxy, random(2 * PART + 5));
    let Places { witnesses, .. } = setting.places();
    for (name, way, bytes, blow) in [
        ("a", Way::There, 3 * MIB, Blow::Break),
        // The store sees it by the hash.
        ("b", Way::There, 3 * MIB, Blow::Change),
        ("c", Way::Back, 100, Blow::Break),
    ] {
        proxy.strike(way, bytes, blow);
        write(&witnesses, name, &content).unwrap();
        assert!(proxy.has_struck() && read(&witnesses.source(name)).unwrap() == content, "{name}");
    }
    for (name, words) in [("d", "<CompleteMultipartUpload"), ("e", "uploads="), ("f", "partNumber=2")] {
        proxy.lose(words);
        write(&witnesses, name, &content).unwrap();
        assert!(proxy.has_lost() && read(&witnesses.source(name)).unwrap() == content, "{name}");
    }
    for bytes in [0, 1, MIB, 10 * MIB] {
        proxy.strike(Way::Back, bytes, Blow::Break);
        assert!(read(&witnesses.source("a")).unwrap() == content && proxy.has_struck(), "{bytes}");
    }
}

#[test]
fn what_is_changed_is_refused() {
    let Some(setting) = Setting::new("what_is_changed_is_refused") else { return };
    let Places { witnesses, keys, key_cache, .. } = setting.places();
    let (content, cache) = (random(PART + 5), key_cache.unwrap());
    let hash = blake3::hash(&content).to_hex().to_string();
    let name = format!("{hash}.zkey");
    write(&keys, &name, &content).unwrap();
    let (file, source) = (cache.path(&name), keys.source(&name));
    // Its writer has a copy.
    assert!(!have(&file, &source, &hash, 1 << 30, &|| true).unwrap());
    let again = || {
        let _ = std::fs::remove_file(&file);
        have(&file, &source, &hash, 1 << 30, &|| true)
    };
    assert!(again().unwrap() && std::fs::read(&file).unwrap() == content);
    // On the way, in the store, cut, and no object at all.
    setting.proxy.strike(Way::Back, MIB, Blow::Change);
    assert_eq!(again().unwrap_err().kind(), ErrorKind::InvalidData);
    let stored = setting.server.at(&format!("unit/keys/{name}"));
    let mut changed = content.clone();
    changed[PART] ^= 1;
    std::fs::write(&stored, &changed).unwrap();
    assert_eq!(again().unwrap_err().kind(), ErrorKind::InvalidData);
    std::fs::write(&stored, &content[..PART]).unwrap();
    assert!(again().is_err() && !file.exists());
    std::fs::remove_file(&stored).unwrap();
    assert_eq!(again().unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(
        std::fs::read_dir(setting.data.path().join("key-cache"))
            .unwrap()
            .flatten()
            .filter(|of| of.path().extension().unwrap() != "used")
            .count(),
        0
    );
    // A file that is not what it is said to be does not appear, and of its upload nothing stays.
    let other = setting.data.path().join("other");
    std::fs::write(&other, &changed).unwrap();
    assert_eq!(keys.take_in(&other, &name, &hash).unwrap_err().kind(), ErrorKind::InvalidData);
    wait_for("the parts to go", || setting.server.parts() == 0);
    assert!(!stored.exists());
    std::fs::write(&other, &content).unwrap();
    keys.take_in(&other, &name, &hash).unwrap();
    assert!(again().unwrap());
    // A sealed one is damaged by its own words.
    let key = Seal::new([7; 32]).of("sealed");
    let mut part = witnesses.create("sealed", blake3::Hasher::new(), Some(&key)).unwrap();
    part.write(&content).unwrap();
    part.keep("sealed").unwrap();
    let source = witnesses.source("sealed");
    let open = || {
        let mut opener = Opener::open(source.open(&|| true)?, &key, content.len() as u64)?;
        let mut found = Vec::new();
        opener.read_to_end(&mut found).map(|_| found)
    };
    assert!(open().unwrap() == content);
    setting.proxy.strike(Way::Back, MIB, Blow::Change);
    assert!(open().unwrap_err().to_string().contains("damaged"));
}

/// An object that is replaced while it is read is never read as a mixture.
#[test]
fn two_objects_are_not_mixed() {
    let Some(setting) = Setting::new("two_objects_are_not_mixed") else { return };
    let Places { witnesses, .. } = setting.places();
    write(&witnesses, "a", &random(4 << 20)).unwrap();
    let source = witnesses.source("a");
    setting.proxy.strike(Way::Back, 2 * MIB, Blow::Break);
    let (mut from, _) = source.open(&|| true).unwrap();
    from.read_exact(&mut vec![0; 1 << 20]).unwrap();
    setting.bucket().put("witnesses/a", vec![8; 4 << 20].into()).unwrap();
    let error = from.read_to_end(&mut Vec::new()).unwrap_err();
    assert!(
        error.kind() == ErrorKind::InvalidData && error.to_string().contains("changed while it was read"),
        "{error}"
    );
}

#[test]
fn a_store_that_is_away_silent_or_slow() {
    let Some(setting) = Setting::new("a_store_that_is_away_silent_or_slow") else { return };
    let (server, proxy, content) = (&setting.server, &setting.proxy, random(PART + 5));
    let (direct, witnesses) = (setting.hasty(server.port), setting.hasty(proxy.port));
    let patient = setting.places().witnesses;
    write(&patient, "a", &content).unwrap();
    let fails = |of: &Blobs| {
        let begun = Instant::now();
        for error in [write(of, "b", b"x").unwrap_err(), read(&of.source("a")).unwrap_err(), of.list("").unwrap_err()] {
            let text = error.to_string();
            assert!(text.contains("s3://tandem/unit/witnesses/") && text.contains("http://127.0.0.1"), "{text}");
            assert!(![ErrorKind::NotFound, ErrorKind::InvalidData].contains(&error.kind()), "{text}");
        }
        assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
    };
    server.end();
    fails(&direct);
    fails(&witnesses);
    // What is to be removed is removed when it is back.
    direct.remove("a").unwrap();
    server.begin();
    wait_for("the removal", || !server.at("unit/witnesses/a").exists());
    write(&patient, "a", &content).unwrap();
    server.freeze(true);
    fails(&direct);
    server.freeze(false);
    proxy.cut(true);
    fails(&witnesses);
    // Away in the middle, and back within its patience.
    proxy.cut(false);
    let (source, proxy) = (patient.source("a"), &setting.proxy);
    let (mut from, _) = source.open(&|| true).unwrap();
    from.read_exact(&mut vec![0; 1 << 20]).unwrap();
    std::thread::scope(|scope| {
        proxy.cut(true);
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(600));
            proxy.cut(false);
        });
        let mut rest = Vec::new();
        from.read_to_end(&mut rest).unwrap();
        assert!(rest == content[1 << 20..]);
    });
    proxy.slow(Duration::from_millis(2));
    write(&patient, "slow", &content).unwrap();
    assert!(read(&patient.source("slow")).unwrap() == content);
    // Nobody waits for what is not wanted any more.
    proxy.cut(true);
    let begun = Instant::now();
    let unwanted = source.open(&|| begun.elapsed() < Duration::from_millis(200)).map(|_| ()).unwrap_err();
    assert!(begun.elapsed() < Duration::from_millis(800) && unwanted.kind() != ErrorKind::Interrupted, "{unwanted}");
    proxy.cut(false);
}

#[test]
fn who_may_not_is_told_why() {
    let Some(setting) = Setting::new("who_may_not_is_told_why") else { return };
    let server = &setting.server;
    let get = |config: &Config| bucket(&Places::open(config).unwrap()).get("installation");
    let good = setting.config(server.port, "");
    assert_eq!(get(&good).unwrap(), None);
    bucket(&setting.places()).put("installation", vec![5].into()).unwrap();
    assert_eq!(get(&good).unwrap(), Some(vec![5]));
    for (key, secret, words) in [
        ("access", "wrong", "403 SignatureDoesNotMatch"),
        // This store says that with 404: it is not a missing object.
        ("wrong", "secret", "No user exists"),
    ] {
        let file = server.write_credentials("wrong", key, secret);
        let config = Config { blobs_credentials: Some(file), ..good.clone() };
        let error = get(&config).unwrap_err();
        let text = error.to_string();
        assert!(error.kind() != ErrorKind::NotFound && text.contains(words), "{text}");
        assert_eq!(
            error.kind() == ErrorKind::PermissionDenied,
            text.contains("see that the credentials hold"),
            "{text}"
        );
        assert!(secret == "secret" || !text.contains(secret), "{text}");
    }
    let other = Config { blobs: Some("s3://another/unit".into()), ..good.clone() };
    let error = bucket(&Places::open(&other).unwrap()).put("installation", vec![5].into()).unwrap_err();
    assert!(error.kind() == ErrorKind::Other && error.to_string().contains("NoSuchBucket"), "{error}");
    assert!(error.to_string().contains("s3://another/unit/installation"), "{error}");
    let none = Config { blobs_credentials: Some("/nonexistent".into()), ..good.clone() };
    assert!(Places::open(&none).err().unwrap().contains("/nonexistent: cannot read credentials"));
    // Other credentials in the same file are taken without a restart.
    let file = server.write_credentials("turned", "access", "wrong");
    let of = bucket(&Places::open(&Config { blobs_credentials: Some(file), ..good }).unwrap());
    assert!(of.get("installation").is_err());
    server.write_credentials("turned", "access", "secret");
    assert_eq!(of.get("installation").unwrap(), Some(vec![5]));
    // What is printed of an object does not read it.
    let shown =
        format!("{:?} {}", setting.places().witnesses.source("a"), setting.places().witnesses.source("a").shown());
    assert!(
        shown.contains("s3://tandem/unit/witnesses/a") && !shown.contains('?') && !shown.contains("Signature"),
        "{shown}"
    );
}

#[test]
fn a_certificate_is_of_the_authority_that_was_named() {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap();
    let issuer = rcgen::Issuer::new(params, key);
    let own = rcgen::KeyPair::generate().unwrap();
    let certificate =
        rcgen::CertificateParams::new(vec!["127.0.0.1".into()]).unwrap().signed_by(&own, &issuer).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let files = [file("own.pem", &certificate.pem()), file("own.key", &own.serialize_pem())];
    let test = "objects::a_certificate_is_of_the_authority_that_was_named";
    let Some(server) = S3::with(test, Some(files)) else { return };
    let setting = Setting { proxy: Proxy::start(server.port), server, data: tempfile::tempdir().unwrap() };
    let ca = file("ca.pem", &authority.pem());
    let good = setting.config(setting.server.port, &format!("blobs_ca = '{}'\n", ca.display()));
    let of = Places::open(&good).unwrap();
    write(&of.witnesses, "a", &random(PART + 1)).unwrap();
    assert!(read(&of.witnesses.source("a")).unwrap() == random(PART + 1));
    let own = file("other.pem", &rcgen::generate_simple_self_signed(vec!["127.0.0.1".into()]).unwrap().cert.pem());
    for wrong in [Some(own), None] {
        let of = Places::open(&Config { blobs_ca: wrong, ..good.clone() }).unwrap();
        let error = bucket(&of).get("installation").unwrap_err();
        assert!(error.to_string().contains("no TLS"), "{error}");
    }
}

#[test]
fn an_upload_holds_a_part_and_no_more() {
    let Some(setting) = Setting::new("an_upload_holds_a_part_and_no_more") else { return };
    let mut upload = Upload::new(&setting.bucket(), "keys/large".into());
    let piece = random(1 << 20);
    for _ in 0..20 {
        upload.write_all(&piece).unwrap();
        assert!(upload.held() <= PART, "{}", upload.held());
    }
    upload.finish().unwrap();
    assert_eq!(std::fs::metadata(setting.server.at("unit/keys/large")).unwrap().len(), 20 << 20);
}
