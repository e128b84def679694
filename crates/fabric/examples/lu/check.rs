//! What is checked of an LU factorisation: that a plain program comes to the same, and that L, U and a solution are as near as they must be.
//!
//! The bounds are those of N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, for numbers that do not underflow:
//! theorem 9.3 says |PA - LU| <= gamma(n) |L||U|, element by element, and theorem 9.4 that the x found solves (A + D) x = b with
//! |D| <= gamma(3n) |L||U|. As much again is allowed for the rounding of what is compared here, and of the bound itself.

use super::{failed, Entry, Result};

/// The factors of n columns, one after the other, L without its diagonal of ones; and with which row each diagonal's was exchanged.
pub(crate) struct Found<'a> {
    pub(crate) factors: &'a [f64],
    pub(crate) pivots: &'a [usize],
}

/// How far k roundings may lead, by lemma 3.1.
fn gamma(k: usize) -> f64 {
    let ku = k as f64 * f64::EPSILON / 2.0;
    ku / (1.0 - ku)
}

impl Found<'_> {
    fn n(&self) -> usize {
        self.pivots.len()
    }

    /// Column `k` of U, with its diagonal, and of L, without.
    fn column(&self, k: usize) -> (&[f64], &[f64]) {
        self.factors[k * self.n()..][..self.n()].split_at(k + 1)
    }

    /// Which row of the matrix has come to each place.
    fn rows(&self) -> Vec<usize> {
        let mut rows: Vec<usize> = (0..self.n()).collect();
        self.pivots.iter().enumerate().for_each(|(row, &other)| rows.swap(row, other));
        rows
    }

    /// All checks; what there is to say.
    pub(crate) fn check(&self, entry: Entry) -> Result<String> {
        self.is_plain(entry)?;
        let (scaled, share) = self.residual(entry)?;
        let b: Vec<f64> = (0..self.n()).map(|i| (i % 7) as f64 - 3.0).collect();
        let solved = match self.solve(&b) {
            Ok(x) => format!("b - Ax at {:.1e} of its", self.solves(entry, &b, &x)?),
            Err(column) => format!("singular: column {column} has no pivot"),
        };
        Ok(format!(
            "the factors and pivots of a plain program, bit for bit\n\
             |PA - LU| / (n eps |A|) = {scaled:.4}, and PA - LU at {share:.1e} of its bound; {solved}"
        ))
    }

    /// Compares with the textbook's three loops over rows.
    pub(crate) fn is_plain(&self, entry: Entry) -> Result<()> {
        let n = self.n();
        let mut a: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect();
        for k in 0..n {
            let mut pivot = k;
            for i in k + 1..n {
                if a[i][k].abs() > a[pivot][k].abs() {
                    pivot = i;
                }
            }
            if pivot != self.pivots[k] {
                return Err(failed(format!("the pivot of column {k} is row {}, not {pivot}", self.pivots[k])));
            }
            a.swap(k, pivot);
            let (above, below) = a.split_at_mut(k + 1);
            let row = &above[k];
            for other in below {
                if row[k] != 0.0 {
                    other[k] /= row[k];
                }
                let l = other[k];
                for (x, u) in other[k + 1..].iter_mut().zip(&row[k + 1..]) {
                    *x -= l * u;
                }
            }
        }
        for (i, row) in a.iter().enumerate() {
            for (j, x) in row.iter().enumerate() {
                let here = self.factors[j * n + i];
                if here.to_bits() != x.to_bits() {
                    return Err(failed(format!("row {i} of column {j} is {here:e}, and {x:e} in a plain program")));
                }
            }
        }
        Ok(())
    }

    /// |PA - LU| / (n eps |A|) in the norm of the largest row, and the largest share of its bound that a difference has.
    pub(crate) fn residual(&self, entry: Entry) -> Result<(f64, f64)> {
        let (n, rows) = (self.n(), self.rows());
        let (mut differences, mut sizes, mut largest) = (vec![0.0; n], vec![0.0; n], 0.0f64);
        for j in 0..n {
            // Column j of LU and of |L||U|.
            let (mut product, mut weight) = (vec![0.0; n], vec![0.0; n]);
            for (k, &u) in self.column(j).0.iter().enumerate() {
                let l = self.column(k).1;
                if let Some(l) = l.iter().find(|l| l.abs() > 1.0) {
                    return Err(failed(format!("column {k} of L has {l:e}: its pivot was not the largest")));
                }
                for (i, l) in (k..n).zip([1.0].iter().chain(l)) {
                    product[i] += l * u;
                    weight[i] += (l * u).abs();
                }
            }
            for i in 0..n {
                let a = entry(rows[i], j);
                let (difference, bound) = ((a - product[i]).abs(), gamma(2 * n + 1) * weight[i]);
                largest = largest.max(share(difference, bound, || format!("row {i} of column {j} of PA - LU"))?);
                differences[i] += difference;
                sizes[i] += a.abs();
            }
        }
        let norm = |rows: &[f64]| rows.iter().fold(0.0f64, |most, row| most.max(*row));
        let unit = n as f64 * f64::EPSILON * norm(&sizes);
        Ok((if unit > 0.0 { norm(&differences) / unit } else { 0.0 }, largest))
    }

    /// The x of Ax = b, or the first column that has no pivot.
    pub(crate) fn solve(&self, b: &[f64]) -> std::result::Result<Vec<f64>, usize> {
        let mut x: Vec<f64> = self.rows().iter().map(|&row| b[row]).collect();
        for k in 0..self.n() {
            let known = x[k];
            x[k + 1..].iter_mut().zip(self.column(k).1).for_each(|(x, l)| *x -= l * known);
        }
        for k in (0..self.n()).rev() {
            let u = self.column(k).0;
            if u[k] == 0.0 {
                return Err((0..=k).find(|&k| self.column(k).0[k] == 0.0).unwrap_or(k));
            }
            x[k] /= u[k];
            let known = x[k];
            x[..k].iter_mut().zip(u).for_each(|(x, u)| *x -= u * known);
        }
        Ok(x)
    }

    /// The largest share of its bound that a difference of b and Ax has.
    pub(crate) fn solves(&self, entry: Entry, b: &[f64], x: &[f64]) -> Result<f64> {
        let (n, rows) = (self.n(), self.rows());
        // |U||x|, then |L| times that.
        let (mut upper, mut weight) = (vec![0.0; n], vec![0.0; n]);
        for (k, x) in x.iter().enumerate() {
            upper.iter_mut().zip(self.column(k).0).for_each(|(sum, u)| *sum += (u * x).abs());
        }
        for (k, sum) in upper.iter().enumerate() {
            let l = [1.0].iter().chain(self.column(k).1);
            weight[k..].iter_mut().zip(l).for_each(|(weight, l)| *weight += l.abs() * sum);
        }
        let mut largest = 0.0f64;
        for i in 0..n {
            let (mut difference, mut size) = (b[rows[i]], b[rows[i]].abs());
            for (j, x) in x.iter().enumerate() {
                let term = entry(rows[i], j) * x;
                difference -= term;
                size += term.abs();
            }
            let bound = gamma(5 * n) * weight[i] + gamma(2 * n + 2) * size;
            largest = largest.max(share(difference.abs(), bound, || format!("row {i} of b - Ax"))?);
        }
        Ok(largest)
    }
}

/// The share that a difference has of its bound, if it is within.
fn share(difference: f64, bound: f64, what: impl Fn() -> String) -> Result<f64> {
    if difference <= bound {
        return Ok(if difference > 0.0 { difference / bound } else { 0.0 });
    }
    Err(failed(format!("{} is {difference:e}, and may be {bound:e} at most", what())))
}
