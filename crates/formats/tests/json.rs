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
    refused(Vk::parse(proof), &["this is a Groth16 proof", "expected a Groth16 verification key"]);
    refused(Vk::parse(values), &["this is public values", "expected a Groth16 verification key"]);
    refused(Vk::parse(data!("mul.wtns")), &["this is a wtns file", "expected a Groth16 verification key"]);
    refused(json::curve(data!("mul.zkey")), &["this is a zkey file"]);
    refused(json::curve(proof), &["this is a Groth16 proof"]);
    refused(Pf::parse(vk), &["this is a Groth16 verification key", "expected a Groth16 proof"]);
    refused(Pf::parse(b""), &["this is an empty file"]);
    refused(public(vk), &["this is a Groth16 verification key", "expected public values"]);
    refused(public(proof), &["this is a Groth16 proof"]);
    refused(public(b"\x89PNG"), &["unknown type"]);
    refused(Proof::<Bls12_381>::parse(proof), &["curve", "bls12-381", "bn254"]);
    refused(VerificationKey::<Bls12_381>::parse(vk), &["curve", "bls12-381", "bn254"]);
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

/// The decimal digits of a number with 2^(64 * limbs) added to it.
fn plus_power(digits: &str, limbs: usize) -> String {
    let mut sum: Vec<u32> = digits.bytes().rev().map(|d| u32::from(d - b'0')).collect();
    let mut power = vec![1u32];
    for _ in 0..64 * limbs {
        let mut carry = 0;
        for digit in &mut power {
            carry += *digit * 2;
            *digit = carry % 10;
            carry /= 10;
        }
        if carry > 0 {
            power.push(carry);
        }
    }
    sum.resize(power.len().max(sum.len()) + 1, 0);
    let mut carry = 0;
    for (i, digit) in sum.iter_mut().enumerate() {
        carry += *digit + power.get(i).unwrap_or(&0);
        *digit = carry % 10;
        carry /= 10;
    }
    let text: String = sum.iter().rev().map(|d| char::from(b'0' + *d as u8)).collect();
    text.trim_start_matches('0').into()
}

/// Every number of a key and of a proof, by itself plus 2^256: it stands for no other.
#[test]
fn no_number_is_cut_off() {
    assert_eq!(plus_power("5", 1), "18446744073709551621");
    let numbers = |text: &str| -> Vec<std::ops::Range<usize>> {
        let quotes: Vec<_> = text.match_indices('"').map(|(i, _)| i).collect();
        let pairs = quotes.chunks_exact(2).map(|q| q[0] + 1..q[1]);
        pairs.filter(|r| text[r.clone()].bytes().all(|b| b.is_ascii_digit())).collect()
    };
    let changed = |text: &str, at: &std::ops::Range<usize>| {
        format!("{}{}{}", &text[..at.start], plus_power(&text[at.clone()], 4), &text[at.end..])
    };
    let (vk, proof, public) =
        (text(data!("mul.vkey.json")), text(data!("mul.proof.json")), text(data!("mul.public.json")));
    assert_eq!((numbers(vk).len(), numbers(proof).len(), numbers(public).len()), (3 + 3 * 6 + 12 + 9, 12, 2));
    for at in numbers(vk) {
        refused(VerificationKey::<Bn254>::parse(changed(vk, &at).as_bytes()), &["expected "]);
    }
    for at in numbers(proof) {
        refused(Proof::<Bn254>::parse(changed(proof, &at).as_bytes()), &["expected "]);
    }
    for at in numbers(public) {
        let changed = changed(public, &at);
        refused(json::parse_public(changed.as_bytes(), CurveId::Bn254), &["below the scalar field modulus"]);
        refused(json::parse_public(changed.as_bytes(), CurveId::Bls12_381), &["below the scalar field modulus"]);
    }
}

#[test]
fn z_is_one_or_all_of_it_zero() {
    let proof = text(data!("mul.proof.json"));
    let one = "  [\n   \"1\",\n   \"0\"\n  ]";
    assert_eq!(proof.matches(one).count(), 1);
    for z in ["[\"1\", \"7\"]", "[\"0\", \"1\"]", "[\"0\", \"7\"]", "[\"2\", \"0\"]"] {
        refused(Proof::<Bn254>::parse(proof.replace(one, z).as_bytes()), &["pi_b", "expected z to be 1"]);
    }
    let infinity = Proof::<Bn254>::parse(proof.replace(one, "[\"0\", \"0\"]").as_bytes()).unwrap();
    assert_eq!(infinity.b, tandem_ops::Point([0; 16]));
}

#[test]
fn points_of_a_key_are_counted_and_placed() {
    type Vk = VerificationKey<Bn254>;
    let vk = text(data!("mul.vkey.json"));
    for (says, part) in
        [(0, "expected 1 points, one more than nPublic, found 3"), (1, "expected 2 points"), (3, "expected 4")]
    {
        let changed = vk.replace("\"nPublic\": 2", &format!("\"nPublic\": {says}"));
        refused(Vk::parse(changed.as_bytes()), &["IC: ", part]);
    }
    // What is counted first need not be points: nothing of it is read then.
    let many = format!("[{}1]", "1,".repeat(1000));
    let at = vk.find("\"IC\": ").unwrap() + 6;
    refused(Vk::parse(format!("{}{many}}}", &vk[..at]).as_bytes()), &["IC: expected 3 points", "found 1001"]);
    let p = "21888242871839275222246405745257275088696311157297823662689037894645226208583";
    let last = vk[at..].rfind("\"1\"").unwrap() + at;
    let z = format!("{}\"2\"{}", &vk[..last], &vk[last + 3..]);
    refused(Vk::parse(z.as_bytes()), &["line ", "IC[2]: expected z to be 1"]);
    let quotes: Vec<_> = vk[at..].match_indices('"').map(|(i, _)| at + i).collect();
    for (number, point) in [(0, 0), (1, 0), (3, 1), (4, 1), (6, 2), (7, 2)] {
        let wrong = format!("{}{p}{}", &vk[..quotes[2 * number] + 1], &vk[quotes[2 * number + 1]..]);
        let place = format!("IC[{point}]: expected coordinates below the base field modulus");
        refused(Vk::parse(wrong.as_bytes()), &["line ", &place]);
    }
}

#[test]
fn public_values_are_read_against_their_count() {
    let read = |text: &str, expected| json::parse_public_of(text.as_bytes(), CurveId::Bn254, expected);
    assert_eq!(read("[]", 0).unwrap(), []);
    assert_eq!(read("[\"7\", 8]", 2).unwrap(), [Canonical([7, 0, 0, 0]), Canonical([8, 0, 0, 0])]);
    for (text, has, expected) in
        [("[]", 1, 0), ("[\"1\"]", 0, 1), ("[1,2]", 3, 2), ("[1,2,3]", 1, 3)].map(|(t, e, h)| (t, h, e))
    {
        refused(read(text, expected), &[&format!("{has} public values; the verification key has {expected}")]);
    }
    // Those behind the last that counts are no more than counted.
    refused(
        read(&format!("[1{}]", ",{\"a\": [1, \"x\"]}".repeat(5000)), 1),
        &["5001 public values; the verification key has 1"],
    );
    refused(read("[1, 2", 1), &["line 1"]);
    refused(read("[1, 2]]", 2), &["line 1"]);
}
