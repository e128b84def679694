//! Prefix products, and Horner's scheme over coefficients: levels of chunks (native/src/scan/scan.cuh).

mod plan;

use crate::backend::{Cuda, CudaBuf};
use crate::ffi;
use crate::lane::LaneCtx;
use ark_ff::{AdditiveGroup, Field};
use std::sync::Arc;
use tandem_cuda::ffi::tandem_stream;
use tandem_cuda::{DeviceBuffer, DevicePtr};
use tandem_ops::scan::check_divisor;
use tandem_ops::{Buffer, Curve, CurveId, Mont, Pending, Result, Scan};

type Launcher = unsafe extern "C" fn(*const ffi::tandem_scan_args, tandem_stream) -> i32;

/// What finds the totals of a level, and what scans one.
fn launchers(curve: CurveId) -> (Launcher, Launcher) {
    match curve {
        CurveId::Bn254 => (ffi::tandem_scan_totals_bn254, ffi::tandem_scan_apply_bn254),
        CurveId::Bls12_381 => (ffi::tandem_scan_totals_bls12_381, ffi::tandem_scan_apply_bls12_381),
    }
}

/// A scan of the columns of a table, which has at least one element.
struct Levels<'a> {
    name: &'static str,
    ctx: &'a Arc<LaneCtx>,
    data: DevicePtr<Mont>,
    /// The levels above the data, one behind the other. They are as secret as the data: they are overwritten when this is dropped.
    upper: DeviceBuffer<Mont>,
    /// How many elements each level has.
    lengths: Vec<usize>,
    columns: usize,
    op: i32,
    /// What an element is multiplied by from one row to the next, on each level.
    factors: Vec<Mont>,
    launchers: (Launcher, Launcher),
}

impl<'a> Levels<'a> {
    /// A scan of `data` in rows of `columns`; products have no factor.
    fn new<C: Curve>(
        cuda: &'a Cuda,
        name: &'static str,
        data: &CudaBuf<Mont>,
        columns: usize,
        factor: Option<Mont>,
    ) -> Result<Self> {
        let ctx = cuda.lane(name, data.lane())?;
        let lengths = plan::levels(data.len(), columns);
        let mut factors = vec![factor.unwrap_or_default()];
        for level in 1..lengths.len() {
            let power = C::from_mont(factors[level - 1]).pow([ffi::TANDEM_SCAN_CHUNK as u64]);
            factors.push(C::mont(power));
        }
        Ok(Levels {
            name,
            ctx,
            data: data.ptr(),
            upper: ctx.alloc(name, lengths[1..].iter().sum())?,
            lengths,
            columns,
            op: if factor.is_some() { ffi::TANDEM_SCAN_HORNER } else { ffi::TANDEM_SCAN_PRODUCT },
            factors,
            launchers: launchers(C::ID),
        })
    }

    fn level(&self, level: usize) -> DevicePtr<Mont> {
        match level {
            0 => self.data,
            _ => self.upper.ptr().offset(self.lengths[1..level].iter().sum()),
        }
    }

    /// The arguments of a level whose chunks are at `chunks`, or have nothing that precedes them.
    fn args(&self, level: usize, chunks: Option<DevicePtr<Mont>>, exclusive: bool) -> ffi::tandem_scan_args {
        ffi::tandem_scan_args {
            data: self.level(level).cast().raw(),
            chunks: chunks.map_or(std::ptr::null_mut(), |chunks| chunks.cast().raw()),
            factor: ffi::tandem_scalar { limb: self.factors[level].0 },
            n: self.lengths[level] as u64,
            columns: self.columns as u64,
            op: self.op as u32,
            exclusive: exclusive.into(),
        }
    }

    /// Finds the totals of all levels but the last.
    fn totals(&self) -> Result<()> {
        for level in 0..self.lengths.len() - 1 {
            let args = self.args(level, Some(self.level(level + 1)), false);
            // SAFETY: both levels have as many elements as the plan says, in live buffers of the lane whose stream this is.
            self.ctx.launch(self.name, |stream| unsafe { (self.launchers.0)(&args, stream) })?;
        }
        Ok(())
    }

    /// What all elements make together, of a table of one column whose totals were found and which has not been scanned.
    fn total(&self) -> Result<Pending<Mont>> {
        let total = self.ctx.alloc::<Mont>(self.name, 1)?;
        let args = self.args(self.lengths.len() - 1, Some(total.ptr()), false);
        // SAFETY: the last level is one chunk of one column, of which one element comes; both buffers are live and of the lane whose
        // stream this is.
        self.ctx.launch(self.name, |stream| unsafe { (self.launchers.0)(&args, stream) })?;
        let values = self.ctx.download(self.name, &total)?;
        Ok(values.map(|values| values.first().copied().unwrap_or_default()))
    }

    /// Scans all levels, the last one first. The data's scan may be exclusive; that of the others is.
    fn apply(&self, exclusive: bool) -> Result<()> {
        for level in (0..self.lengths.len()).rev() {
            let chunks = (level + 1 < self.lengths.len()).then(|| self.level(level + 1));
            let args = self.args(level, chunks, exclusive || level > 0);
            // SAFETY: as for the totals; the last level is one chunk.
            self.ctx.launch(self.name, |stream| unsafe { (self.launchers.1)(&args, stream) })?;
        }
        Ok(())
    }
}

impl<C: Curve> Scan<C> for Cuda {
    fn prefix_product(&self, data: &mut CudaBuf<Mont>) -> Result<Pending<Mont>> {
        if data.is_empty() {
            return Ok(Pending::ready(C::mont(C::Fr::ONE)));
        }
        let levels = Levels::new::<C>(self, "prefix_product", data, 1, None)?;
        levels.totals()?;
        let total = levels.total()?;
        levels.apply(true)?;
        Ok(total)
    }

    fn evaluate(&self, coefficients: &CudaBuf<Mont>, x: Mont) -> Result<Pending<Mont>> {
        if coefficients.is_empty() {
            return Ok(Pending::ready(C::mont(C::Fr::ZERO)));
        }
        let levels = Levels::new::<C>(self, "evaluate", coefficients, 1, Some(x))?;
        levels.totals()?;
        levels.total()
    }

    fn divide(&self, coefficients: &mut CudaBuf<Mont>, m: usize, b: Mont) -> Result<()> {
        check_divisor(m)?;
        if coefficients.len() <= m {
            return Ok(());
        }
        let levels = Levels::new::<C>(self, "divide", coefficients, m, Some(b))?;
        levels.totals()?;
        levels.apply(false)
    }
}
