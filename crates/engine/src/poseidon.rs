//! Poseidon on any device, with neither the curve nor the device in any type.

use crate::gpus::{self, Opened};
use crate::{CurveId, DeviceChoice, DeviceReport, Error, Result};
use ark_ff::{BigInt, PrimeField};
use tandem_ops::poseidon;
use tandem_ops::{
    with_curve, Bls12_381, Bn254, Canonical, Curve, HostBuf, MerkleTree, Poseidon, PoseidonParams, Unaligned, VecOps,
};

/// Bytes of an element: an integer below the modulus, least significant byte first.
pub const ELEMENT_BYTES: usize = 32;

/// A hash whose constants are on a device.
pub struct Hasher {
    on: Box<dyn Hashing>,
    curve: CurveId,
    params: PoseidonParams,
    report: DeviceReport,
}

impl Hasher {
    /// Opens the devices of `choice` and loads the constants.
    ///
    /// # Errors
    /// As [`crate::Engine::open`].
    pub fn open(choice: &DeviceChoice, curve: CurveId, params: PoseidonParams) -> Result<Self> {
        match gpus::open(choice, usize::MAX)? {
            (Opened::Cpu(cpu), why) => Self::on(cpu, curve, params, why),
            (Opened::Cuda(cuda), why) => Self::on(cuda, curve, params, why),
        }
    }

    fn on<B>(backend: B, curve: CurveId, params: PoseidonParams, why: String) -> Result<Self>
    where
        B: Poseidon<Bn254> + VecOps<Bn254> + Poseidon<Bls12_381> + VecOps<Bls12_381>,
    {
        let info = backend.info();
        let report = DeviceReport { kind: info.kind, lanes: info.lane_names, why };
        let on: Box<dyn Hashing> = with_curve!(curve, C => Box::new(OnBackend::<C, B>::new(backend, params)?));
        Ok(Hasher { on, curve, params, report })
    }

    /// What was opened.
    pub fn report(&self) -> &DeviceReport {
        &self.report
    }

    /// What is computed.
    pub fn params(&self) -> PoseidonParams {
        self.params
    }

    /// The index of the first element of `elements` that is not below the modulus.
    pub fn first_too_large(&self, elements: Unaligned<'_, Canonical>) -> Option<usize> {
        let modulus = with_curve!(self.curve, C => <C as Curve>::Fr::MODULUS);
        elements.iter().position(|x| BigInt(x.0) >= modulus)
    }

    /// The hashes of the columns of a matrix that lies column by column, on all lanes.
    ///
    /// # Errors
    /// The elements are not as many as the arity says for each of `out`; the device failed.
    pub fn columns(&self, elements: Unaligned<'_, Canonical>, out: &mut [Canonical]) -> Result<()> {
        self.on.columns(elements, out)
    }

    /// The root of the Merkle tree over `leaves`, on all lanes.
    ///
    /// # Errors
    /// Their number is no power of the arity; not enough memory; the device failed.
    pub fn root(&self, leaves: Unaligned<'_, Canonical>) -> Result<Canonical> {
        check_leaves(self.params, leaves.len())?;
        self.on.root(leaves)
    }

    /// Memory that the devices copy from as fast as they can.
    ///
    /// # Errors
    /// Not enough memory.
    pub fn host_buf(&self, bytes: usize) -> Result<HostBuf<u8>> {
        self.on.host_bytes(bytes)
    }
}

/// Fails unless a tree over so many leaves can be built.
///
/// # Errors
/// Their number is no power of the arity.
pub fn check_leaves(params: PoseidonParams, leaves: usize) -> Result<()> {
    let arity = params.arity();
    match poseidon::height(leaves, arity) {
        Some(_) => Ok(()),
        None => Err(Error::input(format!("a tree of {leaves} leaves: expected a power of the arity {arity}"))),
    }
}

/// A hash on a backend, for one curve.
trait Hashing: Send + Sync {
    fn columns(&self, elements: Unaligned<'_, Canonical>, out: &mut [Canonical]) -> Result<()>;
    fn root(&self, leaves: Unaligned<'_, Canonical>) -> Result<Canonical>;
    fn host_bytes(&self, bytes: usize) -> Result<HostBuf<u8>>;
}

struct OnBackend<C: Curve, B: Poseidon<C>> {
    backend: B,
    hasher: B::Hasher,
    params: PoseidonParams,
}

impl<C: Curve, B: Poseidon<C> + VecOps<C>> OnBackend<C, B> {
    fn new(backend: B, params: PoseidonParams) -> Result<Self> {
        let hasher = Poseidon::<C>::hasher(&backend, params)?;
        Ok(OnBackend { backend, hasher, params })
    }
}

impl<C: Curve, B: Poseidon<C> + VecOps<C>> Hashing for OnBackend<C, B> {
    fn columns(&self, elements: Unaligned<'_, Canonical>, out: &mut [Canonical]) -> Result<()> {
        Ok(Poseidon::<C>::poseidon_columns(&self.backend, &self.hasher, elements, out)?)
    }

    fn root(&self, leaves: Unaligned<'_, Canonical>) -> Result<Canonical> {
        let tree = MerkleTree::build::<C>(&self.backend, &self.hasher, self.params, leaves)?;
        Ok(tree.root::<C>(&self.backend)?)
    }

    fn host_bytes(&self, bytes: usize) -> Result<HostBuf<u8>> {
        Ok(self.backend.host_buf(bytes)?)
    }
}
