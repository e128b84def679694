//! Witnesses.

use crate::resident::StagedFor;
use crate::{Error, KeyInfo, Result};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tandem_formats::{Sides, SidesRef, Wtns, WtnsHeader};
use tandem_groth16::{Evaluations, Witness as Values};
use tandem_ops::{Bls12_381, Bn254, Canonical, Curve, CurveId, HostBuf};
use zeroize::Zeroizing;

/// The values of a circuit's wires. A secret: wiped when dropped. A clone is the same values, not a copy of them.
#[derive(Clone)]
pub struct Witness {
    pub(crate) values: AnyValues,
    pub(crate) path: PathBuf,
    pub(crate) seconds: f64,
}

impl Witness {
    /// Reads a `.wtns` file, or what comes out of a pipe, into ordinary memory. For several proofs,
    /// [`crate::Engine::read_witness`] does it better.
    ///
    /// # Errors
    /// [`Error::BadInput`] that names the file and the place in it.
    pub fn read(path: &Path) -> Result<Witness> {
        Self::read_in(path, None, |count| HostBuf::zeros(count).ok())
    }

    /// Reads a `.wtns` file for a key ([`Witness::read`]): a witness of another curve or with another number of values is refused before its values are read.
    ///
    /// # Errors
    /// As for [`Witness::read`]; [`Error::BadInput`] for a witness of another circuit.
    pub fn read_for(path: &Path, key: &KeyInfo) -> Result<Witness> {
        Self::read_in(path, Some(key), |count| HostBuf::zeros(count).ok())
    }

    /// Reads a `.wtns` from front to back for a key ([`Witness::read_for`]); `name` stands for it in messages.
    pub(crate) fn read_from(
        from: impl std::io::Read,
        name: &Path,
        key: &KeyInfo,
        room: impl Fn(usize) -> Option<HostBuf<Canonical>>,
    ) -> Result<Witness> {
        tandem_ops::threads::ready()?;
        let started = Instant::now();
        if !key.has_circuit {
            return Self::of_both(Wtns::read_with_sides(from, name, key.sides(), room)?, name, started);
        }
        let expected = WtnsHeader { curve: key.curve, count: key.variables as u32 };
        let Wtns { curve, values } = Wtns::read_in(from, name, expected, room)?;
        let values = AnyValues::new(curve, values).map_err(|e| Error::prover(e, name))?;
        Ok(Witness { values, path: name.into(), seconds: started.elapsed().as_secs_f64() })
    }

    pub(crate) fn read_in(
        path: &Path,
        key: Option<&KeyInfo>,
        room: impl Fn(usize) -> Option<HostBuf<Canonical>>,
    ) -> Result<Witness> {
        tandem_ops::threads::ready()?;
        let started = Instant::now();
        if let Some(key) = key.filter(|key| !key.has_circuit) {
            return Self::of_both(Wtns::open_with_sides(path, key.sides(), room)?, path, started);
        }
        // A key's file holds the number in 32 bits.
        let expected = key.map(|key| WtnsHeader { curve: key.curve, count: key.variables as u32 });
        let Wtns { curve, values } = Wtns::open_in(path, expected, room)?;
        let values = AnyValues::new(curve, values).map_err(|e| Error::prover(e, path))?;
        Ok(Witness { values, path: path.into(), seconds: started.elapsed().as_secs_f64() })
    }

    /// A witness with the sides that its file has.
    fn of_both((witness, sides): (Wtns, Option<Sides>), path: &Path, started: Instant) -> Result<Witness> {
        let failed = |e| Error::prover(e, path);
        let mut values = AnyValues::new(witness.curve, witness.values).map_err(failed)?;
        if let (AnyValues::Bls12_381(of), Some(Sides { a, b, in_a, in_b })) = (&values, sides) {
            let evaluations = Evaluations::check(a, b, in_a, in_b).map_err(failed)?;
            values = AnyValues::Bls12_381(of.clone().with_evaluations(evaluations));
        }
        Ok(Witness { values, path: path.into(), seconds: started.elapsed().as_secs_f64() })
    }

    /// Writes a `.wtns` file with the sides of the constraints, which this has from [`Witness::with_circuit`] or
    /// [`Engine::assignment`](crate::Engine::assignment). A proof with a key of bellperson needs nothing else. The same witness gives the
    /// same bytes.
    ///
    /// # Errors
    /// This has no sides; writing fails.
    pub fn write_with_sides(&self, out: impl Write) -> io::Result<()> {
        let none = || io::Error::new(io::ErrorKind::InvalidInput, "the witness has no sides of constraints");
        let AnyValues::Bls12_381(values) = &self.values else { return Err(none()) };
        let sides = values.evaluations().ok_or_else(none)?;
        let (in_a, in_b) = (sides.named_in_a(), sides.named_in_b());
        let sides = SidesRef { a: sides.a(), b: sides.b(), in_a, in_b };
        Wtns::write_with_sides(out, Bls12_381::ID, values.values(), sides)
    }

    /// Takes the bytes of a `.wtns` file. They are the caller's to wipe.
    ///
    /// # Errors
    /// [`Error::BadInput`] that names the place in them.
    pub fn from_bytes(bytes: &[u8]) -> Result<Witness> {
        let started = Instant::now();
        let Wtns { curve, values } = Wtns::parse(bytes).map_err(|e| e.in_file(Path::new("the witness")))?;
        Self::from_canonical(curve, values, started)
    }

    /// Takes the values as little-endian 64-bit limbs, each below the curve's scalar modulus. They are wiped when
    /// the witness is dropped.
    ///
    /// # Errors
    /// [`Error::BadInput`] if one is not below the modulus.
    pub fn from_values(curve: CurveId, values: Vec<[u64; 4]>) -> Result<Witness> {
        let started = Instant::now();
        let values = Zeroizing::new(values);
        let mut own = HostBuf::<Canonical>::zeros(values.len())?;
        own.iter_mut().zip(values.iter()).for_each(|(to, &limbs)| *to = Canonical(limbs));
        Self::from_canonical(curve, own, started)
    }

    pub(crate) fn from_canonical(
        curve: CurveId,
        values: impl Into<HostBuf<Canonical>>,
        started: Instant,
    ) -> Result<Witness> {
        tandem_ops::threads::ready()?;
        let path = PathBuf::new();
        let values = AnyValues::new(curve, values).map_err(|e| Error::prover(e, &path))?;
        Ok(Witness { values, path, seconds: started.elapsed().as_secs_f64() })
    }

    /// The curve whose scalar field the values belong to.
    pub fn curve(&self) -> CurveId {
        match self.values {
            AnyValues::Bn254(_) => CurveId::Bn254,
            AnyValues::Bls12_381(_) => CurveId::Bls12_381,
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        match &self.values {
            AnyValues::Bn254(values) => values.len(),
            AnyValues::Bls12_381(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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

/// A witness that was uploaded for one proof with a key, by [`crate::Engine::stage`]. A secret: wiped when dropped, on the host and on
/// the device.
pub struct StagedWitness {
    pub(crate) witness: Witness,
    pub(crate) staged: Option<StagedFor>,
}

impl StagedWitness {
    /// Whether it is on the key's device, or on its way there. If not, the proof uploads it.
    pub fn is_on_device(&self) -> bool {
        self.staged.is_some()
    }

    /// The witness as it is on the host. To drop the last clone of it takes as long as to overwrite it, which another thread may do.
    pub fn witness(&self) -> &Witness {
        &self.witness
    }

    /// The witness as it is on the host.
    pub fn into_witness(self) -> Witness {
        self.witness
    }
}

/// Values of either curve.
#[derive(Clone)]
pub(crate) enum AnyValues {
    Bn254(Values<Bn254>),
    Bls12_381(Values<Bls12_381>),
}

impl AnyValues {
    fn new(curve: CurveId, values: impl Into<HostBuf<Canonical>>) -> tandem_groth16::Result<Self> {
        Ok(match curve {
            CurveId::Bn254 => AnyValues::Bn254(Values::new(values)?),
            CurveId::Bls12_381 => AnyValues::Bls12_381(Values::new(values)?),
        })
    }
}
