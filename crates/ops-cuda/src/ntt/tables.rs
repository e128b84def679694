//! The tables of twiddles in a GPU's memory: made when they are first needed, and kept.

use super::plan::{tables_bytes, Pass, ShardTwiddleOffset, Twiddles};
use super::Kind;
use crate::ffi;
use crate::lane::LaneCtx;
use ark_ff::{FftField, Field};
use std::collections::hash_map::{Entry, HashMap};
use tandem_cuda::DeviceBuffer;
use tandem_ops::{Curve, CurveId, Mont, Result};

const OP: &str = "ntt";

/// A `tandem_ntt_twiddle`.
pub(super) type Twiddle = [u64; 8];
const _: () = assert!(size_of::<Twiddle>() == size_of::<ffi::tandem_ntt_twiddle>());

pub(super) fn scalar(x: Mont) -> ffi::tandem_scalar {
    ffi::tandem_scalar { limb: x.0 }
}

/// The address of a table for an argument.
pub(super) fn address(table: &DeviceBuffer<Twiddle>) -> *mut ffi::tandem_ntt_twiddle {
    table.ptr().cast().raw()
}

/// Which twiddles a table holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    curve: CurveId,
    bits: u32,
    log_rows: u32,
    kind: Kind,
    known: ShardTwiddleOffset,
    /// log n of the 1/n that they hold, else 0.
    scaled: u32,
}

/// What every transform over a curve's scalar field needs.
struct FieldTables {
    /// Powers of the root of unity of the highest order, of which all others are powers.
    powers: DeviceBuffer<Twiddle>,
    /// The twiddles inside of passes, of forward and inverse transforms.
    stages: [DeviceBuffer<Twiddle>; 2],
}

/// The tables of one GPU. They are roots of unity: nothing secret.
#[derive(Default)]
pub(super) struct Tables {
    fields: HashMap<CurveId, FieldTables>,
    /// Each with the time of its last use.
    twiddles: HashMap<Key, (u64, DeviceBuffer<Twiddle>)>,
    time: u64,
}

/// What the root of unity of the highest order is.
pub(super) struct Order2 {
    /// Its order is 2^bits.
    pub(super) bits: u32,
    /// Powers are kept as the first 2^split and every 2^split-th.
    pub(super) split: u32,
}

pub(super) fn order<C: Curve>() -> Order2 {
    let bits = <C::Fr as FftField>::TWO_ADICITY;
    Order2 { bits, split: bits.div_ceil(2) }
}

/// The first 2^split powers of `base`, times `first`, then every 2^split-th.
pub(super) fn powers<C: Curve>(ctx: &LaneCtx, first: C::Fr, base: C::Fr, split: u32) -> Result<DeviceBuffer<Twiddle>> {
    let table = ctx.alloc_public::<Twiddle>(OP, 2 << split)?;
    let [first, base] = [first, base].map(|x| scalar(C::mont(x)));
    let args = ffi::tandem_ntt_powers_args { powers: address(&table), first, base, split };
    let launcher = match C::ID {
        CurveId::Bn254 => ffi::tandem_ntt_powers_bn254,
        CurveId::Bls12_381 => ffi::tandem_ntt_powers_bls12_381,
    };
    // SAFETY: the table has 2 * 2^split twiddles of the lane whose stream this is.
    ctx.launch(OP, |stream| unsafe { launcher(&args, stream) })?;
    Ok(table)
}

impl FieldTables {
    fn new<C: Curve>(ctx: &LaneCtx) -> Result<Self> {
        let Order2 { bits, split } = order::<C>();
        let root = C::root_of_unity(bits).ok_or_else(|| tandem_ops::Error::invalid(OP, "no root of unity"))?;
        let powers = powers::<C>(ctx, C::Fr::ONE, root, split)?;
        let stages = |inverse: u32| {
            let table = ctx.alloc_public::<Twiddle>(OP, ffi::TANDEM_NTT_STAGE_TWIDDLES as usize)?;
            let args = ffi::tandem_ntt_stages_args {
                stages: address(&table),
                powers: address(&powers),
                order_bits: bits,
                split,
                inverse,
            };
            let launcher = match C::ID {
                CurveId::Bn254 => ffi::tandem_ntt_stages_bn254,
                CurveId::Bls12_381 => ffi::tandem_ntt_stages_bls12_381,
            };
            // SAFETY: the table has the number of twiddles that the header says; the powers are those of the root
            // of order 2^bits.
            ctx.launch(OP, |stream| unsafe { launcher(&args, stream) })?;
            Ok(table)
        };
        let stages = [stages(0)?, stages(1)?];
        Ok(FieldTables { powers, stages })
    }
}

impl Tables {
    /// The powers of the curve's root of unity, and the twiddles inside of passes.
    pub(super) fn field<C: Curve>(
        &mut self,
        ctx: &LaneCtx,
        inverse: bool,
    ) -> Result<(&DeviceBuffer<Twiddle>, &DeviceBuffer<Twiddle>)> {
        let field = match self.fields.entry(C::ID) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(FieldTables::new::<C>(ctx)?),
        };
        Ok((&field.powers, &field.stages[usize::from(inverse)]))
    }

    /// The table before a pass of a transform of 2^log_n elements, or before its first half; `None` if the pass has none, or if there is
    /// no memory for it and the pass can do without. That of a half takes no other table's room: transforms that take turns would
    /// make theirs anew each time, which costs more than a table saves.
    pub(super) fn twiddles<C: Curve>(
        &mut self,
        ctx: &LaneCtx,
        pass: &Pass,
        log_n: u32,
        kind: Kind,
        known: ShardTwiddleOffset,
    ) -> Result<Option<*mut ffi::tandem_ntt_twiddle>> {
        let (bits, scaled) = match pass.twiddles {
            Twiddles::Table { bits, scaled } => (bits, if scaled { log_n } else { 0 }),
            Twiddles::Half { bits } => (bits, 0),
            Twiddles::None | Twiddles::Powers => return Ok(None),
        };
        let key = Key { curve: C::ID, bits, log_rows: pass.log_rows, kind, known, scaled };
        self.time += 1;
        if let Some((last_use, table)) = self.twiddles.get_mut(&key) {
            *last_use = self.time;
            return Ok(Some(address(table)));
        }
        let (bytes, bound) = (64 << bits, tables_bytes(ctx.properties.memory_bytes));
        if !matches!(pass.twiddles, Twiddles::Half { .. }) {
            self.make_room(bytes, bound);
        } else if self.held() + bytes > bound {
            return Ok(None);
        }
        let table = match ctx.alloc_public::<Twiddle>(OP, 1 << bits) {
            Err(tandem_ops::Error::OutOfMemory { .. }) if scaled == 0 => return Ok(None),
            table => table?,
        };
        let Order2 { bits: order_bits, split } = order::<C>();
        let (powers, _) = self.field::<C>(ctx, kind.inverse)?;
        let scale = C::Fr::from(2u64).pow([u64::from(scaled)]).inverse().unwrap_or(C::Fr::ONE);
        let args = ffi::tandem_ntt_twiddles_args {
            twiddles: address(&table),
            powers: address(powers),
            scale: scalar(C::mont(scale)),
            order_bits,
            split,
            bits,
            log_rows: pass.log_rows,
            reversed: kind.reversed.into(),
            odd: kind.odd.into(),
            inverse: kind.inverse.into(),
            known_bits: known.bits,
            known: known.value,
        };
        let launcher = match C::ID {
            CurveId::Bn254 => ffi::tandem_ntt_twiddles_bn254,
            CurveId::Bls12_381 => ffi::tandem_ntt_twiddles_bls12_381,
        };
        // SAFETY: the table has 2^bits twiddles; the powers are those of the root of order 2^order_bits.
        ctx.launch(OP, |stream| unsafe { launcher(&args, stream) })?;
        let at = address(&table);
        self.twiddles.insert(key, (self.time, table));
        Ok(Some(at))
    }

    /// Drops the tables that were used longest ago until `bytes` more fit into `bound`. Their memory is freed in the
    /// stream's order, after the transforms that read it.
    fn make_room(&mut self, bytes: u64, bound: u64) {
        while self.held() + bytes > bound {
            let Some(oldest) = self.twiddles.iter().min_by_key(|(_, (last_use, _))| *last_use).map(|(key, _)| *key)
            else {
                return;
            };
            self.twiddles.remove(&oldest);
        }
    }

    /// Bytes of all tables of twiddles.
    fn held(&self) -> u64 {
        self.twiddles.values().map(|(_, table)| table.bytes() as u64).sum()
    }
}
