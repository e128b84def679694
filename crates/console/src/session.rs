//! What the commands share: the common options, the device, progress and the trace.

use crate::failure::{Failure, Outcome};
use crate::files::Outputs;
use crate::options::{Common, Schedule};
use crate::progress::Bars;
use crate::report;
use crate::trace::{Beside, Trace};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tandem_engine::{DeviceChoice, Engine, Gauges};

/// The step of opening the devices.
const OPEN: &str = "open device";

/// A command on its way.
pub struct Session {
    /// The devices that the user chose.
    pub device: DeviceChoice,
    /// How they share the work.
    pub schedule: Schedule,
    /// Memory to take of each GPU, at most.
    pub gpu_memory: Option<u64>,
    /// Whether nothing but errors is told.
    pub quiet: bool,
    /// Whether to say how long each part took.
    pub verbose: bool,
    /// When the command began.
    pub begun: Instant,
    /// Progress.
    pub bars: Bars,
    /// What ran when.
    pub trace: Trace,
    trace_file: Option<Outputs>,
    /// Of the device that was opened last, while there is a trace.
    gauges: Mutex<Option<Gauges>>,
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
            gpu_memory: common.gpu_memory,
            quiet: common.quiet,
            verbose: common.verbose,
            begun: Instant::now(),
            bars: Bars::new(common.quiet),
            trace: Trace::new(common.trace.is_some()),
            trace_file: common.trace.as_ref().map(|file| Outputs::open(&[file])).transpose()?,
            gauges: Mutex::default(),
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
        let open = || Engine::open_within(device, schedule.into(), self.gpu_memory);
        let opened = self.opened(self.trace.step(OPEN, open))?;
        self.tell(&opened);
        Ok(opened)
    }

    /// Says what `auto` took.
    pub fn tell(&self, opened: &Opened) {
        if self.device == DeviceChoice::Auto {
            let report = opened.engine.report();
            let why = if report.why.is_empty() { String::new() } else { format!(": {}", report.why) };
            self.note(&format!("device: {}{why}", report.lanes.join(", ")));
        }
    }

    /// Opens the device on a thread beside others, and says nothing ([`Session::tell`]).
    ///
    /// # Errors
    /// The device cannot be had.
    pub fn open_beside(&self) -> Outcome<Opened> {
        let open = || Engine::open_within(&self.device, self.schedule.into(), self.gpu_memory);
        self.opened(self.trace.step_beside(Beside::Device, OPEN, open))
    }

    fn opened(&self, engine: tandem_engine::Result<Engine>) -> Outcome<Opened> {
        let engine = engine.map_err(|e| match e {
            tandem_engine::Error::Device(why) | tandem_engine::Error::OutOfMemory(why) => {
                Failure::device(format!("--device {}: {why}; tandem doctor says more", self.device))
            }
            other => other.into(),
        })?;
        if self.trace_file.is_some() {
            let of_this = Gauges::begin(engine.report());
            let before = self.gauges.lock().unwrap_or_else(PoisonError::into_inner).replace(of_this);
            before.map(Gauges::end).iter().for_each(|gauges| self.trace.gauges(gauges));
        }
        // The backend's clock starts when the device is ready, at the end of the step.
        Ok(Opened { engine, at: self.trace.now() })
    }

    /// Writes the trace, if one is asked for: also that of a command that failed, to show where, but for one that was interrupted.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(self) -> Outcome {
        self.bars.clear();
        let gauges = self.gauges.into_inner().unwrap_or_else(PoisonError::into_inner);
        gauges.map(Gauges::end).iter().for_each(|gauges| self.trace.gauges(gauges));
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
