//! Lagrange points for measurements: of powers of a tau that is known, so that one result is checked before anything is timed.

use super::random;
use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::{Field, PrimeField};
use std::ops::RangeInclusive;
use std::time::Instant;
use tandem_engine::gpus::{self, Opened};
use tandem_engine::{CurveId, DeviceChoice, DeviceReport, Error, Progress, Result};
use tandem_ops::{memory, with_curve, Curve, Group, Lane, PointNtt};
use tandem_proof::fixed_base::Table;

/// Sizes that a measurement may ask for.
pub(crate) const LOG_SIZES: RangeInclusive<u32> = 0..=26;
/// Points of a result that are compared with their definition.
const CHECKED: usize = 16;

type P1<C> = <<C as Curve>::G1 as Group>::Point;

/// What computes.
pub(crate) struct Lagrange {
    on: Opened,
    report: DeviceReport,
}

impl Lagrange {
    /// Opens the first lane of `choice`.
    ///
    /// # Errors
    /// As [`tandem_engine::Engine::open`].
    pub(crate) fn open(choice: &DeviceChoice) -> Result<Self> {
        let (on, why) = gpus::open(choice, 1)?;
        let report = on.report(why);
        Ok(Lagrange { on, report })
    }

    /// What was opened.
    pub(crate) fn report(&self) -> &DeviceReport {
        &self.report
    }

    /// Seconds that each of `runs` took with n points, which lie on the lane before and after, after one to warm up.
    ///
    /// # Errors
    /// Not enough memory; a result is wrong.
    pub(crate) fn bench(&self, curve: CurveId, n: usize, runs: usize, progress: &dyn Progress) -> Result<Vec<f64>> {
        match &self.on {
            Opened::Cpu(cpu) => with_curve!(curve, C => bench_on::<C, _>(cpu, n, runs, progress)),
            Opened::Cuda(cuda) => with_curve!(curve, C => bench_on::<C, _>(cuda, n, runs, progress)),
        }
    }
}

fn bench_on<C: Curve, B: PointNtt<C>>(backend: &B, n: usize, runs: usize, progress: &dyn Progress) -> Result<Vec<f64>> {
    let mut drawn = [0; 64];
    random::fill(&mut drawn, |_| {});
    let tau = C::Fr::from_le_bytes_mod_order(&drawn);
    let powers = backend.upload(Lane(0), &powers_of::<C>(tau, n, progress).map_err(failed)?)?;
    let mut seconds = Vec::with_capacity(runs);
    for run in 0..=runs {
        let mut points = backend.copy(&powers, 0..n, Lane(0))?;
        backend.synchronize()?;
        let started = Instant::now();
        backend.lagrange_points(&mut points)?;
        backend.synchronize()?;
        match run {
            0 => check::<C>(&backend.download(&points)?.wait()?, tau)?,
            _ => seconds.push(started.elapsed().as_secs_f64()),
        }
    }
    Ok(seconds)
}

/// The generator times the first n powers of tau.
fn powers_of<C: Curve>(tau: C::Fr, n: usize, progress: &dyn Progress) -> tandem_proof::Result<Vec<P1<C>>> {
    let scalars: Vec<C::Fr> = std::iter::successors(Some(C::Fr::ONE), |power| Some(*power * tau)).take(n).collect();
    let mut points = memory::reserve("powers of tau", n)?;
    let table = Table::<C::G1>::new(<C::G1 as Group>::Ark::generator(), n)?;
    table.multiply(&scalars, progress, |piece| {
        points.extend_from_slice(piece);
        Ok(())
    })?;
    Ok(points)
}

fn failed(error: tandem_proof::Error) -> Error {
    match error {
        tandem_proof::Error::Backend(error) => error.into(),
        tandem_proof::Error::Interrupted => Error::Interrupted,
        error => Error::Device(error.to_string()),
    }
}

/// Some points beside L_j(tau) = (tau^n - 1) w^j / (n (tau - w^j)) times the generator.
fn check<C: Curve>(points: &[P1<C>], tau: C::Fr) -> Result<()> {
    let n = points.len();
    let root = C::root_of_unity(n.ilog2()).unwrap_or(C::Fr::ONE);
    for j in (0..n).step_by((n / CHECKED).max(1)).chain([n - 1]) {
        let at = root.pow([j as u64]);
        let below = (C::Fr::from(n as u64) * (tau - at)).inverse().unwrap_or(C::Fr::ONE);
        let value = (tau.pow([n as u64]) - C::Fr::ONE) * at * below;
        let expected = (<C::G1 as Group>::Ark::generator() * value).into_affine();
        if points[j] != C::G1::from_ark(&expected) {
            return Err(Error::Device(format!("point {j} of {n} Lagrange points is wrong: nothing to measure")));
        }
    }
    Ok(())
}
