//! Whole proofs on real GPUs: the same bytes as the CPU's where the blinding is the same, and a thousand of random
//! circuits that all verify. Where there is no GPU each test is passed over, or fails if `TANDEM_REQUIRE_GPU=1`.

#[path = "../../plonk/tests/support/mod.rs"]
mod plonk;

use ark_ec::short_weierstrass::{Affine, Projective, SWCurveConfig};
use ark_ff::UniformRand;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
// The provers on GPUs that it has compiled are not compiled again.
use tandem_engine as _;
use tandem_groth16::check::points_pass;
use tandem_groth16::setup::{setup, Secret};
use tandem_groth16::synthetic::Synthetic;
use tandem_groth16::{
    prove, prove_verified, Blinding, KeyView, Layout, OwnedKey, PreparedKey, Proof, ProvingKey, Request, Silent,
    Witness,
};
use tandem_ops::cpu::Cpu;
use tandem_ops::{Backend, Bls12_381, Bn254, Curve, CurveId, Group, ProofBackend, Stored};
use tandem_ops_cuda::Cuda;
use tandem_plonk::PlonkBackend;
use zeroize::Zeroizing;

/// The first GPU alone and, where there are more, all of them.
fn teams() -> Vec<Cuda> {
    let gpus = tandem_cuda::testing::gpus();
    let counts = [1, gpus.len()];
    let counts = if gpus.len() < 2 { &counts[..gpus.len()] } else { &counts[..] };
    counts.iter().map(|&n| Cuda::open(&gpus[..n]).unwrap()).collect()
}

fn below(rng: &mut ChaCha8Rng, end: usize) -> usize {
    rng.next_u32() as usize % end
}

/// A circuit with up to `most` constraints and any share of wires of full size; none and all are frequent.
fn circuit(rng: &mut ChaCha8Rng, most: usize) -> Synthetic {
    let constraints = 1 + below(rng, most);
    circuit_of(rng, constraints)
}

fn circuit_of(rng: &mut ChaCha8Rng, constraints: usize) -> Synthetic {
    let dense = (f64::from(rng.next_u32() % 121) / 100.0 - 0.1).clamp(0.0, 1.0);
    Synthetic { constraints, publics: below(rng, constraints.min(20)), dense }
}

fn key<C: Curve>(circuit: &Synthetic, rng: &mut ChaCha8Rng) -> OwnedKey<C> {
    let mut seed = [0; 32];
    rng.fill_bytes(&mut seed);
    let mut key = OwnedKey::default();
    setup::<C>(circuit, &Secret::from_seed(seed), &mut key, &Silent).unwrap();
    key
}

fn witness<C: Curve>(circuit: &Synthetic, rng: &mut ChaCha8Rng) -> Witness<C> {
    Witness::new(Zeroizing::new(circuit.witness::<C>(rng.next_u64()).unwrap())).unwrap()
}

fn proof<C: Curve, B: ProofBackend<C>>(
    backend: &B,
    key: &OwnedKey<C>,
    (layout, proofs): (Layout, u64),
    witness: &Witness<C>,
    blinding: &Blinding<C>,
) -> Proof<C> {
    let resident = ProvingKey::load(backend, &key.view().unwrap(), layout, proofs).unwrap();
    prove(backend, &resident, witness, blinding, &Request::silent()).unwrap()
}

fn bytes<C: Curve>(proof: &Proof<C>) -> Vec<u8> {
    [bytemuck::bytes_of(&proof.a), bytemuck::bytes_of(&proof.b), bytemuck::bytes_of(&proof.c)].concat()
}

fn gpus_make_the_proofs_of_the_cpu<C: Curve>(seed: u64)
where
    Cuda: ProofBackend<C>,
{
    let teams = teams();
    if teams.is_empty() {
        return;
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let cpu = Cpu::new(1);
    let mut circuits: Vec<_> = [1, 2, 3, 8, 30, 30, 300, 300, 5000, 40_000].map(|n| circuit(&mut rng, n)).to_vec();
    // Both sides of a power of two, all wires of full size, and bits alone.
    circuits.extend([(4095, 0, 1.0), (4096, 1, 0.0), (4097, 2, 0.5)].map(|(constraints, publics, dense)| Synthetic {
        constraints,
        publics,
        dense,
    }));
    for circuit in circuits {
        let key = key::<C>(&circuit, &mut rng);
        let witness = witness::<C>(&circuit, &mut rng);
        let (r, s) = (C::Fr::rand(&mut rng), C::Fr::rand(&mut rng));
        let expected = proof(&cpu, &key, (Layout::Auto, 1), &witness, &Blinding::fixed(r, s));
        let verifier = PreparedKey::new(&key.view().unwrap().verifying_key()).unwrap();
        verifier.verify(&witness.values()[1..=circuit.publics], &expected).unwrap();
        for team in &teams {
            for layout in [(Layout::Roles, 1), (Layout::Roles, 1_000_000), (Layout::Split, 100)] {
                let made = proof(team, &key, layout, &witness, &Blinding::fixed(r, s));
                assert_eq!(bytes(&made), bytes(&expected), "{circuit:?} on {} GPUs, {layout:?}", team.lanes());
            }
        }
    }
}

#[test]
fn gpus_make_the_proofs_of_the_cpu_on_bn254() {
    gpus_make_the_proofs_of_the_cpu::<Bn254>(1);
}

#[test]
fn gpus_make_the_proofs_of_the_cpu_on_bls12_381() {
    gpus_make_the_proofs_of_the_cpu::<Bls12_381>(2);
}

/// `keys` random circuits and ten proofs of each, with blinding from the operating system; returns how many verified, and how many of
/// those are of a circuit with 2^12 to 2^15 constraints, which every eighth is: larger transforms and sums.
fn random_proofs<C: Curve>(team: &Cuda, keys: usize, seed: u64) -> (usize, usize)
where
    Cuda: ProofBackend<C>,
{
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut verified, mut large) = (0, 0);
    for number in 0..keys {
        let circuit = if number % 8 == 7 {
            let least = 1 << (12 + number / 8 % 3);
            let constraints = least + below(&mut rng, least);
            circuit_of(&mut rng, constraints)
        } else {
            circuit(&mut rng, 600)
        };
        let key = key::<C>(&circuit, &mut rng);
        let view = key.view().unwrap();
        let verifier = PreparedKey::new(&view.verifying_key()).unwrap();
        let layout = [Layout::Roles, Layout::Split][below(&mut rng, 2)];
        // Points alone, tables, and tables with a point for each bit.
        let proofs = [1, 1000, 1_000_000][below(&mut rng, 3)];
        let resident = ProvingKey::<C, Cuda>::load(team, &view, layout, proofs).unwrap();
        for number in 0..10 {
            let mut witness = witness::<C>(&circuit, &mut rng);
            if number % 2 == 1 {
                // From memory of the team's own, whose copies are not waited for.
                let mut held = team.host_buf(witness.values().len()).unwrap();
                held.copy_from_slice(witness.values());
                witness = Witness::new(held).unwrap();
            }
            let blinding = Blinding::random().unwrap();
            let made = prove_verified(team, &resident, &verifier, &witness, &blinding, &Request::silent()).unwrap();
            assert_eq!(made.verdict, Ok(()), "proof {verified}, {circuit:?} on {} GPUs, {layout:?}", team.lanes());
            verified += 1;
            large += usize::from(circuit.constraints >= 1 << 12);
        }
    }
    (verified, large)
}

/// On all GPUs; nothing here tries a proof twice.
#[test]
fn a_thousand_proofs_of_random_circuits_verify() {
    let Some(team) = teams().pop() else { return };
    let (bn254, bls12_381) = (random_proofs::<Bn254>(&team, 50, 3), random_proofs::<Bls12_381>(&team, 50, 4));
    let (verified, large) = (bn254.0 + bls12_381.0, bn254.1 + bls12_381.1);
    println!("{verified} proofs on {} GPUs verified, {large} of them of large circuits", team.lanes());
    assert_eq!((verified, large), (1000, 120));
}

/// The host tells the lanes all of a proof and waits for nothing before: it is done with that long before they are.
#[test]
fn nothing_is_waited_for_until_all_is_told() {
    let Some(team) = teams().pop() else { return };
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let circuit = Synthetic { constraints: (1 << 18) - 2, publics: 1, dense: 1.0 };
    let key = key::<Bls12_381>(&circuit, &mut rng);
    let view = key.view().unwrap();
    let verifier = PreparedKey::new(&view.verifying_key()).unwrap();
    let resident = ProvingKey::<Bls12_381, Cuda>::load(&team, &view, Layout::Roles, 1).unwrap();
    let values = witness::<Bls12_381>(&circuit, &mut rng);
    let mut held = team.host_buf(values.values().len()).unwrap();
    held.copy_from_slice(values.values());
    let witness = Witness::new(held).unwrap();
    let shares = (0..6).map(|_| {
        let begun = std::time::Instant::now();
        let made =
            prove_verified(&team, &resident, &verifier, &witness, &Blinding::random().unwrap(), &Request::silent())
                .unwrap();
        assert_eq!(made.verdict, Ok(()));
        let told = made.host.iter().filter(|span| ["upload witness", "enqueue"].contains(&span.name));
        told.map(|span| span.seconds).sum::<f64>() / (made.ended - begun).as_secs_f64()
    });
    let least = shares.fold(1.0, f64::min);
    assert!(least < 0.5, "the host was busy telling for {least:.2} of a proof's time on {} GPUs", team.lanes());
}

fn gpus_make_the_plonk_proofs_of_the_cpu<C: Curve>()
where
    Cuda: PlonkBackend<C>,
{
    let gpus = tandem_cuda::testing::gpus();
    let counts = [1, 2, 3, 4, gpus.len()];
    let some = counts.into_iter().filter_map(|n| gpus.get(..n).filter(|gpus| !gpus.is_empty()));
    let teams: Vec<Cuda> = some.map(|gpus| Cuda::open(gpus).unwrap()).collect();
    if teams.is_empty() {
        return;
    }
    // Small keys are of one lane; split ones have columns, cosets and parts of the quotient on others. Those for many proofs sum by values.
    let ways = [(Layout::Auto, 1), (Layout::Split, 1), (Layout::Split, 1000)];
    let cpu = Cpu::new(1);
    for (constraints, publics, seed) in [(1, 0, 1), (2, 3, 2), (40, 5, 3), (300, 1, 4), (2000, 17, 5)] {
        let circuit = plonk::Random::<C>::new(constraints, publics, seed);
        let (key, witness, blinding) = (plonk::owned(&circuit), circuit.witness(), plonk::blinding());
        let view = key.view().unwrap();
        let verifier = tandem_plonk::PreparedKey::new(&view.verifying).unwrap();
        let request = Request::silent();
        let own = tandem_plonk::ProvingKey::load(&cpu, &view, Layout::Auto, 1).unwrap();
        let expected = tandem_plonk::prove_verified(&cpu, &own, &verifier, &witness, &blinding, &request).unwrap();
        for (cuda, (layout, proofs)) in teams.iter().flat_map(|cuda| ways.map(|way| (cuda, way))) {
            let what = format!("{constraints} constraints on {} GPUs, {layout:?}, {proofs} proofs", cuda.lanes());
            let own = tandem_plonk::ProvingKey::load(cuda, &view, layout, proofs).unwrap();
            let made = tandem_plonk::prove_verified(cuda, &own, &verifier, &witness, &blinding, &request).unwrap();
            assert_eq!(made.verdict, Ok(()), "{what}");
            assert!(made.proof == expected.proof, "{what}");
        }
    }
}

#[test]
fn plonk_on_bn254() {
    gpus_make_the_plonk_proofs_of_the_cpu::<Bn254>();
}

#[test]
fn plonk_on_bls12_381() {
    gpus_make_the_plonk_proofs_of_the_cpu::<Bls12_381>();
}

#[test]
fn gpus_make_the_fflonk_proofs_of_the_cpu() {
    use tandem_plonk::fflonk::{prove_verified, PreparedKey, ProvingKey};
    let cpu = Cpu::new(1);
    for (constraints, publics, seed) in [(1, 0, 1), (2, 3, 2), (40, 5, 3), (300, 1, 4), (2000, 17, 5)] {
        let circuit = plonk::Random::<Bn254>::new(constraints, publics, seed);
        let (key, verifying) = plonk::fflonk::made(&circuit);
        let view = plonk::fflonk::view(&key, &verifying);
        let (witness, blinding, request) = (circuit.witness(), plonk::blinding(), Request::silent());
        let verifier = PreparedKey::new(&verifying).unwrap();
        let own = ProvingKey::load(&cpu, &view, Layout::Auto, 1).unwrap();
        let expected = prove_verified(&cpu, &own, &verifier, &witness, &blinding, &request).unwrap();
        for cuda in &teams() {
            let what = format!("{constraints} constraints on {} GPUs", cuda.lanes());
            let own = ProvingKey::load(cuda, &view, Layout::Auto, 1).unwrap();
            let made = prove_verified(cuda, &own, &verifier, &witness, &blinding, &request).unwrap();
            assert_eq!(made.verdict, Ok(()), "{what}");
            assert!(made.proof.to_bytes() == expected.proof.to_bytes(), "{what}");
        }
    }
}

/// A curve's point with this x, which is in the subgroup by chance alone.
fn outside<P: SWCurveConfig, G: Group<Ark = Projective<P>>>(rng: &mut ChaCha8Rng) -> G::Point {
    loop {
        if let Some(point) = Affine::<P>::get_point_from_x_unchecked(P::BaseField::rand(rng), false) {
            return G::from_ark(&point);
        }
    }
}

/// Good keys pass, and one with a bad point in any section does not, wherever it lies.
fn gpus_check_keys_as_the_cpu_does<C: Curve, P1: SWCurveConfig, P2: SWCurveConfig>()
where
    C::G1: Group<Ark = Projective<P1>>,
    C::G2: Group<Ark = Projective<P2>>,
    Cuda: ProofBackend<C>,
{
    let mut rng = ChaCha8Rng::seed_from_u64(31);
    for constraints in [1, 6, 700, 5000] {
        let key = key::<C>(&Synthetic { constraints, publics: 0, dense: 0.5 }, &mut rng);
        let good = key.view().unwrap();
        for cuda in &teams() {
            let passes = |view: &KeyView<'_, C>| points_pass(cuda, view, &Silent).unwrap();
            assert!(passes(&good), "{constraints}");
            let last = good.b2.len() - 1;
            let b2: Vec<_> = good.b2.load().unwrap().values().iter().collect();
            for at in [0, last / 2, last] {
                for bad in [outside::<P2, C::G2>(&mut rng), b2[(at + 1) % (last + 1)]] {
                    let mut points = b2.clone();
                    points[at] = bad;
                    assert!(!passes(&KeyView { b2: points.as_slice().into(), ..good.clone() }), "B2 {at} of {last}");
                }
                if C::ID == CurveId::Bn254 {
                    continue;
                }
                let in_g1 = |section: Stored<'_, tandem_groth16::P1<C>>, point| {
                    let mut points: Vec<_> = section.load().unwrap().values().iter().collect();
                    points[at.min(section.len() - 1)] = point;
                    points
                };
                let (a, h, l) = (
                    in_g1(good.a, outside::<P1, C::G1>(&mut rng)),
                    in_g1(good.h, outside::<P1, C::G1>(&mut rng)),
                    in_g1(good.l, outside::<P1, C::G1>(&mut rng)),
                );
                assert!(!passes(&KeyView { a: a.as_slice().into(), ..good.clone() }), "A {at} of {last}");
                assert!(!passes(&KeyView { h: h.as_slice().into(), ..good.clone() }), "H {at} of {last}");
                assert!(!passes(&KeyView { l: l.as_slice().into(), ..good.clone() }), "L {at} of {last}");
            }
        }
    }
}

#[test]
fn keys_are_checked() {
    gpus_check_keys_as_the_cpu_does::<Bn254, _, _>();
    gpus_check_keys_as_the_cpu_does::<Bls12_381, _, _>();
}
