//! Output files of a command: opened before the work, so that a wrong path costs nothing, and committed after it.

use crate::failure::{Failure, Outcome};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use tandem_formats::Output;
use zeroize::Zeroizing;

/// Links that are followed, as on Linux.
const LINKS_MAX: usize = 40;

/// Output files that appear together or not at all.
pub(crate) struct Outputs {
    files: Vec<Output>,
}

impl Outputs {
    /// Opens `outputs`. That none of them is an input or another output has been checked for the whole command line.
    pub(crate) fn open(outputs: &[&Path]) -> Outcome<Self> {
        let files = outputs.iter().map(Output::create).collect::<Result<_, _>>()?;
        Ok(Self { files })
    }

    /// Writes the files' texts, in the order of [`Outputs::open`]; nothing after Ctrl-C, even if the work got done.
    pub(crate) fn commit(mut self, texts: &[&str]) -> Outcome {
        crate::interrupt::check()?;
        for (file, text) in self.files.iter_mut().zip(texts) {
            file.write_all(text.as_bytes()).map_err(|e| file.error(e))?;
        }
        Ok(tandem_formats::output::commit(self.files)?)
    }
}

/// Fails where an output is one of `inputs` or another output.
pub(crate) fn check(outputs: &[PathBuf], inputs: &[PathBuf]) -> Outcome {
    let inputs_by_file: HashMap<PathBuf, &PathBuf> = inputs.iter().map(|input| (identity(input), input)).collect();
    let mut named = HashSet::new();
    for output in outputs.iter().filter(|output| is_regular_or_new(output)) {
        let file = identity(output);
        if let Some(input) = inputs_by_file.get(&file) {
            let problem = format!("the output would replace the input {}; give another name", input.display());
            return Err(Failure::file(output, problem));
        }
        if !named.insert(file) {
            return Err(Failure::file(output, "is named for two outputs; give each its own name"));
        }
    }
    Ok(())
}

/// `/dev/stdout` and the like may be named as often as one likes.
fn is_regular_or_new(path: &Path) -> bool {
    path.metadata().map_or(true, |m| m.is_file())
}

/// The same for two names of one file.
fn identity(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    // A link whose file is yet to be made; one that leads round in a circle names nothing.
    for _ in 0..LINKS_MAX {
        match path.read_link() {
            Ok(to) => path = path.parent().unwrap_or(Path::new("")).join(to),
            Err(_) => break,
        }
    }
    if let Ok(whole) = path.canonicalize() {
        return whole;
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (folder.canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path,
    }
}

/// Reads a whole file, or pipe, of at most `max` bytes.
pub(crate) fn read(path: &Path, max: u64) -> Outcome<Zeroizing<Vec<u8>>> {
    let fail = |doing: &str, e: std::io::Error| Failure::file(path, format!("cannot {doing}: {e}"));
    let file = File::open(path).map_err(|e| fail("open", e))?;
    let length = file.metadata().map_err(|e| fail("open", e))?.len().min(max);
    // One allocation where the length is known, so that no stale copy of a secret stays behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(length as usize + 1));
    file.take(max + 1).read_to_end(&mut bytes).map_err(|e| fail("read", e))?;
    if bytes.len() as u64 > max {
        return Err(Failure::file(path, format!("expected at most {max} bytes, the file has more")));
    }
    Ok(bytes)
}
