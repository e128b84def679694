//! Inputs: random, with the values that go wrong first, from fixed seeds.

use ark_ec::{AdditiveGroup, CurveGroup, PrimeGroup};
use ark_ff::{Field, UniformRand};
use rand_chacha::{rand_core::RngCore, rand_core::SeedableRng, ChaCha8Rng};
use tandem_ops::{Canonical, Curve, Group, NttField};

pub(crate) fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// `n` elements, random but for 0, 1 and -1 in some places.
pub(crate) fn elements<F: NttField>(n: usize, rng: &mut ChaCha8Rng) -> Vec<F::Ark> {
    (0..n)
        .map(|i| match i % 13 {
            3 => F::Ark::ZERO,
            5 => F::Ark::ONE,
            7 => -F::Ark::ONE,
            _ => F::Ark::rand(rng),
        })
        .collect()
}

pub(crate) fn wire<F: NttField>(x: &[F::Ark]) -> Vec<F::Element> {
    x.iter().map(|&x| F::element(x)).collect()
}

pub(crate) fn canonical<C: Curve>(x: &[C::Fr]) -> Vec<Canonical> {
    x.iter().map(|&x| C::canonical(x)).collect()
}

/// Distributions of scalars.
pub(crate) const SCALARS: [&str; 14] = [
    "random",
    "zero",
    "one",
    "-1",
    "equal",
    "one bucket",
    "99% zero",
    "two values",
    "small",
    "small of both signs",
    "about r/2",
    "one window",
    "powers of two",
    "like a witness",
];

/// `n` scalars of the distribution with this name.
pub(crate) fn scalars<C: Curve>(name: &str, n: usize, rng: &mut ChaCha8Rng) -> Vec<C::Fr> {
    let two = C::Fr::from(2u64);
    let half = two.inverse().unwrap_or(C::Fr::ZERO);
    let any = [C::Fr::rand(rng), C::Fr::rand(rng)];
    let scalar = |i: usize| match name {
        "random" => C::Fr::rand(rng),
        "zero" => C::Fr::ZERO,
        "one" => C::Fr::ONE,
        "-1" => -C::Fr::ONE,
        "equal" => any[0],
        "one bucket" => C::Fr::from(7u64),
        "99% zero" if !i.is_multiple_of(100) => C::Fr::ZERO,
        "99% zero" => C::Fr::rand(rng),
        "two values" => any[i % 2],
        "small" => C::Fr::from(u64::from(rng.next_u32() % (1 << 16))),
        "small of both signs" => C::Fr::from(u64::from(rng.next_u32() % 100)) - C::Fr::from(50u64),
        "about r/2" => half + C::Fr::from(u64::from(rng.next_u32() % 4)) - two,
        "one window" => C::Fr::from(u64::from(rng.next_u32() % 256)) * two.pow([120]),
        "powers of two" => two.pow([i as u64 % 256]),
        "like a witness" => match rng.next_u32() % 16 {
            0 => C::Fr::rand(rng),
            1 => C::Fr::from(u64::from(rng.next_u32())),
            bit => C::Fr::from(u64::from(bit % 2)),
        },
        other => unreachable!("no distribution of the name {other}"),
    };
    (0..n).map(scalar).collect()
}

/// Sequences of points.
pub(crate) const POINTS: [&str; 7] =
    ["different", "equal", "opposites", "few distinct", "with infinities", "generator", "infinity"];

/// `n` points of the sequence with this name, and their logarithms to the base of the generator: a sum of any size is
/// then checked by one multiplication.
pub(crate) fn points<G: Group>(name: &str, n: usize, rng: &mut ChaCha8Rng) -> (Vec<G::Point>, Vec<Fr<G>>) {
    let generator = G::Ark::generator();
    let (mut log, step) = (Fr::<G>::rand(rng), Fr::<G>::rand(rng));
    let (mut point, step_point) = (generator * log, generator * step);
    let (mut points, mut logs) = (Vec::with_capacity(n), Vec::with_capacity(n));
    for i in 0..n {
        let (l, p) = match name {
            "different" | "equal" => (log, point),
            "opposites" if i % 2 == 1 => (-log, -point),
            "opposites" => (log, point),
            // A point, its double, their opposites and infinity: of the sums of some, too, many are equal or opposite.
            "few distinct" => {
                let k = Fr::<G>::from(u64::from(rng.next_u32() % 5)) - Fr::<G>::from(2u64);
                (log * k, point * k)
            }
            "with infinities" if i % 3 == 1 => (Fr::<G>::ZERO, G::Ark::ZERO),
            "with infinities" => (log, point),
            "generator" => (Fr::<G>::ONE, generator),
            "infinity" => (Fr::<G>::ZERO, G::Ark::ZERO),
            other => unreachable!("no sequence of the name {other}"),
        };
        logs.push(l);
        points.push(p);
        // Opposites come in pairs of the same point.
        let stays = name == "equal" || name == "few distinct" || (name == "opposites" && i % 2 == 0);
        if !stays {
            log += step;
            point += step_point;
        }
    }
    (G::Ark::normalize_batch(&points).iter().map(G::from_ark).collect(), logs)
}

pub(crate) type Fr<G> = <<G as Group>::Curve as Curve>::Fr;
