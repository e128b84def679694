//! FFLONK's files: written as snarkjs writes them, and refused where they are damaged.

use std::fs;
use tandem_formats::container::Container;
use tandem_formats::json::{FflonkProof, FflonkVerificationKey};
use tandem_formats::{
    FflonkFile, FflonkHeader, FflonkSection, FflonkWriter, FflonkZkey, FileKind, OtherSystem, Protocol,
};

macro_rules! data {
    ($name:literal) => {
        include_bytes!(concat!("data/", $name)).as_slice()
    };
}

const KIND: FileKind = FileKind::ZkeyOf(OtherSystem::Fflonk);
const KEY: &[u8] = data!("mul.fflonk.zkey");
const NO_PUBLIC: &[u8] = data!("nopub.fflonk.zkey");

fn sections(bytes: &[u8]) -> Vec<(u32, usize, usize)> {
    Container::parse(bytes, KIND).unwrap().sections.iter().map(|s| (s.id, s.offset, s.len)).collect()
}

/// A copy with `new` at `at` of section 2.
fn with(at: usize, new: &[u8]) -> Vec<u8> {
    let (_, offset, len) = sections(KEY).into_iter().find(|s| s.0 == 2).unwrap();
    assert!(at + new.len() <= len);
    let mut bytes = KEY.to_vec();
    bytes[offset + at..][..new.len()].copy_from_slice(new);
    bytes
}

#[track_caller]
fn refused(bytes: &[u8], parts: &[&str]) {
    let message = FflonkHeader::parse(bytes).expect_err("was accepted").to_string();
    assert!(!message.contains('\n') && message.len() < 400, "{message}");
    for part in parts {
        assert!(message.contains(part), "expected {part:?} in: {message}");
    }
}

#[test]
fn keys_are_written_as_snarkjs_does() {
    for (bytes, publics, gates) in [(KEY, 2, 6), (NO_PUBLIC, 0, 2)] {
        assert_eq!(Protocol::of(bytes).unwrap(), Protocol::Fflonk);
        let header = FflonkHeader::parse(bytes).unwrap();
        assert_eq!((header.n_public, header.domain_size, header.n_constraints), (publics, 8, gates));
        let mut writer = FflonkWriter::new(Vec::new(), header).unwrap();
        // In the order of the file, the header aside.
        let parts = sections(bytes).into_iter().filter(|s| s.0 > 2);
        for (part, (_, offset, len)) in FflonkSection::ALL.into_iter().zip(parts) {
            writer.section(part).unwrap();
            writer.bytes(&bytes[offset..][..len]).unwrap();
        }
        assert!(writer.finish(&header).unwrap() == bytes);
    }
    let header = FflonkHeader::parse(KEY).unwrap();
    let mut writer = FflonkWriter::new(Vec::new(), header).unwrap();
    assert!(writer.section(FflonkSection::Map(3)).unwrap_err().to_string().contains("no such column"));
    writer.section(FflonkSection::Additions).unwrap();
    assert!(writer.section(FflonkSection::Map(0)).is_err(), "the additions are not there");
}

#[test]
fn texts_are_written_as_snarkjs_does() {
    for text in [data!("mul.fflonk.vkey.json"), data!("nopub.fflonk.vkey.json")] {
        assert_eq!(FflonkVerificationKey::parse(text).unwrap().to_json().as_bytes(), text);
    }
    for text in [data!("mul.fflonk.proof.json"), data!("nopub.fflonk.proof.json")] {
        let proof = FflonkProof::parse(text).unwrap();
        assert_eq!(proof.to_json().as_bytes(), text);
        assert!(FflonkProof::parse(proof.to_json().as_bytes()).unwrap() == proof);
    }
}

#[test]
fn headers_that_lie() {
    // n8q | q | n8r | r
    const COUNTS: usize = 4 + 32 + 4 + 32;
    let count = |number: usize, value: u32| with(COUNTS + 4 * number, &value.to_le_bytes());
    refused(&count(1, 8), &["section 2 (FFLONK header)", "fewer public signals than the 8 signals"]);
    refused(&count(1, 6), &["fewer public signals than the 6 signals of the circuit"]);
    for domain in [0, 4, 12, 1 << 30] {
        refused(&count(2, domain), &["expected a domain size that is a power of two from 8 to 2^26"]);
    }
    refused(&count(2, 16), &["section 7 (QL)", "expected 80 elements of 32 bytes"]);
    refused(&count(3, 8), &["fewer additions than the 8 signals"]);
    refused(&count(3, 1), &["section 3 (additions)", "expected 1 additions of 72 bytes"]);
    // Two rows of the eight are no gates'.
    refused(&count(4, 7), &["expected 2 to 6 constraints, found 7"]);
    refused(&count(4, 1), &["expected 2 to 6 constraints, found 1"]);
    refused(&count(4, 5), &["section 4 (A signals)", "expected 5 signals of 4 bytes"]);
    for (number, name) in ["k1", "k2", "w3", "w4", "w8", "wr"].into_iter().enumerate() {
        refused(&with(COUNTS + 20 + 32 * number, &[0xff; 32]), &[name, "below the scalar field modulus"]);
    }
    refused(&with(COUNTS + 20 + 192, &[0xff; 32]), &["X_2"]);
    refused(&with(COUNTS + 20 + 192 + 128, &[0xff; 32]), &["C0"]);
    refused(data!("mul.plonk.zkey"), &["this is a PLONK zkey file, expected an FFLONK zkey file"]);
    refused(data!("mul.zkey"), &["expected an FFLONK zkey file"]);
    // A key over another curve, whose first section says FFLONK.
    let mut other = data!("mul_bls.plonk.zkey").to_vec();
    let kind = FileKind::ZkeyOf(OtherSystem::Plonk);
    let first = Container::parse(&other, kind).unwrap().sections.iter().find(|s| s.id == 1).unwrap().offset;
    other[first] = 10;
    refused(&other, &["expected a key for bn254, the only curve that FFLONK has, found bls12-381"]);
}

#[test]
fn keys_are_read() {
    for (bytes, additions, gates) in [(KEY, 2, 6), (NO_PUBLIC, 0, 2)] {
        let key = FflonkZkey::parse(bytes).unwrap();
        assert_eq!((key.additions.len(), key.c0.len(), key.powers.len()), (additions, 64, 90));
        assert!(key.maps.iter().all(|map| map.len() == gates));
        // What an addition adds comes before it.
        let own = key.header.witness_values();
        let mut all = key.additions.iter().enumerate();
        assert!(all.all(|(i, a)| a.signals.iter().all(|signal| *signal < own + i as u32)));
    }
}

#[test]
fn a_file_is_cut_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    fs::write(&path, KEY).unwrap();
    let file = FflonkFile::open(&path).unwrap();
    assert_eq!((file.header.witness_values(), file.file().len()), (6, KEY.len() as u64));
    let borders = sections(KEY).into_iter().flat_map(|(_, offset, len)| [offset - 12, offset, offset + len / 2]);
    for end in borders.chain([0, 1, 12, KEY.len() - 1]) {
        assert!(FflonkHeader::parse(&KEY[..end]).is_err(), "{end}");
        fs::write(&path, &KEY[..end]).unwrap();
        let error = FflonkFile::open(&path).unwrap_err().to_string();
        assert!(error.contains("key: "), "{end}: {error}");
    }
    refused(&[KEY, &[0]].concat(), &["expected the end of the file, found 1 more bytes"]);
}

#[test]
fn texts_that_are_refused() {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (vkey, proof) = (text(data!("mul.fflonk.vkey.json")), text(data!("mul.fflonk.proof.json")));
    let key = |from: &str, to: &str| {
        assert!(vkey.contains(from), "{from}");
        FflonkVerificationKey::parse(vkey.replacen(from, to, 1).as_bytes()).unwrap_err().to_string()
    };
    assert!(key("\"power\": 3", "\"power\": 29").contains("power: expected at most 28, found 29"));
    assert!(key("\"nPublic\": 2", "\"nPublic\": 9").contains("nPublic: expected no more public values than the 2^3"));
    assert!(key("bn128", "bls12381").contains("curve: expected bn254"));
    let r = "21888242871839275222246405745257275088548364400416034343698204186575808495617";
    assert!(key("\"k1\": \"2\"", &format!("\"k1\": \"{r}\"")).contains("k1: expected a value below"));
    assert!(key("\"C0\"", "\"C9\"").contains("missing field `C0`"));
    let of_proof = |from: &str, to: &str| {
        assert!(proof.contains(from), "{from}");
        FflonkProof::parse(proof.replacen(from, to, 1).as_bytes()).unwrap_err().to_string()
    };
    assert!(of_proof("\"qc\": \"0\"", &format!("\"qc\": \"{r}\"")).contains("qc: expected a value below"));
    assert!(of_proof("\"inv\"", "\"Inv\"").contains("missing field `inv`"));
    assert!(of_proof("\"W2\"", "\"W3\"").contains("missing field `W2`"));
    let plonk = FflonkProof::parse(data!("mul.plonk.proof.json")).unwrap_err().to_string();
    assert!(plonk.contains("this is a PLONK proof (JSON), expected an FFLONK proof (JSON)"), "{plonk}");
    let groth16 = FflonkVerificationKey::parse(data!("mul.vkey.json")).unwrap_err().to_string();
    assert!(groth16.contains("expected an FFLONK verification key"), "{groth16}");
}
