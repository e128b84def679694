//! Files that commands draw to: SVG, or PNG by the suffix.

use crate::failure::{Failure, Outcome};
use crate::files::Outputs;
use crate::png::png;
use crate::report;
use crate::values::{output, STDOUT};
use clap::builder::TypedValueParser;
use std::path::{Path, PathBuf};
use tandem_fabric_topology::picture::Picture;

/// What files can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Svg,
    Png,
}

impl Kind {
    /// By the suffix; what is no file, such as a pipe, gets an SVG.
    fn of(file: &Path) -> Result<Self, &'static str> {
        let suffix = file.extension().map(|s| s.to_string_lossy().to_ascii_lowercase());
        let is_stream = file == Path::new(STDOUT) || file.metadata().is_ok_and(|m| !m.is_file() && !m.is_dir());
        match suffix.as_deref() {
            Some("svg") => Ok(Self::Svg),
            Some("png") => Ok(Self::Png),
            _ if is_stream => Ok(Self::Svg),
            _ => Err("expected a name that ends in .svg or .png"),
        }
    }
}

/// A file to draw to, or - for stdout; a name with another suffix is a wrong command line.
pub fn parser() -> impl TypedValueParser<Value = PathBuf> {
    output().try_map(|file| Kind::of(&file).map(|_| file))
}

/// The file of a drawing, opened before the work so that a wrong path costs no time.
pub enum Drawing {
    /// Printed as other results are, as SVG.
    Stdout,
    /// Written whole or not at all.
    File(DrawingFile),
}

/// A file of a drawing.
pub struct DrawingFile(Outputs, Kind);

impl Drawing {
    /// Opens what [`parser`] gave.
    ///
    /// # Errors
    /// As [`Outputs::open`], and for a name with another suffix.
    pub fn open(file: &Path) -> Outcome<Self> {
        let kind = Kind::of(file).map_err(|why| Failure::file(file, why))?;
        if file == Path::new(STDOUT) {
            return Ok(Self::Stdout);
        }
        Ok(Self::File(DrawingFile(Outputs::open(&[file])?, kind)))
    }

    /// Draws.
    ///
    /// # Errors
    /// Where the file cannot be written, or a PNG would be too large.
    pub fn write(self, picture: &Picture) -> Outcome {
        match self {
            Self::Stdout => {
                report::result(&picture.to_svg());
                Ok(())
            }
            Self::File(DrawingFile(file, Kind::Svg)) => file.commit(&[picture.to_svg()]),
            Self::File(DrawingFile(file, Kind::Png)) => file.commit(&[png(picture)?]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_say_what_is_drawn() {
        let kind = |name: &str| Kind::of(Path::new(name));
        assert_eq!((kind("a.svg"), kind("a/b.PNG"), kind("/dev/null")), (Ok(Kind::Svg), Ok(Kind::Png), Ok(Kind::Svg)));
        assert_eq!(kind(STDOUT), Ok(Kind::Svg));
        for name in ["a.pdf", "svg", "a.svg.gz", ".png"] {
            let problem = kind(name).unwrap_err();
            assert!(problem.contains(".svg or .png"), "{name}: {problem}");
        }
    }
}
