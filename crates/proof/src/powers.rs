//! Whether powers of tau are what they must be.

use crate::points::check_finite;
use crate::{Error, Progress, Result};
use ark_ec::pairing::Pairing;
use ark_ec::{AffineRepr, CurveGroup, PrimeGroup};
use ark_ff::{AdditiveGroup, Zero};
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha12Rng;
use rayon::prelude::*;
use std::ops::Range;
use tandem_ops::cpu::Cpu;
use tandem_ops::{memory, Canonical, Curve, Group, SplitMsm, Stored, Wire};

type P1<C> = <<C as Curve>::G1 as Group>::Point;
type P2<C> = <<C as Curve>::G2 as Group>::Point;

/// Checks powers of tau: that each is a point of its group, that the first is the generator, that they are the powers of the tau in G2,
/// by sums with random factors of 128 bits, and that tau is no row of the domain. There are more powers than the domain has rows.
///
/// # Errors
/// [`Error::Key`] that names the point; [`Error::Interrupted`]; [`Error::Backend`] where there is not enough memory.
pub fn check_powers<C: Curve>(
    powers: Stored<'_, P1<C>>,
    x_2: &P2<C>,
    domain: usize,
    progress: &dyn Progress,
) -> Result<()> {
    let count = powers.len();
    progress.start("check points", count as u64);
    check_finite::<C::G2>(x_2).map_err(|fault| Error::Key(format!("the power 1 of tau in G2 {fault}")))?;
    if count <= domain || count < 2 {
        return Err(Error::Key(format!("{count} powers of tau for a domain of {domain} rows")));
    }
    let check = |chunk: usize| check_chunk::<C>(powers, chunk * CHUNK..count.min((chunk + 1) * CHUNK), progress);
    let chunks: Vec<Result<()>> = (0..count.div_ceil(CHUNK)).into_par_iter().map(check).collect();
    chunks.into_iter().collect::<Result<()>>()?;
    let generator = <C::G1 as Group>::Ark::generator();
    let first = power(powers, 0)?;
    if C::G1::to_ark(&first).into_group() != generator {
        return Err(Error::Key("the power 0 of tau is not the generator of the group".into()));
    }
    if power(powers, domain)? == first {
        return Err(Error::Key("tau is a row of the domain: proofs would show values of their witness".into()));
    }
    let sums = combinations::<C>(powers, progress)?;
    let g2 = <C::G2 as Group>::Ark::generator().into_affine();
    // sum r_i tau^(i+1) in G1 and tau times sum r_i tau^i
    let product =
        C::Pairing::multi_pairing([(-sums[1]).into_affine(), sums[0].into_affine()], [g2, C::G2::to_ark(x_2)]);
    if !product.is_zero() {
        return Err(Error::Key("the powers of tau are not those of one tau, the one in G2".into()));
    }
    Ok(())
}

/// Points that a thread reads at a time: a few blocks of a file.
const CHUNK: usize = 1 << 15;

/// Checks that the points of a range are finite ones of the group.
fn check_chunk<C: Curve>(powers: Stored<'_, P1<C>>, range: Range<usize>, progress: &dyn Progress) -> Result<()> {
    /// Points between two looks at whether the caller wants to stop.
    const LOOK: usize = 1 << 12;
    if progress.cancelled() {
        return Err(Error::Interrupted);
    }
    let points = powers.slice(range.clone()).load()?;
    for (number, point) in points.values().iter().enumerate() {
        if number % LOOK == 0 && progress.cancelled() {
            return Err(Error::Interrupted);
        }
        let power = range.start + number;
        check_finite::<C::G1>(&point).map_err(|fault| Error::Key(format!("the power {power} of tau {fault}")))?;
    }
    progress.advance(range.len() as u64);
    Ok(())
}

/// The power of this number.
///
/// # Errors
/// [`Error::Backend`] where it cannot be read.
pub fn power<P: Wire>(powers: Stored<'_, P>, number: usize) -> Result<P> {
    Ok(powers.slice(number..number + 1).load()?.values().get(0))
}

/// Sums of all powers but the last and of all but the first, with the same random factors. Both are made part by part, so that no more than
/// a part of the powers is in memory.
fn combinations<C: Curve>(powers: Stored<'_, P1<C>>, progress: &dyn Progress) -> Result<[<C::G1 as Group>::Ark; 2]> {
    /// Powers of a part: where sums are longer, they take little less for each.
    const PART: usize = 1 << 20;
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|e| Error::Random(e.to_string()))?;
    let mut rng = ChaCha12Rng::from_seed(seed);
    let count = powers.len() - 1;
    let cpu = Cpu::new(1);
    let mut sums = [<C::G1 as Group>::Ark::ZERO; 2];
    for start in (0..count).step_by(PART) {
        if progress.cancelled() {
            return Err(Error::Interrupted);
        }
        let part = PART.min(count - start);
        let mut factors = memory::reserve("check points", part)?;
        factors.extend((0..part).map(|_| Canonical([rng.next_u64(), rng.next_u64(), 0, 0])));
        for (sum, first) in sums.iter_mut().zip([start, start + 1]) {
            let split = SplitMsm::<C::G1, _>::load(&cpu, 1, powers.slice(first..first + part), 1)?;
            let factors = split.upload(&cpu, &factors)?;
            *sum += split.sum(&cpu, &factors)?.wait()?;
        }
    }
    Ok(sums)
}
