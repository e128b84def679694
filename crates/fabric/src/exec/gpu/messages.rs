//! Small data on queues: kernels that send data and flag in one store.

use super::super::launchers::Launchers;
use super::super::mail;
use super::super::tables::numbers;
use super::super::worker::Part;
use crate::planner::{Item, Planner};
use crate::{ffi, Result};
use std::sync::Mutex;

/// What the kernel of a PE gets.
pub(crate) fn args(part: &Part) -> ffi::tandem_exec_messages {
    let (kind, how) = numbers(part.numbers);
    ffi::tandem_exec_messages {
        workers: part.workers,
        rounds: part.rounds,
        worker_count: part.worker_count as u32,
        words: part.words as u32,
        rows: part.rows as u32,
        kind,
        op: how,
        pad: 0,
    }
}

/// Launches the kernels of a call.
pub(super) fn launch(tables: &Mutex<mail::Mail>, launchers: &Launchers, shared: &Planner, item: &Item) -> Result<()> {
    let table = mail::table(tables, shared, item)?;
    table.launch(launchers, shared, std::slice::from_ref(item), |stream, team, part| {
        let args = args(part);
        // SAFETY: the table's addresses were made from memory of this world that the table, the item or the graph keep, and
        // which is not freed before this stream has got past the kernel; its sizes were checked with the schedule.
        unsafe { ffi::tandem_exec_messages_run(team, &args, stream) }
    })
}
