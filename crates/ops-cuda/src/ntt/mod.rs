//! The number-theoretic transform.
//!
//! A transform is two to four passes over memory (native/src/ntt/pass.cuh); [`plan`] says which, [`tables`] keeps the
//! twiddles between them. Subgroups and, forward, the odd coset need nothing else; other cosets take a scaling of the
//! coefficients by powers of the shift.

mod complex;
mod distributed;
mod passes;
mod plan;
mod products;
mod small;
mod spread;
mod tables;

use crate::backend::{Cuda, CudaBuf};
use crate::ffi;
use crate::lane::LaneCtx;
use ark_ff::{AdditiveGroup, Field};
use plan::{Pass, Plan, Shape, ShardTwiddleOffset, Twiddles};
use std::sync::PoisonError;
use tables::{address, order, scalar, Order2, Tables};
use tandem_cuda::ffi::tandem_stream;
use tandem_ops::ntt::log_size;
use tandem_ops::{Bls12_381, Bn254, Buffer, Coset, Curve, CurveId, Direction, Error, Mont, Ntt, NttOp, Order, Result};

const OP: &str = "ntt";

/// A launcher with these arguments.
type Launcher<Args> = unsafe extern "C" fn(*const Args, tandem_stream) -> i32;

/// The vectors that are transformed, one behind the other.
#[derive(Clone, Copy)]
struct Data<'a> {
    ctx: &'a LaneCtx,
    at: *mut ffi::tandem_scalar,
    count: usize,
    log_n: u32,
}

/// Transforms over the scalar field of a curve.
macro_rules! curve {
    ($curve:ident) => {
        impl Ntt<$curve> for Cuda {
            fn ntt_batch(&self, data: &mut CudaBuf<Mont>, count: usize, op: NttOp) -> Result<()> {
                let log_n = log_size::<$curve>(data.len(), count, op.coset)?;
                let ctx = self.lane(OP, data.lane())?;
                Data { ctx, at: data.ptr().cast().raw(), count, log_n }.ntt::<$curve>(op)
            }
        }
    };
}
curve!(Bn254);
curve!(Bls12_381);

/// Vectors of as many elements, by which a transform begins or ends with a product.
#[derive(Clone, Copy, Default)]
struct Products {
    /// What is read, instead of the data, and by what it is multiplied.
    first: Option<[*const ffi::tandem_scalar; 2]>,
    /// From whose product the result is subtracted.
    last: Option<[*const ffi::tandem_scalar; 2]>,
}

/// What the twiddles of all passes of a transform have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Kind {
    reversed: bool,
    odd: bool,
    inverse: bool,
}

/// By what the points of the subgroup of 2^`log_n` are multiplied, unless by 1; never zero.
fn shift_of<C: Curve>(coset: Coset, log_n: u32) -> Result<Option<C::Fr>> {
    match coset {
        Coset::Subgroup => Ok(None),
        Coset::Odd => root::<C>(log_n + 1).map(Some),
        Coset::Shift(g) if g == Mont::default() => Err(Error::invalid(OP, "the coset's shift is zero")),
        Coset::Shift(g) => Ok(Some(C::from_mont(g))),
    }
}

fn root<C: Curve>(log_n: u32) -> Result<C::Fr> {
    C::root_of_unity(log_n).ok_or_else(|| Error::invalid(OP, "no root of unity"))
}

/// The root and the factor of all elements for the launchers of transforms by their definition.
fn tiny_root<C: Curve>(direction: Direction, log_n: u32) -> Result<(ffi::tandem_scalar, ffi::tandem_scalar)> {
    let root = root::<C>(log_n)?;
    let (root, factor) = match direction {
        Direction::Forward => (Some(root), Some(C::Fr::ONE)),
        Direction::Inverse => (root.inverse(), C::Fr::from(1u64 << log_n).inverse()),
    };
    let wire = |x: Option<C::Fr>| scalar(C::mont(x.unwrap_or(C::Fr::ZERO)));
    Ok((wire(root), wire(factor)))
}

/// The arguments of a pass of a transform of 2^`log_n` elements with all tables, but without memory to work on.
fn pass_args<C: Curve>(
    ctx: &LaneCtx,
    pass: &Pass,
    kind: Kind,
    log_n: u32,
    known: ShardTwiddleOffset,
) -> Result<ffi::tandem_ntt_pass_args> {
    let Order2 { bits: order_bits, split } = order::<C>();
    let tables = ctx.cache.of::<Tables>();
    let mut tables = tables.lock().unwrap_or_else(PoisonError::into_inner);
    let twiddles = tables.twiddles::<C>(ctx, pass, log_n, kind, known)?;
    let (powers, stages) = tables.field::<C>(ctx, kind.inverse)?;
    Ok(ffi::tandem_ntt_pass_args {
        input: std::ptr::null(),
        output: std::ptr::null_mut(),
        stages: address(stages),
        twiddles: twiddles.unwrap_or(std::ptr::null_mut()),
        powers: address(powers),
        order_bits,
        split,
        log_n,
        low: pass.low,
        log_rows: pass.log_rows,
        reversed: kind.reversed.into(),
        odd: kind.odd.into(),
        inverse: kind.inverse.into(),
        multiply: (pass.twiddles != Twiddles::None).into(),
        reorder: 0,
        last: 0,
    })
}

impl Data<'_> {
    fn ntt<C: Curve>(&self, op: NttOp) -> Result<()> {
        let (data, log_n) = (self, self.log_n);
        let inverse = op.direction == Direction::Inverse;
        let shift = shift_of::<C>(op.coset, log_n)?;
        let mut shape = Shape { log_n, direction: op.direction, odd: false, input: op.input, output: op.output };
        let (memory, least) = (data.ctx.properties.memory_bytes, data.ctx.least_passes);
        if op.coset == Coset::Odd && !inverse {
            shape.odd = true;
            if let Some(plan) = plan::plan(&shape, memory, least) {
                return data.transform::<C>(&shape, &plan);
            }
            shape.odd = false;
        }
        if let (Some(g), false) = (shift, inverse) {
            data.each(|one| one.scale::<C>(C::Fr::ONE, g, op.input))?;
        }
        match plan::plan(&shape, memory, least) {
            Some(plan) => data.transform::<C>(&shape, &plan)?,
            None => data.each(|one| one.tiny::<C>(&shape))?,
        }
        if let (Some(g), true) = (shift, inverse) {
            data.each(|one| one.scale::<C>(C::Fr::ONE, g.inverse().unwrap_or(C::Fr::ZERO), op.output))?;
        }
        Ok(())
    }

    /// Does something with each vector.
    fn each(&self, f: impl Fn(Data) -> Result<()>) -> Result<()> {
        let vector = |i: usize| Data { at: self.at.wrapping_add(i << self.log_n), count: 1, ..*self };
        (0..self.count).map(vector).try_for_each(f)
    }

    fn transform<C: Curve>(&self, shape: &Shape, plan: &Plan) -> Result<()> {
        // Vectors whose last pass goes by halves fill a GPU each.
        if plan.passes.iter().any(|pass| matches!(pass.twiddles, Twiddles::Half { .. })) {
            return self.each(|one| one.with_products::<C>(shape, plan, Products::default()));
        }
        self.with_products::<C>(shape, plan, Products::default())
    }

    fn with_products<C: Curve>(&self, shape: &Shape, plan: &Plan, products: Products) -> Result<()> {
        let inverse = shape.direction == Direction::Inverse;
        let kind = Kind { reversed: plan.reversed, odd: shape.odd, inverse };
        let (launcher, with_products) = match C::ID {
            CurveId::Bn254 => (ffi::tandem_ntt_pass_bn254 as Launcher<_>, ffi::tandem_ntt_product_bn254 as Launcher<_>),
            CurveId::Bls12_381 => (ffi::tandem_ntt_pass_bls12_381 as _, ffi::tandem_ntt_product_bls12_381 as _),
        };
        let of_many: Launcher<_> = match C::ID {
            CurveId::Bn254 => ffi::tandem_ntt_batch_bn254,
            CurveId::Bls12_381 => ffi::tandem_ntt_batch_bls12_381,
        };
        // The last pass that moves elements to other places cannot do it in place, unless it is the only one: then
        // one block reads all before it writes. The data may be secret, and this memory is overwritten when dropped.
        let count = plan.passes.len();
        let other = match plan.reorder && count > 1 {
            true => Some(self.ctx.alloc::<Mont>(OP, self.count << self.log_n)?),
            false => None,
        };
        let other_at = other.as_ref().map_or(self.at, |other| other.ptr().cast().raw());
        for (i, pass) in plan.passes.iter().enumerate() {
            if matches!(pass.twiddles, Twiddles::Half { .. }) {
                self.halves::<C>(pass, kind)?;
                continue;
            }
            let last = i + 1 == count;
            let mut args = pass_args::<C>(self.ctx, pass, kind, self.log_n, ShardTwiddleOffset::default())?;
            args.input = if last { other_at } else { self.at };
            args.output = if i + 2 == count { other_at } else { self.at };
            args.reorder = (last && plan.reorder).into();
            args.last = last.into();
            let (first, less_than) = (products.first.filter(|_| i == 0), products.last.filter(|_| last));
            if let Some([input, _]) = first {
                args.input = input;
            }
            if self.count > 1 {
                let args = ffi::tandem_ntt_batch_args { pass: args, count: self.count as u64 };
                // SAFETY: input and output hold `count` vectors of 2^log_n elements; the rest as below. Products are of one vector.
                self.ctx.launch(OP, |stream| unsafe { of_many(&args, stream) })?;
                continue;
            }
            if first.is_none() && less_than.is_none() {
                // SAFETY: Input and output hold 2^log_n elements; the tables were made for this pass, and stay until the
                // stream has done it.
                self.ctx.launch(OP, |stream| unsafe { launcher(&args, stream) })?;
                continue;
            }
            let [a, b] = less_than.unwrap_or([std::ptr::null(); 2]);
            let times = first.map_or(std::ptr::null(), |[_, times]| times);
            let args = ffi::tandem_ntt_product_args { pass: args, times, a, b };
            // SAFETY: as above; the twiddles hold as many elements, and none of them is written to.
            self.ctx.launch(OP, |stream| unsafe { with_products(&args, stream) })?;
        }
        Ok(())
    }

    /// The last pass, a half of the places after the other. Each is as a shard's: that of the places' upper bit.
    fn halves<C: Curve>(&self, pass: &Pass, kind: Kind) -> Result<()> {
        let bits = self.log_n - 1;
        let (with_table, with_powers) = match C::ID {
            CurveId::Bn254 => (ffi::tandem_ntt_pass_bn254 as Launcher<_>, ffi::tandem_ntt_spread_bn254 as Launcher<_>),
            CurveId::Bls12_381 => (ffi::tandem_ntt_pass_bls12_381 as _, ffi::tandem_ntt_spread_bls12_381 as _),
        };
        for (value, twiddles) in [(0, pass.twiddles), (1, Twiddles::Powers)] {
            let known = ShardTwiddleOffset { bits: 1, value };
            let mut args = pass_args::<C>(self.ctx, &Pass { twiddles, ..*pass }, kind, self.log_n, known)?;
            let at = self.at.wrapping_add((value as usize) << bits);
            (args.input, args.output) = (at.cast_const(), at);
            args.log_n = bits;
            args.last = 1;
            if !args.twiddles.is_null() {
                // SAFETY: as below.
                self.ctx.launch(OP, |stream| unsafe { with_table(&args, stream) })?;
                continue;
            }
            let args = ffi::tandem_ntt_spread_args {
                pass: args,
                targets: [std::ptr::null_mut(); ffi::TANDEM_NTT_MAX_SHARDS as usize],
                log_shards: known.bits,
                sections_in: 0,
                scatter: ffi::TANDEM_NTT_STAY as u32,
                known_bits: known.bits,
                known: known.value,
            };
            // SAFETY: input and output are a half of the 2^log_n elements; the pass sends nothing, so that there are no targets; the
            // tables were made for this pass, and stay until the stream has done it.
            self.ctx.launch(OP, |stream| unsafe { with_powers(&args, stream) })?;
        }
        Ok(())
    }

    /// Transforms fewer elements than a pass needs.
    fn tiny<C: Curve>(&self, shape: &Shape) -> Result<()> {
        let (root, scale) = tiny_root::<C>(shape.direction, self.log_n)?;
        let args = ffi::tandem_ntt_tiny_args {
            data: self.at,
            root,
            scale,
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

    /// Multiplies element i by first * base^i.
    fn scale<C: Curve>(&self, first: C::Fr, base: C::Fr, order: Order) -> Result<()> {
        let split = self.log_n.div_ceil(2);
        let powers = tables::powers::<C>(self.ctx, first, base, split)?;
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
