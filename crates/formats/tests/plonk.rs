//! PLONK's files: written as snarkjs writes them, and refused where they are damaged.

use std::fs;
use std::ops::Range;
use std::sync::Mutex;
use tandem_formats::container::{Container, Input};
use tandem_formats::plonk::PlonkSection;
use tandem_formats::*;
use tandem_ops::{with_curve, Bls12_381, Bn254, Curve, CurveId, Outside, Wire};

macro_rules! data {
    ($name:literal) => {
        include_bytes!(concat!("data/", $name)).as_slice()
    };
}

const KIND: FileKind = FileKind::ZkeyOf(OtherSystem::Plonk);
const BN254: &[u8] = data!("mul.plonk.zkey");
const BLS12_381: &[u8] = data!("mul_bls.plonk.zkey");
const NO_PUBLIC: &[u8] = data!("nopub.plonk.zkey");

/// A copy with `new` at `at` of a section.
fn with(bytes: &[u8], id: u32, at: usize, new: &[u8]) -> Vec<u8> {
    let file = Container::parse(bytes, KIND).unwrap();
    let section = file.sections.iter().find(|s| s.id == id).unwrap();
    assert!(at + new.len() <= section.len);
    let mut bytes = bytes.to_vec();
    bytes[section.offset + at..][..new.len()].copy_from_slice(new);
    bytes
}

/// The file with its sections sorted by what `key` says of their numbers.
fn reordered(bytes: &[u8], kind: FileKind, key: impl Fn(u32) -> u32) -> Vec<u8> {
    let mut sections = Container::parse(bytes, kind).unwrap().sections;
    sections.sort_by_key(|s| key(s.id));
    let parts = sections.iter().map(|s| &bytes[s.offset - 12..s.offset + s.len]);
    parts.fold(bytes[..12].to_vec(), |mut all, part| {
        all.extend(part);
        all
    })
}

fn len_of(bytes: &[u8], id: u32) -> usize {
    Container::parse(bytes, KIND).unwrap().sections.iter().find(|s| s.id == id).unwrap().len
}

/// Bytes, and what was looked at of them.
struct Watched<'a>(&'a [u8], Mutex<Vec<Range<usize>>>);

impl Input for Watched<'_> {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
    fn look(&self, into: &mut [u8], at: u64) -> Result<()> {
        self.1.lock().unwrap().push(at as usize..at as usize + into.len());
        self.0.look(into, at)
    }
}

impl Outside for Watched<'_> {
    fn read(&self, at: usize, into: &mut [u8]) -> tandem_ops::Result<()> {
        into.copy_from_slice(&self.0[at..][..into.len()]);
        Ok(())
    }
    fn block_bytes(&self) -> usize {
        1 << 20
    }
}

fn by_outline<C: Curve>(file: &Watched<'_>) -> Result<Vec<u8>> {
    let mut outline = PlonkOutline::<C>::read(file)?;
    outline.load(file)?;
    let read = file.1.lock().unwrap().len();
    let all = all_of(&outline.key(file)?);
    assert_eq!(file.1.lock().unwrap().len(), read, "looked at again");
    outline.check_coordinates(file)?;
    Ok(all)
}

/// All that a key gives.
fn all_of<C: Curve>(key: &PlonkZkey<'_, C>) -> Vec<u8> {
    let maps = key.maps.iter().map(|map| map.as_bytes());
    let polynomials = key.selectors.iter().chain(&key.permutation).map(|p| p.as_bytes());
    let powers = key.powers.load().unwrap();
    let powers = powers.values();
    let parts: Vec<_> = maps.chain(polynomials).chain([key.additions.as_bytes(), powers.as_bytes()]).collect();
    parts.concat()
}

#[test]
fn of_a_file_no_more_is_looked_at_than_a_proof_takes() {
    fn check<C: Curve>(bytes: &[u8]) {
        let file = Watched(bytes, Mutex::default());
        assert!(by_outline::<C>(&file).unwrap() == all_of(&PlonkZkey::<C>::parse(bytes).unwrap()));
        let heads = Watched(bytes, Mutex::default());
        PlonkOutline::<C>::read(&heads).unwrap();
        let looked = file.1.into_inner().unwrap().split_off(heads.1.into_inner().unwrap().len());
        let sections = Container::parse(bytes, KIND).unwrap().sections;
        let section = |at: usize| sections.iter().find(|s| (s.offset..s.offset + s.len).contains(&at)).unwrap();
        let n = PlonkZkey::<C>::parse(bytes).unwrap().header.domain_size as usize;
        for Range { start, end } in looked.into_iter().filter(|range| !range.is_empty()) {
            let of = section(start);
            match of.id {
                7..=12 => assert_eq!(((start - of.offset) % (160 * n), end - start), (0, 32 * n)),
                // By the check of coordinates.
                1..=6 | 14 => assert!(end <= of.offset + of.len),
                other => panic!("section {other}"),
            }
        }
    }
    check::<Bn254>(BN254);
    check::<Bn254>(NO_PUBLIC);
    check::<Bls12_381>(BLS12_381);
}

#[track_caller]
fn refused<C: Curve>(bytes: &[u8], parts: &[&str]) {
    let Err(error) = PlonkZkey::<C>::parse(bytes) else { panic!("was accepted: {parts:?}") };
    let message = error.to_string();
    assert_eq!(by_outline::<C>(&Watched(bytes, Mutex::default())).unwrap_err().to_string(), message);
    assert!(!message.contains('\n') && message.len() < 400, "{message}");
    for part in parts {
        assert!(message.contains(part), "expected {part:?} in: {message}");
    }
}

fn written<C: Curve>(bytes: &[u8]) -> Vec<u8> {
    let key = PlonkZkey::<C>::parse(bytes).unwrap();
    let h = &key.header;
    let mut writer =
        PlonkWriter::<_, C>::new(Vec::new(), h.n_public, h.domain_size, h.n_additions, h.n_constraints).unwrap();
    let mut section = |id, parts: &[&[u8]]| {
        writer.section(id).unwrap();
        parts.iter().for_each(|part| writer.bytes(part).unwrap());
    };
    // Values, and Lagrange polynomials, are not read.
    let all = |id: u32| {
        let section = *Container::parse(bytes, KIND).unwrap().sections.iter().find(|s| s.id == id).unwrap();
        &bytes[section.offset..][..section.len]
    };
    let one = h.domain_size as usize * 32;
    section(PlonkSection::Additions, &[key.additions.as_bytes()]);
    for (column, map) in key.maps.iter().enumerate() {
        section(PlonkSection::Map(column), &[map.as_bytes()]);
    }
    for (number, selector) in key.selectors.iter().enumerate() {
        section(PlonkSection::Selector(number), &[selector.as_bytes(), &all(7 + number as u32)[one..]]);
    }
    let permutation: Vec<&[u8]> = key
        .permutation
        .iter()
        .enumerate()
        .flat_map(|(i, s)| [s.as_bytes(), &all(12)[(5 * i + 1) * one..5 * (i + 1) * one]])
        .collect();
    section(PlonkSection::Permutation, &permutation);
    section(PlonkSection::Lagrange, &[all(13)]);
    section(PlonkSection::Powers, &[key.powers.in_memory().unwrap().as_bytes()]);
    writer.finish(h).unwrap()
}

#[test]
fn what_is_read_is_written_as_snarkjs_does() {
    assert!(written::<Bn254>(BN254) == BN254);
    assert!(written::<Bn254>(NO_PUBLIC) == NO_PUBLIC);
    assert!(written::<Bls12_381>(BLS12_381) == BLS12_381);
    let key = PlonkZkey::<Bn254>::parse(BN254).unwrap();
    let h = &key.header;
    assert_eq!((h.n_vars, h.n_public, h.domain_size, h.n_additions, h.n_constraints), (8, 2, 8, 2, 6));
    let none = PlonkZkey::<Bn254>::parse(NO_PUBLIC).unwrap();
    assert_eq!((none.header.n_public, len_of(NO_PUBLIC, 13)), (0, 160 * 8));
    assert!(Bn254::from_mont(h.k1) == 2u64.into() && Bn254::from_mont(h.k2) == 3u64.into());
}

#[test]
fn a_file_says_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes, curve) in [("a", BN254, CurveId::Bn254), ("b", BLS12_381, CurveId::Bls12_381)] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        assert_eq!(Protocol::of_file(&path).unwrap(), Protocol::Plonk);
        assert_eq!((Protocol::of(bytes).unwrap(), plonk::curve(bytes).unwrap()), (Protocol::Plonk, curve));
        let file = PlonkFile::open(&path).unwrap();
        assert_eq!((file.curve, file.n_public, file.domain_size, file.witness_values()), (curve, 2, 8, 6));
        assert!(ZkeyFile::open(&path).unwrap_err().to_string().contains("this is a PLONK zkey file"));
    }
    let path = folder.path().join("g");
    fs::write(&path, data!("mul.zkey")).unwrap();
    assert_eq!(Protocol::of_file(&path).unwrap(), Protocol::Groth16);
    assert!(PlonkFile::open(&path).unwrap_err().to_string().contains("expected a PLONK zkey file"));
    let fflonk = with(BN254, 1, 0, &[10]);
    assert_eq!(Protocol::of(&fflonk).unwrap(), Protocol::Fflonk);
    // The section that says it may come first, too.
    let sorted = reordered(BN254, KIND, |id| id);
    assert_eq!(FileKind::of(&sorted), Some(KIND));
    assert_eq!(Protocol::of(&sorted).unwrap(), Protocol::Plonk);
    assert!(written::<Bn254>(&sorted) == BN254);
}

/// What a cut key says: sections have the names of the key's system, though the section that tells it may be cut off.
#[test]
fn a_cut_key_names_its_own_sections() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut");
    let fflonk = (FileKind::ZkeyOf(OtherSystem::Fflonk), data!("mul.fflonk.zkey"));
    // As PLONK's, that of Groth16 may have its protocol at the end.
    let protocol_last = reordered(data!("mul.zkey"), FileKind::Zkey, |id| if id < 3 { 100 } else { id });
    let groth16 = [data!("mul.zkey"), &protocol_last].map(|bytes| (FileKind::Zkey, bytes));
    for (kind, bytes) in [(KIND, BN254), (KIND, BLS12_381), fflonk].into_iter().chain(groth16) {
        for section in Container::parse(bytes, kind).unwrap().sections {
            let cut = &bytes[..section.offset + section.len / 2];
            fs::write(&path, cut).unwrap();
            let name = format!("section {} ({})", section.id, kind.section_name(section.id));
            for error in [Protocol::of(cut).unwrap_err(), Protocol::of_file(&path).unwrap_err()] {
                assert!(error.to_string().contains(&name), "expected {name:?} in: {error}");
            }
        }
    }
}

#[test]
fn counts_that_lie() {
    for (bytes, p, parse) in
        [(BN254, 32, refused::<Bn254> as fn(&[u8], &[&str])), (BLS12_381, 48, refused::<Bls12_381>)]
    {
        let sizes = 8 + p + 32;
        let word = |at: usize, value: u32, parts: &[&str]| parse(&with(bytes, 2, at, &value.to_le_bytes()), parts);
        for value in [0, 1, 2] {
            word(sizes, value, &["section 2 (PLONK header)", "fewer public signals than"]);
        }
        for value in [6, 7, 8, u32::MAX] {
            word(sizes + 4, value, &["fewer public signals than"]);
        }
        for value in [0, 1, 2, 4, 7, 9, 1 << 30, 1 << 31, u32::MAX] {
            word(sizes + 8, value, &["a domain size that is a power of two from 8"]);
        }
        for value in [8, u32::MAX] {
            word(sizes + 12, value, &["fewer additions than"]);
        }
        word(sizes + 12, 6, &["fewer public signals than the 2 signals of the circuit"]);
        for value in [0, 1, 9, u32::MAX] {
            word(sizes + 16, value, &["expected 2 to 8 constraints"]);
        }
        // Other sizes that would do fit no section.
        word(sizes + 4, 1, &["section 13 (Lagrange polynomials)", "expected 40 elements"]);
        word(sizes + 8, 16, &["section 7 (Qm)", "expected 80 elements"]);
        word(sizes + 12, 1, &["section 3 (additions)", "expected 1 additions"]);
        word(sizes + 16, 7, &["section 4 (A signals)", "expected 7 signals"]);
    }
}

#[test]
fn signals_out_of_range() {
    for id in 4..=6 {
        for (index, value) in [(0, 8u32), (5, 8), (3, u32::MAX)] {
            let damaged = with(BN254, id, 4 * index, &value.to_le_bytes());
            let name = format!("section {id} ");
            refused::<Bn254>(&damaged, &[&name, &format!("gate {index}"), "a signal below 8"]);
        }
        // The last there is.
        PlonkZkey::<Bn254>::parse(&with(BN254, id, 4, &7u32.to_le_bytes())).unwrap();
    }
}

#[test]
fn additions_refer_back() {
    // Signals 6 and 7 are those of the additions.
    for (index, operand, value) in [(0, 0, 6u32), (0, 1, 6), (0, 0, u32::MAX), (1, 0, 7), (1, 1, 8)] {
        let damaged = with(BN254, 3, 72 * index + 4 * operand, &value.to_le_bytes());
        let bound = format!("expected signals below {}, found {value}", 6 + index);
        refused::<Bn254>(&damaged, &["section 3 (additions)", &format!("addition {index}"), &bound]);
    }
    PlonkZkey::<Bn254>::parse(&with(BN254, 3, 72, &6u32.to_le_bytes())).unwrap();
}

#[test]
fn numbers_not_below_their_modulus() {
    fn check<C: Curve>(bytes: &[u8], p: usize) {
        let header = Container::parse(bytes, KIND).unwrap().sections.iter().find(|s| s.id == 2).unwrap().offset;
        let (modulus, r) = (&bytes[header + 4..][..p], &bytes[header + 8 + p..][..32]);
        for (id, size, start) in [(3, 72, 8), (3, 72, 40)].into_iter().chain((7..=12).map(|id| (id, 32, 0))) {
            let last = len_of(bytes, id) / size - 1;
            // Coefficients: eight, before the values of each polynomial.
            let indices = match id {
                3 => vec![0, last / 2, last],
                12 => vec![0, 7, 40, 47, 80, 87],
                _ => vec![0, 3, 7],
            };
            for index in indices {
                let damaged = with(bytes, id, index * size + start, r);
                let what = if id == 3 { "addition" } else { "element" };
                let place = [format!("section {id} "), format!("{what} {index}")];
                refused::<C>(&damaged, &[&place[0], &place[1], "below the scalar field modulus"]);
            }
        }
        let sizes = 8 + p + 32 + 20;
        for (at, name) in [(sizes, "k1"), (sizes + 32, "k2")] {
            refused::<C>(&with(bytes, 2, at, r), &["section 2", name, "below the scalar field modulus"]);
        }
        for at in (sizes + 64..len_of(bytes, 2)).step_by(p) {
            refused::<C>(&with(bytes, 2, at, modulus), &["section 2", "below the base field modulus"]);
        }
        for index in 0..14 {
            let damaged = with(bytes, 14, 2 * p * index, modulus);
            refused::<C>(&damaged, &["section 14", &format!("point {index}"), "below the base field modulus"]);
        }
    }
    check::<Bn254>(BN254, 32);
    check::<Bls12_381>(BLS12_381, 48);
    refused::<Bls12_381>(BN254, &["expected a key for bls12-381, found one for bn254"]);
}

#[test]
fn keys_and_proofs_are_written_as_snarkjs_does() {
    fn check<C: Curve>(vkey: &[u8], proof: Option<&[u8]>) {
        let key = PlonkVerificationKey::<C>::parse(vkey).unwrap();
        assert_eq!(key.to_json().as_bytes(), vkey);
        if let Some(proof) = proof {
            assert_eq!(PlonkProof::<C>::parse(proof).unwrap().to_json().as_bytes(), proof);
        }
    }
    check::<Bn254>(data!("mul.plonk.vkey.json"), Some(data!("mul.plonk.proof.json")));
    check::<Bn254>(data!("nopub.plonk.vkey.json"), None);
    check::<Bls12_381>(data!("mul_bls.plonk.vkey.json"), Some(data!("mul_bls.plonk.proof.json")));
    assert_eq!(json::plonk_curve(data!("mul_bls.plonk.vkey.json")).unwrap(), CurveId::Bls12_381);
}

const R: &str = "21888242871839275222246405745257275088548364400416034343698204186575808495617";

#[test]
fn texts_that_are_refused() {
    let changed = |text: &[u8], from: &str, to: &str| {
        let text = std::str::from_utf8(text).unwrap();
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1).into_bytes()
    };
    let proof = data!("mul.plonk.proof.json");
    let value = {
        let text = std::str::from_utf8(proof).unwrap();
        text.split("\"eval_b\": \"").nth(1).unwrap().split('"').next().unwrap()
    };
    for (from, to, is_element, part) in [
        ("\"plonk\"", "\"groth16\"", false, "protocol"),
        ("\"bn128\"", "\"bls12381\"", false, "curve"),
        ("\"Wxiw\"", "\"Wxi2\"", false, "Wxiw"),
        ("\"eval_zw\"", "\"eval_z\"", false, "eval_zw"),
        (value, R, true, "eval_b: expected a value below"),
        (value, "-1", false, "whole number"),
    ] {
        let error = PlonkProof::<Bn254>::parse(&changed(proof, from, to)).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(error.is_no_element(), is_element, "{error}");
    }
    let key = data!("mul.plonk.vkey.json");
    for (from, to, part) in [
        ("\"plonk\"", "\"groth16\"", "protocol"),
        ("\"bn128\"", "\"bls12381\"", "curve"),
        ("\"power\": 3", "\"power\": 29", "power: expected at most 28"),
        ("\"nPublic\": 2", "\"nPublic\": 9", "nPublic: expected no more public values than the 2^3 rows"),
        ("\"nPublic\": 2", "\"nPublic\": 4294967296", "4294967296"),
        ("\"X_2\"", "\"X_3\"", "X_2"),
        ("\"k1\": \"2\"", &format!("\"k1\": \"{R}\""), "k1: expected a value below"),
    ] {
        let error = PlonkVerificationKey::<Bn254>::parse(&changed(key, from, to)).unwrap_err();
        assert!(error.to_string().contains(part), "{part}: {error}");
        // Of a key it is damage, not a proof that is not valid.
        assert!(!error.is_no_element(), "{error}");
    }
    let groth16 = PlonkProof::<Bn254>::parse(data!("mul.proof.json")).unwrap_err().to_string();
    assert!(
        groth16
            .contains("this is a Groth16 proof (JSON), expected a PLONK proof (JSON); use files of one proof system"),
        "{groth16}"
    );
    let other = Proof::<Bn254>::parse(proof).unwrap_err().to_string();
    assert!(
        other.contains("this is a PLONK proof (JSON), expected a Groth16 proof (JSON); use files of one"),
        "{other}"
    );
}

#[test]
fn powers_of_tau_are_read_as_far_as_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pot.ptau");
    for (bytes, key, curve) in [
        (data!("bn128.prepared.ptau"), BN254, CurveId::Bn254),
        (data!("bls12-381.prepared.ptau"), BLS12_381, CurveId::Bls12_381),
    ] {
        fs::write(&path, bytes).unwrap();
        let file = PtauFile::open(&path).unwrap();
        assert_eq!((file.header.power, file.header.curve, file.header.is_prepared), (3, curve, true));
        with_curve!(curve, C => {
            let key = PlonkZkey::<C>::parse(key).unwrap();
            let g1 = file.powers_g1::<C>(14).unwrap();
            assert!(g1.iter().copied().eq(key.powers.in_memory().unwrap().iter()));
            assert_eq!(file.powers_g2::<C>(2).unwrap()[1], key.header.x_2);
            assert_eq!(file.powers_g1::<C>(15).unwrap().len(), 15);
            assert_eq!(file.powers_g1::<C>(0).unwrap().len(), 0);
            let refused = |message: String, part: &str| assert!(message.contains(part), "{message}");
            refused(file.powers_g1::<C>(16).unwrap_err().to_string(), "expected 16 points or more, found 15");
            refused(file.powers_g2::<C>(9).unwrap_err().to_string(), "section 3 (tau G2)");
            let offset = Container::parse(bytes, FileKind::Ptau).unwrap().sections[1].offset;
            // What is behind the powers, be it one of them or the head of the next section.
            let point = size_of_val(&g1[0]);
            for count in [0, 14, 15] {
                let behind = file.behind_powers_g1::<C>(count).unwrap().unwrap();
                assert_eq!(behind, bytes[offset + count * point..][..point]);
            }
            assert_eq!(file.behind_powers_g1::<C>(bytes.len() / point).unwrap(), None);
            // The modulus as a coordinate.
            let width = g1[0].bytes().len() / 2;
            let mut damaged = bytes.to_vec();
            let p = bytes[12 + 12 + 4..][..width].to_vec();
            damaged[offset + 5 * width..][..width].copy_from_slice(&p);
            fs::write(&path, damaged).unwrap();
            let file = PtauFile::open(&path).unwrap();
            refused(file.powers_g1::<C>(14).unwrap_err().to_string(), &format!("byte {}", offset + 5 * width));
            file.powers_g1::<C>(2).unwrap();
        });
    }
    fs::write(&path, data!("bn128.prepared.ptau")).unwrap();
    let other = PtauFile::open(&path).unwrap().powers_g1::<Bls12_381>(1).unwrap_err().to_string();
    assert!(other.contains("expected powers of tau for bls12-381, found those for bn254"), "{other}");
}

/// The bytes of a value.
trait Bytes {
    fn bytes(&self) -> Vec<u8>;
}

impl<T: Wire> Bytes for T {
    fn bytes(&self) -> Vec<u8> {
        bytemuck::bytes_of(self).to_vec()
    }
}
