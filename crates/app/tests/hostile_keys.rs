//! Keys made to tell of their users' witnesses: refused with each command, remembered or not.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use support::files::{patched, sections};
use support::{demo, names, tandem, text};

/// Offsets in section 2 of a key for BN254, of points of G1 (64 bytes) and of G2 (128 bytes).
const ALPHA_1: usize = 84;
const BETA_1: usize = ALPHA_1 + 64;
const BETA_2: usize = BETA_1 + 64;
const GAMMA_2: usize = BETA_2 + 128;
const DELTA_1: usize = GAMMA_2 + 128;
const DELTA_2: usize = DELTA_1 + 64;

/// A folder with a good key and its witness, and a cache of its own.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for name in ["membership.zkey", "membership.wtns"] {
            fs::copy(demo(name), place.at(name)).unwrap();
        }
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Where the check of this content is remembered, by the check's version.
    fn marker(&self, version: u32, key: &[u8]) -> PathBuf {
        let hash = blake3::Hasher::new_derive_key(&format!("points {version}")).update(key).finalize();
        self.at("cache").join("checked-keys").join(hash.to_hex().as_str())
    }

    fn remember(&self, versions: impl IntoIterator<Item = u32>, key: &[u8]) {
        for version in versions {
            let marker = self.marker(version, key);
            fs::create_dir_all(marker.parent().unwrap()).unwrap();
            fs::write(marker, []).unwrap();
        }
    }

    fn prove(&self, key: &Path, options: &[&str]) -> (Option<i32>, String) {
        let args = ["prove", text(key), "membership.wtns", "p.json", "u.json", "--device", "cpu", "--quiet"];
        let mut command = tandem();
        command.current_dir(self.0.path()).env("TANDEM_CACHE_DIR", self.at("cache")).args(args).args(options);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    }

    /// Proves with the key, with and without a check; it is refused with one line that blames the key and says `why`.
    #[track_caller]
    fn refused(&self, key: &[u8], why: &str) {
        fs::write(self.at("bad.zkey"), key).unwrap();
        for options in [&[][..], &["--check-key"]] {
            let before = names(self.0.path());
            let (status, stderr) = self.prove(&self.at("bad.zkey"), options);
            assert!(status == Some(2) && stderr.lines().count() == 1, "{options:?}: {status:?} {stderr}");
            assert!(
                stderr.contains("bad.zkey: ") && stderr.contains(why),
                "{options:?}: expected {why:?} in: {stderr}"
            );
            assert!(!stderr.contains("witness"), "{options:?}: {stderr}");
            assert_eq!(names(self.0.path()), before, "{options:?}");
        }
    }
}

fn good() -> Vec<u8> {
    fs::read(demo("membership.zkey")).unwrap()
}

fn without_point(key: &[u8], offset: usize, bytes: usize) -> Vec<u8> {
    patched(key, 2, offset, &vec![0; bytes])
}

fn without_section(key: &[u8], id: u32) -> Vec<u8> {
    let length = sections(key).iter().find(|s| s.0 == id).unwrap().3;
    patched(key, id, 0, &vec![0; length])
}

/// The version that checks are remembered by, as one shows that was just made. Makes sure that the markers of these tests are such.
fn version(place: &Place) -> u32 {
    assert_eq!(place.prove(&place.at("membership.zkey"), &[]).0, Some(0));
    let version = (1..100).find(|&v| place.marker(v, &good()).exists());
    for name in ["p.json", "u.json"] {
        fs::remove_file(place.at(name)).unwrap();
    }
    version.expect("the check of a good key is remembered")
}

/// Without beta and delta in G1 and without B there, proofs verify, and A is the same in all of them: a sum over the witness.
#[test]
fn keys_that_switch_the_blinding_off() {
    let place = Place::new();
    let now = version(&place);
    assert!(now >= 2);
    let good = good();
    let linkable = without_section(&without_point(&without_point(&good, BETA_1, 64), DELTA_1, 64), 6);
    // A is then the witness's part alone, and B too.
    let mut readable = without_point(&linkable, DELTA_2, 128);
    for section in [7, 8, 9] {
        readable = without_section(&readable, section);
    }
    for (key, why) in [
        (linkable.clone(), "point beta in G1 is the point at infinity"),
        (readable, "is the point at infinity"),
        (patched(&linkable, 2, BETA_1, &good_point(&good, BETA_1, 64)), "point delta in G1 is the point at infinity"),
    ] {
        place.refused(&key, why);
        // Whatever is remembered of it.
        place.remember(1..=now, &key);
        place.refused(&key, why);
    }
}

fn good_point(key: &[u8], offset: usize, bytes: usize) -> Vec<u8> {
    let start = sections(key).iter().find(|s| s.0 == 2).unwrap().2 + offset;
    key[start..start + bytes].to_vec()
}

#[test]
fn single_points_that_are_infinity_or_another() {
    let place = Place::new();
    let now = version(&place);
    let good = good();
    for (offset, bytes, name) in [
        (ALPHA_1, 64, "alpha in G1"),
        (BETA_1, 64, "beta in G1"),
        (BETA_2, 128, "beta in G2"),
        (GAMMA_2, 128, "gamma in G2"),
        (DELTA_1, 64, "delta in G1"),
        (DELTA_2, 128, "delta in G2"),
    ] {
        let key = without_point(&good, offset, bytes);
        place.remember(1..=now, &key);
        place.refused(&key, "is the point at infinity");
        place.refused(&key, &format!("point {}", name.split(' ').next().unwrap()));
    }
    // One point in the place of another, both good.
    let alpha = good_point(&good, ALPHA_1, 64);
    let gamma = good_point(&good, GAMMA_2, 128);
    for (offset, other, name) in
        [(BETA_1, &alpha, "beta"), (DELTA_1, &alpha, "delta"), (BETA_2, &gamma, "beta"), (DELTA_2, &gamma, "delta")]
    {
        let key = patched(&good, 2, offset, other);
        place.remember(1..=now, &key);
        place.refused(&key, &format!("point {name} in G1 and point {name} in G2 do not belong together"));
    }
}

/// What a first use alone finds: an older, weaker check of the same file is not enough.
#[test]
fn sections_that_an_older_check_took() {
    let place = Place::new();
    let now = version(&place);
    let good = good();
    for (key, why) in [
        (without_section(&good, 5), "section A (5) is the point at infinity"),
        (without_section(&good, 6), "section B1 (6) and point"),
        (without_section(&good, 7), "section B2 (7) do not belong together"),
        (without_section(&without_section(&good, 6), 7), "section B1 (6) is the point at infinity"),
        (without_section(&good, 8), "section C (8) is the point at infinity"),
        (without_section(&good, 9), "section H (9) is the point at infinity"),
    ] {
        place.remember(1..now, &key);
        place.refused(&key, why);
    }
}

/// As what a verifier takes: it would accept what anyone can make.
#[test]
fn verification_keys_at_infinity() {
    let place = Place::new();
    let vkey: serde_json::Value = serde_json::from_slice(&fs::read(demo("membership.vkey.json")).unwrap()).unwrap();
    assert_eq!(place.prove(&place.at("membership.zkey"), &[]).0, Some(0));
    let verify = |key: &serde_json::Value| {
        fs::write(place.at("v.json"), key.to_string()).unwrap();
        let output = tandem().current_dir(place.0.path()).args(["verify", "v.json", "u.json", "p.json"]).output();
        let output = output.unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(verify(&vkey).0, Some(0));
    let in_g1 = serde_json::json!(["0", "1", "0"]);
    let in_g2 = serde_json::json!([["0", "0"], ["1", "0"], ["0", "0"]]);
    for (field, name, infinity) in [
        ("vk_alpha_1", "alpha", in_g1),
        ("vk_beta_2", "beta", in_g2.clone()),
        ("vk_gamma_2", "gamma", in_g2.clone()),
        ("vk_delta_2", "delta", in_g2),
    ] {
        let mut bad = vkey.clone();
        bad[field] = infinity;
        let (status, stderr) = verify(&bad);
        let why = format!("v.json: point {name} is the point at infinity");
        assert!(status == Some(2) && stderr.contains(&why), "{status:?} {stderr}");
    }
}

/// A key of several blocks, made for a circuit of its own.
fn large_key(place: &Place) -> PathBuf {
    let made = ["bench", "setup", "--log-n", "13", "--runs", "1", "--quiet", "--keep", text(place.0.path())];
    assert!(tandem().args(made).output().unwrap().status.success());
    place.at("n13.zkey")
}

fn prepare(place: &Place, key: &Path, options: &[&str]) -> (Option<i32>, String, String) {
    let args = ["prepare", text(key), "--device", "cpu"];
    let output = tandem().env("TANDEM_CACHE_DIR", place.at("cache")).args(args).args(options).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A key is checked once, by `tandem prepare` as by its first proof; the cache holds its check and the hashes of its blocks.
#[test]
fn a_key_is_prepared_once() {
    let place = Place::new();
    let now = version(&place);
    fs::remove_dir_all(place.at("cache")).unwrap();
    let key = large_key(&place);
    let json = |options: &[&str]| -> serde_json::Value {
        let (status, out, err) = prepare(&place, &key, options);
        assert_eq!((status, err.as_str()), (Some(0), ""), "{out}");
        serde_json::from_str(&out).unwrap()
    };
    let first = json(&["--json"]);
    let bytes = fs::metadata(&key).unwrap().len();
    assert_eq!((&first["checked"], &first["bytes"], &first["domain"]), (&true.into(), &bytes.into(), &8192.into()));
    assert_eq!(first["hash"], place.marker(now, &fs::read(&key).unwrap()).file_name().unwrap().to_str().unwrap());
    assert!(json(&["--json"])["checked"] == false && json(&["--json", "--check-key"])["checked"] == true);
    let lists = place.at("cache").join("key-blocks");
    let listed = fs::read_dir(&lists).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).collect::<Vec<_>>();
    assert_eq!(listed, [16 + 32 * bytes.div_ceil(32 << 10)]);
    let (status, out, err) = prepare(&place, &key, &[]);
    assert!(status == Some(0) && out.is_empty() && err.contains("n13.zkey: was checked before"), "{out}{err}");
    let cache = |args: &[&str]| {
        let output = tandem().env("TANDEM_CACHE_DIR", place.at("cache")).arg("cache").args(args).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let json: serde_json::Value = serde_json::from_str(&cache(&["--json"])).unwrap();
    assert_eq!((&json["block_lists"][0]["bytes"], &json["bytes"]), (&listed[0].into(), &listed[0].into()));
    cache(&["clear"]);
    assert_eq!(fs::read_dir(&lists).unwrap().count(), 0);
    // One that is no good key is refused, and nothing is remembered.
    let mut bad = good();
    let (_, _, start, len) = sections(&bad).into_iter().find(|found| found.0 == 5).unwrap();
    bad[start + len / 2] ^= 1;
    fs::write(place.at("bad.zkey"), bad).unwrap();
    let (status, out, err) = prepare(&place, &place.at("bad.zkey"), &["--json"]);
    assert!(status == Some(2) && out.is_empty() && err.contains("bad.zkey: ") && err.lines().count() == 1, "{err}");
    assert_eq!(fs::read_dir(place.at("cache").join("checked-keys")).unwrap().count(), 0);
}

/// Where nothing can be written, keys are proved with as ever, nothing half is left, and `tandem prepare` says that it was for nothing.
#[test]
fn a_full_disk_costs_time_alone() {
    let place = Place::new();
    let key = large_key(&place);
    // No file can grow: as on a full disk, but for what is written to pipes.
    let limited = |args: &str| {
        let script = format!("trap '' XFSZ; ulimit -f 0; exec \"$0\" {args}");
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script]).arg(support::binary()).env("TANDEM_CACHE_DIR", place.at("cache"));
        command.current_dir(place.0.path()).output().unwrap()
    };
    for _ in 0..2 {
        let done = limited("prepare n13.zkey --device cpu --json");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        // The check is a name, which takes no room. The list is missing, and nothing is left of it.
        assert_eq!(fs::read_dir(place.at("cache").join("key-blocks")).unwrap().count(), 0);
    }
    let (status, out, _) = prepare(&place, &key, &["--json"]);
    assert!(status == Some(0) && out.contains("\"checked\":false"), "{out}");
    assert_eq!(fs::read_dir(place.at("cache").join("key-blocks")).unwrap().count(), 1);
    // No cache folder at all.
    fs::remove_dir_all(place.at("cache")).unwrap();
    fs::write(place.at("cache"), "in the way").unwrap();
    let (status, _, err) = prepare(&place, &key, &[]);
    assert!(status == Some(2) && err.contains("the key is good, but") && err.contains("cannot remember"), "{err}");
    let (status, err) = place.prove(&place.at("membership.zkey"), &[]);
    assert_eq!((status, err.as_str()), (Some(0), ""));
}

/// Two processes use a key for the first time at once, beside others that forget all the while: each proof is made.
#[test]
fn processes_share_the_cache() {
    let place = Place::new();
    let key = large_key(&place);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..4 {
                    let (status, _, err) = prepare(&place, &key, &["--json"]);
                    assert!(status == Some(0) || err.contains("the key is good, but"), "{err}");
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..20 {
                let mut clear = tandem();
                let output =
                    clear.env("TANDEM_CACHE_DIR", place.at("cache")).args(["cache", "clear"]).output().unwrap();
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            }
        });
    });
    assert_eq!(prepare(&place, &key, &["--json"]).0, Some(0));
    assert_eq!(fs::read_dir(place.at("cache").join("key-blocks")).unwrap().count(), 1);
}

#[test]
fn the_cache_is_listed_and_cleared() {
    let place = Place::new();
    let now = version(&place);
    let cache = |args: &[&str], status: i32| {
        let output = tandem().env("TANDEM_CACHE_DIR", place.at("cache")).arg("cache").args(args).output().unwrap();
        let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert_eq!(output.status.code(), Some(status), "{out}{err}");
        out + &err
    };
    let hash = place.marker(now, &good()).file_name().unwrap().to_str().unwrap().to_string();
    let listed = cache(&[], 0);
    // The demo's key has several blocks.
    let bytes = 16 + 32 * good().len().div_ceil(32 << 10);
    assert!(
        listed.contains(&format!("cache: 1 checked key, 1 block list, {:.1} KiB", bytes as f64 / 1024.0)),
        "{listed}"
    );
    assert!(listed.contains(&format!("{hash}  used within the hour")));
    let json: serde_json::Value = serde_json::from_str(&cache(&["list", "--json"], 0)).unwrap();
    assert_eq!((&json["checked_keys"][0]["hash"], &json["bytes"]), (&hash.into(), &bytes.into()));
    assert!(json["checked_keys"][0]["used_at"].as_u64() > Some(1_700_000_000) && json["cleared"] == false);
    assert!(cache(&["clear"], 0).contains("cache: 1 checked key forgotten"));
    assert!(!place.marker(now, &good()).exists());
    let json: serde_json::Value = serde_json::from_str(&cache(&["clear", "--json"], 0)).unwrap();
    assert_eq!((&json["checked_keys"], &json["cleared"]), (&serde_json::json!([]), &true.into()));
    assert!(cache(&["empty"], 2).contains("clear"));
    // What others can write to is left alone.
    let checked = place.at("cache").join("checked-keys");
    fs::set_permissions(&checked, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    assert!(cache(&["clear"], 2).contains("chmod 700 it if it is yours"));
}
