//! `tandem prepare`: the check that the first use of a key makes, made beforehand.

use crate::cli;
use serde_json::json;
use std::time::Instant;
use tandem_console::failure::{Failure, Outcome};
use tandem_console::report;
use tandem_console::session::Session;
use tandem_engine::cache;

pub(crate) fn run(session: &Session, args: &cli::Prepare) -> Outcome {
    let begun = Instant::now();
    let opened = session.open_beside()?;
    if session.verbose {
        session.tell(&opened);
    }
    let check = || opened.engine.prepare_key(&args.zkey, args.options.check(), &session.bars);
    let prepared = session.trace.step("prepare", check)?;
    session.trace.stages(&prepared.stages);
    session.bars.clear();
    if !prepared.is_remembered {
        let why = match cache::folder() {
            Some(folder) => {
                format!("{}: cannot remember a check there; make it a folder of yours alone", folder.display())
            }
            None => "there is no cache folder: HOME is not set; name one in TANDEM_CACHE_DIR".into(),
        };
        return Err(Failure::input(format!("{}: the key is good, but {why}", args.zkey.display())));
    }
    let seconds = begun.elapsed().as_secs_f64();
    if args.options.json.json {
        let key = &prepared.info;
        let json = json!({
            "protocol": key.protocol.to_string(),
            "curve": key.curve.to_string(),
            "variables": key.variables,
            "publics": key.publics,
            "domain": key.domain,
            "bytes": key.file_bytes,
            "hash": prepared.hash,
            "checked": prepared.is_checked_now,
            "seconds": report::round(seconds),
            "stages": report::stages_json(&prepared.stages),
        });
        report::result(&json.to_string());
        return Ok(());
    }
    let done = if prepared.is_checked_now { "checked and remembered" } else { "was checked before" };
    session.note(&format!("{}: {done}, {}", args.zkey.display(), report::seconds(seconds)));
    if session.verbose {
        session.note(report::stages(&prepared.stages).trim_end());
    }
    Ok(())
}
