//! Poseidon on any device, with neither the curve nor the device in any type.

use crate::gpus::{self, Opened};
use crate::{random, CurveId, DeviceChoice, DeviceReport, Error, Result};
use ark_ff::{BigInt, PrimeField};
use std::time::Instant;
use tandem_ops::poseidon::{self, Tables};
use tandem_ops::{
    Bls12_381, Bn254, Buffer, Canonical, Curve, HostBuf, Lane, MerkleTree, Mont, Poseidon, PoseidonParams, Unaligned,
    VecOps,
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
        let on: Box<dyn Hashing> = match curve {
            CurveId::Bn254 => Box::new(OnBackend::<Bn254, B>::new(backend, params)?),
            CurveId::Bls12_381 => Box::new(OnBackend::<Bls12_381, B>::new(backend, params)?),
        };
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
        let modulus = match self.curve {
            CurveId::Bn254 => <Bn254 as Curve>::Fr::MODULUS,
            CurveId::Bls12_381 => <Bls12_381 as Curve>::Fr::MODULUS,
        };
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
        self.check_leaves(leaves.len())?;
        self.on.root(leaves)
    }

    /// Seconds that each of `runs` took to hash 2^`log_n` columns from host memory to host memory, on all lanes. With
    /// `is_pinned` they lie in memory that the devices copy from themselves.
    ///
    /// # Errors
    /// Not enough memory; a hash is wrong.
    pub fn bench_columns(&self, log_n: u32, runs: usize, is_pinned: bool) -> Result<Vec<f64>> {
        let hashes = size(log_n)?;
        let count = hashes * self.params.arity();
        let no_elements = || Error::input("no whole elements");
        if is_pinned {
            let mut pinned = self.on.host_bytes(count * ELEMENT_BYTES)?;
            draw(&mut pinned);
            return self.on.bench_columns(Unaligned::new(&pinned).ok_or_else(no_elements)?, hashes, runs);
        }
        let bytes = elements(count)?;
        self.on.bench_columns(Unaligned::new(&bytes).ok_or_else(no_elements)?, hashes, runs)
    }

    /// Seconds that each of `runs` took to build the Merkle tree over 2^`log_n` leaves that lie on the lanes.
    ///
    /// # Errors
    /// 2^`log_n` is no power of the arity; not enough memory; the tree is wrong.
    pub fn bench_tree(&self, log_n: u32, runs: usize) -> Result<Vec<f64>> {
        let leaves = size(log_n)?;
        self.check_leaves(leaves)?;
        let bytes = elements(leaves)?;
        let leaves = Unaligned::new(&bytes).ok_or_else(|| Error::input("no whole elements"))?;
        self.on.bench_tree(leaves, runs)
    }

    fn check_leaves(&self, leaves: usize) -> Result<()> {
        let arity = self.params.arity();
        match poseidon::height(leaves, arity) {
            Some(_) => Ok(()),
            None => Err(Error::input(format!("a tree of {leaves} leaves: expected a power of the arity {arity}"))),
        }
    }
}

/// A hash on a backend, for one curve.
trait Hashing: Send + Sync {
    fn columns(&self, elements: Unaligned<'_, Canonical>, out: &mut [Canonical]) -> Result<()>;
    fn root(&self, leaves: Unaligned<'_, Canonical>) -> Result<Canonical>;
    fn host_bytes(&self, bytes: usize) -> Result<HostBuf<u8>>;
    fn bench_columns(&self, elements: Unaligned<'_, Canonical>, hashes: usize, runs: usize) -> Result<Vec<f64>>;
    fn bench_tree(&self, leaves: Unaligned<'_, Canonical>, runs: usize) -> Result<Vec<f64>>;
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

    fn bench_columns(&self, elements: Unaligned<'_, Canonical>, hashes: usize, runs: usize) -> Result<Vec<f64>> {
        let mut out = vec![Canonical::default(); hashes];
        let mut seconds = Vec::with_capacity(runs);
        for run in 0..=runs {
            out.fill(Canonical::default());
            let started = Instant::now();
            self.columns(elements, &mut out)?;
            if run > 0 {
                seconds.push(started.elapsed().as_secs_f64());
            }
        }
        let (tables, arity) = (Tables::<C::Fr>::new(self.params), self.params.arity());
        for i in [0, hashes / 3, hashes / 2, hashes - 1] {
            let column = elements.slice(i * arity..(i + 1) * arity);
            let column = column.iter().map(|x| C::Fr::from(BigInt(x.0)));
            if out[i] != C::canonical(tables.hash(column, &mut Vec::new())) {
                return Err(Error::Device(format!("hash {i} of {hashes} is wrong: nothing to measure")));
            }
        }
        Ok(seconds)
    }

    fn bench_tree(&self, leaves: Unaligned<'_, Canonical>, runs: usize) -> Result<Vec<f64>> {
        let (backend, params) = (&self.backend, self.params);
        let height = poseidon::height(leaves.len(), params.arity()).unwrap_or(0);
        let (below, split) = poseidon::subtrees(params.arity(), height, backend.lanes());
        let size = params.arity().pow(below);
        let mut resident = Vec::new();
        for (lane, range) in split.iter().enumerate().filter(|(_, range)| !range.is_empty()) {
            let range = range.start * size..range.end * size;
            let values: Vec<Canonical> = leaves.slice(range.clone()).iter().collect();
            let integers = backend.upload(Lane(lane), &values)?;
            let mut piece = backend.alloc::<Mont>(Lane(lane), range.len())?;
            VecOps::<C>::to_mont(backend, &integers, &mut piece)?;
            resident.push((range.start, piece));
        }
        let mut seconds = Vec::with_capacity(runs);
        for run in 0..=runs {
            let copies = resident
                .iter()
                .map(|(first, piece)| Ok::<_, Error>((*first, backend.copy(piece, 0..piece.len(), piece.lane())?)));
            let copies = copies.collect::<Result<Vec<_>>>()?;
            backend.synchronize()?;
            let started = Instant::now();
            let tree = MerkleTree::on_lanes::<C>(backend, &self.hasher, params, copies, height)?;
            backend.synchronize()?;
            if run > 0 {
                seconds.push(started.elapsed().as_secs_f64());
            }
            if run == runs {
                let tables = Tables::<C::Fr>::new(params);
                let root = tree.root::<C>(backend)?;
                for index in [0, leaves.len() / 3, leaves.len() - 1] {
                    if !tree.path::<C>(backend, index)?.verify::<C>(&tables, root, leaves.get(index))? {
                        let problem = format!("leaf {index} of {} is not in its tree", leaves.len());
                        return Err(Error::Device(format!("{problem}: nothing to measure")));
                    }
                }
            }
        }
        Ok(seconds)
    }
}

fn size(log_n: u32) -> Result<usize> {
    match log_n {
        0..=28 => Ok(1 << log_n),
        _ => Err(Error::input(format!("size 2^{log_n}: expected 2^0 to 2^28"))),
    }
}

/// Pseudo-random elements, integers below 2^253, made by all processors.
fn elements(count: usize) -> Result<Vec<u8>> {
    let bytes = count * ELEMENT_BYTES;
    let mut all = Vec::new();
    all.try_reserve_exact(bytes).map_err(|_| Error::Device(format!("the CPU has no {bytes} bytes of memory")))?;
    all.resize(bytes, 0u8);
    draw(&mut all);
    Ok(all)
}

fn draw(bytes: &mut [u8]) {
    random::fill(bytes, |part| part.chunks_exact_mut(ELEMENT_BYTES).for_each(|x| x[ELEMENT_BYTES - 1] &= 0x1f));
}
