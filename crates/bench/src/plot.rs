//! `--plot`: the file that a bench draws to.

use crate::chart::Chart;
use crate::png::png;
use clap::builder::TypedValueParser;
use clap::Args;
use std::path::{Path, PathBuf};
use tandem_console::failure::{Failure, Outcome};
use tandem_console::files::Outputs;
use tandem_console::values::output;

/// Where a bench draws what it measured.
#[derive(Args, Clone, Default)]
pub(crate) struct PlotFile {
    /// Draw what was measured to this file, an SVG or a PNG by its suffix; - prints SVG on stdout
    #[arg(id = "plot", long = "plot", value_name = "FILE", value_parser = drawing())]
    pub(crate) file: Option<PathBuf>,
}

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
        let is_stream = file.metadata().is_ok_and(|m| !m.is_file() && !m.is_dir());
        match suffix.as_deref() {
            Some("svg") => Ok(Self::Svg),
            Some("png") => Ok(Self::Png),
            _ if is_stream => Ok(Self::Svg),
            _ => Err("expected a name that ends in .svg or .png"),
        }
    }
}

/// A file to draw to; one with another suffix is a wrong command line.
fn drawing() -> impl TypedValueParser<Value = PathBuf> {
    output().try_map(|file| Kind::of(&file).map(|_| file))
}

/// A chart on its way to a file, if one was asked for.
pub(crate) struct Plot {
    file: Option<(Outputs, Kind)>,
    chart: Chart,
}

impl Plot {
    /// Opens the file before anything is measured. `x` says what sizes count, `y` what is measured, with its unit.
    pub(crate) fn open(file: &PlotFile, x: &str, y: &str) -> Outcome<Self> {
        let open = |file: &Path| -> Outcome<_> {
            let kind = Kind::of(file).map_err(|why| Failure::file(file, why))?;
            Ok((Outputs::open(&[file])?, kind))
        };
        let file = file.file.as_deref().map(open).transpose()?;
        Ok(Self { file, chart: Chart { x: x.into(), y: y.into(), ..Chart::default() } })
    }

    /// Adds a measured value.
    pub(crate) fn add(&mut self, name: &str, size: f64, value: f64) {
        self.chart.add(name, None, (size, value));
    }

    /// Adds what bounds the values of `of`.
    pub(crate) fn bound(&mut self, of: &str, word: &str, size: f64, value: f64) {
        self.chart.add(&format!("{word}: {of}"), Some(of), (size, value));
    }

    /// Writes the file.
    pub(crate) fn write(mut self, title: &str) -> Outcome {
        let Some((file, kind)) = self.file else { return Ok(()) };
        self.chart.title = title.into();
        let picture = self.chart.picture().ok_or_else(|| Failure::input("--plot: there is nothing to draw"))?;
        match kind {
            Kind::Svg => file.commit(&[picture.to_svg()]),
            Kind::Png => file.commit(&[png(&picture)?]),
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
        for name in ["a.pdf", "svg", "a.svg.gz", ".png"] {
            let problem = kind(name).unwrap_err();
            assert!(problem.contains(".svg or .png"), "{name}: {problem}");
        }
    }
}
