//! What the texts are made of. Long lists become what they stand for one by one, so that they take no more memory than that.

use super::number::Number;
use super::Convert;
use crate::error::FormatError;
use crate::modulus;
use crate::zkey::G1Point;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;
use tandem_ops::{Canonical, Curve, CurveId};

/// x, y and z; z is 1 where the text leaves it out.
#[derive(serde::Deserialize)]
#[serde(untagged, expecting = "expected a point as [x, y, z], each a decimal string")]
pub(super) enum G1Text {
    Affine([Number; 2]),
    Projective([Number; 3]),
}

#[derive(serde::Deserialize)]
#[serde(untagged, expecting = "expected a point as [[x0, x1], [y0, y1], [z0, z1]], each a decimal string")]
pub(super) enum G2Text {
    Affine([[Number; 2]; 2]),
    Projective([[Number; 2]; 3]),
}

/// The points of a verification key, one for each public value and one more.
pub(super) struct IcText<C: Curve>(pub(super) Vec<G1Point<C>>);

impl<'de, C: Curve> Deserialize<'de> for IcText<C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Points<C>(PhantomData<C>);
        impl<'de, C: Curve> Visitor<'de> for Points<C> {
            type Value = IcText<C>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of points")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<IcText<C>, A::Error> {
                let convert = Convert::<C>::new();
                let mut points = Vec::new();
                while let Some(text) = list.next_element::<G1Text>()? {
                    let point = convert.g1(&text, "IC");
                    let place = |e: FormatError| {
                        // The place is the text's own.
                        A::Error::custom(format!("IC[{}]: {}", points.len(), e.problem()))
                    };
                    let point = point.map_err(place)?;
                    points.push(point);
                }
                Ok(IcText(points))
            }
        }
        deserializer.deserialize_seq(Points(PhantomData))
    }
}

/// Public values.
pub(super) struct PublicText {
    pub(super) curve: CurveId,
    /// So many are kept; those behind them are counted.
    pub(super) keep: usize,
}

/// What [`PublicText`] reads.
pub(super) struct Publics {
    /// The values that are kept, up to the first that is not below the modulus.
    pub(super) values: Vec<Canonical>,
    /// How many there are in the text.
    pub(super) count: usize,
    /// The index of a value that is not below the modulus.
    pub(super) above: Option<usize>,
}

impl<'de> DeserializeSeed<'de> for PublicText {
    type Value = Publics;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Publics, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for PublicText {
    type Value = Publics;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of numbers")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Publics, A::Error> {
        let mut read = Publics { values: Vec::new(), count: 0, above: None };
        while read.values.len() < self.keep && read.above.is_none() {
            let Some(Number(limbs)) = list.next_element()? else { break };
            let (value, high) = limbs.split_at(4);
            if high != [0, 0] || !modulus::is_below(value, modulus::scalar(self.curve)) {
                read.above = Some(read.count);
            } else {
                let mut canonical = Canonical::default();
                canonical.0.copy_from_slice(value);
                read.values.push(canonical);
            }
            read.count += 1;
        }
        while list.next_element::<IgnoredAny>()?.is_some() {
            read.count += 1;
        }
        Ok(read)
    }
}
