//! A backend that fails, or errs, at chosen steps of its work.

use ark_ec::PrimeGroup;
use std::ops::Range;
use std::sync::Arc;
use tandem_ops::cpu::{self, Cpu};
use tandem_ops::{
    timeline::{Moved, Recorder},
    Backend, Canonical, Curve, DeviceKind, Error, Gather, Group, Info, Lane, Mont, Msm, MsmRequest, Ntt, NttField,
    NttOp, NttProducts, Pending, Pieces, Result, ScalarRecoding, Scalars, SpMv, Span, SpanId, SparseRows, Stored,
    Timeline, Wire,
};

/// What happens at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It is done right.
    Right,
    /// The device has too little memory.
    OutOfMemory,
    /// The device fails.
    Broken,
    /// The result is wrong.
    Wrong,
}

/// Says what happens at the next step, which is an operation with this name.
pub type Script = dyn Fn(&'static str) -> Step + Send + Sync;

/// The CPU as a GPU whose every call follows a script.
pub struct Stepped {
    pub(crate) cpu: Cpu,
    script: Arc<Script>,
}

/// Whether the result of the step `op` is to be wrong.
fn follow(script: &Script, op: &'static str) -> Result<bool> {
    let device = || "Stepped GPU (cuda:7)".to_string();
    match script(op) {
        Step::Right => Ok(false),
        Step::Wrong => Ok(true),
        Step::OutOfMemory => Err(Error::OutOfMemory { op, device: device(), wanted: 9, free: 7 }),
        Step::Broken => {
            let (code_name, text) = ("cudaErrorIllegalAddress".into(), "an illegal memory access".into());
            Err(Error::Device { op, device: device(), code: 700, code_name, text })
        }
    }
}

impl Stepped {
    /// One GPU.
    pub fn new(script: Arc<Script>) -> Self {
        Stepped { cpu: Cpu::new(1), script }
    }

    /// Whether the result of `op` is to be wrong.
    pub(crate) fn step(&self, op: &'static str) -> Result<bool> {
        follow(&*self.script, op)
    }

    pub(crate) fn spoil<T: Wire>(&self, is_wrong: bool, buf: &mut cpu::Buf<T>) -> Result<()> {
        if let (true, Some(last)) = (is_wrong, buf.as_slice().last()) {
            let (mut last, at) = (*last, buf.as_slice().len() - 1);
            bytemuck::bytes_of_mut(&mut last)[0] ^= 1;
            self.cpu.write(buf, at, &[last])?;
        }
        Ok(())
    }

    pub(crate) fn spoiled<T: Wire>(&self, is_wrong: bool, mut buf: cpu::Buf<T>) -> Result<cpu::Buf<T>> {
        self.spoil(is_wrong, &mut buf)?;
        Ok(buf)
    }
}

impl Backend for Stepped {
    type Buf<T: Wire> = cpu::Buf<T>;

    fn info(&self) -> Info {
        Info { kind: DeviceKind::Cuda, lane_names: vec!["Stepped GPU (cuda:7)".into()], ..self.cpu.info() }
    }
    fn lanes(&self) -> usize {
        1
    }
    fn alloc<T: Wire>(&self, lane: Lane, len: usize) -> Result<cpu::Buf<T>> {
        let is_wrong = self.step("alloc")?;
        self.spoiled(is_wrong, self.cpu.alloc(lane, len)?)
    }
    fn write<T: Wire>(&self, dst: &mut cpu::Buf<T>, at: usize, src: &[T]) -> Result<()> {
        let is_wrong = self.step("write")?;
        self.cpu.write(dst, at, src)?;
        self.spoil(is_wrong, dst)
    }
    fn copy<T: Wire>(&self, src: &cpu::Buf<T>, range: Range<usize>, lane: Lane) -> Result<cpu::Buf<T>> {
        let is_wrong = self.step("copy")?;
        self.spoiled(is_wrong, self.cpu.copy(src, range, lane)?)
    }
    fn join<T: Wire>(&self, joins: &[(Lane, Pieces<'_, cpu::Buf<T>>)]) -> Result<Vec<cpu::Buf<T>>> {
        let is_wrong = self.step("join")?;
        let mut joined = self.cpu.join(joins)?;
        joined.last_mut().map_or(Ok(()), |last| self.spoil(is_wrong, last))?;
        Ok(joined)
    }
    fn download<T: Wire>(&self, src: &cpu::Buf<T>) -> Result<Pending<Vec<T>>> {
        let is_wrong = self.step("download")?;
        let copy = self.cpu.copy(src, 0..src.as_slice().len(), Lane(0))?;
        self.cpu.download(&self.spoiled(is_wrong, copy)?)
    }
    fn synchronize(&self) -> Result<()> {
        self.step("synchronize").map(drop)
    }
    fn timeline(&self) -> Timeline {
        Timeline::new(self.cpu.id(), Taken { script: self.script.clone(), spans: Box::new(self.cpu.recorder()) })
    }
}

/// A timeline that follows the script where its spans are taken.
struct Taken {
    script: Arc<Script>,
    spans: Box<dyn Recorder>,
}

impl Recorder for Taken {
    fn begin(&self, lane: Lane, queue: usize, name: &'static str) -> SpanId {
        self.spans.begin(lane, queue, name)
    }
    fn end(&self, span: SpanId, moved: Moved) {
        self.spans.end(span, moved);
    }
    fn take(&self) -> Result<Vec<Span>> {
        follow(&*self.script, "take spans")?;
        self.spans.take()
    }
}

impl<F: NttField> Ntt<F> for Stepped {
    fn ntt_batch(&self, data: &mut cpu::Buf<F::Element>, count: usize, op: NttOp<F::Element>) -> Result<()> {
        let is_wrong = self.step("ntt")?;
        Ntt::<F>::ntt_batch(&self.cpu, data, count, op)?;
        self.spoil(is_wrong, data)
    }
}

impl<C: Curve> NttProducts<C> for Stepped {}

impl Gather for Stepped {
    type Map = <Cpu as Gather>::Map;

    fn load_map(&self, lane: Lane, map: &[u32], bound: usize) -> Result<Self::Map> {
        self.step("load_map")?;
        self.cpu.load_map(lane, map, bound)
    }
    fn gather<T: Wire>(&self, map: &Self::Map, from: &cpu::Buf<T>, to: &mut cpu::Buf<T>) -> Result<()> {
        let is_wrong = self.step("gather")?;
        self.cpu.gather(map, from, to)?;
        self.spoil(is_wrong, to)
    }
}

impl<C: Curve> SpMv<C> for Stepped {
    type Matrix = <Cpu as SpMv<C>>::Matrix;

    fn load_matrix(&self, lane: Lane, matrix: &SparseRows) -> Result<Self::Matrix> {
        self.step("load_matrix")?;
        SpMv::<C>::load_matrix(&self.cpu, lane, matrix)
    }
    fn spmv(&self, matrix: &Self::Matrix, x: &cpu::Buf<Canonical>, out: &mut cpu::Buf<Mont>) -> Result<()> {
        let is_wrong = self.step("spmv")?;
        SpMv::<C>::spmv(&self.cpu, matrix, x, out)?;
        self.spoil(is_wrong, out)
    }
}

impl<C: Curve> ScalarRecoding<C> for Stepped {
    type Plan = <Cpu as ScalarRecoding<C>>::Plan;
    type Entries = <Cpu as ScalarRecoding<C>>::Entries;

    fn plan(&self, lane: Lane, request: &MsmRequest) -> Result<Self::Plan> {
        self.step("plan")?;
        ScalarRecoding::<C>::plan(&self.cpu, lane, request)
    }
    fn recode(&self, plan: &Self::Plan, scalars: Scalars<'_, Self>) -> Result<Self::Entries> {
        self.step("digits")?;
        let scalars = match scalars {
            Scalars::Canonical(k) => Scalars::Canonical(k),
            Scalars::Mont(k) => Scalars::Mont(k),
        };
        ScalarRecoding::<C>::recode(&self.cpu, plan, scalars)
    }
}

impl<G: Group> Msm<G> for Stepped {
    type Bases = <Cpu as Msm<G>>::Bases;

    fn load(&self, lane: Lane, plan: &Self::Plan, set: usize, points: Stored<'_, G::Point>) -> Result<Self::Bases> {
        self.step("load")?;
        Msm::<G>::load(&self.cpu, lane, plan, set, points)
    }
    fn msm(&self, bases: &Self::Bases, digits: &Self::Entries, timeline: &Timeline) -> Result<Pending<G::Ark>> {
        let mut sum = match self.step("msm")? {
            false => return Msm::<G>::msm(&self.cpu, bases, digits, timeline),
            true => Msm::<G>::msm(&self.cpu, bases, digits, timeline)?.wait()?,
        };
        sum += G::Ark::generator();
        Ok(Pending::ready(sum))
    }
}
