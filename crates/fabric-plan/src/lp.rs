//! The linear program of an exchange: every source sends along trees, each tree as a part of its source's data, all sources at one rate, and no
//! capacity is exceeded. Trees are not listed but found by asking for the cheapest one of each source at given prices.
//!
//! Revised simplex in floating point. What it finds is made fractions: simple ones, if these prove to be exactly best, else with a power of two
//! below, which leaves a gap that shows. Whatever happens in floating point, the caller gets a packing and prices that hold.

use super::budget::Clock;
use crate::ratio::gcd;
use crate::Ratio;
use std::collections::BTreeMap;

/// Multiplications after which the search gives up, with what it has.
const MOST_WORK: usize = 1_500_000_000;
/// Rows of the program, whose inverse is a dense matrix of 8-byte numbers.
const MOST_ROWS: usize = 4096;
/// Rounds of prices before the search.
const FIRST: usize = 100;
/// Denominator of rounded results.
const ROUND: i64 = 1 << 36;
/// The greatest denominator of a fraction that is taken for the one that was meant.
const SIMPLE: i64 = 1 << 20;
/// The greatest common denominator of exact results.
const MOST_DENOMINATOR: i128 = 1 << 56;
/// What rounding may have left of nothing.
const TINY: f64 = 1e-9;

/// A tree: which one, and what it takes of which capacity.
pub(crate) type Tree<T> = (T, Vec<(usize, i64)>);

/// A packing and the prices that bound it.
pub(crate) struct Packing<T> {
    /// The trees of each source and their shares, which add up to one.
    pub(crate) trees: Vec<Vec<(Tree<T>, Ratio)>>,
    /// The rate of each source.
    pub(crate) rate: Ratio,
    /// A price of each capacity.
    pub(crate) prices: Vec<Ratio>,
}

/// Solves it. `cheapest` gives a tree for each source; `worth` what the prices prove the rate to be at most.
pub(crate) fn pack<T: Clone>(
    capacity: &[i64],
    cheapest: impl Fn(&[f64]) -> Option<Vec<Tree<T>>>,
    worth: impl Fn(&[Ratio]) -> Option<Ratio>,
    clock: &Clock,
) -> Option<Packing<T>> {
    let found = solve(capacity, &cheapest, clock)?;
    let most = found.prices.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let priced = |to: fn(f64) -> Option<Ratio>| found.prices.iter().map(|p| to(p / most)).collect::<Option<Vec<_>>>();
    let exact = || {
        let trees: Vec<Vec<_>> = found.trees.iter().map(|t| simple_shares(t)).collect::<Option<_>>()?;
        let (rate, prices) = (rate(capacity, &trees)?, priced(simple)?);
        (have_common(trees.iter().flatten().map(|t| t.1))? && have_common(prices.iter().copied())?).then_some(())?;
        (worth(&prices)? == rate).then_some(Packing { trees, rate, prices })
    };
    exact().or_else(|| {
        let trees: Vec<Vec<_>> = found.trees.iter().map(|t| round_shares(t)).collect::<Option<_>>()?;
        Some(Packing { rate: rate(capacity, &trees)?, trees, prices: priced(round)? })
    })
}

/// Whether these have a common denominator that later arithmetic can take.
fn have_common(mut all: impl Iterator<Item = Ratio>) -> Option<bool> {
    let common = all.try_fold(1i128, |l, x| (l / gcd(l, x.den())).checked_mul(x.den()))?;
    Some(common <= MOST_DENOMINATOR)
}

/// The greatest rate with these shares.
fn rate<T>(capacity: &[i64], trees: &[Vec<(Tree<T>, Ratio)>]) -> Option<Ratio> {
    let mut loads: BTreeMap<usize, Ratio> = BTreeMap::new();
    for ((_, takes), share) in trees.iter().flatten() {
        for &(i, n) in takes {
            let load = loads.entry(i).or_insert(Ratio::ZERO);
            *load = load.plus(share.times(Ratio::whole(n))?)?;
        }
    }
    let rates = loads.into_iter().map(|(i, load)| Ratio::whole(capacity[i]).over(load));
    rates.collect::<Option<Vec<_>>>()?.into_iter().min()
}

/// The fraction with the least denominator that is as near as floating point can tell.
fn simple(x: f64) -> Option<Ratio> {
    let (mut p, mut q, mut rest) = ([1i64, x.floor() as i64], [0i64, 1], x);
    while (p[1] as f64 / q[1] as f64 - x).abs() > TINY * 0.1 {
        rest = 1.0 / (rest - rest.floor());
        let next = rest.floor().min(SIMPLE as f64) as i64;
        (p, q) = ([p[1], next * p[1] + p[0]], [q[1], next * q[1] + q[0]]);
        if q[1] > SIMPLE {
            return None;
        }
    }
    Ratio::new(p[1].into(), q[1].into())
}

fn round(x: f64) -> Option<Ratio> {
    Ratio::new((x * ROUND as f64).round() as i128, ROUND.into())
}

fn simple_shares<T: Clone>(trees: &[(Tree<T>, f64)]) -> Option<Vec<(Tree<T>, Ratio)>> {
    let shares: Vec<_> = trees.iter().map(|(t, y)| Some((t.clone(), simple(*y)?))).collect::<Option<_>>()?;
    let sum = shares.iter().try_fold(Ratio::ZERO, |sum, (_, y)| sum.plus(*y))?;
    (sum == Ratio::ONE).then_some(shares)
}

/// What rounding takes or gives goes to the greatest share.
fn round_shares<T: Clone>(trees: &[(Tree<T>, f64)]) -> Option<Vec<(Tree<T>, Ratio)>> {
    let mut parts: Vec<i64> = trees.iter().map(|(_, y)| (y * ROUND as f64).round() as i64).collect();
    let greatest = (0..parts.len()).max_by_key(|&i| parts[i])?;
    parts[greatest] += ROUND - parts.iter().sum::<i64>();
    let share = |n: i64| Ratio::new(n.into(), ROUND.into());
    trees.iter().zip(parts).filter(|(_, n)| *n > 0).map(|((t, _), n)| Some((t.clone(), share(n)?))).collect()
}

/// What the search found: positive shares of each source, which add up to about one, and prices, none of them negative.
struct Found<T> {
    trees: Vec<Vec<(Tree<T>, f64)>>,
    prices: Vec<f64>,
}

/// The prices that proved most so far.
struct Best {
    bound: f64,
    /// With them the cheapest trees together cost 1.
    prices: Vec<f64>,
}

impl Best {
    /// These prices, moved towards the best by a weight.
    fn near(&self, prices: &[f64], weight: f64) -> Vec<f64> {
        let best = self.prices.iter().copied().chain(std::iter::repeat(0.0));
        let weight = if self.prices.is_empty() { 0.0 } else { weight };
        prices.iter().zip(best).map(|(p, b)| p.max(0.0) * (1.0 - weight) + b * weight).collect()
    }

    /// All capacity over all trees, at these prices; `right` also has what is left to the sources.
    fn consider<T>(&mut self, right: &[f64], mut prices: Vec<f64>, cheapest: &[Tree<T>]) {
        let costs: Vec<f64> = cheapest.iter().map(|tree| cost(&prices, tree)).collect();
        let all: f64 = costs.iter().sum();
        let value: f64 = prices.iter().chain(&costs).zip(right).map(|(p, c)| p * c).sum();
        if value / all < self.bound {
            prices.iter_mut().for_each(|p| *p /= all);
            *self = Self { bound: value / all, prices };
        }
    }

    /// Considers [`FIRST`] rounds of prices, or as many as the clock allows: they begin at `slow` and rise where the cheapest trees meet. `None` where
    /// there are no trees.
    fn begin<T>(
        &mut self,
        slow: &[f64],
        right: &[f64],
        cheapest: &impl Fn(&[f64]) -> Option<Vec<Tree<T>>>,
        clock: &Clock,
    ) -> Option<()> {
        let mut prices = slow.to_vec();
        for _ in 0..FIRST {
            let trees = cheapest(&prices)?;
            self.consider(right, prices.clone(), &trees);
            if clock.take((slow.len() * trees.len()) as u64).is_err() {
                break;
            }
            let mut loads = vec![0.0; slow.len()];
            trees.iter().flat_map(|t| &t.1).for_each(|&(i, n)| loads[i] += n as f64 * slow[i]);
            let worst = loads.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
            prices.iter_mut().zip(loads).for_each(|(p, load)| *p *= 1.0 + 0.3 * load / worst);
        }
        Some(())
    }
}

fn cost<T>(prices: &[f64], tree: &Tree<T>) -> f64 {
    tree.1.iter().map(|&(i, n)| prices[i] * n as f64).sum()
}

/// The rate at which one tree of each source runs together with the others; `None` where they take nothing.
fn common_rate<T>(capacity: &[i64], trees: &[Tree<T>]) -> Option<f64> {
    let mut loads = vec![0; capacity.len()];
    trees.iter().flat_map(|t| &t.1).for_each(|&(i, n)| loads[i] += n);
    let rates = capacity.iter().zip(loads).filter(|(_, load)| *load > 0).map(|(&c, load)| c as f64 / load as f64);
    rates.min_by(f64::total_cmp)
}

/// What is in the basis of a row.
#[derive(Clone)]
enum Basic<T> {
    /// What is left of the row.
    Slack,
    /// The rate.
    Rate,
    /// A tree of a source.
    Tree(usize, Tree<T>),
}

/// Rows are capacities, then a row for each source: the rate less its trees is at most zero.
struct State<T> {
    /// By rows, one after the other.
    inverse: Vec<f64>,
    value: Vec<f64>,
    basis: Vec<Basic<T>>,
    m: usize,
}

fn solve<T: Clone>(
    capacity: &[i64],
    cheapest: &impl Fn(&[f64]) -> Option<Vec<Tree<T>>>,
    clock: &Clock,
) -> Option<Found<T>> {
    let (edges, most) = (capacity.len(), *capacity.iter().max()? as f64);
    let slow: Vec<f64> = capacity.iter().map(|&c| most / c as f64).collect();
    let mut newest = cheapest(&slow)?;
    let sources = newest.len();
    let m = edges + sources;
    if m > MOST_ROWS {
        return None;
    }
    // A little of everything is added, another little to each, so that no two rows are used up at once and the search cannot go round in circles.
    let mut seed = 1u32;
    let mut little = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        1e-7 * (1.0 + f64::from(seed >> 8) / f64::from(1u32 << 24))
    };
    // In units of what the first trees reach, so that what is sought is not small, however unlike the capacities are.
    let unit = common_rate(capacity, &newest)?;
    let exact: Vec<f64> = (0..m).map(|i| capacity.get(i).map_or(0.0, |&c| c as f64 / unit)).collect();
    let right: Vec<f64> = exact.iter().map(|c| c * (1.0 + little()) + 0.001 * little()).collect();
    let mut state = State::unused(right.clone());
    let mut best = Best { bound: f64::INFINITY, prices: Vec::new() };
    // Begins with a tree of each source.
    for (s, tree) in newest.iter().enumerate() {
        state.pivot(edges + s, Basic::Tree(s, tree.clone()), &column(edges + s, tree));
    }
    let all: Vec<(usize, i64)> = (edges..m).map(|i| (i, 1)).collect();
    state.exchange(Basic::Rate, &all)?;
    best.begin(&slow, &right, cheapest, clock)?;
    for _ in 0..MOST_WORK / (m * m) {
        if clock.take((m * m) as u64).is_err() {
            break;
        }
        let prices = state.prices();
        // What has a negative price should not be used up.
        let least = (0..m).min_by(|&a, &b| prices[a].total_cmp(&prices[b]))?;
        if prices[least] < -TINY {
            state.exchange(Basic::Slack, &[(least, 1)])?;
            continue;
        }
        let gain = |s: usize, tree: &Tree<T>| prices[edges + s] - cost(&prices, tree);
        let greatest = |trees: &[Tree<T>]| {
            let gains = trees.iter().enumerate().map(|(s, tree)| (gain(s, tree), s));
            gains.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(gain, _)| *gain > TINY).map(|(_, s)| s)
        };
        // Trees are asked for again when none of the last ones is cheaper than what its source pays: first near the prices that proved most, which
        // vary less, then at these.
        let mut entering = greatest(&newest);
        for weight in [0.8, 0.0] {
            if entering.is_some() {
                break;
            }
            let near = best.near(&prices[..edges], weight);
            newest = cheapest(&near)?;
            best.consider(&right, near, &newest);
            if best.bound <= state.rate() * (1.0 + TINY) {
                break;
            }
            entering = greatest(&newest);
        }
        let Some(s) = entering else { break };
        if state.exchange(Basic::Tree(s, newest[s].clone()), &column(edges + s, &newest[s])).is_none() {
            break;
        }
    }
    state.found(&exact, sources, best.prices)
}

/// What a tree takes, of the row of its source too.
fn column<T>(row: usize, tree: &Tree<T>) -> Vec<(usize, i64)> {
    tree.1.iter().copied().chain([(row, -1)]).collect()
}

impl<T: Clone> State<T> {
    /// Nothing runs: what is left of each row is all of it.
    fn unused(value: Vec<f64>) -> Self {
        let m = value.len();
        let mut inverse = vec![0.0; m * m];
        (0..m).for_each(|i| inverse[i * m + i] = 1.0);
        Self { inverse, value, basis: vec![Basic::Slack; m], m }
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.inverse[i * self.m..(i + 1) * self.m]
    }

    /// Of all rows: the row of the rate, which alone is worth something.
    fn prices(&self) -> Vec<f64> {
        let rate = self.basis.iter().position(|b| matches!(b, Basic::Rate));
        rate.map_or(vec![0.0; self.m], |i| self.row(i).to_vec())
    }

    /// What a column is made of, in the basis.
    fn direction(&self, takes: &[(usize, i64)]) -> Vec<f64> {
        let of_row = |i| takes.iter().map(|&(j, n)| self.inverse[i * self.m + j] * n as f64).sum();
        (0..self.m).map(of_row).collect()
    }

    /// Brings a column into the basis; `None` where nothing limits it.
    fn exchange(&mut self, entering: Basic<T>, takes: &[(usize, i64)]) -> Option<()> {
        let direction = self.direction(takes);
        let rows = (0..self.m).filter(|&i| direction[i] > TINY);
        let (_, row) = rows.map(|i| (self.value[i].max(0.0) / direction[i], i)).min_by(|a, b| a.0.total_cmp(&b.0))?;
        self.pivot(row, entering, takes);
        Some(())
    }

    fn pivot(&mut self, row: usize, entering: Basic<T>, takes: &[(usize, i64)]) {
        let (m, direction) = (self.m, self.direction(takes));
        let pivot = direction[row];
        self.inverse[row * m..(row + 1) * m].iter_mut().for_each(|x| *x /= pivot);
        self.value[row] /= pivot;
        let (top, value) = (self.row(row).to_vec(), self.value[row]);
        for i in (0..m).filter(|&i| i != row && direction[i].abs() > 1e-14) {
            let (line, by) = (&mut self.inverse[i * m..(i + 1) * m], direction[i]);
            line.iter_mut().zip(&top).for_each(|(x, t)| *x -= by * t);
            self.value[i] -= by * value;
        }
        self.basis[row] = entering;
    }

    fn rate(&self) -> f64 {
        self.basis.iter().position(|b| matches!(b, Basic::Rate)).map_or(0.0, |i| self.value[i])
    }

    /// The shares of the basis, for the capacities as they are.
    fn found(&self, exact: &[f64], sources: usize, prices: Vec<f64>) -> Option<Found<T>> {
        let mut trees: Vec<Vec<(Tree<T>, f64)>> = vec![Vec::new(); sources];
        for (i, basic) in self.basis.iter().enumerate() {
            if let Basic::Tree(s, tree) = basic {
                let y: f64 = self.row(i).iter().zip(exact).map(|(x, c)| x * c).sum();
                if y > TINY * 0.01 {
                    trees[*s].push((tree.clone(), y));
                }
            }
        }
        for of_source in &mut trees {
            let sum: f64 = of_source.iter().map(|(_, y)| y).sum();
            of_source.iter_mut().for_each(|(_, y)| *y /= sum);
        }
        let is_whole = !prices.is_empty() && trees.iter().all(|t| !t.is_empty());
        is_whole.then_some(Found { trees, prices })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sources with two trees each that meet: `a` and `b` share capacity 1. The best rate is exact, and prices prove it.
    #[test]
    fn two_sources_share_a_link() {
        for (capacity, expected) in [([3, 2, 3], (4, 1)), ([1, 1, 1], (3, 2)), ([5, 0x7fff_ffff, 7], (5, 1))] {
            // A source has its own link (0 or 2); both can also take link 1.
            let trees = |s: usize| [("own", vec![(2 * s, 1)]), ("shared", vec![(1, 1)])];
            let cheapest = |prices: &[f64]| {
                let best = |s| trees(s).into_iter().min_by(|a, b| cost(prices, a).total_cmp(&cost(prices, b)));
                (0..2).map(best).collect::<Option<Vec<_>>>()
            };
            let worth = |prices: &[Ratio]| {
                let sum = |list: &[(usize, i64)]| {
                    list.iter().try_fold(Ratio::ZERO, |sum, &(i, n)| sum.plus(prices[i].times(Ratio::whole(n))?))
                };
                let least = |s| trees(s).into_iter().filter_map(|t| sum(&t.1)).min();
                sum(&[(0, capacity[0]), (1, capacity[1]), (2, capacity[2])])?.over(least(0)?.plus(least(1)?)?)
            };
            let clock = super::super::Budget::default().begin();
            let packing = pack(&capacity, cheapest, worth, &clock).unwrap();
            let gap = worth(&packing.prices).unwrap().to_f64() / packing.rate.to_f64() - 1.0;
            assert!(packing
                .trees
                .iter()
                .all(|t| t.iter().fold(Ratio::ZERO, |s, x| s.plus(x.1).unwrap()) == Ratio::ONE));
            assert!((0.0..1e-7).contains(&gap), "{capacity:?} {gap}");
            if capacity[1] < 100 {
                assert_eq!(packing.rate, Ratio::new(expected.0, expected.1).unwrap());
            }
        }
    }

    #[test]
    fn fractions_are_recognised() {
        for (num, den) in [(0, 1), (1, 1), (2, 3), (355, 113), (1, 4096), (12345, 65537)] {
            assert_eq!(simple(num as f64 / den as f64), Ratio::new(num, den));
        }
    }
}
