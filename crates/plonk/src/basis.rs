//! Commitments to columns by their values: sums over the points of the Lagrange basis, of which most scalars are as small as the signals of
//! a circuit are.
//!
//! With L_i the polynomial that is 1 at row i and 0 at the others, a column of values v_i, blinded by (b + b' X) Z_H, is
//! sum v_i L_i + b (X^n - 1) + b' (X^(n+1) - X). The points L_i(tau) G are the inverse transform of the powers of tau.

use crate::key::FIRST;
use crate::{PlonkBackend, Result, P1};
use ark_ec::{AffineRepr, CurveGroup};
use bytemuck::Zeroable;
use tandem_ops::{memory, Curve, Error as Fault, Group, PointNtt, Stored};
use tandem_proof::powers::power;
use tandem_proof::Error;

/// Random scalars that blind a column.
pub(crate) const BLINDED: usize = 2;

/// The points that a column's values and its random scalars belong to: one for each of the `domain`'s rows, then those of 1 and X times Z_H.
/// `None` where there is not enough memory for them: nobody needs them.
///
/// # Errors
/// Powers cannot be read; the device failed.
pub(crate) fn points<C: Curve, B: PlonkBackend<C>>(
    backend: &B,
    powers: Stored<'_, P1<C>>,
    domain: usize,
) -> Result<Option<Vec<P1<C>>>> {
    match made::<C, B>(backend, powers, domain) {
        Ok(points) => Ok(Some(points)),
        Err(Error::Backend(Fault::OutOfMemory { .. })) => Ok(None),
        Err(other) => Err(other),
    }
}

fn made<C: Curve, B: PlonkBackend<C>>(backend: &B, powers: Stored<'_, P1<C>>, domain: usize) -> Result<Vec<P1<C>>> {
    let mut of_rows = memory::filled("load key", domain, P1::<C>::zeroed())?;
    powers.slice(0..domain).read_parallel(0, bytemuck::cast_slice_mut(&mut of_rows))?;
    let mut on_lane = backend.upload(FIRST, &of_rows)?;
    drop(of_rows);
    PointNtt::<C>::lagrange_points(backend, &mut on_lane)?;
    let mut points = backend.download(&on_lane)?.wait()?;
    for number in 0..BLINDED {
        let [low, high] = [number, domain + number].map(|number| power(powers, number));
        let difference = C::G1::to_ark(&high?).into_group() - C::G1::to_ark(&low?);
        points.push(C::G1::from_ark(&difference.into_affine()));
    }
    Ok(points)
}
