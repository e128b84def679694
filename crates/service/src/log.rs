//! What happens, a line for each event on stderr: `event=… name=value …`.

use std::io::Write;

/// Writes an event. Values come from callers and files: what is no plain text is written as JSON writes it.
pub(crate) fn log(event: &str, values: &[(&str, &str)]) {
    let _ = writeln!(std::io::stderr(), "{}", line(crate::core::clock_ms(), event, values));
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

#[cfg(test)]
mod tests {
    #[test]
    fn a_value_cannot_begin_another_line() {
        let line = super::line(1_500, "x", &[("a", "plain"), ("b", "two words\nevent=forged"), ("c", "")]);
        assert_eq!(line, "time=1.500 event=x a=plain b=\"two words\\nevent=forged\" c=\"\"");
    }
}
