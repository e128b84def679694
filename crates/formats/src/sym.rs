//! Symbol files of circom (`circom --sym`): the name of each signal.
//!
//! ```text
//! label,wire,component,name        one line a signal; the wire is -1 where circom simplified the signal away
//! ```

use crate::error::{FormatError, InFile, Place, Result};
use crate::file::RegularFile;
use crate::kind::FileKind;
use crate::limits;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Reads the names of some wires: of each the first that the file has. A wire that the file does not name is left out.
///
/// # Errors
/// The file cannot be read, is of another kind, or a line is not as the format says.
pub fn names_of(path: impl AsRef<Path>, wires: impl IntoIterator<Item = u32>) -> Result<BTreeMap<u32, String>> {
    let path = path.as_ref();
    let file = RegularFile::open(path)?;
    let wanted = wires.into_iter().map(|wire| (wire, String::new())).collect();
    pick(BufReader::new(file.file()), wanted).in_file(path)
}

/// Reads the names of signals as the circuit's inputs are named in JSON, each once: without `main.` and the indices at the end.
/// Signals of components are among them. No more than [`limits::SIGNALS_MAX`]; a circuit's own come first.
///
/// # Errors
/// As for [`names_of`].
pub fn signals(path: impl AsRef<Path>) -> Result<BTreeSet<String>> {
    let path = path.as_ref();
    let file = RegularFile::open(path)?;
    gather(BufReader::new(file.file())).in_file(path)
}

fn gather(text: impl BufRead) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    each(text, |_, name| {
        let mut name = name.strip_prefix("main.").unwrap_or(name);
        while let Some((whole, _)) = name.strip_suffix(']').and_then(|name| name.rsplit_once('[')) {
            name = whole;
        }
        if !names.contains(name) {
            names.insert(name.to_string());
        }
        names.len() < limits::SIGNALS_MAX
    })?;
    Ok(names)
}

fn pick(text: impl BufRead, mut names: BTreeMap<u32, String>) -> Result<BTreeMap<u32, String>> {
    each(text, |wire, name| {
        if let Some(found) = u32::try_from(wire).ok().and_then(|wire| names.get_mut(&wire)).filter(|n| n.is_empty()) {
            found.push_str(name);
        }
        true
    })?;
    names.retain(|_, name| !name.is_empty());
    Ok(names)
}

/// Calls `line` with the wire and the name of each signal, as long as it wants more.
fn each(mut text: impl BufRead, mut wants_more: impl FnMut(i64, &str) -> bool) -> Result<()> {
    let cannot_read = |e| FormatError::whole(format!("cannot read: {e}"), None);
    let kind = FileKind::of(text.fill_buf().map_err(cannot_read)?);
    if !matches!(kind, Some(FileKind::Sym | FileKind::Text)) {
        return Err(FileKind::refuse(kind, FileKind::Sym.describe()));
    }
    let mut line = Vec::new();
    for number in 1u64.. {
        line.clear();
        // One byte more than a line may have, so that a longer one is told from one that ends there.
        let length = (&mut text).take(limits::SYM_LINE_MAX as u64 + 1).read_until(b'\n', &mut line);
        let length = length.map_err(cannot_read)?;
        if length == 0 {
            break;
        }
        let refuse = |problem: &str| {
            let place = Place { index: Some(("line", number)), ..Place::default() };
            FormatError::at(place, problem).advise("make the file again with circom --sym")
        };
        if length > limits::SYM_LINE_MAX {
            return Err(refuse("expected a line of at most 65536 bytes, found a longer one"));
        }
        let expected = "expected a line of label, wire, component and name, with commas between";
        let line = std::str::from_utf8(&line).map_err(|_| refuse(expected))?.trim_end();
        let mut fields = line.splitn(4, ',');
        let mut number = || fields.next().and_then(|field| field.parse::<i64>().ok()).ok_or_else(|| refuse(expected));
        let (_label, wire, _component) = (number()?, number()?, number()?);
        let name = fields.next().filter(|name| !name.is_empty()).ok_or_else(|| refuse(expected))?;
        if !wants_more(wire, name) {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8], wires: &[u32]) -> Result<Vec<(u32, String)>> {
        let wanted = wires.iter().map(|&wire| (wire, String::new())).collect();
        Ok(pick(text, wanted)?.into_iter().collect())
    }

    #[test]
    fn the_first_name_of_a_wire_is_its_own() {
        let text = b"1,1,3,main.out\n2,2,3,main.a[0]\n3,-1,2,main.gone\n4,2,1,main.x.alias\n5,9,1,main.x,y\r\n";
        let found = read(text, &[2, 9, 7]).unwrap();
        assert_eq!(found, [(2, "main.a[0]".into()), (9, "main.x,y".into())]);
        assert_eq!(read(b"1,1,1,end", &[1]).unwrap(), [(1, "end".into())]);
    }

    #[test]
    fn signals_are_named_as_in_the_inputs() {
        let text = b"1,1,1,main.c\n2,2,1,main.p.x\n3,-1,1,main.q[0].y[0]\n4,-1,1,main.q[0].y[1]\n5,-1,1,main.m[1][2]\n";
        let found: Vec<_> = gather(&text[..]).unwrap().into_iter().collect();
        assert_eq!(found, ["c", "m", "p.x", "q[0].y"]);
    }

    #[test]
    fn other_kinds_are_told() {
        for (text, part) in [(&b""[..], "an empty file"), (b"r1cs\x01\0\0\0", "an r1cs file"), (b"{}", "a JSON file")] {
            let error = read(text, &[1]).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("expected a sym file"), "{error}");
        }
    }

    #[test]
    fn other_lines_are_refused_by_number() {
        for line in ["", "1", "1,2", "1,2,3", "1,2,3,", "a,2,3,n", "1,,3,n", "1,2,x,n", "1,99999999999999999999,3,n"] {
            let error = read(format!("1,1,1,main.a\n{line}\n").as_bytes(), &[1]).unwrap_err().to_string();
            assert!(error.starts_with("line 2: expected a line of label, wire"), "{line:?}: {error}");
        }
        assert!(read(b"1,1,1,\xff\n", &[1]).is_err());
        let with = |length: usize| [b"1,1,1,".to_vec(), vec![b'n'; length], b"\n".to_vec()].concat();
        assert!(read(&with(limits::SYM_LINE_MAX - 7), &[1]).is_ok());
        let error = read(&with(limits::SYM_LINE_MAX - 6), &[1]).unwrap_err().to_string();
        assert!(error.contains("at most 65536 bytes"), "{error}");
    }
}
