//! Output files of a command: opened before the work, so that a wrong path costs nothing, and committed after it.

use crate::failure::{Failure, Outcome};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use tandem_formats::Output;
use zeroize::Zeroizing;

/// Output files that appear together or not at all.
pub(crate) struct Outputs {
    files: Vec<Output>,
}

impl Outputs {
    /// Opens `outputs`, none of which may be one of `inputs` or another output.
    pub(crate) fn open(outputs: &[&Path], inputs: &[&Path]) -> Outcome<Self> {
        Self::check(outputs, inputs)?;
        let files = outputs.iter().map(Output::create).collect::<Result<_, _>>()?;
        Ok(Self { files })
    }

    /// Fails where an output is one of `inputs` or another output.
    pub(crate) fn check(outputs: &[&Path], inputs: &[&Path]) -> Outcome {
        for (i, output) in outputs.iter().enumerate() {
            let same = |other: &&&Path| is_regular_or_new(output) && identity(other) == identity(output);
            if let Some(input) = inputs.iter().find(same) {
                let problem = format!("the output would replace the input {}; give another name", input.display());
                return Err(Failure::file(output, problem));
            }
            if outputs[..i].iter().any(|other| same(&other)) {
                return Err(Failure::file(output, "is named for two outputs; give each its own name"));
            }
        }
        Ok(())
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

/// `/dev/stdout` and the like may be named as often as one likes.
fn is_regular_or_new(path: &Path) -> bool {
    path.metadata().map_or(true, |m| m.is_file())
}

/// The same for two names of one file.
fn identity(path: &Path) -> PathBuf {
    if let Ok(whole) = path.canonicalize() {
        return whole;
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (folder.canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path.into(),
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
