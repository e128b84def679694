//! Binary files with every kind of damage: each is refused with a message of one line that names the place, and no
//! bytes make a reader panic.

use proptest::prelude::*;
use tandem_formats::container::Container;
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

const PLONK: FileKind = FileKind::ZkeyOf(OtherSystem::Plonk);

fn plonk_key<C: Curve>(bytes: &[u8]) -> Result<()> {
    PlonkZkey::<C>::parse(bytes).map(drop)
}

const FILES: [(&str, FileKind, &[u8], Parse); 14] = [
    ("mul.zkey", FileKind::Zkey, data!("mul.zkey"), key::<Bn254>),
    ("mul_new.zkey", FileKind::Zkey, data!("mul_new.zkey"), key::<Bn254>),
    ("nopub.zkey", FileKind::Zkey, data!("nopub.zkey"), key::<Bn254>),
    ("mul_bls.zkey", FileKind::Zkey, data!("mul_bls.zkey"), key::<Bls12_381>),
    ("mul.plonk.zkey", PLONK, data!("mul.plonk.zkey"), plonk_key::<Bn254>),
    ("nopub.plonk.zkey", PLONK, data!("nopub.plonk.zkey"), plonk_key::<Bn254>),
    ("mul_bls.plonk.zkey", PLONK, data!("mul_bls.plonk.zkey"), plonk_key::<Bls12_381>),
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
            let lengths =
                [0, len.wrapping_sub(1), len + 1, len + 12, bytes.len() as u64, 1 << 63, u64::MAX - 11, u64::MAX];
            for wrong in lengths.into_iter().filter(|wrong| *wrong != len) {
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
            // The first bytes of a key do not tell that it is for PLONK where the section that says so comes last.
            let found = if *other_kind == PLONK && kind != FileKind::Zkey { FileKind::Zkey } else { *other_kind };
            let expected = format!("this is {}, expected {}", found.describe(), kind.describe());
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
    assert!(message.contains("expected a key for bn254, found one for bls12-381"), "{message}");
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
    for (system, found) in [(2u8, "this is a PLONK zkey file"), (10, "this is an FFLONK zkey file")] {
        let bytes = data!("mul.zkey");
        let other = with(bytes, offset(bytes, FileKind::Zkey, 1), &[system]);
        let message = key::<Bn254>(&other).unwrap_err().to_string();
        assert!(message.starts_with(found) && !message.contains("damaged"), "{message}");
    }
    words("mul.zkey", 1, 0, &[0, 3, u32::MAX], &["expected a Groth16 key", "found protocol"]);
    for (file, p) in [("mul.zkey", 32), ("mul_bls.zkey", 48)] {
        words(file, 2, 0, &[0, 1, 40, 64, 72, u32::MAX], &["modulus"]);
        words(file, 2, 4, &[0, 1, 0xffff_ffff], &["expected the base field modulus of bn254 or bls12-381, found 0x"]);
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
    words("mul.zkey", 2, 76 + 4, &[1 << 29, 1 << 31], &["expected a domain of at most 2^28, the largest of bn254"]);
}

/// The modulus of the other curve's scalars behind that of the first curve's coordinates.
#[test]
fn moduli_of_two_curves() {
    let (bn, bls) = (data!("mul.zkey"), data!("mul_bls.zkey"));
    let r = &bls[offset(bls, FileKind::Zkey, 2) + 56..][..32];
    let message = placed("moduli", key::<Bn254>(&with(bn, offset(bn, FileKind::Zkey, 2) + 40, r)));
    assert!(message.contains("expected the scalar field modulus of bn254, found that of bls12-381"), "{message}");
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
    words("mul.wtns", 1, 4, &[0, 2], &["expected the scalar field modulus of bn254 or bls12-381"]);
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
            &[&index, "below the scalar field modulus of bn254"],
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

/// A constraint system of `n` constraints w1 * w1 = w1, every term of which can be damaged.
fn many_constraints(n: u32) -> Vec<u8> {
    let header = R1csHeader { n_constraints: n, ..R1cs::parse(data!("mul.r1cs")).unwrap().header };
    let one = [(1, tandem_ops::Canonical([1, 0, 0, 0]))];
    let mut out = R1csWriter::new(Vec::new(), &header, 3 * u64::from(n)).unwrap();
    (0..n).for_each(|_| out.constraint([&one, &one, &one]).unwrap());
    out.finish([0, 1, 2, 3, 4, 5].into_iter()).unwrap()
}

#[test]
fn every_side_of_every_constraint() {
    let n = 9000;
    let bytes = many_constraints(n);
    R1cs::parse(&bytes).unwrap();
    let start = offset(&bytes, FileKind::R1cs, 2);
    for constraint in [0, 1, 4095, 4096, 4097, 8191, 8192, n as usize - 1] {
        for side in 0..3 {
            let term = start + (3 * constraint + side) * 40 + 4;
            let index = format!("constraint {constraint}:");
            for (at, word, problem) in [(term, 6u32, "a wire below 6"), (term + 32, u32::MAX, "scalar field modulus")] {
                let what = format!("side {side} of {index}");
                let message = placed(&what, R1cs::parse(&with(&bytes, at, &word.to_le_bytes())).map(drop));
                assert!(message.contains(&index) && message.contains(problem), "{what}: {message}");
            }
        }
    }
    // Two that are wrong: the first is named.
    let bad = with(&bytes, start + 3 * 40 * 8000 + 4, &[9]);
    let message = placed("two", R1cs::parse(&with(&bad, start + 3 * 40 * 5000 + 4, &[9])).map(drop));
    assert!(message.contains("constraint 5000:"), "{message}");
}

/// A file of few bytes cannot ask for a large key.
#[test]
fn wires_are_bounded_by_what_the_file_holds() {
    let bytes = data!("mul.r1cs");
    let file = Container::parse(bytes, FileKind::R1cs).unwrap();
    // Without the map of wires to labels, which is the last section.
    let map = *file.sections.iter().find(|s| s.id == 3).unwrap();
    assert_eq!(map.offset + map.len, bytes.len());
    let bare = with(&bytes[..map.offset - 12], 8, &2u32.to_le_bytes());
    let terms: usize = R1cs::parse(bytes).unwrap().constraints().map(|c| c.a.len() + c.b.len() + c.c.len()).sum();
    let wires = |bytes: &[u8], n: u32| {
        let bytes = with(bytes, offset(bytes, FileKind::R1cs, 1) + 36, &n.to_le_bytes());
        R1cs::parse(&bytes).map(|r1cs| assert_eq!(r1cs.header.n_vars, n))
    };
    wires(&bare, 6).unwrap();
    wires(&bare, terms as u32 + 1).unwrap();
    for n in [terms as u32 + 2, 1 << 24, u32::MAX] {
        let message = placed("no map", wires(&bare, n));
        let part = format!("expected at most {} wires in a file without the map", terms + 1);
        assert!(message.contains(&part) && message.contains(&n.to_string()), "{message}");
    }
    for n in [5, 7, 1 << 24, u32::MAX] {
        let message = placed("map", wires(bytes, n));
        assert!(message.contains("section 3 (wire to label map)"), "{message}");
    }
    // More public values than the constraints name wires.
    let many = with(&bare, offset(&bare, FileKind::R1cs, 1) + 40, &1_000_000u32.to_le_bytes());
    placed("publics", wires(&many, 1_000_001));
}

#[test]
fn custom_gates_of_all_sizes() {
    let bytes = data!("gate.r1cs");
    let s = *Container::parse(bytes, FileKind::R1cs).unwrap().sections.iter().find(|s| s.id == 4).unwrap();
    let parse = |section: &[u8]| {
        let mut changed = bytes.to_vec();
        changed.splice(s.offset - 8..s.offset + s.len, [&(section.len() as u64).to_le_bytes(), section].concat());
        R1cs::parse(&changed).map(|r1cs| r1cs.custom_gates)
    };
    let gate = |name: usize, parameter: &[u8]| {
        [&1u32.to_le_bytes()[..], &vec![b'n'; name], &[0], &1u32.to_le_bytes(), parameter].concat()
    };
    let r: &[u8] = &bytes[offset(bytes, FileKind::R1cs, 1) + 4..][..32];
    let mut below = r.to_vec();
    below[0] -= 1;
    assert_eq!(parse(&gate(4096, &below)).unwrap()[0].name.len(), 4096);
    let message = placed("name", parse(&gate(4097, &below)).map(drop));
    assert!(message.contains("section 4") && message.contains("a name of at most 4096 bytes"), "{message}");
    for wrong in [r, &[0xff; 32]] {
        let message = placed("parameter", parse(&gate(1, wrong)).map(drop));
        assert!(message.contains("section 4") && message.contains("parameters below the scalar field"), "{message}");
    }
}

/// A key of 2^15 rows with entries in the order of `rows`, and the bytes of its points counted up.
fn large_key(rows: &[u32]) -> Vec<u8> {
    let small = Zkey::<Bn254>::parse(data!("mul.zkey")).unwrap();
    let n = 1u32 << 15;
    let header = ZkeyHeader { n_vars: n, domain_size: n, ..small.header };
    let mut out = ZkeyWriter::<_, Bn254>::new(Vec::new(), &header, 9).unwrap();
    let g1 = vec![small.header.alpha_1; n as usize];
    let g2 = vec![small.header.beta_2; n as usize];
    out.section(ZkeySection::Coefs { count: rows.len() as u32 }).unwrap();
    let value = small.coefs.iter().next().unwrap().value;
    // The column tells entries apart.
    let coef = |(i, &constraint): (usize, &u32)| Coef { matrix: i as u32 % 2, constraint, signal: i as u32 % n, value };
    out.coefs(rows.iter().enumerate().map(coef)).unwrap();
    for (section, count) in
        [(ZkeySection::Ic, 3), (ZkeySection::A, n), (ZkeySection::B1, n), (ZkeySection::C, n - 3), (ZkeySection::H, n)]
    {
        out.section(section).and_then(|()| out.points(&g1[..count as usize])).unwrap();
    }
    out.section(ZkeySection::B2).and_then(|()| out.points(&g2)).unwrap();
    out.finish().unwrap()
}

/// The rows of a matrix, each as the set of its columns.
fn rows_of(matrix: &tandem_ops::SparseRows) -> Vec<Vec<u32>> {
    let row = |w: &[u32]| {
        let mut columns = matrix.column[w[0] as usize..w[1] as usize].to_vec();
        columns.sort_unstable();
        columns
    };
    matrix.starts.windows(2).map(row).collect()
}

/// Rows in any order make the same matrices, whether they are out of order within a thread's part or across parts.
#[test]
fn rows_in_any_order() {
    let n = 20_000u32;
    let turned = |by: usize| (0..n).map(|i| (i as usize + by) as u32 % n).collect::<Vec<_>>();
    let swapped = |at: usize| {
        let mut rows: Vec<u32> = (0..n).collect();
        rows.swap(at, at + 1);
        rows
    };
    let mut orders = vec![(0..n).collect(), (0..n).rev().collect(), turned(n as usize / 2), turned(1), swapped(7)];
    // Across the border of parts, for any number of threads.
    orders.extend((1..64).map(|part| swapped(n as usize / 64 * part - 1)));
    for rows in orders {
        let bytes = large_key(&rows);
        let matrices = Zkey::<Bn254>::parse(&bytes).unwrap().coefs.matrices().unwrap();
        matrices.a.check().unwrap();
        matrices.b.check().unwrap();
        for (m, found) in [&matrices.a, &matrices.b].into_iter().enumerate() {
            let mut expected = vec![Vec::new(); n as usize];
            rows.iter()
                .enumerate()
                .filter(|(i, _)| i % 2 == m)
                .for_each(|(i, row)| expected[*row as usize].push(i as u32));
            assert!(rows_of(found) == expected, "{:?}...", &rows[..9]);
        }
    }
}

/// Each coordinate is checked and the point named, also past the bytes that one task checks.
#[test]
fn coordinates_of_large_sections() {
    let bytes = large_key(&[0, 1, 2]);
    Zkey::<Bn254>::parse(&bytes).unwrap();
    for s in Container::parse(&bytes, FileKind::Zkey).unwrap().sections {
        let size = match s.id {
            5 | 6 | 8 | 9 => 64,
            7 => 128,
            _ => continue,
        };
        let count = s.len / size;
        let in_a_task = (1 << 20) / size;
        for point in [0, in_a_task - 1, in_a_task, in_a_task + 1, in_a_task + in_a_task / 2, count - 1] {
            for at in (0..size).step_by(32) {
                let message = placed("point", key::<Bn254>(&with(&bytes, s.offset + point * size + at, &[0xff; 32])));
                let place = format!("section {} ", s.id);
                let index = format!("point {point}, byte {}:", s.offset + point * size);
                assert!(message.contains(&place) && message.contains(&index), "{at}: {message} lacks {index}");
            }
        }
    }
}

#[test]
fn domains_up_to_the_roots_of_unity() {
    // The largest is refused for its section of points, what is larger for itself.
    let domain = |file: &[u8], p: usize, log: u32| {
        let at = offset(file, FileKind::Zkey, 2) + 8 + p + 32 + 8;
        placed(
            "domain",
            if p == 32 { key::<Bn254> } else { key::<Bls12_381> }(&with(file, at, &(1u32 << log).to_le_bytes())),
        )
    };
    let message = domain(data!("mul.zkey"), 32, 28);
    assert!(message.contains("section 9 (H points)") && message.contains("268435456 points"), "{message}");
    let message = domain(data!("mul.zkey"), 32, 29);
    assert!(message.contains("at most 2^28, the largest of bn254, found 2^29"), "{message}");
    let message = domain(data!("mul_bls.zkey"), 48, 31);
    assert!(message.contains("section 9 (H points)") && message.contains("2147483648 points"), "{message}");
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
