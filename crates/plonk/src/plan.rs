//! Which lane does what: a pure decision, made once a key.
//!
//! The first lane has the polynomials, and the grand product, evaluations and divisions are its own: each round waits for the one before it. A
//! sum can be cut between any two points. A coset needs the columns and Z, of which other lanes get copies, and gives one vector back. Where columns
//! are interpolated and cosets lie, a model of the time decides (`model.rs`).

use crate::additions::LANE_BYTES;
use crate::coset::{COSETS, COSET_VECTORS};
use crate::key::FIRST;
use crate::model::soonest;
use crate::stay::Stay;
use crate::P1;
use std::fmt;
use tandem_ops::{Curve, Lane, Mont};
use tandem_proof::{budget, Layout};

/// Who does what in a proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Over how many lanes each sum is split by points; the first ones.
    pub sums: usize,
    /// The lane that interpolates each column.
    pub columns: [Lane; 3],
    /// The lane of each coset that the quotient is computed on.
    pub cosets: [Lane; COSETS],
    /// Whether columns are committed to by their values, with points of the Lagrange basis.
    pub basis: bool,
    /// What of the key stays on the lanes.
    pub stay: Stay,
    /// How many times as fast as on one lane a proof is, as a model has it, in hundredths; `None` where there is one lane.
    pub foretold: Option<u32>,
}

impl Plan {
    /// The plan for so many `lanes`, where a sum over the powers of tau is done soonest on so many of them, `for_sum`.
    ///
    /// Where a sum is not worth sharing, no coset is, unless `layout` asks for it: both grow with the rows, and a coset's vectors have
    /// to be moved first.
    pub fn new(lanes: usize, for_sum: usize, layout: Layout) -> Self {
        let lanes = lanes.max(1);
        let sums = if layout == Layout::Split { lanes } else { for_sum.clamp(1, lanes) };
        let sharing = match layout {
            Layout::Auto => sums,
            Layout::Roles | Layout::Blueprint => 1,
            Layout::Split => lanes,
        };
        let first =
            Self { sums, columns: [FIRST; 3], cosets: [FIRST; COSETS], basis: false, stay: Stay::ALL, foretold: None };
        soonest(first, sharing)
    }

    /// This plan where as much `stay`s. Values that are made anew are made of what the first lane has.
    fn with(self, stay: Stay) -> Self {
        let columns = if stay.cosets { self.columns } else { [FIRST; 3] };
        Plan { stay, columns, ..self }
    }

    /// This plan for lanes with so many bytes free: as much of a key of these sizes over `C` stays there as leaves room for a proof. Where
    /// nothing does, the first lane alone, which then deals nothing; and where that does not, the plan that takes least.
    #[must_use]
    pub fn within<C: Curve>(self, sizes: Sizes, free: &[u64]) -> Self {
        let fits = |plan: &Plan| plan.memory::<C>(sizes).iter().zip(free).all(|(lane, free)| lane.need() <= *free);
        let alone = Plan { sums: 1, columns: [FIRST; 3], cosets: [FIRST; COSETS], foretold: None, ..self.clone() };
        let ways = |plan: &Plan| Stay::ways().map(|stay| plan.clone().with(stay)).collect::<Vec<_>>();
        let (all, one) = (ways(&self), ways(&alone));
        let most = |plan: &&Plan| plan.memory::<C>(sizes).iter().map(LaneBytes::need).max();
        let least = || all.last().into_iter().chain(one.last()).min_by_key(most);
        all.iter().chain(&one).find(|plan| fits(plan)).or_else(least).cloned().unwrap_or(self)
    }
}

/// Proofs that points of the Lagrange basis are paid for by: to make them takes as long as they save in 250 to 350.
const BASIS_PROOFS: u64 = 400;
/// Seconds that making them may take while a key is loaded.
const BASIS_SECONDS: f64 = 20.0;
/// Points that powers and basis together have room for, for each power: with less, tables of few multiples would cost six sums more than
/// three save.
const BASIS_MULTIPLES: u64 = 48;

/// Whether a key for so many `proofs` gets points of the Lagrange basis, which takes so many `seconds`, where each lane has so much room for
/// points, of which its powers of tau without multiples take so much.
pub(crate) fn takes_basis(proofs: u64, seconds: f64, lanes: impl IntoIterator<Item = (u64, u64)>) -> bool {
    let fits = |(room, powers): (u64, u64)| room / BASIS_MULTIPLES >= powers;
    proofs >= BASIS_PROOFS && seconds <= BASIS_SECONDS && lanes.into_iter().all(fits)
}

/// What of the room for points goes to the powers of tau where there is a basis, too: they have six sums of a proof, the basis three.
pub(crate) fn beside_basis(room: u64) -> u64 {
    room / 3 * 2
}

/// Polynomials that a key has the coefficients of on the first lane, columns of the permutation, and the rows' roots of unity.
pub(crate) const POLYNOMIALS: usize = 8;
const COLUMNS: usize = 3;
const ROWS: usize = 1;

/// What transforms and scans of a GPU work with and keep, in vectors of as many elements as rows: factors between the passes of two kinds of
/// transforms, a copy, and upper levels of scans.
const OF_PRIMITIVES: usize = 4;

/// Bytes for each scalar of a sum: its copy, and 26 windows of a key and an index, twice.
const SUMMED: u64 = 32 + 26 * 8 * 2;

/// The sizes that decide what a key and its proofs take of memory. How many signals are public is none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Rows of the domain.
    pub domain: usize,
    /// Powers of tau.
    pub powers: usize,
    /// Most vectors that a proof holds at once on the first lane.
    pub vectors: Vectors,
}

/// Vectors, of as many elements as rows, that a proof holds at once, at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vectors {
    /// Where values on the cosets stay.
    pub there: usize,
    /// Where it makes them, those counted in.
    pub anew: usize,
}

/// What a lane's memory is for, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneBytes {
    /// What stays there of the key without its powers of tau.
    pub key: u64,
    /// A proof, beside the key.
    pub proof: u64,
    /// The lane's powers of tau that are there at a time, without multiples.
    pub powers: u64,
}

impl LaneBytes {
    /// All of it, and what is kept back: with less memory a key is refused.
    pub fn need(&self) -> u64 {
        let least = self.proof.saturating_add(self.powers);
        // The least memory beside the key that leaves enough for its powers: no more than an eighth is kept back.
        let (mut low, mut high) = (least, least.saturating_mul(2));
        while low < high {
            let middle = low + (high - low) / 2;
            match self.for_powers(middle) >= self.powers {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        self.key.saturating_add(low)
    }

    /// What of it is neither the key nor its powers.
    pub(crate) fn beside(&self) -> u64 {
        self.need().saturating_sub(self.key).saturating_sub(self.powers)
    }

    /// What powers of tau and their multiples may take of the `free` bytes of a lane that has the rest of the key.
    pub fn for_powers(&self, free: u64) -> u64 {
        budget::for_points(free, self.proof)
    }
}

impl Plan {
    /// What a key of these sizes over `C` takes of the memory of each lane, the first one first.
    pub fn memory<C: Curve>(&self, sizes: Sizes) -> Vec<LaneBytes> {
        let Sizes { domain, powers, vectors } = sizes;
        let stay = self.stay;
        let of_rows = |bytes: usize| (domain as u64).saturating_mul(bytes as u64);
        let of_vectors = |count: usize| of_rows(count * size_of::<Mont>());
        let (vectors, on_coset) = match stay.cosets {
            true => (vectors.there, ON_COSET),
            false => (vectors.anew, ON_COSET_ANEW),
        };
        let cut = stay.cut(powers, self.sums);
        let placed = self.cosets.iter().chain(&self.columns);
        let lanes = placed.map(|lane| lane.0 + 1).chain([self.sums]).max().unwrap_or(1);
        let of_lane = |lane: usize| {
            let cosets = self.cosets.iter().filter(|of| of.0 == lane).count();
            // Made anew they come one after the other. One map serves all.
            let (there, at_once) = if stay.cosets { (cosets, cosets) } else { (0, cosets.min(1)) };
            let on_cosets = of_rows(there * COSET_VECTORS * size_of::<Mont>() + cosets.min(1) * size_of::<u32>());
            let (key, held) = match lane {
                0 => {
                    let vectors_of_key = if stay.polynomials { POLYNOMIALS + COLUMNS + ROWS } else { 0 };
                    let own = of_rows(vectors_of_key * size_of::<Mont>() + COLUMNS * size_of::<u32>() + LANE_BYTES);
                    (on_cosets.saturating_add(own), if lanes > 1 { vectors + DEALT } else { vectors })
                }
                _ => {
                    let columns = self.columns.iter().filter(|of| of.0 == lane).count();
                    (on_cosets, at_once * on_coset + columns * ON_COLUMN)
                }
            };
            let share = |pieces: usize| if lane < self.sums { pieces.saturating_mul(cut.of_lane) as u64 } else { 0 };
            // Pieces of the scalars are cut out of them on the first lane, for all lanes.
            let of_all = if lane == 0 && cut.count > 1 { cut.at_once().saturating_mul(cut.piece) as u64 } else { 0 };
            let scalars = share(cut.at_once()).saturating_mul(SUMMED);
            let scalars = scalars.saturating_add(of_all.saturating_mul(size_of::<Mont>() as u64));
            let proof = of_vectors(held + OF_PRIMITIVES).saturating_add(scalars);
            let points = if stay.powers { share(cut.count) } else { share(cut.at_once()) };
            LaneBytes { key, proof, powers: points.saturating_mul(size_of::<P1<C>>() as u64) }
        };
        (0..lanes).map(of_lane).collect()
    }
}

/// Copies on their way to other lanes that the first lane holds at once: of the three vectors that are summed together.
const DEALT: usize = 3;
/// Vectors that another lane than the first holds at once of a column that it interpolates: its values, what is blinded, and copies on their way.
const ON_COLUMN: usize = 4;
/// Most vectors that another lane than the first holds at once of a coset: A, B, C, Z, Z at w X, public values, a sum and one on its way.
pub(crate) const ON_COSET: usize = 8;
/// Most vectors that it holds of a coset where it makes the key's values there.
pub(crate) const ON_COSET_ANEW: usize = 12;

impl fmt::Display for LaneBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        let (key, powers, proof, need) = (mib(self.key), mib(self.powers), mib(self.proof), mib(self.need()));
        write!(f, "key {key} MiB, powers of tau {powers}, a proof {proof}, with what is kept back {need} at least")
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c] = self.cosets.map(|lane| lane.0);
        let [of_a, of_b, of_c] = self.columns.map(|lane| lane.0);
        let (sums, lanes) = (self.sums, if self.sums == 1 { "lane" } else { "lanes" });
        let columns = if self.basis { ", columns by their values" } else { "" };
        writeln!(f, "sums over {sums} {lanes}, cosets on {a}, {b}, {c}{columns}")?;
        if self.columns != [FIRST; 3] {
            writeln!(f, "A, B and C are interpolated on lanes {of_a}, {of_b}, {of_c}")?;
        }
        write!(f, "{}", self.stay)?;
        self.foretold
            .map_or(Ok(()), |gain| write!(f, "\nforetold: {}.{:02} times as fast as one lane", gain / 100, gain % 100))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{plonk_sizes, PLONK_VECTORS};
    use tandem_ops::Bn254;

    /// The plan where a sum wants `for_sum` lanes.
    fn plan(lanes: usize, for_sum: usize, layout: Layout) -> (usize, [usize; COSETS]) {
        let Plan { sums, cosets, .. } = Plan::new(lanes, for_sum, layout);
        (sums, cosets.map(|lane| lane.0))
    }

    #[test]
    fn every_layout_has_its_plan() {
        for layout in [Layout::Auto, Layout::Roles, Layout::Split] {
            assert_eq!(plan(1, 1, layout), (1, [0, 0, 0]));
            // No lane is named that there is not.
            assert_eq!(plan(0, 0, layout), (1, [0, 0, 0]));
            assert_eq!(plan(2, 9, layout).0, 2);
        }
        assert_eq!(plan(2, 2, Layout::Auto), (2, [1, 1, 0]));
        assert_eq!(plan(8, 8, Layout::Auto), (8, [1, 3, 2]));
        // What is small stays on one.
        assert_eq!(plan(8, 1, Layout::Auto), (1, [0, 0, 0]));
        assert_eq!(plan(8, 2, Layout::Auto), (2, [1, 1, 0]));
        assert_eq!(plan(8, 8, Layout::Roles), (8, [0, 0, 0]));
        assert_eq!(plan(8, 1, Layout::Roles), (1, [0, 0, 0]));
        assert_eq!(plan(4, 1, Layout::Split), (4, [1, 3, 2]));
        assert_eq!(Plan::new(4, 4, Layout::Roles).columns, [FIRST; 3]);
    }

    fn memory(log_rows: u32, plan: &Plan) -> Vec<LaneBytes> {
        let domain = 1 << log_rows;
        plan.memory::<Bn254>(Sizes { domain, powers: domain + 6, vectors: PLONK_VECTORS })
    }

    const GIB: u64 = 1 << 30;

    /// On one GPU with 70 GiB free: what the powers may take in the end, all else counted in, is no more than that, and enough for tables of
    /// several multiples. With less than a key needs there is no room for its powers.
    #[test]
    fn a_key_of_2_to_the_24_proves_within_70_gib() {
        let [lane] = memory(24, &Plan::new(1, 1, Layout::Auto))[..] else { panic!() };
        assert!(lane.need() < 52 * GIB, "{} GiB", lane.need() / GIB);
        let room = lane.for_powers(70 * GIB - lane.key);
        assert!(lane.key + lane.proof + room < 70 * GIB && room >= 12 * lane.powers, "{} GiB", room / GIB);
        assert!(lane.for_powers(lane.proof + lane.powers - 1) < lane.powers);
    }

    /// What is said to be needed is what is enough.
    #[test]
    fn with_less_than_the_need_there_is_no_room() {
        for log_rows in [3, 10, 16, 18, 20, 22, 24, 28] {
            for lane in memory(log_rows, &Plan::new(2, 2, Layout::Split)) {
                let beside = lane.need() - lane.key;
                assert!(lane.for_powers(beside) >= lane.powers && lane.for_powers(beside - 1) < lane.powers);
            }
        }
    }

    /// The key's parts on all lanes are the key, and lanes share the digits.
    #[test]
    fn lanes_share_what_they_can() {
        for log_rows in [3, 10, 20] {
            for lanes in 1..=8 {
                let plan = Plan::new(lanes, lanes, Layout::Split);
                let of_lanes = memory(log_rows, &plan);
                assert_eq!(of_lanes.len(), lanes);
                let sum = |of: fn(&LaneBytes) -> u64| of_lanes.iter().map(of).sum::<u64>();
                let points = 64 * ((1 << log_rows) + 6);
                // Each lane that has a coset has a map of its own.
                let maps = (4 << log_rows) * (lanes.min(COSETS) as u64 - 1);
                assert_eq!(sum(|lane| lane.key), crate::device_bytes::<Bn254>(1 << log_rows) - points + maps);
                assert!((points..points + 64 * 8).contains(&sum(|lane| lane.powers)));
                assert!(of_lanes[1..].iter().all(|lane| lane.proof < of_lanes[0].proof));
            }
        }
        // Cosets on one lane, sums on two.
        let plan = Plan::new(2, 2, Layout::Roles);
        assert_eq!((memory(10, &plan)[1].key, memory(10, &plan)[1].powers), (0, 64 * 515));
    }

    /// A key for few proofs gets no basis, nor one that takes long to make, nor one that leaves no room for tables.
    #[test]
    fn a_basis_is_made_where_it_pays() {
        let lanes = [(48 << 20, 1 << 20), (50 << 20, 1 << 20)];
        assert!(takes_basis(BASIS_PROOFS, 1.0, lanes) && takes_basis(u64::MAX, BASIS_SECONDS, lanes));
        assert!(!takes_basis(BASIS_PROOFS - 1, 1.0, lanes) && !takes_basis(1, 0.0, lanes));
        assert!(!takes_basis(u64::MAX, 20.1, lanes));
        assert!(!takes_basis(u64::MAX, 1.0, [lanes[0], ((48 << 20) - 1, 1 << 20)]));
        // 2^24 rows on one GPU with 70 GiB free have room for powers alone, with 140 for both.
        let [lane] = memory(24, &Plan::new(1, 1, Layout::Auto))[..] else { panic!() };
        let fits = |gib: u64| takes_basis(1000, 15.0, [(lane.for_powers(gib * GIB - lane.key), lane.powers)]);
        assert!(!fits(70) && fits(138));
    }

    /// Each way takes less than the one before it with as many pieces, and the first one that fits is taken: what it needs is there.
    #[test]
    fn as_much_stays_as_fits() {
        for (lanes, layout) in [(1, Layout::Auto), (3, Layout::Split), (2, Layout::Roles)] {
            for log_rows in [3, 10, 20, 24, 28] {
                let (sizes, plan) = (plonk_sizes(1 << log_rows), Plan::new(lanes, lanes, layout));
                let needs =
                    |plan: &Plan| -> Vec<u64> { plan.memory::<Bn254>(sizes).iter().map(LaneBytes::need).collect() };
                let mut before: Option<Vec<u64>> = None;
                for stay in Stay::ways() {
                    let own = needs(&plan.clone().with(stay));
                    if stay.pieces > 1 && log_rows > 3 {
                        assert!(before.is_none_or(|before| before.iter().zip(&own).all(|(a, b)| b <= a)), "{stay:?}");
                    }
                    let found = plan.clone().within::<Bn254>(sizes, &own);
                    assert!(needs(&found).iter().zip(&own).all(|(need, free)| need <= free), "{stay:?}");
                    // A byte less on any lane, and it is another way, if there is one that takes less.
                    for lane in 0..own.len() {
                        let mut less = own.clone();
                        less[lane] -= 1;
                        let other = plan.clone().within::<Bn254>(sizes, &less);
                        let fits = needs(&other).iter().zip(&less).all(|(need, free)| need <= free);
                        assert!(fits || Some(other.stay) == Stay::ways().last(), "{stay:?}");
                        assert!(other.stay != stay || other.sums != plan.sums || !fits);
                    }
                    before = Some(own);
                }
                assert_eq!(plan.clone().within::<Bn254>(sizes, &vec![u64::MAX; lanes]), plan);
            }
        }
    }

    /// What is asked for: 2^24 rows within 70 GiB with all of the key there, and within a third of that.
    #[test]
    fn a_key_of_2_to_the_24_fits_into_little() {
        let within = |gib: u64| Plan::new(1, 1, Layout::Auto).within::<Bn254>(plonk_sizes(1 << 24), &[gib * GIB]).stay;
        assert_eq!(within(70), Stay::ALL);
        let Stay { cosets, polynomials, powers, pieces } = within(40);
        assert!(!cosets && polynomials && powers && pieces == 1, "{pieces}");
        let Stay { cosets, polynomials, .. } = within(24);
        assert!(!cosets && polynomials);
        let Stay { cosets, polynomials, .. } = within(16);
        assert!(!cosets && !polynomials);
    }

    #[test]
    fn no_size_overflows() {
        let sizes = Sizes { domain: usize::MAX / 2, powers: usize::MAX, vectors: PLONK_VECTORS };
        assert_eq!(Plan::new(1, 1, Layout::Auto).memory::<Bn254>(sizes)[0].need(), u64::MAX);
    }

    #[test]
    fn a_plan_prints_itself() {
        let is = |plan: Plan, text: &str| assert_eq!(plan.to_string(), format!("{text}\nall of the key stays"));
        let text = "sums over 2 lanes, cosets on 1, 1, 0\nA, B and C are interpolated on lanes 1, 0, 0";
        is(Plan::new(2, 2, Layout::Auto), text);
        let told = Plan { foretold: Some(207), ..Plan::new(2, 2, Layout::Roles) };
        assert!(told.to_string().ends_with("stays\nforetold: 2.07 times as fast as one lane"), "{told}");
        let plan = Plan::new(3, 1, Layout::Auto);
        is(plan.clone(), "sums over 1 lane, cosets on 0, 0, 0");
        is(Plan { basis: true, ..plan }, "sums over 1 lane, cosets on 0, 0, 0, columns by their values");
        let [lane] = memory(20, &Plan::new(1, 1, Layout::Auto))[..] else { panic!() };
        let text = "key 1528 MiB, powers of tau 65, a proof 1281, with what is kept back 3065 at least";
        assert_eq!(lane.to_string(), text);
    }
}
