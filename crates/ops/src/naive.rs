//! The primitives by their definitions: slow, short, and made of nothing but field and group arithmetic. They are
//! the oracles of every backend.

use crate::poseidon::Constants;
use crate::{Canonical, Coset, Curve, Direction, Group, NttField, NttOp, Order, SparseRows};
use ark_ff::{AdditiveGroup, BigInteger, Field, PrimeField};

/// The place of index `i` in a vector of 2^`log_n` elements.
pub fn place(order: Order, i: usize, log_n: u32) -> usize {
    match order {
        Order::Natural => i,
        Order::BitReversed => (0..log_n).filter(|b| i >> b & 1 == 1).map(|b| 1 << (log_n - 1 - b)).sum(),
    }
}

/// The polynomial with coefficients `c` at `x`.
fn evaluate<F: Field>(c: impl DoubleEndedIterator<Item = F>, x: F) -> F {
    c.rev().fold(F::ZERO, |sum, c| sum * x + c)
}

/// Element `index` of what the transform `op` makes of `input`, both taken in the orders that `op` says. `None`
/// where there is no such transform.
pub fn ntt_at<F: NttField>(input: &[F::Ark], op: NttOp<F::Element>, index: usize) -> Option<F::Ark> {
    let n = input.len();
    if !n.is_power_of_two() || index >= n {
        return None;
    }
    let log_n = n.ilog2();
    let w = F::root_of_unity(log_n)?;
    let g = match op.coset {
        Coset::Subgroup => F::Ark::ONE,
        Coset::Odd => F::root_of_unity(log_n + 1)?,
        Coset::Shift(g) => F::value(g),
    };
    let natural = (0..n).map(|i| input[place(op.input, i, log_n)]);
    match op.direction {
        // v_i = sum_j c_j (g w^i)^j
        Direction::Forward => Some(evaluate(natural, g * w.pow([index as u64]))),
        // c_j = 1/n g^-j sum_i v_i (w^-j)^i
        Direction::Inverse => {
            let scale = (F::Ark::from(n as u64) * g.pow([index as u64])).inverse()?;
            Some(evaluate(natural, w.inverse()?.pow([index as u64])) * scale)
        }
    }
}

/// What the transform `op` makes of `input`. `None` where there is no such transform.
pub fn ntt<F: NttField>(input: &[F::Ark], op: NttOp<F::Element>) -> Option<Vec<F::Ark>> {
    let mut output = vec![F::Ark::ZERO; input.len()];
    for i in 0..input.len() {
        output[place(op.output, i, input.len().ilog2())] = ntt_at::<F>(input, op, i)?;
    }
    Some(output)
}

/// Value `index` of the discrete Fourier transform of these complex numbers, each its real and its imaginary part.
pub fn dft_at(input: &[[f64; 2]], direction: Direction, index: usize) -> [f64; 2] {
    dft_part(input.iter().copied(), 0, input.len(), direction, index)
}

/// What numbers `first`, `first` + 1, .. of `n` add to that value: the direct sum. n is a power of two, so that angles are exact fractions of a turn;
/// in radians, and as cosine and sine, they are off by 7 * 2^-53.
pub fn dft_part(
    part: impl Iterator<Item = [f64; 2]>,
    first: usize,
    n: usize,
    direction: Direction,
    index: usize,
) -> [f64; 2] {
    let (turn, scale) = match direction {
        Direction::Forward => (-std::f64::consts::TAU, 1.0),
        Direction::Inverse => (std::f64::consts::TAU, 1.0 / n as f64),
    };
    let product = |(j, [re, im]): (usize, [f64; 2])| {
        let part = ((first + j) as u128 * index as u128 % n as u128) as f64 / n as f64;
        let (sin, cos) = (turn * if part > 0.5 { part - 1.0 } else { part }).sin_cos();
        [re * cos - im * sin, re * sin + im * cos]
    };
    let products: Vec<[f64; 2]> = part.enumerate().map(product).collect();
    [0, 1].map(|i| scale * float_sum(products.iter().map(|product| product[i])))
}

/// The inverse of `x` by Fermat's little theorem, x^(p - 2); of zero, zero.
pub fn inverse<F: PrimeField>(x: F) -> F {
    // p is odd and above 2, so that nothing is borrowed.
    let mut exponent = F::MODULUS;
    exponent.sub_with_borrow(&F::BigInt::from(2u64));
    x.pow(exponent)
}

/// The inverse transform of points: (1/n) sum_i w^(-i j) P_i for each j. `None` where there is no such transform.
pub fn lagrange_points<C: Curve>(points: &[<C::G1 as Group>::Point]) -> Option<Vec<<C::G1 as Group>::Ark>> {
    let n = points.len();
    let w = if n.is_power_of_two() { C::root_of_unity(n.ilog2())?.inverse()? } else { return None };
    let share = C::Fr::from(n as u64).inverse()?;
    let term = |i: usize, j: usize| multiple::<C::G1>(&points[i], C::canonical(share * w.pow([(i * j) as u64])));
    Some((0..n).map(|j| (0..n).map(|i| term(i, j)).sum()).collect())
}

/// Of each element the product of those before it.
pub fn prefix_product<F: Field>(x: &[F]) -> Vec<F> {
    (0..x.len()).map(|i| x[..i].iter().product()).collect()
}

/// The value at `x` of the polynomial with coefficients `c`.
pub fn value<F: Field>(c: &[F], x: F) -> F {
    c.iter().enumerate().map(|(i, &c)| c * x.pow([i as u64])).sum()
}

/// The remainder, m coefficients, and behind it the quotient of the polynomial with coefficients `c` by X^m - b, since X^(k m + j) is
/// b^k X^j modulo it: element i is the sum of c_(i + k m) b^k.
pub fn divide<F: Field>(c: &[F], m: usize, b: F) -> Vec<F> {
    (0..c.len()).map(|i| value(&c[i..].iter().copied().step_by(m).collect::<Vec<_>>(), b)).collect()
}

/// The value at `point`, one coordinate for each bit of an index, the highest first, of the polynomial of degree 1 in each variable that takes
/// these values on {0, 1}^k.
pub fn multilinear<F: Field>(table: &[F], point: &[F]) -> F {
    let factor = |i: usize, (v, &x): (usize, &F)| if i >> (point.len() - 1 - v) & 1 == 1 { x } else { F::ONE - x };
    let term = |(i, &value): (usize, &F)| value * point.iter().enumerate().map(|of| factor(i, of)).product::<F>();
    table.iter().enumerate().map(term).sum()
}

/// The values on {0, 1}, .. of the polynomial of these values whose first variables are bound to `bound`.
pub fn multilinear_bound<F: Field>(table: &[F], bound: &[F]) -> Vec<F> {
    let free = table.len().ilog2() as usize - bound.len();
    let bits = |i: usize| (0..free).rev().map(move |b| F::from((i >> b & 1) as u64));
    (0..1 << free).map(|i| multilinear(table, &bound.iter().copied().chain(bits(i)).collect::<Vec<_>>())).collect()
}

/// The value at `t` of a sumcheck's round over these tables once the first variables are bound to `bound`: that of the next variable is t,
/// those behind it take all values.
pub fn sumcheck_value<F: Field>(tables: &[Vec<F>], bound: &[F], t: F) -> F {
    let bound = [bound, &[t]].concat();
    let tables: Vec<Vec<F>> = tables.iter().map(|table| multilinear_bound(table, &bound)).collect();
    (0..tables[0].len()).map(|i| tables.iter().map(|table| table[i]).product::<F>()).sum()
}

/// What stands in place t of a sumcheck's round ([`crate::sumcheck::RoundValues`]) over these tables once the first variables are bound to `bound`: the
/// value at t, or the leading coefficient, which is the d-th difference of the values at 0, 1, .. d over d!.
pub fn sumcheck_place<F: Field>(tables: &[Vec<F>], bound: &[F], t: usize) -> F {
    let at = |t: usize| sumcheck_value(tables, bound, F::from(t as u64));
    if t < 2 || t != tables.len() {
        return at(t);
    }
    let mut differences: Vec<F> = (0..=t).map(at).collect();
    for order in 1..=t {
        differences = differences.windows(2).map(|pair| (pair[1] - pair[0]) / F::from(order as u64)).collect();
    }
    differences[0]
}

/// k * P by doubling and adding.
pub fn multiple<G: Group>(point: &G::Point, k: Canonical) -> G::Ark {
    let point = G::to_ark(point);
    ark_ff::BigInt(k.0).to_bits_be().into_iter().fold(G::Ark::ZERO, |sum, bit| {
        let twice = sum + sum;
        if bit {
            twice + point
        } else {
            twice
        }
    })
}

/// The sum of k_i * P_i over pairs of points and scalars.
pub fn msm<G: Group>(points: &[G::Point], scalars: &[Canonical]) -> G::Ark {
    points.iter().zip(scalars).map(|(p, &k)| multiple::<G>(p, k)).fold(G::Ark::ZERO, |sum, p| sum + p)
}

/// The product of a matrix that passes [`SparseRows::check`] with `x`, made dense first.
pub fn spmv<C: Curve>(matrix: &SparseRows, x: &[C::Fr]) -> Vec<C::Fr> {
    let row = |i: usize| {
        let mut dense = vec![C::Fr::ZERO; matrix.columns];
        for e in matrix.starts[i] as usize..matrix.starts[i + 1] as usize {
            dense[matrix.column[e] as usize] += C::from_mont2(matrix.values[matrix.value[e] as usize]);
        }
        dense.iter().zip(x).map(|(a, x)| *a * x).sum()
    };
    (0..matrix.rows()).map(row).collect()
}

/// The integer below the modulus that the integer `x` is congruent to.
pub fn reduce<C: Curve>(x: [u64; 4]) -> Canonical {
    C::canonical(C::Fr::from_le_bytes_mod_order(bytemuck::bytes_of(&x)))
}

/// The Poseidon hash of `input`, which has as many elements as the arity says: every round as it is defined.
pub fn poseidon<F: PrimeField>(constants: &Constants<F>, input: &[F]) -> F {
    let mut state: Vec<F> = std::iter::once(constants.tag).chain(input.iter().copied()).collect();
    poseidon_permutation(constants, &mut state);
    state[constants.output]
}

/// The permutation of that hash.
pub fn poseidon_permutation<F: PrimeField>(constants: &Constants<F>, state: &mut Vec<F>) {
    let (half, partial) = (constants.params.full_rounds() / 2, constants.params.partial_rounds());
    for (round, add) in constants.rounds.iter().enumerate() {
        let full = round < half || round >= half + partial;
        for (i, (x, c)) in state.iter_mut().zip(add).enumerate() {
            *x += c;
            if full || i == 0 {
                *x = x.pow([5]);
            }
        }
        *state = constants.matrix.iter().map(|row| row.iter().zip(&*state).map(|(m, x)| *m * x).sum()).collect();
    }
}

/// The nodes of a Merkle tree from the leaves to the root. `leaves` is a power of the arity.
pub fn merkle<F: PrimeField>(constants: &Constants<F>, leaves: &[F]) -> Vec<Vec<F>> {
    let mut levels = vec![leaves.to_vec()];
    while levels[levels.len() - 1].len() > 1 {
        let children = levels[levels.len() - 1].chunks(constants.params.arity());
        levels.push(children.map(|children| poseidon(constants, children)).collect());
    }
    levels
}

/// The sum of floating-point numbers from the first to the last, with the rounding errors of all additions added in the end
/// (Neumaier's): off by 2^-53 of the result and n 2^-105 of the absolute values.
pub fn float_sum(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, lost) = numbers.into_iter().fold((0.0f64, 0.0), |(sum, lost), x| {
        let next = sum + x;
        let (large, small) = if sum.abs() >= x.abs() { (sum, x) } else { (x, sum) };
        (next, lost + ((large - next) + small))
    });
    sum + lost
}

/// The order of a stable sort: of which index the key at each place is. A key's place is the number of keys before it.
pub fn sort<K: Ord>(keys: &[K], descending: bool) -> Vec<usize> {
    let mut order = vec![0; keys.len()];
    for (i, key) in keys.iter().enumerate() {
        let before = |&j: &usize| match keys[j].cmp(key) {
            std::cmp::Ordering::Less => !descending,
            std::cmp::Ordering::Equal => j < i,
            std::cmp::Ordering::Greater => descending,
        };
        order[(0..keys.len()).filter(before).count()] = i;
    }
    order
}

/// What PLONK's gate with these columns a, b, c and selectors qm, ql, qr, qo, qc says.
pub fn gate_row<F: Field>([a, b, c]: [F; 3], [qm, ql, qr, qo, qc]: [F; 5]) -> F {
    qm * a * b + ql * a + qr * b + qo * c + qc
}

/// What a row gives to one side of PLONK's grand product.
pub fn permuted_row<F: Field>(columns: [F; 3], places: [F; 3], factors: [F; 3], gamma: F) -> F {
    (0..3).map(|j| columns[j] + factors[j] * places[j] + gamma).product()
}

/// A row of PLONK's quotient times the domain's polynomial, of the values in the order of [`crate::QuotientRows::vectors`] and of alpha, beta,
/// gamma, k1, k2 and the factor of l1 for the public values.
pub fn quotient_row<F: Field>(of: [F; 15], [alpha, beta, gamma, k1, k2, public]: [F; 6]) -> F {
    let [a, b, c, z, zw, qm, ql, qr, qo, qc, s1, s2, s3, x, first] = of;
    let (columns, selectors) = ([a, b, c], [qm, ql, qr, qo, qc]);
    let own = permuted_row(columns, [x; 3], [beta, beta * k1, beta * k2], gamma);
    let next = permuted_row(columns, [s1, s2, s3], [beta; 3], gamma);
    gate_row(columns, selectors)
        + public * first
        + alpha * (own * z - next * zw)
        + alpha.square() * (z - F::ONE) * first
}
