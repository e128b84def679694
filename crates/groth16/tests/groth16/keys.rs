//! Keys: what makes one, and damage to every part of one that is refused.

use crate::support::{infinity, key, multiple, Outside};
use tandem_groth16::check::{self, Fault};
use tandem_groth16::setup::{setup, Circuit, Constraint, Entry, KeySink, Part, Secret};
use tandem_groth16::synthetic::Synthetic;
use tandem_groth16::{
    Error, KeyPoints, KeyView, Layout, OwnedKey, PreparedKey, ProvingKey, Result, Shape, Silent, VerifyingKey, P1, P2,
};
use tandem_ops::cpu::Cpu;
use tandem_ops::{Bls12_381, Bn254, Curve, SparseRows, Stored, Wire};

/// A key's parts, to be damaged.
#[derive(Clone)]
struct Parts<C: Curve> {
    shape: Shape,
    points: KeyPoints<C>,
    matrices: [SparseRows; 2],
    /// IC, A, B1, L and H.
    g1: [Vec<P1<C>>; 5],
    b2: Vec<P2<C>>,
}

/// The names of the sections in G1, as errors have them.
const NAMES: [&str; 5] = ["IC (3)", "A (5)", "B1 (6)", "C (8)", "H (9)"];
const B1: usize = 2;

fn all<P: Wire>(section: Stored<'_, P>) -> Vec<P> {
    section.load().unwrap().values().iter().collect()
}

impl<C: Curve> Parts<C> {
    fn of(key: &OwnedKey<C>) -> Self {
        let view = key.view().unwrap();
        Self {
            shape: view.shape,
            points: view.points.clone(),
            matrices: [view.matrix_a.clone(), view.matrix_b.clone()],
            g1: [view.ic.into(), view.a, view.b1, view.l, view.h].map(all),
            b2: all(view.b2),
        }
    }

    fn view(&self) -> KeyView<'_, C> {
        let [ic, a, b1, l, h] = self.g1.each_ref().map(Vec::as_slice);
        KeyView {
            shape: self.shape,
            points: self.points.clone(),
            ic: ic.into(),
            matrix_a: &self.matrices[0],
            matrix_b: &self.matrices[1],
            a: a.into(),
            b1: b1.into(),
            b2: self.b2.as_slice().into(),
            l: l.into(),
            h: h.into(),
        }
    }

    /// What the full check says of it. The one with sums on lanes has the same verdict.
    #[track_caller]
    fn check(&self) -> Option<String> {
        let said = check::check_points(&self.view(), &Silent).err().map(|e| e.to_string());
        match check::points_pass(&Cpu::new(2), &self.view(), &Silent) {
            Ok(passes) => assert_eq!(passes, said.is_none(), "{said:?}"),
            Err(Error::Key(error)) => assert_eq!(said.as_deref(), Some(error.as_str())),
            Err(error) => panic!("{error}"),
        }
        said
    }

    /// What each load says of it.
    fn load(&self) -> Option<String> {
        let loaded = ProvingKey::load(&Cpu::new(1), &self.view(), Layout::Auto, 1);
        loaded.err().map(|e| {
            assert!(matches!(e, Error::Key(_)), "{e}");
            e.to_string()
        })
    }

    /// What both say of it with a change.
    #[track_caller]
    fn refused(&self, change: impl FnOnce(&mut Self), expected: &str) {
        let mut bad = self.clone();
        change(&mut bad);
        assert_eq!(bad.check().as_deref(), Some(expected));
        assert_eq!(bad.load().as_deref(), Some(expected));
    }

    /// What the full check says of it with a change. Such a key is loaded: nobody checks that each time.
    #[track_caller]
    fn unsound(&self, change: impl FnOnce(&mut Self), expected: &str) {
        let mut bad = self.clone();
        change(&mut bad);
        assert_eq!(bad.check().as_deref(), Some(expected));
    }
}

fn off_curve<T: tandem_ops::Wire>(mut point: T) -> T {
    bytemuck::bytes_of_mut(&mut point)[3] ^= 4;
    point
}

fn beyond<T: tandem_ops::Wire>(mut point: T) -> T {
    bytemuck::bytes_of_mut(&mut point).fill(0xff);
    point
}

/// Every point of every section in turn.
fn damaged_sections_are_refused<C: Outside>() {
    let circuit = Synthetic { constraints: 6, publics: 1, dense: 0.5 };
    let good = Parts::<C>::of(&key(circuit));
    assert_eq!((good.check(), good.load()), (None, None));
    let finite = |point: &P1<C>| *point != infinity::<C::G1>();
    for (section, name) in NAMES.into_iter().enumerate() {
        for at in 0..good.g1[section].len() {
            let says = |fault: &str| format!("point {at} of section {name} {fault}");
            let point = good.g1[section][at];
            let with = |point| move |bad: &mut Parts<C>| bad.g1[section][at] = point;
            good.unsound(with(off_curve(multiple::<C::G1>(5))), &says("is not on the curve"));
            good.unsound(with(beyond(point)), &says("has a coordinate that is not below the modulus"));
            if let Some(outside) = C::outside1() {
                good.unsound(with(outside), &says("is not in the subgroup of prime order"));
            }
            let other = if finite(&point) { infinity::<C::G1>() } else { multiple::<C::G1>(5) };
            let apart = format!("point {at} of section B1 (6) and point {at} of section B2 (7) do not belong together");
            match section {
                B1 => good.unsound(with(other), &apart),
                _ if finite(&point) => {
                    good.unsound(with(other), &says("is the point at infinity, but the circuit uses its wire"));
                }
                _ => good
                    .unsound(with(other), &says("is not the point at infinity, but the circuit does not use its wire")),
            }
        }
    }
    for at in 0..good.b2.len() {
        let says = |fault: &str| format!("point {at} of section B2 (7) {fault}");
        let with = |point| move |bad: &mut Parts<C>| bad.b2[at] = point;
        good.unsound(with(off_curve(multiple::<C::G2>(5))), &says("is not on the curve"));
        good.unsound(with(beyond(good.b2[at])), &says("has a coordinate that is not below the modulus"));
        good.unsound(with(C::outside2()), &says("is not in the subgroup of prime order"));
        let apart = format!("point {at} of section B1 (6) and point {at} of section B2 (7) do not belong together");
        good.unsound(with(multiple::<C::G2>(5)), &apart);
        // In both groups at once.
        let both = |k: Option<u64>| {
            move |bad: &mut Parts<C>| {
                bad.b2[at] = k.map_or_else(infinity::<C::G2>, multiple::<C::G2>);
                bad.g1[B1][at] = k.map_or_else(infinity::<C::G1>, multiple::<C::G1>);
            }
        };
        let of_b1 = |fault: &str| format!("point {at} of section B1 (6) {fault}");
        if finite(&good.g1[B1][at]) {
            good.unsound(both(None), &of_b1("is the point at infinity, but the circuit uses its wire"));
        } else {
            good.unsound(both(Some(5)), &of_b1("is not the point at infinity, but the circuit does not use its wire"));
        }
    }
}

#[test]
fn every_point_of_every_section() {
    damaged_sections_are_refused::<Bn254>();
    damaged_sections_are_refused::<Bls12_381>();
}

/// Whole sections at infinity.
fn emptied_sections_are_refused<C: Outside>() {
    let good = Parts::<C>::of(&key(Synthetic { constraints: 6, publics: 1, dense: 0.5 }));
    for (section, name) in NAMES.into_iter().enumerate() {
        let mut bad = good.clone();
        bad.g1[section].fill(infinity::<C::G1>());
        if section == B1 {
            assert!(bad.check().unwrap().contains("B1 (6) and point"));
            bad.b2.fill(infinity::<C::G2>());
        }
        let said = bad.check().unwrap();
        assert!(said.contains(&format!("section {name} is the point at infinity")), "{said}");
    }
}

#[test]
fn every_section_at_infinity() {
    emptied_sections_are_refused::<Bn254>();
    emptied_sections_are_refused::<Bls12_381>();
}

/// A point that belongs to no wire: of a key.
type Single<C, P> = (&'static str, fn(&mut KeyPoints<C>) -> &mut P);

fn damaged_points_are_refused<C: Outside>() {
    let good = Parts::<C>::of(&key(Synthetic { constraints: 6, publics: 1, dense: 0.5 }));
    let singles1: [Single<C, P1<C>>; 3] =
        [("alpha", |p| &mut p.alpha1), ("beta", |p| &mut p.beta1), ("delta", |p| &mut p.delta1)];
    let singles2: [Single<C, P2<C>>; 3] =
        [("beta", |p| &mut p.beta2), ("gamma", |p| &mut p.gamma2), ("delta", |p| &mut p.delta2)];
    let apart = |name: &str| {
        format!(
            "point {name} in G1 and point {name} in G2 do not belong together; take the key again from where it was made"
        )
    };
    for (name, of) in singles1 {
        let point = multiple::<C::G1>(5);
        for (point, fault) in [
            (Some(off_curve(point)), "is not on the curve"),
            (Some(beyond(point)), "has a coordinate that is not below the modulus"),
            (C::outside1(), "is not in the subgroup of prime order"),
            (Some(infinity::<C::G1>()), "is the point at infinity"),
        ] {
            let Some(point) = point else { continue };
            good.refused(|bad| *of(&mut bad.points) = point, &format!("point {name} in G1 {fault}"));
        }
        if name != "alpha" {
            good.refused(|bad| *of(&mut bad.points) = point, &apart(name));
        }
    }
    for (name, of) in singles2 {
        let point = multiple::<C::G2>(5);
        for (point, fault) in [
            (off_curve(point), "is not on the curve"),
            (beyond(point), "has a coordinate that is not below the modulus"),
            (C::outside2(), "is not in the subgroup of prime order"),
            (infinity::<C::G2>(), "is the point at infinity"),
        ] {
            good.refused(|bad| *of(&mut bad.points) = point, &format!("point {name} in G2 {fault}"));
        }
        if name != "gamma" {
            good.refused(|bad| *of(&mut bad.points) = point, &apart(name));
        }
    }
}

#[test]
fn every_point_that_belongs_to_no_wire() {
    damaged_points_are_refused::<Bn254>();
    damaged_points_are_refused::<Bls12_381>();
}

#[test]
fn every_size() {
    let good = Parts::<Bn254>::of(&key(Synthetic { constraints: 6, publics: 1, dense: 0.5 }));
    let Shape { variables, publics, domain } = good.shape;
    assert_eq!((variables, publics, domain), (8, 1, 8));
    for (section, (name, has)) in [("IC", 2), ("A", 8), ("B1", 8), ("L", 6), ("H", 8)].into_iter().enumerate() {
        let cut = |bad: &mut Parts<_>| _ = bad.g1[section].pop();
        good.refused(cut, &format!("{name}: {}; expected {has}", has - 1));
        let grown = |bad: &mut Parts<_>| bad.g1[section].push(multiple::<<Bn254 as Curve>::G1>(1));
        good.refused(grown, &format!("{name}: {}; expected {has}", has + 1));
    }
    good.refused(|bad| _ = bad.b2.pop(), "B2: 7; expected 8");
    good.refused(|bad| bad.b2.push(multiple::<<Bn254 as Curve>::G2>(1)), "B2: 9; expected 8");
    for (matrix, name) in ["A", "B"].into_iter().enumerate() {
        let columns = |bad: &mut Parts<_>| bad.matrices[matrix].columns += 1;
        good.refused(columns, &format!("columns of matrix {name}: 9; expected 8"));
        let rows = |bad: &mut Parts<_>| {
            let rows = &mut bad.matrices[matrix];
            rows.starts.resize(10, rows.column.len() as u32);
        };
        good.refused(rows, &format!("matrix {name} has 9 rows; the domain has 8"));
    }
    let domain = |domain| move |bad: &mut Parts<Bn254>| bad.shape.domain = domain;
    for wrong in [0, 7, 1 << 29] {
        good.refused(domain(wrong), &format!("domain of {wrong} rows; expected a power of two up to 2^28"));
    }
    good.refused(domain(16), "H: 8; expected 16");
    good.refused(|bad| bad.shape.variables = 0, "1 public wires of 0 wires");
    good.refused(|bad| bad.shape.publics = 8, "8 public wires of 8 wires");
    good.refused(|bad| bad.shape.publics = 7, "IC: 2; expected 8");
}

/// `constraints` are enough for sections to be checked by random sums.
fn bad_points_are_found<C: Outside>(constraints: usize) {
    let good = Parts::<C>::of(&key(Synthetic { constraints, publics: 0, dense: 0.5 }));
    assert_eq!(good.check(), None);
    for at in [0, constraints / 2, constraints + 1] {
        let says = format!("point {at} of section B1 (6) is not on the curve");
        good.unsound(|bad| bad.g1[B1][at] = off_curve(bad.g1[B1][at]), &says);
    }
    let at = constraints - 1;
    let says = format!("point {at} of section B2 (7) is not in the subgroup of prime order");
    good.unsound(|bad| bad.b2[at] = C::outside2(), &says);
    let says = format!("point {at} of section B1 (6) and point {at} of section B2 (7) do not belong together");
    good.unsound(|bad| bad.b2[at] = multiple::<C::G2>(3), &says);
    if let Some(outside) = C::outside1() {
        let says = "point 5 of section H (9) is not in the subgroup of prime order";
        good.unsound(|bad| bad.g1[4][5] = outside, says);
    }
}

#[test]
fn bad_points_of_a_bn254_key_are_found() {
    // Two chunks.
    bad_points_are_found::<Bn254>(17_000);
}

#[test]
fn bad_points_of_a_bls12_381_key_are_found() {
    bad_points_are_found::<Bls12_381>(2000);
}

/// Says stop from the first question on.
struct Stop;

impl tandem_groth16::Progress for Stop {
    fn cancelled(&self) -> bool {
        true
    }
}

#[test]
fn a_check_can_be_stopped() {
    let good = Parts::<Bn254>::of(&key(Synthetic { constraints: 6, publics: 1, dense: 0.5 }));
    assert!(matches!(check::check_points(&good.view(), &Stop), Err(Error::Interrupted)));
    assert!(matches!(check::points_pass(&Cpu::new(1), &good.view(), &Stop), Err(Error::Interrupted)));
}

/// A field of a verification key.
type Field<C, P> = (&'static str, fn(&mut VerifyingKey<C>) -> &mut P);

fn damaged_verification_keys_are_refused<C: Outside>() {
    let key = key::<C>(Synthetic { constraints: 6, publics: 2, dense: 0.5 });
    let good = key.view().unwrap().verifying_key();
    PreparedKey::new(&good).unwrap();
    let refused = |bad: VerifyingKey<C>, expected: String| match PreparedKey::new(&bad) {
        Err(Error::Key(said)) => assert_eq!(said, expected),
        _ => panic!("not refused: {expected}"),
    };
    let fields1: [Field<C, P1<C>>; 4] = [
        ("alpha", |k| &mut k.alpha1),
        ("IC[0]", |k| &mut k.ic[0]),
        ("IC[1]", |k| &mut k.ic[1]),
        ("IC[2]", |k| &mut k.ic[2]),
    ];
    let fields2: [Field<C, P2<C>>; 3] =
        [("beta", |k| &mut k.beta2), ("gamma", |k| &mut k.gamma2), ("delta", |k| &mut k.delta2)];
    for (name, of) in fields1 {
        let point = multiple::<C::G1>(5);
        let infinite = (name == "alpha").then(infinity::<C::G1>);
        for (point, fault) in [
            (Some(off_curve(point)), Fault::Curve),
            (Some(beyond(point)), Fault::Range),
            (C::outside1(), Fault::Subgroup),
            (infinite, Fault::Infinity),
        ] {
            let mut bad = good.clone();
            let Some(point) = point else { continue };
            *of(&mut bad) = point;
            refused(bad, format!("point {name} {fault}"));
        }
    }
    for (name, of) in fields2 {
        let point = multiple::<C::G2>(5);
        for (point, fault) in [
            (off_curve(point), Fault::Curve),
            (beyond(point), Fault::Range),
            (C::outside2(), Fault::Subgroup),
            (infinity::<C::G2>(), Fault::Infinity),
        ] {
            let mut bad = good.clone();
            *of(&mut bad) = point;
            refused(bad, format!("point {name} {fault}"));
        }
    }
    let none = VerifyingKey { ic: vec![], ..good.clone() };
    refused(none, "the verification key has no IC point".into());
}

#[test]
fn every_field_of_a_verification_key() {
    damaged_verification_keys_are_refused::<Bn254>();
    damaged_verification_keys_are_refused::<Bls12_381>();
}

/// Rows with entries that are zero, that cancel each other, and wires that occur on few sides.
struct Odd;

impl<C: Curve> Circuit<C> for Odd {
    fn constraints(&self) -> usize {
        3
    }
    fn variables(&self) -> usize {
        9
    }
    fn publics(&self) -> usize {
        1
    }
    fn walk(&self, row: &mut dyn FnMut(&Constraint<C>) -> Result<()>) -> Result<()> {
        let fr = |k: u64| C::Fr::from(k);
        let minus = -fr(1);
        // Wire 2 cancels in A, 3 is there with zero, 4 in C alone, 5 nowhere, 6 twice and does not cancel, 7 cancels in one row of B and
        // not in the next, 8 three times.
        row(&Constraint {
            a: vec![(2, fr(1)), (2, minus), (3, fr(0))],
            b: vec![(7, fr(1)), (7, minus)],
            c: vec![(4, fr(1))],
        })?;
        row(&Constraint { a: vec![(6, fr(1)), (6, fr(1))], b: vec![(7, fr(1)), (3, fr(0))], c: vec![(1, fr(1))] })?;
        row(&Constraint { a: vec![(0, fr(1))], b: vec![(8, fr(1)), (8, minus), (8, fr(1))], c: vec![] })
    }
}

/// Honest keys of odd circuits are not taken for forged ones.
#[test]
fn infinity_where_entries_cancel_is_no_damage() {
    let good = Parts::<Bn254>::of(&key::<Bn254>(Odd));
    assert_eq!((good.check(), good.load()), (None, None));
    let infinite: Vec<Vec<usize>> = good.g1[1..4]
        .iter()
        .map(|s| (0..s.len()).filter(|&i| s[i] == infinity::<<Bn254 as Curve>::G1>()).collect())
        .collect();
    // Section L begins with wire 2.
    assert_eq!(infinite, [vec![2, 3, 4, 5, 7, 8], vec![0, 1, 2, 3, 4, 5, 6], vec![0, 1, 3]]);
    let other = multiple::<<Bn254 as Curve>::G1>(5);
    // Wire 7 is in B alone.
    let says = "point 5 of section C (8) is the point at infinity, but the circuit uses its wire";
    good.unsound(|bad| bad.g1[3][5] = infinity::<<Bn254 as Curve>::G1>(), says);
    for at in [4, 5, 7, 8] {
        let says =
            format!("point {at} of section A (5) is not the point at infinity, but the circuit does not use its wire");
        good.unsound(|bad| bad.g1[1][at] = other, &says);
    }
}

/// A circuit that may say what it is not.
#[derive(Clone, Copy)]
struct Lying {
    constraints: usize,
    variables: usize,
    publics: usize,
    /// Rows that come.
    rows: usize,
    /// The wire that they name on the given side, 0 to 2.
    wire: (usize, u32),
}

impl<C: Curve> Circuit<C> for Lying {
    fn constraints(&self) -> usize {
        self.constraints
    }
    fn variables(&self) -> usize {
        self.variables
    }
    fn publics(&self) -> usize {
        self.publics
    }
    fn walk(&self, row: &mut dyn FnMut(&Constraint<C>) -> Result<()>) -> Result<()> {
        let mut sides =
            [0, 1, 2].map(|side| vec![(if side == self.wire.0 { self.wire.1 } else { 1 }, C::Fr::from(1u64))]);
        let constraint = Constraint {
            a: std::mem::take(&mut sides[0]),
            b: std::mem::take(&mut sides[1]),
            c: std::mem::take(&mut sides[2]),
        };
        (0..self.rows).try_for_each(|_| row(&constraint))
    }
}

#[test]
fn circuits_that_lie() {
    let good = Lying { constraints: 5, variables: 4, publics: 1, rows: 5, wire: (0, 3) };
    let said = |circuit: Lying| {
        let made = setup::<Bn254>(&circuit, &Secret::from_seed([7; 32]), &mut OwnedKey::default(), &Silent);
        made.err().map(|e| {
            assert!(matches!(e, Error::Circuit(_)), "{e}");
            e.to_string()
        })
    };
    let refused = |circuit, expected: &str| assert_eq!(said(circuit).as_deref(), Some(expected));
    assert_eq!(said(good), None);
    refused(Lying { constraints: 0, rows: 0, ..good }, "the circuit has no constraint");
    refused(Lying { publics: 4, ..good }, "the circuit has 4 public wires of 4 wires");
    refused(Lying { variables: 0, publics: 0, ..good }, "the circuit has 0 public wires of 0 wires");
    let most = 1usize << 27;
    refused(
        Lying { constraints: most - 1, ..good },
        &format!("the circuit needs {} rows; a key for bn254 has at most 2^27", most + 1),
    );
    refused(
        Lying { constraints: usize::MAX, ..good },
        &format!("the circuit needs {} rows; a key for bn254 has at most 2^27", usize::MAX),
    );
    refused(Lying { rows: 4, ..good }, "4 constraints; the circuit says 5");
    refused(Lying { rows: 6, ..good }, "6 constraints; the circuit says 5");
    refused(Lying { rows: 9, ..good }, "more constraints than the circuit says");
    for side in 0..3 {
        let expected = "constraint 0 has wire 4; the circuit has 4 wires";
        refused(Lying { wire: (side, 4), ..good }, expected);
    }
}

/// The entries of a key.
#[derive(Default)]
struct Entries(Vec<Entry>, Option<u32>);

impl<C: Curve> KeySink<C> for Entries {
    fn header(&mut self, _: Shape, _: &KeyPoints<C>) -> Result<()> {
        Ok(())
    }
    fn begin(&mut self, part: Part) -> Result<()> {
        if let Part::Entries { count } = part {
            self.1 = Some(count);
        }
        Ok(())
    }
    fn entries(&mut self, entries: &[Entry]) -> Result<()> {
        self.0.extend_from_slice(entries);
        Ok(())
    }
    fn points1(&mut self, _: &[P1<C>]) -> Result<()> {
        Ok(())
    }
    fn points2(&mut self, _: &[P2<C>]) -> Result<()> {
        Ok(())
    }
}

/// Without these rows proofs still verify, but anyone can make another public value of a proof's that no constraint
/// of A or B names.
fn public_wires_are_bound<C: Curve>() {
    for publics in [0, 1, 3] {
        let constraints = 6;
        let circuit = Synthetic { constraints, publics, dense: 0.5 };
        let mut sink = Entries::default();
        setup::<C>(&circuit, &Secret::from_seed([7; 32]), &mut sink, &Silent).unwrap();
        let Entries(entries, count) = sink;
        assert_eq!(count, Some(entries.len() as u32));
        let mut of_circuit = 0;
        Circuit::<C>::walk(&circuit, &mut |row| {
            of_circuit += row.a.len() + row.b.len();
            Ok(())
        })
        .unwrap();
        let one = C::mont2(C::Fr::from(1u64));
        let wires = 0..=publics as u32;
        let bound: Vec<_> =
            wires.map(|wire| Entry { matrix: 0, row: constraints as u32 + wire, wire, value: one }).collect();
        assert_eq!(entries[of_circuit..], bound, "{publics} public wires");
        // The points agree: each of these wires has one in A, and in IC.
        let parts = Parts::<C>::of(&key(circuit));
        assert_eq!(parts.shape.domain, (constraints + publics + 1).next_power_of_two());
        for wire in 0..=publics {
            assert!(parts.g1[0][wire] != infinity::<C::G1>() && parts.g1[1][wire] != infinity::<C::G1>());
        }
    }
}

#[test]
fn setup_binds_public_wires() {
    public_wires_are_bound::<Bn254>();
    public_wires_are_bound::<Bls12_381>();
}
