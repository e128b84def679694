//! The inputs of a circuit, read from JSON.

use crate::{Error, Result};
use serde_json::Value;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Bytes of one file of inputs.
const INPUT_BYTES_MAX: usize = 1 << 30;

/// Integers up to here survive every JSON tool; JavaScript rounds larger ones.
const SAFE_INTEGER: u64 = (1 << 53) - 1;

/// The values of every input signal, by name. Wiped when dropped.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Inputs {
    signals: Vec<Signal>,
}

/// One signal's values as text, innermost index fastest.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Signal {
    pub(crate) name: String,
    pub(crate) values: Vec<String>,
}

impl Inputs {
    /// Reads a JSON object that maps names to numbers: as JSON numbers up to 2^53 - 1, strings (decimal, or with `0x`,
    /// `0o`, `0b`), booleans, and arrays of these, nested to any depth. Objects stand for circom's buses: the member `b`
    /// of `a` is the signal `a.b`, of an array element `a[0].b`.
    pub fn from_json(text: &[u8]) -> Result<Self> {
        if text.len() > INPUT_BYTES_MAX {
            return Err(Error::inputs("the file is larger than 1 GiB; give fewer inputs".into()));
        }
        let mut json: Value = serde_json::from_slice(text)
            .map_err(|e| Error::inputs(format!("line {}, column {}: not JSON ({})", e.line(), e.column(), kind(&e))))?;
        let mut inputs = Inputs { signals: Vec::new() };
        let result = match &json {
            Value::Object(members) => members.iter().try_for_each(|(name, value)| inputs.add(name.clone(), value)),
            other => Err(Error::inputs(format!(
                "expected an object that maps signal names to values, found {}",
                describe(other)
            ))),
        };
        wipe(&mut json);
        result.map(|()| inputs)
    }

    pub(crate) fn signals(&self) -> &[Signal] {
        &self.signals
    }

    fn add(&mut self, name: String, value: &Value) -> Result<()> {
        match value {
            Value::Object(members) => {
                members.iter().try_for_each(|(member, value)| self.add(format!("{name}.{member}"), value))
            }
            Value::Array(items) if contains_object(items) => {
                items.iter().enumerate().try_for_each(|(i, item)| match item {
                    Value::Object(_) | Value::Array(_) => self.add(format!("{name}[{i}]"), item),
                    other => Err(mixed(&name, other)),
                })
            }
            value => {
                let mut signal = Signal { name, values: Vec::new() };
                flatten(value, &mut signal)?;
                self.signals.push(signal);
                Ok(())
            }
        }
    }
}

/// Secret values are not printed.
impl std::fmt::Debug for Inputs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.signals.iter().map(|s| (&s.name, s.values.len()))).finish()
    }
}

fn contains_object(items: &[Value]) -> bool {
    items.iter().any(|item| match item {
        Value::Object(_) => true,
        Value::Array(inner) => contains_object(inner),
        _ => false,
    })
}

fn flatten(value: &Value, signal: &mut Signal) -> Result<()> {
    let text = match value {
        Value::Array(items) => return items.iter().try_for_each(|item| flatten(item, signal)),
        Value::String(text) => text.clone(),
        Value::Bool(bit) => u8::from(*bit).to_string(),
        Value::Number(number) => {
            let whole = match (number.as_i64(), number.as_f64()) {
                (Some(whole), _) => whole,
                // `1e3` and `5.0` are integers to JavaScript, too.
                (None, Some(float)) if float.fract() == 0.0 && float.abs() <= SAFE_INTEGER as f64 => float as i64,
                (None, Some(float)) if float.fract() != 0.0 => {
                    return Err(refuse(signal, "is not an integer"));
                }
                _ => i64::MAX,
            };
            if whole.unsigned_abs() > SAFE_INTEGER {
                let problem = "is a number beyond 2^53 - 1, which JSON tools round; write it as a string";
                return Err(refuse(signal, problem));
            }
            whole.to_string()
        }
        Value::Null => return Err(refuse(signal, "is null, expected a number")),
        other => return Err(mixed(&signal.name, other)),
    };
    signal.values.push(text);
    Ok(())
}

/// Names a value by its place, never by what it is.
fn refuse(signal: &Signal, problem: &str) -> Error {
    Error::inputs(format!("signal {}: value {} {problem}", signal.name, signal.values.len()))
}

fn mixed(name: &str, found: &Value) -> Error {
    Error::inputs(format!("signal {name}: an array of objects also holds {}", describe(found)))
}

fn describe(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// What is wrong with the JSON, without the text around it: that may be secret.
fn kind(error: &serde_json::Error) -> &'static str {
    if error.is_eof() {
        "it ends too early"
    } else {
        "a syntax error"
    }
}

fn wipe(value: &mut Value) {
    match value {
        Value::String(text) => text.zeroize(),
        Value::Array(items) => items.iter_mut().for_each(wipe),
        Value::Object(members) => members.values_mut().for_each(wipe),
        // A number or a boolean is stored in place and is overwritten here.
        other => *other = Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Vec<(String, String)>> {
        let inputs = Inputs::from_json(json.as_bytes())?;
        Ok(inputs.signals().iter().map(|s| (s.name.clone(), s.values.join(" "))).collect())
    }

    fn error(json: &str) -> String {
        read(json).unwrap_err().to_string()
    }

    #[test]
    fn every_kind_of_value_is_read() {
        let json =
            r#"{"b": "12", "a": [[1, -2], ["0x1f", true]], "z": 9007199254740991, "e": [], "f": 1e3, "g": -5.0}"#;
        let expected =
            [("a", "1 -2 0x1f 1"), ("b", "12"), ("e", ""), ("f", "1000"), ("g", "-5"), ("z", "9007199254740991")];
        let mut found = read(json).unwrap();
        found.sort();
        assert_eq!(found, expected.map(|(n, v)| (n.to_string(), v.to_string())));
    }

    #[test]
    fn buses_are_named_by_path() {
        let json = r#"{"p": {"x": 1, "y": [2, 3]}, "q": [{"x": 4}, {"x": 5}], "r": [[{"k": 6}]]}"#;
        let found = read(json).unwrap();
        let expected = [("p.x", "1"), ("p.y", "2 3"), ("q[0].x", "4"), ("q[1].x", "5"), ("r[0][0].k", "6")];
        assert_eq!(found, expected.map(|(n, v)| (n.to_string(), v.to_string())));
    }

    #[test]
    fn errors_name_the_signal_and_never_the_value() {
        assert_eq!(error(r#"{"a": [1, 1.5]}"#), "signal a: value 1 is not an integer");
        assert!(error(r#"{"a": 9007199254740992}"#).contains("signal a: value 0 is a number beyond 2^53 - 1"));
        assert!(error(r#"{"a": -9007199254740992}"#).contains("beyond 2^53 - 1"));
        assert!(error(r#"{"a": 1e60}"#).contains("beyond 2^53 - 1"));
        assert!(error(r#"{"a": 18446744073709551615}"#).contains("beyond 2^53 - 1"));
        assert!(error(r#"{"a": null}"#).contains("signal a: value 0 is null"));
        assert!(error(r#"{"a": [{"b": 1}, 2]}"#).contains("signal a: an array of objects also holds a number"));
        assert!(error("[1]").contains("expected an object"));
        assert_eq!(error("{\"a\": \n 777"), "line 2, column 4: not JSON (it ends too early)");
        assert!(error(r#"{"a": 12345 67}"#).ends_with("(a syntax error)"));
    }

    #[test]
    fn depth_and_debug_are_bounded() {
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(error(&deep).contains("not JSON"));
        let inputs = Inputs::from_json(br#"{"secret": "271828"}"#).unwrap();
        assert!(!format!("{inputs:?}").contains("271828"));
    }
}
