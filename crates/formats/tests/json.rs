//! The JSON files that snarkjs made, read and written back byte for byte, and texts that are wrong.

use tandem_formats::{json, Proof, VerificationKey, Zkey};
use tandem_ops::{Bls12_381, Bn254, Canonical, Curve, CurveId, Group};

macro_rules! data {
    ($name:literal) => {
        include_bytes!(concat!("data/", $name)).as_slice()
    };
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn round_trip<C: Curve>(zkey: &[u8], vkey: &[u8], proof: &[u8], public: &[u8]) {
    assert_eq!(json::curve(vkey).unwrap(), C::ID);
    let key = VerificationKey::<C>::parse(vkey).unwrap();
    assert_eq!(key.to_json(), text(vkey));
    let own = Proof::<C>::parse(proof).unwrap();
    assert_eq!(own.to_json(), text(proof));
    let values = json::parse_public(public, C::ID).unwrap();
    assert_eq!(json::public_to_json(&values), text(public));
    assert_eq!(values.len() + 1, key.ic.len());
    // The same points stand in the zkey in Montgomery form.
    let zkey = Zkey::<C>::parse(zkey).unwrap();
    assert_eq!(key.ic, zkey.ic.iter().collect::<Vec<_>>());
    assert_eq!((key.alpha_1, key.beta_2), (zkey.header.alpha_1, zkey.header.beta_2));
    assert_eq!((key.gamma_2, key.delta_2), (zkey.header.gamma_2, zkey.header.delta_2));
    assert!(C::G1::is_on_curve(&own.a) && C::G2::is_on_curve(&own.b) && C::G1::is_on_curve(&own.c));
}

#[test]
fn files_of_snarkjs_round_trip() {
    round_trip::<Bn254>(data!("mul.zkey"), data!("mul.vkey.json"), data!("mul.proof.json"), data!("mul.public.json"));
    round_trip::<Bn254>(
        data!("nopub.zkey"),
        data!("nopub.vkey.json"),
        data!("nopub.proof.json"),
        data!("nopub.public.json"),
    );
    round_trip::<Bls12_381>(
        data!("mul_bls.zkey"),
        data!("mul_bls.vkey.json"),
        data!("mul_bls.proof.json"),
        data!("mul_bls.public.json"),
    );
}

/// snarkjs writes the pairing of alpha and beta; whoever exports a key computes it with arkworks.
fn pairing_is_that_of_arkworks<C: Curve>(vkey: &[u8]) {
    use ark_ec::pairing::Pairing;
    let key = VerificationKey::<C>::parse(vkey).unwrap();
    let ark = C::Pairing::pairing(C::G1::to_ark(&key.alpha_1), C::G2::to_ark(&key.beta_2)).0;
    assert_eq!(key.alphabeta_12, Some(ark));
}

#[test]
fn alphabeta() {
    pairing_is_that_of_arkworks::<Bn254>(data!("mul.vkey.json"));
    pairing_is_that_of_arkworks::<Bls12_381>(data!("mul_bls.vkey.json"));
}

#[test]
fn infinity_is_written_as_snarkjs_does() {
    let mut key = VerificationKey::<Bn254>::parse(data!("mul.vkey.json")).unwrap();
    key.ic[1] = tandem_ops::Point([0; 8]);
    key.beta_2 = tandem_ops::Point([0; 16]);
    let written = key.to_json();
    assert!(written.contains("[\n   \"0\",\n   \"1\",\n   \"0\"\n  ]"), "{written}");
    assert!(
        written.contains("[\n   \"0\",\n   \"0\"\n  ],\n  [\n   \"1\",\n   \"0\"\n  ],\n  [\n   \"0\",\n   \"0\"\n  ]")
    );
    let again = VerificationKey::<Bn254>::parse(written.as_bytes()).unwrap();
    assert_eq!((again.ic[1], again.beta_2, again.to_json()), (key.ic[1], key.beta_2, written));
}

#[test]
fn other_spellings_are_read() {
    let one = [Canonical([1, 0, 0, 0]), Canonical([255, 0, 0, 0])];
    for public in ["[\"1\",\"255\"]", "[1, 255]", " [ \"0x1\" , \"0xff\" ]\n"] {
        assert_eq!(json::parse_public(public.as_bytes(), CurveId::Bn254).unwrap(), one);
    }
    let points = |text: &str| {
        let proof = Proof::<Bn254>::parse(text.as_bytes()).unwrap();
        (proof.a, proof.b, proof.c)
    };
    let proof = points(text(data!("mul.proof.json")));
    // As rapidsnark writes it, and with affine points.
    let bare = text(data!("mul.proof.json")).replace(",\n \"curve\": \"bn128\"", "");
    assert_eq!(points(&bare), proof);
    let affine = bare.replace(",\n  \"1\"", "");
    assert_ne!(affine, bare);
    assert_eq!(points(&affine), proof);
    let named = text(data!("mul.proof.json")).replace("bn128", "alt_bn-128");
    assert_eq!(points(&named), proof);
}

fn refused<T: std::fmt::Debug>(result: tandem_formats::Result<T>, parts: &[&str]) {
    let message = result.unwrap_err().to_string();
    assert!(!message.contains('\n'), "{message}");
    for part in parts {
        assert!(message.contains(part), "{message:?} lacks {part:?}");
    }
}

#[test]
fn wrong_files_are_named() {
    type Vk = VerificationKey<Bn254>;
    type Pf = Proof<Bn254>;
    let public = |bytes| json::parse_public(bytes, CurveId::Bn254);
    let (vk, proof, values) = (data!("mul.vkey.json"), data!("mul.proof.json"), data!("mul.public.json"));
    refused(Vk::parse(proof), &["this is a proof", "expected a verification key"]);
    refused(Vk::parse(values), &["this is public values", "expected a verification key"]);
    refused(Vk::parse(data!("mul.wtns")), &["this is a wtns file", "expected a verification key"]);
    refused(json::curve(data!("mul.zkey")), &["this is a zkey file"]);
    refused(json::curve(proof), &["this is a proof"]);
    refused(Pf::parse(vk), &["this is a verification key", "expected a proof"]);
    refused(Pf::parse(b""), &["this is an empty file"]);
    refused(public(vk), &["this is a verification key", "expected public values"]);
    refused(public(proof), &["this is a proof"]);
    refused(public(b"\x89PNG"), &["unknown type"]);
    refused(Proof::<Bls12_381>::parse(proof), &["curve", "BLS12-381", "BN254"]);
    refused(VerificationKey::<Bls12_381>::parse(vk), &["curve", "BLS12-381", "BN254"]);
}

#[test]
fn wrong_values_are_placed() {
    type Vk = VerificationKey<Bn254>;
    let vk = text(data!("mul.vkey.json"));
    let with = |from: &str, to: &str| {
        let changed = vk.replacen(from, to, 1);
        assert_ne!(changed, vk, "{from}");
        Vk::parse(changed.as_bytes())
    };
    refused(with("groth16", "plonk"), &["protocol", "expected groth16", "plonk"]);
    refused(with("bn128", "pallas"), &["curve", "pallas"]);
    refused(with("\"nPublic\": 2", "\"nPublic\": 3"), &["IC", "4 points", "found 3"]);
    refused(with("\"nPublic\": 2", "\"nPublic\": 18446744073709551615"), &["IC", "found 3"]);
    refused(with("\"nPublic\": 2", "\"nPublic\": -1"), &["line 4"]);
    refused(with("\"IC\"", "\"IC2\""), &["missing field `IC`"]);
    refused(with("\"1\"", "\"2\""), &["vk_alpha_1", "expected z to be 1"]);
    refused(with("\"1\"", "1.5"), &["line 9"]);
    refused(with("\"1\"", "\"x\""), &["line 9"]);
    let p = "21888242871839275222246405745257275088696311157297823662689037894645226208583";
    let alpha = "5945684500454091759551122990919481196722800051061487543953978450995359808025";
    refused(with(alpha, p), &["vk_alpha_1", "below the base field modulus"]);
    refused(with(alpha, &"9".repeat(200)), &["line 9", "expected a point"]);
    refused(Vk::parse(&vk.as_bytes()[..vk.len() - 1]), &["line"]);
    refused(Vk::parse(format!("{vk}x").as_bytes()), &["line"]);
    let r = "[\"5\",\"21888242871839275222246405745257275088548364400416034343698204186575808495617\"]";
    refused(json::parse_public(r.as_bytes(), CurveId::Bn254), &["value 1", "below the scalar field modulus"]);
    json::parse_public(r.as_bytes(), CurveId::Bls12_381).unwrap();
    let deep = "[".repeat(100_000);
    refused(json::parse_public(deep.as_bytes(), CurveId::Bn254), &["line 1"]);
    refused(json::curve(format!("{{\"a\":{deep}").as_bytes()), &["line 1"]);
}
