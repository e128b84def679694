//! The inputs of a circuit, read from JSON as the text goes by: nothing of it is kept but names and field elements.

use crate::number::Modulus;
use crate::values::Values;
use crate::{list, Error, Result};
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use zeroize::Zeroize;

/// Integers up to here survive every JSON tool; JavaScript rounds larger ones.
const SAFE_INTEGER: u64 = (1 << 53) - 1;

/// Bytes of a signal's name.
const NAME_BYTES_MAX: usize = 4096;

/// Bytes that a signal takes beside its name and its values, rounded up.
const SIGNAL_BYTES: usize = 256;

/// What the circuit says of its inputs while they are read.
pub(crate) trait Shape {
    /// The field's modulus.
    fn modulus(&self) -> &Modulus;
    /// How many values the circuit takes in all, if it tells.
    fn total(&self) -> Option<usize>;
    /// How many values the signal of this name has, if the circuit tells; 0 where there is no such signal.
    fn size(&mut self, name: &str) -> Result<Option<usize>>;
    /// The names of the inputs, as far as they are known.
    fn names(&mut self) -> Result<Vec<String>>;
    /// Counts bytes that are about to be allocated; fails where they are too many.
    fn take(&mut self, bytes: usize) -> Result<()>;
    /// Takes back the count of bytes that have been freed.
    fn give(&mut self, bytes: usize);
}

/// The values of every input signal, by name. Wiped when dropped.
#[derive(Default)]
pub(crate) struct Inputs {
    signals: BTreeMap<String, Values>,
    len: usize,
}

impl Inputs {
    /// Reads a JSON object that maps names to numbers: as JSON numbers up to 2^53 - 1, strings (decimal, or with `0x`,
    /// `0o`, `0b`), booleans, and arrays of these, nested to any depth that the JSON reader takes. Objects stand for circom's buses:
    /// the member `b` of `a` is the signal `a.b`, of an array element `a[0].b`. Of members with one name the last one counts,
    /// as in JavaScript.
    ///
    /// The JSON reader copies a string with escapes, and a number of more than 19 digits, to memory that it does not wipe.
    pub(crate) fn read(json: &[u8], shape: &mut dyn Shape) -> Result<Self> {
        let mut reader = Reader { shape, inputs: Inputs::default(), problem: None };
        let mut json = serde_json::Deserializer::from_slice(json);
        let read = Document(&mut reader).deserialize(&mut json).and_then(|()| json.end());
        match (reader.problem, read) {
            (Some(problem), _) => Err(problem),
            (None, Err(e)) => {
                let place = format!("line {}, column {}", e.line(), e.column());
                Err(Error::inputs(format!("{place}: not JSON ({})", kind(&e))))
            }
            (None, Ok(())) => Ok(reader.inputs),
        }
    }

    /// The signals, in the order of their names.
    pub(crate) fn signals(&self) -> impl Iterator<Item = (&str, &Values)> {
        self.signals.iter().map(|(name, values)| (name.as_str(), values))
    }

    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

/// The names, which are the user's; values wipe themselves.
impl Drop for Inputs {
    fn drop(&mut self) {
        while let Some((mut name, _)) = self.signals.pop_first() {
            name.zeroize();
        }
    }
}

struct Reader<'s> {
    shape: &'s mut dyn Shape,
    inputs: Inputs,
    /// Why reading stopped, where it was not the JSON.
    problem: Option<Error>,
}

impl Reader<'_> {
    /// Forgets a signal, and the members of a bus, that an earlier member of this name has set.
    fn forget(&mut self, name: &str) {
        let signals = &mut self.inputs.signals;
        let mut earlier: Vec<String> = signals.get_key_value(name).map(|(name, _)| name.clone()).into_iter().collect();
        for prefix in [format!("{name}."), format!("{name}[")] {
            let from = signals.range(prefix.clone()..);
            earlier.extend(from.map(|(name, _)| name).take_while(|name| name.starts_with(&prefix)).cloned());
        }
        for name in earlier {
            if let Some(values) = signals.remove(&name) {
                self.inputs.len -= values.len();
                self.shape.give(values.bytes() + name.len() + SIGNAL_BYTES);
            }
        }
    }

    fn push(&mut self, place: &mut Place, value: &[u32]) -> Result<()> {
        let name = &place.name;
        if place.values.len() == 0 {
            place.size = self.shape.size(name)?;
        }
        match place.size {
            Some(0) => {
                let names = self.shape.names()?;
                let known = if names.is_empty() {
                    String::new()
                } else {
                    format!(", whose inputs are {}", list(names.into_iter()))
                };
                return Err(Error::inputs(format!(
                    "signal {name} is not an input of the circuit{known}; remove or rename it"
                )));
            }
            Some(size) if place.values.len() >= size => {
                return Err(Error::inputs(format!("signal {name}: too many values, expected {size}, found more")));
            }
            _ => {}
        }
        if let Some(total) = self.shape.total().filter(|&total| self.inputs.len >= total) {
            return Err(Error::inputs(format!("signal {name}: the circuit needs {total} input values, found more")));
        }
        self.inputs.len += 1;
        place.values.push(value, |bytes| self.shape.take(bytes))
    }

    /// Puts what a member holds to the others.
    fn keep(&mut self, mut place: Place) -> Result<()> {
        if place.has_objects {
            return Ok(());
        }
        let given = place.values.len();
        if given == 0 {
            place.size = self.shape.size(&place.name)?;
        }
        if let Some(size) = place.size.filter(|&size| given < size) {
            let problem = format!("too few values, expected {size}, found {given}");
            return Err(Error::inputs(format!("signal {}: {problem}", place.name)));
        }
        // There is nothing to set, and a text may have millions of such names.
        if given == 0 {
            return Ok(());
        }
        self.shape.take(place.name.len() + SIGNAL_BYTES)?;
        self.inputs.signals.insert(place.name, place.values);
        Ok(())
    }
}

/// The member that is being read.
struct Place {
    name: String,
    /// The place in arrays.
    indices: Vec<usize>,
    has_objects: bool,
    values: Values,
    size: Option<usize>,
}

/// Ends the JSON reader's work for a problem that is not the JSON's.
fn stop<E: serde::de::Error>(reader: &mut Reader, problem: Error) -> E {
    reader.problem = Some(problem);
    E::custom("stopped")
}

/// The whole text.
struct Document<'r, 's>(&'r mut Reader<'s>);

impl<'de> DeserializeSeed<'de> for Document<'_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(Item { reader: self.0, place: None })
    }
}

/// One value: the document where there is no place, else a member or an element of one.
struct Item<'r, 's, 'p> {
    reader: &'r mut Reader<'s>,
    place: Option<&'p mut Place>,
}

impl<'de> DeserializeSeed<'de> for Item<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Item<'_, '_, '_> {
    /// Takes a value that `parse` makes of the modulus, or says what is wrong with it.
    fn scalar<E: serde::de::Error>(
        self,
        kind: &str,
        parse: impl FnOnce(&Modulus) -> Result<zeroize::Zeroizing<Vec<u32>>, &'static str>,
    ) -> Result<(), E> {
        let Self { reader, place } = self;
        let Some(place) = place else {
            let why = format!("expected an object that maps signal names to values, found {kind}");
            return Err(stop(reader, Error::inputs(why)));
        };
        if place.has_objects {
            let why = format!("signal {}: an array of objects also holds {kind}", place.name);
            return Err(stop(reader, Error::inputs(why)));
        }
        // A value is named by its place, never by what it is.
        let value = parse(reader.shape.modulus())
            .map_err(|problem| Error::inputs(format!("signal {}: value {} {problem}", place.name, place.values.len())));
        let pushed = value.and_then(|value| reader.push(place, &value));
        pushed.map_err(|problem| stop(reader, problem))
    }

    fn integer<E: serde::de::Error>(self, magnitude: u64, is_negative: bool) -> Result<(), E> {
        self.scalar("a number", |modulus| {
            if magnitude > SAFE_INTEGER {
                return Err("is a number beyond 2^53 - 1, which JSON tools round; write it as a string");
            }
            Ok(modulus.integer(magnitude, is_negative))
        })
    }
}

impl<'de> Visitor<'de> for Item<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.scalar("null", |_| Err("is null, expected a number"))
    }

    fn visit_bool<E: serde::de::Error>(self, bit: bool) -> Result<(), E> {
        self.scalar("a boolean", |modulus| Ok(modulus.integer(bit.into(), false)))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<(), E> {
        self.integer(number, false)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<(), E> {
        self.integer(number.unsigned_abs(), number < 0)
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<(), E> {
        if number.fract() != 0.0 {
            return self.scalar("a number", |_| Err("is not an integer"));
        }
        // `1e3` and `5.0` are integers to JavaScript, too. What does not fit becomes the largest, which is refused.
        self.integer(number.abs() as u64, number < 0.0)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        self.scalar("a string", |modulus| modulus.parse(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self { reader, place } = self;
        let Some(place) = place else {
            let why = "expected an object that maps signal names to values, found an array";
            return Err(stop(reader, Error::inputs(why.into())));
        };
        place.indices.push(0);
        while items.next_element_seed(Item { reader: &mut *reader, place: Some(&mut *place) })?.is_some() {
            if let Some(last) = place.indices.last_mut() {
                *last += 1;
            }
        }
        place.indices.pop();
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let Self { reader, place } = self;
        let mut prefix = String::new();
        if let Some(place) = place {
            if place.values.len() > 0 {
                let why = format!("signal {}: an array of other values also holds an object", place.name);
                return Err(stop(reader, Error::inputs(why)));
            }
            place.has_objects = true;
            let indices: String = place.indices.iter().map(|index| format!("[{index}]")).collect();
            prefix = format!("{}{indices}.", place.name);
        }
        while let Some(member) = members.next_key::<String>()? {
            let name = format!("{prefix}{member}");
            if name.len() > NAME_BYTES_MAX {
                let why = format!("a signal's name has more than {NAME_BYTES_MAX} bytes: {name}");
                return Err(stop(reader, Error::inputs(why)));
            }
            reader.forget(&name);
            let mut place =
                Place { name, indices: Vec::new(), has_objects: false, values: Values::default(), size: None };
            members.next_value_seed(Item { reader: &mut *reader, place: Some(&mut place) })?;
            reader.keep(place).map_err(|problem| stop(reader, problem))?;
        }
        Ok(())
    }
}

/// What is wrong with the JSON, without the text around it: that may be secret.
fn kind(error: &serde_json::Error) -> &'static str {
    if error.is_eof() {
        "it ends too early"
    } else if error.to_string().starts_with("recursion limit exceeded") {
        "it is nested more than 127 deep"
    } else {
        "a syntax error"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes all names; counts bytes.
    struct Any {
        modulus: Modulus,
        total: Option<usize>,
        size: Option<usize>,
        taken: usize,
        most: usize,
    }

    impl Shape for Any {
        fn modulus(&self) -> &Modulus {
            &self.modulus
        }

        fn total(&self) -> Option<usize> {
            self.total
        }

        fn size(&mut self, _: &str) -> Result<Option<usize>> {
            Ok(self.size)
        }

        fn names(&mut self) -> Result<Vec<String>> {
            Ok(Vec::new())
        }

        fn take(&mut self, bytes: usize) -> Result<()> {
            self.taken += bytes;
            if self.taken > self.most {
                return Err(Error::inputs("too large".into()));
            }
            Ok(())
        }

        fn give(&mut self, bytes: usize) {
            self.taken -= bytes;
        }
    }

    fn any() -> Any {
        // 2^61 - 1
        let modulus = Modulus::new(vec![u32::MAX, (1 << 29) - 1]).unwrap();
        Any { modulus, total: None, size: None, taken: 0, most: 1 << 20 }
    }

    fn read_as(json: &str, shape: &mut Any) -> Result<Vec<(String, String)>> {
        let inputs = Inputs::read(json.as_bytes(), shape)?;
        let mut found = Vec::new();
        for (name, values) in inputs.signals() {
            let mut texts = Vec::new();
            values.try_for_each(2, |_, limbs| {
                let value = u64::from(limbs[0]) | u64::from(limbs[1]) << 32;
                let negative = (1 << 61) - 1 - value;
                texts.push(if negative < 1000 { format!("-{negative}") } else { value.to_string() });
                Ok::<_, Error>(())
            })?;
            found.push((name.to_string(), texts.join(" ")));
        }
        Ok(found)
    }

    fn read(json: &str) -> Result<Vec<(String, String)>> {
        read_as(json, &mut any())
    }

    fn error(json: &str) -> String {
        read(json).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn every_kind_of_value_is_read() {
        let json =
            r#"{"b": "12", "a": [[1, -2], ["0x1f", true]], "z": 9007199254740991, "e": [], "f": 1e3, "g": -5.0}"#;
        let expected = [("a", "1 -2 31 1"), ("b", "12"), ("f", "1000"), ("g", "-5"), ("z", "9007199254740991")];
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
    fn depth_is_bounded() {
        let deep = |depth| format!("{{\"a\":{}1{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(error(&deep(10_000)).ends_with("not JSON (it is nested more than 127 deep)"));
        assert_eq!(read(&deep(126)).unwrap(), [("a".to_string(), "1".to_string())]);
    }
}
