//! What a file is, by its first bytes: one recogniser for all readers, so that each says what it was given.

use crate::error::FormatError;

/// What a file is. Files of circom and snarkjs are told apart down to their proof system; others by their magic number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A proving key of snarkjs: for Groth16, or for a system that its first bytes do not tell.
    Zkey,
    /// A proving key of snarkjs for another system.
    ZkeyOf(OtherSystem),
    /// A witness.
    Wtns,
    /// A constraint system.
    R1cs,
    /// Powers of tau.
    Ptau,
    /// A Groth16 key of bellperson, as Filecoin's parameters are.
    Params,
    /// A Groth16 verification key.
    VerificationKey,
    /// A verification key of another system.
    VerificationKeyOf(OtherSystem),
    /// A Groth16 proof.
    Proof,
    /// A proof of another system.
    ProofOf(OtherSystem),
    /// Public values.
    Public,
    /// Other text that starts as JSON does.
    Json,
    /// Names of signals, from `circom --sym`.
    Sym,
    /// The source of a circuit.
    Circom,
    /// A WebAssembly module.
    Wasm,
    /// The graph of a circuit for circom-witnesscalc.
    Graph,
    /// The placeholder that Git LFS leaves for a file it has not downloaded.
    GitLfsPointer,
    /// A page of the web.
    Html,
    /// XML.
    Xml,
    /// A program or a library of Linux.
    Elf,
    /// A packed file, by its name with the article.
    Packed(&'static str),
    /// Other text.
    Text,
    /// Nothing at all.
    Empty,
}

/// A proof system of snarkjs beside Groth16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherSystem {
    /// PLONK.
    Plonk,
    /// FFLONK.
    Fflonk,
}

impl FileKind {
    /// Looks at the first bytes of a file. A few KiB are enough; more are needed only where the members of a JSON file come late.
    /// `None` is a file of unknown type.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let kind = match bytes {
            [] => FileKind::Empty,
            [b'z', b'k', b'e', b'y', ..] => of_zkey(bytes),
            // A version is a small number, so its second byte is 0.
            [b'w', b't', b'n', b's', b'.', ..] => FileKind::Graph,
            [b'w', b't', b'n', b's', ..] => FileKind::Wtns,
            [b'r', b'1', b'c', b's', ..] => FileKind::R1cs,
            [b'p', b't', b'a', b'u', ..] => FileKind::Ptau,
            [0, b'a', b's', b'm', ..] => FileKind::Wasm,
            [0x7f, b'E', b'L', b'F', ..] => FileKind::Elf,
            [0x1f, 0x8b, ..] => FileKind::Packed("a gzip file"),
            [b'P', b'K', 3, 4, ..] => FileKind::Packed("a zip file"),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => FileKind::Packed("a zstd file"),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => FileKind::Packed("an xz file"),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => FileKind::Packed("a bzip2 file"),
            _ if bytes.get(257..262) == Some(b"ustar") => FileKind::Packed("a tar file"),
            _ if crate::params::begins(bytes) => FileKind::Params,
            _ => return of_text(bytes),
        };
        Some(kind)
    }

    /// The kind in words, with its article.
    pub fn describe(self) -> &'static str {
        use OtherSystem::{Fflonk, Plonk};
        match self {
            FileKind::Zkey => "a zkey file",
            FileKind::ZkeyOf(Plonk) => "a PLONK zkey file",
            FileKind::ZkeyOf(Fflonk) => "an FFLONK zkey file",
            FileKind::Wtns => "a wtns file",
            FileKind::R1cs => "an r1cs file",
            FileKind::Ptau => "a powers of tau file (ptau)",
            FileKind::Params => "a Groth16 key of bellperson (params)",
            FileKind::VerificationKey => "a Groth16 verification key (JSON)",
            FileKind::VerificationKeyOf(Plonk) => "a PLONK verification key (JSON)",
            FileKind::VerificationKeyOf(Fflonk) => "an FFLONK verification key (JSON)",
            FileKind::Proof => "a Groth16 proof (JSON)",
            FileKind::ProofOf(Plonk) => "a PLONK proof (JSON)",
            FileKind::ProofOf(Fflonk) => "an FFLONK proof (JSON)",
            FileKind::Public => "public values (JSON)",
            FileKind::Json => "a JSON file of another kind, such as the inputs of a circuit",
            FileKind::Sym => "a sym file",
            FileKind::Circom => "the source of a circuit",
            FileKind::Wasm => "a WebAssembly module",
            FileKind::Graph => "a circom-witnesscalc graph",
            FileKind::GitLfsPointer => "a Git LFS pointer, not the file itself",
            FileKind::Html => "a web page",
            FileKind::Xml => "an XML file",
            FileKind::Elf => "an ELF program or library",
            FileKind::Packed(name) => name,
            FileKind::Text => "a text file",
            FileKind::Empty => "an empty file",
        }
    }

    /// What to do with such a file where another kind is expected.
    fn advice(self) -> &'static str {
        match self {
            FileKind::Circom => "compile it first: circom circuit.circom --r1cs --wasm --sym --O2",
            FileKind::Graph => "a graph computes witnesses: tandem witness GRAPH input.json witness.wtns",
            FileKind::GitLfsPointer => "run git lfs pull",
            FileKind::Html => "download the file itself",
            FileKind::Packed(_) => "unpack it first",
            FileKind::Empty => "copy, download or make it again",
            _ => "check the order of the arguments",
        }
    }

    /// The error of a file of this kind, or of an unknown one, where `expected` (with its article) is needed. It names no file.
    pub fn refuse(found: Option<Self>, expected: &str) -> FormatError {
        let (what, advice) =
            found.map_or(("a file of unknown type", "check the name"), |kind| (kind.describe(), kind.advice()));
        // As a file it is in its place, and is another proof system's.
        let is_role = |role: &&str| [what, expected].iter().all(|kind| kind.ends_with(*role));
        let is_other_system = ["proof (JSON)", "verification key (JSON)", "zkey file"].iter().any(is_role);
        let advice = if is_other_system { "use files of one proof system" } else { advice };
        FormatError::whole(format!("this is {what}, expected {expected}"), Some(advice))
    }
}

/// Proof system of a key, where the section that says it comes first, as snarkjs writes it.
fn of_zkey(bytes: &[u8]) -> FileKind {
    // magic, version, number of sections | number and length of the section, the system
    match bytes.get(12..28) {
        Some([1, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0]) => FileKind::ZkeyOf(OtherSystem::Plonk),
        Some([1, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0]) => FileKind::ZkeyOf(OtherSystem::Fflonk),
        _ => FileKind::Zkey,
    }
}

fn of_text(bytes: &[u8]) -> Option<FileKind> {
    let is_text = |b: &u8| *b >= b' ' || b.is_ascii_whitespace();
    let begins = |word: &str| bytes.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()));
    if begins("version https://git-lfs") {
        return Some(FileKind::GitLfsPointer);
    }
    let start = bytes.trim_ascii_start();
    if !bytes.iter().all(is_text) {
        return None;
    }
    // The last character may be cut off.
    if let Err(error) = std::str::from_utf8(bytes) {
        if error.error_len().is_some() {
            return None;
        }
    }
    Some(match start {
        [b'{', ..] => of_object(start),
        [b'[', rest @ ..] => match rest.trim_ascii_start() {
            [b'{', ..] => FileKind::Json,
            _ => FileKind::Public,
        },
        _ if begins("<!doctype html") || begins("<html") => FileKind::Html,
        [b'<', ..] => FileKind::Xml,
        _ if is_sym(start) => FileKind::Sym,
        _ if has(bytes, b"pragma circom") => FileKind::Circom,
        _ => FileKind::Text,
    })
}

fn has(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|part| part == word)
}

/// Whether the first line is that of a signal: label, wire, component, name.
fn is_sym(text: &[u8]) -> bool {
    let line = text.split(|b| *b == b'\n').next().unwrap_or_default();
    let fields: Vec<&[u8]> = line.splitn(4, |b| *b == b',').collect();
    let is_number = |field: &[u8]| {
        let digits = field.strip_prefix(b"-").unwrap_or(field);
        !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
    };
    matches!(fields[..], [label, wire, component, name]
        if [label, wire, component].into_iter().all(is_number) && !name.is_empty())
}

/// A JSON object, by the names of its members and the text of `protocol`, as far as the text goes.
fn of_object(text: &[u8]) -> FileKind {
    let (mut protocol, mut is_key, mut is_proof, mut is_other_proof) = (None, false, false, false);
    for (name, value) in (Members { rest: text, depth: 0 }) {
        match name {
            b"protocol" => protocol = value,
            b"nPublic" => is_key = true,
            b"pi_a" => is_proof = true,
            b"Wxi" | b"evaluations" => is_other_proof = true,
            _ => {}
        }
    }
    let other = match protocol {
        Some(b"plonk") => Some(OtherSystem::Plonk),
        Some(b"fflonk") => Some(OtherSystem::Fflonk),
        _ => None,
    };
    match (is_key, other) {
        (true, Some(other)) => FileKind::VerificationKeyOf(other),
        (true, None) => FileKind::VerificationKey,
        (false, Some(other)) if is_proof || is_other_proof => FileKind::ProofOf(other),
        (false, _) if is_proof => FileKind::Proof,
        _ => FileKind::Json,
    }
}

/// Members of the outermost object of a JSON text: the name, and the value where it is a string. Escapes stay as they are; a text
/// that is cut off, or no good JSON, gives what it has.
struct Members<'a> {
    rest: &'a [u8],
    depth: usize,
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        while let Some((&first, after)) = self.rest.split_first() {
            if first == b'"' {
                let (name, after) = string(self.rest)?;
                self.rest = after.trim_ascii_start();
                if let (1, Some(value)) = (self.depth, self.rest.strip_prefix(b":")) {
                    // The value is walked over in the next round.
                    self.rest = value.trim_ascii_start();
                    return Some((name, string(self.rest).map(|(text, _)| text)));
                }
                continue;
            }
            match first {
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            self.rest = after;
        }
        None
    }
}

/// The string that a text begins with, without its quotes, and what follows it; `None` where it does not end.
fn string(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let inner = text.strip_prefix(b"\"")?;
    let mut is_escaped = false;
    let end = inner.iter().position(|&b| {
        let ends = b == b'"' && !is_escaped;
        is_escaped = b == b'\\' && !is_escaped;
        ends
    })?;
    Some((&inner[..end], &inner[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_by_their_system() {
        let key = |system: u8, id: u8| {
            let mut file = b"zkey\x01\0\0\0\x0a\0\0\0".to_vec();
            file.extend([id, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, system, 0, 0, 0]);
            FileKind::of(&file)
        };
        assert_eq!(key(1, 1), Some(FileKind::Zkey));
        assert_eq!(key(2, 1), Some(FileKind::ZkeyOf(OtherSystem::Plonk)));
        assert_eq!(key(10, 1), Some(FileKind::ZkeyOf(OtherSystem::Fflonk)));
        assert_eq!(key(2, 2), Some(FileKind::Zkey));
        assert_eq!(FileKind::of(b"zkey"), Some(FileKind::Zkey));
    }

    #[test]
    fn json_is_told_by_its_outermost_members() {
        for (text, kind) in [
            (r#"{"protocol":"groth16","curve":"bn128","nPublic":1"#, FileKind::VerificationKey),
            (r#"{"nPublic": 1, "protocol" : "plonk"}"#, FileKind::VerificationKeyOf(OtherSystem::Plonk)),
            (r#"{"protocol":"fflonk","nPublic":1"#, FileKind::VerificationKeyOf(OtherSystem::Fflonk)),
            (r#"{"pi_a":["1","2","1"],"pi_b":[["#, FileKind::Proof),
            (r#"{"A":["1"],"Wxi":["2"],"protocol":"plonk"}"#, FileKind::ProofOf(OtherSystem::Plonk)),
            (
                r#"{"polynomials":{"C1":["1"]},"evaluations":{"ql":"2"},"protocol":"fflonk"}"#,
                FileKind::ProofOf(OtherSystem::Fflonk),
            ),
            (r#"{"a": {"pi_a": 1}, "b": "pi_a", "c\"": ["nPublic", {"x": 1}]}"#, FileKind::Json),
            (r#"{"pi_a"#, FileKind::Json),
            ("{", FileKind::Json),
            (" [ \"1\"", FileKind::Public),
            ("[]", FileKind::Public),
            ("[", FileKind::Public),
            ("[{", FileKind::Json),
        ] {
            assert_eq!(FileKind::of(text.as_bytes()), Some(kind), "{text}");
        }
    }

    #[test]
    fn text_is_told_from_bytes() {
        for (text, kind) in [
            (&b"1,1,0,main.a\n"[..], Some(FileKind::Sym)),
            (b"12,-1,3,main.x[0]", Some(FileKind::Sym)),
            (b"1,1,0,", Some(FileKind::Text)),
            (b"// a circuit\npragma circom 2.0.0;", Some(FileKind::Circom)),
            (b"<!DOCTYPE HTML><html>", Some(FileKind::Html)),
            (b"<system version=\"1\">", Some(FileKind::Xml)),
            (b"version https://git-lfs.github.com/spec/v1", Some(FileKind::GitLfsPointer)),
            ("gr\u{fc}n".as_bytes(), Some(FileKind::Text)),
            // Cut off within a character, and none.
            (b"gr\xc3", Some(FileKind::Text)),
            (b"gr\xfcn", None),
            (b"{\x01", None),
            (b"\0", None),
        ] {
            assert_eq!(FileKind::of(text), kind, "{text:?}");
        }
    }

    #[test]
    fn versions_tell_a_witness_from_a_graph() {
        assert_eq!(FileKind::of(b"wtns\x02\0\0\0"), Some(FileKind::Wtns));
        assert_eq!(FileKind::of(b"wtns"), Some(FileKind::Wtns));
        assert_eq!(FileKind::of(b"wtns.graph.001"), Some(FileKind::Graph));
    }
}
