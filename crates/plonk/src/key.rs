//! Keys: as a file holds them, and resident on a backend.

use crate::additions::{Additions, Sorted};
use crate::basis;
use crate::check::check_single_points;
use crate::coset::{cosets, CosetKey, ABOVE};
use crate::gates::{log_domain_max, powers, Addition, Shape, DOMAIN_MIN};
use crate::model::foretold;
use crate::plan::{beside_basis, takes_basis, LaneBytes, Plan, Sizes, Vectors, POLYNOMIALS};
use crate::polynomials::Polynomials;
use crate::stay::Stay;
use crate::sums::Sums;
use crate::{Error, Layout, PlonkBackend, Result, P1, P2};
use ark_ff::Field;
use tandem_ops::Error as Fault;
use tandem_ops::{
    memory, Coset, Curve, Direction, Info, Lane, Mont, Msm, NttOp, Order, PointNtt, SplitMsm, Stored, Unaligned,
};
use tandem_proof::budget;

/// What a verifier needs.
#[derive(Debug, Clone)]
pub struct VerifyingKey<C: Curve> {
    /// Public values of a proof.
    pub publics: usize,
    /// Rows of the domain, a power of two.
    pub domain: usize,
    /// What takes the domain to the cosets of the second and the third column.
    pub k: [C::Fr; 2],
    /// Commitments to Qm, Ql, Qr, Qo and Qc.
    pub selectors: [P1<C>; 5],
    /// Commitments to S1, S2 and S3.
    pub permutation: [P1<C>; 3],
    /// tau in G2.
    pub x_2: P2<C>,
}

/// A proving key where it lies, in a file or in memory.
#[derive(Clone)]
pub struct KeyView<'a, C: Curve> {
    /// Its sizes.
    pub shape: Shape,
    /// What verifies its proofs.
    pub verifying: VerifyingKey<C>,
    /// How to make the signals that the circuit does not have.
    pub additions: Unaligned<'a, Addition>,
    /// The signal in each gate's columns.
    pub maps: [Unaligned<'a, u32>; 3],
    /// Coefficients of Qm, Ql, Qr, Qo and Qc.
    pub selectors: [Unaligned<'a, Mont>; 5],
    /// Coefficients of S1, S2 and S3.
    pub permutation: [Unaligned<'a, Mont>; 3],
    /// Powers of tau in G1: six more than the domain has rows.
    pub powers: Stored<'a, P1<C>>,
}

impl<C: Curve> KeyView<'_, C> {
    /// Checks that the parts have the sizes that the shape says, and that signals are in range.
    ///
    /// # Errors
    /// [`Error::Key`] that names the first part that has not.
    pub fn check_sizes(&self) -> Result<()> {
        let shape @ Shape { publics, domain, .. } = self.shape;
        let most = log_domain_max::<C>();
        if !domain.is_power_of_two() || domain < DOMAIN_MIN || domain.ilog2() > most {
            let problem = format!("domain of {domain} rows; expected a power of two from {DOMAIN_MIN} to 2^{most}");
            return Err(Error::Key(problem));
        }
        check_counts(shape)?;
        if self.verifying.publics != publics || self.verifying.domain != domain {
            return Err(Error::Key("the verification key is of another shape".into()));
        }
        let polynomials = self.selectors.iter().chain(&self.permutation).map(|p| ("a polynomial", p.len(), domain));
        for (name, has, expected) in polynomials.chain([("powers of tau", self.powers.len(), shape.powers())]) {
            if has != expected {
                return Err(Error::Key(format!("{name}: {has}; expected {expected}")));
            }
        }
        check_signals(shape, &self.additions, &self.maps)
    }
}

/// Checks that the counts of a shape are possible together.
///
/// # Errors
/// [`Error::Key`].
pub(crate) fn check_counts(shape: Shape) -> Result<()> {
    let Shape { variables, publics, gates, domain, .. } = shape;
    match publics >= variables || gates < publics || gates > domain || u32::try_from(shape.signals()).is_err() {
        true => Err(Error::Key(format!("{publics} public signals, {variables} signals and {gates} gates"))),
        false => Ok(()),
    }
}

/// Checks that gates name signals that there are, and additions earlier ones.
///
/// # Errors
/// [`Error::Key`].
pub(crate) fn check_signals(
    shape: Shape,
    additions: &Unaligned<'_, Addition>,
    maps: &[Unaligned<'_, u32>; 3],
) -> Result<()> {
    let Shape { variables, gates, .. } = shape;
    let lengths = maps.iter().map(|map| ("a column", map.len(), gates));
    for (name, has, expected) in lengths.chain([("additions", additions.len(), shape.additions)]) {
        if has != expected {
            return Err(Error::Key(format!("{name}: {has}; expected {expected}")));
        }
    }
    let signals = shape.signals() as u32;
    if maps.iter().any(|map| map.iter().any(|signal| signal >= signals)) {
        return Err(Error::Key(format!("a gate names a signal above the {signals} that there are")));
    }
    let is_early = |(i, addition): (usize, Addition)| addition.signals.iter().all(|&s| (s as usize) < variables + i);
    if !additions.iter().enumerate().all(is_early) {
        return Err(Error::Key("an addition names a signal that comes after it".into()));
    }
    Ok(())
}

/// A proving key in the memory of a backend's lanes, and what of it the host works with.
pub struct ProvingKey<C: Curve, B: PlonkBackend<C>> {
    pub(crate) core: Core<C, B>,
    pub(crate) verifying: VerifyingKey<C>,
}

/// What keys of PLONK and FFLONK have in common.
pub(crate) struct Core<C: Curve, B: PlonkBackend<C>> {
    /// Who does what.
    pub(crate) plan: Plan,
    pub(crate) shape: Shape,
    /// What takes the domain to the cosets of the second and the third column.
    pub(crate) k: [C::Fr; 2],
    pub(crate) additions: Additions<B>,
    /// The signal in each row's columns; behind the gates signal 0, which is zero.
    pub(crate) maps: [B::Map; 3],
    /// Coefficients of Qm, Ql, Qr, Qo, Qc, S1, S2 and S3, and what follows from them at the rows.
    pub(crate) polynomials: Polynomials<B>,
    /// The last [`ABOVE`] coefficients of S1, S2 and S3.
    pub(crate) last: [Vec<C::Fr>; 3],
    /// The powers of tau, split over the lanes.
    pub(crate) sums: Sums<C, B>,
    /// What columns are committed to with by their values, where it pays ([`basis`]).
    pub(crate) basis: Option<Sums<C, B>>,
    /// What the quotient takes, coset by coset.
    pub(crate) cosets: Vec<CosetKey<C, B>>,
    /// What it takes of each lane that has a part in it.
    pub(crate) memory: Vec<LaneBytes>,
}

/// Sums over the powers of tau that their tables are to pay for, where each proof takes so many. A key for one proof gets no tables, so that
/// it takes what [`device_bytes`] says.
pub(crate) fn uses(proofs: u64, sums: u64) -> u64 {
    if proofs > 1 {
        proofs.saturating_mul(sums)
    } else {
        1
    }
}

/// What a key is loaded for.
#[derive(Clone, Copy)]
pub(crate) struct Worth {
    /// How lanes share proofs.
    pub(crate) layout: Layout,
    pub(crate) proofs: u64,
    /// Sums of a proof, and how many of them commit to columns as they are.
    pub(crate) sums: u64,
    pub(crate) columns: u64,
    /// Most vectors that a proof holds at once.
    pub(crate) vectors: Vectors,
}

/// The lane that has the polynomials.
pub(crate) const FIRST: Lane = Lane(0);

/// Most vectors that a PLONK proof holds at once on one lane.
pub(crate) const PLONK_VECTORS: Vectors = Vectors { there: 22, anew: 17 };

/// Bytes of device memory, of all lanes together, that a PLONK key of a `domain` of so many rows takes without tables of multiples:
/// polynomials, the permutation's values and the roots of unity on the domain, the values of all on cosets, maps of the columns and of the next
/// rows, additions, of which there are no more than rows, and powers of tau.
pub fn device_bytes<C: Curve>(domain: usize) -> u64 {
    let LaneBytes { key, powers, .. } = on_one_lane::<C>(plonk_sizes(domain));
    key.saturating_add(powers)
}

/// Bytes of device memory that have to be free for a proof beside such a key on one lane: for vectors, the digits of a sum, and what is kept back.
pub fn working_bytes<C: Curve>(domain: usize) -> u64 {
    on_one_lane::<C>(plonk_sizes(domain)).beside()
}

/// Bytes of one device's memory that such a key and a proof take at least, where each proof makes or brings what does not stay; and the
/// bytes of the host's memory that what is brought takes.
pub fn least_bytes<C: Curve>(domain: usize) -> (u64, u64) {
    least_of::<C>(plonk_sizes(domain))
}

/// As [`least_bytes`], of a key of any sizes.
pub(crate) fn least_of<C: Curve>(sizes: Sizes) -> (u64, u64) {
    let least = Plan::new(1, 1, Layout::Auto).within::<C>(sizes, &[0]);
    let polynomials = (sizes.domain as u64).saturating_mul((POLYNOMIALS * size_of::<Mont>()) as u64);
    let powers = (sizes.powers as u64).saturating_mul(size_of::<P1<C>>() as u64);
    (least.memory::<C>(sizes)[0].need(), polynomials.saturating_add(powers))
}

pub(crate) fn plonk_sizes(domain: usize) -> Sizes {
    Sizes { domain, powers: powers(domain), vectors: PLONK_VECTORS }
}

/// What a key of these sizes and a proof take of a lane that does all.
pub(crate) fn on_one_lane<C: Curve>(sizes: Sizes) -> LaneBytes {
    Plan::new(1, 1, Layout::Auto).memory::<C>(sizes)[0]
}

pub(crate) const NATURAL: (Order, Order) = (Order::Natural, Order::Natural);

/// A transform from natural order to natural order.
pub(crate) fn op(direction: Direction, coset: Coset) -> NttOp {
    NttOp { direction, coset, input: NATURAL.0, output: NATURAL.1 }
}

impl<C: Curve, B: PlonkBackend<C>> ProvingKey<C, B> {
    /// Loads a key onto the lanes of `backend` to make so many `proofs`: the more, the larger the tables of multiples that pay for
    /// themselves. The powers of tau are taken to be good ([`tandem_proof::powers::check_powers`]).
    ///
    /// [`Plan`] says which lanes share the sums and the cosets of the quotient.
    ///
    /// # Errors
    /// [`Error::Key`] if the parts do not fit together, or a commitment is no good; [`Error::Backend`] if the key does not fit into memory.
    pub fn load(backend: &B, view: &KeyView<'_, C>, layout: Layout, proofs: u64) -> Result<Self> {
        view.check_sizes()?;
        check_single_points(&view.verifying)?;
        let polynomials: Vec<_> = view.selectors.iter().chain(&view.permutation).copied().collect();
        let worth = Worth { layout, proofs, sums: 9, columns: 3, vectors: PLONK_VECTORS };
        let (sizes, signals) = ((view.shape, view.verifying.k), (view.additions, &view.maps));
        let core = Core::load(backend, sizes, signals, &polynomials, view.powers, worth)?;
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

impl<C: Curve, B: PlonkBackend<C>> Core<C, B> {
    /// Loads Qm, Ql, Qr, Qo, Qc, S1, S2 and S3, and powers of tau for so many sums.
    ///
    /// # Errors
    /// [`Error::Backend`]; where memory is short, with what the key needs of the lane in all, a proof counted in.
    pub(crate) fn load(
        backend: &B,
        sizes: (Shape, [C::Fr; 2]),
        signals: (Unaligned<'_, Addition>, &[Unaligned<'_, u32>; 3]),
        polynomials: &[Unaligned<'_, Mont>],
        powers: Stored<'_, P1<C>>,
        worth: Worth,
    ) -> Result<Self> {
        worth.layout.check_any_system("PLONK or FFLONK")?;
        let for_sum = Msm::<C::G1>::msm_lanes(backend, powers.len());
        let sizes_of = Sizes { domain: sizes.0.domain, powers: powers.len(), vectors: worth.vectors };
        let Info { lane_names, free_bytes, .. } = backend.info();
        let mut plan = Plan::new(backend.lanes(), for_sum, worth.layout);
        if worth.columns == 0 {
            // Its columns are parts of another polynomial, which the first lane makes.
            plan.columns = [FIRST; 3];
        }
        let plan = plan.within::<C>(sizes_of, &free_bytes);
        let memory = plan.memory::<C>(sizes_of);
        let for_all =
            (memory.iter().zip(&free_bytes).zip(&lane_names)).map(|((of, &free), name)| (of.need(), free, name));
        // Powers that may wait take no memory until they are summed.
        if let Some((wanted, free, name)) =
            for_all.into_iter().find(|(need, free, _)| need > free && !powers.may_wait())
        {
            return Err(Fault::OutOfMemory { op: "load key", device: name.clone(), wanted, free }.into());
        }
        let own = (plan, memory.clone(), free_bytes.as_slice());
        Self::load_as(backend, sizes, signals, polynomials, powers, own, worth).map_err(|error| {
            let failed =
                |name: &String| matches!(&error, Error::Backend(Fault::OutOfMemory { device, .. }) if device == name);
            let lane = lane_names.iter().position(failed).unwrap_or(0);
            match (memory.get(lane), free_bytes.get(lane)) {
                (Some(of_lane), Some(&free)) => budget::whole_need(error, of_lane.need(), free),
                _ => error,
            }
        })
    }

    fn load_as(
        backend: &B,
        (shape, k): (Shape, [C::Fr; 2]),
        (additions, maps): (Unaligned<'_, Addition>, &[Unaligned<'_, u32>; 3]),
        polynomials: &[Unaligned<'_, Mont>],
        powers: Stored<'_, P1<C>>,
        (mut plan, memory, free): (Plan, Vec<LaneBytes>, &[u64]),
        worth: Worth,
    ) -> Result<Self> {
        let last = |number: usize| -> Vec<C::Fr> {
            polynomials[5 + number].iter().skip(shape.domain - ABOVE).map(C::from_mont).collect()
        };
        let last = [last(0), last(1), last(2)];
        let polynomials = Polynomials::load::<C>(backend, plan.stay, polynomials)?;
        let additions = Sorted::new(additions, shape.variables)?;
        let map = |number: usize| -> Result<B::Map> {
            let mut map = memory::filled("load key", shape.domain, 0)?;
            map.iter_mut().zip(maps[number].iter()).for_each(|(to, signal)| *to = additions.number(signal));
            Ok(backend.load_map(FIRST, &map, shape.signals())?)
        };
        let maps = [map(0)?, map(1)?, map(2)?];
        let additions = Additions::load::<C>(backend, additions, shape.domain)?;
        let cosets = cosets(backend, shape.domain, polynomials.there(), plan.cosets, plan.stay)?;
        // What is left of the memory, and a proof does not need, may go to tables of multiples. Powers that may wait need none.
        let lanes = &memory[..plan.sums.min(memory.len())];
        let rooms = || -> Result<Vec<u64>> {
            backend.synchronize()?;
            let now = backend.info().free_bytes;
            let room = |(lane, of_lane): (usize, &LaneBytes)| match powers.may_wait() {
                true => u64::MAX,
                false => {
                    let before = free.get(lane).copied().unwrap_or(0).saturating_sub(of_lane.key);
                    of_lane.for_powers(now.get(lane).copied().unwrap_or(0).min(before))
                }
            };
            Ok(lanes.iter().enumerate().map(room).collect())
        };
        let Worth { proofs, sums, columns, .. } = worth;
        let seconds = PointNtt::<C>::lagrange_seconds(backend, shape.domain);
        let of_lanes = rooms()?.into_iter().zip(lanes.iter().map(|lane| lane.powers));
        let may_have_basis = columns > 0 && !powers.may_wait() && plan.stay == Stay::ALL;
        let of_basis = match may_have_basis && takes_basis(proofs, seconds, of_lanes) {
            true => basis::points(backend, powers, shape.domain)?,
            false => None,
        };
        plan.basis = of_basis.is_some();
        plan.foretold = foretold(&plan, C::ID, shape.domain);
        let (sums, basis) = match of_basis {
            None => (Sums::load(backend, plan.stay, &rooms()?, powers, uses(proofs, sums))?, None),
            Some(points) => {
                let for_powers: Vec<u64> = rooms()?.into_iter().map(beside_basis).collect();
                let sums = Sums::load(backend, plan.stay, &for_powers, powers, uses(proofs, sums - columns))?;
                let points = points.as_slice().into();
                let basis = SplitMsm::load_within(backend, &rooms()?, points, uses(proofs, columns))?;
                (sums, Some(Sums::Whole(basis)))
            }
        };
        backend.synchronize()?;
        Ok(Self { plan, shape, k, additions, maps, polynomials, last, sums, basis, cosets, memory })
    }

    /// The domain's root of unity.
    pub(crate) fn root(&self) -> C::Fr {
        C::root_of_unity(self.shape.domain.ilog2()).unwrap_or(C::Fr::ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::additions::{Level, LANE_BYTES};
    use crate::plan::{ON_COSET, ON_COSET_ANEW};
    use crate::support::{blinding, fflonk, owned, Random};
    use tandem_ops::cpu::Cpu;
    use tandem_ops::{Backend, Bls12_381, Bn254};

    fn a_key_takes_what_is_said_of<C: Curve>() {
        for (constraints, lanes) in [(1, 1), (9, 3), (40, 5)] {
            let key = owned(&Random::<C>::new(constraints, 1, 30));
            let view = key.view().unwrap();
            let loaded = ProvingKey::load(&Cpu::new(lanes), &view, Layout::Auto, 1).unwrap();
            let vectors = loaded.core.cosets.iter().flat_map(CosetKey::vectors);
            let Polynomials::There(of_rows) = &loaded.core.polynomials else { panic!() };
            let vectors = vectors.chain(&of_rows.coefficients).chain(&of_rows.sigma).chain([&of_rows.rows]);
            let vectors: usize = vectors.map(|vector| size_of_val(vector.as_slice())).sum();
            let maps = 4 * 4 * view.shape.domain;
            let additions = match &loaded.core.additions {
                Additions::OnLane(levels) => levels.iter().map(Level::bytes).sum(),
                Additions::OnHost(_) => 0,
            };
            assert_eq!(additions, view.shape.additions * LANE_BYTES);
            let additions = view.shape.domain * LANE_BYTES;
            let bytes = (vectors + maps + additions + view.powers.bytes()) as u64;
            assert_eq!(device_bytes::<C>(view.shape.domain), bytes);
            let all: u64 = loaded.memory().iter().map(|lane| lane.key + lane.powers).sum();
            assert!(all >= bytes && all - bytes < 2 * 4 * view.shape.domain as u64 + 1000, "{all} {bytes}");
        }
    }

    /// Most vectors, of as many elements as rows, that a proof holds beside what its key does: on the first lane, and on the others in all.
    fn held(cpu: &Cpu, domain: usize, proof: impl FnOnce()) -> (u64, u64) {
        let most = || -> Vec<u64> { (0..cpu.lanes()).map(|lane| cpu.take_most_bytes(Lane(lane))).collect() };
        let _ = most();
        let of_key = most();
        proof();
        let vector = (domain * size_of::<Mont>()) as u64;
        let of_proof: Vec<u64> = most().iter().zip(&of_key).map(|(most, key)| (most - key) / vector).collect();
        (of_proof[0], of_proof[1..].iter().sum())
    }

    /// A backend with the least memory, where a proof makes the values on the cosets and polynomials come from the host, or without bound.
    fn backend(lanes: usize, sizes: Sizes, stays: bool) -> Cpu {
        if stays {
            return Cpu::new(lanes);
        }
        let least = Plan::new(lanes, lanes, Layout::Auto).within::<Bn254>(sizes, &vec![0; lanes]);
        let most = least.memory::<Bn254>(sizes).iter().map(LaneBytes::need).max();
        Cpu::with_memory(lanes, most.unwrap())
    }

    /// With Lagrange points and without, what is more.
    fn held_by_plonk(lanes: usize, publics: usize, stays: bool) -> (u64, u64) {
        let circuit = Random::<Bn254>::new(700, publics, 40);
        let key = owned(&circuit);
        let view = key.view().unwrap();
        let cpu = backend(lanes, plonk_sizes(view.shape.domain), stays);
        let verifier = crate::PreparedKey::new(&view.verifying).unwrap();
        let (witness, request) = (circuit.witness(), crate::Request::silent());
        let most = [1, 1000].map(|proofs| {
            let loaded = ProvingKey::load(&cpu, &view, Layout::Auto, proofs).unwrap();
            assert_eq!(loaded.plan().basis, proofs > 1 && stays);
            assert_eq!(loaded.plan().stay.cosets, stays);
            held(&cpu, view.shape.domain, || {
                let made = crate::prove_verified(&cpu, &loaded, &verifier, &witness, &blinding(), &request).unwrap();
                assert_eq!(made.verdict, Ok(()));
            })
        });
        (most[0].0.max(most[1].0), most[0].1.max(most[1].1))
    }

    fn held_by_fflonk(lanes: usize, publics: usize, stays: bool) -> (u64, u64) {
        let circuit = Random::<Bn254>::new(100, publics, 41);
        let (key, verifying) = fflonk::made(&circuit);
        let view = fflonk::view(&key, &verifying);
        let sizes = Sizes { domain: view.shape.domain, powers: view.powers.len(), vectors: crate::fflonk::VECTORS };
        let cpu = backend(lanes, sizes, stays);
        let loaded = crate::fflonk::ProvingKey::load(&cpu, &view, Layout::Auto, 1).unwrap();
        assert_eq!(loaded.plan().stay.cosets, stays);
        let verifier = crate::fflonk::PreparedKey::new(&view.verifying).unwrap();
        let (witness, request) = (circuit.witness(), crate::Request::silent());
        held(&cpu, view.shape.domain, || {
            let made =
                crate::fflonk::prove_verified(&cpu, &loaded, &verifier, &witness, &blinding(), &request).unwrap();
            assert_eq!(made.verdict, Ok(()));
        })
    }

    /// However many signals are public: their polynomial and its values on a coset are counted in.
    #[test]
    fn a_proof_holds_as_many_vectors_as_is_said() {
        type Held = fn(usize, usize, bool) -> (u64, u64);
        let mut wrong = Vec::new();
        for (held, said) in [(held_by_plonk as Held, PLONK_VECTORS), (held_by_fflonk, crate::fflonk::VECTORS)] {
            for (stays, said, on_coset) in [(true, said.there, 2 * ON_COSET), (false, said.anew, 2 * ON_COSET_ANEW)] {
                let most = [1, 200].map(|publics| held(1, publics, stays).0).into_iter().max();
                // Two of three cosets lie on other lanes.
                let (first, others) = held(3, 200, stays);
                if most != Some(said as u64) || first > said as u64 || others > on_coset as u64 {
                    wrong.push((stays, said, most, first, others));
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    #[test]
    fn a_key_takes_what_is_said() {
        a_key_takes_what_is_said_of::<Bn254>();
        a_key_takes_what_is_said_of::<Bls12_381>();
        let more = crate::fflonk::device_bytes(8) - device_bytes::<Bn254>(8);
        assert_eq!(more, 64 * (8 * 8 + 12));
    }
}
