//! Transforms that begin or end with a pointwise product: the first pass multiplies what it reads, or the last one what it
//! writes, and neither takes a way over memory of its own.

use super::plan::{plan, Plan, Shape, Twiddles};
use super::{Data, Products, OP};
use crate::backend::{Cuda, CudaBuf};
use crate::ffi;
use tandem_ops::ntt::{log_size, ntt_then_product, product_then_ntt};
use tandem_ops::{Bls12_381, Bn254, Buffer, Coset, Direction, Error, Mont, NttOp, NttProducts, Result};

/// How a transform is done whose first pass reads the elements that come in and whose last one writes those that go out; `None` for
/// one that scales them before or after, or that has no passes. On a GPU of so many bytes, of so many passes at least.
fn whole(op: NttOp, log_n: u32, (memory, least): (u64, u32)) -> Option<(Shape, Plan)> {
    let odd = op.coset == Coset::Odd && op.direction == Direction::Forward;
    if !odd && op.coset != Coset::Subgroup {
        return None;
    }
    let shape = Shape { log_n, direction: op.direction, odd, input: op.input, output: op.output };
    Some((shape, plan(&shape, memory, least)?))
}

/// Whether the last pass is one and not two.
fn ends_at_once(plan: &Plan) -> bool {
    !matches!(plan.passes.last().map(|pass| pass.twiddles), Some(Twiddles::Half { .. }))
}

fn alike(a: &CudaBuf<Mont>, b: &CudaBuf<Mont>) -> Result<()> {
    if (a.len(), a.lane()) == (b.len(), b.lane()) {
        return Ok(());
    }
    let reason = format!("vectors of {} and {} elements on lanes {} and {}", a.len(), b.len(), a.lane().0, b.lane().0);
    Err(Error::invalid(OP, reason))
}

fn at(buf: &CudaBuf<Mont>) -> *mut ffi::tandem_scalar {
    buf.ptr().cast().raw()
}

macro_rules! curve {
    ($curve:ident) => {
        impl NttProducts<$curve> for Cuda {
            fn ntt_of_product(&self, a: &CudaBuf<Mont>, b: &CudaBuf<Mont>, op: NttOp) -> Result<CudaBuf<Mont>> {
                let log_n = log_size::<$curve>(a.len(), 1, op.coset)?;
                alike(a, b)?;
                let ctx = self.lane(OP, a.lane())?;
                let Some((shape, plan)) = whole(op, log_n, (ctx.properties.memory_bytes, ctx.least_passes)) else {
                    return product_then_ntt::<$curve, _>(self, a, b, op);
                };
                let out = self.uninit::<Mont>(OP, a.lane(), a.len())?;
                let products = Products { first: Some([at(a).cast_const(), at(b).cast_const()]), last: None };
                Data { ctx, at: at(&out), count: 1, log_n }.with_products::<$curve>(&shape, &plan, products)?;
                Ok(out)
            }

            fn product_less_ntt(
                &self,
                a: &CudaBuf<Mont>,
                b: &CudaBuf<Mont>,
                c: CudaBuf<Mont>,
                op: NttOp,
            ) -> Result<CudaBuf<Mont>> {
                let log_n = log_size::<$curve>(c.len(), 1, op.coset)?;
                alike(&c, a)?;
                alike(&c, b)?;
                let ctx = self.lane(OP, c.lane())?;
                let how = whole(op, log_n, (ctx.properties.memory_bytes, ctx.least_passes))
                    .filter(|(_, plan)| ends_at_once(plan));
                let Some((shape, plan)) = how else {
                    return ntt_then_product::<$curve, _>(self, a, b, c, op);
                };
                let products = Products { first: None, last: Some([at(a).cast_const(), at(b).cast_const()]) };
                Data { ctx, at: at(&c), count: 1, log_n }.with_products::<$curve>(&shape, &plan, products)?;
                Ok(c)
            }
        }
    };
}
curve!(Bn254);
curve!(Bls12_381);

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_ops::Order;

    #[test]
    fn transforms_of_a_quotient_take_no_other_way() {
        const H200: (u64, u32) = (150_000_000_000, 1);
        let (natural, reversed) = (Order::Natural, Order::BitReversed);
        let inverse = NttOp { direction: Direction::Inverse, coset: Coset::Subgroup, input: natural, output: reversed };
        let forward = NttOp { direction: Direction::Forward, coset: Coset::Odd, input: reversed, output: natural };
        for log_n in 0..=27 {
            let (inverse, forward) = (whole(inverse, log_n, H200), whole(forward, log_n, H200));
            assert_eq!((inverse.is_some(), forward.is_some()), (log_n > 2, log_n > 2), "2^{log_n}");
            assert!(forward.is_none_or(|(_, plan)| ends_at_once(&plan)), "2^{log_n}");
            // Half a table: docs/design/ntt.md.
            assert!(inverse.is_none_or(|(_, plan)| ends_at_once(&plan) == (log_n != 26)), "2^{log_n}");
        }
        assert!(whole(NttOp { coset: Coset::Shift(Mont([5, 0, 0, 0])), ..forward }, 9, H200).is_none());
        assert!(whole(NttOp { coset: Coset::Odd, ..inverse }, 9, H200).is_none());
    }
}
