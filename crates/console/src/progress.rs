//! Progress bars on a terminal, for tasks that take longer than a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tandem_engine::Progress;

/// A task shorter than this shows no bar.
const SHOWN_AFTER: Duration = Duration::from_secs(1);

struct Task {
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
            _ => "{msg:20} [{bar:40}] {percent:>3} %  {elapsed}, {eta} left",
        };
        let bar = ProgressBar::with_draw_target((total > 0).then_some(total), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(task);
        *lock(slot) = Some(Task { bar, begun: Instant::now(), shown: false });
    }

    fn advance(&self, units: u64) {
        if let Some(task) = self.task.as_ref().and_then(|slot| lock(slot).as_ref().map(|t| t.bar.clone())) {
            task.inc(units);
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
