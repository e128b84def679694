//! Keys without matrices, whose H has powers of tau: against arkworks, whose keys and proofs are of this kind.

use crate::support::{arkworks_accepts, Outside};
use ark_ec::pairing::Pairing;
use ark_ec::AffineRepr;
use ark_ff::{AdditiveGroup, Field, UniformRand};
use ark_relations::gr1cs::{ConstraintSynthesizer, ConstraintSystemRef, LinearCombination, SynthesisError, Variable};
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tandem_groth16::powers::{evaluations, OwnedPowers};
use tandem_groth16::setup::{Circuit, Constraint, Secret, Terms};
use tandem_groth16::{
    check, prove, prove_verified, Blinding, Error, Evaluations, KeyPoints, Layout, PreparedKey, Proof, ProvingKey,
    Refusal, Request, Result, Shape, Silent, Witness, P1,
};
use tandem_ops::cpu::Cpu;
use tandem_ops::{Bls12_381, Bn254, Canonical, Curve, Group, HostBuf, Mont};
use zeroize::Zeroizing;

/// How many wires a side of the constraints names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Density {
    None,
    One,
    Few,
    All,
}

/// A random circuit with a witness.
#[derive(Clone)]
struct Random<C: Curve> {
    publics: usize,
    rows: Vec<Constraint<C>>,
    values: Vec<C::Fr>,
}

fn chosen(density: Density, wires: usize, rng: &mut ChaCha8Rng) -> Vec<u32> {
    let count = match density {
        Density::None => 0,
        Density::One => 1,
        Density::Few => wires.div_ceil(7),
        Density::All => wires,
    };
    let mut all: Vec<u32> = (0..wires as u32).collect();
    for i in (1..wires).rev() {
        all.swap(i, rng.next_u32() as usize % (i + 1));
    }
    all.truncate(count);
    all
}

impl<C: Curve> Random<C> {
    fn new(publics: usize, private: usize, rows: usize, [in_a, in_b]: [Density; 2], seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut values = vec![C::Fr::ONE];
        values.extend((0..publics + private).map(|_| match rng.next_u32() % 3 {
            0 => C::Fr::rand(&mut rng),
            _ => C::Fr::from(u64::from(rng.next_u32() % 2)),
        }));
        let known = values.len();
        let (in_a, in_b) = (chosen(in_a, known, &mut rng), chosen(in_b, known, &mut rng));
        let mut made = Random { publics, rows: Vec::new(), values };
        let terms = |wires: &[u32], rng: &mut ChaCha8Rng| -> Terms<C> {
            wires.iter().map(|&wire| (wire, C::Fr::from(u64::from(rng.next_u32() % 9 + 1)))).collect()
        };
        let some = |wires: &[u32], rng: &mut ChaCha8Rng| -> Vec<u32> {
            (0..3).filter_map(|_| wires.get(rng.next_u32() as usize % wires.len().max(1)).copied()).collect()
        };
        for row in 0..rows {
            let (a, b) = (some(&in_a, &mut rng), some(&in_b, &mut rng));
            let (a, b) = (terms(&a, &mut rng), terms(&b, &mut rng));
            // Each private wire is on some right side, with one that is on no other.
            let shown: Vec<u32> = (publics as u32 + 1..known as u32).skip(row).step_by(rows).collect();
            let mut c = terms(&shown, &mut rng);
            let out = made.sum(&a) * made.sum(&b) - made.sum(&c);
            c.push((made.values.len() as u32, C::Fr::ONE));
            made.values.push(out);
            made.rows.push(Constraint { a, b, c });
        }
        // All chosen wires are named.
        let (a, b) = (terms(&in_a, &mut rng), terms(&in_b, &mut rng));
        made.rows.push(Constraint { a, b: Vec::new(), c: Vec::new() });
        made.rows.push(Constraint { a: Vec::new(), b, c: Vec::new() });
        made
    }

    fn sum(&self, terms: &Terms<C>) -> C::Fr {
        terms.iter().map(|(wire, k)| self.values[*wire as usize] * k).sum()
    }

    fn canonical(&self) -> Vec<Canonical> {
        self.values.iter().map(|&x| C::canonical(x)).collect()
    }

    fn publics(&self) -> Vec<Canonical> {
        self.canonical()[1..=self.publics].to_vec()
    }

    fn witness(&self) -> Witness<C> {
        Witness::new(Zeroizing::new(self.canonical())).unwrap()
    }

    fn proving(&self) -> Witness<C> {
        self.witness().with_evaluations(evaluations(self, &self.canonical()).unwrap())
    }
}

impl<C: Curve> Circuit<C> for Random<C> {
    fn constraints(&self) -> usize {
        self.rows.len()
    }
    fn variables(&self) -> usize {
        self.values.len()
    }
    fn publics(&self) -> usize {
        self.publics
    }
    fn walk(&self, row: &mut dyn FnMut(&Constraint<C>) -> Result<()>) -> Result<()> {
        self.rows.iter().try_for_each(row)
    }
}

impl<C: Curve> ConstraintSynthesizer<C::Fr> for Random<C> {
    fn generate_constraints(self, cs: ConstraintSystemRef<C::Fr>) -> std::result::Result<(), SynthesisError> {
        let mut wires = vec![Variable::One];
        for (i, value) in self.values.iter().enumerate().skip(1) {
            let value = || Ok(*value);
            wires.push(if i <= self.publics { cs.new_input_variable(value)? } else { cs.new_witness_variable(value)? });
        }
        for row in &self.rows {
            let side = |terms: &Terms<C>| {
                let mut lc = LinearCombination::zero();
                for (wire, k) in terms {
                    lc += (*k, wires[*wire as usize]);
                }
                lc
            };
            let (a, b, c) = (side(&row.a), side(&row.b), side(&row.c));
            cs.enforce_r1cs_constraint(move || a.clone(), move || b.clone(), move || c.clone())?;
        }
        Ok(())
    }
}

type Ark<C> = ark_groth16::Groth16<<C as Curve>::Pairing>;

/// A key of arkworks without its points at infinity.
fn of_arkworks<C: Curve>(key: &ark_groth16::ProvingKey<C::Pairing>, shape: Shape) -> OwnedPowers<C> {
    let finite = |points: &[<C::Pairing as Pairing>::G1Affine]| -> Vec<P1<C>> {
        points.iter().filter(|p| !p.is_zero()).map(C::G1::from_ark).collect()
    };
    OwnedPowers {
        shape,
        points: KeyPoints {
            alpha1: C::G1::from_ark(&key.vk.alpha_g1),
            beta1: C::G1::from_ark(&key.beta_g1),
            beta2: C::G2::from_ark(&key.vk.beta_g2),
            gamma2: C::G2::from_ark(&key.vk.gamma_g2),
            delta1: C::G1::from_ark(&key.delta_g1),
            delta2: C::G2::from_ark(&key.vk.delta_g2),
        },
        ic: key.vk.gamma_abc_g1.iter().map(C::G1::from_ark).collect(),
        h: key.h_query.iter().map(C::G1::from_ark).collect(),
        l: key.l_query.iter().map(C::G1::from_ark).collect(),
        a: finite(&key.a_query),
        b1: finite(&key.b_g1_query),
        b2: key.b_g2_query.iter().filter(|p| !p.is_zero()).map(C::G2::from_ark).collect(),
    }
}

fn proof_on<C: Curve>(
    key: &OwnedPowers<C>,
    witness: &Witness<C>,
    (lanes, layout): (usize, Layout),
    blinding: &Blinding<C>,
) -> Proof<C> {
    let backend = Cpu::new(lanes);
    let resident = ProvingKey::load_powers(&backend, &key.view(), layout, 100).unwrap();
    prove(&backend, &resident, witness, blinding, &Request::silent()).unwrap()
}

const EACH: [Density; 4] = [Density::None, Density::One, Density::Few, Density::All];

fn proofs_are_those_of_arkworks<C: Curve>() {
    for (i, in_a) in EACH.into_iter().enumerate() {
        for (j, in_b) in EACH.into_iter().enumerate() {
            let (publics, private, rows) = ([0, 1, 2, 5][j], [1, 3, 40, 9][i], [1, 11, 60, 28][(i + j) % 4]);
            let circuit = Random::<C>::new(publics, private, rows, [in_a, in_b], (4 * i + j) as u64);
            let mut rng = ChaCha8Rng::seed_from_u64(9);
            let of_ark = Ark::<C>::generate_random_parameters_with_reduction(circuit.clone(), &mut rng).unwrap();
            let shape = tandem_groth16::setup::shape::<C>(&circuit).unwrap();
            let key = of_arkworks::<C>(&of_ark, shape);
            check::check_powers_points(&key.view(), &Silent).unwrap();
            assert!(check::powers_pass(&Cpu::new(1), &key.view(), &Silent).unwrap());
            for (r, s) in [(C::Fr::ZERO, C::Fr::ZERO), (C::Fr::rand(&mut rng), C::Fr::rand(&mut rng))] {
                let ark = Ark::<C>::create_proof_with_reduction(circuit.clone(), &of_ark, r, s).unwrap();
                let (a, c) = (C::G1::from_ark(&ark.a), C::G1::from_ark(&ark.c));
                let expected = Proof { a, b: C::G2::from_ark(&ark.b), c };
                let layouts = [(1, Layout::Auto), (2, Layout::Split), (3, Layout::Split), (4, Layout::Roles)];
                for laid_out in layouts {
                    let made = proof_on(&key, &circuit.proving(), laid_out, &Blinding::fixed(r, s));
                    assert!(made == expected, "A {in_a:?}, B {in_b:?} on {laid_out:?}");
                }
            }
        }
    }
}

#[test]
fn proofs_of_arkworks_keys_have_its_bytes() {
    proofs_are_those_of_arkworks::<Bls12_381>();
    proofs_are_those_of_arkworks::<Bn254>();
}

fn made<C: Curve>(circuit: &Random<C>) -> OwnedPowers<C> {
    OwnedPowers::make(circuit, &Secret::from_seed([3; 32]), &Silent).unwrap()
}

/// Keys of our own, on every number of lanes and in every layout, verified by us and by arkworks.
fn proofs_verify<C: Curve>() {
    for (publics, private, rows) in [(0, 1, 1), (0, 4, 2), (3, 5, 9), (1, 100, 62), (2, 100, 59), (40, 30, 30)] {
        let circuit = Random::<C>::new(publics, private, rows, [Density::All, Density::Few], rows as u64);
        let key = made(&circuit);
        check::check_powers_points(&key.view(), &Silent).unwrap();
        let verifying = key.view().verifying_key();
        let verifier = PreparedKey::new(&verifying).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let (r, s) = (C::Fr::rand(&mut rng), C::Fr::rand(&mut rng));
        let one = proof_on(&key, &circuit.proving(), (1, Layout::Auto), &Blinding::fixed(r, s));
        verifier.verify(&circuit.publics(), &one).unwrap();
        assert!(arkworks_accepts(&verifying, &circuit.publics(), &one));
        for lanes in 2..=8 {
            for layout in [Layout::Auto, Layout::Roles, Layout::Split] {
                let made = proof_on(&key, &circuit.proving(), (lanes, layout), &Blinding::fixed(r, s));
                assert!(made == one, "{rows} rows, {lanes} lanes, {layout:?}");
            }
        }
        let backend = Cpu::new(2);
        let resident = ProvingKey::load_powers(&backend, &key.view(), Layout::Auto, 1).unwrap();
        let random = Blinding::random().unwrap();
        let silent = Request::silent();
        let made = prove_verified(&backend, &resident, &verifier, &circuit.proving(), &random, &silent).unwrap();
        assert!(made.verdict.is_ok() && made.proof != one);
    }
}

#[test]
fn proofs_verify_on_any_number_of_lanes() {
    proofs_verify::<Bls12_381>();
    proofs_verify::<Bn254>();
}

/// A witness that does not satisfy the circuit has a proof that fails its check.
#[test]
fn wrong_values_make_no_proof() {
    type C = Bls12_381;
    let circuit = Random::<C>::new(2, 20, 13, [Density::All, Density::All], 4);
    let (key, backend) = (made(&circuit), Cpu::new(1));
    let verifier = PreparedKey::new(&key.view().verifying_key()).unwrap();
    let resident = ProvingKey::load_powers(&backend, &key.view(), Layout::Auto, 1).unwrap();
    let random = Blinding::random().unwrap();
    let verdict = |witness: &Witness<C>| {
        prove_verified(&backend, &resident, &verifier, witness, &random, &Request::silent()).unwrap().verdict
    };
    assert_eq!(verdict(&circuit.proving()), Ok(()));
    for wire in [1, 3, circuit.values.len() - 1] {
        let mut wrong = circuit.clone();
        wrong.values[wire] += <C as Curve>::Fr::ONE;
        assert_eq!(verdict(&wrong.proving()), Err(Refusal::Equation), "wire {wire}");
    }
}

fn error_of(result: Result<impl Sized>) -> String {
    match result {
        Ok(_) => panic!("was accepted"),
        Err(Error::Witness(text) | Error::Key(text) | Error::Circuit(text)) => text,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn what_a_witness_brings_is_compared_with_the_key() {
    type C = Bls12_381;
    let circuit = Random::<C>::new(2, 20, 13, [Density::Few, Density::Few], 4);
    let (key, backend) = (made(&circuit), Cpu::new(1));
    let resident = ProvingKey::load_powers(&backend, &key.view(), Layout::Auto, 1).unwrap();
    let random = Blinding::random().unwrap();
    let told = |witness: Witness<C>| error_of(prove(&backend, &resident, &witness, &random, &Request::silent()));
    assert!(told(circuit.witness()).contains("the key has no matrices"));

    let good = evaluations::<C>(&circuit, &circuit.canonical()).unwrap();
    let (in_a, in_b) = (good.named_in_a().to_vec(), good.named_in_b().to_vec());
    let rows = good.a().len();
    let buf = |from: &[Mont], len: usize| {
        let mut to = HostBuf::<Mont>::zeros(len).unwrap();
        to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        to
    };
    let with = |rows: usize, in_a: Vec<u32>, in_b: Vec<u32>| {
        Evaluations::<C>::check(buf(good.a(), rows), buf(good.b(), rows), in_a, in_b)
    };
    let of = |rows, in_a, in_b| told(circuit.witness().with_evaluations(with(rows, in_a, in_b).unwrap()));
    let domain = key.shape.domain;
    assert!(of(domain + 1, in_a.clone(), in_b.clone()).contains(&format!("{} rows", domain + 1)));
    let fewer = |of: &[u32]| of[..of.len() - 1].to_vec();
    assert!(of(rows, fewer(&in_a), in_b.clone()).contains("named in A"));
    assert!(of(rows, in_a.clone(), fewer(&in_b)).contains("named in B"));
    let mut far = in_b.clone();
    *far.last_mut().unwrap() = circuit.values.len() as u32;
    assert!(of(rows, in_a.clone(), far).contains("none of the circuit's"));
    // As many wires in A, but not all the public ones.
    let free = (0..circuit.values.len() as u32).find(|wire| !in_a.contains(wire)).unwrap();
    let mut other: Vec<u32> = in_a.iter().copied().filter(|&wire| wire != 1).chain([free]).collect();
    other.sort_unstable();
    assert!(of(rows, other, in_b.clone()).contains("public wires"));

    // What no key could take.
    let a_row_more = Evaluations::<C>::check(buf(good.a(), rows), buf(good.b(), rows + 1), vec![], vec![]);
    assert!(error_of(a_row_more).contains("expected as many"));
    let mut large = buf(good.a(), rows);
    large[3] = Mont([u64::MAX; 4]);
    assert!(error_of(Evaluations::<C>::check(large, buf(good.b(), rows), vec![], vec![])).contains("row 3 of a"));
    assert!(error_of(with(rows, vec![0, 2, 2], vec![])).contains("number 2 is not above"));
    assert!(error_of(with(rows, vec![], vec![5, 1])).contains("points in B"));
    assert!(error_of(evaluations::<C>(&circuit, &circuit.canonical()[1..])).contains("the circuit has"));
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    type C = Bls12_381;
    let circuit = Random::<C>::new(2, 20, 13, [Density::All, Density::Few], 4);
    let key = made(&circuit);
    let good = key.view();
    let least = |view: tandem_groth16::PowersView<'_, C>| {
        error_of(ProvingKey::load_powers(&Cpu::new(1), &view, Layout::Auto, 1))
    };
    let cut = |s: tandem_ops::Stored<'_, P1<C>>| s.len() - 1;
    let mut view = good.clone();
    view.h = good.h.slice(0..cut(good.h));
    assert!(least(view).starts_with("H: "));
    let mut view = good.clone();
    view.l = good.l.slice(0..cut(good.l));
    assert!(least(view).starts_with("L: "));
    let mut view = good.clone();
    view.b2 = good.b2.slice(0..good.b2.len() - 1);
    assert!(least(view).starts_with("B2: "));
    let mut view = good.clone();
    view.a = good.a.slice(0..2);
    assert!(least(view).starts_with("A: 2; expected 3 to"));
    let mut view = good.clone();
    view.shape.domain = 3;
    assert!(least(view).contains("power of two"));
    let mut view = good.clone();
    view.shape.domain = 1 << 32;
    assert!(least(view).contains("up to 2^31"));
    let mut view = good.clone();
    view.ic = good.ic.slice(0..2);
    assert!(least(view).starts_with("IC: "));
}

#[test]
fn each_section_is_checked() {
    type C = Bls12_381;
    let circuit = Random::<C>::new(2, 20, 13, [Density::All, Density::Few], 4);
    let (outside1, outside2) = (C::outside1().unwrap(), C::outside2());
    let infinity = <C as Curve>::G1::from_ark(&Default::default());
    let told = |change: &dyn Fn(&mut OwnedPowers<C>)| {
        let mut key = made(&circuit);
        change(&mut key);
        let view = key.view();
        // By sums on lanes, too.
        match check::powers_pass(&Cpu::new(2), &view, &Silent) {
            Ok(passes) => assert!(!passes),
            Err(refused) => assert!(matches!(refused, Error::Key(_)), "{refused}"),
        }
        error_of(check::check_powers_points(&view, &Silent))
    };
    assert!(check::powers_pass(&Cpu::new(2), &made(&circuit).view(), &Silent).unwrap());
    type Section = fn(&mut OwnedPowers<C>) -> &mut Vec<P1<C>>;
    let g1: [(&str, Section); 5] = [
        ("IC", |key| &mut key.ic),
        ("H", |key| &mut key.h),
        ("L", |key| &mut key.l),
        ("A", |key| &mut key.a),
        ("B1", |key| &mut key.b1),
    ];
    for (name, of) in g1 {
        let message = told(&|key| of(key)[1] = outside1);
        assert!(message.contains(&format!("point 1 of section {name}")), "{message}");
        let message = told(&|key| of(key)[1] = infinity);
        assert!(message.contains(&format!("section {name}")) || name == "B1", "{message}");
    }
    assert!(told(&|key| key.b2[1] = outside2).contains("point 1 of section B2"));
    // B is another in G2, in a group that its generators do not tell.
    assert!(told(&|key| key.b2.swap(0, 1)).contains("do not belong together"));
    assert!(told(&|key| key.points.beta1 = key.points.alpha1).contains("beta and delta"));
    assert!(told(&|key| key.points.delta1 = infinity).contains("delta"));
}

/// bellperson draws generators of its own: all points of a group are then multiples of another point.
#[test]
fn keys_over_other_generators_are_good() {
    type C = Bls12_381;
    let circuit = Random::<C>::new(1, 9, 5, [Density::All, Density::All], 8);
    let mut key = made(&circuit);
    let (k, m) = (<C as Curve>::Fr::from(0x1234_5677u64), <C as Curve>::Fr::from(0x89ab_cdefu64));
    let g1 = |p: &mut P1<C>| *p = <C as Curve>::G1::from_ark(&(<C as Curve>::G1::to_ark(p) * k).into());
    let g2 = |p: &mut tandem_groth16::P2<C>| *p = <C as Curve>::G2::from_ark(&(<C as Curve>::G2::to_ark(p) * m).into());
    let OwnedPowers { points, ic, h, l, a, b1, b2, .. } = &mut key;
    [ic, h, l, a, b1].into_iter().flatten().for_each(g1);
    b2.iter_mut().for_each(g2);
    [&mut points.alpha1, &mut points.beta1, &mut points.delta1].into_iter().for_each(g1);
    [&mut points.beta2, &mut points.gamma2, &mut points.delta2].into_iter().for_each(g2);
    check::check_powers_points(&key.view(), &Silent).unwrap();
    let verifying = key.view().verifying_key();
    let random = Blinding::random().unwrap();
    let proof = proof_on(&key, &circuit.proving(), (2, Layout::Split), &random);
    PreparedKey::new(&verifying).unwrap().verify(&circuit.publics(), &proof).unwrap();
    assert!(arkworks_accepts(&verifying, &circuit.publics(), &proof));
}

/// r and s that come with a witness are those of its proof.
#[test]
fn given_blinding_is_used() {
    type C = Bls12_381;
    let circuit = Random::<C>::new(1, 9, 5, [Density::All, Density::All], 8);
    let key = made(&circuit);
    let (r, s) = (<C as Curve>::Fr::from(5u64), <C as Curve>::Fr::from(6u64));
    let given = evaluations::<C>(&circuit, &circuit.canonical()).unwrap().with_blinding(r, s);
    let witness = circuit.witness().with_evaluations(given);
    let of = |blinding: &Blinding<C>| proof_on(&key, &witness, (1, Layout::Auto), blinding);
    assert!(of(&Blinding::of(&witness).unwrap()) == of(&Blinding::fixed(r, s)));
    assert!(of(&Blinding::of(&circuit.proving()).unwrap()) != of(&Blinding::fixed(r, s)));
}
