//! Powers of tau for tests, whose secret is known.

use crate::{Error, Progress, Result};
use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::{AdditiveGroup, Field, UniformRand};
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha20Rng;
use std::path::Path;
use tandem_formats::ptau::PtauSection;
use tandem_formats::{output, Output, PtauWriter};
use tandem_groth16::Error as Fault;
use tandem_ops::cpu::Cpu;
use tandem_ops::{
    memory, with_curve, Backend, Coset, Curve, CurveId, Direction, Group, Lane, Mont, Ntt, NttOp, Order, Wire,
};
use tandem_proof::fixed_base::Table;

use crate::files::write_error;

/// Powers that test files have.
pub const TEST_POWERS: std::ops::RangeInclusive<u32> = 1..=27;

/// The text that the secret is drawn from where nobody says another.
const SEED: &str = "the secret of these powers of tau is known";

/// Writes powers of tau of 2^`power` rows, prepared for phase 2, whole or not at all. **Their secret is known** to whoever knows `seed`, and
/// to everybody where it is `None`: proofs for keys made with them can be forged. For tests and benches.
///
/// # Errors
/// [`Error::BadInput`] for a power out of range, or a file that cannot be written; [`Error::OutOfMemory`]; [`Error::Interrupted`].
pub fn test_ptau(curve: CurveId, power: u32, seed: Option<&str>, to: &Path, progress: &dyn Progress) -> Result<u64> {
    tandem_ops::threads::ready()?;
    if !TEST_POWERS.contains(&power) {
        let (least, most) = (TEST_POWERS.start(), TEST_POWERS.end());
        return Err(Error::input(format!("powers of tau of 2^{power} rows: expected 2^{least} to 2^{most}")));
    }
    let seed = blake3::derive_key("tandem test powers of tau", seed.unwrap_or(SEED).as_bytes());
    with_curve!(curve, C => write::<C>(power, seed, to, progress))
}

fn write<C: Curve>(power: u32, seed: [u8; 32], to: &Path, progress: &dyn Progress) -> Result<u64> {
    let failed = |e| match e {
        Fault::Output(why) => Error::input(format!("{}: {why}", to.display())),
        other => Error::prover(other, to),
    };
    let output = Output::create(to)?;
    let mut writer = PtauWriter::<Output, C>::new(output, power).map_err(|e| failed(write_error(e)))?;
    points::<C>(power, seed, &mut writer, progress).map_err(failed)?;
    let output = writer.finish().map_err(|e| failed(write_error(e)))?;
    let bytes = output.written();
    output::commit([output])?;
    Ok(bytes)
}

/// All sections of points.
fn points<C: Curve>(
    power: u32,
    seed: [u8; 32],
    writer: &mut PtauWriter<Output, C>,
    progress: &dyn Progress,
) -> tandem_groth16::Result<()> {
    let mut rng = ChaCha20Rng::from_seed(seed);
    let [tau, alpha, beta] = [(); 3].map(|()| C::Fr::rand(&mut rng));
    let (n, cpu) = (1usize << power, Cpu::new(1));
    // The last power has no point, and counts as zero in the basis of twice as many rows.
    let mut powers = memory::reserve("powers of tau", 2 * n)?;
    let mut next = C::Fr::ONE;
    for _ in 0..2 * n - 1 {
        powers.push(next);
        next *= tau;
    }
    powers.push(C::Fr::ZERO);
    let bases = |levels: u32| -> tandem_groth16::Result<Vec<C::Fr>> {
        let mut all = memory::reserve("powers of tau", 2usize << levels)?;
        for level in 0..=levels {
            all.extend(lagrange::<C>(&cpu, &powers[..1 << level])?);
        }
        Ok(all)
    };
    let (of_powers, of_more) = (bases(power)?, bases(power + 1)?);
    let g1 = Table::<C::G1>::new(<C::G1 as Group>::Ark::generator(), 12 * n)?;
    let g2 = Table::<C::G2>::new(<C::G2 as Group>::Ark::generator(), 3 * n)?;
    let beta_2 = C::G2::from_ark(&(<C::G2 as Group>::Ark::generator() * beta).into_affine());
    let one = C::Fr::ONE;
    for (section, scalars, factor) in [
        (PtauSection::TauG1, &powers[..2 * n - 1], one),
        (PtauSection::TauG2, &powers[..n], one),
        (PtauSection::AlphaTauG1, &powers[..n], alpha),
        (PtauSection::BetaTauG1, &powers[..n], beta),
        (PtauSection::BetaG2, &[][..], one),
        (PtauSection::LagrangeG1, &of_more, one),
        (PtauSection::LagrangeG2, &of_powers, one),
        (PtauSection::LagrangeAlpha, &of_powers, alpha),
        (PtauSection::LagrangeBeta, &of_powers, beta),
    ] {
        progress.start("powers of tau", scalars.len() as u64);
        writer.section(section).map_err(write_error)?;
        match section {
            PtauSection::BetaG2 => writer.points(&[beta_2]).map_err(write_error)?,
            PtauSection::TauG2 | PtauSection::LagrangeG2 => multiply(&g2, scalars, factor, writer, progress)?,
            _ => multiply(&g1, scalars, factor, writer, progress)?,
        }
    }
    Ok(())
}

fn multiply<C: Curve, G: Group<Curve = C>>(
    table: &Table<G>,
    scalars: &[C::Fr],
    factor: C::Fr,
    writer: &mut PtauWriter<Output, C>,
    progress: &dyn Progress,
) -> tandem_groth16::Result<()>
where
    G::Point: Wire,
{
    for piece in scalars.chunks(1 << 20) {
        let scaled: Vec<C::Fr> = piece.iter().map(|scalar| *scalar * factor).collect();
        table.multiply(&scaled, progress, |points| writer.points(points).map_err(write_error))?;
    }
    Ok(())
}

/// The Lagrange basis at tau, from the powers of tau: an inverse transform.
fn lagrange<C: Curve>(cpu: &Cpu, powers: &[C::Fr]) -> tandem_groth16::Result<Vec<C::Fr>> {
    let wire: Vec<Mont> = powers.iter().map(|x| C::mont(*x)).collect();
    let mut values = cpu.upload(Lane(0), &wire)?;
    let (direction, coset) = (Direction::Inverse, Coset::Subgroup);
    Ntt::<C>::ntt(cpu, &mut values, NttOp { direction, coset, input: Order::Natural, output: Order::Natural })?;
    Ok(values.as_slice().iter().map(|x| C::from_mont(*x)).collect())
}
