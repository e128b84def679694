//! How long what Python holds lives: a world is closed once, for all objects that stand on it.

use crate::errors;
use pyo3::exceptions::PyBufferError;
use pyo3::{Py, PyAny, PyResult};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What all objects of a world have in common.
pub(crate) struct Life {
    /// What the world was opened with, for messages.
    name: String,
    is_closed: AtomicBool,
    /// Views of the world's memory that others hold.
    views: AtomicUsize,
    /// Handles that closing takes away.
    slots: Mutex<Vec<Weak<dyn Clear>>>,
    /// The caller's streams that are the world's queues: they outlive the handles.
    _streams: Vec<Py<PyAny>>,
}

trait Clear: Send + Sync {
    fn clear(&self);
}

impl<T: Send + Sync> Clear for RwLock<Option<T>> {
    fn clear(&self) {
        let taken = self.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(taken);
    }
}

impl Life {
    pub(crate) fn new(name: String, streams: Vec<Py<PyAny>>) -> Arc<Self> {
        let (is_closed, views) = (AtomicBool::new(false), AtomicUsize::new(0));
        Arc::new(Life { name, is_closed, views, slots: Mutex::default(), _streams: streams })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Forbids everything from here on; fails while somebody has a view. [`Life::release`] gives the memory back.
    pub(crate) fn close(&self) -> PyResult<()> {
        let views = self.views.load(Ordering::SeqCst);
        if views > 0 {
            return Err(PyBufferError::new_err(format!(
                "close {}: {views} views of its arrays are in use, such as NumPy arrays made of Array.on(); delete them first",
                self.name
            )));
        }
        self.is_closed.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Drops every handle. The fabric frees memory behind the work that queues still have.
    pub(crate) fn release(&self) {
        let slots = std::mem::take(&mut *lock(&self.slots));
        slots.iter().filter_map(Weak::upgrade).for_each(|slot| slot.clear());
    }

    fn error(&self) -> pyo3::PyErr {
        errors::closed(format!("{} is closed: open a new World", self.name))
    }
}

/// A handle of the fabric, until the world is closed.
pub(crate) struct Slot<T> {
    // Dropped before the life, which keeps streams.
    handle: Arc<RwLock<Option<T>>>,
    pub(crate) life: Arc<Life>,
}

impl<T: Clone + Send + Sync + 'static> Slot<T> {
    pub(crate) fn new(life: &Arc<Life>, handle: T) -> Self {
        let handle = Arc::new(RwLock::new(Some(handle)));
        let mut slots = lock(&life.slots);
        // Those that are gone are forgotten each time that the list would grow.
        if slots.len() == slots.capacity() {
            slots.retain(|slot| slot.strong_count() > 0);
        }
        let weak: Weak<dyn Clear> = Arc::downgrade(&(handle.clone() as Arc<dyn Clear>));
        slots.push(weak);
        drop(slots);
        Slot { life: life.clone(), handle }
    }

    /// The handle.
    pub(crate) fn get(&self) -> PyResult<T> {
        let handle = self.handle.read().unwrap_or_else(PoisonError::into_inner).clone();
        handle.filter(|_| !self.life.is_closed()).ok_or_else(|| self.life.error())
    }
}

/// Somebody sees the memory: the world is not closed meanwhile.
pub(crate) struct View(Arc<Life>);

impl View {
    pub(crate) fn new(life: &Arc<Life>) -> PyResult<Self> {
        life.views.fetch_add(1, Ordering::SeqCst);
        let view = View(life.clone());
        if life.is_closed() {
            return Err(life.error());
        }
        Ok(view)
    }
}

impl Clone for View {
    fn clone(&self) -> Self {
        self.0.views.fetch_add(1, Ordering::SeqCst);
        View(self.0.clone())
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.0.views.fetch_sub(1, Ordering::SeqCst);
    }
}
