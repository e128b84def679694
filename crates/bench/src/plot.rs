//! `--plot`: the file that a bench draws to.

use crate::chart::Chart;
use clap::Args;
use std::path::PathBuf;
use tandem_console::drawing::{self, Drawing};
use tandem_console::failure::{Failure, Outcome};

/// Where a bench draws what it measured.
#[derive(Args, Clone, Default)]
pub(crate) struct PlotFile {
    /// Draw what was measured to this file, an SVG or a PNG by its suffix; - prints SVG on stdout
    #[arg(id = "plot", long = "plot", value_name = "FILE", value_parser = drawing::parser())]
    pub(crate) file: Option<PathBuf>,
}

/// A chart on its way to a file, if one was asked for.
pub(crate) struct Plot {
    file: Option<Drawing>,
    chart: Chart,
}

impl Plot {
    /// Opens the file before anything is measured. `x` says what sizes count, `y` what is measured, with its unit.
    pub(crate) fn open(file: &PlotFile, x: &str, y: &str) -> Outcome<Self> {
        let file = file.file.as_deref().map(Drawing::open).transpose()?;
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
        let Some(file) = self.file else { return Ok(()) };
        self.chart.title = title.into();
        file.write(&self.chart.picture().ok_or_else(|| Failure::input("--plot: there is nothing to draw"))?)
    }
}
