//! Hashes of columns from host memory, and Merkle trees over leaves that lie on the lanes.

use super::random;
use ark_ff::BigInt;
use std::time::Instant;
use tandem_engine::gpus::{self, Opened};
use tandem_engine::{check_leaves, CurveId, DeviceChoice, DeviceReport, Error, Hasher, Result, ELEMENT_BYTES};
use tandem_ops::poseidon::{self, Tables};
use tandem_ops::{
    Bls12_381, Bn254, Buffer, Canonical, Curve, Lane, MerkleTree, Mont, Poseidon, PoseidonParams, Unaligned, VecOps,
};

/// What hashes.
pub(crate) enum Hashes {
    /// Columns of host memory; with `is_pinned` of such as the devices copy from themselves.
    Columns { hasher: Hasher, curve: CurveId, is_pinned: bool },
    /// Trees.
    Trees { on: Box<Opened>, curve: CurveId, params: PoseidonParams, report: DeviceReport },
}

impl Hashes {
    /// Opens the devices of `choice` for columns.
    ///
    /// # Errors
    /// As [`tandem_engine::Engine::open`].
    pub(crate) fn columns(
        choice: &DeviceChoice,
        curve: CurveId,
        params: PoseidonParams,
        is_pinned: bool,
    ) -> Result<Self> {
        Ok(Hashes::Columns { hasher: Hasher::open(choice, curve, params)?, curve, is_pinned })
    }

    /// Opens them for trees.
    ///
    /// # Errors
    /// As [`tandem_engine::Engine::open`].
    pub(crate) fn trees(choice: &DeviceChoice, curve: CurveId, params: PoseidonParams) -> Result<Self> {
        let (on, why) = gpus::open(choice, usize::MAX)?;
        let report = on.report(why);
        Ok(Hashes::Trees { on: Box::new(on), curve, params, report })
    }

    /// What was opened.
    pub(crate) fn report(&self) -> &DeviceReport {
        match self {
            Hashes::Columns { hasher, .. } => hasher.report(),
            Hashes::Trees { report, .. } => report,
        }
    }

    /// Seconds that each of `runs` took to hash 2^`log_n` columns, from host memory to host memory on all lanes, or to build the Merkle
    /// tree over as many leaves that lie on the lanes.
    ///
    /// # Errors
    /// 2^`log_n` is no power of a tree's arity; not enough memory; a result is wrong.
    pub(crate) fn bench(&self, log_n: u32, runs: usize) -> Result<Vec<f64>> {
        let count = size(log_n)?;
        let no_elements = || Error::input("no whole elements");
        match self {
            Hashes::Columns { hasher, curve, is_pinned: true } => {
                let mut pinned = hasher.host_buf(count * hasher.params().arity() * ELEMENT_BYTES)?;
                draw(&mut pinned);
                columns(hasher, *curve, Unaligned::new(&pinned).ok_or_else(no_elements)?, count, runs)
            }
            Hashes::Columns { hasher, curve, .. } => {
                let bytes = elements(count * hasher.params().arity())?;
                columns(hasher, *curve, Unaligned::new(&bytes).ok_or_else(no_elements)?, count, runs)
            }
            Hashes::Trees { on, curve, params, .. } => {
                check_leaves(*params, count)?;
                let bytes = elements(count)?;
                let leaves = Unaligned::new(&bytes).ok_or_else(no_elements)?;
                match (&**on, curve) {
                    (Opened::Cpu(cpu), CurveId::Bn254) => trees::<Bn254, _>(cpu, *params, leaves, runs),
                    (Opened::Cpu(cpu), CurveId::Bls12_381) => trees::<Bls12_381, _>(cpu, *params, leaves, runs),
                    (Opened::Cuda(cuda), CurveId::Bn254) => trees::<Bn254, _>(cuda, *params, leaves, runs),
                    (Opened::Cuda(cuda), CurveId::Bls12_381) => trees::<Bls12_381, _>(cuda, *params, leaves, runs),
                }
            }
        }
    }
}

fn columns(
    hasher: &Hasher,
    curve: CurveId,
    elements: Unaligned<'_, Canonical>,
    hashes: usize,
    runs: usize,
) -> Result<Vec<f64>> {
    let mut out = vec![Canonical::default(); hashes];
    let mut seconds = Vec::with_capacity(runs);
    for run in 0..=runs {
        out.fill(Canonical::default());
        let started = Instant::now();
        hasher.columns(elements, &mut out)?;
        if run > 0 {
            seconds.push(started.elapsed().as_secs_f64());
        }
    }
    match curve {
        CurveId::Bn254 => check_columns::<Bn254>(hasher.params(), elements, &out)?,
        CurveId::Bls12_381 => check_columns::<Bls12_381>(hasher.params(), elements, &out)?,
    }
    Ok(seconds)
}

/// Fails unless some of the hashes `out` are those of the CPU.
fn check_columns<C: Curve>(
    params: PoseidonParams,
    elements: Unaligned<'_, Canonical>,
    out: &[Canonical],
) -> Result<()> {
    let hashes = out.len();
    let (tables, arity) = (Tables::<C::Fr>::new(params), params.arity());
    for i in [0, hashes / 3, hashes / 2, hashes - 1] {
        let column = elements.slice(i * arity..(i + 1) * arity);
        let column = column.iter().map(|x| C::Fr::from(BigInt(x.0)));
        if out[i] != C::canonical(tables.hash(column, &mut Vec::new())) {
            return Err(Error::Device(format!("hash {i} of {hashes} is wrong: nothing to measure")));
        }
    }
    Ok(())
}

fn trees<C: Curve, B: Poseidon<C> + VecOps<C>>(
    backend: &B,
    params: PoseidonParams,
    leaves: Unaligned<'_, Canonical>,
    runs: usize,
) -> Result<Vec<f64>> {
    let hasher = Poseidon::<C>::hasher(backend, params)?;
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
        let tree = MerkleTree::on_lanes::<C>(backend, &hasher, params, copies, height)?;
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
