//! Rounds of a sumcheck (native/src/sumcheck/sumcheck.cuh).

use crate::backend::{Cuda, CudaBuf};
use crate::ffi;
use crate::lane::LaneCtx;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::{Arc, PoisonError};
use tandem_cuda::ffi::tandem_stream;
use tandem_cuda::{DeviceBuffer, DevicePtr};
use tandem_ops::sumcheck::{check_challenge, check_columns, check_tables, RoundValues, SumcheckField, TABLES_MAX};
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
    /// Numbers of a column.
    stride: usize,
}

impl Round {
    /// Launches it; `table` and `columns` are what its number says that it reads and writes. `len` numbers come to the host.
    fn launch<F: SumcheckField>(
        &self,
        ctx: &Arc<LaneCtx>,
        table: [*const u64; TABLES_MAX],
        columns: *mut u64,
        r: F::Challenge,
        len: usize,
    ) -> Result<Pending<Vec<F::Challenge>>> {
        let mut args = ffi::tandem_sumcheck_args {
            table,
            columns,
            stride: self.stride as u64,
            values: std::ptr::null_mut(),
            done: std::ptr::null_mut(),
            told: std::ptr::null_mut(),
            r: words(&r),
            n: self.n as u64,
            tables: self.tables as u32,
            op: self.number.cast_unsigned(),
        };
        let (scratch, launch) = launcher(self.op, F::FIELD)?;
        let query = |bytes: &mut usize| {
            // SAFETY: the query reads the arguments and writes the number alone.
            ctx.launch(self.op, |_| unsafe { scratch(&args, bytes) })
        };
        let kept = ctx.cache.of::<Kept<F>>();
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = kept.of(self.op, ctx, query)?;
        args.done = kept.done.ptr().raw();
        let write = |values: *mut F::Challenge, told, stream| {
            (args.values, args.told) = (values.cast(), told);
            // SAFETY: the callers have checked that tables and columns have as many elements as the arguments say, in live buffers of the lane
            // whose stream this is.
            unsafe { launch(&args, kept.partial.ptr().raw().cast(), kept.partial.len(), stream) }
        };
        // SAFETY: `len` numbers are what the operation writes, and then the word.
        unsafe { ctx.told_by(self.op, len, write) }
    }

    /// As [`Round::launch`], of a round's values.
    fn values<F: SumcheckField>(
        &self,
        ctx: &Arc<LaneCtx>,
        table: [*const u64; TABLES_MAX],
        columns: *mut u64,
        r: F::Challenge,
    ) -> Result<Pending<RoundValues<F>>> {
        let pending = self.launch::<F>(ctx, table, columns, r, TABLES_MAX + 1)?;
        Ok(pending.map(|values| {
            let mut all = RoundValues::<F>::default();
            all.iter_mut().zip(values).for_each(|(to, from)| *to = from);
            all
        }))
    }
}

/// What a lane keeps: the word by which the blocks of a kernel find out which of them is the last, and memory for what each block finds. Kernels
/// leave both zero, so that no round is followed by a wipe.
struct Work {
    done: DeviceBuffer<u32>,
    partial: DeviceBuffer<u8>,
}

/// That of a field: all its rounds need as much.
struct Kept<F>(Option<Work>, PhantomData<fn() -> F>);

impl<F> Default for Kept<F> {
    fn default() -> Self {
        Kept(None, PhantomData)
    }
}

impl<F> Kept<F> {
    /// Both, with as many bytes as `query` writes to what it gets.
    fn of(&mut self, op: &'static str, ctx: &LaneCtx, query: impl FnOnce(&mut usize) -> Result<()>) -> Result<&Work> {
        let work = match self.0.take() {
            Some(work) => work,
            None => {
                let (mut bytes, mut done) = (0, ctx.alloc_public::<u32>(op, 1)?);
                query(&mut bytes)?;
                done.zero(0..1).map_err(|e| ctx.error(op, e))?;
                Work { done, partial: ctx.alloc(op, bytes)? }
            }
        };
        Ok(self.0.insert(work))
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

const NO_TABLE: [*const u64; TABLES_MAX] = [std::ptr::null(); TABLES_MAX];

impl<F: SumcheckField> Sumcheck<F> for Cuda {
    fn sumcheck_sums(&self, tables: &[&CudaBuf<F::Element>]) -> Result<Pending<RoundValues<F>>> {
        const OP: &str = "sumcheck_sums";
        let (lane, n) = check_tables(OP, &shapes::<F>(tables), 2)?;
        let round = Round { op: OP, number: ffi::TANDEM_SUMCHECK_SUMS, tables: tables.len(), n, stride: 0 };
        let none = (std::ptr::null_mut(), F::Challenge::default());
        round.values::<F>(self.lane(OP, lane)?, addresses::<F>(tables), none.0, none.1)
    }

    fn sumcheck_bind(
        &self,
        tables: &[&CudaBuf<F::Element>],
        r: F::Challenge,
    ) -> Result<(CudaBuf<F::Challenge>, Pending<RoundValues<F>>)> {
        const OP: &str = "sumcheck_bind";
        let (lane, n) = check_tables(OP, &shapes::<F>(tables), 4)?;
        check_challenge::<F>(OP, r)?;
        let columns = self.uninit::<F::Challenge>(OP, lane, (n / 2).saturating_mul(tables.len()))?;
        let round = Round { op: OP, number: ffi::TANDEM_SUMCHECK_BIND, tables: tables.len(), n, stride: n / 2 };
        let to = columns.ptr().cast().raw();
        let values = round.values::<F>(self.lane(OP, lane)?, addresses::<F>(tables), to, r)?;
        Ok((columns, values))
    }

    fn sumcheck_fold(
        &self,
        columns: &mut CudaBuf<F::Challenge>,
        tables: usize,
        count: usize,
        r: F::Challenge,
    ) -> Result<Pending<RoundValues<F>>> {
        const OP: &str = "sumcheck_fold";
        let stride = check_columns(OP, columns.len(), tables, count, 4)?;
        check_challenge::<F>(OP, r)?;
        let round = Round { op: OP, number: ffi::TANDEM_SUMCHECK_FOLD, tables, n: count, stride };
        round.values::<F>(self.lane(OP, columns.lane())?, NO_TABLE, columns.ptr().cast().raw(), r)
    }

    fn sumcheck_take(
        &self,
        columns: &CudaBuf<F::Challenge>,
        tables: usize,
        count: usize,
    ) -> Result<Pending<Vec<F::Challenge>>> {
        const OP: &str = "sumcheck_take";
        let stride = check_columns(OP, columns.len(), tables, count, 1)?;
        let round = Round { op: OP, number: ffi::TANDEM_SUMCHECK_TAKE, tables, n: count, stride };
        let from = columns.ptr().cast().raw();
        round.launch::<F>(self.lane(OP, columns.lane())?, NO_TABLE, from, F::Challenge::default(), tables * count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_ops::{Backend, Bn254, Goldilocks, Goldilocks2, Mont};

    /// What blocks find tells of the tables; it is zero when a round is done, and what no block wrote to is as it was.
    #[test]
    fn rounds_leave_nothing_behind() {
        fn of<F: SumcheckField>(gpu: tandem_cuda::Device, element: impl Fn(u64) -> F::Element, r: F::Challenge) {
            let cuda = Cuda::open(&[gpu]).unwrap();
            let lane = cuda.lane("test", Lane(0)).unwrap();
            let elements: Vec<F::Element> =
                (1..=1 << 14).map(|i: u64| element(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8)).collect();
            let tables = [0; 3].map(|_| cuda.upload(Lane(0), &elements).unwrap());
            let tables: Vec<&CudaBuf<F::Element>> = tables.iter().collect();
            let told = Sumcheck::<F>::sumcheck_sums(&cuda, &tables).unwrap().wait().unwrap();
            assert!(told[..4].iter().all(|value| bytemuck::bytes_of(value).iter().any(|&byte| byte != 0)));
            let kept = lane.cache.of::<Kept<F>>();
            let left = || {
                let kept = kept.lock().unwrap();
                let work = kept.0.as_ref().unwrap();
                let partial = lane.download("test", &work.partial).unwrap().wait().unwrap();
                (lane.download("test", &work.done).unwrap().wait().unwrap(), partial)
            };
            {
                let mut kept = kept.lock().unwrap();
                let partial = &mut kept.0.as_mut().unwrap().partial;
                partial.fill(0..partial.len(), 0x55).unwrap();
            }
            let (mut columns, values) = Sumcheck::<F>::sumcheck_bind(&cuda, &tables, r).unwrap();
            values.wait().unwrap();
            let (done, partial) = left();
            let written = partial.iter().take_while(|&&byte| byte == 0).count();
            // 2^12 pairs of rows are for more than one block, and for fewer than there are.
            assert!(written > 0 && written < partial.len() / 2, "{written} of {} bytes", partial.len());
            assert!(done == [0] && partial[written..].iter().all(|&byte| byte == 0x55));
            Sumcheck::<F>::sumcheck_fold(&cuda, &mut columns, 3, 1 << 13, r).unwrap().wait().unwrap();
            assert!(left().1[..written].iter().all(|&byte| byte == 0));
            // More than a block takes; the count of blocks is zero again.
            let taken = Sumcheck::<F>::sumcheck_take(&cuda, &columns, 3, 1 << 12).unwrap().wait().unwrap();
            let all = cuda.download(&columns).unwrap().wait().unwrap();
            let live: Vec<_> = all.chunks_exact(1 << 13).flat_map(|column| &column[..1 << 12]).copied().collect();
            assert!(taken == live && left().0 == [0]);
        }
        let Some(&gpu) = tandem_cuda::testing::gpus().first() else { return };
        of::<Bn254>(gpu, |i| Mont([i, 1, 2, 3]), Mont([7, 0, 0, 0]));
        of::<Goldilocks>(gpu, Goldilocks, Goldilocks2([7, 8]));
    }
}
