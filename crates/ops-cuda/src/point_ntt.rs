//! Transforms of points.

use crate::backend::{Cuda, CudaBuf};
use crate::ffi;
use crate::tuning::point_ntt as tuning;
use std::ffi::c_void;
use tandem_cuda::ffi::tandem_stream;
use tandem_ops::point_ntt::{biased, factors, products, PointNtt};
use tandem_ops::{Buffer, Canonical, Curve, CurveId, Group, Result};

const OP: &str = "point NTT";

type Scratch = unsafe extern "C" fn(*const ffi::tandem_point_ntt_args, *mut usize) -> i32;
type Launcher = unsafe extern "C" fn(*const ffi::tandem_point_ntt_args, *mut c_void, usize, tandem_stream) -> i32;

impl<C: Curve> PointNtt<C> for Cuda {
    fn lagrange_points(&self, points: &mut CudaBuf<<C::G1 as Group>::Point>) -> Result<()> {
        let n = points.len();
        let by: Vec<Canonical> = factors::<C>(n)?.into_iter().map(biased::<C>).collect();
        let ctx = self.lane(OP, points.lane())?;
        let mut of_lane = ctx.alloc_public(OP, by.len())?;
        ctx.upload(OP, &mut of_lane, 0, by[..].into())?;
        let args = ffi::tandem_point_ntt_args {
            points: points.ptr().cast().raw(),
            factors: of_lane.ptr().cast().raw(),
            log_n: n.ilog2(),
        };
        let (query, launcher): (Scratch, Launcher) = match C::ID {
            CurveId::Bn254 => (ffi::tandem_point_ntt_bn254_scratch, ffi::tandem_point_ntt_bn254),
            CurveId::Bls12_381 => (ffi::tandem_point_ntt_bls12_381_scratch, ffi::tandem_point_ntt_bls12_381),
        };
        ctx.launch_with_scratch(
            OP,
            // SAFETY: the query reads the arguments and writes the number alone.
            |bytes| unsafe { query(&args, bytes) },
            // SAFETY: the buffer has 2^log_n points, `factors` as many elements as the header asks for, the scratch memory as many bytes as
            // were asked for, all on the lane whose stream this is.
            |memory, bytes, stream| unsafe { launcher(&args, memory, bytes, stream) },
        )?;
        Ok(())
    }

    fn lagrange_seconds(&self, points: usize) -> f64 {
        products(points) * tuning::product(C::ID)
    }
}
