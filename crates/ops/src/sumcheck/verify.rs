//! What a sumcheck brings, and its verifier.

use super::{check_challenge, check_tables_count, SumcheckField, TABLES_MAX};
use crate::{Error, Result};
use ark_ff::Field;

const OP: &str = "sumcheck";

/// What the prover says, in numbers of the challenges' field, [`SumcheckField::Challenge`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SumcheckProof<N> {
    /// The sum over all indices of the products of the tables' elements.
    pub sum: N,
    /// Of each round the values of its polynomial at 0, 1, .. d.
    pub rounds: Vec<Vec<N>>,
    /// The values of the tables' polynomials at the point of all challenges.
    pub values: Vec<N>,
}

/// Values of polynomials of degree up to [`TABLES_MAX`] at any place, from those at 0, 1, ..: Newton's sum of differences times binomial
/// coefficients.
pub(super) struct Interpolation<E> {
    /// 1 / k, k = 1, 2, ..: found once, since a field takes as long for it as for a hundred products.
    inverses: [E; TABLES_MAX],
}

impl<E: Field> Interpolation<E> {
    pub(super) fn new() -> Self {
        // The fields' characteristics are far above.
        let inverse = |k: usize| E::from(k as u64 + 1).inverse().unwrap_or(E::ZERO);
        Interpolation { inverses: std::array::from_fn(inverse) }
    }

    /// The value at `t` of the polynomial of degree below their number that has these values, [`TABLES_MAX`] + 1 at most.
    pub(super) fn at(&self, values: &[E], t: E) -> E {
        let mut differences = [E::ZERO; TABLES_MAX + 1];
        let differences = &mut differences[..values.len()];
        differences.copy_from_slice(values);
        let (mut sum, mut binomial) = (E::ZERO, E::ONE);
        for order in 0..differences.len() {
            sum += differences[0] * binomial;
            for i in 0..differences.len() - order - 1 {
                let next = differences[i + 1];
                differences[i] = next - differences[i];
            }
            if let Some(&inverse) = self.inverses.get(order) {
                binomial *= (t - E::from(order as u64)) * inverse;
            }
        }
        sum
    }
}

/// Checks a proof for tables of 2^`variables` elements and gives the point of all challenges, the one of the highest bit first. `challenge`
/// gets each round's values, as the prover's does.
///
/// What is left to the caller: that [`SumcheckProof::values`] are those of the tables' polynomials at this point, and that
/// [`SumcheckProof::sum`] is what was to be shown.
///
/// # Errors
/// [`Error::Invalid`]: the proof is not one of so many rounds, says something else in a round than in the one before, or has a number that is
/// not below the modulus.
pub fn verify<F: SumcheckField>(
    proof: &SumcheckProof<F::Challenge>,
    variables: usize,
    mut challenge: impl FnMut(&[F::Challenge]) -> F::Challenge,
) -> Result<Vec<F::Challenge>> {
    let tables = proof.values.len();
    check_tables_count(OP, tables)?;
    let number = |x: &F::Challenge| {
        F::checked(*x).ok_or_else(|| Error::invalid(OP, "the proof has a number that is not below the modulus"))
    };
    if proof.rounds.len() != variables {
        let reason = format!("{} rounds for {variables} variables", proof.rounds.len());
        return Err(Error::invalid(OP, reason));
    }
    let interpolation = Interpolation::new();
    let mut claim = number(&proof.sum)?;
    let mut point = Vec::with_capacity(variables);
    for (round, values) in proof.rounds.iter().enumerate() {
        if values.len() != tables + 1 {
            let reason =
                format!("round {round} has {} values; expected {} for {tables} tables", values.len(), tables + 1);
            return Err(Error::invalid(OP, reason));
        }
        let at = values.iter().map(number).collect::<Result<Vec<_>>>()?;
        if at[0] + at[1] != claim {
            return Err(Error::invalid(
                OP,
                format!("the values at 0 and 1 of round {round} do not make what is claimed"),
            ));
        }
        let r = challenge(values);
        claim = interpolation.at(&at, check_challenge::<F>(OP, r)?);
        point.push(r);
    }
    let values = proof.values.iter().map(number).collect::<Result<Vec<_>>>()?;
    if values.iter().product::<F::Extension>() != claim {
        return Err(Error::invalid(OP, "the values at the point of all challenges do not make what is claimed"));
    }
    Ok(point)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bn254;
    use ark_ff::UniformRand;
    use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};

    #[test]
    fn polynomials_are_interpolated() {
        type Fr = <Bn254 as crate::Curve>::Fr;
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let interpolation = Interpolation::new();
        for degree in 0..=TABLES_MAX {
            let c: Vec<Fr> = (0..=degree).map(|_| Fr::rand(&mut rng)).collect();
            let values: Vec<Fr> = (0..=degree as u64).map(|t| crate::naive::value(&c, Fr::from(t))).collect();
            for t in [Fr::rand(&mut rng), Fr::from(0u64), Fr::from(1u64), Fr::from(degree as u64), -Fr::from(1u64)] {
                assert_eq!(interpolation.at(&values, t), crate::naive::value(&c, t), "degree {degree}");
            }
        }
    }
}
