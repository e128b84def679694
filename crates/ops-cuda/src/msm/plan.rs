//! How to take scalars apart and how to hold points: a pure function of the request.

use crate::ffi;
use crate::tuning::msm as tuning;
use tandem_ops::{Curve, CurveId, Error, Group, MsmRequest, MsmSet, Result};

const OP: &str = "plan MSM";

/// A wider window has more buckets than any sum needs.
const MAX_WINDOW_BITS: u32 = 24;
/// What the native code takes, see `valid` in native/src/msm/common.cuh.
const MAX_BUCKETS: u64 = 1 << 24;
const MAX_BUCKET_SETS: u32 = 128;
const MAX_WINDOWS: u32 = 128;
const MAX_PLACES: u32 = 256;
const MAX_ENTRIES: u64 = 0xffff_0000;
const MAX_CARRY_FREE: u32 = ffi::TANDEM_MSM_CARRY_FREE_WINDOWS as u32;
/// An entry has 31 bits for the level and the index.
const ENTRY_BITS: u32 = 31;

/// What differs from curve to curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) curve: CurveId,
    /// Bits of the largest scalar, once the smaller of k and r - k stands for k.
    pub(crate) bits: u32,
    /// Bytes of a point of G1 and of G2.
    pub(crate) point_bytes: [u64; 2],
}

impl Field {
    pub(crate) fn of<C: Curve>() -> Self {
        use ark_ff::{BigInteger, PrimeField};
        Field {
            curve: C::ID,
            bits: C::Fr::MODULUS_MINUS_ONE_DIV_TWO.num_bits(),
            point_bytes: [size_of::<<C::G1 as Group>::Point>() as u64, size_of::<<C::G2 as Group>::Point>() as u64],
        }
    }

    /// The group of a set's points, and the bytes of one of them.
    pub(super) fn group(&self, set: &MsmSet) -> (tuning::GroupId, u64) {
        (tuning::GroupId { curve: self.curve, g2: set.g2 }, self.point_bytes[usize::from(set.g2)])
    }
}

/// The windows of a scalar, and where each of them goes: one at place j, which is bit j * `step_bits` of the scalar, to
/// bucket set j % `bucket_sets` and level `levels_per_window` * (j / `bucket_sets`) of the table of points. Windows follow one another
/// (`step_bits` = `window_bits`), or begin at the lowest bit that is left (`step_bits` = 1). With more `levels_per_window` than one, a
/// table has levels of P, 2P, 4P and so on for each place, and a digit 2^v * odd, v < `levels_per_window`, goes to the bucket of its odd
/// part. At the `carry_free_windows` places below the last one a digit above half its range may stay if it is even: half of it goes to the
/// level of 2P.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) scalars: u64,
    pub(crate) window_bits: u32,
    pub(crate) windows: u32,
    pub(crate) step_bits: u32,
    pub(crate) window_positions: u32,
    pub(crate) bucket_sets: u32,
    pub(crate) table_levels: u32,
    pub(crate) levels_per_window: u32,
    pub(crate) carry_free_windows: u32,
    pub(crate) index_bits: u32,
}

/// Buckets whose digits follow one rule: 2^`bits` in each of so many sets. Bucket k of a set has the digit (2k + 1) * 2^`shift` if they
/// are odd, or (k + 1) * 2^`shift`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) sets: u32,
    pub(crate) bits: u32,
    pub(crate) is_odd: bool,
    pub(crate) shift: u32,
}

impl Shape {
    /// The shape with windows of `window_bits` at multiples of `step_bits`, and as many levels, up to `levels`, as are of
    /// use.
    fn new(scalars: u64, bits: u32, window_bits: u32, step_bits: u32, levels: u32) -> Self {
        // One bit more than the scalar has: a window above half its range carries into the next, and the last one,
        // with at most window_bits - 1 bits of the scalar, must not.
        let windows = bits / window_bits + 1;
        let places = bits / step_bits + 1;
        let bucket_sets = places.div_ceil(levels.clamp(1, places));
        let levels = places.div_ceil(bucket_sets);
        let index_bits = scalars.next_power_of_two().trailing_zeros();
        Shape {
            scalars,
            window_bits,
            windows,
            step_bits,
            window_positions: places,
            bucket_sets,
            table_levels: levels,
            levels_per_window: 1,
            carry_free_windows: 0,
            index_bits,
        }
    }

    /// This plan with so many levels for each place, where that can be and differs. Where the last place has no bits of the scalar, digits
    /// below it need not be carried.
    fn with_powers(self, bits: u32, powers: u32) -> Option<Self> {
        let can_be = !self.is_odd() && self.bucket_sets == 1 && (powers == 1 || powers + 2 <= self.window_bits);
        let carry_free =
            if bits.is_multiple_of(self.window_bits) { MAX_CARRY_FREE.min(self.window_positions - 1) } else { 0 };
        let of_doubles = if powers == 1 { carry_free } else { 0 };
        let with = Shape {
            table_levels: self.window_positions * powers + of_doubles,
            levels_per_window: powers,
            carry_free_windows: carry_free,
            ..self
        };
        (can_be && with != self).then_some(with)
    }

    /// Whether windows begin anywhere, so that all digits are odd.
    pub(crate) fn is_odd(&self) -> bool {
        self.step_bits == 1
    }

    /// Expected digits of a random scalar of `bits` bits that are not 0. Odd ones are one bit more than a window apart, and
    /// the last one has on average half a window.
    pub(super) fn digits(&self, bits: u32) -> f64 {
        let windows = f64::from(self.windows);
        if self.is_odd() {
            return windows.min(f64::from(bits) / f64::from(self.window_bits + 1) + 0.5);
        }
        // The last window has these bits; its digit is 0 where they and the bit below them are. Without bits of its own it is 0 where
        // nothing is carried: what is carried still are half as many for each place, and what 2^powers divides (docs/design/msm.md).
        let last = bits - self.window_bits * (self.windows - 1);
        let half = |times: u32| f64::from(times).exp2().recip();
        let left = match (self.carry_free_windows, self.levels_per_window) {
            (places, 1) => half(places),
            (0, _) => 1.0,
            (places, powers) => half(places) + half(powers - 1),
        };
        windows - 1.0 + left * (1.0 - 0.6 / f64::from(last).exp2())
    }

    fn is_possible(&self) -> bool {
        self.bucket_sets <= MAX_BUCKET_SETS
            && self.windows <= MAX_WINDOWS
            && self.window_positions <= MAX_PLACES
            && self.parts().all(|part| part.bits > 0)
            && self.buckets() <= MAX_BUCKETS
            && self.index_bits < ENTRY_BITS
            && u64::from(self.table_levels) <= 1 << (ENTRY_BITS - self.index_bits)
            && u64::from(self.table_levels).checked_mul(self.scalars).is_some_and(|rows| rows < 1 << ENTRY_BITS)
            && self.entries().is_some_and(|entries| entries < MAX_ENTRIES)
    }

    /// Room for the non-zero digits of all scalars.
    pub(crate) fn entries(&self) -> Option<u64> {
        self.scalars.checked_mul(self.windows.into())
    }

    /// The parts of the buckets, as in native/src/msm/common.cuh: a signed digit has half as many absolute values as a digit, and an odd
    /// one half of those.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Part> {
        let sets = self.bucket_sets;
        let part = |bits, is_odd, shift| Part { sets, bits, is_odd, shift };
        let (c, odd) = (self.window_bits, self.is_odd());
        let [first, second] = match self.levels_per_window {
            1 => [Some(part(c - 1 - u32::from(odd), odd, 0)), None],
            powers => [Some(part(c - 2, true, 0)), Some(part(c - 1 - powers, false, powers))],
        };
        first.into_iter().chain(second)
    }

    pub(crate) fn buckets(&self) -> u64 {
        self.parts().map(|part| u64::from(part.sets) << part.bits).sum()
    }

    /// Partial sums that are left for the host.
    pub(crate) fn sums(&self) -> usize {
        self.parts().map(|part| (part.sets * (part.bits + 1)) as usize).sum()
    }

    pub(crate) fn raw(&self) -> ffi::tandem_msm_shape {
        ffi::tandem_msm_shape {
            scalars: self.scalars,
            window_bits: self.window_bits,
            windows: self.windows,
            step_bits: self.step_bits,
            window_positions: self.window_positions,
            bucket_sets: self.bucket_sets,
            table_levels: self.table_levels,
            levels_per_window: self.levels_per_window,
            carry_free_windows: self.carry_free_windows,
            index_bits: self.index_bits,
        }
    }
}

/// The shape that is expected to be fastest among those whose tables fit into the request's memory. `None` where there
/// are no scalars.
pub(crate) fn plan(request: &MsmRequest, field: Field) -> Result<Option<Shape>> {
    let best = shapes(request, field)?.into_iter();
    let best = best.min_by(|a, b| cost(a, field, request).total_cmp(&cost(b, field, request)));
    if best.is_none() && request.scalars > 0 {
        return Err(too_many(request.scalars as u64));
    }
    Ok(best)
}

/// All shapes that [`plan`] chooses among: windows of every width, with tables as large as they may be, and with none. Where a table has
/// all places, also with some powers of two of each.
pub(crate) fn shapes(request: &MsmRequest, field: Field) -> Result<Vec<Shape>> {
    let Some(levels) = most_levels(request, field)? else { return Ok(vec![]) };
    let scalars = request.scalars as u64;
    let of_window = |(c, step)| {
        let most = Shape::new(scalars, field.bits, c, step, levels);
        let without = Shape::new(scalars, field.bits, c, step, 1);
        let powers = (1..=tuning::MOST_POWERS).filter_map(move |powers| most.with_powers(field.bits, powers));
        let tables = [Some(most), (without != most).then_some(without)].into_iter().flatten();
        tables.chain(powers.filter(move |shape| shape.table_levels <= levels))
    };
    let windows = (2..=MAX_WINDOW_BITS).flat_map(|c| [(c, c), (c, 1)]);
    Ok(windows.flat_map(of_window).filter(Shape::is_possible).collect())
}

/// Shapes with tables of sizes between those of [`shapes`], which large sums have where memory is short, for windows of a few widths:
/// for tests.
pub(crate) fn shapes_between(request: &MsmRequest, field: Field) -> Result<Vec<Shape>> {
    let Some(most) = most_levels(request, field)? else { return Ok(vec![]) };
    let mut shapes = Vec::new();
    for (c, step) in [3, 8, 13, 15].into_iter().flat_map(|c| [(c, c), (c, 1)]) {
        let new = |levels| Shape::new(request.scalars as u64, field.bits, c, step, levels);
        let all = new(most).table_levels;
        for shape in [2, 3, all / 3, all / 2, all.saturating_sub(1)].map(new) {
            if (2..all).contains(&shape.table_levels) && shape.is_possible() && !shapes.contains(&shape) {
                shapes.push(shape);
            }
        }
    }
    Ok(shapes)
}

/// How many levels the tables of a request may have; `None` where there are no scalars.
fn most_levels(request: &MsmRequest, field: Field) -> Result<Option<u32>> {
    for (i, set) in request.sets.iter().enumerate() {
        if set.first.checked_add(set.points).is_none_or(|end| end > request.scalars) {
            let reason = format!(
                "set {i} has {} points from scalar {} on, of {} scalars",
                set.points, set.first, request.scalars
            );
            return Err(Error::invalid(OP, reason));
        }
    }
    if request.scalars == 0 {
        return Ok(None);
    }
    let set_bytes = |set: &MsmSet| (set.points as u64).saturating_mul(field.group(set).1);
    let bytes = request.sets.iter().map(set_bytes).fold(0, u64::saturating_add);
    let reach = |set: &MsmSet| field.group(set).0.measured().table_reach / set_bytes(set).max(1);
    if bytes > request.memory_bytes {
        // As the CPU says it, which has its name for the operation.
        let (device, free) = ("the GPU".into(), request.memory_bytes);
        return Err(Error::OutOfMemory { op: "plan", device, wanted: bytes, free });
    }
    let scalars = request.scalars as u64;
    let index_bits = scalars.checked_next_power_of_two().map_or(64, u64::trailing_zeros);
    if index_bits >= ENTRY_BITS {
        return Err(too_many(scalars));
    }
    let levels = (request.memory_bytes / bytes.max(1))
        .min(request.sets.iter().map(reach).min().unwrap_or(u64::MAX))
        .clamp(1, 1 << (ENTRY_BITS - index_bits).min(8));
    Ok(Some(levels as u32))
}

/// Over how many of `lanes` lanes a sum of `points` points is split: as many as get `shard_points` each (`tuning::msm::shard_points`).
/// A share takes more than its share of the time, for launches, the end of a sum and the host's part do not become less with the points.
pub(crate) fn lanes_for(points: usize, lanes: usize, shard_points: usize) -> usize {
    (points / shard_points.max(1)).clamp(1, lanes.max(1))
}

fn too_many(scalars: u64) -> Error {
    Error::invalid(OP, format!("{scalars} scalars are more than one sum can have"))
}

/// Expected time of a sum over each set in mixed additions of G1, with its share of making the tables.
fn cost(shape: &Shape, field: Field, request: &MsmRequest) -> f64 {
    let digits = shape.digits(field.bits);
    let more_levels = f64::from(shape.table_levels - 1);
    let doublings = f64::from(
        (shape.window_positions.div_ceil(shape.bucket_sets) - 1) * shape.step_bits * shape.bucket_sets
            + shape.levels_per_window
            - 1,
    );
    let table = doublings * tuning::DOUBLING_COST + more_levels * tuning::LEVEL_COST;
    let of_point = table / request.uses.max(1) as f64;
    let sums: f64 = request
        .sets
        .iter()
        .map(|set| {
            let weight = if set.g2 { tuning::G2_COST } else { 1.0 };
            weight * set.points as f64 * of_point + additions(shape, field, request, set).1
        })
        .sum();
    let look_ahead = if shape.carry_free_windows > 0 { tuning::look_ahead_cost(field.curve) } else { 0.0 };
    let of_scalar = digits * tuning::entry_cost(field.curve, shape.buckets()) + look_ahead;
    sums + shape.scalars as f64 * of_scalar
}

/// Whether a set's entries are added up in rounds, and the expected time of that and of the rest of the sum.
pub(super) fn additions(shape: &Shape, field: Field, request: &MsmRequest, set: &MsmSet) -> (bool, f64) {
    let (group, point_bytes) = field.group(set);
    let tuning::Measured { xyzz, mut rounds, .. } = group.measured();
    if request.pipelined {
        rounds.entry += tuning::overwritten(field.curve, point_bytes);
    }
    let time = |a: &tuning::Additions| {
        set.points as f64 * shape.digits(field.bits) * a.entry + shape.buckets() as f64 * a.bucket + a.start
    };
    let (in_xyzz, in_rounds) = (time(&xyzz), time(&rounds));
    (in_rounds < in_xyzz, in_rounds.min(in_xyzz))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use ark_ff::{BigInteger, PrimeField};
    use tandem_ops::{Bls12_381, Bn254};

    pub(in crate::msm) const BN254: Field = Field { curve: CurveId::Bn254, bits: 253, point_bytes: [64, 128] };
    pub(in crate::msm) const BLS12_381: Field = Field { curve: CurveId::Bls12_381, bits: 254, point_bytes: [96, 192] };

    pub(in crate::msm) fn one_set(scalars: usize, memory_bytes: u64) -> MsmRequest {
        let sets = vec![MsmSet { g2: false, first: 0, points: scalars }];
        MsmRequest { scalars, sets, memory_bytes, uses: 10_000, pipelined: false }
    }

    #[test]
    fn fields() {
        assert_eq!(Field::of::<Bn254>(), BN254);
        assert_eq!(Field::of::<Bls12_381>(), BLS12_381);
    }

    /// The signed digits of the largest scalar, and of one with all windows full, leave no carry.
    fn windows_hold_every_scalar<C: Curve>() {
        for c in 2..=MAX_WINDOW_BITS {
            let bits = Field::of::<C>().bits;
            let shape = Shape::new(1, bits, c, c, 128);
            let mut full = C::Fr::MODULUS_MINUS_ONE_DIV_TWO;
            full.0 = [u64::MAX; 4];
            full >>= 256 - bits;
            for mut scalar in [C::Fr::MODULUS_MINUS_ONE_DIV_TWO, full] {
                let mut carry = 0;
                for _ in 0..shape.windows {
                    let digit = (scalar.0[0] & ((1 << c) - 1)) + carry;
                    carry = u64::from(digit > 1 << (c - 1));
                    scalar >>= c;
                }
                assert!(carry == 0 && scalar.is_zero(), "{} windows of {c} bits", shape.windows);
            }
        }
    }

    /// Checks that windows that begin at the lowest bit that is left, as native/src/msm/digits.cuh takes them, hold every scalar.
    fn odd_windows_hold_every_scalar<C: Curve>() {
        let bits = Field::of::<C>().bits;
        let mut full = C::Fr::MODULUS_MINUS_ONE_DIV_TWO;
        full.0 = [u64::MAX; 4];
        full >>= 256 - bits;
        for c in 3..=MAX_WINDOW_BITS {
            let shape = Shape::new(1, bits, c, 1, 256);
            for seed in [C::Fr::MODULUS_MINUS_ONE_DIV_TWO, full] {
                let (mut rest, mut place, mut digits) = (seed, 0, 0);
                while !rest.is_zero() {
                    let zeros = rest.0[0].trailing_zeros().min(31);
                    if zeros > 0 {
                        rest >>= zeros;
                        place += zeros;
                        continue;
                    }
                    let digit = rest.0[0] & ((1 << c) - 1);
                    rest >>= c;
                    if digit > 1 << (c - 1) {
                        assert!(!rest.add_with_carry(&1u64.into()));
                    }
                    assert!(place < shape.window_positions);
                    place += c;
                    digits += 1;
                }
                assert!(digits <= shape.windows, "{digits} windows of {c} bits");
            }
        }
    }

    #[test]
    fn no_carry_is_lost() {
        windows_hold_every_scalar::<Bn254>();
        windows_hold_every_scalar::<Bls12_381>();
        odd_windows_hold_every_scalar::<Bn254>();
        odd_windows_hold_every_scalar::<Bls12_381>();
    }

    /// The digits that are not 0 of random scalars, taken apart with every choice that the even ones at carry-free places have: the one that
    /// leaves the last place without a digit, where there is one.
    fn digits_of_random_scalars(shape: &Shape) -> f64 {
        use ark_ff::UniformRand;
        use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};
        let (c, places, mut rng) = (shape.window_bits, shape.window_positions as usize, ChaCha8Rng::seed_from_u64(1));
        const SCALARS: usize = 4000;
        let digits_with = |windows: &[u64], choices: usize| {
            let (mut carry, mut digits) = (0, 0);
            for (j, window) in windows.iter().enumerate() {
                let digit = window + carry;
                carry = u64::from(digit > 1 << (c - 1));
                let chosen = (j + 1 + shape.carry_free_windows as usize).checked_sub(places).filter(|_| j + 1 < places);
                if digit % 2 == 0 && (shape.levels_per_window == 1 || digit % (1 << shape.levels_per_window) != 0) {
                    carry = chosen.map_or(carry, |i| (choices >> i & 1) as u64);
                }
                digits += usize::from(digit != carry << c);
            }
            digits
        };
        let of_one = |_| {
            let scalar = <Bn254 as Curve>::Fr::rand(&mut rng);
            let mut rest = std::cmp::min(scalar.into_bigint(), (-scalar).into_bigint());
            let mut window = |_| (rest.0[0] & ((1 << c) - 1), rest >>= c).0;
            let windows: Vec<u64> = (0..places).map(&mut window).collect();
            (0..1 << shape.carry_free_windows).map(|choices| digits_with(&windows, choices)).min().unwrap()
        };
        (0..SCALARS).map(of_one).sum::<usize>() as f64 / SCALARS as f64
    }

    #[test]
    fn random_scalars_have_the_expected_digits() {
        for (c, powers) in [(11, 1), (16, 1), (16, 3), (23, 1), (23, 2), (23, 3), (23, 4)] {
            let most = Shape::new(1 << 20, BN254.bits, c, c, 128);
            for shape in [Some(most), most.with_powers(BN254.bits, powers)].into_iter().flatten() {
                let (got, expected) = (digits_of_random_scalars(&shape), shape.digits(BN254.bits));
                assert!((got - expected).abs() < 0.07, "{shape:?}: {got} digits and not {expected}");
            }
        }
    }

    #[test]
    fn every_window_has_one_place() {
        for (levels, step) in (1..=20).flat_map(|levels| [(levels, 16), (levels, 1), (levels * 13, 1)]) {
            let shape = Shape::new(1000, 253, 16, step, levels);
            assert!(shape.table_levels <= levels);
            let places: std::collections::HashSet<_> =
                (0..shape.window_positions).map(|j| (j % shape.bucket_sets, j / shape.bucket_sets)).collect();
            assert_eq!(places.len(), shape.window_positions as usize);
            assert!(places.iter().all(|&(_, level)| level < shape.table_levels));
        }
    }

    #[test]
    fn tables_fit_the_memory() {
        for field in [BN254, BLS12_381] {
            for log_n in 0..=27 {
                let scalars = (1usize << log_n) + (log_n as usize % 3) - 1;
                for times in [1, 2, 3, 7, 20, 300, 10_000] {
                    let sets = vec![
                        MsmSet { g2: false, first: 0, points: scalars },
                        MsmSet { g2: true, first: scalars / 3, points: scalars / 2 },
                    ];
                    let bytes = |set: &MsmSet| set.points as u64 * field.point_bytes[usize::from(set.g2)];
                    let once: u64 = sets.iter().map(bytes).sum();
                    let request =
                        MsmRequest { scalars, sets, memory_bytes: once * times, uses: times, pipelined: false };
                    let Some(shape) = plan(&request, field).unwrap() else {
                        assert_eq!(scalars, 0);
                        continue;
                    };
                    assert!(
                        shape.is_possible() && u64::from(shape.table_levels) * once <= request.memory_bytes.max(once)
                    );
                    assert!(shape.windows * shape.window_bits > field.bits);
                }
            }
        }
    }

    /// Every width of both kinds of windows, as far as the native code takes it.
    #[test]
    fn all_windows_are_among_the_shapes() {
        let request = one_set(70, u64::MAX);
        let all = shapes(&request, BN254).unwrap();
        for c in 2..=MAX_WINDOW_BITS {
            for step in [c, 1] {
                let levels: Vec<u32> =
                    all.iter().filter(|s| (s.window_bits, s.step_bits) == (c, step)).map(|s| s.table_levels).collect();
                let places = Shape::new(70, 253, c, step, 1).window_positions;
                // With some powers of two of each place, as far as an entry has bits for the level.
                let powers =
                    (2..=tuning::MOST_POWERS.min(c - 2)).map(|powers| places * powers).filter(|&levels| levels <= 256);
                // With doubles of three places where the last one has no bits of the scalar.
                let powers = (253 % c == 0).then_some(places + 3).into_iter().chain(powers);
                let expected: Vec<u32> = match (c, step) {
                    (2, 1) => vec![], // one bucket, of odd digits of two bits
                    // Without a table, windows anywhere need a bucket set for each bit, or too many buckets.
                    (_, 1) => vec![places],
                    (22.., _) => [places].into_iter().chain(powers).collect(),
                    _ => [places, 1].into_iter().chain(powers).collect(),
                };
                assert_eq!(levels, expected, "windows of {c} bits, {step} apart");
            }
        }
        assert!(all.contains(&plan(&request, BN254).unwrap().unwrap()));
    }

    /// Two, three, some and most levels, of windows one behind the other and anywhere; none that is among the others.
    #[test]
    fn tables_of_sizes_between_are_tested() {
        let request = one_set(70, u64::MAX);
        for field in [BN254, BLS12_381] {
            let (all, between) = (shapes(&request, field).unwrap(), shapes_between(&request, field).unwrap());
            for (i, shape) in between.iter().enumerate() {
                assert!(shape.is_possible() && !all.contains(shape) && !between[..i].contains(shape), "{shape:?}");
                assert!(shape.table_levels > 1 && shape.bucket_sets > 1, "{shape:?}");
            }
            for c in [3, 8, 13, 15] {
                for step in [c, 1] {
                    let levels: Vec<u32> = between
                        .iter()
                        .filter(|s| (s.window_bits, s.step_bits) == (c, step))
                        .map(|s| s.table_levels)
                        .collect();
                    assert!(
                        levels.len() >= 3 && levels.starts_with(&[2, 3]),
                        "windows of {c} bits, {step} apart: {levels:?}"
                    );
                }
            }
        }
        // Two levels at the most: none lies between.
        let two = MsmRequest { memory_bytes: 2 * 64 * 70, ..one_set(70, 0) };
        assert_eq!(shapes_between(&two, BN254).unwrap(), []);
    }

    #[test]
    fn more_memory_means_fewer_bucket_sets() {
        let shape = |times| plan(&one_set(1 << 20, (64u64 << 20) * times), BN254).unwrap().unwrap();
        assert_eq!(shape(1).table_levels, 1);
        assert!(shape(4).bucket_sets < shape(1).bucket_sets);
        assert_eq!(shape(255).bucket_sets, 1);
    }

    #[test]
    fn larger_sums_have_wider_windows() {
        let bits = |log_n: u32| plan(&one_set(1 << log_n, u64::MAX), BN254).unwrap().unwrap().window_bits;
        let all: Vec<u32> = (4..=26).map(bits).collect();
        assert!(all.is_sorted() && all[0] < 12 && all[all.len() - 1] > 19, "{all:?}");
    }

    /// Those that were measured, or within a hundredth of it: docs/design/msm.md.
    #[test]
    fn sums_have_the_fastest_windows() {
        let bits = |g2, log_n: u32, field| {
            let sets = vec![MsmSet { g2, first: 0, points: 1 << log_n }];
            let request =
                MsmRequest { scalars: 1 << log_n, sets, memory_bytes: 105 << 30, uses: 1_000_000, pipelined: false };
            let shape = plan(&request, field).unwrap().unwrap();
            (shape.window_bits, shape.step_bits == 1, shape.levels_per_window)
        };
        let of_g1 = |sizes: &[u32], field| sizes.iter().map(|&n| bits(false, n, field)).collect::<Vec<_>>();
        let odd = |bits| (bits, true, 1);
        let expected = [odd(19), odd(20), odd(20), odd(21), odd(21), (23, false, 4), (23, false, 3), (23, false, 1)];
        assert_eq!(of_g1(&[19, 20, 21, 22, 23, 24, 25, 26], BN254), expected);
        let expected = [odd(19), odd(20), (20, false, 4), (22, false, 4), (24, false, 1)];
        assert_eq!(of_g1(&[20, 21, 22, 24, 26], BLS12_381), expected);
        let of_g2 = |field| [20, 21, 22].map(|n| bits(true, n, field));
        assert_eq!(of_g2(BN254), [odd(19), odd(20), odd(20)]);
        assert_eq!(of_g2(BLS12_381), [odd(19), odd(20), (20, false, 4)]);
    }

    #[test]
    fn tables_are_made_for_those_who_use_them() {
        let shape = |uses| plan(&MsmRequest { uses, ..one_set(1 << 20, 70 << 30) }, BN254).unwrap().unwrap();
        assert_eq!(shape(1).table_levels, 1);
        let some = shape(100);
        assert!(
            (10..20).contains(&some.window_positions) && some.levels_per_window > 1 && some.bucket_sets == 1,
            "{some:?}"
        );
        assert_eq!((shape(10_000).table_levels, shape(10_000).step_bits), (254, 1));
    }

    #[test]
    fn tables_stay_within_reach() {
        let reach = tuning::GroupId { curve: CurveId::Bn254, g2: false }.measured().table_reach;
        let shape = plan(&one_set(1 << 24, u64::MAX), BN254).unwrap().unwrap();
        assert!(u64::from(shape.table_levels) * (64 << 24) <= reach && shape.bucket_sets == 1, "{shape:?}");
        let shape = plan(&one_set(1 << 23, u64::MAX), BN254).unwrap().unwrap();
        assert!(u64::from(shape.table_levels) * (64 << 23) <= reach, "{shape:?}");
    }

    #[test]
    fn refuses_what_cannot_be() {
        let refused = |request: &MsmRequest| plan(request, BN254).unwrap_err().to_string();
        assert!(refused(&one_set(1 << 20, 1000)).contains("67108864 bytes"));
        assert!(refused(&one_set(1 << 40, u64::MAX)).contains("more than one sum can have"));
        for (first, points) in [(6, 5), (11, 0), (usize::MAX, 2)] {
            let sets = vec![MsmSet { g2: true, first, points }];
            let request = MsmRequest { scalars: 10, sets, memory_bytes: u64::MAX, uses: 1, pipelined: false };
            assert!(refused(&request).contains("of 10 scalars"));
        }
    }

    /// Entries are counted in 32 bits, and have 31 for the level and the index.
    #[test]
    fn sums_that_the_native_code_cannot_count_are_no_plan() {
        let few = |scalars| MsmRequest {
            sets: vec![MsmSet { g2: false, first: 0, points: 100 }],
            ..one_set(scalars, u64::MAX)
        };
        for scalars in [1 << 26, 1 << 27, 1 << 28, 1 << 29, (1 << 30) - 1] {
            for shape in shapes(&few(scalars), BN254).unwrap() {
                let (entries, rows) =
                    (shape.scalars * u64::from(shape.windows), u64::from(shape.table_levels) * shape.scalars);
                assert!(entries < 0xffff_0000 && rows < 1 << 31, "{shape:?}");
            }
        }
    }

    #[test]
    fn small_sums_stay_on_one_lane() {
        for (&curve, g2) in CurveId::ALL.iter().flat_map(|curve| [(curve, false), (curve, true)]) {
            let least = tuning::GroupId { curve, g2 }.measured().shard_points;
            let lanes = |points, lanes| lanes_for(points, lanes, least);
            assert_eq!([0, 1, least, 2 * least - 1].map(|points| lanes(points, 8)), [1; 4]);
            assert_eq!([2, 3, 7, 8, 9, 1 << 20].map(|times| lanes(times * least, 8)), [2, 3, 7, 8, 8, 8]);
            assert_eq!([0, 1, 2, 3, 64].map(|of| lanes(1 << 28, of)), [1, 1, 2, 3, 64]);
        }
        assert_eq!(lanes_for(usize::MAX, usize::MAX, 0), usize::MAX);
    }

    #[test]
    fn takes_empty_sets() {
        assert_eq!(plan(&one_set(0, 0), BN254).unwrap(), None);
        let sets = vec![MsmSet { g2: false, first: 10, points: 0 }];
        assert!(plan(&MsmRequest { scalars: 10, sets, memory_bytes: 0, uses: 1, pipelined: false }, BN254)
            .unwrap()
            .is_some());
    }
}
