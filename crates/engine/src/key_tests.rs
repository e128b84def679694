//! Which keys are loaded, when they are checked, and what becomes of one whose file changes.

use super::*;
use crate::cache::lists;
use crate::{setup, DeviceChoice, Engine, Schedule, SetupOptions, Silent, Synthetic};
use ark_ec::short_weierstrass::Affine;
use ark_ec::CurveGroup;
use std::fs;
use std::sync::Mutex;
use tandem_conformance::{Step, Stepped};
use tandem_formats::container::Container;
use tandem_formats::FileKind;
use tandem_ops::{Bls12_381, CurveId, Group};

/// A folder with the files of a synthetic circuit over BLS12-381, whose groups are smaller than their curves.
struct Files(tempfile::TempDir);

impl Files {
    fn new(seed: &str) -> Self {
        Self::of_size(seed, 4)
    }

    fn of_size(seed: &str, log_size: u32) -> Self {
        static CACHE: OnceLock<tempfile::TempDir> = OnceLock::new();
        std::env::set_var("TANDEM_CACHE_DIR", CACHE.get_or_init(|| tempfile::tempdir().unwrap()).path());
        let files = Self(tempfile::tempdir().unwrap());
        let circuit = Synthetic { curve: CurveId::Bls12_381, log_size, dense: 0.5 };
        circuit.write(&files.at("r1cs"), &files.at("wtns")).unwrap();
        // A key of its own for each test: what one remembers, another must not know.
        setup(&files.at("r1cs"), &files.at("zkey"), &SetupOptions { seed: Some(seed.into()) }, &Silent).unwrap();
        files
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Replaces the last point of a section of the key; gives the key's new bytes.
    fn replace_last(&self, section: u32, point: &[u8]) -> Vec<u8> {
        let mut bytes = fs::read(self.at("zkey")).unwrap();
        let all = Container::parse(&bytes, FileKind::Zkey).unwrap().sections;
        let s = all.iter().find(|s| s.id == section).unwrap();
        let end = s.offset + s.len;
        bytes[end - point.len()..end].copy_from_slice(point);
        fs::write(self.at("zkey"), &bytes).unwrap();
        bytes
    }
}

type Ark<G> = <<G as Group>::Ark as CurveGroup>::Affine;
type G1 = <Bls12_381 as Curve>::G1;
type G2 = <Bls12_381 as Curve>::G2;

/// The first point of a curve that is not in the subgroup, as a file has it.
fn outside<G: Group, P: ark_ec::short_weierstrass::SWCurveConfig>(to: fn(&Affine<P>) -> G::Point) -> Vec<u8> {
    let mut x = P::BaseField::from(1u64);
    loop {
        x += P::BaseField::from(1u64);
        if let Some(point) = Affine::<P>::get_point_from_x_unchecked(x, false) {
            let point = to(&point);
            assert!(G::is_on_curve(&point));
            if !G::is_in_subgroup(&point) {
                return bytemuck::bytes_of(&point).to_vec();
            }
        }
    }
}

/// What an engine says it does.
#[derive(Default)]
struct Noted(Mutex<Vec<String>>);

impl Progress for Noted {
    fn start(&self, what: &str, _: u64) {
        self.0.lock().unwrap().push(what.into());
    }
}

/// Whether loading checks the points; the error if it is refused.
fn load(files: &Files, check: KeyCheck) -> std::result::Result<bool, String> {
    let noted = Noted::default();
    let engine = Engine::open(&DeviceChoice::Cpu).unwrap();
    engine.load_key(&files.at("zkey"), check, &noted).map_err(|e| e.to_string())?;
    let checked = noted.0.lock().unwrap().iter().any(|what| what == "check points");
    Ok(checked)
}

#[test]
fn a_good_key_is_checked_once_and_whenever_it_is_asked_for() {
    let files = Files::new("checked once");
    let content = Content::of(&fs::read(files.at("zkey")).unwrap());
    assert!(!content.is_known());
    assert_eq!(load(&files, KeyCheck::Once), Ok(true));
    assert!(content.is_known());
    assert_eq!(load(&files, KeyCheck::Once), Ok(false));
    assert_eq!(load(&files, KeyCheck::Always), Ok(true));
}

#[test]
fn points_outside_the_subgroup_are_found_in_every_section() {
    let (g1, g2): (Vec<u8>, Vec<u8>) = (outside::<G1, _>(G1::from_ark), outside::<G2, _>(G2::from_ark));
    let _: (Ark<G1>, Ark<G2>) = Default::default();
    for (section, point) in [(3, &g1), (5, &g1), (6, &g1), (7, &g2), (8, &g1), (9, &g1)] {
        let files = Files::new("outside");
        let content = Content::of(&files.replace_last(section, point));
        for check in [KeyCheck::Once, KeyCheck::Once, KeyCheck::Always] {
            let error = load(&files, check).unwrap_err();
            let place = format!("({section}) is not in the subgroup of prime order");
            assert!(error.contains("zkey: ") && error.contains(&place), "{error}");
            assert!(!content.is_known(), "section {section} is remembered");
        }
    }
}

/// A key from a file is refused in the words in which one from bytes is: what is wrong with its format comes first.
#[test]
fn coordinates_beyond_the_modulus_are_found_in_every_section() {
    for (section, bytes) in [(3, 96), (5, 96), (6, 96), (7, 192), (8, 96), (9, 96)] {
        let files = Files::new("coordinates");
        // The last coordinate is the largest number of its size.
        let mut point = vec![0; bytes];
        point[bytes - 48..].fill(0xff);
        let zkey = files.replace_last(section, &point);
        let engine = Engine::open(&DeviceChoice::Cpu).unwrap();
        let given = engine.load_key_bytes(zkey.as_slice(), KeyCheck::Once, &Silent).err().unwrap().to_string();
        let expected = given.replace(UNNAMED, files.at("zkey").to_str().unwrap());
        assert!(
            expected.contains(&format!("section {section} (")) && expected.contains("the base field modulus"),
            "{expected}"
        );
        assert_eq!(load(&files, KeyCheck::Once), Err(expected));
        assert!(!Content::of(&zkey).is_known());
    }
}

/// A key that is remembered is loaded as it is; to ask for the check finds the bad point.
#[test]
fn what_is_remembered_does_not_stand_before_a_check_that_is_asked_for() {
    let files = Files::new("remembered");
    Content::of(&files.replace_last(7, &outside::<G2, _>(G2::from_ark))).remember();
    assert_eq!(load(&files, KeyCheck::Once), Ok(false));
    assert!(load(&files, KeyCheck::Always).unwrap_err().contains("(7) is not in the subgroup"));
}

fn is_known(files: &Files) -> bool {
    Content::of(&fs::read(files.at("zkey")).unwrap()).is_known()
}

/// Gives the list of one state of the key's file to another, as if the two could not be told apart.
fn pass_on(before: &fs::Metadata, files: &Files) {
    let lists = crate::cache::folder().unwrap().join("key-blocks");
    let [from, to] = [before, &fs::metadata(files.at("zkey")).unwrap()].map(|file| lists.join(lists::name_of(file)));
    fs::rename(from, to).unwrap();
}

/// Where the list of the file as it is now would be.
fn list(files: &Files) -> PathBuf {
    let name = lists::name_of(&fs::metadata(files.at("zkey")).unwrap());
    crate::cache::folder().unwrap().join("key-blocks").join(name)
}

/// Forgets the blocks of the file as it is now.
fn forget_list(files: &Files) {
    _ = fs::remove_file(list(files));
}

/// A key of several blocks is read as a whole once. By its list of blocks it is another key for nobody: where the file is another, whatever
/// it looks like, it is read as a whole again.
#[test]
fn a_key_that_was_read_before_is_read_once() {
    let files = Files::of_size("read once", 13);
    let good = fs::read(files.at("zkey")).unwrap();
    assert!(good.len() > 3 << 20);
    assert!(!is_known(&files) && load(&files, KeyCheck::Once) == Ok(true));
    let is_recalled = || Blocks::recalled(&RegularFile::open(files.at("zkey")).unwrap()).is_some();
    assert!(is_recalled() && load(&files, KeyCheck::Once) == Ok(false));
    // A check that is asked for is made.
    assert_eq!(load(&files, KeyCheck::Always), Ok(true));
    let all = Container::parse(&good, FileKind::Zkey).unwrap().sections;
    let middle = |id| all.iter().find(|s| s.id == id).map(|s| s.offset + s.len / 2).unwrap();
    let mut others = Vec::new();
    // Sections of the matrices and of points, and the header: bytes of alpha.
    for at in [middle(4), middle(5), middle(6), middle(7), middle(8), middle(9), middle(2)] {
        let mut other = good.clone();
        other[at] ^= 1;
        others.push(other);
    }
    // Two blocks in each other's place.
    let mut swapped = good.clone();
    let (first, second) = swapped[1 << 20..3 << 20].split_at_mut(1 << 20);
    first.swap_with_slice(second);
    others.push(swapped);
    for other in others {
        let before = fs::metadata(files.at("zkey")).unwrap();
        fs::write(files.at("zkey"), &other).unwrap();
        assert!(!is_recalled());
        pass_on(&before, &files);
        assert!(is_recalled());
        // As if the file had never been seen: it is checked. A value of a matrix may be any.
        let found = load(&files, KeyCheck::Once);
        let engine = Engine::open(&DeviceChoice::Cpu).unwrap();
        let expected = engine.load_key_bytes(other.as_slice(), KeyCheck::Once, &Silent).map(|_| true);
        assert_eq!(found, expected.map_err(|e| e.to_string().replace(UNNAMED, files.at("zkey").to_str().unwrap())));
        assert!(Content::of(&other).is_known() == found.is_ok());
        let before = fs::metadata(files.at("zkey")).unwrap();
        fs::write(files.at("zkey"), &good).unwrap();
        pass_on(&before, &files);
        assert!(is_recalled() && load(&files, KeyCheck::Once) == Ok(false));
    }
    // Another good key under this name: it is checked as a new one.
    let other = Files::of_size("another of them", 13);
    let before = fs::metadata(files.at("zkey")).unwrap();
    fs::copy(other.at("zkey"), files.at("zkey")).unwrap();
    pass_on(&before, &files);
    assert!(is_recalled() && load(&files, KeyCheck::Once) == Ok(true));
    assert!(load(&files, KeyCheck::Once) == Ok(false) && is_recalled());
}

/// A key that was checked before is read once and little more: block by block as it is loaded, or, for one proof, points as its sums take them.
#[test]
fn a_checked_key_is_read_once() {
    use crate::blocks::tests::take_count;
    let files = Files::of_size("counted", 13);
    let (path, len) = (files.at("zkey"), fs::metadata(files.at("zkey")).unwrap().len() as usize);
    assert_eq!(load(&files, KeyCheck::Once), Ok(true));
    let witness = Witness::read(&files.at("wtns")).unwrap();
    let engine = || Engine::open(&DeviceChoice::Cpu).unwrap();
    for (engine, waits) in [(engine(), false), (engine().for_one_proof(), true)] {
        take_count(&path);
        let key = engine.load_key(&path, KeyCheck::Once, &Silent).unwrap();
        let loaded = take_count(&path);
        engine.prove(&key, &witness, &Silent).unwrap();
        let proved = take_count(&path);
        println!("{len} bytes: {loaded} to load, {proved} to prove");
        // Ten sections begin and end within a block of 32 KiB.
        assert!((len..len + len / 8).contains(&(loaded + proved)), "{loaded} + {proved} of {len}");
        assert_eq!((proved > len / 2, loaded > len / 2), (waits, !waits));
    }
}

/// Points that a proof reads are those that were checked: it ends where they are not, and where the file had only been taken for one that is
/// remembered, it is read as if it were new.
#[test]
fn points_that_wait_are_those_that_were_checked() {
    let files = Files::of_size("waits", 11);
    let good = fs::read(files.at("zkey")).unwrap();
    let engine = Engine::open(&DeviceChoice::Cpu).unwrap().for_one_proof();
    let witness = Witness::read(&files.at("wtns")).unwrap();
    let open = || engine.load_key(&files.at("zkey"), KeyCheck::Once, &Silent).map_err(|e| e.to_string());
    let prove = |key: &Key| engine.prove(key, &witness, &Silent).map(drop).map_err(|e| e.to_string());
    let sections = Container::parse(&good, FileKind::Zkey).unwrap().sections;
    let middle = |id| sections.iter().find(|s| s.id == id).map(|s| s.offset + s.len / 2).unwrap();
    for (number, at) in [5, 6, 7, 8, 9].map(middle).into_iter().enumerate() {
        let mut other = good.clone();
        other[at] ^= 1;
        // Read as a whole and checked, or not, just before.
        forget_list(&files);
        let key = open().unwrap();
        fs::write(files.at("zkey"), &other).unwrap();
        let changed = prove(&key).unwrap_err();
        assert!(
            changed.ends_with("zkey: the file changed while it was read; try again when nobody writes to it"),
            "{changed}"
        );
        fs::write(files.at("zkey"), &good).unwrap();
        forget_list(&files);
        prove(&open().unwrap()).unwrap();
        // Known by its list alone.
        let before = fs::metadata(files.at("zkey")).unwrap();
        fs::write(files.at("zkey"), &other).unwrap();
        pass_on(&before, &files);
        let key = open().unwrap();
        // With a witness that was uploaded beforehand, too.
        let staged = engine.stage(&key, witness.clone(), &Silent).unwrap();
        let refused = match number % 2 {
            0 => prove(&key).unwrap_err(),
            _ => engine.prove_staged(&key, staged, &Silent).err().unwrap().to_string(),
        };
        let expected = engine.load_key_bytes(other.as_slice(), KeyCheck::Once, &Silent).err().unwrap().to_string();
        assert_eq!(refused, expected.replace(UNNAMED, files.at("zkey").to_str().unwrap()), "{number}");
        fs::write(files.at("zkey"), &good).unwrap();
        prove(&open().unwrap()).unwrap();
    }
    // Another good key under this name.
    let other = Files::of_size("another that waits", 11);
    let before = fs::metadata(files.at("zkey")).unwrap();
    fs::copy(other.at("zkey"), files.at("zkey")).unwrap();
    pass_on(&before, &files);
    prove(&open().unwrap()).unwrap();
    assert!(is_known(&files));
}

/// A list says nothing of a key that is not remembered as checked, and one that is damaged is of no such key.
#[test]
fn a_list_counts_for_a_checked_key_alone() {
    let files = Files::of_size("counts", 11);
    assert_eq!(load(&files, KeyCheck::Once), Ok(true));
    let file = || RegularFile::open(files.at("zkey")).unwrap();
    let list = list(&files);
    let good = fs::read(&list).unwrap();
    for at in [16, good.len() / 2, good.len() - 1] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(&list, &bad).unwrap();
        assert!(Blocks::recalled(&file()).is_none());
        assert_eq!(load(&files, KeyCheck::Once), Ok(false));
        assert!(fs::read(&list).unwrap() == good && Blocks::recalled(&file()).is_some());
    }
    let content = Content::of(&fs::read(files.at("zkey")).unwrap());
    fs::remove_file(crate::cache::folder().unwrap().join("checked-keys").join(content.name())).unwrap();
    assert!(Blocks::recalled(&file()).is_none());
    assert_eq!(load(&files, KeyCheck::Once), Ok(true));
}

/// A key that changes after it was read first and before it is on the device: nothing is made of what it is then, no check of it is remembered,
/// and no other device is tried. Few blocks, and many; one alone is not read again.
#[test]
fn a_key_that_changes_while_it_is_loaded() {
    for log_size in [8, 11] {
        let files = Files::of_size("changing", log_size);
        let good = fs::read(files.at("zkey")).unwrap();
        let sections = Container::parse(&good, FileKind::Zkey).unwrap().sections;
        let middle = |id| sections.iter().find(|s| s.id == id).map(|s| s.offset + s.len / 2).unwrap();
        let right = || Stepped::new(Arc::new(|_| Step::Right));
        let engines = [
            Engine::open(&DeviceChoice::Cpu).unwrap(),
            Engine::open_as(&DeviceChoice::Sim(2), Schedule::Together(Layout::Roles)).unwrap(),
            Engine::open_as(&DeviceChoice::Sim(2), Schedule::Each).unwrap(),
            Engine::on_backend(right(), true).unwrap(),
            Engine::on_backend(right(), false).unwrap(),
        ];
        for (number, engine) in engines.iter().enumerate() {
            let load = |change: &dyn Fn()| {
                let engine = || {
                    change();
                    Ok(engine)
                };
                load_key_on(&files.at("zkey"), KeyCheck::Once, &Silent, false, engine)
            };
            let mut changes: Vec<Box<dyn Fn()>> = Vec::new();
            for id in [5, 6, 7, 8, 9] {
                let (mut other, path) = (good.clone(), files.at("zkey"));
                other[middle(id)] ^= 1;
                changes.push(Box::new(move || fs::write(&path, &other).unwrap()));
            }
            for len in [0, middle(5), good.len() - 1] {
                let zkey = fs::File::options().write(true).open(files.at("zkey")).unwrap();
                changes.push(Box::new(move || zkey.set_len(len as u64).unwrap()));
            }
            for change in &changes {
                forget_list(&files);
                // The points are still to be checked with the first engine, and have been with the others.
                let error = load(&|| change()).err().unwrap();
                let text = error.to_string();
                let expected = "zkey: the file changed while it was read; try again when nobody writes to it";
                assert!(text.ends_with(expected) && text.matches("zkey: ").count() == 1, "{number}: {text}");
                assert_eq!((error.exit_status(), Content::of(&good).is_known()), (2, number > 0));
                fs::write(files.at("zkey"), &good).unwrap();
                if number == 1 {
                    // Where it was not read as a whole it is now, and is refused for what it holds.
                    load(&|| ()).unwrap();
                    let error = load(&|| change()).err().unwrap();
                    let text = error.to_string();
                    assert!(text.matches("zkey: ").count() == 1 && error.exit_status() == 2, "{number}: {text}");
                    assert!(!is_known(&files));
                    fs::write(files.at("zkey"), &good).unwrap();
                }
            }
            // Nothing is left of it.
            let key = load(&|| ()).unwrap();
            assert!(key.note().is_none() && Content::of(&good).is_known());
            let witness = Witness::read_for(&files.at("wtns"), key.info()).unwrap();
            assert_eq!(engine.prove(&key, &witness, &Silent).unwrap().fallback, None);
        }
    }
}

/// While its device is being opened a key's points are read, and what was read is loaded: the file is looked at no more.
#[test]
fn points_are_read_while_the_device_is_opened() {
    use crate::blocks::tests::{counted, take_count};
    let files = Files::of_size("ahead", 14);
    let path = files.at("zkey");
    let good = fs::read(&path).unwrap();
    let sections = Container::parse(&good, FileKind::Zkey).unwrap().sections;
    let of = |id| sections.iter().find(|s| s.id == id).unwrap();
    let points: usize = (5..=9).map(|id| of(id).len).sum();
    let witness = Witness::read(&files.at("wtns")).unwrap();
    let engine = Engine::open_as(&DeviceChoice::Sim(2), Schedule::Together(Layout::Roles)).unwrap();
    let check = engine.load_key(&path, KeyCheck::Once, &Silent).map(drop);
    check.unwrap();
    // It takes as long to open as to read all points, until nothing more is read, and then somebody writes to the file.
    let slow = |other: &[u8]| {
        let begun = Instant::now();
        let mut last = None;
        while last != Some(counted(&path)) || counted(&path) < points {
            assert!(begun.elapsed() < Duration::from_secs(60), "{} of {points} bytes were read", counted(&path));
            last = Some(counted(&path));
            std::thread::sleep(Duration::from_millis(500));
        }
        fs::write(&path, other).unwrap();
        Ok(&engine)
    };
    let mut other = good.clone();
    (5..=9).map(of).for_each(|s| other[s.offset..s.offset + s.len].fill(7));
    take_count(&path);
    let key = load_key_on(&path, KeyCheck::Once, &Silent, true, || slow(&other)).unwrap();
    let read = take_count(&path);
    // Pieces have 1 MiB: the first and the last of the points' begin and end in other sections.
    assert!((good.len()..good.len() + good.len() / 8 + (2 << 20)).contains(&read), "{read} of {}", good.len());
    engine.prove(&key, &witness, &Silent).unwrap();
    // What is read ahead of a file that is another than the one that is remembered is found out as it is else.
    for id in 5..=9 {
        fs::write(&path, &good).unwrap();
        drop(engine.load_key(&path, KeyCheck::Once, &Silent).unwrap());
        let before = fs::metadata(&path).unwrap();
        let mut other = good.clone();
        other[of(id).offset + of(id).len / 2] ^= 1;
        fs::write(&path, &other).unwrap();
        pass_on(&before, &files);
        take_count(&path);
        let refused = load_key_on(&path, KeyCheck::Once, &Silent, true, || slow(&other)).err().unwrap().to_string();
        let expected = engine.load_key_bytes(other.as_slice(), KeyCheck::Once, &Silent).err().unwrap().to_string();
        assert_eq!(refused, expected.replace(UNNAMED, path.to_str().unwrap()), "section {id}");
    }
}

/// The points of a key that is new are read once: those that were hashed are checked and loaded, whatever the file says by then.
#[test]
fn points_of_a_new_key_are_read_once() {
    use crate::blocks::tests::take_count;
    let files = Files::of_size("kept", 14);
    let path = files.at("zkey");
    let mut bytes = fs::read(&path).unwrap();
    let sections = Container::parse(&bytes, FileKind::Zkey).unwrap().sections;
    let of_points: Vec<_> =
        sections.iter().filter(|s| (5..=9).contains(&s.id)).map(|s| s.offset..s.offset + s.len).collect();
    let points: usize = of_points.iter().map(Range::len).sum();
    let (all, witness) = (bytes.len(), Witness::read(&files.at("wtns")).unwrap());
    let engine = Engine::open_as(&DeviceChoice::Sim(2), Schedule::Together(Layout::Roles)).unwrap();
    of_points.into_iter().for_each(|place| bytes[place].fill(7));
    let write = || {
        fs::write(&path, &bytes).unwrap();
        Ok(&engine)
    };
    take_count(&path);
    let key = load_key_on(&path, KeyCheck::Once, &Silent, true, write).unwrap();
    let read = take_count(&path);
    // Pieces have 1 MiB: the first and the last of the points' begin and end in other sections.
    assert!(read < all - points + (2 << 20), "{read} of {all}");
    assert_eq!(engine.prove(&key, &witness, &Silent).unwrap().fallback, None);
}

/// What is loaded needs its file no more, until the CPU is to take over: then only the same file will do.
#[test]
fn a_key_that_changes_after_it_was_loaded() {
    let (files, other) = (Files::new("first"), Files::new("second"));
    let engine = Engine::open_as(&DeviceChoice::Sim(2), Schedule::Together(Layout::Roles)).unwrap();
    let key = engine.load_key(&files.at("zkey"), KeyCheck::Once, &Silent).unwrap();
    let witness = Witness::read_for(&files.at("wtns"), key.info()).unwrap();
    let wrong: Vec<_> = (0..witness.len() as u64).map(|i| [1 + i, 0, 0, 0]).collect();
    let wrong = Witness::from_values(CurveId::Bls12_381, wrong).unwrap();
    key.digits(&witness).unwrap();
    // A key of equal length and header.
    fs::copy(other.at("zkey"), files.at("zkey")).unwrap();
    for error in [key.digits(&witness).err().unwrap(), engine.prove(&key, &wrong, &Silent).err().unwrap()] {
        let message = error.to_string();
        assert!(message.contains("zkey: the key changed since it was loaded") && error.exit_status() == 2, "{message}");
    }
    engine.prove(&key, &witness, &Silent).unwrap();
    fs::remove_file(files.at("zkey")).unwrap();
    engine.prove(&key, &witness, &Silent).unwrap();
    let error = engine.prove(&key, &wrong, &Silent).err().unwrap().to_string();
    assert!(error.contains("zkey: cannot open"), "{error}");
}

#[test]
fn witnesses_of_another_circuit_are_refused_with_both_counts() {
    let files = Files::new("counts");
    let info = crate::key_info(&files.at("zkey")).unwrap();
    let engine = Engine::open(&DeviceChoice::Cpu).unwrap();
    let key = engine.load_key(&files.at("zkey"), KeyCheck::Once, &Silent).unwrap();
    assert_eq!(&info, key.info());
    let bn254 = Synthetic { curve: CurveId::Bn254, log_size: 4, dense: 0.5 };
    bn254.write(&files.at("r"), &files.at("bn254")).unwrap();
    Synthetic { curve: CurveId::Bls12_381, log_size: 5, ..bn254 }.write(&files.at("r"), &files.at("longer")).unwrap();
    for (name, part) in
        [("bn254", "a witness for bn254; the key is for bls12-381"), ("longer", "the witness has 32 values")]
    {
        for result in [Witness::read_for(&files.at(name), &info), engine.read_witness_for(&files.at(name), &key)] {
            let error = result.err().unwrap().to_string();
            assert!(error.contains(part) && error.contains(name), "{error}");
        }
    }
}

#[test]
fn circuits_with_custom_gates_get_no_key() {
    let files = Files::new("gates");
    let gate = Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/tests/data/gate.r1cs");
    let error = setup(&gate, &files.at("new"), &SetupOptions::default(), &Silent).unwrap_err();
    assert!(error.to_string().contains("gate.r1cs: the circuit has custom gates"), "{error}");
    assert!(error.exit_status() == 2 && !files.at("new").exists());
}
