//! Section 10: who took part in the ceremony that made the key. Read for people to look at; no proof depends on it.

use super::{G1Point, G2Point};
use crate::container::Reader;
use crate::error::Result;
use crate::limits;
use tandem_ops::Curve;

/// What section 10 says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contributions {
    /// BLAKE2b hash of the circuit and of the powers of tau.
    pub circuit_hash: [u8; 64],
    /// One entry for each contribution, oldest first.
    pub entries: Vec<Contribution>,
}

/// One contribution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contribution {
    /// Whether somebody's secret or a public beacon went in.
    pub kind: ContributionKind,
    /// The name that it was given, as the file has it: show it escaped.
    pub name: Option<String>,
    /// Bytes of the beacon.
    pub beacon: Option<Vec<u8>>,
    /// The beacon was hashed 2^this times.
    pub iterations_log2: Option<u8>,
}

/// Where the randomness of a contribution came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContributionKind {
    /// A participant's secret.
    Secret,
    /// A public random beacon.
    Beacon,
}

/// Why a key must not be trusted, by what it says of its ceremony: words in capitals, a colon, and what follows from them. `None` for a key
/// that somebody contributed to.
pub fn distrust(contributions: Option<&Contributions>) -> Option<&'static str> {
    match contributions {
        None => Some(
            "NO CEREMONY: the file does not say who took part in its making; take it for a test key unless you know better",
        ),
        Some(made) if !made.entries.is_empty() => None,
        // See docs/decisions/0015-test-keys.md: no ceremony hashes to zero.
        Some(made) if made.circuit_hash == [0; 64] => Some(
            "TEST KEY: made by tandem setup; whoever made it can know its secret and forge proofs; \
             use it for tests, never in production",
        ),
        Some(_) => Some(
            "NO CONTRIBUTIONS: a ceremony's first key; anybody can forge proofs for it; \
             run snarkjs zkey contribute before you use it",
        ),
    }
}

impl Contributions {
    /// Bytes of the section without any entry: the hash and the count.
    pub(super) const EMPTY_LEN: u64 = 68;

    /// ```text
    /// 64 bytes of hash | u32 count | count x { G1 delta | G1 s | G1 sx | G2 spx | 64 bytes of transcript | u32 type
    ///     | u32 length | length bytes of { u8 tag | value }, tags rising: 1 name, 3 beacon: u8 length | bytes; 2: u8 }
    /// ```
    pub(super) fn read<C: Curve>(mut section: Reader<'_>) -> Result<Self> {
        let mut circuit_hash = [0; 64];
        circuit_hash.copy_from_slice(section.take(64, "circuit hash")?);
        let count = section.u32("number of contributions")?;
        if count > limits::CONTRIBUTIONS_MAX {
            let problem = format!("expected at most {} contributions, found {count}", limits::CONTRIBUTIONS_MAX);
            return Err(section.error_before(4, problem));
        }
        // Grown as entries are read, so that a wrong count takes no memory.
        let mut entries = Vec::new();
        for _ in 0..count {
            section.take(3 * size_of::<G1Point<C>>() + size_of::<G2Point<C>>(), "points of a contribution")?;
            section.take(64, "transcript")?;
            let kind = match section.u32("type of contribution")? {
                0 => ContributionKind::Secret,
                1 => ContributionKind::Beacon,
                other => {
                    let problem = format!("expected contribution type 0 or 1, found {other}");
                    return Err(section.error_before(4, problem));
                }
            };
            let mut entry = Contribution { kind, name: None, beacon: None, iterations_log2: None };
            let length = section.u32("length of the parameters")? as usize;
            let end = section.rest().checked_sub(length).ok_or_else(|| {
                section
                    .error_before(4, format!("expected at most {} bytes of parameters, found {length}", section.rest()))
            })?;
            let mut last_tag = 0;
            while section.rest() > end {
                let tag = section.take(1, "parameter tag")?[0];
                if tag <= last_tag || tag > 3 {
                    let problem = format!("expected a parameter tag from {} to 3, found {tag}", last_tag + 1);
                    return Err(section.error_before(1, problem));
                }
                last_tag = tag;
                let value = section.take(1, "parameter")?[0];
                if tag == 2 {
                    entry.iterations_log2 = Some(value);
                    continue;
                }
                let text = section.take(value.into(), "parameter")?;
                match tag {
                    1 => entry.name = Some(String::from_utf8_lossy(text).into_owned()),
                    _ => entry.beacon = Some(text.to_vec()),
                }
            }
            if section.rest() != end {
                return Err(section.error("expected the parameters to end with their stated length"));
            }
            entries.push(entry);
        }
        section.end()?;
        Ok(Self { circuit_hash, entries })
    }
}
