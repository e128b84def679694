//! Inverses of many elements.

mod plan;

use crate::backend::{Cuda, CudaBuf};
use crate::ffi;
use std::ffi::c_void;
use tandem_cuda::ffi::tandem_stream;
use tandem_ops::{BatchInverse, Buffer, Curve, CurveId, Mont, Result};

const OP: &str = "batch_inverse";

type Scratch = unsafe extern "C" fn(*const ffi::tandem_batch_inverse_args, *mut usize) -> i32;
type Launcher = unsafe extern "C" fn(*const ffi::tandem_batch_inverse_args, *mut c_void, usize, tandem_stream) -> i32;

impl<C: Curve> BatchInverse<C> for Cuda {
    fn batch_inverse(&self, data: &mut CudaBuf<Mont>) -> Result<()> {
        let args = ffi::tandem_batch_inverse_args {
            data: data.ptr().cast().raw(),
            n: data.len() as u64,
            threads: plan::threads(data.len()) as u64,
        };
        let (scratch, launcher): (Scratch, Launcher) = match C::ID {
            CurveId::Bn254 => (ffi::tandem_batch_inverse_bn254_scratch, ffi::tandem_batch_inverse_bn254),
            CurveId::Bls12_381 => (ffi::tandem_batch_inverse_bls12_381_scratch, ffi::tandem_batch_inverse_bls12_381),
        };
        let ctx = self.lane(OP, data.lane())?;
        // The products are as secret as the elements: they are overwritten when this is dropped.
        let _products = ctx.launch_with_scratch(
            OP,
            // SAFETY: the query reads the arguments and writes the number alone.
            |bytes| unsafe { scratch(&args, bytes) },
            // SAFETY: the buffer has `n` elements, the scratch memory as many bytes as were asked for, both on the lane whose stream
            // this is.
            |memory, bytes, stream| unsafe { launcher(&args, memory, bytes, stream) },
        )?;
        Ok(())
    }
}
