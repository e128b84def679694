//! `tandem inspect`: what a file holds, by its headers. Never a value of a witness.

use crate::cli;
use crate::commands::START_BYTES;
use serde_json::{json, Value};
use std::path::Path;
use tandem_console::color::{self, Stream, Style};
use tandem_console::failure::Outcome;
use tandem_console::report;
use tandem_formats::zkey::{distrust, ContributionKind};
use tandem_formats::{
    FflonkFile, FflonkHeader, FflonkVerificationKey, FileKind, FormatError, OtherSystem, ParamsFile, PlonkFile,
    PlonkVerificationKey, Protocol, PtauHeader, R1csFile, RegularFile, VerificationKey, WtnsHeader, ZkeyFile,
};
use tandem_ops::{with_curve, Curve, CurveId};

/// What `inspect` looks into.
const EXPECTED: &str = "a zkey, params, wtns, r1cs or ptau file, or a verification key";

pub(crate) fn run(args: &cli::Inspect) -> Outcome {
    tandem_ops::threads::ready().map_err(tandem_engine::Error::from)?;
    let file = RegularFile::open(&args.file)?;
    let mut start = vec![0; START_BYTES.min(usize::try_from(file.len()).unwrap_or(START_BYTES))];
    file.read_at(&mut start, 0)?;
    let kind = FileKind::of(&start);
    let Some(mut facts) = facts(&args.file, kind).map_err(|e| e.in_file(&args.file))? else {
        return Err(FileKind::refuse(kind, EXPECTED).in_file(&args.file).into());
    };
    facts.push(("file_bytes", json!(file.len())));
    if let Some(FileKind::Zkey | FileKind::ZkeyOf(_) | FileKind::Params) = kind {
        let memory = tandem_engine::key_memory(&args.file)?;
        facts.push(("memory_of_gpus", json!(memory.gpus)));
        facts.extend(memory.gpu_least.map(|bytes| ("memory_of_gpu_least", json!(bytes))));
        facts.push(("memory_beside_gpus", json!(memory.beside_gpus)));
        facts.extend(memory.beside_gpu_least.map(|bytes| ("memory_beside_gpu_least", json!(bytes))));
        facts.extend([("memory_of_cpu", json!(memory.cpu)), ("memory_holding_key", json!(memory.holding_key))]);
    }
    if args.json.json {
        let object = facts.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        report::result(&Value::Object(object).to_string());
        return Ok(());
    }
    let rows: Vec<_> = facts.iter().flat_map(|(name, value)| rows(name, value)).collect();
    report::result(&rows.join("\n"));
    Ok(())
}

/// The lines for one fact.
fn rows(name: &str, value: &Value) -> Vec<String> {
    let title = name.replace('_', " ");
    match (name, value) {
        ("circuit_hash", Value::String(text)) => {
            // As snarkjs shows it: four lines of four numbers.
            let digits: Vec<char> = text.chars().collect();
            let numbers: Vec<String> = digits.chunks(8).map(|number| number.iter().collect()).collect();
            let lines = numbers.chunks(4).map(|line| line.join(" "));
            lines.enumerate().map(|(i, line)| report::row(24, if i == 0 { &title } else { "" }, &line)).collect()
        }
        ("contributions", Value::Array(items)) if items.is_empty() => vec![report::row(24, &title, "none")],
        ("contributions", Value::Array(items)) => {
            let line = |(i, item): (usize, &Value)| report::row(24, if i == 0 { &title } else { "" }, &plain(item));
            items.iter().enumerate().map(line).collect()
        }
        (name, Value::Number(bytes)) if name.starts_with("memory_") => {
            vec![report::row(24, &title, &report::bytes(bytes.as_u64().unwrap_or(u64::MAX)))]
        }
        ("trust", Value::String(text)) => {
            // The words in capitals come first.
            let (head, rest) = text.split_once(": ").unwrap_or((text, ""));
            let row = report::row(24, &title, &format!("{head}: {rest}"));
            vec![row.replacen(head, &color::paint(Stream::Out, Style::Warning, head), 1)]
        }
        _ => vec![report::row(24, &title, &plain(value))],
    }
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

fn facts(path: &Path, kind: Option<FileKind>) -> Result<Option<Facts>, FormatError> {
    let facts = match kind {
        Some(FileKind::Zkey | FileKind::ZkeyOf(_)) => match Protocol::of_file(path)? {
            Protocol::Groth16 => of_zkey(&ZkeyFile::open(path)?)?,
            Protocol::Plonk => of_plonk(&PlonkFile::open(path)?),
            Protocol::Fflonk => of_fflonk(&FflonkFile::open(path)?.header),
        },
        Some(FileKind::Params) => of_params(&ParamsFile::open(path)?),
        Some(FileKind::Wtns) => {
            let witness = WtnsHeader::open(path)?;
            vec![
                ("kind", json!("witness")),
                ("curve", json!(witness.curve.to_string())),
                ("values", json!(witness.count)),
            ]
        }
        Some(FileKind::R1cs) => {
            let r1cs = R1csFile::open(path)?;
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
            let h = PtauHeader::open(path)?;
            vec![
                ("kind", json!("powers of tau (ptau)")),
                ("curve", json!(h.curve.to_string())),
                ("power", json!(h.power)),
                ("ceremony_power", json!(h.ceremony_power)),
                ("prepared_for_phase_2", json!(h.is_prepared)),
                ("contributions", json!(h.n_contributions)),
            ]
            .into_iter()
            .chain((h.n_contributions == Some(0)).then(|| ("trust", json!(NO_POWERS))))
            .collect()
        }
        Some(FileKind::VerificationKey) => {
            let text = tandem_formats::json::read_file(path)?;
            with_curve!(tandem_formats::json::curve(&text)?, C => of_vkey::<C>(&text)?)
        }
        Some(FileKind::VerificationKeyOf(OtherSystem::Plonk)) => {
            let text = tandem_formats::json::read_file(path)?;
            with_curve!(tandem_formats::json::plonk_curve(&text)?, C => of_plonk_vkey::<C>(&text)?)
        }
        Some(FileKind::VerificationKeyOf(OtherSystem::Fflonk)) => {
            let key = FflonkVerificationKey::parse(&tandem_formats::json::read_file(path)?)?;
            vec![
                ("kind", json!("FFLONK verification key")),
                ("curve", json!(CurveId::Bn254.to_string())),
                ("publics", json!(key.n_public)),
                ("domain", json!(1u64 << key.power)),
            ]
        }
        _ => return Ok(None),
    };
    Ok(Some(facts))
}

fn of_zkey(key: &ZkeyFile) -> Result<Facts, FormatError> {
    let [entries_of_a, entries_of_b] = key.count_entries()?;
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
    let trust = distrust(key.contributions.as_ref());
    let mut facts = vec![
        ("kind", json!("Groth16 proving key (zkey)")),
        ("curve", json!(key.curve.to_string())),
        ("variables", json!(key.n_vars)),
        ("publics", json!(key.n_public)),
        ("domain", json!(key.domain_size)),
        ("entries_of_a", json!(entries_of_a)),
        ("entries_of_b", json!(entries_of_b)),
        ("circuit_hash", json!(hash)),
        ("contributions", json!(contributions)),
    ];
    if let Some(trust) = trust {
        facts.push(("trust", json!(trust)));
    }
    Ok(facts)
}

fn of_params(key: &ParamsFile) -> Facts {
    let sizes = key.outline.sizes();
    vec![
        ("kind", json!("Groth16 proving key of bellperson (params)")),
        ("curve", json!(CurveId::Bls12_381.to_string())),
        ("variables", json!(sizes.variables)),
        ("publics", json!(sizes.publics)),
        ("domain", json!(sizes.domain)),
        ("points_of_a", json!(sizes.a)),
        ("points_of_b", json!(sizes.b)),
    ]
}

fn of_plonk(key: &PlonkFile) -> Facts {
    vec![
        ("kind", json!("PLONK proving key (zkey)")),
        ("curve", json!(key.curve.to_string())),
        ("variables", json!(key.witness_values())),
        ("publics", json!(key.n_public)),
        ("domain", json!(key.domain_size)),
        ("gates", json!(key.n_constraints)),
        ("additions", json!(key.n_additions)),
    ]
}

fn of_fflonk(key: &FflonkHeader) -> Facts {
    vec![
        ("kind", json!("FFLONK proving key (zkey)")),
        ("curve", json!(CurveId::Bn254.to_string())),
        ("variables", json!(key.witness_values())),
        ("publics", json!(key.n_public)),
        ("domain", json!(key.domain_size)),
        ("gates", json!(key.n_constraints)),
        ("additions", json!(key.n_additions)),
    ]
}

fn of_plonk_vkey<C: Curve>(bytes: &[u8]) -> Result<Facts, FormatError> {
    let key = PlonkVerificationKey::<C>::parse(bytes)?;
    Ok(vec![
        ("kind", json!("PLONK verification key")),
        ("curve", json!(C::ID.to_string())),
        ("publics", json!(key.n_public)),
        ("domain", json!(1u64 << key.power)),
    ])
}

/// Why powers of tau that nobody contributed to must not be trusted.
const NO_POWERS: &str =
    "NO CONTRIBUTIONS: their secret is known, as that of tandem ptau --test and of snarkjs powersoftau new; \
                         anybody can forge proofs for keys made with them";

fn of_vkey<C: Curve>(bytes: &[u8]) -> Result<Facts, FormatError> {
    let key = VerificationKey::<C>::parse(bytes)?;
    Ok(vec![
        ("kind", json!("verification key")),
        ("curve", json!(C::ID.to_string())),
        ("publics", json!(key.ic.len() - 1)),
    ])
}
