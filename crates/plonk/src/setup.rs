//! Keys, of gates and powers of tau. There is no secret and no randomness: the same input gives the same key, that of snarkjs.

use crate::gates::{Addition, Gates, Shape};
use crate::key::{op, KeyView, VerifyingKey};
use crate::polynomial::powers;
use crate::{Error, PlonkBackend, Progress, Result, Silent, P1, P2};
use ark_ec::CurveGroup;
use ark_ff::Field;
use rayon::prelude::*;
use tandem_ops::{memory, Canonical, Coset, Curve, Direction, Group, Lane, Mont, Ntt, SplitMsm};
use tandem_proof::powers::check_powers;

/// Parts of a key, in the order in which they are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// [`Addition`]s.
    Additions,
    /// The signals in a column, by its number: `u32`.
    Map(usize),
    /// A selector, by its number: n coefficients, then 4n values on the domain of 4n rows, as [`Mont`].
    Selector(usize),
    /// S1, S2 and S3, each as coefficients and values, as a selector.
    Permutation,
    /// Lagrange polynomials as coefficients and values: one for each public signal, at least one.
    Lagrange,
    /// Powers of tau in G1.
    Powers,
}

/// Where a key goes, piece by piece.
pub trait KeySink<C: Curve> {
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
    /// The commitments. Comes last.
    ///
    /// # Errors
    /// [`Error::Output`].
    fn verifying(&mut self, key: &VerifyingKey<C>) -> Result<()>;
}

/// k1 and k2 of snarkjs.
pub(crate) const COSETS: [u64; 2] = [2, 3];

struct Setup<'a, C: Curve, B: PlonkBackend<C>> {
    backend: &'a B,
    sums: SplitMsm<C::G1, B>,
    shape: Shape,
    sink: &'a mut dyn KeySink<C>,
    progress: &'a dyn Progress,
}

/// Writes the polynomial with these values on the domain: its coefficients, then its values on the domain of four times as many rows. Returns
/// the coefficients.
///
/// # Errors
/// Those of `write`; [`Error::Interrupted`]; [`Error::Backend`].
pub(crate) fn transformed<C: Curve, B: PlonkBackend<C>>(
    backend: &B,
    values: &[Mont],
    write: &mut dyn FnMut(&[u8]) -> Result<()>,
    progress: &dyn Progress,
) -> Result<Vec<Mont>> {
    if progress.cancelled() {
        return Err(Error::Interrupted);
    }
    let lane = Lane(0);
    let mut of_domain = backend.upload(lane, values)?;
    Ntt::<C>::ntt(backend, &mut of_domain, op(Direction::Inverse, Coset::Subgroup))?;
    let coefficients = backend.download(&of_domain)?.wait()?;
    drop(of_domain);
    let mut of_larger = backend.alloc::<Mont>(lane, 4 * values.len())?;
    backend.write(&mut of_larger, 0, &coefficients)?;
    Ntt::<C>::ntt(backend, &mut of_larger, op(Direction::Forward, Coset::Subgroup))?;
    write(bytemuck::cast_slice(&coefficients))?;
    write(bytemuck::cast_slice(&backend.download(&of_larger)?.wait()?))?;
    progress.advance(1);
    Ok(coefficients)
}

/// Writes the Lagrange polynomials of the first `count` rows of a domain, each as [`transformed`] does. L_i has the coefficients w^-ij / n, and
/// L_i(x) = L_0(x w^-i), so that its values on the larger domain are those of L_0, 4 i places on: all of it is copied from two tables.
///
/// # Errors
/// As for [`transformed`].
pub(crate) fn lagrange<C: Curve, B: PlonkBackend<C>>(
    backend: &B,
    (domain, count): (usize, usize),
    write: &mut dyn FnMut(&[u8]) -> Result<()>,
    progress: &dyn Progress,
) -> Result<()> {
    let mut unit = memory::filled("setup", domain, Mont::default())?;
    unit[0] = C::mont(C::Fr::ONE);
    let mut first = memory::filled("setup", 5 * domain, Mont::default())?;
    let mut at = 0;
    let mut keep = |bytes: &[u8]| {
        bytemuck::cast_slice_mut(&mut first)[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
        Ok(())
    };
    transformed::<C, B>(backend, &unit, &mut keep, &Silent)?;
    let values: &[u8] = bytemuck::cast_slice(&first[domain..]);
    unit.rotate_right(1);
    let powers = transformed::<C, B>(backend, &unit, &mut |_| Ok(()), &Silent)?;
    let mut coefficients = unit;
    for row in 0..count {
        if progress.cancelled() {
            return Err(Error::Interrupted);
        }
        coefficients
            .par_iter_mut()
            .with_min_len(1 << 12)
            .enumerate()
            .for_each(|(j, to)| *to = powers[row * j % domain]);
        write(bytemuck::cast_slice(&coefficients))?;
        let (before, behind) = values.split_at(values.len() - 4 * row * size_of::<Mont>());
        write(behind)?;
        write(before)?;
        progress.advance(1);
    }
    Ok(())
}

/// The commitment to a polynomial with `powers` powers of tau, which it may be shorter than.
///
/// # Errors
/// [`Error::Backend`].
pub(crate) fn commit<C: Curve, B: PlonkBackend<C>>(
    backend: &B,
    sums: &SplitMsm<C::G1, B>,
    powers: usize,
    coefficients: &[Mont],
) -> Result<P1<C>> {
    let mut scalars = memory::filled("setup", powers, Canonical::default())?;
    scalars.par_iter_mut().with_min_len(1 << 10).zip(coefficients).for_each(|(to, c)| {
        *to = C::canonical(C::from_mont(*c));
    });
    let scalars = sums.upload(backend, &scalars)?;
    let sum = sums.sum(backend, &scalars)?.wait()?;
    Ok(C::G1::from_ark(&sum.into_affine()))
}

impl<C: Curve, B: PlonkBackend<C>> Setup<'_, C, B> {
    fn polynomial(&mut self, values: &[Mont]) -> Result<Vec<Mont>> {
        let sink = &mut *self.sink;
        transformed::<C, B>(self.backend, values, &mut |bytes| sink.bytes(bytes), self.progress)
    }

    fn commit(&self, coefficients: &[Mont]) -> Result<P1<C>> {
        commit(self.backend, &self.sums, self.shape.powers(), coefficients)
    }
}

/// Makes the key of `gates` and hands it to `sink`. `tau` are the powers of tau in G1, six more than the domain has rows, and tau in G2; they
/// are checked. Holds some 500 bytes for each row beside the gates.
///
/// # Errors
/// [`Error::Key`] where the powers of tau are no good; [`Error::Output`]; [`Error::Interrupted`]; [`Error::Backend`].
pub fn setup<C: Curve, B: PlonkBackend<C>>(
    backend: &B,
    gates: &Gates<C>,
    (tau, x_2): (&[P1<C>], &P2<C>),
    sink: &mut dyn KeySink<C>,
    progress: &dyn Progress,
) -> Result<()> {
    let shape = gates.shape;
    if tau.len() != shape.powers() {
        return Err(Error::Key(format!("{} powers of tau; expected {}", tau.len(), shape.powers())));
    }
    check_powers::<C>(tau.into(), x_2, shape.domain, progress)?;
    progress.start("polynomials", 8 + shape.publics.max(1) as u64);
    let sums = SplitMsm::load(backend, 1, tau.into(), 8)?;
    let mut setup = Setup { backend, sums, shape, sink, progress };
    setup.sink.shape(shape)?;
    setup.sink.begin(Part::Additions)?;
    setup.sink.bytes(bytemuck::cast_slice(&gates.additions))?;
    for column in 0..3 {
        setup.sink.begin(Part::Map(column))?;
        let signals: Vec<u32> = gates.gates.iter().map(|gate| gate.signals[column]).collect();
        setup.sink.bytes(bytemuck::cast_slice(&signals))?;
    }
    let mut selectors = [bytemuck::Zeroable::zeroed(); 5];
    let mut values = memory::filled("setup", shape.domain, Mont::default())?;
    for (number, commitment) in selectors.iter_mut().enumerate() {
        setup.sink.begin(Part::Selector(number))?;
        values.iter_mut().zip(&gates.gates).for_each(|(value, gate)| *value = C::mont(gate.selectors[number]));
        let coefficients = setup.polynomial(&values)?;
        *commitment = setup.commit(&coefficients)?;
    }
    setup.sink.begin(Part::Permutation)?;
    let sigma = sigma(gates, 0)?;
    let mut permutation = [bytemuck::Zeroable::zeroed(); 3];
    for (values, commitment) in sigma.chunks(shape.domain).zip(&mut permutation) {
        let coefficients = setup.polynomial(values)?;
        *commitment = setup.commit(&coefficients)?;
    }
    drop(sigma);
    setup.sink.begin(Part::Lagrange)?;
    let sink = &mut *setup.sink;
    let rows = (shape.domain, shape.publics.max(1));
    lagrange::<C, B>(backend, rows, &mut |bytes| sink.bytes(bytes), progress)?;
    setup.sink.begin(Part::Powers)?;
    setup.sink.bytes(bytemuck::cast_slice(tau))?;
    let k = COSETS.map(C::Fr::from);
    let key = VerifyingKey { publics: shape.publics, domain: shape.domain, k, selectors, permutation, x_2: *x_2 };
    setup.sink.verifying(&key)
}

/// The permutation, S1, S2 and S3 one behind the other: each place has the one before it that holds the same signal, the first the last.
/// Places are taken row by row; rows without a gate hold signal 0. Places of the last `fixed` rows have themselves.
pub(crate) fn sigma<C: Curve>(gates: &Gates<C>, fixed: usize) -> Result<Vec<Mont>> {
    let Shape { domain, .. } = gates.shape;
    let rows = powers(C::root_of_unity(domain.ilog2()).unwrap_or(C::Fr::ONE), domain);
    let columns = [C::Fr::ONE, C::Fr::from(COSETS[0]), C::Fr::from(COSETS[1])];
    /// No place yet.
    const NONE: u32 = u32::MAX;
    let mut sigma = memory::filled("setup", 3 * domain, Mont::default())?;
    let mut ends = memory::filled("setup", gates.shape.signals(), [NONE; 2])?;
    // A key has at most 2^29 rows, so that places are of 32 bits.
    let value = |place: u32| C::mont(columns[place as usize / domain] * rows[place as usize % domain]);
    for row in 0..domain {
        let signals = gates.gates.get(row).map_or([0; 3], |gate| gate.signals);
        for (column, signal) in signals.into_iter().enumerate() {
            let place = (column * domain + row) as u32;
            if row >= domain - fixed {
                sigma[place as usize] = value(place);
                continue;
            }
            let [first, last] = &mut ends[signal as usize];
            match *last {
                NONE => *first = place,
                before => sigma[place as usize] = value(before),
            }
            *last = place;
        }
    }
    for [first, last] in ends {
        if first != NONE {
            sigma[first as usize] = value(last);
        }
    }
    Ok(sigma)
}

/// A key that [`setup`] made, in host memory and not in a file.
pub struct OwnedKey<C: Curve> {
    shape: Option<Shape>,
    part: Option<Part>,
    additions: Vec<Addition>,
    maps: [Vec<u32>; 3],
    selectors: [Vec<Mont>; 5],
    permutation: [Vec<Mont>; 3],
    powers: Vec<P1<C>>,
    verifying: Option<VerifyingKey<C>>,
    /// Polynomials of the part begun last that are whole, and elements of the next one.
    elements: usize,
}

impl<C: Curve> Default for OwnedKey<C> {
    fn default() -> Self {
        Self {
            shape: None,
            part: None,
            additions: Vec::new(),
            maps: Default::default(),
            selectors: Default::default(),
            permutation: Default::default(),
            powers: Vec::new(),
            verifying: None,
            elements: 0,
        }
    }
}

impl<C: Curve> OwnedKey<C> {
    /// Of its parts.
    pub(crate) fn of(
        shape: Shape,
        verifying: VerifyingKey<C>,
        (additions, maps): (Vec<Addition>, [Vec<u32>; 3]),
        (selectors, permutation): ([Vec<Mont>; 5], [Vec<Mont>; 3]),
        powers: Vec<P1<C>>,
    ) -> Self {
        let (shape, verifying) = (Some(shape), Some(verifying));
        Self { shape, additions, maps, selectors, permutation, powers, verifying, ..Self::default() }
    }

    /// The key as a view.
    ///
    /// # Errors
    /// [`Error::Key`] before setup has run.
    pub fn view(&self) -> Result<KeyView<'_, C>> {
        let missing = || Error::Key("the key is not made yet".into());
        Ok(KeyView {
            shape: self.shape.ok_or_else(missing)?,
            verifying: self.verifying.clone().ok_or_else(missing)?,
            additions: self.additions.as_slice().into(),
            maps: [0, 1, 2].map(|i| self.maps[i].as_slice().into()),
            selectors: [0, 1, 2, 3, 4].map(|i| self.selectors[i].as_slice().into()),
            permutation: [0, 1, 2].map(|i| self.permutation[i].as_slice().into()),
            powers: self.powers.as_slice().into(),
        })
    }
}

impl<C: Curve> KeySink<C> for OwnedKey<C> {
    fn shape(&mut self, shape: Shape) -> Result<()> {
        self.shape = Some(shape);
        Ok(())
    }

    fn begin(&mut self, part: Part) -> Result<()> {
        (self.part, self.elements) = (Some(part), 0);
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let domain = self.shape.map_or(0, |shape| shape.domain);
        match self.part {
            Some(Part::Additions) => self.additions.extend(bytemuck::pod_collect_to_vec::<u8, Addition>(bytes)),
            Some(Part::Map(column)) => self.maps[column].extend(bytemuck::pod_collect_to_vec::<u8, u32>(bytes)),
            Some(Part::Powers) => self.powers.extend(bytemuck::pod_collect_to_vec::<u8, P1<C>>(bytes)),
            Some(part @ (Part::Selector(_) | Part::Permutation)) => {
                // Coefficients come first; values are not kept.
                let values: Vec<Mont> = bytemuck::pod_collect_to_vec(bytes);
                let (number, at) = (self.elements / (5 * domain), self.elements % (5 * domain));
                self.elements += values.len();
                if at < domain {
                    match part {
                        Part::Selector(selector) => self.selectors[selector].extend(values),
                        _ => self.permutation[number].extend(values),
                    }
                }
            }
            Some(Part::Lagrange) | None => {}
        }
        Ok(())
    }

    fn verifying(&mut self, key: &VerifyingKey<C>) -> Result<()> {
        self.verifying = Some(key.clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_ops::cpu::Cpu;
    use tandem_ops::{Bls12_381, Bn254};

    /// Each by itself, by two transforms.
    fn are_those_of_transforms<C: Curve>()
    where
        Cpu: PlonkBackend<C>,
    {
        let backend = Cpu::new(1);
        for (domain, count) in [(8, 1), (8, 8), (64, 63), (1 << 13, 5)] {
            let mut expected = Vec::new();
            for row in 0..count {
                let mut unit = vec![Mont::default(); domain];
                unit[row] = C::mont(C::Fr::ONE);
                let mut write = |bytes: &[u8]| {
                    expected.extend_from_slice(bytes);
                    Ok(())
                };
                transformed::<C, _>(&backend, &unit, &mut write, &Silent).unwrap();
            }
            let mut found = Vec::new();
            let mut write = |bytes: &[u8]| {
                found.extend_from_slice(bytes);
                Ok(())
            };
            lagrange::<C, _>(&backend, (domain, count), &mut write, &Silent).unwrap();
            assert!(found == expected, "{count} of {domain}");
        }
    }

    #[test]
    fn lagrange_polynomials_are_those_of_transforms() {
        are_those_of_transforms::<Bn254>();
        are_those_of_transforms::<Bls12_381>();
    }
}
