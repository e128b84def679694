//! `tandem setup` and `tandem ptau`: keys, and powers of tau for tests.

use crate::cli::{self, Protocol};
use serde_json::json;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::report;
use tandem_console::session::Session;
use tandem_engine::SetupReport;

pub(crate) fn run(session: &Session, args: &cli::Setup) -> Outcome {
    let made = match (args.protocol, &args.ptau, &args.seed) {
        (Protocol::Groth16, None, _) if args.params => {
            let options = tandem_engine::SetupOptions { seed: args.seed.clone() };
            let make = || tandem_engine::setup_params(&args.r1cs, &args.zkey, &options, &session.bars);
            session.trace.step("setup", make)?
        }
        (Protocol::Groth16, None, _) => {
            let options = tandem_engine::SetupOptions { seed: args.seed.clone() };
            session.trace.step("setup", || tandem_engine::setup(&args.r1cs, &args.zkey, &options, &session.bars))?
        }
        (_, Some(_), Some(_)) => {
            return Err(Failure::input("--seed is for test keys: a key of powers of tau draws nothing; leave it out"))
        }
        (Protocol::Groth16, Some(ptau), None) => session
            .trace
            .step("setup", || tandem_engine::setup_ceremony(&args.r1cs, ptau, &args.zkey, &session.bars))?,
        (Protocol::Plonk, Some(ptau), None) => {
            session.trace.step("setup", || tandem_engine::setup_plonk(&args.r1cs, ptau, &args.zkey, &session.bars))?
        }
        (Protocol::Fflonk, Some(ptau), None) => {
            session.trace.step("setup", || tandem_engine::setup_fflonk(&args.r1cs, ptau, &args.zkey, &session.bars))?
        }
        // The command line asks for it.
        (Protocol::Plonk | Protocol::Fflonk, None, _) => return Err(Failure::input("--protocol needs --ptau")),
    };
    session.trace.stages(&made.stages);
    session.bars.clear();
    tell(session, args, &made);
    Ok(())
}

fn tell(session: &Session, args: &cli::Setup, made: &SetupReport) {
    let key = &made.key;
    let kind = match (args.protocol, &args.ptau) {
        (Protocol::Plonk, _) => "a PLONK",
        (Protocol::Fflonk, _) => "an FFLONK",
        (Protocol::Groth16, Some(_)) => "a ceremony's first",
        (Protocol::Groth16, None) => "a TEST",
    };
    if args.json.json {
        let mut facts = json!({
            "protocol": key.protocol.to_string(),
            "curve": key.curve.to_string(),
            "constraints": made.constraints,
            "variables": key.variables,
            "publics": key.publics,
            "domain": key.domain,
            "bytes": key.file_bytes,
            "stages": report::stages_json(&made.stages),
        });
        match made.gates {
            Some(gates) => facts["gates"] = json!(gates),
            // A PLONK key is as good as its powers of tau, of which a key does not tell.
            None => facts["production"] = json!(false),
        }
        report::result(&facts.to_string());
        return;
    }
    let gates = made.gates.map_or(String::new(), |gates| format!(", {}", report::count(gates, "gate")));
    session.note(&format!(
        "{}: {kind} key ({}, {}{gates}, domain 2^{}, {})",
        args.zkey.display(),
        key.curve,
        report::count(made.constraints, "constraint"),
        key.domain.trailing_zeros(),
        report::bytes(key.file_bytes)
    ));
    if session.verbose {
        session.note(report::stages(&made.stages).trim_end());
    }
    // Said even with --quiet.
    match (args.protocol, &args.ptau) {
        (Protocol::Plonk | Protocol::Fflonk, _) => {}
        (Protocol::Groth16, Some(_)) => report::warn(
            "not for production yet: proofs for this key can be forged until somebody contributes to it; \
             npx snarkjs zkey contribute",
        ),
        (Protocol::Groth16, None) => {
            report::warn("not for production: whoever ran this can know the key's secret and forge proofs");
        }
    }
}

pub(crate) fn ptau(session: &Session, args: &cli::Ptau) -> Outcome {
    let curve = args.curve.into();
    let bytes = session.trace.step("powers of tau", || {
        tandem_engine::test_ptau(curve, args.power, args.seed.as_deref(), &args.ptau, &session.bars)
    })?;
    session.bars.clear();
    if args.json.json {
        let facts = json!({"curve": curve.to_string(), "power": args.power, "bytes": bytes, "production": false});
        report::result(&facts.to_string());
        return Ok(());
    }
    session.note(&format!(
        "{}: TEST powers of tau ({curve}, 2^{} rows, prepared for phase 2, {})",
        args.ptau.display(),
        args.power,
        report::bytes(bytes)
    ));
    // Said even with --quiet.
    report::warn("not for production: the secret of these powers of tau is known, and proofs for keys made with them can be forged");
    Ok(())
}
