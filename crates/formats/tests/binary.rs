//! Binary files that snarkjs and circom made, read and written back byte for byte.

use tandem_formats::container::Container;
use tandem_formats::*;
use tandem_ops::{Bls12_381, Bn254, Canonical, Curve, CurveId, SparseRows};

macro_rules! data {
    ($name:literal) => {
        include_bytes!(concat!("data/", $name)).as_slice()
    };
}

/// Writes a key again, its sections in the order of the file.
fn rewrite<C: Curve>(bytes: &[u8]) -> Vec<u8> {
    let key = Zkey::<C>::parse(bytes).unwrap();
    let file = Container::parse(bytes, FileKind::Zkey).unwrap();
    let mut w = ZkeyWriter::<_, C>::new(Vec::new(), &key.header, file.sections.len() as u32).unwrap();
    for s in &file.sections[2..] {
        match s.id {
            3 => w.section(ZkeySection::Ic).and_then(|()| w.points(&key.ic.iter().collect::<Vec<_>>())),
            4 => {
                let count = key.coefs.len() as u32;
                w.section(ZkeySection::Coefs { count }).and_then(|()| w.coefs(key.coefs.iter()))
            }
            5 => w.section(ZkeySection::A).and_then(|()| w.points(&key.a.iter().collect::<Vec<_>>())),
            6 => w.section(ZkeySection::B1).and_then(|()| w.points(&key.b1.iter().collect::<Vec<_>>())),
            7 => w.section(ZkeySection::B2).and_then(|()| w.points(&key.b2.iter().collect::<Vec<_>>())),
            8 => w.section(ZkeySection::C).and_then(|()| w.points(&key.c.iter().collect::<Vec<_>>())),
            9 => w.section(ZkeySection::H).and_then(|()| w.points(&key.h.iter().collect::<Vec<_>>())),
            10 if s.len == 68 => w.no_contributions(&key.contributions.as_ref().unwrap().circuit_hash),
            10 => w
                .section(ZkeySection::Contributions { bytes: s.len as u64 })
                .and_then(|()| w.bytes(&bytes[s.offset..s.offset + s.len])),
            other => panic!("section {other}"),
        }
        .unwrap();
    }
    w.finish().unwrap()
}

#[test]
fn keys_round_trip() {
    assert_eq!(rewrite::<Bn254>(data!("mul.zkey")), data!("mul.zkey"));
    assert_eq!(rewrite::<Bn254>(data!("mul_new.zkey")), data!("mul_new.zkey"));
    assert_eq!(rewrite::<Bn254>(data!("nopub.zkey")), data!("nopub.zkey"));
    assert_eq!(rewrite::<Bls12_381>(data!("mul_bls.zkey")), data!("mul_bls.zkey"));
}

#[test]
fn key_says_what_the_circuit_is() {
    let key = Zkey::<Bn254>::parse(data!("mul.zkey")).unwrap();
    assert_eq!((key.header.n_vars, key.header.n_public, key.header.domain_size), (6, 2, 8));
    assert_eq!((key.ic.len(), key.a.len(), key.b2.len(), key.c.len(), key.h.len()), (3, 6, 6, 3, 8));
    let ceremony = key.contributions.unwrap();
    let names: Vec<_> = ceremony.entries.iter().map(|e| (e.name.as_deref(), e.kind)).collect();
    use zkey::ContributionKind::{Beacon, Secret};
    assert_eq!(names, [(Some("first"), Secret), (Some("final"), Beacon)]);
    assert_eq!(ceremony.entries[1].iterations_log2, Some(10));
    assert_eq!(ceremony.entries[1].beacon.as_ref().map(|b| (b.len(), b[30])), Some((31, 0x1f)));
    assert_eq!(zkey::curve(data!("mul.zkey")).unwrap(), CurveId::Bn254);
    assert_eq!(zkey::curve(data!("mul_bls.zkey")).unwrap(), CurveId::Bls12_381);
}

fn dot<C: Curve>(m: &SparseRows, row: usize, w: &[Canonical]) -> C::Fr {
    (m.starts[row] as usize..m.starts[row + 1] as usize)
        .map(|e| C::from_mont2(m.values[m.value[e] as usize]) * C::from_canonical(w[m.column[e] as usize]).unwrap())
        .sum()
}

/// The key's matrices times the witness are the constraints' values, which the r1cs gives independently.
fn matrices_agree_with_r1cs<C: Curve>(zkey: &[u8], r1cs: &[u8], wtns: &[u8]) {
    let key = Zkey::<C>::parse(zkey).unwrap();
    let r1cs = R1cs::parse(r1cs).unwrap();
    let wtns = Wtns::parse(wtns).unwrap();
    assert_eq!((r1cs.header.curve, wtns.curve), (C::ID, C::ID));
    assert_eq!(r1cs.header.n_public(), key.header.n_public);
    assert_eq!(wtns.values.len(), key.header.n_vars as usize);
    let m = key.coefs.matrices().unwrap();
    m.a.check().unwrap();
    m.b.check().unwrap();
    let n = r1cs.header.n_constraints as usize;
    assert_eq!(m.a.rows(), n + key.header.n_public as usize + 1);
    let lc = |lc: LinearCombination<'_>| -> C::Fr {
        lc.iter()
            .map(|(i, x)| C::from_canonical(x).unwrap() * C::from_canonical(wtns.values[i as usize]).unwrap())
            .sum()
    };
    for (i, c) in r1cs.constraints().enumerate() {
        assert_eq!(dot::<C>(&m.a, i, &wtns.values), lc(c.a));
        assert_eq!(dot::<C>(&m.b, i, &wtns.values), lc(c.b));
        assert_eq!(lc(c.a) * lc(c.b), lc(c.c), "constraint {i}");
    }
    for i in 0..=key.header.n_public as usize {
        assert_eq!(dot::<C>(&m.a, n + i, &wtns.values), C::from_canonical(wtns.values[i]).unwrap());
    }
}

#[test]
fn files_of_one_circuit_agree() {
    matrices_agree_with_r1cs::<Bn254>(data!("mul.zkey"), data!("mul.r1cs"), data!("mul.wtns"));
    matrices_agree_with_r1cs::<Bn254>(data!("nopub.zkey"), data!("nopub.r1cs"), data!("nopub.wtns"));
    matrices_agree_with_r1cs::<Bls12_381>(data!("mul_bls.zkey"), data!("mul_bls.r1cs"), data!("mul_bls.wtns"));
}

#[test]
fn witnesses_round_trip() {
    for bytes in [data!("mul.wtns"), data!("nopub.wtns"), data!("mul_bls.wtns")] {
        let wtns = Wtns::parse(bytes).unwrap();
        let mut again = Vec::new();
        Wtns::write(&mut again, wtns.curve, &wtns.values).unwrap();
        assert_eq!(again, bytes);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.wtns");
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(Wtns::open(&path).unwrap().values[..], wtns.values[..]);
    }
}

#[test]
fn constraint_systems_round_trip() {
    for bytes in [data!("mul.r1cs"), data!("nopub.r1cs"), data!("mul_bls.r1cs")] {
        let r1cs = R1cs::parse(bytes).unwrap();
        let lcs: Vec<_> = r1cs.constraints().map(|c| [c.a, c.b, c.c].map(|lc| lc.iter().collect::<Vec<_>>())).collect();
        let n_terms = lcs.iter().flatten().map(|lc| lc.len() as u64).sum();
        let mut w = R1csWriter::new(Vec::new(), &r1cs.header, n_terms).unwrap();
        for [a, b, c] in &lcs {
            w.constraint([a, b, c]).unwrap();
        }
        assert_eq!(w.finish(r1cs.labels.unwrap().iter()).unwrap(), bytes);
    }
}

#[test]
fn custom_gates_are_reported() {
    let r1cs = R1cs::parse(data!("gate.r1cs")).unwrap();
    let gate = CustomGate { name: "G".into(), parameters: vec![Canonical([7, 0, 0, 0])] };
    assert_eq!((r1cs.custom_gates, r1cs.custom_gate_uses), (vec![gate], 1));
}

#[test]
fn powers_of_tau_are_described() {
    for (bytes, curve) in [(data!("bn128.ptau"), CurveId::Bn254), (data!("bls12381.ptau"), CurveId::Bls12_381)] {
        let n_contributions = Some(0);
        let expected = PtauHeader { curve, power: 1, ceremony_power: 1, is_prepared: false, n_contributions };
        assert_eq!(PtauHeader::parse(bytes).unwrap(), expected);
    }
}
