//! What the commands share: the common options, the device, progress and the trace.

use crate::failure::{Failure, Outcome};
use crate::files::Outputs;
use crate::options::{Common, Schedule};
use crate::progress::Bars;
use crate::report;
use crate::trace::Trace;
use tandem_engine::{DeviceChoice, Engine};

/// A command on its way.
pub struct Session {
    /// The devices that the user chose.
    pub device: DeviceChoice,
    /// How they share the work.
    pub schedule: Schedule,
    /// Whether nothing but errors is told.
    pub quiet: bool,
    /// Progress.
    pub bars: Bars,
    /// What ran when.
    pub trace: Trace,
    trace_file: Option<Outputs>,
}

impl Session {
    /// Opens the trace's file, if one is asked for, so that a wrong path costs no work.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new(common: &Common) -> Outcome<Self> {
        Ok(Self {
            device: common.device.clone(),
            schedule: common.schedule,
            quiet: common.quiet,
            bars: Bars::new(common.quiet),
            trace: Trace::new(common.trace.is_some()),
            trace_file: common.trace.as_ref().map(|file| Outputs::open(&[file])).transpose()?,
        })
    }

    /// A remark on stderr, unless the user wants quiet.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            self.bars.clear();
            report::note(text);
        }
    }

    /// Opens the device; says what `auto` took.
    ///
    /// # Errors
    /// The device cannot be had.
    pub fn open(&self) -> Outcome<Opened> {
        self.open_as(&self.device, self.schedule)
    }

    /// Opens another device, or with another schedule, than the user asked for.
    ///
    /// # Errors
    /// The device cannot be had.
    pub fn open_as(&self, device: &DeviceChoice, schedule: Schedule) -> Outcome<Opened> {
        let open = || Engine::open_as(device, schedule.into());
        let engine = self.trace.step("open device", open).map_err(|e| match e {
            tandem_engine::Error::Device(why) => {
                Failure::device(format!("--device {}: {why}; tandem doctor says more", self.device))
            }
            other => other.into(),
        })?;
        // The backend's clock starts when the device is ready, at the end of the step.
        let at = self.trace.now();
        let report = engine.report();
        if self.device == DeviceChoice::Auto {
            let why = if report.why.is_empty() { String::new() } else { format!(": {}", report.why) };
            self.note(&format!("device: {}{why}", report.lanes.join(", ")));
        }
        Ok(Opened { engine, at })
    }

    /// Writes the trace, if one is asked for: also that of a command that failed, to show where, but for one that was interrupted.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(self) -> Outcome {
        self.bars.clear();
        self.trace_file.map_or(Ok(()), |file| file.commit(&[&self.trace.to_json()]))
    }
}

/// An engine and when it was opened, in seconds of the trace.
pub struct Opened {
    /// The engine.
    pub engine: Engine,
    /// Seconds.
    pub at: f64,
}
