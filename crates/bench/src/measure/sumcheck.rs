//! Sumchecks over tables that lie on the lanes. The proof is verified and compared with the CPU's before times are told.

use super::random;
use std::time::Instant;
use tandem_engine::gpus::{self, Opened};
use tandem_engine::{DeviceChoice, DeviceReport, Error, FieldId, Result};
use tandem_ops::cpu::Cpu;
use tandem_ops::ntt::MAX_SHARDS;
use tandem_ops::sumcheck::{host_rows, prove, verify, Proved, SumcheckField};
use tandem_ops::{Backend, Bls12_381, Bn254, Goldilocks, Lane, Sumcheck};

/// What is proved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) field: FieldId,
    pub(crate) tables: usize,
    pub(crate) log_n: u32,
    /// Rows from which on the host goes on, if not as the library has it.
    pub(crate) host_rows: Option<usize>,
}

/// What computes.
pub(crate) struct Sumchecks {
    on: Opened,
    report: DeviceReport,
}

/// Times of sumchecks.
pub(crate) struct Times {
    pub(crate) seconds: Vec<f64>,
    /// Over how many lanes the tables were.
    pub(crate) lanes: usize,
}

impl Sumchecks {
    /// Opens up to `lanes` lanes of `choice`.
    ///
    /// # Errors
    /// As [`tandem_engine::Engine::open`].
    pub(crate) fn open(choice: &DeviceChoice, lanes: usize) -> Result<Self> {
        let (on, why) = gpus::open(choice, lanes)?;
        let report = on.report(why);
        Ok(Sumchecks { on, report })
    }

    /// What was opened.
    pub(crate) fn report(&self) -> &DeviceReport {
        &self.report
    }

    /// Seconds from the first call to the proof, for each of `runs` after one to warm up.
    ///
    /// # Errors
    /// Not enough memory; a proof is wrong; there is no sumcheck over the field.
    pub(crate) fn bench(&self, shape: &Shape, runs: usize) -> Result<Times> {
        match &self.on {
            Opened::Cpu(cpu) => bench_in(cpu, shape, runs),
            Opened::Cuda(cuda) => bench_in(cuda, shape, runs),
        }
    }

    /// Bytes a second that the first lane's memory reads and writes when it copies, which is what a bound is made of.
    ///
    /// # Errors
    /// Not enough memory.
    pub(crate) fn memory_rate(&self) -> Result<f64> {
        match &self.on {
            Opened::Cpu(cpu) => copy_rate(cpu),
            Opened::Cuda(cuda) => copy_rate(cuda),
        }
    }
}

fn copy_rate(backend: &impl Backend) -> Result<f64> {
    const WORDS: usize = 1 << 27;
    let from = backend.alloc::<u64>(Lane(0), WORDS)?;
    let mut least = f64::INFINITY;
    for _ in 0..6 {
        backend.synchronize()?;
        let started = Instant::now();
        let copy = backend.copy(&from, 0..WORDS, Lane(0))?;
        backend.synchronize()?;
        least = least.min(started.elapsed().as_secs_f64());
        drop(copy);
    }
    Ok(2.0 * 8.0 * WORDS as f64 / least)
}

fn bench_in<B>(backend: &B, shape: &Shape, runs: usize) -> Result<Times>
where
    B: Sumcheck<Bn254> + Sumcheck<Bls12_381> + Sumcheck<Goldilocks>,
{
    match shape.field {
        FieldId::Bn254 => bench_on::<Bn254, B>(backend, shape, runs),
        FieldId::Bls12_381 => bench_on::<Bls12_381, B>(backend, shape, runs),
        FieldId::Goldilocks => bench_on::<Goldilocks, B>(backend, shape, runs),
        FieldId::BabyBear => Err(Error::input("there are no sumchecks over baby-bear")),
    }
}

/// Makes numbers of words that are below every modulus of what may be any.
fn below(bytes: &mut [u8]) {
    bytes.iter_mut().skip(7).step_by(8).for_each(|top| *top &= 0x1f);
}

/// Challenges that are hashes of all that was told.
fn transcript<F: SumcheckField>() -> impl FnMut(&[F::Challenge]) -> F::Challenge {
    let mut hasher = blake3::Hasher::new_derive_key("tandem bench sumcheck");
    move |values| {
        hasher.update(bytemuck::cast_slice(values));
        let mut r = F::Challenge::default();
        let bytes = bytemuck::bytes_of_mut(&mut r);
        hasher.finalize_xof().fill(bytes);
        below(bytes);
        r
    }
}

type Tables<B, F> = Vec<Vec<<B as Backend>::Buf<<F as tandem_ops::NttField>::Element>>>;

/// The tables, dealt to shards on as many lanes.
fn upload<F: SumcheckField, B: Backend>(backend: &B, tables: &[&[F::Element]], shards: usize) -> Result<Tables<B, F>> {
    let mut dealt = Vec::new();
    for shard in 0..shards {
        let mut bufs = Vec::new();
        for table in tables {
            let mut part = tandem_ops::memory::reserve("bench sumcheck", table.len() / shards)?;
            part.extend(table.iter().skip(shard).step_by(shards).copied());
            bufs.push(backend.upload(Lane(shard), &part)?);
        }
        dealt.push(bufs);
    }
    Ok(dealt)
}

fn proof<F: SumcheckField, B: Sumcheck<F>>(backend: &B, shards: &Tables<B, F>, for_host: usize) -> Result<Proved<F>> {
    let shards: Vec<Vec<_>> = shards.iter().map(|shard| shard.iter().collect()).collect();
    let shards: Vec<&[_]> = shards.iter().map(|shard| &shard[..]).collect();
    Ok(prove::<F, B>(backend, &shards, for_host, transcript::<F>())?)
}

fn bench_on<F: SumcheckField, B: Sumcheck<F>>(backend: &B, shape: &Shape, runs: usize) -> Result<Times> {
    let n = 1usize << shape.log_n;
    let lanes = 1 << backend.lanes().min(MAX_SHARDS).min(n).ilog2();
    let len = n.checked_mul(shape.tables).ok_or_else(|| Error::input("--log-n: too many elements"))?;
    let mut elements = tandem_ops::memory::filled("bench sumcheck", len, F::Element::default())?;
    random::fill(bytemuck::cast_slice_mut(&mut elements), below);
    let tables: Vec<&[F::Element]> = elements.chunks_exact(n).collect();
    let shards = upload::<F, B>(backend, &tables, lanes)?;
    let for_host = shape.host_rows.unwrap_or_else(|| host_rows(shape.tables));
    let mut seconds = Vec::with_capacity(runs);
    let mut last = None;
    for run in 0..=runs {
        backend.synchronize()?;
        let started = Instant::now();
        let proved = proof::<F, B>(backend, &shards, for_host)?;
        if run > 0 {
            seconds.push(started.elapsed().as_secs_f64());
        }
        last = Some(proved);
    }
    drop(shards);
    let cpu = Cpu::new(1);
    let expected = proof::<F, Cpu>(&cpu, &upload::<F, Cpu>(&cpu, &tables, 1)?, 0)?;
    let verified = verify::<F>(&expected.0, shape.log_n as usize, transcript::<F>())?;
    if last.as_ref() != Some(&expected) || verified != expected.1 {
        return Err(Error::Device(format!("a sumcheck of 2^{} is wrong: nothing to measure", shape.log_n)));
    }
    Ok(Times { seconds, lanes })
}
