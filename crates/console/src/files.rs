//! Output files of a command: opened before the work, so that a wrong path costs nothing, and committed after it.

use crate::failure::{Failure, Outcome};
use std::collections::{HashMap, HashSet};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use tandem_formats::place::{self, Place};
use tandem_formats::Output;
use zeroize::Zeroizing;

/// The files that a command line names.
#[derive(Default)]
pub struct Named {
    /// Files that are read.
    pub inputs: Vec<PathBuf>,
    /// Files that are written.
    pub outputs: Vec<PathBuf>,
}

/// Output files that appear together or not at all.
pub struct Outputs {
    files: Vec<Output>,
}

impl Outputs {
    /// Opens `outputs`. That none of them is an input or another output has been checked for the whole command line.
    pub fn open(outputs: &[&Path]) -> Outcome<Self> {
        let files = outputs.iter().map(Output::create).collect::<Result<_, _>>()?;
        Ok(Self { files })
    }

    /// Writes what the files hold, in the order of [`Outputs::open`]; nothing after Ctrl-C, even if the work got done.
    pub fn commit(mut self, contents: &[impl AsRef<[u8]>]) -> Outcome {
        crate::interrupt::check()?;
        for (file, content) in self.files.iter_mut().zip(contents) {
            file.write_all(content.as_ref()).map_err(|e| file.error(e))?;
        }
        Ok(tandem_formats::output::commit(self.files)?)
    }
}

/// Fails where an output is one of `inputs` or another output, or a stream is to be read twice.
pub fn check(outputs: &[PathBuf], inputs: &[PathBuf]) -> Outcome {
    let inputs_by_file: HashMap<PathBuf, &PathBuf> = inputs.iter().map(|input| (identity(input), input)).collect();
    let mut named = HashSet::new();
    for output in outputs.iter().filter(|output| is_regular_or_new(output)) {
        let file = identity(output);
        if let Some(input) = inputs_by_file.get(&file) {
            let problem = format!("the output would replace the input {}; give another name", input.display());
            return Err(Failure::file(output, problem));
        }
        // What is open already, such as `/dev/stdout`, may be named as often as one likes.
        if !is_open(output) && !named.insert(file) {
            return Err(Failure::file(output, "is named for two outputs; give each its own name"));
        }
    }
    let mut read = HashSet::new();
    for input in inputs.iter().filter(|input| is_open(input) || !is_regular_or_new(input)) {
        if !read.insert(identity(input)) && !input.is_dir() {
            return Err(Failure::file(
                input,
                "is named for two inputs, and can be read but once; give one of them as a file",
            ));
        }
    }
    Ok(())
}

/// Whether this is a name for what is open already.
fn is_open(path: &Path) -> bool {
    matches!(Place::of(path), Ok(Place::Open(_) | Place::OpenElsewhere(_)))
}

/// No pipe or device, which may be named as often as one likes.
fn is_regular_or_new(path: &Path) -> bool {
    path.metadata().map_or(true, |m| m.is_file())
}

/// A path that is equal for two names of one file.
fn identity(path: &Path) -> PathBuf {
    match (path.canonicalize(), Place::of(path)) {
        (Ok(whole), _) | (_, Ok(Place::Name(whole))) => whole,
        (_, Ok(Place::Open(number))) => format!("/dev/fd/{number}").into(),
        _ => path.into(),
    }
}

/// Bytes that are read at a time.
const PIECE: usize = 1 << 20;

/// Reads a whole file, or pipe, of at most `max` bytes. No copy of them stays behind: they may be secret.
pub fn read(path: &Path, max: u64) -> Outcome<Zeroizing<Vec<u8>>> {
    let fail = |doing: &str, e: std::io::Error| Failure::file(path, format!("cannot {doing}: {e}"));
    let mut file = place::open_to_read(path).map_err(|e| fail("open", e))?;
    // One allocation where the length is known.
    let length = file.metadata().map_err(|e| fail("open", e))?.len().min(max) as usize;
    let mut bytes = Zeroizing::new(Vec::with_capacity(length + 1));
    loop {
        let at = bytes.len();
        if at == bytes.capacity() {
            let mut larger = Zeroizing::new(Vec::with_capacity(at.max(PIECE) * 2));
            larger.extend_from_slice(&bytes);
            bytes = larger;
        }
        let end = bytes.capacity().min(at + PIECE);
        bytes.resize(end, 0);
        let count = loop {
            match file.read(&mut bytes[at..]) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                other => break other.map_err(|e| fail("read", e))?,
            }
        };
        bytes.truncate(at + count);
        if bytes.len() as u64 > max {
            return Err(Failure::file(path, format!("expected at most {max} bytes, the file has more")));
        }
        if count == 0 {
            return Ok(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_up_to_their_largest_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let text: Vec<u8> = (0..3 * PIECE + 7).map(|i| (i % 251) as u8).collect();
        std::fs::write(&path, &text).unwrap();
        let is_text = |max: usize| read(&path, max as u64).map(|bytes| *bytes == text).map_err(|e| e.to_string());
        assert_eq!(is_text(text.len()), Ok(true));
        assert_eq!(is_text(usize::MAX / 2), Ok(true));
        assert!(is_text(text.len() - 1).unwrap_err().contains("expected at most"));
        // Of a length that is not known.
        let (from, mut to) = std::io::pipe().unwrap();
        let pipe = PathBuf::from(format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&from)));
        std::thread::scope(|scope| {
            scope.spawn(move || to.write_all(&text).unwrap());
            let read = read(&pipe, u64::MAX / 2).ok().unwrap();
            assert!(read.iter().enumerate().all(|(i, byte)| *byte == (i % 251) as u8) && read.len() == 3 * PIECE + 7);
        });
        assert!(read(Path::new("/dev/zero"), 1 << 20).unwrap_err().to_string().contains("expected at most"));
    }
}
