//! Keys as verifier contracts in Solidity.
//!
//! The contracts take the arguments that snarkjs's take, those of [`Proof::calldata`](crate::Proof::calldata), and give the verdicts of
//! [`Verifier::verify`](crate::Verifier::verify). Solidity has no arrays of length 0: without public signals the last argument is an
//! array of any length, which must be empty.

use crate::verifier::{fflonk_key, groth16_key, plonk_key};
use crate::{files, key, CurveId, Error, Protocol, Result};
use ark_ec::AffineRepr;
use ark_ff::{Field, PrimeField};
use std::path::Path;
use tandem_formats::{json, zkey, FileKind, FormatError, OtherSystem, RegularFile, ZkeyFile};
use tandem_ops::{Bn254, Curve, Group};

type G1 = <Bn254 as Curve>::G1;
type G2 = <Bn254 as Curve>::G2;
type Fr = <Bn254 as Curve>::Fr;

/// Contracts with names in double braces for the key's numbers.
const GROTH16: &str = include_str!("solidity/groth16.sol");
const PLONK: &str = include_str!("solidity/plonk.sol");
const FFLONK: &str = include_str!("solidity/fflonk.sol");
/// What those of PLONK and FFLONK begin with.
const FIELD: &str = include_str!("solidity/field.sol");

/// Bytes that tell what a file is.
const START_BYTES: u64 = 4096;

/// Public signals that a Groth16 contract may have for a chain to take it: each is a point in the code, which has at most 24,576 bytes (EIP-170)
/// on Ethereum.
const SIGNALS_MAX: usize = 250;

/// A verifier contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierContract {
    /// Its source.
    pub text: String,
    /// What to know before it is used, one sentence each: the source has them at its top.
    pub remarks: Vec<String>,
}

/// The contract that verifies the proofs of a key, which is a `.zkey` or a `verification_key.json`.
///
/// # Errors
/// [`Error::BadInput`] for a file that is neither, a point that is no good, or another curve than BN254: contracts work with precompiled
/// contracts of that curve.
pub fn export_solidity(key: &Path) -> Result<VerifierContract> {
    tandem_ops::threads::ready()?;
    const EXPECTED: &str = "a zkey file or a verification key";
    let in_file = |e: FormatError| e.in_file(key);
    // A pipe is not looked at beforehand: keys are read from files alone.
    if key.metadata().is_ok_and(|m| m.is_file()) {
        let file = RegularFile::open(key)?;
        let mut start = vec![0; file.len().min(START_BYTES) as usize];
        file.read_at(&mut start, 0)?;
        if let Some(FileKind::Zkey | FileKind::ZkeyOf(_)) = FileKind::of(&start) {
            return of_zkey(key);
        }
    }
    let text = json::read_file(key)?;
    match FileKind::of(&text) {
        Some(FileKind::VerificationKey) => {
            refuse_other_curves(json::curve(&text).map_err(in_file)?, key)?;
            of_groth16(&text, key, None)
        }
        Some(FileKind::VerificationKeyOf(OtherSystem::Plonk)) => {
            refuse_other_curves(json::plonk_curve(&text).map_err(in_file)?, key)?;
            of_plonk(&text, key)
        }
        Some(FileKind::VerificationKeyOf(OtherSystem::Fflonk)) => of_fflonk(&text, key),
        other => Err(FileKind::refuse(other, EXPECTED).in_file(key).into()),
    }
}

fn of_zkey(path: &Path) -> Result<VerifierContract> {
    let (form, curve, file) = key::look(path)?;
    refuse_other_curves(curve, path)?;
    let text = files::export_as::<Bn254>(form, &file, path)?;
    file.unchanged()?;
    match form.protocol() {
        Protocol::Groth16 => {
            let contributions = ZkeyFile::open(path)?.contributions;
            of_groth16(text.as_bytes(), path, zkey::distrust(contributions.as_ref()))
        }
        Protocol::Plonk => of_plonk(text.as_bytes(), path),
        Protocol::Fflonk => of_fflonk(text.as_bytes(), path),
    }
}

fn refuse_other_curves(curve: CurveId, path: &Path) -> Result<()> {
    if curve == CurveId::Bn254 {
        return Ok(());
    }
    Err(Error::input(format!(
        "{}: verifier contracts are for keys over bn254, found {curve}; make the key of a circuit compiled for bn254",
        path.display()
    )))
}

fn of_groth16(text: &[u8], path: &Path, distrust: Option<&str>) -> Result<VerifierContract> {
    let (key, _) = groth16_key::<Bn254>(text, path, |e| e.in_file(path))?;
    let publics = key.ic.len() - 1;
    let mut remarks: Vec<String> = distrust.map(String::from).into_iter().collect();
    if publics > SIGNALS_MAX {
        remarks.push(format!(
            "TOO LARGE: with more than {SIGNALS_MAX} public signals the code is longer than Ethereum takes; \
             make one signal of them, such as their hash"
        ));
    }
    let ic = key.ic.iter().map(|point| g1(point).join(", ")).collect::<Vec<_>>().join(",\n            ");
    let mut contract = Contract::new(GROTH16, publics, remarks);
    contract.put_g1("MINUS_ALPHA", &-G1::to_ark(&key.alpha1));
    contract.put_g2("BETA", &G2::to_ark(&key.beta2));
    contract.put_g2("MINUS_GAMMA", &-G2::to_ark(&key.gamma2));
    contract.put_g2("MINUS_DELTA", &-G2::to_ark(&key.delta2));
    contract.put("IC", &ic);
    contract.finish()
}

fn of_plonk(text: &[u8], path: &Path) -> Result<VerifierContract> {
    let (key, prepared) = plonk_key::<Bn254>(text, path, |e| e.in_file(path))?;
    let points = key.selectors.iter().chain(&key.permutation);
    let points = points.map(|point| g1(point).join(", ")).collect::<Vec<_>>().join(",\n            ");
    let mut contract = Contract::new(PLONK, key.publics, Vec::new());
    contract.put_domain(key.domain, prepared.root(), key.k)?;
    contract.put_g2("MINUS_TAU", &-G2::to_ark(&key.x_2));
    contract.put("KEY", &points);
    contract.finish()
}

fn of_fflonk(text: &[u8], path: &Path) -> Result<VerifierContract> {
    let (key, prepared) = fflonk_key(text, path, |e| e.in_file(path))?;
    let w = prepared.roots().w;
    let step = Fr::ONE - w;
    let rows = key.publics.max(1) as u64;
    // -8^8 4^4 27^2 w^2 (1 - w)^6, and the number of rows for each row that is divided by.
    let of_sizes = Fr::from(8_u64).pow([8]) * Fr::from(4_u64).pow([4]) * Fr::from(27_u64).square();
    let divisor = -of_sizes * w.square() * step.pow([6]) * Fr::from(key.domain as u64).pow([rows]);
    let mut contract = Contract::new(FFLONK, key.publics, Vec::new());
    contract.put_domain(key.domain, w, key.k)?;
    contract.put("STEP_INVERSE", &decimal(inverse(step)?));
    contract.put("DIVISOR", &decimal(divisor));
    contract.put_g1("C0", &G1::to_ark(&key.c0));
    contract.put_g2("MINUS_TAU", &-G2::to_ark(&key.x_2));
    contract.finish()
}

fn inverse(x: Fr) -> Result<Fr> {
    x.inverse().ok_or_else(|| Error::Internal("a root or a size that is zero".into()))
}

fn decimal(value: impl PrimeField) -> String {
    value.into_bigint().to_string()
}

/// x and y; infinity is 0, 0.
fn g1(point: &<G1 as Group>::Point) -> [String; 2] {
    let (x, y) = G1::to_ark(point).xy().unwrap_or_default();
    [decimal(x), decimal(y)]
}

/// A contract whose names are being replaced by numbers.
struct Contract {
    text: String,
    remarks: Vec<String>,
}

impl Contract {
    fn new(template: &str, publics: usize, remarks: Vec<String>) -> Self {
        let mut contract = Self { text: template.into(), remarks };
        let lines: String = contract.remarks.iter().map(|remark| format!("// {remark}.\n")).collect();
        contract.put("LICENCE", env!("CARGO_PKG_LICENSE"));
        contract.put("PUBLICS", &publics.to_string());
        contract.put("DIMENSION", if publics == 0 { "" } else { "N" });
        contract.put("REMARKS", &lines);
        contract
    }

    fn put(&mut self, name: &str, value: &str) {
        self.text = self.text.replace(&format!("{{{{{name}}}}}"), value);
    }

    /// What PLONK and FFLONK have: the field, and a domain of so many `rows` with the root `w`.
    fn put_domain(&mut self, rows: usize, w: Fr, [k1, k2]: [Fr; 2]) -> Result<()> {
        self.put("FIELD", FIELD);
        self.put("LOG_ROWS", &rows.ilog2().to_string());
        self.put("ROWS_INVERSE", &decimal(inverse(Fr::from(rows as u64))?));
        self.put("W", &decimal(w));
        self.put("W_INVERSE", &decimal(inverse(w)?));
        self.put("K1", &decimal(k1));
        self.put("K2", &decimal(k2));
        Ok(())
    }

    fn put_g1(&mut self, name: &str, point: &impl AffineRepr<BaseField: PrimeField>) {
        let (x, y) = point.xy().unwrap_or_default();
        self.put(&format!("{name}_X"), &decimal(x));
        self.put(&format!("{name}_Y"), &decimal(y));
    }

    /// Of each coordinate the half of i has the number 1.
    fn put_g2(&mut self, name: &str, point: &impl AffineRepr<BaseField: Field<BasePrimeField: PrimeField>>) {
        let (x, y) = point.xy().unwrap_or_default();
        for (coordinate, value) in [("X", x), ("Y", y)] {
            for (half, number) in value.to_base_prime_field_elements().zip(["0", "1"]) {
                self.put(&format!("{name}_{coordinate}{number}"), &decimal(half));
            }
        }
    }

    fn finish(self) -> Result<VerifierContract> {
        match self.text.contains("{{") {
            true => Err(Error::Internal("a contract with a name that has no number".into())),
            false => Ok(VerifierContract { text: self.text, remarks: self.remarks }),
        }
    }
}
