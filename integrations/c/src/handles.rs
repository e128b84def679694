//! What handles stand for, and what can go wrong.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tandem_fabric::{Error, Layout, Symmetric, Team};

/// What a handle stands for.
#[derive(Clone)]
pub(crate) enum Object {
    Team(Team),
    Memory(Memory),
    Array(Array),
}

/// Bytes on every PE of a team.
#[derive(Clone)]
pub(crate) struct Memory {
    pub(crate) team: Team,
    pub(crate) bytes: Symmetric<u8>,
}

/// Elements on all PEs.
#[derive(Clone)]
pub(crate) struct Array {
    pub(crate) part: Memory,
    pub(crate) layout: Layout,
    pub(crate) length: usize,
    /// Bytes of an element.
    pub(crate) element: usize,
}

/// Why a call has done nothing.
pub(crate) struct Failure {
    pub(crate) code: i32,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn handle(text: impl Into<String>) -> Self {
        Failure { code: 1, text: text.into() }
    }

    pub(crate) fn argument(text: impl Into<String>) -> Self {
        Failure { code: 2, text: text.into() }
    }

    pub(crate) fn device(text: impl Into<String>) -> Self {
        Failure { code: 5, text: text.into() }
    }

    pub(crate) fn internal() -> Self {
        Failure { code: 6, text: "a mistake of the library; standard error has more".into() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::OutOfMemory { .. } => 3,
            Error::Fault(_) => 4,
            Error::Device(_) | Error::Late { .. } => 5,
            _ => 2,
        };
        Failure { code, text: error.to_string() }
    }
}

#[derive(Default)]
struct Handles {
    /// Numbers are not used again.
    last: u64,
    objects: HashMap<u64, Object>,
}

static HANDLES: Mutex<Option<Handles>> = Mutex::new(None);

fn handles() -> MutexGuard<'static, Option<Handles>> {
    HANDLES.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn add(object: Object) -> Result<u64, Failure> {
    let mut handles = handles();
    let handles = handles.get_or_insert_default();
    handles.last += 1;
    handles.objects.insert(handles.last, object);
    Ok(handles.last)
}

fn gone(handle: u64) -> Failure {
    Failure::handle(format!("handle {handle} is closed, or never was one"))
}

/// The object is dropped by the caller, when nobody else waits for the table.
pub(crate) fn remove(handle: u64) -> Result<Object, Failure> {
    handles().get_or_insert_default().objects.remove(&handle).ok_or_else(|| gone(handle))
}

fn find(handle: u64) -> Result<Object, Failure> {
    handles().get_or_insert_default().objects.get(&handle).cloned().ok_or_else(|| gone(handle))
}

pub(crate) fn team(handle: u64) -> Result<Team, Failure> {
    match find(handle)? {
        Object::Team(team) => Ok(team),
        _ => Err(Failure::handle(format!("handle {handle} is no team"))),
    }
}

pub(crate) fn memory(handle: u64) -> Result<Memory, Failure> {
    match find(handle)? {
        Object::Memory(memory) => Ok(memory),
        _ => Err(Failure::handle(format!("handle {handle} is no memory"))),
    }
}

pub(crate) fn array(handle: u64) -> Result<Array, Failure> {
    match find(handle)? {
        Object::Array(array) => Ok(array),
        _ => Err(Failure::handle(format!("handle {handle} is no array"))),
    }
}
