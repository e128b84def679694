//! Keys, of gates and powers of tau: that of snarkjs, for nothing is drawn.

use super::{check_powers, powers, Fr, VerifyingKey, BLINDED_ROWS, G1};
use crate::gates::{Gates, Shape};
use crate::setup::{commit, lagrange, sigma, transformed, COSETS};
use crate::{Error, PlonkBackend, Progress, Result, P2};
use tandem_ops::{memory, Bn254, Curve, Mont, SplitMsm};

/// Parts of a key, in the order in which they are made, which is that of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// [`crate::Addition`]s.
    Additions,
    /// The signals in a column, by its number: `u32`.
    Map(usize),
    /// QL, QR, QM, QO or QC, by its number: n coefficients, then 4n values on the domain of 4n rows, as [`Mont`].
    Selector(usize),
    /// S1, S2 or S3, by its number: coefficients and values, as of a selector.
    Permutation(usize),
    /// Lagrange polynomials, one for each public signal, at least one: coefficients and values, as of a selector.
    Lagrange,
    /// Powers of tau in G1.
    Powers,
    /// 8n coefficients of C0, as [`Mont`].
    C0,
}

/// Where a key goes, piece by piece.
pub trait KeySink {
    /// The sizes. Comes first.
    ///
    /// # Errors
    /// [`Error::Output`].
    fn shape(&mut self, shape: Shape) -> Result<()>;
    /// The pieces that follow belong to `part`.
    ///
    /// # Errors
    /// [`Error::Output`].
    fn begin(&mut self, part: Part) -> Result<()>;
    /// Values of a part, in order, as bytes.
    ///
    /// # Errors
    /// [`Error::Output`].
    fn bytes(&mut self, bytes: &[u8]) -> Result<()>;
}

/// Where the selectors QL, QR, QM, QO and QC stand in a gate, which has Qm first.
const SELECTORS: [usize; 5] = [1, 2, 0, 3, 4];
/// Places in C0 of QL, QR, QM, QO, QC, S1, S2 and S3.
const IN_C0: [usize; 8] = [0, 1, 3, 2, 4, 5, 6, 7];

/// Makes the key of `gates` ([`Gates::of_fflonk`]) and hands it to `sink`; returns what verifies its proofs. `tau` are the [`powers`] of tau in G1
/// that the key has, and tau in G2; they are checked. Holds some 800 bytes for each row beside the gates and the powers.
///
/// # Errors
/// [`Error::Key`] where the powers of tau are no good; [`Error::Output`]; [`Error::Interrupted`]; [`Error::Backend`].
pub fn setup<B: PlonkBackend<Bn254>>(
    backend: &B,
    gates: &Gates<Bn254>,
    (tau, x_2): (&[G1], &P2<Bn254>),
    sink: &mut dyn KeySink,
    progress: &dyn Progress,
) -> Result<VerifyingKey> {
    let shape @ Shape { domain, publics, .. } = gates.shape;
    if tau.len() != powers(domain) {
        return Err(Error::Key(format!("{} powers of tau; expected {}", tau.len(), powers(domain))));
    }
    check_powers(tau.into(), x_2, domain, progress)?;
    progress.start("polynomials", 8 + publics.max(1) as u64);
    sink.shape(shape)?;
    sink.begin(Part::Additions)?;
    sink.bytes(bytemuck::cast_slice(&gates.additions))?;
    for column in 0..3 {
        sink.begin(Part::Map(column))?;
        let signals: Vec<u32> = gates.gates.iter().map(|gate| gate.signals[column]).collect();
        sink.bytes(bytemuck::cast_slice(&signals))?;
    }
    let mut c0 = memory::filled("setup", 8 * domain, Mont::default())?;
    let write = |values: &[Mont], sink: &mut dyn KeySink| {
        transformed::<Bn254, B>(backend, values, &mut |bytes| sink.bytes(bytes), progress)
    };
    let mut join = |place: usize, coefficients: &[Mont]| {
        c0.iter_mut().skip(place).step_by(8).zip(coefficients).for_each(|(to, c)| *to = *c);
    };
    let mut values = memory::filled("setup", domain, Mont::default())?;
    for (number, of_gate) in SELECTORS.into_iter().enumerate() {
        sink.begin(Part::Selector(number))?;
        values.iter_mut().zip(&gates.gates).for_each(|(value, gate)| *value = Bn254::mont(gate.selectors[of_gate]));
        join(IN_C0[number], &write(&values, sink)?);
    }
    let sigma = sigma(gates, BLINDED_ROWS)?;
    for (number, values) in sigma.chunks(domain).enumerate() {
        sink.begin(Part::Permutation(number))?;
        join(IN_C0[5 + number], &write(values, sink)?);
    }
    drop(sigma);
    sink.begin(Part::Lagrange)?;
    drop(values);
    lagrange::<Bn254, B>(backend, (domain, publics.max(1)), &mut |bytes| sink.bytes(bytes), progress)?;
    sink.begin(Part::Powers)?;
    sink.bytes(bytemuck::cast_slice(tau))?;
    sink.begin(Part::C0)?;
    sink.bytes(bytemuck::cast_slice(&c0))?;
    let sums = SplitMsm::load(backend, 1, tau[..8 * domain].into(), 1)?;
    let c0 = commit(backend, &sums, 8 * domain, &c0)?;
    Ok(VerifyingKey { publics, domain, k: COSETS.map(Fr::from), x_2: *x_2, c0 })
}
