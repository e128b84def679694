//! What the first phase of a ceremony gives to a key.

use crate::{Error, Progress, Result, P1, P2};
use ark_ec::pairing::Pairing;
use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::{AdditiveGroup, Field, UniformRand, Zero};
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;
use tandem_ops::cpu::Cpu;
use tandem_ops::{Canonical, Curve, Group, SplitMsm};
use tandem_proof::points::check_finite;
use tandem_proof::powers::check_powers;

type Ark1<C> = <<C as Curve>::G1 as Group>::Ark;
type Ark2<C> = <<C as Curve>::G2 as Group>::Ark;

/// Powers of tau, prepared for phase 2: points of a secret tau, alpha and beta. L_i are the Lagrange polynomials of a domain of n rows.
pub struct Phase1<C: Curve> {
    /// tau^i in G1, for i below 2n - 1.
    pub powers_g1: Vec<P1<C>>,
    /// tau in G2.
    pub tau_g2: P2<C>,
    /// alpha in G1.
    pub alpha_g1: P1<C>,
    /// beta in G1.
    pub beta_g1: P1<C>,
    /// beta in G2.
    pub beta_g2: P2<C>,
    /// L_i(tau) in G1, n of them, as of all bases below.
    pub lagrange_g1: Vec<P1<C>>,
    /// L_i(tau) in G2.
    pub lagrange_g2: Vec<P2<C>>,
    /// alpha L_i(tau) in G1.
    pub lagrange_alpha: Vec<P1<C>>,
    /// beta L_i(tau) in G1.
    pub lagrange_beta: Vec<P1<C>>,
    /// The Lagrange polynomials of the doubled domain at its odd rows, at tau, in G1.
    pub odd: Vec<P1<C>>,
    /// The bytes of a point behind these powers in their file, whatever they are: snarkjs hashes them with the powers.
    pub behind: Option<Vec<u8>>,
}

impl<C: Curve> Phase1<C> {
    /// The rows of the domain.
    pub fn domain(&self) -> usize {
        self.lagrange_g1.len()
    }

    /// Checks that all of it is of one tau, alpha and beta. Each point is looked at, and that bases are those of the powers follows from sums
    /// with the values of one random polynomial: the sum of p(w^i) L_i(tau) is p(tau), a sum of powers.
    ///
    /// # Errors
    /// [`Error::Key`] that names what is wrong; [`Error::Interrupted`]; [`Error::Backend`] where there is not enough memory.
    pub fn check(&self, progress: &dyn Progress) -> Result<()> {
        let n = self.domain();
        let (powers, bases) = (self.powers_g1.len(), [&self.lagrange_alpha, &self.lagrange_beta, &self.odd]);
        if powers != 2 * n - 1 || self.lagrange_g2.len() != n || bases.iter().any(|basis| basis.len() != n) {
            return Err(Error::Key(format!("{powers} powers of tau and bases of different lengths for {n} rows")));
        }
        check_powers::<C>(self.powers_g1.as_slice().into(), &self.tau_g2, n, progress)?;
        progress.start("check points", 5 * n as u64);
        let single = |name: &str, fault: std::result::Result<(), tandem_proof::points::Fault>| {
            fault.map_err(|fault| Error::Key(format!("{name} {fault}")))
        };
        single("alpha in G1", check_finite::<C::G1>(&self.alpha_g1))?;
        single("beta in G1", check_finite::<C::G1>(&self.beta_g1))?;
        single("beta in G2", check_finite::<C::G2>(&self.beta_g2))?;
        each::<C::G1>("Lagrange basis in G1", &self.lagrange_g1, progress)?;
        each::<C::G2>("Lagrange basis in G2", &self.lagrange_g2, progress)?;
        each::<C::G1>("Lagrange basis times alpha", &self.lagrange_alpha, progress)?;
        each::<C::G1>("Lagrange basis times beta", &self.lagrange_beta, progress)?;
        each::<C::G1>("Lagrange basis of the doubled domain", &self.odd, progress)?;
        self.check_bases()
    }

    fn check_bases(&self) -> Result<()> {
        let n = self.domain();
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|e| Error::Random(e.to_string()))?;
        // p(X) = 1 + s X + (s X)^2 + ... of n terms: one random value makes all coefficients.
        let s = C::Fr::rand(&mut ChaCha20Rng::from_seed(seed));
        let coefficients = geometric(s, n);
        let values = evaluate::<C>(&coefficients, C::Fr::ONE, n)?;
        let (g1, g2) = (Ark1::<C>::generator().into_affine(), Ark2::<C>::generator().into_affine());
        let of = |basis: &[P1<C>]| sum::<C, C::G1>(basis, &values);
        let wrong = |name: &str| Error::Key(format!("{name} is not that of the powers of tau"));
        let at_tau = of(&self.lagrange_g1)?;
        if at_tau != sum::<C, C::G1>(&self.powers_g1[..n], &coefficients)? {
            return Err(wrong("the Lagrange basis in G1"));
        }
        let in_g2 = sum::<C, C::G2>(&self.lagrange_g2, &values)?.into_affine();
        let equal = |a: [Ark1<C>; 2], b: [<Ark2<C> as CurveGroup>::Affine; 2]| {
            C::Pairing::multi_pairing(a.map(|a| a.into_affine()), b).is_zero()
        };
        if !equal([at_tau, -Ark1::<C>::generator()], [g2, in_g2]) {
            return Err(wrong("the Lagrange basis in G2"));
        }
        let beta = C::G1::to_ark(&self.beta_g1);
        if !equal([beta.into(), -Ark1::<C>::from(g1)], [g2, C::G2::to_ark(&self.beta_g2)]) {
            return Err(Error::Key("beta is not the same in G1 and G2".into()));
        }
        for (name, point, basis) in
            [("alpha", self.alpha_g1, &self.lagrange_alpha), ("beta", self.beta_g1, &self.lagrange_beta)]
        {
            if !equal([of(basis)?, -Ark1::<C>::from(C::G1::to_ark(&point))], [g2, in_g2]) {
                return Err(wrong(&format!("the Lagrange basis times {name}")));
            }
        }
        // q(X) = (1 - X^n) / 2 p(X) is p on the odd rows and 0 on the others. Of degree 2n - 2: the basis of the largest domain of a file
        // lacks the highest power, and p its last term here.
        let half = C::Fr::from(2_u64).inverse().unwrap_or(C::Fr::ZERO);
        let shorter = &coefficients[..n - 1];
        let odd = evaluate::<C>(shorter, C::root_of_unity(n.ilog2() + 1).unwrap_or(C::Fr::ONE), n)?;
        let low = sum::<C, C::G1>(&self.powers_g1[..n - 1], shorter)?;
        let high = sum::<C, C::G1>(&self.powers_g1[n..], shorter)?;
        if sum::<C, C::G1>(&self.odd, &odd)? != (low - high) * half {
            return Err(wrong("the Lagrange basis of the doubled domain"));
        }
        Ok(())
    }
}

/// Checks that all points are finite ones of their group.
fn each<G: Group>(name: &str, points: &[G::Point], progress: &dyn Progress) -> Result<()> {
    /// Points between two looks at whether the caller wants to stop.
    const CHUNK: usize = 1 << 12;
    let check = |(number, chunk): (usize, &[G::Point])| {
        if progress.cancelled() {
            return Err(Error::Interrupted);
        }
        for (i, point) in chunk.iter().enumerate() {
            check_finite::<G>(point).map_err(|fault| {
                let at = number * CHUNK + i;
                Error::Key(format!("the {name}, point {at}, {fault}"))
            })?;
        }
        progress.advance(chunk.len() as u64);
        Ok(())
    };
    let checked: Vec<Result<()>> = points.par_chunks(CHUNK).enumerate().map(check).collect();
    checked.into_iter().collect()
}

/// 1, s, s^2 and so on.
fn geometric<F: Field>(s: F, n: usize) -> Vec<F> {
    std::iter::successors(Some(F::ONE), |x| Some(*x * s)).take(n).collect()
}

/// The values of a polynomial on `shift` times the domain of n rows.
fn evaluate<C: Curve>(coefficients: &[C::Fr], shift: C::Fr, n: usize) -> Result<Vec<C::Fr>> {
    use tandem_ops::{Backend, Coset, Direction, Lane, Mont, Ntt, NttOp, Order};
    let mut power = C::Fr::ONE;
    let mut wire: Vec<Mont> = Vec::with_capacity(n);
    for coefficient in coefficients {
        wire.push(C::mont(*coefficient * power));
        power *= shift;
    }
    wire.resize(n, Mont::default());
    let cpu = Cpu::new(1);
    let mut buf = cpu.upload(Lane(0), &wire)?;
    let (direction, coset) = (Direction::Forward, Coset::Subgroup);
    Ntt::<C>::ntt(&cpu, &mut buf, NttOp { direction, coset, input: Order::Natural, output: Order::Natural })?;
    Ok(buf.as_slice().iter().map(|x| C::from_mont(*x)).collect())
}

fn sum<C: Curve, G: Group<Curve = C>>(points: &[G::Point], scalars: &[C::Fr]) -> Result<G::Ark>
where
    Cpu: tandem_ops::Msm<G>,
{
    if points.is_empty() {
        return Ok(G::Ark::ZERO);
    }
    let cpu = Cpu::new(1);
    let scalars: Vec<Canonical> = scalars.iter().map(|x| C::canonical(*x)).collect();
    let split = SplitMsm::<G, _>::load(&cpu, 1, points.into(), 1)?;
    let scalars = split.upload(&cpu, &scalars)?;
    Ok(split.sum(&cpu, &scalars)?.wait()?)
}
