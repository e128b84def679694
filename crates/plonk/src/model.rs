//! How long a proof takes by a plan, from what each stage takes of a lane.
//!
//! A lane does what it is told in order. What goes from lane to lane leaves over the links of its lane, one vector after the other, beside what the
//! lane does. Each round waits for the last lane's part of its sums.

use crate::coset::COSETS;
use crate::plan::Plan;
use tandem_ops::{CurveId, Lane};

/// What stages take, in nanoseconds a row: `tandem bench plonk --log-n 22` with Lagrange points on one H200, of which the rounds' ends are those of
/// proofs on eight.
#[derive(Debug, Clone, Copy)]
struct Costs {
    /// The upload over one link, the additions' signals and the columns.
    begin: f64,
    /// A sum over the powers of tau.
    sum: f64,
    /// Of a column by its values.
    by_values: f64,
    /// A transform, of any kind.
    transform: f64,
    /// What blinds a polynomial.
    blind: f64,
    grand_product: f64,
    /// The rows of a coset, and Z of the next ones.
    quotient: f64,
    /// A part of the quotient from what is left on the cosets.
    part: f64,
    /// Five values at xi, and the division of Z.
    values: f64,
    /// The linearisation and its division.
    linearisation: f64,
    /// A vector over the links of one lane.
    copy: f64,
    /// What a share of a sum takes beside its points, in nanoseconds.
    share: f64,
    /// What the host takes from the last part of a sum to the next round, likewise.
    host: f64,
}

impl Costs {
    fn of(curve: CurveId) -> Self {
        // Sums of points with longer coordinates; scalars are of one length.
        let (sum, share) = match curve {
            CurveId::Bn254 => (2.1, 0.5e6),
            CurveId::Bls12_381 => (3.8, 0.9e6),
        };
        Costs {
            begin: 0.58,
            sum,
            by_values: 0.66 * sum,
            transform: 0.22,
            blind: 0.04,
            grand_product: 0.39,
            quotient: 0.39,
            part: 0.09,
            values: 0.3,
            linearisation: 0.45,
            copy: 0.087,
            share,
            host: 0.4e6,
        }
    }

    /// What is left of them for rows without number: the same plan for all sizes.
    fn of_rows_alone(self) -> Self {
        Costs { share: 0.0, host: 0.0, ..self }
    }
}

/// Lanes at work.
struct Lanes<'a> {
    costs: &'a Costs,
    rows: f64,
    /// When each has done what it was told.
    free: Vec<f64>,
    /// When its links have carried what they were given.
    links: Vec<f64>,
    sums: usize,
}

impl Lanes<'_> {
    /// `lane` works from `ready` on at the earliest. When it is done.
    fn work(&mut self, lane: usize, ready: f64, each_row: f64) -> f64 {
        self.free[lane] = self.free[lane].max(ready) + each_row * self.rows;
        self.free[lane]
    }

    /// A vector, or a part of one, that is there from `ready` on. When it has come.
    fn copy(&mut self, from: usize, to: usize, ready: f64, part: f64) -> f64 {
        if from == to {
            return ready;
        }
        self.links[from] = self.links[from].max(ready) + part * self.costs.copy * self.rows;
        self.links[from]
    }

    /// Shares of sums of vectors, each from its lane and there from its time on, as [`tandem_ops::SplitMsm::deal`] sends them.
    fn dealt(&mut self, vectors: &[(usize, f64)]) -> Vec<Vec<f64>> {
        let part = 1.0 / self.sums as f64;
        let to_all = |of: &mut Self, &(from, ready): &(usize, f64)| {
            (0..of.sums).map(|to| of.copy(from, to, ready, part)).collect()
        };
        vectors.iter().map(|vector| to_all(self, vector)).collect()
    }

    /// When the sums are there of which these shares come, and the host has drawn the next challenge.
    fn summed(&mut self, shares: &[Vec<f64>], each_point: f64) -> f64 {
        let mut last: f64 = 0.0;
        for of_vector in shares {
            for (lane, &ready) in of_vector.iter().enumerate() {
                self.work(lane, ready, each_point / self.sums as f64);
                self.free[lane] += self.costs.share;
                last = last.max(self.free[lane]);
            }
        }
        last + self.costs.host
    }
}

/// What a proof takes by this plan, in nanoseconds.
fn nanoseconds(costs: &Costs, plan: &Plan, rows: f64) -> f64 {
    let count = plan.cosets.iter().chain(&plan.columns).map(|lane| lane.0 + 1).chain([plan.sums, 1]).max().unwrap_or(1);
    let mut lanes = Lanes { costs, rows, free: vec![0.0; count], links: vec![0.0; count], sums: plan.sums.max(1) };
    let (homes, cosets) = (plan.columns.map(|lane| lane.0), plan.cosets.map(|lane| lane.0));
    let mut with_cosets = cosets.to_vec();
    with_cosets.sort_unstable();
    with_cosets.dedup();
    let Costs { transform, blind, .. } = *costs;
    // Values of a polynomial on the cosets, in their order; where it comes from, and when it is there.
    let on_cosets = |lanes: &mut Lanes<'_>, polynomials: &[Vec<(usize, f64)>]| {
        for coset in cosets {
            for there in polynomials {
                let come = there.iter().find(|(lane, _)| *lane == coset).map_or(0.0, |(_, come)| *come);
                lanes.work(coset, come, transform);
            }
        }
    };
    let spread = |lanes: &mut Lanes<'_>, from: usize, ready: f64| -> Vec<(usize, f64)> {
        with_cosets.iter().map(|&to| (to, lanes.copy(from, to, ready, 1.0))).collect()
    };

    // Round 1.
    let begun = lanes.work(0, 0.0, costs.begin);
    let by_values = plan.basis.then(|| lanes.dealt(&[(0, begun); 3]));
    let come = homes.map(|home| lanes.copy(0, home, begun, 1.0));
    let mut committed = by_values.map(|shares| lanes.summed(&shares, costs.by_values));
    let made = [0, 1, 2].map(|column| lanes.work(homes[column], come[column], transform + blind));
    let shares =
        committed.is_none().then(|| lanes.dealt(&[(homes[0], made[0]), (homes[1], made[1]), (homes[2], made[2])]));
    let columns = [0, 1, 2].map(|column| spread(&mut lanes, homes[column], made[column]));
    if let Some(shares) = shares {
        committed = Some(lanes.summed(&shares, costs.sum));
    }
    on_cosets(&mut lanes, &columns);
    // Round 2.
    let z = lanes.work(0, committed.unwrap_or(0.0), costs.grand_product + transform + blind);
    let shares = lanes.dealt(&[(0, z)]);
    let of_z = [spread(&mut lanes, 0, z)];
    let committed = lanes.summed(&shares, costs.sum);
    on_cosets(&mut lanes, &of_z);
    // Round 3.
    let left = cosets.map(|coset| (coset, lanes.work(coset, committed, costs.quotient + transform)));
    let last = left.map(|(_, done)| done).into_iter().fold(0.0, f64::max);
    let mut parts = [0.0; COSETS];
    let mut all_there: Vec<(usize, f64)> = Vec::new();
    for &to in &with_cosets {
        let came = left.map(|(from, _)| lanes.copy(from, to, last, 1.0));
        all_there.push((to, came.into_iter().fold(last, f64::max)));
    }
    for (part, coset) in parts.iter_mut().zip(cosets) {
        let come = all_there.iter().find(|(lane, _)| *lane == coset).map_or(last, |(_, come)| *come);
        *part = lanes.work(coset, come, costs.part + blind);
    }
    let shares = lanes.dealt(&[(cosets[0], parts[0]), (cosets[1], parts[1]), (cosets[2], parts[2])]);
    let committed = lanes.summed(&shares, costs.sum);
    // Rounds 4 and 5.
    let values = lanes.work(0, committed, costs.values);
    let shares = lanes.dealt(&[(0, values)]);
    lanes.summed(&shares, costs.sum);
    let opened = lanes.work(0, values + costs.host, costs.linearisation);
    let shares = lanes.dealt(&[(0, opened)]);
    lanes.summed(&shares, costs.sum)
}

/// `plan` with columns and cosets on those of the first `sharing` lanes where a proof of many rows is done soonest. More than one lane for each of
/// three cosets beside the first one gain nothing.
pub(crate) fn soonest(plan: Plan, sharing: usize) -> Plan {
    let sharing = sharing.clamp(1, COSETS + 1);
    let costs = Costs::of(CurveId::Bn254).of_rows_alone();
    let lanes =
        |number: usize| -> [Lane; 3] { [1, sharing, sharing * sharing].map(|step| Lane(number / step % sharing)) };
    let all = sharing.pow(3);
    let placed =
        (0..all * all).map(|number| Plan { columns: lanes(number % all), cosets: lanes(number / all), ..plan.clone() });
    let time = |plan: &Plan| nanoseconds(&costs, plan, 1.0);
    let (mut best, mut least) = (plan.clone(), f64::INFINITY);
    for plan in placed {
        let takes = time(&plan);
        // The first of those that take as long, whatever is lost in rounding.
        if takes < least * (1.0 - 1e-9) {
            (best, least) = (plan, takes);
        }
    }
    best
}

/// How many times as fast as on one lane a proof of so many rows is by this plan, in hundredths; `None` for one lane.
pub(crate) fn foretold(plan: &Plan, curve: CurveId, rows: usize) -> Option<u32> {
    let costs = Costs::of(curve);
    let first = [Lane(0); 3];
    let one = Plan { sums: 1, columns: first, cosets: first, ..plan.clone() };
    let time = |plan: &Plan| nanoseconds(&costs, plan, rows as f64);
    (one != *plan).then(|| (100.0 * time(&one) / time(plan)) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_proof::Layout;

    const ROWS: usize = 1 << 22;
    const CURVES: [CurveId; 2] = [CurveId::Bn254, CurveId::Bls12_381];

    fn plan(lanes: usize, layout: Layout, basis: bool) -> Plan {
        Plan { basis, ..Plan::new(lanes, lanes, layout) }
    }

    /// One lane does all, one thing after the other; what is told behind the last sum of a round is done while the host draws a challenge.
    #[test]
    fn one_lane_takes_what_its_stages_take() {
        for basis in [false, true] {
            let costs = Costs { share: 0.0, ..Costs::of(CurveId::Bn254) };
            let of_columns = if basis { costs.by_values } else { costs.sum };
            let work = costs.begin
                + 3.0 * of_columns
                + 6.0 * costs.sum
                + 19.0 * costs.transform
                + 7.0 * costs.blind
                + costs.grand_product
                + 3.0 * (costs.quotient + costs.part)
                + costs.values
                + costs.linearisation;
            // Where columns are committed to first, six of their transforms and nine to cosets hide what the host takes.
            let takes = nanoseconds(&costs, &plan(1, Layout::Auto, basis), ROWS as f64);
            let rows = work * ROWS as f64;
            assert!(takes >= rows && takes <= rows + 5.0 * costs.host, "{takes}, {rows} of the rows");
        }
    }

    /// From one lane to eight, a proof gets faster by less than as many times, and by no less than sums alone give.
    #[test]
    fn more_lanes_are_foretold_to_be_faster() {
        for curve in CURVES {
            for basis in [false, true] {
                assert_eq!(foretold(&plan(1, Layout::Auto, basis), curve, ROWS), None);
                let mut last = 100;
                for lanes in 2..=8 {
                    let gain = foretold(&plan(lanes, Layout::Auto, basis), curve, ROWS).unwrap();
                    let sums = foretold(&plan(lanes, Layout::Roles, basis), curve, ROWS).unwrap();
                    assert!(gain > last && gain < 100 * lanes as u32, "{lanes} lanes: {gain}, {last} on one fewer");
                    assert!(gain > sums, "{lanes} lanes: {gain}, by sums alone {sums}");
                    last = gain;
                }
                assert!((300..500).contains(&last), "{last}");
            }
        }
    }

    /// No other placement is sooner; where there are lanes enough, the first one has nothing that another one can do.
    #[test]
    fn the_first_lane_has_what_only_it_can_do() {
        let costs = Costs::of(CurveId::Bn254).of_rows_alone();
        for lanes in 2..=8 {
            let plan = plan(lanes, Layout::Auto, false);
            let time = |plan: &Plan| nanoseconds(&costs, plan, 1.0);
            assert!(plan.cosets.iter().chain(&plan.columns).all(|lane| lane.0 < lanes));
            for first in 0..3 {
                for lane in 0..lanes.min(4) {
                    let mut other = plan.clone();
                    other.cosets[first] = Lane(lane);
                    assert!(time(&other) >= time(&plan) * (1.0 - 1e-6), "{plan}\n{other}");
                    let mut other = plan.clone();
                    other.columns[first] = Lane(lane);
                    assert!(time(&other) >= time(&plan) * (1.0 - 1e-6), "{plan}\n{other}");
                }
            }
            let of_first = |lanes: &[Lane]| lanes.iter().filter(|lane| lane.0 == 0).count();
            assert!(lanes < 4 || of_first(&plan.cosets) == 0 && of_first(&plan.columns) <= 1, "{plan}");
        }
    }
}
