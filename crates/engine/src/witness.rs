//! Witnesses.

use crate::{Error, Result};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tandem_formats::Wtns;
use tandem_ops::{Bls12_381, Bn254, Canonical, Curve, CurveId};
use zeroize::Zeroizing;

/// The values of a circuit's wires. A secret: wiped when dropped.
pub struct Witness {
    pub(crate) values: Wtns,
    pub(crate) path: PathBuf,
    pub(crate) seconds: f64,
}

impl Witness {
    /// Reads a `.wtns` file.
    ///
    /// # Errors
    /// [`Error::BadInput`] that names the file and the place in it.
    pub fn read(path: &Path) -> Result<Witness> {
        let started = Instant::now();
        let values = Wtns::open(path)?;
        Ok(Witness { values, path: path.into(), seconds: started.elapsed().as_secs_f64() })
    }

    /// Takes the values as little-endian 64-bit limbs, each below the curve's scalar modulus. They are wiped when
    /// the witness is dropped.
    ///
    /// # Errors
    /// [`Error::BadInput`] if one is not below the modulus.
    pub fn from_values(curve: CurveId, values: Vec<[u64; 4]>) -> Result<Witness> {
        let started = Instant::now();
        let values = Zeroizing::new(values);
        let mut own = Zeroizing::new(Vec::with_capacity(values.len()));
        own.extend(values.iter().map(|&limbs| Canonical(limbs)));
        Self::from_canonical(curve, own, started)
    }

    pub(crate) fn from_canonical(
        curve: CurveId,
        values: Zeroizing<Vec<Canonical>>,
        started: Instant,
    ) -> Result<Witness> {
        let below = match curve {
            CurveId::Bn254 => |x: &Canonical| Bn254::from_canonical(*x).is_some(),
            CurveId::Bls12_381 => |x: &Canonical| Bls12_381::from_canonical(*x).is_some(),
        };
        if let Some(at) = values.iter().position(|x| !below(x)) {
            return Err(Error::input(format!("value {at} of the witness is not below the scalar modulus of {curve}")));
        }
        let seconds = started.elapsed().as_secs_f64();
        Ok(Witness { values: Wtns { curve, values }, path: PathBuf::new(), seconds })
    }

    /// The curve whose scalar field the values belong to.
    pub fn curve(&self) -> CurveId {
        self.values.curve
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.values.values.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.values.is_empty()
    }

    /// Where it came from, for messages.
    pub(crate) fn name(&self) -> String {
        if self.path.as_os_str().is_empty() {
            "the witness".into()
        } else {
            self.path.display().to_string()
        }
    }
}
