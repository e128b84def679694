//! The number-theoretic transform.
//!
//! A transform is two to four passes over memory (native/src/ntt/pass.cuh); [`plan`] says which, [`tables`] keeps the
//! factors between them. Subgroups and, forward, the odd coset need nothing else; other cosets take a scaling of the
//! coefficients by powers of the shift.

mod plan;
#[allow(dead_code)]
mod seam;
mod tables;

pub(crate) use tables::Tables;

use crate::backend::{Cuda, CudaBuf};
use crate::ffi;
use crate::lane::LaneCtx;
use ark_ff::{AdditiveGroup, Field};
use plan::{Factors, Plan, Shape};
use std::sync::PoisonError;
use tables::{address, order, scalar, Order2};
use tandem_ops::ntt::log_size;
use tandem_ops::{Bls12_381, Bn254, Buffer, Coset, Curve, CurveId, Direction, Error, Mont, Ntt, NttOp, Order, Result};

const OP: &str = "ntt";

/// The vector that is transformed.
struct Data<'a> {
    ctx: &'a LaneCtx,
    at: *mut ffi::tandem_scalar,
    log_n: u32,
}

/// Transforms over the scalar field of a curve.
macro_rules! curve {
    ($curve:ident) => {
        impl Ntt<$curve> for Cuda {
            fn ntt_batch(&self, data: &mut CudaBuf<Mont>, count: usize, op: NttOp) -> Result<()> {
                let log_n = log_size::<$curve>(data.len(), count, op.coset)?;
                let ctx = self.lane(OP, data.lane())?;
                for i in 0..count {
                    let at = data.ptr().offset(i << log_n).cast().raw();
                    Data { ctx, at, log_n }.ntt::<$curve>(op)?;
                }
                Ok(())
            }
        }
    };
}
curve!(Bn254);
curve!(Bls12_381);

impl Data<'_> {
    fn ntt<C: Curve>(&self, op: NttOp) -> Result<()> {
        let (data, log_n) = (self, self.log_n);
        let root = |log: u32| C::root_of_unity(log).ok_or_else(|| Error::invalid(OP, "no root of unity"));
        let inverse = op.direction == Direction::Inverse;
        let shift = match op.coset {
            Coset::Subgroup => None,
            Coset::Odd => Some(root(log_n + 1)?),
            Coset::Shift(g) if g == Mont::default() => {
                return Err(Error::invalid(OP, "the coset's shift is zero"));
            }
            Coset::Shift(g) => Some(C::from_mont(g)),
        };
        let mut shape = Shape { log_n, direction: op.direction, odd: false, input: op.input, output: op.output };
        let memory = data.ctx.properties.memory_bytes;
        if op.coset == Coset::Odd && !inverse {
            shape.odd = true;
            if let Some(plan) = plan::plan(&shape, memory) {
                return data.transform::<C>(&shape, &plan);
            }
            shape.odd = false;
        }
        if let (Some(g), false) = (shift, inverse) {
            data.scale::<C>(g, op.input)?;
        }
        match plan::plan(&shape, memory) {
            Some(plan) => data.transform::<C>(&shape, &plan)?,
            None => data.tiny::<C>(root(log_n)?, &shape)?,
        }
        if let (Some(g), true) = (shift, inverse) {
            data.scale::<C>(g.inverse().unwrap_or(C::Fr::ZERO), op.output)?;
        }
        Ok(())
    }

    fn transform<C: Curve>(&self, shape: &Shape, plan: &Plan) -> Result<()> {
        let inverse = shape.direction == Direction::Inverse;
        let Order2 { bits: order_bits, split } = order::<C>();
        let launcher = match C::ID {
            CurveId::Bn254 => ffi::tandem_ntt_pass_bn254,
            CurveId::Bls12_381 => ffi::tandem_ntt_pass_bls12_381,
        };
        // The last pass that moves elements to other places cannot do it in place, unless it is the only one: then
        // one block reads all before it writes. The data may be secret, and this memory is overwritten when dropped.
        let count = plan.passes.len();
        let other = match plan.reorder && count > 1 {
            true => Some(self.ctx.alloc::<Mont>(OP, 1 << self.log_n)?),
            false => None,
        };
        let other_at = other.as_ref().map_or(self.at, |other| other.ptr().cast().raw());
        let mut tables = self.ctx.ntt.lock().unwrap_or_else(PoisonError::into_inner);
        for (i, pass) in plan.passes.iter().enumerate() {
            let last = i + 1 == count;
            let kind = (plan.reversed, shape.odd, inverse);
            let factors = tables.factors::<C>(self.ctx, pass, self.log_n, kind)?;
            let (powers, stages) = tables.field::<C>(self.ctx, inverse)?;
            let args = ffi::tandem_ntt_pass_args {
                input: if last { other_at } else { self.at },
                output: if i + 2 == count { other_at } else { self.at },
                stages: address(stages),
                factors: factors.unwrap_or(std::ptr::null_mut()),
                powers: address(powers),
                order_bits,
                split,
                log_n: self.log_n,
                low: pass.low,
                log_rows: pass.log_rows,
                reversed: plan.reversed.into(),
                odd: shape.odd.into(),
                inverse: inverse.into(),
                multiply: (pass.factors != Factors::None).into(),
                reorder: (last && plan.reorder).into(),
                last: last.into(),
            };
            // SAFETY: Input and output hold 2^log_n elements; the tables were made for this pass, and stay until the
            // stream has done it.
            self.ctx.launch(OP, |stream| unsafe { launcher(&args, stream) })?;
        }
        Ok(())
    }

    /// Transforms fewer elements than a pass needs.
    fn tiny<C: Curve>(&self, root: C::Fr, shape: &Shape) -> Result<()> {
        let (root, scale) = match shape.direction {
            Direction::Forward => (Some(root), Some(C::Fr::ONE)),
            Direction::Inverse => (root.inverse(), C::Fr::from(1u64 << self.log_n).inverse()),
        };
        let args = ffi::tandem_ntt_tiny_args {
            data: self.at,
            root: scalar(C::mont(root.unwrap_or(C::Fr::ZERO))),
            scale: scalar(C::mont(scale.unwrap_or(C::Fr::ZERO))),
            log_n: self.log_n,
            input_reversed: (shape.input == Order::BitReversed).into(),
            output_reversed: (shape.output == Order::BitReversed).into(),
        };
        let launcher = match C::ID {
            CurveId::Bn254 => ffi::tandem_ntt_tiny_bn254,
            CurveId::Bls12_381 => ffi::tandem_ntt_tiny_bls12_381,
        };
        // SAFETY: the data are 2^log_n elements on the lane whose stream this is.
        self.ctx.launch(OP, |stream| unsafe { launcher(&args, stream) })
    }

    /// Multiplies element i by base^i.
    fn scale<C: Curve>(&self, base: C::Fr, order: Order) -> Result<()> {
        let split = self.log_n.div_ceil(2);
        let powers = tables::powers::<C>(self.ctx, base, split)?;
        let args = ffi::tandem_ntt_scale_args {
            data: self.at,
            powers: address(&powers),
            split,
            log_n: self.log_n,
            reversed: (order == Order::BitReversed).into(),
        };
        let launcher = match C::ID {
            CurveId::Bn254 => ffi::tandem_ntt_scale_bn254,
            CurveId::Bls12_381 => ffi::tandem_ntt_scale_bls12_381,
        };
        // SAFETY: the data are 2^log_n elements, the powers are enough for their indices, and are freed in the
        // stream's order.
        self.ctx.launch(OP, |stream| unsafe { launcher(&args, stream) })
    }
}
