//! Primitives over vectors of scalars that lie on the first lane. What comes out is compared with the CPU's before times are told.

use super::random;
use std::time::Instant;
use tandem_engine::gpus::{self, Opened};
use tandem_engine::{CurveId, DeviceChoice, DeviceReport, Error, Result};
use tandem_ops::cpu::Cpu;
use tandem_ops::{
    with_curve, Backend, BatchInverse, Buffer, Curve, Gather, Lane, Mont, PlonkRows, QuotientAt, QuotientRows, Scan,
    VecOps,
};

/// What is done with a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Operation {
    /// All inverses
    BatchInverse,
    /// Of each element the product of those before it, as in a grand product
    PrefixProduct,
    /// The value of a polynomial at a point
    Evaluate,
    /// A polynomial divided by X - b
    Divide,
    /// Elements picked at random
    Gather,
    /// A multiple of a vector added to another
    AddScaled,
    /// The sum of multiples of fifteen vectors, as PLONK's linearisation is
    Combined,
    /// What PLONK's gates say
    GateRows,
    /// What rows give to one side of PLONK's grand product
    PermutedRows,
    /// PLONK's quotient on a coset
    QuotientRows,
}

impl Operation {
    /// All of them.
    pub(crate) const ALL: [Operation; 10] = [
        Operation::BatchInverse,
        Operation::PrefixProduct,
        Operation::Evaluate,
        Operation::Divide,
        Operation::Gather,
        Operation::AddScaled,
        Operation::Combined,
        Operation::GateRows,
        Operation::PermutedRows,
        Operation::QuotientRows,
    ];

    /// Vectors that it reads beside the one that it changes: operands that are one vector would be read once.
    fn operands(self) -> usize {
        match self {
            Operation::AddScaled => 1,
            Operation::GateRows => 8,
            Operation::PermutedRows => 6,
            Operation::Combined | Operation::QuotientRows => 15,
            _ => 0,
        }
    }
}

/// What computes.
pub(crate) struct Vectors {
    on: Opened,
    report: DeviceReport,
}

impl Vectors {
    /// Opens the first lane of `choice`.
    ///
    /// # Errors
    /// As [`tandem_engine::Engine::open`].
    pub(crate) fn open(choice: &DeviceChoice) -> Result<Self> {
        let (on, why) = gpus::open(choice, 1)?;
        let report = on.report(why);
        Ok(Vectors { on, report })
    }

    /// What was opened.
    pub(crate) fn report(&self) -> &DeviceReport {
        &self.report
    }

    /// Seconds that each of `runs` took with `n` elements, after one to warm up.
    ///
    /// # Errors
    /// Not enough memory; a result is wrong.
    pub(crate) fn bench(&self, curve: CurveId, operation: Operation, n: usize, runs: usize) -> Result<Vec<f64>> {
        match &self.on {
            Opened::Cpu(cpu) => with_curve!(curve, C => bench_on::<C, _>(cpu, operation, n, runs)),
            Opened::Cuda(cuda) => with_curve!(curve, C => bench_on::<C, _>(cuda, operation, n, runs)),
        }
    }
}

/// What a backend has for an operation.
struct Loaded<B: Gather> {
    elements: B::Buf<Mont>,
    operands: Vec<B::Buf<Mont>>,
    map: B::Map,
    point: Mont,
}

impl<B: Gather> Loaded<B> {
    fn new(backend: &B, operation: Operation, elements: &[Mont], map: &[u32], point: Mont) -> Result<Self> {
        let (elements, map) = (backend.upload(Lane(0), elements)?, backend.load_map(Lane(0), map, elements.len())?);
        let copy = |_| backend.copy(&elements, 0..elements.len(), Lane(0));
        let operands = (0..operation.operands()).map(copy).collect::<tandem_ops::Result<_>>()?;
        Ok(Loaded { elements, operands, map, point })
    }

    /// Does `operation` with `data`, a copy of the elements, and gives the number that it brings, if it does.
    fn step<C: Curve>(&self, backend: &B, operation: Operation, data: &mut B::Buf<Mont>) -> Result<Option<Mont>>
    where
        B: BatchInverse<C> + Scan<C> + VecOps<C> + PlonkRows<C>,
    {
        let of: Vec<_> = self.operands.iter().collect();
        match operation {
            Operation::BatchInverse => BatchInverse::<C>::batch_inverse(backend, data)?,
            Operation::PrefixProduct => return Ok(Some(Scan::<C>::prefix_product(backend, data)?.wait()?)),
            Operation::Evaluate => return Ok(Some(Scan::<C>::evaluate(backend, data, self.point)?.wait()?)),
            Operation::Divide => Scan::<C>::divide(backend, data, 1, self.point)?,
            Operation::Gather => backend.gather(&self.map, &self.elements, data)?,
            Operation::AddScaled => VecOps::<C>::add_scaled(backend, data, 0, 1, of[0], self.point)?,
            Operation::Combined => {
                let terms: Vec<_> = of.iter().map(|&of| (of, self.point)).collect();
                *data = VecOps::<C>::combined(backend, data.len(), &terms)?;
            }
            Operation::QuotientRows => {
                let rows = QuotientRows {
                    columns: [of[0], of[1], of[2]],
                    product: [of[3], of[4]],
                    selectors: [of[5], of[6], of[7], of[8], of[9]],
                    permutation: [of[10], of[11], of[12]],
                    x: of[13],
                    first: of[14],
                };
                let [alpha, beta, gamma, public] = [self.point; 4];
                // Those of nearly every key.
                let k = [2, 3].map(|k: u64| C::mont(C::Fr::from(k)));
                *data = backend.quotient_rows(&rows, &QuotientAt { alpha, beta, gamma, k, public })?;
            }
            Operation::GateRows => {
                *data = backend.gate_rows([of[0], of[1], of[2]], [of[3], of[4], of[5], of[6], of[7]])?;
            }
            Operation::PermutedRows => {
                let (columns, places) = ([of[0], of[1], of[2]], [of[3], of[4], of[5]]);
                *data = backend.permuted_rows(columns, places, [self.point; 3], self.point)?;
            }
        }
        Ok(None)
    }
}

fn bench_on<C: Curve, B>(backend: &B, operation: Operation, n: usize, runs: usize) -> Result<Vec<f64>>
where
    B: BatchInverse<C> + Scan<C> + VecOps<C> + PlonkRows<C> + Gather,
{
    let mut elements = tandem_ops::memory::filled("bench vector", n, Mont::default())?;
    // Below every modulus.
    random::fill(bytemuck::cast_slice_mut(&mut elements), |part| {
        part.iter_mut().skip(31).step_by(32).for_each(|top| *top &= 0x1f);
    });
    let map: Vec<u32> = elements.iter().map(|x| (x.0[0] % n as u64) as u32).collect();
    let point = elements[n / 2];
    let loaded = Loaded::new(backend, operation, &elements, &map, point)?;
    let mut seconds = Vec::with_capacity(runs);
    for run in 0..=runs {
        let mut data = backend.copy(&loaded.elements, 0..n, Lane(0))?;
        backend.synchronize()?;
        let started = Instant::now();
        let number = loaded.step::<C>(backend, operation, &mut data)?;
        backend.synchronize()?;
        if run > 0 {
            seconds.push(started.elapsed().as_secs_f64());
        }
        if run == runs {
            let cpu = Cpu::new(1);
            let reference = Loaded::new(&cpu, operation, &elements, &map, point)?;
            let mut expected = cpu.upload(Lane(0), &elements)?;
            let same = number == reference.step::<C>(&cpu, operation, &mut expected)?;
            let got = backend.download(&data)?.wait()?;
            let first = got.iter().zip(expected.as_slice()).position(|(a, b)| a != b);
            if let Some(i) = first.or((!same || got.len() != n).then_some(n)) {
                return Err(Error::Device(format!("{operation:?}: element {i} of {n} is wrong: nothing to measure")));
            }
        }
    }
    Ok(seconds)
}
