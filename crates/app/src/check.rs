//! `tandem check`: which constraints of a circuit a witness does not satisfy. Never a value of the witness.

use crate::cli;
use serde_json::json;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::report;
use tandem_console::session::Session;
use tandem_engine::Satisfied;

pub(crate) fn run(session: &Session, args: &cli::Check) -> Outcome {
    let check = || tandem_engine::check_witness(&args.r1cs, &args.witness, args.sym.as_deref(), &session.bars);
    let found = session.trace.step("check", check)?;
    session.bars.clear();
    if args.json.json {
        report::result(&to_json(&found).to_string());
    } else {
        let is_good = found.unsatisfied == 0;
        report::verdict(is_good, if is_good { "OK" } else { "NOT SATISFIED" });
        for (index, formula) in &found.first {
            session.note(&format!("constraint {index} of {}: {formula} does not hold", found.constraints));
        }
        if found.unsatisfied > found.first.len() {
            session.note(&format!("{} of {} constraints do not hold", found.unsatisfied, found.constraints));
        }
    }
    if found.unsatisfied == 0 {
        return Ok(());
    }
    Err(Failure::invalid())
}

fn to_json(found: &Satisfied) -> serde_json::Value {
    let first = found.first.iter().map(|(index, formula)| json!({"constraint": index, "formula": formula}));
    json!({
        "satisfied": found.unsatisfied == 0,
        "constraints": found.constraints,
        "unsatisfied": found.unsatisfied,
        "first": first.collect::<Vec<_>>(),
    })
}
