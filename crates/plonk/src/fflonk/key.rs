//! Keys: as a file holds them, and resident on a backend.

use super::{powers, VerifyingKey, G1};
use crate::gates::{log_domain_max, Addition, Shape, DOMAIN_MIN};
use crate::key::{check_counts, check_signals, least_of, on_one_lane, Core, Worth};
use crate::plan::{LaneBytes, Plan, Sizes, Vectors};
use crate::{Error, Layout, PlonkBackend, Progress, Result, P2};
use tandem_ops::{Bn254, Mont, Stored, Unaligned};
use tandem_proof::powers::{check_powers as check_all, power};

/// A proving key where it lies, in a file or in memory.
#[derive(Clone)]
pub struct KeyView<'a> {
    /// Its sizes.
    pub shape: Shape,
    /// What verifies its proofs.
    pub verifying: VerifyingKey,
    /// How to make the signals that the circuit does not have.
    pub additions: Unaligned<'a, Addition>,
    /// The signal in each gate's columns.
    pub maps: [Unaligned<'a, u32>; 3],
    /// Coefficients of C0, eight for each row: they hold the selectors and the permutation.
    pub c0: Unaligned<'a, Mont>,
    /// [`powers`] of tau in G1.
    pub powers: Stored<'a, G1>,
}

/// A key in memory.
pub struct OwnedKey {
    pub(crate) shape: Shape,
    pub(crate) verifying: VerifyingKey,
    pub(crate) additions: Vec<Addition>,
    pub(crate) maps: [Vec<u32>; 3],
    pub(crate) c0: Vec<Mont>,
    pub(crate) powers: Vec<G1>,
}

impl OwnedKey {
    /// The key as a view.
    pub fn view(&self) -> KeyView<'_> {
        KeyView {
            shape: self.shape,
            verifying: self.verifying.clone(),
            additions: self.additions.as_slice().into(),
            maps: self.maps.each_ref().map(|map| map.as_slice().into()),
            c0: self.c0.as_slice().into(),
            powers: self.powers.as_slice().into(),
        }
    }
}

impl KeyView<'_> {
    /// Checks that the parts have the sizes that the shape says, and that signals are in range.
    ///
    /// # Errors
    /// [`Error::Key`] that names the first part that has not.
    pub fn check_sizes(&self) -> Result<()> {
        let Shape { publics, gates, domain, .. } = self.shape;
        let most = log_domain_max::<Bn254>();
        if !domain.is_power_of_two() || domain < DOMAIN_MIN || domain.ilog2() > most {
            let problem = format!("domain of {domain} rows; expected a power of two from {DOMAIN_MIN} to 2^{most}");
            return Err(Error::Key(problem));
        }
        check_counts(self.shape)?;
        if gates + super::BLINDED_ROWS > domain {
            return Err(Error::Key(format!("{gates} gates in {domain} rows, of which two have none")));
        }
        if self.verifying.publics != publics || self.verifying.domain != domain {
            return Err(Error::Key("the verification key is of another shape".into()));
        }
        let parts = [("C0", self.c0.len(), 8 * domain), ("powers of tau", self.powers.len(), powers(domain))];
        for (name, has, expected) in parts {
            if has != expected {
                return Err(Error::Key(format!("{name}: {has}; expected {expected}")));
            }
        }
        check_signals(self.shape, &self.additions, &self.maps)
    }

    /// The coefficients of the polynomial at a place of C0.
    fn polynomial(&self, place: usize) -> Result<Vec<Mont>> {
        let mut own = tandem_ops::memory::reserve("load key", self.shape.domain)?;
        own.extend(self.c0.iter().skip(place).step_by(8));
        Ok(own)
    }
}

/// Checks the powers of tau of a key as [`tandem_proof::powers::check_powers`] does, and that neither tau^3 nor tau^4 is a row of the domain:
/// C1 is made of values at tau^4 and C2 of values at tau^3, and where these are values of a row, nothing hides the witness.
///
/// # Errors
/// [`Error::Key`] that names what is wrong; [`Error::Interrupted`]; [`Error::Backend`] where there is not enough memory.
pub fn check_powers(powers: Stored<'_, G1>, x_2: &P2<Bn254>, domain: usize, progress: &dyn Progress) -> Result<()> {
    check_all::<Bn254>(powers, x_2, domain, progress)?;
    for order in [3, 4] {
        if powers.len() <= order * domain || power(powers, order * domain)? == power(powers, 0)? {
            let problem = format!("tau^{order} is a row of the domain: proofs would show values of their witness");
            return Err(Error::Key(problem));
        }
    }
    Ok(())
}

/// Bytes of device memory, of all lanes together, that an FFLONK key of a `domain` of so many rows takes without tables of multiples.
pub fn device_bytes(domain: usize) -> u64 {
    let LaneBytes { key, powers, .. } = on_one_lane::<Bn254>(sizes(domain));
    key.saturating_add(powers)
}

/// Bytes of device memory that have to be free for a proof beside such a key on one lane: for vectors, the digits of a sum, and what is kept back.
pub fn working_bytes(domain: usize) -> u64 {
    on_one_lane::<Bn254>(sizes(domain)).beside()
}

/// Bytes of one device's memory that such a key and a proof take at least, and what of the host's then lies there for them
/// ([`crate::least_bytes`]).
pub fn least_bytes(domain: usize) -> (u64, u64) {
    least_of::<Bn254>(sizes(domain))
}

/// Most vectors that a proof holds at once on one lane.
pub(crate) const VECTORS: Vectors = Vectors { there: 50, anew: 50 };

fn sizes(domain: usize) -> Sizes {
    Sizes { domain, powers: powers(domain), vectors: VECTORS }
}

/// Places in C0 of Qm, Ql, Qr, Qo, Qc, S1, S2 and S3.
pub(crate) const PLACES: [usize; 8] = [3, 0, 1, 2, 4, 5, 6, 7];

/// A proving key in the memory of a backend's lanes, and what of it the host works with.
pub struct ProvingKey<B: PlonkBackend<Bn254>> {
    pub(super) core: Core<Bn254, B>,
    pub(super) verifying: VerifyingKey,
}

impl<B: PlonkBackend<Bn254>> ProvingKey<B> {
    /// Loads a key onto the lanes of `backend` to make so many `proofs`, as a PLONK key is. The powers of tau are taken to be good
    /// ([`check_powers`]).
    ///
    /// # Errors
    /// [`Error::Key`] if the parts do not fit together; [`Error::Backend`] if the key does not fit into memory.
    pub fn load(backend: &B, view: &KeyView<'_>, layout: Layout, proofs: u64) -> Result<Self> {
        view.check_sizes()?;
        super::PreparedKey::new(&view.verifying)?;
        let polynomials = PLACES.map(|place| view.polynomial(place));
        let polynomials = polynomials.into_iter().collect::<Result<Vec<_>>>()?;
        let slices: Vec<Unaligned<'_, Mont>> = polynomials.iter().map(|p| p.as_slice().into()).collect();
        let core = Core::load(
            backend,
            (view.shape, view.verifying.k),
            (view.additions, &view.maps),
            &slices,
            view.powers,
            Worth { layout, proofs, sums: 4, columns: 0, vectors: VECTORS },
        )?;
        Ok(Self { core, verifying: view.verifying.clone() })
    }

    /// Its sizes.
    pub fn shape(&self) -> Shape {
        self.core.shape
    }

    /// Which lane does what.
    pub fn plan(&self) -> &Plan {
        &self.core.plan
    }

    /// What it and a proof take of each lane that has a part in it.
    pub fn memory(&self) -> &[LaneBytes] {
        &self.core.memory
    }
}
