//! Rounds of a sumcheck (native/src/sumcheck/sumcheck.cuh).

use crate::backend::{Cuda, CudaBuf};
use crate::ffi;
use crate::lane::LaneCtx;
use std::ffi::c_void;
use std::sync::{Arc, PoisonError};
use tandem_cuda::ffi::tandem_stream;
use tandem_cuda::{DeviceBuffer, DevicePtr};
use tandem_ops::sumcheck::{check_challenge, check_rows, check_tables, RoundValues, SumcheckField, TABLES_MAX};
use tandem_ops::{Buffer, Error, FieldId, Lane, Pending, Result, Sumcheck, Wire};

const _: () = assert!(ffi::TANDEM_SUMCHECK_TABLES as usize == TABLES_MAX);
const _: () = assert!(ffi::TANDEM_SUMCHECK_VALUES as usize == TABLES_MAX + 1);

type Scratch = unsafe extern "C" fn(*const ffi::tandem_sumcheck_args, *mut usize) -> i32;
type Launcher = unsafe extern "C" fn(*const ffi::tandem_sumcheck_args, *mut c_void, usize, tandem_stream) -> i32;

fn launcher(op: &'static str, field: FieldId) -> Result<(Scratch, Launcher)> {
    match field {
        FieldId::Bn254 => Ok((ffi::tandem_sumcheck_bn254_scratch, ffi::tandem_sumcheck_bn254)),
        FieldId::Bls12_381 => Ok((ffi::tandem_sumcheck_bls12_381_scratch, ffi::tandem_sumcheck_bls12_381)),
        FieldId::Goldilocks => Ok((ffi::tandem_sumcheck_goldilocks_scratch, ffi::tandem_sumcheck_goldilocks)),
        FieldId::BabyBear => Err(Error::invalid(op, "there are no sumchecks over baby-bear")),
    }
}

/// Words of a number, the first of four.
fn words<T: Wire>(x: &T) -> [u64; 4] {
    let mut words = [0; 4];
    let bytes = bytemuck::bytes_of(x);
    bytemuck::bytes_of_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
    words
}

/// A round over buffers of one lane.
struct Round {
    op: &'static str,
    number: i32,
    tables: usize,
    n: usize,
}

impl Round {
    /// Launches it; `table` and `rows` are what its number says that it reads and writes.
    fn launch<F: SumcheckField>(
        &self,
        ctx: &Arc<LaneCtx>,
        table: [*const u64; TABLES_MAX],
        rows: *mut u64,
        r: F::Challenge,
    ) -> Result<Pending<RoundValues<F>>> {
        let kept = ctx.cache.of::<Done>();
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let done = kept.word(self.op, ctx)?;
        let mut args = ffi::tandem_sumcheck_args {
            table,
            rows,
            values: std::ptr::null_mut(),
            done,
            r: words(&r),
            n: self.n as u64,
            tables: self.tables as u32,
            op: self.number.cast_unsigned(),
        };
        let (scratch, launch) = launcher(self.op, F::FIELD)?;
        let mut bytes = 0;
        // SAFETY: the query reads the arguments and writes the number alone.
        ctx.launch(self.op, |_| unsafe { scratch(&args, &mut bytes) })?;
        // What is told leaves the kernel for the host; the sums of its blocks are overwritten when they are dropped.
        let partial = ctx.alloc::<u8>(self.op, bytes)?;
        let write = |values: *mut F::Challenge, stream| {
            args.values = values.cast();
            // SAFETY: the callers have checked that tables and rows have as many elements as the arguments say, in live buffers of the lane
            // whose stream this is.
            unsafe { launch(&args, partial.ptr().raw().cast(), bytes, stream) }
        };
        // SAFETY: a round writes TABLES_MAX + 1 values.
        let pending = unsafe { ctx.download_written_by(self.op, TABLES_MAX + 1, write) }?;
        Ok(pending.map(|values| {
            let mut all = RoundValues::<F>::default();
            all.iter_mut().zip(values).for_each(|(to, from)| *to = from);
            all
        }))
    }
}

/// What a lane keeps: the word by which the blocks of a kernel find out which of them is the last, zero between kernels.
#[derive(Default)]
struct Done(Option<DeviceBuffer<u32>>);

impl Done {
    fn word(&mut self, op: &'static str, ctx: &LaneCtx) -> Result<*mut u32> {
        if let Some(word) = &self.0 {
            return Ok(word.ptr().raw());
        }
        let mut word = ctx.alloc_public::<u32>(op, 1)?;
        word.zero(0..1).map_err(|e| ctx.error(op, e))?;
        Ok(self.0.insert(word).ptr().raw())
    }
}

fn shapes<F: SumcheckField>(tables: &[&CudaBuf<F::Element>]) -> Vec<(Lane, usize)> {
    tables.iter().map(|table| (table.lane(), table.len())).collect()
}

fn addresses<F: SumcheckField>(tables: &[&CudaBuf<F::Element>]) -> [*const u64; TABLES_MAX] {
    let mut table = [std::ptr::null(); TABLES_MAX];
    let address = |of: &CudaBuf<F::Element>| -> DevicePtr<u64> { of.ptr().cast() };
    table.iter_mut().zip(tables).for_each(|(to, of)| *to = address(of).raw().cast_const());
    table
}

impl<F: SumcheckField> Sumcheck<F> for Cuda {
    fn sumcheck_sums(&self, tables: &[&CudaBuf<F::Element>]) -> Result<Pending<RoundValues<F>>> {
        const OP: &str = "sumcheck_sums";
        let (lane, n) = check_tables(OP, &shapes::<F>(tables), 2)?;
        let round = Round { op: OP, number: ffi::TANDEM_SUMCHECK_SUMS, tables: tables.len(), n };
        let none = (std::ptr::null_mut(), F::Challenge::default());
        round.launch::<F>(self.lane(OP, lane)?, addresses::<F>(tables), none.0, none.1)
    }

    fn sumcheck_bind(
        &self,
        tables: &[&CudaBuf<F::Element>],
        r: F::Challenge,
    ) -> Result<(CudaBuf<F::Challenge>, Pending<RoundValues<F>>)> {
        const OP: &str = "sumcheck_bind";
        let (lane, n) = check_tables(OP, &shapes::<F>(tables), 4)?;
        check_challenge::<F>(OP, r)?;
        let rows = self.uninit::<F::Challenge>(OP, lane, (n / 2).saturating_mul(tables.len()))?;
        let round = Round { op: OP, number: ffi::TANDEM_SUMCHECK_BIND, tables: tables.len(), n };
        let to = rows.ptr().cast().raw();
        let values = round.launch::<F>(self.lane(OP, lane)?, addresses::<F>(tables), to, r)?;
        Ok((rows, values))
    }

    fn sumcheck_fold(
        &self,
        rows: &mut CudaBuf<F::Challenge>,
        tables: usize,
        count: usize,
        r: F::Challenge,
    ) -> Result<Pending<RoundValues<F>>> {
        const OP: &str = "sumcheck_fold";
        check_rows(OP, rows.len(), tables, count)?;
        check_challenge::<F>(OP, r)?;
        let round = Round { op: OP, number: ffi::TANDEM_SUMCHECK_FOLD, tables, n: count };
        let to = rows.ptr().cast().raw();
        round.launch::<F>(self.lane(OP, rows.lane())?, [std::ptr::null(); TABLES_MAX], to, r)
    }
}
