//! The constants in the form in which hashes are computed: sparse matrices in place of the partial rounds' full ones.
//!
//! Places are numbered so that cell 0 of the state, the one with an S-box in every round, comes last: place i holds cell
//! i + 1, place t - 1 cell 0. Inputs then lie at the places 0 to t - 2.
//!
//! **Constants.** What a partial round adds to the cells without an S-box passes through its matrix unchanged, so it
//! becomes part of the next round's constants. Each partial round keeps one number.
//!
//! **Sparse matrices.** With the rest of the state first, M = [[N, w], [v, m]] = S D for D = [[N, 0], [0, 1]] and
//! S = [[1, w], [v / N, m]]. D does not touch cell 0, so it can be moved before the S-box and into the matrix of the
//! round before, from the last partial round to the first; the last full round before them takes what is left.
//!
//! **Blocks.** Over `block` partial rounds the rest x stays as it was. With y_k the S-box's output of round k, round r
//! gives cell 0 = v_r x + sum_{k < r} (v_r w_k) y_k + m y_r, and after the block x += sum_k w_k y_k, one reduction a cell.
//!
//! **Triangles.** A full matrix is a product of an upper triangle, applied from the first row to the last, and a lower
//! one with ones on its diagonal, from the last row to the first. Neither needs a second copy of the state.

use super::{Constants, PoseidonParams};
use ark_ff::PrimeField;

pub(super) type Matrix<F> = Vec<Vec<F>>;

/// A hash's constants by places, with one number left of what each partial round adds.
pub(super) struct Placed<F> {
    /// What full rounds add. The rows of partial rounds are of no use.
    pub(super) rounds: Matrix<F>,
    /// What partial rounds add to the cell with an S-box.
    pub(super) scalars: Vec<F>,
    /// The matrix of every round.
    pub(super) matrix: Matrix<F>,
    /// The row of it that gives the hash.
    pub(super) last: Vec<F>,
}

impl<F: PrimeField<BigInt = ark_ff::BigInt<4>>> Placed<F> {
    pub(super) fn new(params: PoseidonParams) -> Self {
        let t = params.width();
        let Constants { rounds, matrix, tag, output, .. } = params.constants::<F>();
        // From cells to places.
        let cell = |place: usize| (place + 1) % t;
        let mut rounds: Matrix<F> = rounds.iter().map(|row| (0..t).map(|i| row[cell(i)]).collect()).collect();
        let matrix: Matrix<F> = (0..t).map(|i| (0..t).map(|j| matrix[cell(i)][cell(j)]).collect()).collect();
        rounds[0][t - 1] += tag;

        let first = params.full_rounds() / 2;
        let mut scalars = Vec::with_capacity(params.partial_rounds());
        for r in first..first + params.partial_rounds() {
            let mut rest = rounds[r].clone();
            scalars.push(std::mem::take(&mut rest[t - 1]));
            let moved = apply(&matrix, &rest);
            rounds[r + 1].iter_mut().zip(moved).for_each(|(c, m)| *c += m);
        }
        let last = matrix[(output + t - 1) % t].clone();
        Placed { rounds, scalars, matrix, last }
    }
}

/// The constants of a hash, optimised, as one sequence of elements.
///
/// In this order: `8 t` constants of the full rounds; the triangles of M (t^2: rows of the upper one from its diagonal
/// on, then rows of the lower one up to its diagonal, last row first); the triangles of the matrix before the partial
/// rounds (t^2); the row of M that gives the hash (t); then for each block of partial rounds, for round r of it, its
/// constant and t + r factors, and after its rounds for each place its factors of the y.
#[derive(Debug, Clone)]
pub struct Tables<F> {
    params: PoseidonParams,
    block: usize,
    values: Vec<F>,
}

impl<F: PrimeField<BigInt = ark_ff::BigInt<4>>> Tables<F> {
    /// The tables of a hash. Every one that [`PoseidonParams`] can name has them: the tests make all.
    pub fn new(params: PoseidonParams) -> Self {
        let t = params.width();
        let Placed { rounds, scalars, matrix, last } = Placed::<F>::new(params);
        let (first, partial) = (params.full_rounds() / 2, params.partial_rounds());

        let mut sparse = Vec::with_capacity(partial);
        let mut whole = matrix.clone();
        for _ in 0..partial {
            let rest: Matrix<F> = whole[..t - 1].iter().map(|row| row[..t - 1].to_vec()).collect();
            let w: Vec<F> = whole[..t - 1].iter().map(|row| row[t - 1]).collect();
            let v = solve_left(&rest, &whole[t - 1][..t - 1]);
            sparse.push((v, w));
            // D of this round after M of the round before.
            let mut next = matrix.clone();
            for (row, factors) in next.iter_mut().zip(&rest) {
                let product = (0..t).map(|j| (0..t - 1).map(|k| factors[k] * matrix[k][j]).sum());
                *row = product.collect();
            }
            whole = next;
        }
        sparse.reverse();

        let block = params.block();
        let mut values: Vec<F> = rounds[..first].concat();
        values.extend(rounds[first + partial..].concat());
        triangles(&matrix, &mut values);
        triangles(&whole, &mut values);
        values.extend(last);
        for (scalars, sparse) in scalars.chunks(block).zip(sparse.chunks(block)) {
            for (r, (v, _)) in sparse.iter().enumerate() {
                values.push(scalars[r]);
                values.extend(v);
                values.extend(sparse[..r].iter().map(|(_, w)| dot(v, w)));
                values.push(matrix[t - 1][t - 1]);
            }
            for place in 0..t - 1 {
                values.extend(sparse.iter().map(|(_, w)| w[place]));
            }
        }
        Tables { params, block, values }
    }

    /// What they are the tables of.
    pub fn params(&self) -> PoseidonParams {
        self.params
    }

    /// Partial rounds of a block.
    pub fn block(&self) -> usize {
        self.block
    }

    /// The sequence.
    pub fn values(&self) -> &[F] {
        &self.values
    }

    /// The hash of `input`, which has `arity` elements. `state` is memory to work in.
    pub fn hash(&self, input: impl Iterator<Item = F>, state: &mut Vec<F>) -> F {
        let t = self.params.width();
        let half = self.params.full_rounds() / 2;
        state.clear();
        state.extend(input.take(t - 1));
        state.resize(t - 1 + self.block, F::ZERO);
        let (full, rest) = self.values.split_at(2 * half * t);
        let (triangles, rest) = rest.split_at(t * t);
        let (before_partial, rest) = rest.split_at(t * t);
        let (last, mut partial) = rest.split_at(t);
        let s_boxes = |state: &mut [F], round: usize| {
            state.iter_mut().zip(&full[round * t..][..t]).for_each(|(x, c)| *x = fifth_power(*x + c));
        };
        for round in 0..half {
            s_boxes(state, round);
            apply_triangles(if round + 1 == half { before_partial } else { triangles }, &mut state[..t]);
        }
        let mut left = self.params.partial_rounds();
        while left > 0 {
            let rounds = left.min(self.block);
            left -= rounds;
            let mut cell = state[t - 1];
            for r in 0..rounds {
                let (constant, factors) = (partial[0], &partial[1..][..t + r]);
                partial = &partial[1 + t + r..];
                state[t - 1 + r] = fifth_power(cell + constant);
                cell = dot(factors, &state[..t + r]);
            }
            for place in 0..t - 1 {
                let sum = dot(&partial[..rounds], &state[t - 1..][..rounds]);
                state[place] += sum;
                partial = &partial[rounds..];
            }
            state[t - 1] = cell;
        }
        for round in half..2 * half {
            s_boxes(state, round);
            if round + 1 < 2 * half {
                apply_triangles(triangles, &mut state[..t]);
            }
        }
        dot(last, &state[..t])
    }
}

/// x^5
fn fifth_power<F: PrimeField>(x: F) -> F {
    x * x.square().square()
}

pub(super) fn dot<F: PrimeField>(a: &[F], b: &[F]) -> F {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<4>(), b.as_chunks::<4>());
    let chunks: F = a.iter().zip(b).map(|(a, b)| F::sum_of_products(a, b)).sum();
    chunks + a_rest.iter().zip(b_rest).map(|(a, b)| *a * b).sum::<F>()
}

fn apply<F: PrimeField>(matrix: &Matrix<F>, x: &[F]) -> Vec<F> {
    matrix.iter().map(|row| dot(row, x)).collect()
}

fn apply_triangles<F: PrimeField>(mut factors: &[F], x: &mut [F]) {
    let t = x.len();
    for i in 0..t {
        x[i] = dot(&factors[..t - i], &x[i..]);
        factors = &factors[t - i..];
    }
    for i in (1..t).rev() {
        let sum = dot(&factors[..i], &x[..i]);
        x[i] += sum;
        factors = &factors[i..];
    }
}

/// The row y with y N = v.
pub(super) fn solve_left<F: PrimeField>(n: &Matrix<F>, v: &[F]) -> Vec<F> {
    // Gauss-Jordan on the transpose, with v as the right-hand side.
    let size = v.len();
    let mut rows: Matrix<F> = (0..size).map(|i| n.iter().map(|row| row[i]).chain([v[i]]).collect()).collect();
    for i in 0..size {
        let pivot = (i..size).find(|&r| !rows[r][i].is_zero());
        rows.swap(i, pivot.unwrap_or(i));
        let inverse = rows[i][i].inverse().expect("the matrices of the families are regular, which the tests show");
        rows[i].iter_mut().for_each(|x| *x *= inverse);
        let row = rows[i].clone();
        for other in (0..size).filter(|&r| r != i) {
            let factor = rows[other][i];
            rows[other].iter_mut().zip(&row).for_each(|(x, y)| *x -= factor * y);
        }
    }
    rows.iter().map(|row| row[size]).collect()
}

/// Appends the triangles of `matrix`.
fn triangles<F: PrimeField>(matrix: &Matrix<F>, values: &mut Vec<F>) {
    let t = matrix.len();
    let (mut upper, mut lower) = (matrix.clone(), vec![Vec::new(); t]);
    for i in 0..t {
        let pivot = upper[i].clone();
        let inverse = pivot[i].inverse().expect("the minors of the matrices are regular, which the tests show");
        for r in i + 1..t {
            let factor = upper[r][i] * inverse;
            upper[r].iter_mut().zip(&pivot).for_each(|(x, y)| *x -= factor * y);
            lower[r].push(factor);
        }
    }
    upper.iter().enumerate().for_each(|(i, row)| values.extend(&row[i..]));
    lower.iter().rev().for_each(|row| values.extend(row));
}
