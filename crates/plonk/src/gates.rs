//! From constraints to gates, as snarkjs makes them: which gates, in which order, is part of a key.
//!
//! A gate holds if Qm a b + Ql a + Qr b + Qo c + Qc = 0 for the signals a, b and c in its columns. The first gates are one for each
//! public signal. A linear combination that is too long for a gate has its first two terms replaced by a new signal that is their sum,
//! which goes to its end, until it is short enough.

use crate::{Error, Result};
use ark_ff::{AdditiveGroup, FftField, Field, Zero};
use bytemuck::{Pod, Zeroable};
use std::collections::VecDeque;
use tandem_ops::{memory, Curve, Mont};
use tandem_proof::circuit::{Circuit, Terms};
use tandem_proof::Progress;
use zeroize::Zeroize;

/// A signal that the circuit does not have: the first factor times the first signal plus the second times the second.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Pod, Zeroable, Zeroize)]
#[repr(C)]
pub struct Addition {
    /// The signals that are added.
    pub signals: [u32; 2],
    /// What each is multiplied with.
    pub factors: [Mont; 2],
}

/// The sizes of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Signals of the circuit, the constant 1 among them: the length of a witness.
    pub variables: usize,
    /// Signals that additions make.
    pub additions: usize,
    /// Public signals.
    pub publics: usize,
    /// Gates, those of the public signals included.
    pub gates: usize,
    /// Rows of the domain, a power of two.
    pub domain: usize,
}

impl Shape {
    /// Signals, those of the additions included.
    pub fn signals(&self) -> usize {
        self.variables + self.additions
    }

    /// Powers of tau that a key has: blinding makes polynomials longer than the domain.
    pub fn powers(&self) -> usize {
        powers(self.domain)
    }
}

/// Powers of tau of a key whose domain has so many rows.
pub(crate) fn powers(domain: usize) -> usize {
    domain + 6
}

/// One gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gate<F> {
    /// Signals in the columns A, B and C.
    pub(crate) signals: [u32; 3],
    /// Qm, Ql, Qr, Qo and Qc.
    pub(crate) selectors: [F; 5],
}

/// The gates of a circuit.
pub struct Gates<C: Curve> {
    pub(crate) shape: Shape,
    pub(crate) gates: Vec<Gate<C::Fr>>,
    pub(crate) additions: Vec<Addition>,
}

/// The least domain: below it the quotient has more coefficients than four times the rows.
pub(crate) const DOMAIN_MIN: usize = 8;

/// The largest domain, as a power of two: the quotient is evaluated on four times as many points.
pub(crate) fn log_domain_max<C: Curve>() -> u32 {
    <C::Fr as FftField>::TWO_ADICITY.min(31) - 2
}

impl<C: Curve> Gates<C> {
    /// The gates of a circuit. Holds some 200 bytes for each gate.
    ///
    /// # Errors
    /// [`Error::Circuit`] for a circuit without constraints, or too large; [`Error::Interrupted`]; [`Error::Backend`] where there is
    /// not enough memory.
    pub fn of(circuit: &dyn Circuit<C>, progress: &dyn Progress) -> Result<Self> {
        Self::made(circuit, 0, false, progress)
    }

    /// The gates of a circuit for an FFLONK key: snarkjs leaves out terms whose coefficient is zero, and the domain has two rows more than gates.
    ///
    /// # Errors
    /// As [`Gates::of`].
    pub fn of_fflonk(circuit: &dyn Circuit<C>, progress: &dyn Progress) -> Result<Self> {
        Self::made(circuit, 2, true, progress)
    }

    fn made(circuit: &dyn Circuit<C>, more_rows: usize, drops_zeros: bool, progress: &dyn Progress) -> Result<Self> {
        let (variables, publics) = (circuit.variables(), circuit.publics());
        if publics >= variables || u32::try_from(variables).is_err() {
            return Err(Error::Circuit(format!("the circuit has {publics} public signals of {variables} signals")));
        }
        if circuit.constraints() == 0 {
            return Err(Error::Circuit("the circuit has no constraint, of which PLONK makes no key".into()));
        }
        progress.start("gates", circuit.constraints() as u64);
        let mut maker =
            Maker::<C> { gates: Vec::new(), additions: Vec::new(), next: variables, more_rows, drops_zeros };
        for signal in 1..=publics {
            let mut selectors = [C::Fr::ZERO; 5];
            selectors[1] = C::Fr::ONE;
            maker.gate([signal as u32, 0, 0], selectors)?;
        }
        let (mut a, mut b, mut c) = (Vec::new(), Vec::new(), Vec::new());
        let mut count = 0u64;
        circuit.walk(&mut |constraint| {
            count += 1;
            if count.is_multiple_of(1 << 12) {
                progress.advance(1 << 12);
                if progress.cancelled() {
                    return Err(Error::Interrupted);
                }
            }
            sorted::<C>(&constraint.a, &mut a);
            sorted::<C>(&constraint.b, &mut b);
            sorted::<C>(&constraint.c, &mut c);
            if drops_zeros {
                [&mut a, &mut b, &mut c].into_iter().for_each(|terms| terms.retain(|term| !term.1.is_zero()));
            }
            maker.constraint(&a, &b, &c)
        })?;
        let Maker { gates, additions, .. } = maker;
        let domain = (gates.len() + more_rows).next_power_of_two().max(DOMAIN_MIN);
        let shape = Shape { variables, additions: additions.len(), publics, gates: gates.len(), domain };
        Ok(Self { shape, gates, additions })
    }

    /// The sizes of the key.
    pub fn shape(&self) -> Shape {
        self.shape
    }
}

/// A linear combination by ascending signals, the last of several terms of one signal. Terms whose coefficient is zero stay.
fn sorted<C: Curve>(terms: &Terms<C>, to: &mut Terms<C>) {
    to.clear();
    to.extend_from_slice(terms);
    to.sort_by_key(|(signal, _)| *signal);
    // Of neighbours with one signal the first goes.
    let mut kept = 0;
    for i in 0..to.len() {
        if to.get(i + 1).is_none_or(|next| next.0 != to[i].0) {
            to[kept] = to[i];
            kept += 1;
        }
    }
    to.truncate(kept);
}

/// Signals and their coefficients, of which there are few, and a constant.
struct Short<F> {
    terms: VecDeque<(u32, F)>,
    constant: F,
}

impl<F: Field> Short<F> {
    /// The signal and the coefficient of a column; where there is none, signal 0 times 0.
    fn term(&self, column: usize) -> (u32, F) {
        self.terms.get(column).copied().unwrap_or((0, F::ZERO))
    }
}

struct Maker<C: Curve> {
    gates: Vec<Gate<C::Fr>>,
    additions: Vec<Addition>,
    next: usize,
    /// Rows that the domain has beside the gates.
    more_rows: usize,
    /// Whether terms whose coefficient is zero are left out.
    drops_zeros: bool,
}

impl<C: Curve> Maker<C> {
    fn gate(&mut self, signals: [u32; 3], selectors: [C::Fr; 5]) -> Result<()> {
        let most = 1usize << log_domain_max::<C>();
        if self.gates.len() + self.more_rows >= most {
            return Err(Error::Circuit(format!(
                "the circuit needs more than {most} gates, the most that a key for {} has",
                C::ID
            )));
        }
        if self.gates.len() == self.gates.capacity() {
            let more = self.gates.len().max(1 << 10);
            memory::check("gates", (more * size_of::<Gate<C::Fr>>()) as u64)?;
            self.gates.reserve_exact(more);
        }
        self.gates.push(Gate { signals, selectors });
        Ok(())
    }

    /// A new signal for the sum of two terms.
    fn sum(&mut self, one: (u32, C::Fr), other: (u32, C::Fr)) -> Result<u32> {
        let new =
            u32::try_from(self.next).map_err(|_| Error::Circuit("the circuit needs more than 2^32 signals".into()))?;
        self.next += 1;
        self.gate([one.0, other.0, new], [C::Fr::ZERO, -one.1, -other.1, C::Fr::ONE, C::Fr::ZERO])?;
        self.additions.push(Addition { signals: [one.0, other.0], factors: [C::mont(one.1), C::mont(other.1)] });
        Ok(new)
    }

    /// A linear combination with at most `most` terms beside the constant.
    fn shortened(&mut self, terms: &Terms<C>, most: usize) -> Result<Short<C::Fr>> {
        let constant = terms.iter().filter(|t| t.0 == 0).map(|t| t.1).sum();
        let mut rest: VecDeque<_> = terms.iter().filter(|t| t.0 != 0).copied().collect();
        while rest.len() > most {
            if let (Some(one), Some(other)) = (rest.pop_front(), rest.pop_front()) {
                rest.push_back((self.sum(one, other)?, C::Fr::ONE));
            }
        }
        Ok(Short { terms: rest, constant })
    }

    fn constraint(&mut self, a: &Terms<C>, b: &Terms<C>, c: &Terms<C>) -> Result<()> {
        let constant = |terms: &Terms<C>| match terms[..] {
            [(0, k)] => Some(k),
            _ => None,
        };
        if a.is_empty() || b.is_empty() {
            // 0 = C
            return self.linear(c);
        }
        let (k, other) = match (constant(a), constant(b)) {
            (Some(k), _) => (k, b),
            (None, Some(k)) => (k, a),
            (None, None) => return self.product(a, b, c),
        };
        // k other - C = 0
        let mut terms: Terms<C> = other.iter().map(|(signal, value)| (*signal, *value * k)).collect();
        for (signal, value) in c {
            match terms.binary_search_by_key(signal, |t| t.0) {
                Ok(at) => terms[at].1 -= value,
                Err(at) => terms.insert(at, (*signal, -*value)),
            }
        }
        if self.drops_zeros {
            terms.retain(|term| !term.1.is_zero());
        }
        self.linear(&terms)
    }

    /// A linear combination that is 0.
    fn linear(&mut self, terms: &Terms<C>) -> Result<()> {
        let short = self.shortened(terms, 3)?;
        let ((sa, a), (sb, b), (sc, c)) = (short.term(0), short.term(1), short.term(2));
        self.gate([sa, sb, sc], [C::Fr::ZERO, a, b, c, short.constant])
    }

    fn product(&mut self, a: &Terms<C>, b: &Terms<C>, c: &Terms<C>) -> Result<()> {
        let (a, b, c) = (self.shortened(a, 1)?, self.shortened(b, 1)?, self.shortened(c, 1)?);
        let ((sa, qa), (sb, qb), (sc, qc)) = (a.term(0), b.term(0), c.term(0));
        let (ka, kb, kc) = (a.constant, b.constant, c.constant);
        self.gate([sa, sb, sc], [qa * qb, qa * kb, ka * qb, -qc, ka * kb - kc])
    }
}
