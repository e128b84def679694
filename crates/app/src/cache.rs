//! `tandem cache`: what is remembered between runs, and its end.

use crate::cli::{Cache, CacheWork};
use serde_json::json;
use std::time::{SystemTime, UNIX_EPOCH};
use tandem_console::failure::{Failure, Outcome};
use tandem_console::report;
use tandem_engine::cache;

pub(crate) fn run(args: &Cache) -> Outcome {
    let folder = cache::folder().ok_or_else(|| Failure::input("there is no cache folder: HOME is not set"))?;
    let contents = match args.what {
        CacheWork::List => cache::list(&folder)?,
        CacheWork::Clear => cache::clear(&folder)?,
    };
    let (shown, count) = (folder.display(), contents.checked_keys.len());
    if args.json.json {
        let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let key = |k: &cache::Remembered| json!({"hash": k.name, "bytes": k.bytes, "used_at": seconds(k.used)});
        let keys: Vec<_> = contents.checked_keys.iter().map(key).collect();
        let is_cleared = args.what == CacheWork::Clear;
        let lists: Vec<_> = contents.block_lists.iter().map(key).collect();
        let recordings: Vec<_> = contents.recordings.iter().map(key).collect();
        let all = json!({
            "folder": shown.to_string(),
            "cleared": is_cleared,
            "bytes": contents.bytes(),
            "checked_keys": keys,
            "block_lists": lists,
            "recordings": recordings,
        });
        report::result(&all.to_string());
        return Ok(());
    }
    let keys = if count == 1 { "1 checked key".into() } else { format!("{count} checked keys") };
    // One who has none need not know of them.
    let recordings = match contents.recordings.len() {
        0 => String::new(),
        count => format!(", {}", report::count(count, "recording")),
    };
    if args.what == CacheWork::Clear {
        report::result(&format!("{shown}: {keys}{recordings} forgotten"));
        return Ok(());
    }
    let lists = report::count(contents.block_lists.len(), "block list");
    let mut lines = vec![format!("{shown}: {keys}, {lists}{recordings}, {}", report::bytes(contents.bytes()))];
    // The one that was used last comes first.
    for key in contents.checked_keys.iter().rev() {
        let hours = SystemTime::now().duration_since(key.used).map_or(0, |since| since.as_secs() / 3600);
        let ago = match hours {
            0 => "within the hour".into(),
            1..48 => format!("{hours} h ago"),
            _ => format!("{} days ago", hours / 24),
        };
        lines.push(format!("  {}  used {ago}", key.name));
    }
    report::result(&lines.join("\n"));
    Ok(())
}
