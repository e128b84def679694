//! `tandem inspect`: what a file holds. Never a value of a witness.

use crate::cli;
use crate::failure::{Failure, Outcome};
use crate::report;
use serde_json::{json, Map, Value};
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
    facts.insert("file_bytes".into(), json!(file.len()));
    if args.json.json {
        return report::result(&Value::Object(facts).to_string());
    }
    let rows: Vec<_> =
        facts.iter().map(|(name, value)| format!("{:24} {}", name.replace('_', " "), plain(value))).collect();
    report::result(&rows.join("\n"))
}

/// Strings without quotes; others as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn facts(bytes: &[u8]) -> Result<Option<Map<String, Value>>, FormatError> {
    let facts = match FileKind::of(bytes) {
        Some(FileKind::Zkey) => match zkey::curve(bytes)? {
            CurveId::Bn254 => of_zkey::<Bn254>(bytes)?,
            CurveId::Bls12_381 => of_zkey::<Bls12_381>(bytes)?,
        },
        Some(FileKind::Wtns) => {
            let witness = Wtns::parse(bytes)?;
            json!({"kind": "witness", "curve": witness.curve.to_string(), "values": witness.values.len()})
        }
        Some(FileKind::R1cs) => {
            let r1cs = R1cs::parse(bytes)?;
            let h = &r1cs.header;
            json!({
                "kind": "constraint system (r1cs)",
                "curve": h.curve.to_string(),
                "constraints": h.n_constraints,
                "wires": h.n_vars,
                "public_outputs": h.n_pub_out,
                "public_inputs": h.n_pub_in,
                "private_inputs": h.n_prv_in,
                "labels": h.n_labels,
                "custom_gate_uses": r1cs.custom_gate_uses,
            })
        }
        Some(FileKind::Ptau) => {
            let h = PtauHeader::parse(bytes)?;
            json!({
                "kind": "powers of tau (ptau)",
                "curve": h.curve.to_string(),
                "power": h.power,
                "ceremony_power": h.ceremony_power,
                "prepared_for_phase_2": h.is_prepared,
                "contributions": h.n_contributions,
            })
        }
        Some(FileKind::Json) => match tandem_formats::json::curve(bytes)? {
            CurveId::Bn254 => of_vkey::<Bn254>(bytes)?,
            CurveId::Bls12_381 => of_vkey::<Bls12_381>(bytes)?,
        },
        _ => return Ok(None),
    };
    match facts {
        Value::Object(facts) => Ok(Some(facts)),
        _ => Ok(None),
    }
}

fn of_zkey<C: Curve>(bytes: &[u8]) -> Result<Value, FormatError> {
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
    Ok(json!({
        "kind": "Groth16 proving key (zkey)",
        "curve": C::ID.to_string(),
        "variables": key.header.n_vars,
        "publics": key.header.n_public,
        "domain": key.header.domain_size,
        "entries_of_a": matrices.a.column.len(),
        "entries_of_b": matrices.b.column.len(),
        "circuit_hash": hash,
        "contributions": contributions,
    }))
}

fn of_vkey<C: Curve>(bytes: &[u8]) -> Result<Value, FormatError> {
    let key = VerificationKey::<C>::parse(bytes)?;
    Ok(json!({"kind": "verification key", "curve": C::ID.to_string(), "publics": key.ic.len() - 1}))
}
