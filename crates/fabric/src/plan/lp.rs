//! Fractional packing: the greatest sum of `y` with `sum of y[j] * column[j] <= capacity`, `y >= 0`, where the columns are not
//! listed but found by asking for the cheapest one at given prices. Revised simplex.
//!
//! First in fractions, with the lexicographic rule, so that it is exact and cannot cycle. Where the fractions outgrow 128 bits, in
//! floating point; the packing is then rounded down to fit and the prices to round fractions, which leaves a gap that shows.

use crate::ratio::gcd;
use crate::Ratio;
use std::cmp::Ordering;

/// Steps after which the search gives up.
const MOST_STEPS: usize = 4000;
/// Denominator of rounded results.
const ROUND: i64 = 1 << 20;
/// The greatest common denominator of exact results that later arithmetic can take.
const MOST_DENOMINATOR: i128 = 1 << 56;

/// A packing and the prices that bound it.
pub(crate) struct Packing<T> {
    /// What is packed, how much of it.
    pub(crate) columns: Vec<(T, Ratio)>,
    /// A price of each capacity: no packing exceeds what all capacity costs over what the cheapest column costs. If the packing is
    /// exact, it reaches that.
    pub(crate) prices: Vec<Ratio>,
}

/// A column: what it is and what it takes of which capacity.
pub(crate) type Column<T> = (T, Vec<(usize, i64)>);

/// Solves it; `None` where there is no column.
pub(crate) fn pack<T: Clone>(
    capacity: &[i64],
    mut cheapest: impl FnMut(&[Ratio]) -> Option<Column<T>>,
) -> Option<Packing<T>> {
    let unit = capacity.iter().fold(0, |g, &c| gcd(g, c.into())).max(1);
    let small: Vec<i64> =
        capacity.iter().map(|&c| i64::try_from(i128::from(c) / unit)).collect::<Result<_, _>>().ok()?;
    let packing = exact(&small, &mut cheapest).or_else(|| rounded(&small, &mut cheapest))?;
    let unit = Ratio::new(unit, 1)?;
    let columns = packing.columns.into_iter().map(|(b, y)| Some((b, y.times(unit)?)));
    Some(Packing { columns: columns.collect::<Option<_>>()?, prices: packing.prices })
}

fn exact<T: Clone>(capacity: &[i64], cheapest: &mut impl FnMut(&[Ratio]) -> Option<Column<T>>) -> Option<Packing<T>> {
    let (state, true) = solve::<T, Ratio>(capacity, cheapest)? else { return None };
    let prices = state.prices()?;
    let columns: Vec<(T, Ratio)> = state.columns().map(|(column, y)| (column.0.clone(), y)).collect();
    let all = prices.iter().chain(columns.iter().map(|(_, y)| y));
    all.map(|x| x.den()).try_fold(1i128, |l, d| (l / gcd(l, d)).checked_mul(d).filter(|l| *l <= MOST_DENOMINATOR))?;
    Some(Packing { columns, prices })
}

fn rounded<T: Clone>(capacity: &[i64], cheapest: &mut impl FnMut(&[Ratio]) -> Option<Column<T>>) -> Option<Packing<T>> {
    // Also what was found before the steps ran out is a packing, and its prices a bound.
    let (state, _) = solve::<T, f64>(capacity, cheapest)?;
    let columns: Vec<(Column<T>, f64)> = state.columns().map(|(column, y)| (column.clone(), y.max(0.0))).collect();
    let mut loads = vec![0.0; capacity.len()];
    for (column, y) in &columns {
        column.1.iter().for_each(|&(i, a)| loads[i] += a as f64 * y);
    }
    let worst = loads.iter().zip(capacity).map(|(l, &c)| l / c as f64).fold(1.0, f64::max) * (1.0 + 1e-9);
    let round = |x: f64| Ratio::new((x * ROUND as f64) as i128, ROUND.into());
    let columns = columns.into_iter().map(|((what, _), y)| Some((what, round(y / worst)?)));
    // Prices bound whatever they are multiplied with; the greatest becomes 1, so that rounding changes little.
    let prices = state.prices()?;
    let most = prices.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let prices = prices.into_iter().map(|p| round(p.max(0.0) / most));
    Some(Packing { columns: columns.collect::<Option<_>>()?, prices: prices.collect::<Option<_>>()? })
}

/// The numbers of a basis.
trait Number: Copy {
    fn from(n: i64) -> Self;
    fn plus(self, o: Self) -> Option<Self>;
    fn times(self, o: Self) -> Option<Self>;
    fn over(self, o: Self) -> Option<Self>;
    /// The sign; of floating point, zero for what rounding may have left.
    fn sign(self) -> Ordering;
    /// Whether this is at least 1; in floating point, or so near that the packing is as good as best.
    fn reaches_one(self) -> bool;
    fn fraction(self) -> Option<Ratio>;
}

impl Number for Ratio {
    fn from(n: i64) -> Self {
        Self::whole(n)
    }
    fn plus(self, o: Self) -> Option<Self> {
        Ratio::plus(self, o)
    }
    fn times(self, o: Self) -> Option<Self> {
        Ratio::times(self, o)
    }
    fn over(self, o: Self) -> Option<Self> {
        Ratio::over(self, o)
    }
    fn sign(self) -> Ordering {
        self.num().cmp(&0)
    }
    fn reaches_one(self) -> bool {
        self >= Self::ONE
    }
    fn fraction(self) -> Option<Ratio> {
        Some(self)
    }
}

impl Number for f64 {
    fn from(n: i64) -> Self {
        n as f64
    }
    fn plus(self, o: Self) -> Option<Self> {
        Some(self + o)
    }
    fn times(self, o: Self) -> Option<Self> {
        Some(self * o)
    }
    fn over(self, o: Self) -> Option<Self> {
        Some(self / o)
    }
    fn sign(self) -> Ordering {
        if self.abs() < 1e-9 {
            return Ordering::Equal;
        }
        self.total_cmp(&0.0)
    }
    fn reaches_one(self) -> bool {
        self >= 1.0 - 1e-7
    }
    fn fraction(self) -> Option<Ratio> {
        Ratio::new((self.max(0.0) * (1i64 << 40) as f64).round() as i128, 1 << 40)
    }
}

fn minus<N: Number>(a: N, b: N) -> Option<N> {
    a.plus(b.times(N::from(-1))?)
}

/// A basis: in each row a column, or the slack of a capacity.
struct State<T, N> {
    inverse: Vec<Vec<N>>,
    value: Vec<N>,
    basis: Vec<Option<Column<T>>>,
}

/// The last basis, and whether it is optimal.
fn solve<T: Clone, N: Number>(
    capacity: &[i64],
    cheapest: &mut impl FnMut(&[Ratio]) -> Option<Column<T>>,
) -> Option<(State<T, N>, bool)> {
    let m = capacity.len();
    let unit = |i| (0..m).map(|j| N::from(i64::from(i == j))).collect();
    let mut state: State<T, N> = State {
        inverse: (0..m).map(unit).collect(),
        value: capacity.iter().map(|&c| N::from(c)).collect(),
        basis: vec![None; m],
    };
    for _ in 0..MOST_STEPS {
        let prices = state.prices()?;
        let entering = match prices.iter().position(|p| p.sign().is_lt()) {
            // A capacity with a negative price should not be used up.
            Some(i) => (None, vec![(i, 1)]),
            None => {
                let column = cheapest(&prices.iter().map(|p| p.fraction()).collect::<Option<Vec<_>>>()?)?;
                if dot(&prices, &column.1)?.reaches_one() {
                    return Some((state, true));
                }
                let takes = column.1.clone();
                (Some(column), takes)
            }
        };
        if state.exchange(entering.0, &entering.1).is_none() {
            break;
        }
    }
    Some((state, false))
}

fn dot<N: Number>(row: &[N], takes: &[(usize, i64)]) -> Option<N> {
    takes.iter().try_fold(N::from(0), |sum, &(i, a)| sum.plus(row[i].times(N::from(a))?))
}

impl<T: Clone, N: Number> State<T, N> {
    fn prices(&self) -> Option<Vec<N>> {
        let mut prices = vec![N::from(0); self.value.len()];
        for (row, _) in self.inverse.iter().zip(&self.basis).filter(|(_, b)| b.is_some()) {
            for (price, x) in prices.iter_mut().zip(row) {
                *price = price.plus(*x)?;
            }
        }
        Some(prices)
    }

    fn columns(&self) -> impl Iterator<Item = (&Column<T>, N)> {
        self.basis.iter().zip(&self.value).filter_map(|(b, y)| Some((b.as_ref()?, *y)))
    }

    fn exchange(&mut self, entering: Option<Column<T>>, takes: &[(usize, i64)]) -> Option<()> {
        let direction: Vec<N> = self.inverse.iter().map(|row| dot(row, takes)).collect::<Option<_>>()?;
        let row = self.leaving(&direction)?;
        let pivot = direction[row];
        for x in &mut self.inverse[row] {
            *x = x.over(pivot)?;
        }
        self.value[row] = self.value[row].over(pivot)?;
        let (top, value) = (self.inverse[row].clone(), self.value[row]);
        for i in (0..self.value.len()).filter(|&i| i != row && direction[i].sign().is_ne()) {
            for (x, p) in self.inverse[i].iter_mut().zip(&top) {
                *x = minus(*x, direction[i].times(*p)?)?;
            }
            self.value[i] = minus(self.value[i], direction[i].times(value)?)?;
        }
        self.basis[row] = entering;
        Some(())
    }

    /// The row whose value reaches zero first; of equals the one whose row of the inverse is lexicographically least.
    fn leaving(&self, direction: &[N]) -> Option<usize> {
        let mut best: Option<usize> = None;
        for i in (0..self.value.len()).filter(|&i| direction[i].sign().is_gt()) {
            let Some(b) = best else {
                best = Some(i);
                continue;
            };
            let compare = |x: N, y: N| Some(minus(x.over(direction[i])?, y.over(direction[b])?)?.sign());
            let mut order = compare(self.value[i], self.value[b])?;
            for (x, y) in self.inverse[i].iter().zip(&self.inverse[b]) {
                if order.is_ne() {
                    break;
                }
                order = compare(*x, *y)?;
            }
            if order.is_lt() {
                best = Some(i);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Solver = fn(&[i64], &mut dyn FnMut(&[Ratio]) -> Option<Column<usize>>) -> Option<Packing<usize>>;

    /// Spanning trees of a triangle: each pair of its edges; capacities 1, 1, 2 hold two trees, 1, 1, 1 one and a half.
    #[test]
    fn trees_of_a_triangle() {
        let solvers: [(Solver, f64); 2] =
            [(|c, f| exact(c, &mut |p| f(p)), 0.0), (|c, f| rounded(c, &mut |p| f(p)), 1e-5)];
        for (capacity, expected) in [([1, 1, 2], 2.0), ([1, 1, 1], 1.5)] {
            for (solver, gap) in &solvers {
                let mut cheapest = |price: &[Ratio]| {
                    let skip = (0..3).max_by_key(|&i| price[i])?;
                    Some((skip, (0..3).filter(|&i| i != skip).map(|i| (i, 1)).collect()))
                };
                let packing = solver(&capacity, &mut cheapest).unwrap();
                let total: f64 = packing.columns.iter().map(|(_, y)| y.to_f64()).sum();
                assert!(total <= expected && total >= expected - gap, "{total}");
                let worth: f64 = (0..3).map(|i| packing.prices[i].to_f64() * capacity[i] as f64).sum();
                let mut price: Vec<f64> = packing.prices.iter().map(|p| p.to_f64()).collect();
                price.sort_by(f64::total_cmp);
                assert!((worth / (price[0] + price[1]) - expected).abs() <= *gap, "{worth}");
            }
        }
    }
}
