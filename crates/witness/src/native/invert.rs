//! Inverses modulo a prime, by division steps: D. J. Bernstein and B.-Y. Yang, Fast constant-time gcd computation and modular inversion
//! (2019), as libsecp256k1 does it in variable time (`doc/safegcd_implementation.md`).
//!
//! ```text
//! f odd, g, and eta         eta < 0 and g odd:  (eta, f, g) <- (-eta - 1, g, (g - f) / 2)
//!                           else:               (eta, f, g) <- (eta - 1, f, (g + (g mod 2) f) / 2)
//! ```
//!
//! The steps look at the lowest bits of `f` and `g` alone. So 62 of them are found on single words, as a matrix, and then done at once. Beside
//! `f` and `g` go `d` and `e`, with `d x = f` and `e x = g` modulo the prime.

use super::field::{Field, Limbs};

/// An integer as five words of 62 bits, the highest with its sign.
type Words = [i64; 5];

const BITS: usize = 62;
const MASK: u64 = u64::MAX >> 2;

/// 62 steps, times 2^62: `f <- (u f + v g) / 2^62`, `g <- (q f + r g) / 2^62`.
struct Steps {
    u: i64,
    v: i64,
    q: i64,
    r: i64,
}

impl Field {
    /// `1 / x` of a number that is not in Montgomery's form; 0 of what is 0 modulo the prime.
    pub(crate) fn invert(&self, x: Limbs) -> Limbs {
        let prime = words(self.prime);
        let (mut f, mut g) = (prime, words(x));
        let (mut d, mut e) = ([0; 5], [1, 0, 0, 0, 0]);
        let (mut eta, mut length) = (-1, 5);
        while g[..length].iter().any(|&word| word != 0) {
            let steps = steps(&mut eta, f[0] as u64, g[0] as u64);
            self.step_modulo(&prime, &steps, &mut d, &mut e);
            step(&steps, &mut f[..length], &mut g[..length]);
            length = shortened(&mut f, &mut g, length);
        }
        while length > shortened(&mut f, &mut g, length) {
            length -= 1;
        }
        // What is left of `f` is the greatest common divisor, or its negative.
        match (length, f[0]) {
            (1, 1 | -1) => self.value(d, f[0] < 0),
            _ => [0; 4],
        }
    }

    /// The steps for `d` and `e`, both between -2 primes and 1, modulo the prime: a multiple of it makes the lowest 62 bits 0.
    fn step_modulo(&self, prime: &Words, steps: &Steps, d: &mut Words, e: &mut Words) {
        let Steps { u, v, q, r } = *steps;
        let (of_d, of_e) = (d[4] >> 63, e[4] >> 63);
        let mut times_d = (u & of_d) + (v & of_e);
        let mut times_e = (q & of_d) + (r & of_e);
        let (mut carry_d, mut carry_e) = (two(u, d[0], v, e[0]), two(q, d[0], r, e[0]));
        // The prime's inverse modulo 2^62 is the other sign of what the field has.
        let inverse = self.inverse().wrapping_neg();
        let least =
            |carry: i128, times: i64| (inverse.wrapping_mul(carry as u64).wrapping_add(times as u64) & MASK) as i64;
        times_d -= least(carry_d, times_d);
        times_e -= least(carry_e, times_e);
        carry_d = (carry_d + product(prime[0], times_d)) >> BITS;
        carry_e = (carry_e + product(prime[0], times_e)) >> BITS;
        for i in 1..5 {
            carry_d += two(u, d[i], v, e[i]) + product(prime[i], times_d);
            carry_e += two(q, d[i], r, e[i]) + product(prime[i], times_e);
            (d[i - 1], e[i - 1]) = ((carry_d as u64 & MASK) as i64, (carry_e as u64 & MASK) as i64);
            (carry_d, carry_e) = (carry_d >> BITS, carry_e >> BITS);
        }
        (d[4], e[4]) = (carry_d as i64, carry_e as i64);
    }

    /// A number between -2 primes and 1, or its negative, as it is in the field.
    fn value(&self, number: Words, is_negated: bool) -> Limbs {
        let [a, b, c, d, e] = number.map(|word| word as u64);
        // Modulo 2^256; the sign is that of the highest word.
        let limbs = [a | b << 62, b >> 2 | c << 60, c >> 4 | d << 58, d >> 6 | e << 56];
        let raised = (0..2).fold((limbs, number[4] < 0), |(limbs, is_negative), _| match is_negative {
            true => {
                let (sum, has_carry) = super::field::add(limbs, self.prime);
                (sum, !has_carry)
            }
            false => (limbs, false),
        });
        match is_negated {
            true => self.neg(raised.0),
            false => raised.0,
        }
    }
}

fn product(a: i64, b: i64) -> i128 {
    i128::from(a) * i128::from(b)
}

fn two(a: i64, x: i64, b: i64, y: i64) -> i128 {
    product(a, x) + product(b, y)
}

fn words(x: Limbs) -> Words {
    let [a, b, c, d] = x;
    [a, a >> 62 | b << 2, b >> 60 | c << 4, c >> 58 | d << 6, d >> 56].map(|word| (word & MASK) as i64)
}

/// 62 steps from the lowest words.
fn steps(eta: &mut i64, f: u64, g: u64) -> Steps {
    let (mut f, mut g) = (f, g);
    let (mut u, mut v, mut q, mut r) = (1u64, 0u64, 0u64, 1u64);
    let mut left = BITS as i64;
    loop {
        let zeros = (g | u64::MAX << left).trailing_zeros();
        (g, u, v) = (g >> zeros, u << zeros, v << zeros);
        (*eta, left) = (*eta - i64::from(zeros), left - i64::from(zeros));
        if left == 0 {
            return Steps { u: u as i64, v: v as i64, q: q as i64, r: r as i64 };
        }
        let is_swapped = *eta < 0;
        if is_swapped {
            *eta = -*eta;
            (f, g) = (g, f.wrapping_neg());
            (u, q) = (q, u.wrapping_neg());
            (v, r) = (r, v.wrapping_neg());
        }
        // As many steps at once as leave `eta` at least 0: the multiple of `f` by which that many bits of `g` become 0. An inverse of `-f` is
        // right for 6 bits, or for 4 in fewer operations.
        let limit = (*eta + 1).min(left);
        let bits = u64::MAX >> (64 - limit);
        let times = match is_swapped {
            true => f.wrapping_mul(g).wrapping_mul(f.wrapping_mul(f).wrapping_sub(2)) & bits & 63,
            false => f.wrapping_add((f.wrapping_add(1) & 4) << 1).wrapping_neg().wrapping_mul(g) & bits & 15,
        };
        g = g.wrapping_add(f.wrapping_mul(times));
        q = q.wrapping_add(u.wrapping_mul(times));
        r = r.wrapping_add(v.wrapping_mul(times));
    }
}

/// The steps for `f` and `g`.
fn step(steps: &Steps, f: &mut [i64], g: &mut [i64]) {
    let Steps { u, v, q, r } = *steps;
    let (mut carry_f, mut carry_g) = (two(u, f[0], v, g[0]) >> BITS, two(q, f[0], r, g[0]) >> BITS);
    for i in 1..f.len() {
        carry_f += two(u, f[i], v, g[i]);
        carry_g += two(q, f[i], r, g[i]);
        (f[i - 1], g[i - 1]) = ((carry_f as u64 & MASK) as i64, (carry_g as u64 & MASK) as i64);
        (carry_f, carry_g) = (carry_f >> BITS, carry_g >> BITS);
    }
    let last = f.len() - 1;
    (f[last], g[last]) = (carry_f as i64, carry_g as i64);
}

/// The highest words are dropped where they are nothing but a sign.
fn shortened(f: &mut Words, g: &mut Words, length: usize) -> usize {
    let last = length - 1;
    let is_sign = |word: i64| word == word >> 63;
    if length == 1 || !is_sign(f[last]) || !is_sign(g[last]) {
        return length;
    }
    f[last - 1] |= ((f[last] as u64) << BITS) as i64;
    g[last - 1] |= ((g[last] as u64) << BITS) as i64;
    last
}
