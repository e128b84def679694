//! Rows of PLONK (native/src/plonk_rows/plonk_rows.cuh).

use crate::backend::{Cuda, CudaBuf};
use crate::ffi;
use tandem_ops::plonk_rows::common;
use tandem_ops::{Buffer, Curve, CurveId, Lane, Mont, PlonkRows, QuotientAt, QuotientRows, Result};

fn address(of: &CudaBuf<Mont>) -> *const ffi::tandem_scalar {
    of.ptr().cast::<ffi::tandem_scalar>().raw().cast_const()
}

fn scalar(k: Mont) -> ffi::tandem_scalar {
    ffi::tandem_scalar { limb: k.0 }
}

fn sizes<const N: usize>(of: [&CudaBuf<Mont>; N]) -> [(Lane, usize); N] {
    of.map(|buf| (buf.lane(), buf.len()))
}

impl<C: Curve> PlonkRows<C> for Cuda {
    fn gate_rows(&self, columns: [&CudaBuf<Mont>; 3], selectors: [&CudaBuf<Mont>; 5]) -> Result<CudaBuf<Mont>> {
        const OP: &str = "gate_rows";
        let (lane, n) = common(OP, &[&sizes(columns)[..], &sizes(selectors)].concat())?;
        let (out, ctx) = (self.uninit(OP, lane, n)?, self.lane(OP, lane)?);
        let args = ffi::tandem_gate_rows_args {
            out: out.ptr().cast().raw(),
            columns: columns.map(address),
            selectors: selectors.map(address),
            n: n as u64,
        };
        let launcher = match C::ID {
            CurveId::Bn254 => ffi::tandem_gate_rows_bn254,
            CurveId::Bls12_381 => ffi::tandem_gate_rows_bls12_381,
        };
        // SAFETY: all operands are live buffers of `n` elements on the lane whose stream this is; `out` is new.
        ctx.launch(OP, |stream| unsafe { launcher(&args, stream) })?;
        Ok(out)
    }

    fn permuted_rows(
        &self,
        columns: [&CudaBuf<Mont>; 3],
        places: [&CudaBuf<Mont>; 3],
        factors: [Mont; 3],
        gamma: Mont,
    ) -> Result<CudaBuf<Mont>> {
        const OP: &str = "permuted_rows";
        let (lane, n) = common(OP, &[sizes(columns), sizes(places)].concat())?;
        let (out, ctx) = (self.uninit(OP, lane, n)?, self.lane(OP, lane)?);
        let args = ffi::tandem_permuted_rows_args {
            out: out.ptr().cast().raw(),
            columns: columns.map(address),
            places: places.map(address),
            factors: factors.map(scalar),
            gamma: scalar(gamma),
            n: n as u64,
        };
        let launcher = match C::ID {
            CurveId::Bn254 => ffi::tandem_permuted_rows_bn254,
            CurveId::Bls12_381 => ffi::tandem_permuted_rows_bls12_381,
        };
        // SAFETY: all operands are live buffers of `n` elements on the lane whose stream this is; `out` is new.
        ctx.launch(OP, |stream| unsafe { launcher(&args, stream) })?;
        Ok(out)
    }

    fn quotient_rows(&self, of: &QuotientRows<'_, CudaBuf<Mont>>, at: &QuotientAt) -> Result<CudaBuf<Mont>> {
        const OP: &str = "quotient_rows";
        let vectors = of.vectors();
        let (lane, n) = common(OP, &sizes(vectors))?;
        let (out, ctx) = (self.uninit(OP, lane, n)?, self.lane(OP, lane)?);
        let [k1, k2] = at.k;
        let args = ffi::tandem_quotient_rows_args {
            out: out.ptr().cast().raw(),
            vectors: vectors.map(address),
            numbers: [at.alpha, at.beta, at.gamma, k1, k2, at.public].map(scalar),
            n: n as u64,
        };
        let launcher = match C::ID {
            CurveId::Bn254 => ffi::tandem_quotient_rows_bn254,
            CurveId::Bls12_381 => ffi::tandem_quotient_rows_bls12_381,
        };
        // SAFETY: all operands are live buffers of `n` elements on the lane whose stream this is; `out` is new.
        ctx.launch(OP, |stream| unsafe { launcher(&args, stream) })?;
        Ok(out)
    }
}
