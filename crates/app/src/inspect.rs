//! `tandem inspect`: what a file holds. Never a value of a witness.

use crate::cli;
use crate::failure::{Failure, Outcome};
use crate::report;
use serde_json::{json, Value};
use tandem_engine::CurveId;
use tandem_formats::zkey::{self, ContributionKind};
use tandem_formats::{FileKind, FormatError, MappedFile, PtauHeader, R1cs, VerificationKey, Wtns, Zkey};
use tandem_ops::{Bls12_381, Bn254, Curve};

pub(crate) fn run(args: &cli::Inspect) -> Outcome {
    let file = MappedFile::open(&args.file)?;
    let facts = facts(&file).map_err(|e| e.in_file(&args.file))?;
    let Some(mut facts) = facts else {
        let problem = match FileKind::of(&file) {
            Some(kind) => {
                format!("this is {}, expected a zkey, wtns, r1cs or ptau file, or a verification key", kind.describe())
            }
            None => {
                "this is a file of unknown type, expected a zkey, wtns, r1cs or ptau file, or a verification key".into()
            }
        };
        return Err(Failure::file(&args.file, format!("{problem}; check the name")));
    };
    facts.push(("file_bytes", json!(file.len())));
    if args.json.json {
        let object = facts.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        report::result(&Value::Object(object).to_string());
        return Ok(());
    }
    let rows: Vec<_> =
        facts.iter().map(|(name, value)| format!("{:24} {}", name.replace('_', " "), plain(value))).collect();
    report::result(&rows.join("\n"));
    Ok(())
}

/// Names and values, in the order in which they are shown.
type Facts = Vec<(&'static str, Value)>;

/// Strings without quotes; others as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn facts(bytes: &[u8]) -> Result<Option<Facts>, FormatError> {
    let facts = match FileKind::of(bytes) {
        Some(FileKind::Zkey) => match zkey::curve(bytes)? {
            CurveId::Bn254 => of_zkey::<Bn254>(bytes)?,
            CurveId::Bls12_381 => of_zkey::<Bls12_381>(bytes)?,
        },
        Some(FileKind::Wtns) => {
            let witness = Wtns::parse(bytes)?;
            vec![
                ("kind", json!("witness")),
                ("curve", json!(witness.curve.to_string())),
                ("values", json!(witness.values.len())),
            ]
        }
        Some(FileKind::R1cs) => {
            let r1cs = R1cs::parse(bytes)?;
            let h = &r1cs.header;
            vec![
                ("kind", json!("constraint system (r1cs)")),
                ("curve", json!(h.curve.to_string())),
                ("constraints", json!(h.n_constraints)),
                ("wires", json!(h.n_vars)),
                ("public_outputs", json!(h.n_pub_out)),
                ("public_inputs", json!(h.n_pub_in)),
                ("private_inputs", json!(h.n_prv_in)),
                ("labels", json!(h.n_labels)),
                ("custom_gate_uses", json!(r1cs.custom_gate_uses)),
            ]
        }
        Some(FileKind::Ptau) => {
            let h = PtauHeader::parse(bytes)?;
            vec![
                ("kind", json!("powers of tau (ptau)")),
                ("curve", json!(h.curve.to_string())),
                ("power", json!(h.power)),
                ("ceremony_power", json!(h.ceremony_power)),
                ("prepared_for_phase_2", json!(h.is_prepared)),
                ("contributions", json!(h.n_contributions)),
            ]
        }
        Some(FileKind::Json) => match tandem_formats::json::curve(bytes)? {
            CurveId::Bn254 => of_vkey::<Bn254>(bytes)?,
            CurveId::Bls12_381 => of_vkey::<Bls12_381>(bytes)?,
        },
        _ => return Ok(None),
    };
    Ok(Some(facts))
}

fn of_zkey<C: Curve>(bytes: &[u8]) -> Result<Facts, FormatError> {
    let key = Zkey::<C>::parse(bytes)?;
    let matrices = key.coefs.matrices()?;
    let contributions: Option<Vec<String>> = key.contributions.as_ref().map(|c| {
        let name = |kind| match kind {
            ContributionKind::Secret => "contribution",
            ContributionKind::Beacon => "beacon",
        };
        // A name can hold anything; it is shown escaped.
        c.entries.iter().map(|e| format!("{} {:?}", name(e.kind), e.name.as_deref().unwrap_or(""))).collect()
    });
    let hash: Option<String> =
        key.contributions.as_ref().map(|c| c.circuit_hash.iter().map(|byte| format!("{byte:02x}")).collect());
    Ok(vec![
        ("kind", json!("Groth16 proving key (zkey)")),
        ("curve", json!(C::ID.to_string())),
        ("variables", json!(key.header.n_vars)),
        ("publics", json!(key.header.n_public)),
        ("domain", json!(key.header.domain_size)),
        ("entries_of_a", json!(matrices.a.column.len())),
        ("entries_of_b", json!(matrices.b.column.len())),
        ("circuit_hash", json!(hash)),
        ("contributions", json!(contributions)),
    ])
}

fn of_vkey<C: Curve>(bytes: &[u8]) -> Result<Facts, FormatError> {
    let key = VerificationKey::<C>::parse(bytes)?;
    Ok(vec![
        ("kind", json!("verification key")),
        ("curve", json!(C::ID.to_string())),
        ("publics", json!(key.ic.len() - 1)),
    ])
}
