//! Keys of bellperson: read as they were written, and refused with every kind of damage.

use ark_ec::{CurveGroup, PrimeGroup};
use std::io::Write;
use std::ops::Range;
use tandem_formats::{
    write_params, FileKind, FormatError, ParamsFile, ParamsOutline, ParamsPoints, ParamsSizes, Result, Zkey,
};
use tandem_ops::zcash::Encoded;
use tandem_ops::{Bls12_381, Curve, Group};

type G1 = <Bls12_381 as Curve>::G1;
type G2 = <Bls12_381 as Curve>::G2;
type P1 = <G1 as Group>::Point;
type P2 = <G2 as Group>::Point;

fn multiple<G: Group>(k: u64) -> G::Point {
    G::from_ark(&(G::Ark::generator() * <G::Curve as Curve>::Fr::from(k)).into_affine())
}

fn multiples<G: Group>(first: u64, count: usize) -> Vec<G::Point> {
    (first..).take(count).map(multiple::<G>).collect()
}

/// Points of IC, H, L, A and B.
type Counts = [usize; 5];

struct Made {
    points: ParamsPoints,
    g1: [Vec<P1>; 5],
    b2: Vec<P2>,
    bytes: Vec<u8>,
}

fn made([ic, h, l, a, b]: Counts) -> Made {
    let points = ParamsPoints {
        alpha_1: multiple::<G1>(2),
        beta_1: multiple::<G1>(3),
        beta_2: multiple::<G2>(3),
        gamma_2: multiple::<G2>(5),
        delta_1: multiple::<G1>(7),
        delta_2: multiple::<G2>(7),
    };
    let g1 = [(10, ic), (30, h), (60, l), (100, a), (200, b)].map(|(first, count)| multiples::<G1>(first, count));
    let b2 = multiples::<G2>(200, b);
    let mut bytes = Vec::new();
    write_params(&mut bytes, &points, g1.each_ref().map(Vec::as_slice), &b2).unwrap();
    Made { points, g1, b2, bytes }
}

/// Two public wires and three private ones, of which A names two and B one.
const COUNTS: Counts = [3, 7, 3, 5, 1];

fn read(bytes: &[u8]) -> Result<ParamsOutline> {
    let outline = ParamsOutline::read(&bytes)?;
    outline.check_points(&bytes)?;
    Ok(outline)
}

fn refusal(what: &str, result: std::result::Result<ParamsOutline, FormatError>) -> String {
    let Err(error) = result else { panic!("{what}: was accepted") };
    let message = error.to_string();
    assert!(!message.contains('\n') && message.len() < 400, "{what}: {message}");
    message
}

fn points<P: Encoded>(bytes: &[u8], range: &Range<usize>) -> Vec<P> {
    bytes[range.clone()].chunks_exact(size_of::<P>()).map(|point| P::decode(point).unwrap()).collect()
}

#[test]
fn what_was_written_is_read() {
    for counts in [COUNTS, [1, 0, 0, 1, 0], [1, 1, 4, 1, 5], [2, 63, 9, 11, 11], [4, 127, 0, 4, 4]] {
        let Made { points: single, g1: [ic, h, l, a, b1], b2, bytes } = made(counts);
        assert_eq!(FileKind::of(&bytes), Some(FileKind::Params));
        let outline = read(&bytes).unwrap();
        assert_eq!((outline.points, &outline.ic), (single, &ic));
        for (section, expected) in [(&outline.h, h), (&outline.l, l), (&outline.a, a), (&outline.b1, b1)] {
            assert_eq!(points::<P1>(&bytes, &section.bytes), expected, "{}", section.name);
            assert_eq!(section.points as usize, expected.len());
        }
        assert_eq!(points::<P2>(&bytes, &outline.b2.bytes), b2);
        let [ic, h, l, a, b] = counts.map(|count| count as u32);
        assert_eq!(outline.sizes(), ParamsSizes { variables: ic + l, publics: ic - 1, domain: h + 1, a, b });
        // The same from a file.
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        assert_eq!(ParamsFile::open(file.path()).unwrap().outline.sizes(), outline.sizes());
    }
}

/// A key that bellperson made: points of generators of its own, and fewer of A and B than there are wires.
#[test]
fn bellpersons_own_key_is_read_and_written() {
    let bytes = include_bytes!("data/bellperson.params").as_slice();
    let outline = read(bytes).unwrap();
    let ParamsSizes { variables, publics, domain, a, b } = outline.sizes();
    // The constant, two inputs, six values and an output of each of three rows; five rows with those of the sides, and three of inputs.
    assert_eq!((variables, publics, domain), (3 + 6 + 3, 2, 8));
    assert!((3..variables).contains(&a) && (1..variables).contains(&b), "{a} {b}");
    let [h, l, a, b1] =
        [&outline.h, &outline.l, &outline.a, &outline.b1].map(|section| points::<P1>(bytes, &section.bytes));
    let b2 = points::<P2>(bytes, &outline.b2.bytes);
    assert!(
        [&outline.ic, &h, &l, &a, &b1].into_iter().flatten().all(G1::is_on_curve) && b2.iter().all(G2::is_on_curve)
    );
    let mut written = Vec::new();
    write_params(&mut written, &outline.points, [&outline.ic, &h, &l, &a, &b1], &b2).unwrap();
    assert!(written == bytes);
}

#[test]
fn cut_anywhere() {
    let Made { bytes, .. } = made(COUNTS);
    for len in 0..bytes.len() {
        let message = refusal("cut", read(&bytes[..len]));
        assert!(message.contains("byte") || message.contains("empty file"), "{len}: {message}");
    }
    for more in [1, 4, 96] {
        let message = refusal("longer", read(&[bytes.as_slice(), &vec![0; more]].concat()));
        assert!(message.contains(&format!("found {more} bytes more")), "{message}");
    }
    // A file says its name.
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&bytes[..900]).unwrap();
    let message = ParamsFile::open(file.path()).unwrap_err().to_string();
    assert!(message.starts_with(file.path().to_str().unwrap()) && message.contains("IC"), "{message}");
}

/// Where the counts of IC, H, L, A, B1 and B2 stand.
fn count_places([ic, h, l, a, b]: Counts) -> [usize; 6] {
    let mut at = 3 * 96 + 3 * 192;
    [ic, h, l, a, b, 0].map(|points| {
        let place = at;
        at += 4 + 96 * points;
        place
    })
}

#[test]
fn counts_that_lie() {
    let Made { bytes, .. } = made(COUNTS);
    let places = count_places(COUNTS);
    let honest = [COUNTS[0], COUNTS[1], COUNTS[2], COUNTS[3], COUNTS[4], COUNTS[4]];
    for (place, honest) in places.into_iter().zip(honest) {
        let count: [u8; 4] = bytes[place..place + 4].try_into().unwrap();
        assert_eq!(u32::from_be_bytes(count) as usize, honest);
        let honest = honest as u32;
        for wrong in [0, honest - 1, honest + 1, honest << 24, 1 << 25, 1 << 31, u32::MAX - 1, u32::MAX] {
            if wrong == honest {
                continue;
            }
            let mut bytes = bytes.clone();
            bytes[place..place + 4].copy_from_slice(&wrong.to_be_bytes());
            let message = refusal("count", read(&bytes));
            assert!(message.contains("expected"), "{place}: {wrong}: {message}");
        }
    }
}

/// Counts that fill the file and are no circuit's.
#[test]
fn counts_that_do_not_belong_together() {
    for (counts, says) in [
        ([0, 7, 3, 5, 1], "IC, byte 864: expected a point for the constant 1, found none"),
        ([3, 6, 3, 5, 1], "H, byte 1156: expected a power of two less 1, up to 2^31 - 1 points, found 6"),
        ([3, 8, 3, 5, 1], "found 8"),
        ([3, 7, 3, 2, 1], "A, byte 2124: expected 3 to 6 points, found 2"),
        ([3, 7, 3, 7, 1], "expected 3 to 6 points, found 7"),
        ([3, 7, 3, 5, 7], "expected at most 6 points, found 7"),
    ] {
        let message = refusal("counts", read(&made(counts).bytes));
        assert!(message.contains(says), "{message}");
    }
    // B2 has another number of points than B1.
    let Made { points, g1, .. } = made(COUNTS);
    let mut bytes = Vec::new();
    write_params(&mut bytes, &points, g1.each_ref().map(Vec::as_slice), &multiples::<G2>(200, 2)).unwrap();
    let message = refusal("B2", read(&bytes));
    assert!(message.contains("B2") && message.contains("expected 1 points, as B1 has, found 2"), "{message}");
}

/// Sections of another size than memory has, in a file that is mostly a hole.
#[test]
fn a_file_of_holes_takes_no_memory() {
    let Made { points, .. } = made(COUNTS);
    let mut head = Vec::new();
    write_params(&mut head, &points, [&[], &[], &[], &[], &[]], &[]).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    let single = 3 * 96 + 3 * 192;
    let mut out = std::fs::File::create(file.path()).unwrap();
    out.write_all(&head[..single]).unwrap();
    // IC of 2^32 - 1 points, all of them holes.
    out.write_all(&u32::MAX.to_be_bytes()).unwrap();
    out.set_len(single as u64 + 4 + 96 * u64::from(u32::MAX) + 20).unwrap();
    let message = ParamsFile::open(file.path()).unwrap_err().to_string();
    assert!(message.contains("expected"), "{message}");
}

#[test]
fn points_that_are_none() {
    let Made { bytes, .. } = made(COUNTS);
    let outline = read(&bytes).unwrap();
    let (single, sizes) =
        (["alpha_1", "beta_1", "beta_2", "gamma_2", "delta_1", "delta_2"], [96, 96, 192, 192, 96, 192]);
    let mut places: Vec<(String, usize, usize)> = Vec::new();
    let mut at = 0;
    for (name, size) in single.into_iter().zip(sizes) {
        places.push((name.into(), at, size));
        at += size;
    }
    places.push(("IC, point 2".into(), 868 + 2 * 96, 96));
    for section in [&outline.h, &outline.l, &outline.a, &outline.b1] {
        let last = section.points as usize - 1;
        places.push((format!("{}, point {last}", section.name), section.bytes.start + 96 * last, 96));
    }
    places[10].0 = "B1, point 0".into();
    places.push(("B2, point 0".into(), outline.b2.bytes.start, 192));
    for (name, at, size) in places {
        let part = name.split(", ").collect::<Vec<_>>();
        for (bytes_of_point, says) in [
            (vec![0; size], "the point at infinity"),
            ([vec![0x40], vec![0; size - 1]].concat(), "the point at infinity"),
            ([vec![0x80], vec![1; size - 1]].concat(), "a compressed one"),
            (vec![0x1f; size], "a larger one"),
            (vec![0x3f; size], "a larger one"),
        ] {
            let mut bytes = bytes.clone();
            bytes[at..at + size].copy_from_slice(&bytes_of_point);
            let message = refusal(&name, read(&bytes));
            let is_placed = part.iter().all(|part| message.contains(part)) && message.contains(&format!("byte {at}"));
            assert!(is_placed && message.contains(says), "{name}: {message}");
        }
        // The last coordinate, too.
        let mut bytes = bytes.clone();
        bytes[at + size - 48..at + size].fill(0x1b);
        assert!(refusal(&name, read(&bytes)).contains("a larger one"));
    }
}

#[test]
fn every_byte_changed() {
    let Made { bytes, .. } = made(COUNTS);
    let mut changed = bytes.clone();
    for at in 0..bytes.len() {
        for mask in [0x01, 0x80, 0xff] {
            changed[at] ^= mask;
            if let Err(error) = read(&changed) {
                assert!(!error.to_string().contains('\n'), "byte {at}: {error}");
            }
            changed[at] ^= mask;
        }
    }
}

#[test]
fn other_kinds_of_file() {
    let zkey = include_bytes!("data/mul_bls.zkey").as_slice();
    let message = refusal("zkey", read(zkey));
    assert!(message.contains("this is a zkey file, expected a Groth16 key of bellperson (params)"), "{message}");
    let message = Zkey::<Bls12_381>::parse(&made(COUNTS).bytes).err().unwrap().to_string();
    assert!(message.contains("this is a Groth16 key of bellperson (params), expected a zkey file"), "{message}");
    for (bytes, says) in [(b"".as_slice(), "an empty file"), (b"{}", "a JSON file"), (b"text", "a text file")] {
        assert!(refusal("other", read(bytes)).contains(says));
    }
    assert_eq!(FileKind::of(&[0; 900]), None);
}
