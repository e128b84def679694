//! Fractional packing, exactly: the greatest sum of `y` with `sum of y[j] * column[j] <= capacity`, `y >= 0`, where the columns are
//! not listed but found by asking for the cheapest one at given prices. Revised simplex in fractions, with the lexicographic
//! rule, so that it cannot cycle.

use crate::Ratio;

/// Steps after which the search gives up.
const MOST_STEPS: usize = 4000;

/// An optimal packing.
pub(crate) struct Packing<T> {
    /// What is packed, how much of it.
    pub(crate) columns: Vec<(T, Ratio)>,
    /// A price of each capacity; the cheapest column costs at least 1 and all capacity together the value of the packing.
    pub(crate) prices: Vec<Ratio>,
}

/// A column: what it is and what it takes of which capacity.
pub(crate) type Column<T> = (T, Vec<(usize, i64)>);

/// Solves it. `None` where fractions
/// of 128 bits or the steps do not suffice.
pub(crate) fn pack<T: Clone>(
    capacity: &[i64],
    mut cheapest: impl FnMut(&[Ratio]) -> Option<Column<T>>,
) -> Option<Packing<T>> {
    let m = capacity.len();
    let mut inverse: Vec<Vec<Ratio>> =
        (0..m).map(|i| (0..m).map(|j| if i == j { Ratio::ONE } else { Ratio::ZERO }).collect()).collect();
    let mut value: Vec<Ratio> = capacity.iter().map(|&c| Ratio::whole(c)).collect();
    let mut basis: Vec<Option<T>> = vec![None; m];
    for _ in 0..MOST_STEPS {
        let mut prices = vec![Ratio::ZERO; m];
        for (row, _) in inverse.iter().zip(&basis).filter(|(_, b)| b.is_some()) {
            for (price, x) in prices.iter_mut().zip(row).filter(|(_, x)| !x.is_zero()) {
                *price = price.plus(*x)?;
            }
        }
        // A capacity with a negative price should not be used up; else the cheapest column enters.
        let (entering, takes) = match prices.iter().position(|p| p.num() < 0) {
            Some(i) => (None, vec![(i, 1)]),
            None => {
                let (column, takes) = cheapest(&prices)?;
                let cost =
                    takes.iter().try_fold(Ratio::ZERO, |sum, &(i, a)| sum.plus(prices[i].times(Ratio::whole(a))?))?;
                if cost >= Ratio::ONE {
                    let columns = basis.into_iter().zip(value).filter_map(|(b, y)| Some((b?, y))).collect();
                    return Some(Packing { columns, prices });
                }
                (Some(column), takes)
            }
        };
        let mut direction = Vec::with_capacity(m);
        for row in &inverse {
            direction
                .push(takes.iter().try_fold(Ratio::ZERO, |sum, &(i, a)| sum.plus(row[i].times(Ratio::whole(a))?))?);
        }
        let leaving = leaving(&inverse, &value, &direction)?;
        pivot(&mut inverse, &mut value, &direction, leaving)?;
        basis[leaving] = entering;
    }
    None
}

/// The row whose value reaches zero first; of equals the one whose row of the inverse is lexicographically least.
fn leaving(inverse: &[Vec<Ratio>], value: &[Ratio], direction: &[Ratio]) -> Option<usize> {
    let mut best: Option<usize> = None;
    for i in (0..value.len()).filter(|&i| direction[i].num() > 0) {
        let Some(b) = best else {
            best = Some(i);
            continue;
        };
        let mut order = value[i].over(direction[i])?.cmp(&value[b].over(direction[b])?);
        for (x, y) in inverse[i].iter().zip(&inverse[b]) {
            if order.is_ne() {
                break;
            }
            order = x.over(direction[i])?.cmp(&y.over(direction[b])?);
        }
        if order.is_lt() {
            best = Some(i);
        }
    }
    best
}

fn pivot(inverse: &mut [Vec<Ratio>], value: &mut [Ratio], direction: &[Ratio], row: usize) -> Option<()> {
    for x in &mut inverse[row] {
        *x = x.over(direction[row])?;
    }
    value[row] = value[row].over(direction[row])?;
    let (pivot, top) = (inverse[row].clone(), value[row]);
    for i in (0..value.len()).filter(|&i| i != row && !direction[i].is_zero()) {
        for (x, p) in inverse[i].iter_mut().zip(&pivot).filter(|(_, p)| !p.is_zero()) {
            *x = x.minus(direction[i].times(*p)?)?;
        }
        value[i] = value[i].minus(direction[i].times(top)?)?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spanning trees of a triangle: each pair of its edges; capacities 1, 1, 2 hold two trees, 1, 1, 1 one and a half.
    #[test]
    fn trees_of_a_triangle() {
        for (capacity, expected) in [([1, 1, 2], Ratio::whole(2)), ([1, 1, 1], Ratio::new(3, 2).unwrap())] {
            let packing = pack(&capacity, |price| {
                let skip = (0..3).max_by_key(|&i| price[i])?;
                Some((skip, (0..3).filter(|&i| i != skip).map(|i| (i, 1)).collect()))
            })
            .unwrap();
            let total = packing.columns.iter().fold(Ratio::ZERO, |sum, (_, y)| sum.plus(*y).unwrap());
            assert_eq!(total, expected);
            let worth = (0..3).fold(Ratio::ZERO, |sum, i| {
                sum.plus(packing.prices[i].times(Ratio::whole(capacity[i])).unwrap()).unwrap()
            });
            assert_eq!(worth, expected);
        }
    }
}
