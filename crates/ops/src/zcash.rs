//! Points of BLS12-381 as zcash and bellperson write them, uncompressed.
//!
//! Coordinates are 48 bytes each, most significant first: x and y in G1; x.c1, x.c0, y.c1, y.c0 in G2. The first three bits of the
//! first byte are flags (compressed, infinity, sign), which are all 0 in a finite point.

use crate::curve::{Bls12_381, Group, G1, G2};
use crate::{Error, Outside, Result, Wire};
use ark_bls12_381::{Fq, Fq2};
use ark_ec::AffineRepr;
use ark_ff::{BigInt, PrimeField};
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Bytes of a coordinate.
const COORDINATE: usize = 48;
/// Bytes of the largest point.
const POINT_MAX: usize = 4 * COORDINATE;

/// Why bytes are no finite point's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The flag of compressed points is set.
    Compressed,
    /// It is the point at infinity.
    Infinity,
    /// A coordinate is not below the modulus, or a flag is set that no finite point has.
    NotBelow,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Compressed => "expected an uncompressed point, found a compressed one",
            Fault::Infinity => "expected a finite point, found the point at infinity",
            Fault::NotBelow => "expected coordinates below the base field modulus, found a larger one",
        })
    }
}

/// Points that have such bytes, as many as on the wire. Whether they lie on the curve is not looked at.
pub trait Encoded: Wire {
    /// The point with these bytes, of which there are `size_of::<Self>()`.
    ///
    /// # Errors
    /// They are no finite point's.
    fn decode(bytes: &[u8]) -> std::result::Result<Self, Fault>;
    /// The bytes of a point. Infinity has its flag alone.
    fn encode(&self) -> Vec<u8>;
}

/// The flags that no finite point has, and a point of zeros, which the wire takes for infinity.
fn check_flags(bytes: &[u8]) -> std::result::Result<(), Fault> {
    match bytes {
        [first, ..] if first & 0x80 != 0 => Err(Fault::Compressed),
        [first, ..] if first & 0x40 != 0 => Err(Fault::Infinity),
        // On no curve here.
        _ if bytes.iter().all(|b| *b == 0) => Err(Fault::Infinity),
        _ => Ok(()),
    }
}

fn coordinate(bytes: &[u8]) -> std::result::Result<Fq, Fault> {
    let mut limbs = [0; COORDINATE / 8];
    for (limb, bytes) in limbs.iter_mut().rev().zip(bytes.chunks_exact(8)) {
        *limb = bytes.iter().fold(0, |limb, byte| limb << 8 | u64::from(*byte));
    }
    Fq::from_bigint(BigInt(limbs)).ok_or(Fault::NotBelow)
}

fn append(bytes: &mut Vec<u8>, x: Fq) {
    bytes.extend(x.into_bigint().0.iter().rev().flat_map(|limb| limb.to_be_bytes()));
}

/// Infinity's bytes.
fn infinity(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    bytes[0] = 0x40;
    bytes
}

impl Encoded for <G1<Bls12_381> as Group>::Point {
    fn decode(bytes: &[u8]) -> std::result::Result<Self, Fault> {
        check_flags(bytes)?;
        let (x, y) = bytes.split_at(COORDINATE);
        Ok(G1::<Bls12_381>::from_ark(&G1::<Bls12_381>::from_xy(coordinate(x)?, coordinate(y)?)))
    }
    fn encode(&self) -> Vec<u8> {
        let Some((x, y)) = G1::<Bls12_381>::to_ark(self).xy() else { return infinity(2 * COORDINATE) };
        let mut bytes = Vec::with_capacity(2 * COORDINATE);
        [x, y].into_iter().for_each(|c| append(&mut bytes, c));
        bytes
    }
}

impl Encoded for <G2<Bls12_381> as Group>::Point {
    fn decode(bytes: &[u8]) -> std::result::Result<Self, Fault> {
        check_flags(bytes)?;
        let at = |i: usize| coordinate(&bytes[i * COORDINATE..(i + 1) * COORDINATE]);
        let (x, y) = (Fq2::new(at(1)?, at(0)?), Fq2::new(at(3)?, at(2)?));
        Ok(G2::<Bls12_381>::from_ark(&G2::<Bls12_381>::from_xy(x, y)))
    }
    fn encode(&self) -> Vec<u8> {
        let Some((x, y)) = G2::<Bls12_381>::to_ark(self).xy() else { return infinity(4 * COORDINATE) };
        let mut bytes = Vec::with_capacity(4 * COORDINATE);
        [x.c1, x.c0, y.c1, y.c0].into_iter().for_each(|c| append(&mut bytes, c));
        bytes
    }
}

/// Such points in a part of `F`, decoded as they are read: at the same places, as points on the wire.
pub struct Decoding<F> {
    from: F,
    /// Where they lie.
    range: Range<usize>,
    name: &'static str,
    size: usize,
    decode: fn(&mut [u8]) -> std::result::Result<(), Fault>,
}

/// Replaces bytes of a point by those on the wire.
fn in_place<P: Encoded>(bytes: &mut [u8]) -> std::result::Result<(), Fault> {
    let point = P::decode(bytes)?;
    bytes.copy_from_slice(bytemuck::bytes_of(&point));
    Ok(())
}

impl<F> Decoding<F> {
    /// The points `P` in the bytes `range` of `from`, which messages call `name`.
    pub fn new<P: Encoded>(from: F, range: Range<usize>, name: &'static str) -> Self {
        Self { from, range, name, size: size_of::<P>(), decode: in_place::<P> }
    }
}

impl<'o, F> Outside for Decoding<F>
where
    F: Deref<Target = dyn Outside + 'o> + Send + Sync,
{
    fn read(&self, at: usize, into: &mut [u8]) -> Result<()> {
        let Range { start, end } = self.range;
        if at < start || at.checked_add(into.len()).is_none_or(|last| last > end) {
            return Err(Error::invalid("read", format!("{} bytes at {at} of {start}..{end}", into.len())));
        }
        let decode = |bytes: &mut [u8], at: usize| {
            let unread = |(i, fault)| Error::Unread { reason: format!("point {i} of section {}: {fault}", self.name) };
            let first = (at - start) / self.size;
            let failed = (first..).zip(bytes.chunks_exact_mut(self.size));
            failed.into_iter().try_for_each(|(i, point)| (self.decode)(point).map_err(|fault| unread((i, fault))))
        };
        let mut done = 0;
        while done < into.len() {
            let (from, rest) = (at + done, &mut into[done..]);
            let within = (from - start) % self.size;
            done += if within == 0 && rest.len() >= self.size {
                let whole = rest.len() / self.size * self.size;
                self.from.read(from, &mut rest[..whole])?;
                decode(&mut rest[..whole], from)?;
                whole
            } else {
                // A part of a point, at an end of what is asked for.
                let mut point = [0; POINT_MAX];
                let point = &mut point[..self.size];
                self.from.read(from - within, point)?;
                decode(point, from - within)?;
                let part = rest.len().min(self.size - within);
                rest[..part].copy_from_slice(&point[within..within + part]);
                part
            };
        }
        Ok(())
    }

    fn block_bytes(&self) -> usize {
        self.from.block_bytes()
    }

    fn later(&self) -> Option<Arc<dyn Outside>> {
        let Decoding { range, name, size, decode, .. } = self;
        let from = self.from.later()?;
        Some(Arc::new(Decoding { from, range: range.clone(), name, size: *size, decode: *decode }))
    }
}

/// Bytes in memory as if they lay outside it.
pub struct InMemory<'a>(pub &'a [u8]);

impl Outside for InMemory<'_> {
    fn read(&self, at: usize, into: &mut [u8]) -> Result<()> {
        let found = at.checked_add(into.len()).and_then(|end| self.0.get(at..end));
        let past = || Error::invalid("read", format!("{} bytes at {at} of {}", into.len(), self.0.len()));
        let found = found.ok_or_else(past)?;
        into.copy_from_slice(found);
        Ok(())
    }
    fn block_bytes(&self) -> usize {
        1 << 20
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Curve, Stored};
    use ark_ec::{CurveGroup, PrimeGroup};
    use ark_ff::UniformRand;
    use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};

    type P1 = <G1<Bls12_381> as Group>::Point;
    type P2 = <G2<Bls12_381> as Group>::Point;

    fn random<G: Group<Curve = Bls12_381>>(count: usize) -> Vec<G::Point> {
        let mut rng = ChaCha8Rng::seed_from_u64(count as u64);
        let mut draw = || G::Ark::generator() * <Bls12_381 as Curve>::Fr::rand(&mut rng);
        (0..count).map(|_| G::from_ark(&draw().into_affine())).collect()
    }

    /// The generators as the specification of the zcash format prints them.
    #[test]
    fn generators_have_their_published_bytes() {
        let of = |text: &str| -> Vec<u8> {
            (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
        };
        let g1 = of("17f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb\
                     08b3f481e3aaa0f1a09e30ed741d8ae4fcf5e095d5d00af600db18cb2c04b3edd03cc744a2888ae40caa232946c5e7e1");
        let point = G1::<Bls12_381>::from_ark(&ark_bls12_381::G1Projective::generator().into_affine());
        assert_eq!((P1::decode(&g1), point.encode()), (Ok(point), g1));
        let g2 = of("13e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e\
                     024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8\
                     0606c4a02ea734cc32acd2b02bc28b99cb3e287e85a763af267492ab572e99ab3f370d275cec1da1aaa9075ff05f79be\
                     0ce5d527727d6e118cc9cdc6da2e351aadfd9baa8cbdd3a76d429a695160d12c923ac9cc3baca289e193548608b82801");
        let point = G2::<Bls12_381>::from_ark(&ark_bls12_381::G2Projective::generator().into_affine());
        assert_eq!((P2::decode(&g2), point.encode()), (Ok(point), g2));
    }

    fn what_is_no_finite_point<G: Group<Curve = Bls12_381>>()
    where
        G::Point: Encoded,
    {
        for point in random::<G>(20) {
            let bytes = point.encode();
            assert_eq!(G::Point::decode(&bytes), Ok(point));
            for (flag, fault) in [(0x80, Fault::Compressed), (0x40, Fault::Infinity), (0x20, Fault::NotBelow)] {
                let mut bytes = bytes.clone();
                bytes[0] |= flag;
                assert_eq!(G::Point::decode(&bytes), Err(fault));
            }
            for at in (0..bytes.len()).step_by(COORDINATE) {
                let mut bytes = bytes.clone();
                // The modulus itself, and one less.
                let mut p: Vec<u8> = Fq::MODULUS.0.iter().rev().flat_map(|limb| limb.to_be_bytes()).collect();
                bytes[at..at + COORDINATE].copy_from_slice(&p);
                assert_eq!(G::Point::decode(&bytes), Err(Fault::NotBelow));
                p[COORDINATE - 1] -= 1;
                bytes[at..at + COORDINATE].copy_from_slice(&p);
                assert!(G::Point::decode(&bytes).is_ok());
            }
        }
        let infinity = G::from_ark(&G::Ark::default().into_affine()).encode();
        assert_eq!(infinity[0], 0x40);
        assert_eq!(G::Point::decode(&infinity), Err(Fault::Infinity));
        assert_eq!(G::Point::decode(&vec![0; infinity.len()]), Err(Fault::Infinity));
    }

    #[test]
    fn flags_and_large_coordinates_are_refused() {
        what_is_no_finite_point::<G1<Bls12_381>>();
        what_is_no_finite_point::<G2<Bls12_381>>();
    }

    fn decoded<G: Group<Curve = Bls12_381>>()
    where
        G::Point: Encoded,
    {
        let (points, size) = (random::<G>(7), size_of::<G::Point>());
        let mut file = vec![0xff; 13];
        file.extend(points.iter().flat_map(Encoded::encode));
        file.extend([0xff; 5]);
        let (file, range) = (InMemory(&file), 13..13 + 7 * size);
        let decoding = Decoding::new::<G::Point>(&file as &dyn Outside, range.clone(), "A");
        let stored = Stored::<G::Point>::outside(&decoding, range.clone()).unwrap();
        assert!(stored.load().unwrap().values().iter().eq(points.iter().copied()));
        // Any part of it, whole points or not.
        let wire: &[u8] = bytemuck::cast_slice(&points);
        for from in (0..wire.len()).step_by(19) {
            for to in (from..=wire.len()).step_by(17) {
                let mut part = vec![0; to - from];
                decoding.read(13 + from, &mut part).unwrap();
                assert_eq!(part, &wire[from..to], "{from}..{to}");
            }
        }
        for (at, len) in [(12, 1), (13, 7 * size + 1), (13 + 7 * size, 1), (usize::MAX, 2)] {
            assert!(decoding.read(at, &mut vec![0; len]).is_err());
        }
        let mut bad = file.0.to_vec();
        bad[13 + 4 * size] |= 0x40;
        let bad = InMemory(&bad);
        let decoding = Decoding::new::<G::Point>(&bad as &dyn Outside, range, "A");
        let message = decoding.read(13, &mut vec![0; 7 * size]).unwrap_err().to_string();
        assert_eq!(message, "point 4 of section A: expected a finite point, found the point at infinity");
        decoding.read(13, &mut vec![0; 4 * size]).unwrap();
    }

    #[test]
    fn points_are_decoded_as_they_are_read() {
        decoded::<G1<Bls12_381>>();
        decoded::<G2<Bls12_381>>();
    }
}
