//! The constants in the form in which GPUs compute hashes of width 3: partial rounds as a recurrence, matrices scaled.
//!
//! **Recurrence.** Let u_r be the cell with the S-box before round r adds its constant, y_r the S-box's output, x_r the rest
//! of the state, and M = [[N, w], [v, m]] with the rest first. From x_{r+1} = N x_r + w y_r and u_{r+1} = v x_r + m y_r
//! follows that u_{r+1}, and every cell of x_{r+1}, is a fixed linear combination of the *history*: y_r, the t - 1 last u
//! and the t - 1 y before y_r. For the t - 1 u determine x_{r+1-t}, as the rows v N^j, j < t - 1, are independent.
//! So a partial round is an S-box and one sum of 2 t - 1 products with one reduction, and the rest need not exist.
//!
//! **Before the first.** The full round before the partial ones is taken for partial round -1: its S-box in the last place
//! gives y_{-1}, its other S-boxes x_{-1}. Rounds before it are made up, with y = 0, which gives u_{-j} = v N^-j x_{-1}.
//!
//! **Scales.** A cell may be held as any multiple of itself: the S-box turns a factor f into f^5, constants before it are
//! divided by f, and the factor after it is chosen so that one product of the sum that makes the next value has the factor
//! one. That product is an addition.

use super::tables::{dot, solve_left, Matrix, Placed};
use super::PoseidonParams;
use ark_ff::PrimeField;

/// The constants of a hash of width 3 as one sequence of elements.
///
/// In the order of their use: for each full round three constants, then for each value that its matrix gives the factors of
/// the places 1 and 2, where that of place 0 is one. Its values are the three places, but those of the last full round
/// before the partial ones are u_{-1} and u_0, and the last full round has three factors for the one value. For each partial
/// round its constant, and the factors of u_r, u_{r-1}, y_{r-1} and y_{r-2} in u_{r+1}, where that of y_r is one; for the
/// last partial round such factors for each of the three places.
#[derive(Debug, Clone)]
pub struct Recurrence<F> {
    values: Vec<F>,
}

impl<F: PrimeField<BigInt = ark_ff::BigInt<4>>> Recurrence<F> {
    /// The width of the hashes that have it.
    pub const WIDTH: usize = 3;

    /// The sequence; `None` if the width is another one.
    pub fn new(params: PoseidonParams) -> Option<Self> {
        if params.width() != Self::WIDTH {
            return None;
        }
        let Placed { rounds, scalars, matrix, last } = Placed::<F>::new(params);
        let (half, partial) = (params.full_rounds() / 2, params.partial_rounds());
        let system = System::new(&matrix);
        let mut made = Scaled { values: Vec::new() };

        let mut scales = vec![F::ONE; Self::WIDTH];
        let mut outputs = Vec::new();
        for (r, constants) in rounds[..half].iter().enumerate() {
            outputs = made.s_boxes(constants, &scales);
            let before = [[system.before(), vec![F::ZERO]].concat(), matrix[Self::WIDTH - 1].clone()];
            scales = made.sums(if r + 1 < half { &matrix } else { &before }, &outputs);
        }
        // Of y_r, u_r, u_{r-1}, y_{r-1} and y_{r-2}; the first is put in below.
        let mut history = vec![F::ONE, scales[1], scales[0], outputs[Self::WIDTH - 1], F::ONE];
        for (r, &constant) in scalars.iter().enumerate() {
            history[0] = made.s_boxes(&[constant], &history[1..2])[0];
            let mut combinations = vec![system.combination(&system.v, system.m)];
            if r + 1 == partial {
                let rest = system.n.iter().zip(&system.w);
                let rest = rest.map(|(row, &w)| system.combination(row, w));
                combinations.splice(0..0, rest);
            }
            scales = made.sums(&combinations, &history);
            history = vec![F::ONE, scales[0], history[1], history[0], history[3]];
        }
        for (r, constants) in rounds[half + partial..].iter().enumerate() {
            outputs = made.s_boxes(constants, &scales);
            if r + 1 < half {
                scales = made.sums(&matrix, &outputs);
            }
        }
        made.values.extend(last.iter().zip(&outputs).map(|(factor, scale)| *factor * scale));
        Some(Recurrence { values: made.values })
    }

    /// The sequence.
    pub fn values(&self) -> &[F] {
        &self.values
    }
}

/// The sequence while it is made. What is held as x stands for scale * x.
struct Scaled<F> {
    values: Vec<F>,
}

impl<F: PrimeField> Scaled<F> {
    /// Appends the constants of S-boxes on cells with these scales; returns the scales of what comes out.
    fn s_boxes(&mut self, constants: &[F], scales: &[F]) -> Vec<F> {
        self.values.extend(constants.iter().zip(scales).map(|(c, scale)| *c / scale));
        scales.iter().map(|scale| scale.pow([5])).collect()
    }

    /// Appends the factors of sums in which the first summand has none; returns the scales of the sums.
    fn sums(&mut self, rows: &[Vec<F>], scales: &[F]) -> Vec<F> {
        let sum = |row: &Vec<F>| {
            let of_sum = row[0] * scales[0];
            assert!(!of_sum.is_zero(), "the first factors of the families' sums are not zero, which the tests show");
            self.values.extend(row.iter().zip(scales).skip(1).map(|(factor, scale)| *factor * scale / of_sum));
            of_sum
        };
        rows.iter().map(sum).collect()
    }
}

/// A partial round but for its S-box: x' = n x + w y and u' = v x + m y.
struct System<F> {
    n: Matrix<F>,
    w: Vec<F>,
    v: Vec<F>,
    m: F,
    /// v, v n, .., as many as x has cells.
    rows: Matrix<F>,
}

impl<F: PrimeField> System<F> {
    fn new(matrix: &Matrix<F>) -> Self {
        let last = matrix.len() - 1;
        let n: Matrix<F> = matrix[..last].iter().map(|row| row[..last].to_vec()).collect();
        let w = matrix[..last].iter().map(|row| row[last]).collect();
        let v = matrix[last][..last].to_vec();
        let mut system = System { n, w, v: v.clone(), m: matrix[last][last], rows: vec![v] };
        for _ in 1..last {
            let next = system.times_n(&system.rows[system.rows.len() - 1]);
            system.rows.push(next);
        }
        system
    }

    fn times_n(&self, row: &[F]) -> Vec<F> {
        (0..row.len()).map(|j| row.iter().zip(&self.n).map(|(x, n)| *x * n[j]).sum()).collect()
    }

    /// The row that gives u_{-1} of x_{-1}.
    fn before(&self) -> Vec<F> {
        solve_left(&self.n, &self.v)
    }

    /// The factors of y_r, of u_r down to u_{r+2-t}, and of y_{r-1} down to y_{r+1-t} in row * x_r + factor * y_r.
    ///
    /// With b = r + 1 - t: x_r = n^(t-1) x_b + the sum of n^(t-2-k) w y_{b+k} for k < t - 1, and
    /// u_{b+1+j} = v n^j x_b + the sum of v n^(j-1-k) w y_{b+k} for k < j + m y_{b+j}.
    fn combination(&self, row: &[F], factor: F) -> Vec<F> {
        let size = self.rows.len();
        let mut of_y = vec![F::ZERO; size];
        let mut power = row.to_vec();
        for k in (0..size).rev() {
            of_y[k] = dot(&power, &self.w);
            power = self.times_n(&power);
        }
        let of_u = solve_left(&self.rows, &power);
        for (j, factor) in of_u.iter().enumerate() {
            of_y[j] -= *factor * self.m;
            (0..j).for_each(|k| of_y[k] -= *factor * dot(&self.rows[j - 1 - k], &self.w));
        }
        [factor].into_iter().chain(of_u.into_iter().rev()).chain(of_y.into_iter().rev()).collect()
    }
}
