//! Keys in memory of a tau that is known, which forges proofs: for benches and tests, to which sums over powers of tau, values on larger
//! domains and files would take minutes. A commitment is a value at tau times the generator.

use crate::fflonk::{self, Fr as Fflonk};
use crate::gates::Gates;
use crate::key::{op, VerifyingKey};
use crate::setup::{sigma, OwnedKey, COSETS};
use crate::{PlonkBackend, Progress, Result, P1, P2};
use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::Field;
use tandem_ops::{memory, Bn254, Coset, Curve, Direction, Group, Lane, Mont, Ntt, Scan};
use tandem_proof::fixed_base::Table;

/// The coefficients of Qm, Ql, Qr, Qo, Qc, S1, S2 and S3, each with its value at a point.
struct Polynomials<C: Curve> {
    coefficients: Vec<Vec<Mont>>,
    values: Vec<C::Fr>,
}

impl<C: Curve> Polynomials<C> {
    /// Those of gates of which the last `fixed` rows hold no signal, valued at `x`.
    fn of<B: PlonkBackend<C>>(
        backend: &B,
        gates: &Gates<C>,
        fixed: usize,
        x: C::Fr,
        progress: &dyn Progress,
    ) -> Result<Self> {
        progress.start("polynomials", 8);
        let domain = gates.shape.domain;
        let mut all = Self { coefficients: Vec::with_capacity(8), values: Vec::with_capacity(8) };
        let mut rows = memory::filled("setup", domain, Mont::default())?;
        for number in 0..5 {
            rows.iter_mut().zip(&gates.gates).for_each(|(row, gate)| *row = C::mont(gate.selectors[number]));
            all.add(backend, &rows, x, progress)?;
        }
        for rows in sigma(gates, fixed)?.chunks(domain) {
            all.add(backend, rows, x, progress)?;
        }
        Ok(all)
    }

    /// The polynomial with these values on the domain.
    fn add<B: PlonkBackend<C>>(&mut self, backend: &B, rows: &[Mont], x: C::Fr, progress: &dyn Progress) -> Result<()> {
        if progress.cancelled() {
            return Err(crate::Error::Interrupted);
        }
        let mut polynomial = backend.upload(Lane(0), rows)?;
        Ntt::<C>::ntt(backend, &mut polynomial, op(Direction::Inverse, Coset::Subgroup))?;
        self.values.push(C::from_mont(Scan::<C>::evaluate(backend, &polynomial, C::mont(x))?.wait()?));
        self.coefficients.push(backend.download(&polynomial)?.wait()?);
        progress.advance(1);
        Ok(())
    }
}

/// So many powers of tau in G1.
fn powers<C: Curve>(tau: C::Fr, count: usize, progress: &dyn Progress) -> Result<Vec<P1<C>>> {
    progress.start("powers of tau", count as u64);
    let table = Table::<C::G1>::new(<C::G1 as Group>::Ark::generator(), count)?;
    let mut points = memory::reserve("setup", count)?;
    table.multiply(&crate::polynomial::powers(tau, count), progress, |piece| {
        points.extend_from_slice(piece);
        Ok(())
    })?;
    Ok(points)
}

/// So many times the generator of G1.
fn committed<C: Curve>(value: C::Fr) -> P1<C> {
    C::G1::from_ark(&(<C::G1 as Group>::Ark::generator() * value).into_affine())
}

fn in_g2<C: Curve>(tau: C::Fr) -> P2<C> {
    C::G2::from_ark(&(<C::G2 as Group>::Ark::generator() * tau).into_affine())
}

/// The signals in the columns of all gates.
fn maps<C: Curve>(gates: &Gates<C>) -> [Vec<u32>; 3] {
    [0, 1, 2].map(|column| gates.gates.iter().map(|gate| gate.signals[column]).collect())
}

/// The PLONK key of `gates` that [`crate::setup::setup`] makes with the powers of this `tau`, which is no row of the domain.
///
/// # Errors
/// [`crate::Error::Interrupted`]; [`crate::Error::Backend`] where there is not enough memory.
pub fn plonk<C: Curve, B: PlonkBackend<C>>(
    backend: &B,
    gates: Gates<C>,
    tau: C::Fr,
    progress: &dyn Progress,
) -> Result<OwnedKey<C>> {
    let shape = gates.shape;
    let Polynomials { mut coefficients, values } = Polynomials::of(backend, &gates, 0, tau, progress)?;
    let commitments: Vec<P1<C>> = values.into_iter().map(committed::<C>).collect();
    let mut next = || coefficients.remove(0);
    let selectors = [next(), next(), next(), next(), next()];
    let permutation = [next(), next(), next()];
    let maps = maps(&gates);
    let verifying = VerifyingKey {
        publics: shape.publics,
        domain: shape.domain,
        k: COSETS.map(C::Fr::from),
        selectors: std::array::from_fn(|i| commitments[i]),
        permutation: std::array::from_fn(|i| commitments[5 + i]),
        x_2: in_g2::<C>(tau),
    };
    let powers = powers::<C>(tau, shape.powers(), progress)?;
    Ok(OwnedKey::of(shape, verifying, (gates.additions, maps), (selectors, permutation), powers))
}

/// The FFLONK key of `gates` ([`Gates::of_fflonk`]) that [`fflonk::setup`] makes with the powers of this `tau`, of which neither the third
/// power nor the fourth is a row of the domain.
///
/// # Errors
/// As [`plonk`].
pub fn fflonk<B: PlonkBackend<Bn254>>(
    backend: &B,
    gates: Gates<Bn254>,
    tau: Fflonk,
    progress: &dyn Progress,
) -> Result<fflonk::OwnedKey> {
    let shape = gates.shape;
    let Polynomials { coefficients, values } =
        Polynomials::of(backend, &gates, fflonk::BLINDED_ROWS, tau.pow([8]), progress)?;
    let mut c0 = memory::filled("setup", 8 * shape.domain, Mont::default())?;
    let mut value = Fflonk::from(0_u64);
    for ((place, coefficients), own) in fflonk::PLACES.into_iter().zip(coefficients).zip(values) {
        c0.iter_mut().skip(place).step_by(8).zip(coefficients).for_each(|(to, c)| *to = c);
        value += own * tau.pow([place as u64]);
    }
    let maps = maps(&gates);
    let verifying = fflonk::VerifyingKey {
        publics: shape.publics,
        domain: shape.domain,
        k: COSETS.map(Fflonk::from),
        x_2: in_g2::<Bn254>(tau),
        c0: committed::<Bn254>(value),
    };
    let powers = powers::<Bn254>(tau, fflonk::powers(shape.domain), progress)?;
    Ok(fflonk::OwnedKey { shape, verifying, additions: gates.additions, maps, c0, powers })
}
