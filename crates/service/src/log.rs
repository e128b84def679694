//! What happens, a line for each event on stderr: `event=… name=value …`.

use crate::config::LogForm;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether lines are JSON: one process has one log.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Sets how lines are written from now on.
pub(crate) fn write_as(form: LogForm) {
    IS_JSON.store(form == LogForm::Json, Ordering::Relaxed);
}

/// Writes an event. Values come from callers and files: what is no plain text is written as JSON writes it.
pub(crate) fn log(event: &str, values: &[(&str, &str)]) {
    let ms = crate::core::clock_ms();
    let line = if IS_JSON.load(Ordering::Relaxed) { object(ms, event, values) } else { line(ms, event, values) };
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn line(ms: i64, event: &str, values: &[(&str, &str)]) -> String {
    let mut line = format!("time={}.{:03} event={event}", ms / 1000, ms % 1000);
    for (name, value) in values {
        let is_plain = !value.is_empty() && value.bytes().all(|b| b.is_ascii_graphic() && b != b'"' && b != b'=');
        let value = if is_plain { value.to_string() } else { serde_json::Value::from(*value).to_string() };
        line += &format!(" {name}={value}");
    }
    line
}

/// An event as an object of JSON; `time` is in seconds since 1970.
fn object(ms: i64, event: &str, values: &[(&str, &str)]) -> String {
    let mut object = serde_json::Map::new();
    object.insert("time".into(), (ms as f64 / 1e3).into());
    object.insert("event".into(), event.into());
    object.extend(values.iter().map(|(name, value)| (name.to_string(), (*value).into())));
    serde_json::Value::Object(object).to_string()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_value_cannot_begin_another_line() {
        let line = super::line(1_500, "x", &[("a", "plain"), ("b", "two words\nevent=forged"), ("c", "")]);
        assert_eq!(line, "time=1.500 event=x a=plain b=\"two words\\nevent=forged\" c=\"\"");
        let object = super::object(1_500, "x", &[("a", "two words\nevent=forged")]);
        let object: serde_json::Value = serde_json::from_str(&object).unwrap();
        assert_eq!(object, serde_json::json!({"time": 1.5, "event": "x", "a": "two words\nevent=forged"}));
    }
}
