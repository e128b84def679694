//! Progress bars on a terminal, for tasks that take longer than a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tandem_engine::{Lane, Progress};

/// A task shorter than this shows no bar.
const SHOWN_AFTER: Duration = Duration::from_secs(1);

struct Task {
    name: &'static str,
    bar: ProgressBar,
    begun: Instant,
    shown: bool,
}

/// Hears of progress and draws it.
pub struct Bars {
    task: Option<Arc<Mutex<Option<Task>>>>,
    /// Dropped with the value, which ends the thread that brings bars to light.
    _stop: Option<Sender<()>>,
}

impl Bars {
    /// Draws on stderr if that is a terminal.
    pub fn new(quiet: bool) -> Self {
        if quiet || !std::io::stderr().is_terminal() {
            return Self { task: None, _stop: None };
        }
        let task: Arc<Mutex<Option<Task>>> = Arc::default();
        let (stop, stopped) = channel::<()>();
        let shared = task.clone();
        let show = move || {
            while stopped.recv_timeout(Duration::from_millis(200)) == Err(RecvTimeoutError::Timeout) {
                if let Some(task) = lock(&shared).as_mut().filter(|t| !t.shown && t.begun.elapsed() >= SHOWN_AFTER) {
                    task.bar.set_draw_target(ProgressDrawTarget::stderr());
                    task.bar.enable_steady_tick(Duration::from_millis(200));
                    task.shown = true;
                }
            }
        };
        // Where there is no thread for them, there are no bars.
        if std::thread::Builder::new().name("progress".into()).spawn(show).is_err() {
            return Self { task: None, _stop: None };
        }
        Self { task: Some(task), _stop: Some(stop) }
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        if let Some(old) = self.task.as_ref().and_then(|task| lock(task).take()) {
            old.bar.finish_and_clear();
        }
    }
}

impl Progress for Bars {
    fn start(&self, task: &'static str, total: u64) {
        self.clear();
        let Some(slot) = &self.task else { return };
        let template = match total {
            0 => "{spinner} {msg} {elapsed}",
            _ => "{msg:28} [{bar:24}] {percent:>3} %  {elapsed}, {eta} left",
        };
        let bar = ProgressBar::with_draw_target((total > 0).then_some(total), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(task);
        *lock(slot) = Some(Task { name: task, bar, begun: Instant::now(), shown: false });
    }

    fn advance(&self, units: u64) {
        if let Some(task) = self.task.as_ref().and_then(|slot| lock(slot).as_ref().map(|t| t.bar.clone())) {
            task.inc(units);
        }
    }

    /// On the CPU a stage is done when it is told of, so that this one is the latest. Other devices are through before a bar is shown.
    fn enqueued(&self, stage: &'static str, _: Lane) {
        if let Some(task) = self.task.as_ref().and_then(|slot| lock(slot).as_ref().map(|t| (t.bar.clone(), t.name))) {
            task.0.set_message(format!("{}: {stage} done", task.1));
        }
    }

    fn cancelled(&self) -> bool {
        crate::interrupt::asked()
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.clear();
    }
}

fn lock(task: &Mutex<Option<Task>>) -> std::sync::MutexGuard<'_, Option<Task>> {
    task.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_says_which_stage_is_done() {
        let bars = Bars { task: Some(Arc::default()), _stop: None };
        bars.enqueued("MSM A", Lane(0));
        bars.start("prove", 0);
        bars.enqueued("MSM B2", Lane(0));
        let said = |bars: &Bars| lock(bars.task.as_ref().unwrap()).as_ref().map(|task| task.bar.message());
        assert_eq!(said(&bars).unwrap(), "prove: MSM B2 done");
        bars.clear();
        assert!(said(&bars).is_none());
    }
}
