//! The proof systems, as far as keys of all of them are opened, checked, loaded and proved with in one way.

use crate::blocks::Blocks;
use crate::source::{Bytes, Made};
use crate::team::{Resident, Team};
use crate::{Error, Proof, Result};
use std::ops::Range;
use std::path::Path;
use tandem_formats::plonk::Addition;
use tandem_formats::{
    FflonkHeader, FflonkOutline, FflonkZkey, FormatError, Matrices, ParamsOutline, ParamsPoints, ParamsSection,
    PlonkHeader, PlonkOutline, PlonkZkey, Protocol, Zkey, ZkeyHeader, ZkeyOutline,
};
use tandem_groth16::digits::ProofDigits;
use tandem_groth16::{Layout, Progress, Witness};
use tandem_ops::zcash::{Decoding, InMemory};
use tandem_ops::{Bls12_381, Bn254, Curve, Outside, Stored, Unaligned, Wire};
use tandem_plonk::fflonk;

/// Sizes that a key has in every system.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// Values of a witness.
    pub(crate) variables: usize,
    pub(crate) publics: usize,
    pub(crate) domain: usize,
}

/// What an operation of a prover gives.
pub(crate) type Of<T> = tandem_groth16::Result<T>;

/// A proof system over one curve.
pub(crate) trait System<C: Curve>: Sized + 'static {
    /// Its name.
    const PROTOCOL: Protocol;
    /// Whether keys hold the circuit. Those of the others are proved with witnesses that bring it along.
    const HAS_CIRCUIT: bool = true;
    /// A key where it lies.
    type View<'a>;
    /// What verifies a key's proofs.
    type Verifier: Send + Sync;
    /// The random scalars of a proof.
    type Blinding: Send + Sync;
    /// A proof.
    type Points: Send;

    /// Calls `work` with the key that the bytes of a file are. Points stay in the file.
    fn with_view<T>(bytes: Bytes<'_>, path: &Path, work: impl FnOnce(&Self::View<'_>) -> Result<T>) -> Result<T>;
    /// Calls `work` with a key that was made in memory.
    fn with_made<T>(made: &Made<C>, work: impl FnOnce(&Self::View<'_>) -> Result<T>) -> Result<T>;
    /// The sizes of a key.
    fn sizes(view: &Self::View<'_>) -> Sizes;
    /// Where the sections of points of a key lie in its file, in the order in which they are loaded; none of a system whose keys are not worth
    /// to be read before their device is there.
    fn sections(_: &Self::View<'_>) -> Vec<Range<usize>> {
        Vec::new()
    }
    /// Checks all points of a key, on the team's device where it is faster at that than the CPU.
    fn check(team: &dyn Team<C>, view: &Self::View<'_>, progress: &dyn Progress) -> Of<()>;
    /// What verifies its proofs.
    fn verifier(view: &Self::View<'_>) -> Of<Self::Verifier>;
    /// Loads a key to make so many proofs.
    fn load(team: &dyn Team<C>, view: &Self::View<'_>, layout: Layout, proofs: u64) -> Of<Box<dyn Resident<C, Self>>>;
    /// The random scalars of a proof: drawn, or those that came with the witness where the system takes them.
    fn blinding(witness: &Witness<C>) -> Of<Self::Blinding>;
    /// A proof as a value.
    fn proof(points: &Self::Points) -> Proof;
    /// The digits of the sums of a proof.
    fn digits(view: &Self::View<'_>, witness: &Witness<C>) -> Of<ProofDigits>;
}

/// Groth16.
pub(crate) enum Groth16 {}

impl<C: Curve> System<C> for Groth16 {
    const PROTOCOL: Protocol = Protocol::Groth16;
    type View<'a> = tandem_groth16::KeyView<'a, C>;
    type Verifier = tandem_groth16::PreparedKey<C>;
    type Blinding = tandem_groth16::Blinding<C>;
    type Points = tandem_groth16::Proof<C>;

    fn with_view<T>(bytes: Bytes<'_>, path: &Path, work: impl FnOnce(&Self::View<'_>) -> Result<T>) -> Result<T> {
        match bytes {
            Bytes::Memory(bytes) => {
                let zkey = Zkey::<C>::parse(bytes).map_err(|e| e.in_file(path))?;
                let Matrices { a, b } = zkey.coefs.matrices().map_err(|e| e.in_file(path))?;
                let (shape, points) = of_header(&zkey.header);
                let (matrix_a, matrix_b) = (&a, &b);
                let [a, b1, l, h] = [zkey.a, zkey.b1, zkey.c, zkey.h].map(Stored::from);
                let b2 = zkey.b2.into();
                work(&tandem_groth16::KeyView { shape, points, ic: zkey.ic, matrix_a, matrix_b, a, b1, b2, l, h })
            }
            Bytes::File(blocks) => {
                let zkey = ZkeyOutline::<C>::read(blocks).map_err(|e| e.in_file(path))?;
                let Matrices { a, b } = zkey.matrices(blocks).map_err(|e| e.in_file(path))?;
                let (shape, points) = of_header(&zkey.header);
                let (ic, matrix_a, matrix_b) = (zkey.ic.as_slice().into(), &a, &b);
                let [a, b1, l, h] = [&zkey.a, &zkey.b1, &zkey.c, &zkey.h].map(|bytes| section(blocks, bytes));
                let (a, b1, b2, l, h) = (a?, b1?, section(blocks, &zkey.b2)?, l?, h?);
                let done = work(&tandem_groth16::KeyView { shape, points, ic, matrix_a, matrix_b, a, b1, b2, l, h });
                done.map_err(|refused| placed(refused, blocks, path, || zkey.check_coordinates(blocks)))
            }
        }
    }

    fn with_made<T>(made: &Made<C>, work: impl FnOnce(&Self::View<'_>) -> Result<T>) -> Result<T> {
        work(&made.circuit()?.view().map_err(|e| Error::prover(e, Path::new("")))?)
    }

    fn sizes(view: &Self::View<'_>) -> Sizes {
        let tandem_groth16::Shape { variables, publics, domain } = view.shape;
        Sizes { variables, publics, domain }
    }

    fn sections(view: &Self::View<'_>) -> Vec<Range<usize>> {
        let tandem_groth16::KeyView { h, b2, a, b1, l, .. } = view;
        [h.place_outside(), b2.place_outside(), a.place_outside(), b1.place_outside(), l.place_outside()]
            .into_iter()
            .flatten()
            .collect()
    }

    fn check(team: &dyn Team<C>, view: &Self::View<'_>, progress: &dyn Progress) -> Of<()> {
        match team.points_pass(view, progress) {
            Ok(true) => Ok(()),
            Err(tandem_groth16::Error::Interrupted) => Err(tandem_groth16::Error::Interrupted),
            // The CPU says which point it is, or that the device erred.
            Ok(false) | Err(_) => tandem_groth16::check::check_points(view, progress),
        }
    }

    fn verifier(view: &Self::View<'_>) -> Of<Self::Verifier> {
        tandem_groth16::PreparedKey::new(&view.verifying_key())
    }

    fn load(team: &dyn Team<C>, view: &Self::View<'_>, layout: Layout, proofs: u64) -> Of<Box<dyn Resident<C, Self>>> {
        team.load(view, layout, proofs)
    }

    fn blinding(_: &Witness<C>) -> Of<Self::Blinding> {
        tandem_groth16::Blinding::random()
    }

    fn proof(points: &Self::Points) -> Proof {
        Proof::groth16(points)
    }

    fn digits(view: &Self::View<'_>, witness: &Witness<C>) -> Of<ProofDigits> {
        ProofDigits::count(view, witness)
    }
}

/// Groth16 with keys of bellperson, which hold no matrices: the sides of the constraints come with the witness.
pub(crate) enum Powers {}

/// The points of a section.
fn stored<'a, T: Wire>(from: &'a dyn Outside, section: &ParamsSection) -> Result<Stored<'a, T>> {
    Stored::outside(from, section.bytes.clone()).ok_or_else(|| Error::Internal("a section is no whole points".into()))
}

/// What a file says of a key, as the prover takes it, with its sections from where `from` has them.
fn with_params<T>(
    outline: &ParamsOutline,
    from: &dyn Outside,
    work: impl FnOnce(&tandem_groth16::PowersView<'_, Bls12_381>) -> Result<T>,
) -> Result<T> {
    let sizes = outline.sizes();
    let (variables, publics) = (sizes.variables as usize, sizes.publics as usize);
    let ParamsPoints { alpha_1, beta_1, beta_2, gamma_2, delta_1, delta_2 } = outline.points;
    let g1 = [&outline.a, &outline.b1, &outline.l, &outline.h];
    let [a, b1, l, h] = g1.map(|s| Decoding::new::<tandem_groth16::P1<Bls12_381>>(from, s.bytes.clone(), s.name));
    let b2 = Decoding::new::<tandem_groth16::P2<Bls12_381>>(from, outline.b2.bytes.clone(), outline.b2.name);
    work(&tandem_groth16::PowersView {
        shape: tandem_groth16::Shape { variables, publics, domain: sizes.domain as usize },
        points: tandem_groth16::KeyPoints {
            alpha1: alpha_1,
            beta1: beta_1,
            beta2: beta_2,
            gamma2: gamma_2,
            delta1: delta_1,
            delta2: delta_2,
        },
        ic: outline.ic.as_slice().into(),
        a: stored(&a, &outline.a)?,
        b1: stored(&b1, &outline.b1)?,
        b2: stored(&b2, &outline.b2)?,
        l: stored(&l, &outline.l)?,
        h: stored(&h, &outline.h)?,
    })
}

impl System<Bls12_381> for Powers {
    const PROTOCOL: Protocol = Protocol::Groth16;
    const HAS_CIRCUIT: bool = false;
    type View<'a> = tandem_groth16::PowersView<'a, Bls12_381>;
    type Verifier = tandem_groth16::PreparedKey<Bls12_381>;
    type Blinding = tandem_groth16::Blinding<Bls12_381>;
    type Points = tandem_groth16::Proof<Bls12_381>;

    fn with_view<T>(bytes: Bytes<'_>, path: &Path, work: impl FnOnce(&Self::View<'_>) -> Result<T>) -> Result<T> {
        match bytes {
            Bytes::Memory(bytes) => {
                let outline = ParamsOutline::read(&bytes).map_err(|e| e.in_file(path))?;
                let done = with_params(&outline, &InMemory(bytes), work);
                done.map_err(|refused| match refused {
                    // Where in the file it lies.
                    Error::BadInput(_) => {
                        outline.check_points(&bytes).err().map_or(refused, |e| e.in_file(path).into())
                    }
                    refused => refused,
                })
            }
            Bytes::File(blocks) => {
                let outline = ParamsOutline::read(blocks).map_err(|e| e.in_file(path))?;
                let done = with_params(&outline, blocks, work);
                done.map_err(|refused| placed(refused, blocks, path, || outline.check_points(blocks)))
            }
        }
    }

    fn with_made<T>(made: &Made<Bls12_381>, work: impl FnOnce(&Self::View<'_>) -> Result<T>) -> Result<T> {
        work(&made.partition()?.view().map_err(|e| Error::prover(e, Path::new("")))?)
    }

    fn sizes(view: &Self::View<'_>) -> Sizes {
        let tandem_groth16::Shape { variables, publics, domain } = view.shape;
        Sizes { variables, publics, domain }
    }

    fn check(team: &dyn Team<Bls12_381>, view: &Self::View<'_>, progress: &dyn Progress) -> Of<()> {
        match team.powers_pass(view, progress) {
            Ok(true) => Ok(()),
            Err(tandem_groth16::Error::Interrupted) => Err(tandem_groth16::Error::Interrupted),
            // The CPU says which point it is, or that the device erred.
            Ok(false) | Err(_) => tandem_groth16::check::check_powers_points(view, progress),
        }
    }

    fn verifier(view: &Self::View<'_>) -> Of<Self::Verifier> {
        tandem_groth16::PreparedKey::new(&view.verifying_key())
    }

    fn load(
        team: &dyn Team<Bls12_381>,
        view: &Self::View<'_>,
        layout: Layout,
        proofs: u64,
    ) -> Of<Box<dyn Resident<Bls12_381, Self>>> {
        team.load_powers(view, layout, proofs)
    }

    fn blinding(witness: &Witness<Bls12_381>) -> Of<Self::Blinding> {
        tandem_groth16::Blinding::of(witness)
    }

    fn proof(points: &Self::Points) -> Proof {
        Proof::groth16(points)
    }

    fn digits(view: &Self::View<'_>, witness: &Witness<Bls12_381>) -> Of<ProofDigits> {
        ProofDigits::count_picked(view, witness)
    }
}

/// Why a key was refused: the check of points finds a number beyond the modulus, too, and where it lies in the file says `coordinates`.
fn placed(
    refused: Error,
    blocks: &Blocks,
    path: &Path,
    coordinates: impl FnOnce() -> std::result::Result<(), FormatError>,
) -> Error {
    match refused {
        Error::BadInput(_) if !blocks.content().is_known() => {
            coordinates().err().map_or(refused, |e| e.in_file(path).into())
        }
        refused => refused,
    }
}

/// The sizes of a Groth16 key, and its points that belong to no wire.
fn of_header<C: Curve>(header: &ZkeyHeader<C>) -> (tandem_groth16::Shape, tandem_groth16::KeyPoints<C>) {
    let shape = tandem_groth16::Shape {
        variables: header.n_vars as usize,
        publics: header.n_public as usize,
        domain: header.domain_size as usize,
    };
    let points = tandem_groth16::KeyPoints {
        alpha1: header.alpha_1,
        beta1: header.beta_1,
        beta2: header.beta_2,
        gamma2: header.gamma_2,
        delta1: header.delta_1,
        delta2: header.delta_2,
    };
    (shape, points)
}

/// A section of points that stays in its file.
fn section<'a, T: Wire>(blocks: &'a Blocks, bytes: &Range<usize>) -> Result<Stored<'a, T>> {
    // Its length was compared with the number of its points.
    Stored::outside(blocks, bytes.clone()).ok_or_else(|| Error::Internal("a section is no whole points".into()))
}

/// The sizes of a key of PLONK or FFLONK, of its signals with those of additions, additions, public signals, gates and rows.
fn shape(counts: [u32; 5]) -> tandem_plonk::Shape {
    let [signals, additions, publics, gates, domain] = counts.map(|count| count as usize);
    // What reads a header checks it: there are fewer additions than signals.
    tandem_plonk::Shape { variables: signals - additions, additions, publics, gates, domain }
}

/// Additions of a file, as the prover has them.
fn additions(of_file: Unaligned<'_, Addition>) -> Result<Unaligned<'_, tandem_plonk::Addition>> {
    Unaligned::new(of_file.as_bytes()).ok_or_else(|| Error::Internal("additions of a key are no whole ones".into()))
}

/// FFLONK.
pub(crate) enum Fflonk {}

/// The verification key that the header of an FFLONK key holds. Its roots of unity are compared with the field's.
pub(crate) fn fflonk_verifying(
    header: &FflonkHeader,
    path: &Path,
) -> Result<(fflonk::VerifyingKey, fflonk::PreparedKey)> {
    let verifying = fflonk::VerifyingKey {
        publics: header.n_public as usize,
        domain: header.domain_size as usize,
        k: header.k.map(Bn254::from_mont),
        x_2: header.x_2,
        c0: header.c0,
    };
    let prepared = fflonk::PreparedKey::new(&verifying).map_err(|e| Error::prover(e, path))?;
    let fflonk::Roots { w3, w4, w8, wr, .. } = prepared.roots();
    if header.roots.map(Bn254::from_mont) != [w3, w4, w8, wr] {
        let problem = "w3, w4, w8 and wr are not the roots of unity of snarkjs; make the key again";
        return Err(Error::input(format!("{}: {problem}", path.display())));
    }
    Ok((verifying, prepared))
}

/// A key of a file as the prover takes it.
fn fflonk_view<'a>(zkey: FflonkZkey<'a>, path: &Path) -> Result<fflonk::KeyView<'a>> {
    let FflonkHeader { n_vars, n_additions, n_public, n_constraints, domain_size, .. } = zkey.header;
    let (verifying, _) = fflonk_verifying(&zkey.header, path)?;
    Ok(fflonk::KeyView {
        shape: shape([n_vars, n_additions, n_public, n_constraints, domain_size]),
        verifying,
        additions: additions(zkey.additions)?,
        maps: zkey.maps,
        c0: zkey.c0,
        powers: zkey.powers,
    })
}

impl System<Bn254> for Fflonk {
    const PROTOCOL: Protocol = Protocol::Fflonk;
    type View<'a> = fflonk::KeyView<'a>;
    type Verifier = fflonk::PreparedKey;
    type Blinding = tandem_plonk::Blinding<Bn254>;
    type Points = fflonk::Proof;

    fn with_view<T>(bytes: Bytes<'_>, path: &Path, work: impl FnOnce(&Self::View<'_>) -> Result<T>) -> Result<T> {
        match bytes {
            Bytes::Memory(bytes) => work(&fflonk_view(FflonkZkey::parse(bytes).map_err(|e| e.in_file(path))?, path)?),
            Bytes::File(blocks) => {
                let mut outline = FflonkOutline::read(blocks).map_err(|e| e.in_file(path))?;
                outline.load(blocks).map_err(|e| e.in_file(path))?;
                let zkey = outline.key(blocks).map_err(|e| e.in_file(path))?;
                work(&fflonk_view(zkey, path)?)
                    .map_err(|refused| placed(refused, blocks, path, || outline.check_coordinates(blocks)))
            }
        }
    }

    fn with_made<T>(made: &Made<Bn254>, work: impl FnOnce(&Self::View<'_>) -> Result<T>) -> Result<T> {
        work(&made.fflonk()?.view())
    }

    fn sizes(view: &Self::View<'_>) -> Sizes {
        let tandem_plonk::Shape { variables, publics, domain, .. } = view.shape;
        Sizes { variables, publics, domain }
    }

    fn check(_: &dyn Team<Bn254>, view: &Self::View<'_>, progress: &dyn Progress) -> Of<()> {
        fflonk::check_powers(view.powers, &view.verifying.x_2, view.shape.domain, progress)
    }

    fn verifier(view: &Self::View<'_>) -> Of<Self::Verifier> {
        fflonk::PreparedKey::new(&view.verifying)
    }

    fn load(
        team: &dyn Team<Bn254>,
        view: &Self::View<'_>,
        layout: Layout,
        proofs: u64,
    ) -> Of<Box<dyn Resident<Bn254, Self>>> {
        team.load_fflonk(view, layout, proofs)
    }

    fn blinding(_: &Witness<Bn254>) -> Of<Self::Blinding> {
        tandem_plonk::Blinding::random()
    }

    fn proof(points: &Self::Points) -> Proof {
        Proof::fflonk(points)
    }

    fn digits(_: &Self::View<'_>, _: &Witness<Bn254>) -> Of<ProofDigits> {
        Err(tandem_groth16::Error::Key("digits are counted of Groth16 keys alone".into()))
    }
}

/// PLONK.
pub(crate) enum Plonk {}

/// The verification key that the header of a PLONK key holds.
pub(crate) fn plonk_verifying<C: Curve>(header: &tandem_formats::PlonkHeader<C>) -> tandem_plonk::VerifyingKey<C> {
    tandem_plonk::VerifyingKey {
        publics: header.n_public as usize,
        domain: header.domain_size as usize,
        k: [C::from_mont(header.k1), C::from_mont(header.k2)],
        selectors: header.selectors,
        permutation: header.permutation,
        x_2: header.x_2,
    }
}

/// A key of a file as the prover takes it.
fn plonk_view<C: Curve>(zkey: PlonkZkey<'_, C>) -> Result<tandem_plonk::KeyView<'_, C>> {
    let PlonkHeader { n_vars, n_additions, n_public, n_constraints, domain_size, .. } = zkey.header;
    Ok(tandem_plonk::KeyView {
        shape: shape([n_vars, n_additions, n_public, n_constraints, domain_size]),
        verifying: plonk_verifying(&zkey.header),
        additions: additions(zkey.additions)?,
        maps: zkey.maps,
        selectors: zkey.selectors,
        permutation: zkey.permutation,
        powers: zkey.powers,
    })
}

impl<C: Curve> System<C> for Plonk {
    const PROTOCOL: Protocol = Protocol::Plonk;
    type View<'a> = tandem_plonk::KeyView<'a, C>;
    type Verifier = tandem_plonk::PreparedKey<C>;
    type Blinding = tandem_plonk::Blinding<C>;
    type Points = tandem_plonk::Proof<C>;

    fn with_view<T>(bytes: Bytes<'_>, path: &Path, work: impl FnOnce(&Self::View<'_>) -> Result<T>) -> Result<T> {
        match bytes {
            Bytes::Memory(bytes) => work(&plonk_view(PlonkZkey::<C>::parse(bytes).map_err(|e| e.in_file(path))?)?),
            Bytes::File(blocks) => {
                let mut outline = PlonkOutline::<C>::read(blocks).map_err(|e| e.in_file(path))?;
                outline.load(blocks).map_err(|e| e.in_file(path))?;
                let zkey = outline.key(blocks).map_err(|e| e.in_file(path))?;
                work(&plonk_view(zkey)?)
                    .map_err(|refused| placed(refused, blocks, path, || outline.check_coordinates(blocks)))
            }
        }
    }

    fn with_made<T>(made: &Made<C>, work: impl FnOnce(&Self::View<'_>) -> Result<T>) -> Result<T> {
        work(&made.plonk()?.view().map_err(|e| Error::prover(e, Path::new("")))?)
    }

    fn sizes(view: &Self::View<'_>) -> Sizes {
        let tandem_plonk::Shape { variables, publics, domain, .. } = view.shape;
        Sizes { variables, publics, domain }
    }

    fn check(_: &dyn Team<C>, view: &Self::View<'_>, progress: &dyn Progress) -> Of<()> {
        tandem_proof::powers::check_powers::<C>(view.powers, &view.verifying.x_2, view.shape.domain, progress)
    }

    fn verifier(view: &Self::View<'_>) -> Of<Self::Verifier> {
        tandem_plonk::PreparedKey::new(&view.verifying)
    }

    fn load(team: &dyn Team<C>, view: &Self::View<'_>, layout: Layout, proofs: u64) -> Of<Box<dyn Resident<C, Self>>> {
        team.load_plonk(view, layout, proofs)
    }

    fn blinding(_: &Witness<C>) -> Of<Self::Blinding> {
        tandem_plonk::Blinding::random()
    }

    fn proof(points: &Self::Points) -> Proof {
        Proof::plonk(points)
    }

    fn digits(_: &Self::View<'_>, _: &Witness<C>) -> Of<ProofDigits> {
        Err(tandem_groth16::Error::Key("digits are counted of Groth16 keys alone".into()))
    }
}
