//! Element-wise arithmetic over the scalar field.

use crate::backend::{Cuda, CudaBuf};
use crate::ffi;
use tandem_cuda::ffi::tandem_stream;
use tandem_ops::vector::{check_add_scaled, check_combined, TERMS_MAX};
use tandem_ops::{Buffer, Canonical, Curve, CurveId, Error, Mont, Result, VecOps, Wire};

/// An operand: its address, length and lane.
struct Operand {
    ptr: *mut ffi::tandem_scalar,
    len: usize,
    lane: tandem_ops::Lane,
}

fn operand<T: Wire>(buf: &CudaBuf<T>) -> Operand {
    const { assert!(size_of::<T>() == size_of::<ffi::tandem_scalar>()) };
    Operand { ptr: buf.ptr().cast().raw(), len: buf.len(), lane: buf.lane() }
}

type Launcher = unsafe extern "C" fn(*const ffi::tandem_vector_args, tandem_stream) -> i32;

fn launcher<C: Curve>() -> Launcher {
    match C::ID {
        CurveId::Bn254 => ffi::tandem_vector_bn254,
        CurveId::Bls12_381 => ffi::tandem_vector_bls12_381,
    }
}

impl Cuda {
    fn vector<C: Curve>(
        &self,
        name: &'static str,
        op: i32,
        out: Operand,
        inputs: &[Operand],
        k: Option<Mont>,
    ) -> Result<()> {
        for input in inputs {
            if (input.len, input.lane) != (out.len, out.lane) {
                let reason = format!(
                    "vectors of {} and {} elements on lanes {} and {}",
                    out.len, input.len, out.lane.0, input.lane.0
                );
                return Err(Error::invalid(name, reason));
            }
        }
        let at = |i: usize| inputs.get(i).map_or(std::ptr::null(), |input| input.ptr.cast_const());
        let args = ffi::tandem_vector_args {
            out: out.ptr,
            a: at(0),
            b: at(1),
            c: at(2),
            k: ffi::tandem_scalar { limb: k.map_or([0; 4], |k| k.0) },
            n: out.len as u64,
            step: 1,
            op: op as u32,
        };
        // SAFETY: all operands are live buffers of `n` elements on the lane whose stream this is.
        self.lane(name, out.lane)?.launch(name, |stream| unsafe { launcher::<C>()(&args, stream) })
    }
}

impl<C: Curve> VecOps<C> for Cuda {
    fn add(&self, a: &mut CudaBuf<Mont>, b: &CudaBuf<Mont>) -> Result<()> {
        self.vector::<C>("add", ffi::TANDEM_VECTOR_ADD, operand(a), &[operand(a), operand(b)], None)
    }

    fn sub(&self, a: &mut CudaBuf<Mont>, b: &CudaBuf<Mont>) -> Result<()> {
        self.vector::<C>("sub", ffi::TANDEM_VECTOR_SUB, operand(a), &[operand(a), operand(b)], None)
    }

    fn mul(&self, a: &mut CudaBuf<Mont>, b: &CudaBuf<Mont>) -> Result<()> {
        self.vector::<C>("mul", ffi::TANDEM_VECTOR_MUL, operand(a), &[operand(a), operand(b)], None)
    }

    fn scale(&self, a: &mut CudaBuf<Mont>, k: Mont) -> Result<()> {
        self.vector::<C>("scale", ffi::TANDEM_VECTOR_SCALE, operand(a), &[operand(a)], Some(k))
    }

    fn mul_sub(&self, a: &mut CudaBuf<Mont>, b: &CudaBuf<Mont>, c: &CudaBuf<Mont>) -> Result<()> {
        let inputs = [operand(a), operand(b), operand(c)];
        self.vector::<C>("mul_sub", ffi::TANDEM_VECTOR_MUL_SUB, operand(a), &inputs, None)
    }

    fn add_scaled(&self, a: &mut CudaBuf<Mont>, first: usize, step: usize, b: &CudaBuf<Mont>, k: Mont) -> Result<()> {
        const OP: &str = "add_scaled";
        check_add_scaled((a.lane(), a.len()), first, step, (b.lane(), b.len()))?;
        if b.is_empty() {
            return Ok(());
        }
        let to: *mut ffi::tandem_scalar = a.ptr().offset(first).cast().raw();
        let args = ffi::tandem_vector_args {
            out: to,
            a: to.cast_const(),
            b: operand(b).ptr.cast_const(),
            c: std::ptr::null(),
            k: ffi::tandem_scalar { limb: k.0 },
            n: b.len() as u64,
            step: step as u64,
            op: ffi::TANDEM_VECTOR_ADD_SCALED as u32,
        };
        // SAFETY: `b` has `n` elements, and `a` the places of all of them from `first` on; both are live and of the lane whose stream this is.
        self.lane(OP, a.lane())?.launch(OP, |stream| unsafe { launcher::<C>()(&args, stream) })
    }

    fn combined(&self, len: usize, terms: &[(&CudaBuf<Mont>, Mont)]) -> Result<CudaBuf<Mont>> {
        const OP: &str = "combined";
        let sizes: Vec<_> = terms.iter().map(|(of, _)| (of.lane(), of.len())).collect();
        let lane = check_combined(len, &sizes)?;
        let (out, ctx) = (self.uninit(OP, lane, len)?, self.lane(OP, lane)?);
        let mut args = ffi::tandem_combined_args {
            out: out.ptr().cast().raw(),
            vectors: [std::ptr::null(); TERMS_MAX],
            lengths: [0; TERMS_MAX],
            factors: [ffi::tandem_scalar { limb: [0; 4] }; TERMS_MAX],
            n: len as u64,
            terms: terms.len() as u32,
        };
        for (j, (of, k)) in terms.iter().enumerate() {
            args.vectors[j] = operand(of).ptr.cast_const();
            args.lengths[j] = of.len() as u64;
            args.factors[j] = ffi::tandem_scalar { limb: k.0 };
        }
        let launcher = match C::ID {
            CurveId::Bn254 => ffi::tandem_combined_bn254,
            CurveId::Bls12_381 => ffi::tandem_combined_bls12_381,
        };
        // SAFETY: all vectors are live, of the lane whose stream this is and of the lengths that are told; `out` is new and has `n` elements.
        ctx.launch(OP, |stream| unsafe { launcher(&args, stream) })?;
        Ok(out)
    }

    fn to_canonical(&self, a: &CudaBuf<Mont>, out: &mut CudaBuf<Canonical>) -> Result<()> {
        self.vector::<C>("to_canonical", ffi::TANDEM_VECTOR_TO_CANONICAL, operand(out), &[operand(a)], None)
    }

    fn to_mont(&self, a: &CudaBuf<Canonical>, out: &mut CudaBuf<Mont>) -> Result<()> {
        self.vector::<C>("to_mont", ffi::TANDEM_VECTOR_TO_MONT, operand(out), &[operand(a)], None)
    }
}
