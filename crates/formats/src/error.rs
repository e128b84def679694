//! One error type: what is wrong, where in which file, and what to do about it.

use std::fmt;
use std::path::{Path, PathBuf};

/// Result of reading or writing a file.
pub type Result<T> = std::result::Result<T, FormatError>;

/// Why a file could not be read or written. Its `Display` is one line: the file, the place in it, what was expected,
/// what was found, and what to do.
#[derive(Debug)]
pub struct FormatError(Box<Fields>);

#[derive(Debug)]
struct Fields {
    path: Option<PathBuf>,
    place: Option<Place>,
    problem: String,
    advice: Option<&'static str>,
    source: Option<std::io::Error>,
    is_no_element: bool,
}

/// A place in a file. Offsets count from the start of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// Number and name of the section.
    pub section: Option<(u32, &'static str)>,
    /// Byte offset in the file.
    pub offset: Option<u64>,
    /// What is counted, and which one of it.
    pub index: Option<(&'static str, u64)>,
    /// The name of a JSON member, as a path such as `IC[3]`.
    pub member: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::with_capacity(4);
        if let Some((id, name)) = self.section {
            parts.push(format!("section {id} ({name})"));
        }
        if let Some((what, index)) = self.index {
            parts.push(format!("{what} {index}"));
        }
        if let Some(member) = &self.member {
            parts.push(member.clone());
        }
        if let Some(offset) = self.offset {
            parts.push(format!("byte {offset}"));
        }
        f.write_str(&parts.join(", "))
    }
}

/// What to do about a file that breaks its own format.
pub(crate) const DAMAGED: &str = "the file is damaged: copy, download or make it again";

/// What to do where there is no memory for what a file holds.
pub(crate) const MORE_MEMORY: &str = "use a machine with more memory, or raise the limit of this one's";

impl FormatError {
    /// An error at a place of a file.
    pub(crate) fn at(place: Place, problem: impl Into<String>) -> Self {
        let (place, problem) = (Some(place), problem.into());
        Self(Box::new(Fields { path: None, place, problem, advice: Some(DAMAGED), source: None, is_no_element: false }))
    }

    /// An error about a file as a whole.
    pub(crate) fn whole(problem: impl Into<String>, advice: Option<&'static str>) -> Self {
        Self(Box::new(Fields {
            path: None,
            place: None,
            problem: problem.into(),
            advice,
            source: None,
            is_no_element: false,
        }))
    }

    /// An operating system's refusal.
    pub(crate) fn io(path: &Path, doing: &str, source: std::io::Error) -> Self {
        let problem = format!("cannot {doing}: {source}");
        Self(Box::new(Fields {
            path: Some(path.into()),
            place: None,
            problem,
            advice: None,
            source: Some(source),
            is_no_element: false,
        }))
    }

    /// This error with other advice.
    #[must_use]
    pub fn advise(mut self, advice: &'static str) -> Self {
        self.0.advice = Some(advice);
        self
    }

    /// This error, naming the file, unless it already names one.
    #[must_use]
    pub fn in_file(mut self, path: &Path) -> Self {
        self.0.path.get_or_insert_with(|| path.into());
        self
    }

    /// Place and problem, for a message that names the file and says what to do itself.
    pub(crate) fn bare(self) -> String {
        Self(Box::new(Fields { path: None, advice: None, ..*self.0 })).to_string()
    }

    /// What is wrong, without the place.
    pub(crate) fn problem(&self) -> &str {
        &self.0.problem
    }

    /// This error as one about a number that is written well and is no element of its field.
    pub(crate) fn no_element(mut self) -> Self {
        self.0.is_no_element = true;
        self
    }

    /// This error as one about a number of a key, which is no proof's fault.
    pub(crate) fn into_damage(mut self) -> Self {
        self.0.is_no_element = false;
        self
    }

    /// Whether the file is formed well and only a number in it is not below the modulus.
    pub fn is_no_element(&self) -> bool {
        self.0.is_no_element
    }

    /// The file, where it is known.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// The place in the file, where there is one.
    pub fn place(&self) -> Option<&Place> {
        self.0.place.as_ref()
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.0.path {
            write!(f, "{}: ", path.display())?;
        }
        if let Some(place) = self.0.place.as_ref().filter(|&p| *p != Place::default()) {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.0.problem)?;
        if let Some(advice) = self.0.advice {
            write!(f, "; {advice}")?;
        }
        Ok(())
    }
}

impl std::error::Error for FormatError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|e| e as _)
    }
}

/// Names the file in an error.
pub(crate) trait InFile {
    /// See [`FormatError::in_file`].
    fn in_file(self, path: &Path) -> Self;
}

impl<T> InFile for Result<T> {
    fn in_file(self, path: &Path) -> Self {
        self.map_err(|e| e.in_file(path))
    }
}
