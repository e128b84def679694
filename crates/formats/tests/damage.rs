//! Binary files with every kind of damage: each is refused with a message of one line that names the place, and no
//! bytes make a reader panic.

use proptest::prelude::*;
use tandem_formats::container::{Container, FileKind};
use tandem_formats::*;
use tandem_ops::{Bls12_381, Bn254, Curve};

macro_rules! data {
    ($name:literal) => {
        include_bytes!(concat!("data/", $name)).as_slice()
    };
}

/// Reads all that there is to read of a file.
type Parse = fn(&[u8]) -> Result<()>;

fn key<C: Curve>(bytes: &[u8]) -> Result<()> {
    Zkey::<C>::parse(bytes)?.coefs.matrices().map(drop)
}

const FILES: [(&str, FileKind, &[u8], Parse); 11] = [
    ("mul.zkey", FileKind::Zkey, data!("mul.zkey"), key::<Bn254>),
    ("mul_new.zkey", FileKind::Zkey, data!("mul_new.zkey"), key::<Bn254>),
    ("nopub.zkey", FileKind::Zkey, data!("nopub.zkey"), key::<Bn254>),
    ("mul_bls.zkey", FileKind::Zkey, data!("mul_bls.zkey"), key::<Bls12_381>),
    ("mul.wtns", FileKind::Wtns, data!("mul.wtns"), |b| Wtns::parse(b).map(drop)),
    ("mul_bls.wtns", FileKind::Wtns, data!("mul_bls.wtns"), |b| Wtns::parse(b).map(drop)),
    ("mul.r1cs", FileKind::R1cs, data!("mul.r1cs"), |b| R1cs::parse(b).map(drop)),
    ("nopub.r1cs", FileKind::R1cs, data!("nopub.r1cs"), |b| R1cs::parse(b).map(drop)),
    ("gate.r1cs", FileKind::R1cs, data!("gate.r1cs"), |b| R1cs::parse(b).map(drop)),
    ("bn128.ptau", FileKind::Ptau, data!("bn128.ptau"), |b| PtauHeader::parse(b).map(drop)),
    ("bls12381.ptau", FileKind::Ptau, data!("bls12381.ptau"), |b| PtauHeader::parse(b).map(drop)),
];

/// The message of a refusal, which has one line.
fn refusal(what: &str, result: Result<()>) -> String {
    let Err(error) = result else { panic!("{what}: was accepted") };
    let message = error.to_string();
    assert!(!message.contains('\n') && message.len() < 400, "{what}: {message}");
    message
}

fn placed(what: &str, result: Result<()>) -> String {
    let message = refusal(what, result);
    assert!(message.contains("section") || message.contains("byte"), "{what}: {message} names no place");
    message
}

fn with(bytes: &[u8], at: usize, new: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + new.len()].copy_from_slice(new);
    bytes
}

#[test]
fn the_files_themselves_are_good() {
    for (name, _, bytes, parse) in FILES {
        parse(bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

#[test]
fn cut_anywhere() {
    for (name, _, bytes, parse) in FILES {
        for len in 0..bytes.len() {
            let what = format!("{name} cut to {len} bytes");
            match len {
                // What is left does not say what it is.
                0..4 => refusal(&what, parse(&bytes[..len])),
                _ => placed(&what, parse(&bytes[..len])),
            };
        }
        placed(&format!("{name} and a byte"), parse(&[bytes, &[0]].concat()));
        placed(&format!("{name} twice"), parse(&[bytes, bytes].concat()));
    }
}

#[test]
fn section_table() {
    for (name, kind, bytes, parse) in FILES {
        let file = Container::parse(bytes, kind).unwrap();
        let n = file.sections.len() as u32;
        for version in [0, 3, u32::MAX] {
            placed(&format!("{name}, version {version}"), parse(&with(bytes, 4, &version.to_le_bytes())));
        }
        for count in [0, n - 1, n + 1, 65, u32::MAX] {
            placed(&format!("{name}, {count} sections"), parse(&with(bytes, 8, &count.to_le_bytes())));
        }
        for s in &file.sections {
            let what = format!("{name}, section {}", s.id);
            let len = s.len as u64;
            for wrong in [0, len - 1, len + 1, len + 12, bytes.len() as u64, 1 << 63, u64::MAX - 11, u64::MAX] {
                placed(&format!("{what} of {wrong} bytes"), parse(&with(bytes, s.offset - 8, &wrong.to_le_bytes())));
            }
            let renamed = |id: u32| parse(&with(bytes, s.offset - 12, &id.to_le_bytes()));
            for id in [0, 99, u32::MAX] {
                // These sections may be missing; section 4 of an r1cs is needed where there is a section 5.
                let optional =
                    matches!((kind, s.id), (FileKind::Zkey, 10) | (FileKind::R1cs, 3 | 5) | (FileKind::Ptau, 7));
                match renamed(id) {
                    Ok(()) => assert!(optional, "{what} as {id}: was accepted"),
                    wrong => drop(placed(&format!("{what} as {id}"), wrong)),
                }
            }
            for other in file.sections.iter().filter(|o| o.id != s.id) {
                let message = placed(&format!("{what} as {}", other.id), renamed(other.id));
                assert!(message.contains("section"), "{what} as {}: {message}", other.id);
            }
        }
    }
}

#[test]
fn other_kinds_of_file() {
    for (name, kind, _, parse) in FILES {
        for (other, other_kind, bytes, _) in FILES.iter().filter(|f| f.1 != kind) {
            let message = refusal(&format!("{other} for {name}"), parse(bytes));
            let expected = format!("this is {}, expected {}", other_kind.describe(), kind.describe());
            assert!(message.contains(&expected), "{message}");
        }
        for (bytes, says) in [
            (b"".as_slice(), "an empty file"),
            (b"\0asm\x01\0\0\0", "a WebAssembly module"),
            (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
            (b"{}", "a JSON file"),
            (b"\x89PNG", "a file of unknown type"),
        ] {
            let message = refusal(says, parse(bytes));
            assert!(message.contains(says), "{message}");
        }
    }
    let message = refusal("curve", key::<Bn254>(data!("mul_bls.zkey")));
    assert!(message.contains("expected a key for BN254, found one for BLS12-381"), "{message}");
}

#[test]
fn every_byte_changed() {
    for (name, _, bytes, parse) in FILES {
        let mut changed = bytes.to_vec();
        for at in 0..bytes.len() {
            for mask in [0x01, 0x80, 0xff] {
                changed[at] ^= mask;
                if let Err(error) = parse(&changed) {
                    assert!(!error.to_string().contains('\n'), "{name}, byte {at}: {error}");
                }
                changed[at] ^= mask;
            }
        }
    }
}

/// Offset of a section of a file.
fn offset(bytes: &[u8], kind: FileKind, id: u32) -> usize {
    Container::parse(bytes, kind).unwrap().sections.iter().find(|s| s.id == id).unwrap().offset
}

/// Checks that words put into a section are refused with a message that has all of `parts`.
fn words(file: &str, id: u32, at: usize, values: &[u32], parts: &[&str]) {
    let (_, kind, bytes, parse) = *FILES.iter().find(|f| f.0 == file).unwrap();
    for value in values {
        let what = format!("{file}, section {id}, {value} at {at}");
        let message = placed(&what, parse(&with(bytes, offset(bytes, kind, id) + at, &value.to_le_bytes())));
        for part in [&[format!("section {id}").as_str()], parts].concat() {
            assert!(message.contains(part), "{what}: {message:?} lacks {part:?}");
        }
    }
}

#[test]
fn zkey_headers() {
    words("mul.zkey", 1, 0, &[2], &["expected a Groth16 key", "found a PLONK key"]);
    words("mul.zkey", 1, 0, &[10], &["found an fflonk key"]);
    words("mul.zkey", 1, 0, &[0, 3, u32::MAX], &["expected a Groth16 key", "found protocol"]);
    for (file, p) in [("mul.zkey", 32), ("mul_bls.zkey", 48)] {
        words(file, 2, 0, &[0, 1, 40, 64, 72, u32::MAX], &["modulus"]);
        words(file, 2, 4, &[0, 1, 0xffff_ffff], &["expected the base field modulus of BN254 or BLS12-381, found 0x"]);
        words(file, 2, 4 + p, &[0, 1, 24, 40, u32::MAX], &["modulus"]);
        words(file, 2, 8 + p, &[0, 2], &["expected the scalar field modulus"]);
        let sizes = 8 + p + 32;
        words(file, 2, sizes, &[0, 1, 2], &["expected fewer public values", "found 2"]);
        words(file, 2, sizes + 4, &[6, u32::MAX], &["expected fewer public values"]);
        words(file, 2, sizes + 8, &[0, 1, 3, 7, 9, u32::MAX], &["expected a domain size that is a power of two"]);
        for (at, values, section) in [
            (sizes, [5, 7, u32::MAX], "section 5 (A points)"),
            (sizes + 4, [1, 3, 5], "section 3 (IC)"),
            (sizes + 8, [4, 16, 1 << 28], "section"),
        ] {
            let (_, kind, bytes, parse) = *FILES.iter().find(|f| f.0 == file).unwrap();
            for value in values {
                let message = placed(file, parse(&with(bytes, offset(bytes, kind, 2) + at, &u32::to_le_bytes(value))));
                assert!(message.contains(section), "{file}: {message}");
            }
        }
    }
    words("mul.zkey", 2, 76 + 4, &[1 << 29, 1 << 31], &["expected a domain of at most 2^28, the largest of BN254"]);
}

/// The modulus of the other curve's scalars behind that of the first curve's coordinates.
#[test]
fn moduli_of_two_curves() {
    let (bn, bls) = (data!("mul.zkey"), data!("mul_bls.zkey"));
    let r = &bls[offset(bls, FileKind::Zkey, 2) + 56..][..32];
    let message = placed("moduli", key::<Bn254>(&with(bn, offset(bn, FileKind::Zkey, 2) + 40, r)));
    assert!(message.contains("expected the scalar field modulus of BN254, found that of BLS12-381"), "{message}");
}

#[test]
fn coordinates_not_below_the_modulus() {
    for (bytes, width, parse) in
        [(data!("mul.zkey"), 32, key::<Bn254> as Parse), (data!("mul_bls.zkey"), 48, key::<Bls12_381>)]
    {
        let p = bytes[offset(bytes, FileKind::Zkey, 2) + 4..][..width].to_vec();
        let mut above = p.clone();
        above[width - 1] += 1;
        let mut below = p.clone();
        below[0] -= 1;
        for s in Container::parse(bytes, FileKind::Zkey).unwrap().sections {
            let size = match s.id {
                2 | 3 | 5 | 6 | 8 | 9 => 2 * width,
                7 => 4 * width,
                _ => continue,
            };
            let start = if s.id == 2 { 4 + width + 4 + 32 + 12 } else { 0 };
            for at in (start..s.len).step_by(width) {
                let what = format!("section {}, coordinate at {at}", s.id);
                for wrong in [&p, &above, &vec![0xff; width]] {
                    let message = placed(&what, parse(&with(bytes, s.offset + at, wrong)));
                    assert!(message.contains("expected coordinates below the base field modulus"), "{what}: {message}");
                    if s.id != 2 {
                        let point = at / size;
                        let place = format!("point {point}, byte {}:", s.offset + point * size);
                        assert!(message.contains(&place), "{what}: {message} lacks {place}");
                    }
                }
                parse(&with(bytes, s.offset + at, &below)).unwrap();
            }
        }
    }
}

#[test]
fn coefficients() {
    let bytes = data!("mul.zkey");
    let n = Zkey::<Bn254>::parse(bytes).unwrap().coefs.len() as u32;
    words("mul.zkey", 4, 0, &[0, n - 1, n + 1, u32::MAX], &["coefficients of 44 bytes"]);
    for i in 0..n as usize {
        let (at, index) = (4 + i * 44, format!("coefficient {i},"));
        words("mul.zkey", 4, at, &[2, u32::MAX], &[&index, "expected matrix 0 or 1"]);
        words("mul.zkey", 4, at + 4, &[8, u32::MAX], &[&index, "expected a constraint below the domain's 8"]);
        words("mul.zkey", 4, at + 8, &[6, u32::MAX], &[&index, "expected a signal below the 6"]);
        words("mul.zkey", 4, at + 40, &[0x3064_4e73, u32::MAX], &[&index, "below the scalar field modulus"]);
    }
}

#[test]
fn contributions() {
    words("mul.zkey", 10, 64, &[0, 1], &["expected the end of the section"]);
    words("mul.zkey", 10, 64, &[3], &["the section ends"]);
    words("mul.zkey", 10, 64, &[1 << 17, u32::MAX], &["expected at most 65536 contributions"]);
    // The first one: its type, the length of its parameters, and the first of these.
    let first = 64 + 4 + 3 * 64 + 128 + 64;
    words("mul.zkey", 10, first, &[2, u32::MAX], &["expected contribution type 0 or 1"]);
    words("mul.zkey", 10, first + 4, &[1 << 16, u32::MAX], &["bytes of parameters"]);
    words("mul.zkey", 10, first + 8, &[0, 4], &["expected a parameter tag"]);
}

#[test]
fn witness_values() {
    words("mul.wtns", 1, 0, &[0, 8, 31, 64, u32::MAX], &["modulus"]);
    words("mul.wtns", 1, 4, &[0, 2], &["expected the scalar field modulus of BN254 or BLS12-381"]);
    words("mul.wtns", 1, 36, &[0], &["expected at least the leading 1"]);
    let section_2 = |count: u32| {
        let bytes = data!("mul.wtns");
        placed(
            "count",
            Wtns::parse(&with(bytes, offset(bytes, FileKind::Wtns, 1) + 36, &count.to_le_bytes())).map(drop),
        )
    };
    for count in [1, 5, 7, u32::MAX] {
        let message = section_2(count);
        assert!(message.contains(&format!("section 2 (values), byte 76: expected {count} values")), "{message}");
    }
    words("mul.wtns", 2, 0, &[0, 2], &["value 0", "expected the first value of a witness to be 1"]);
    for i in 0..6 {
        let index = format!("value {i},");
        words(
            "mul.wtns",
            2,
            i * 32 + 28,
            &[0x3064_4e73, u32::MAX],
            &[&index, "below the scalar field modulus of BN254"],
        );
    }
}

#[test]
fn constraint_systems() {
    words("mul.r1cs", 1, 0, &[0, 8, u32::MAX], &["modulus"]);
    words("mul.r1cs", 1, 36, &[0, 1, 2], &["expected fewer public values"]);
    words("mul.r1cs", 1, 40, &[5, u32::MAX], &["expected fewer public values"]);
    words("mul.r1cs", 2, 0, &[8, 9, u32::MAX], &["constraint 0", "expected a whole constraint"]);
    words("mul.r1cs", 2, 4, &[6, u32::MAX], &["constraint 0", "expected a wire below 6"]);
    words("mul.r1cs", 2, 36, &[u32::MAX], &["constraint 0", "below the scalar field modulus"]);
    words("mul.r1cs", 3, 0, &[6, u32::MAX], &["label 0", "expected a label below 6"]);
    let bytes = data!("mul.r1cs");
    for count in [0u32, 1, 3, 26, 27, u32::MAX] {
        let changed = with(bytes, offset(bytes, FileKind::R1cs, 1) + 60, &count.to_le_bytes());
        let message = placed("constraints", R1cs::parse(&changed).map(drop));
        assert!(message.contains("section 2 (constraints)"), "{message}");
    }
    words("gate.r1cs", 4, 0, &[0], &["expected the end of the section"]);
    words("gate.r1cs", 4, 0, &[2], &["the section ends"]);
    words("gate.r1cs", 4, 0, &[1 << 17, u32::MAX], &["expected at most 65536 custom gates"]);
    words("gate.r1cs", 4, 6, &[2, u32::MAX], &["the section ends"]);
    words("gate.r1cs", 5, 0, &[2, u32::MAX], &["the section ends"]);
    words("gate.r1cs", 5, 4, &[1, u32::MAX], &["expected a custom gate below 1"]);
    words("gate.r1cs", 5, 8, &[3, u32::MAX], &["the section ends"]);
    words("gate.r1cs", 5, 12, &[5, u32::MAX], &["expected a wire below 5"]);
}

#[test]
fn powers_of_tau() {
    words("bn128.ptau", 1, 0, &[0, 40, u32::MAX], &["modulus"]);
    words("bn128.ptau", 1, 36, &[29, u32::MAX], &["expected a power of at most 28"]);
    words("bn128.ptau", 1, 40, &[29, u32::MAX], &["expected a ceremony's power of at most 28"]);
    let bytes = data!("bn128.ptau");
    for power in [0u32, 2, 28] {
        let changed = with(bytes, offset(bytes, FileKind::Ptau, 1) + 36, &power.to_le_bytes());
        let message = placed("power", PtauHeader::parse(&changed).map(drop));
        assert!(message.contains("section 2 (tau G1)"), "{message}");
    }
}

#[test]
fn files_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let open = |name: &str| RegularFile::open(at(name)).map(drop);
    let message = refusal("missing", open("missing.zkey"));
    assert!(message.contains("missing.zkey: cannot open: No such file"), "{message}");
    std::fs::create_dir(at("folder")).unwrap();
    let message = refusal("folder", open("folder"));
    assert!(message.contains("folder: expected a file, this is a folder"), "{message}");
    let message = refusal("device", RegularFile::open("/dev/null").map(drop));
    assert!(message.contains("/dev/null: expected a file, this is a device, not a regular file"), "{message}");
    std::fs::write(at("empty.zkey"), "").unwrap();
    assert!(RegularFile::open(at("empty.zkey")).unwrap().read().unwrap().is_empty());
    std::fs::write(at("good.zkey"), data!("mul.zkey")).unwrap();
    assert_eq!(&*RegularFile::open(at("good.zkey")).unwrap().read().unwrap(), data!("mul.zkey"));
    std::fs::write(at("bad.wtns"), &data!("mul.wtns")[..100]).unwrap();
    let message = refusal("witness", Wtns::open(at("bad.wtns")).map(drop));
    assert!(message.contains("bad.wtns: section 2 (values), byte 76:"), "{message}");
    refusal("witness", Wtns::open(at("missing.wtns")).map(drop));
    refusal("witness", Wtns::open(at("empty.zkey")).map(drop));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Bytes overwritten, taken out and put in at random: an answer or an error, never a panic.
    #[test]
    fn random_damage(file in 0..FILES.len(), edits in prop::collection::vec(edit(), 1..8)) {
        let (_, _, bytes, parse) = FILES[file];
        let mut bytes = bytes.to_vec();
        for (kind, at, new) in edits {
            let at = at.index(bytes.len() + 1);
            match kind {
                0 => bytes.iter_mut().skip(at).zip(&new).for_each(|(b, n)| *b = *n),
                1 => drop(bytes.splice(at..at, new)),
                _ => drop(bytes.drain(at..(at + new.len()).min(bytes.len()))),
            }
        }
        if let Err(error) = parse(&bytes) {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }
}

fn edit() -> impl Strategy<Value = (u8, prop::sample::Index, Vec<u8>)> {
    (0..3u8, any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 1..9))
}
