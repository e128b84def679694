//! Small data on queues: kernels that send data and flag in one store.

use super::super::mail;
use super::super::tables::numbers;
use crate::collective::{Item, Shared};
use crate::{ffi, Result};

/// Launches the kernels of a call.
pub(super) fn launch(shared: &Shared, item: &Item) -> Result<()> {
    let table = mail::table(shared.mail(), shared, item)?;
    table.launch(shared, std::slice::from_ref(item), |stream, team, part| {
        let (kind, how) = numbers(part.numbers);
        let args = ffi::tandem_exec_messages {
            lanes: part.lanes,
            rounds: part.rounds,
            lane_count: part.lane_count as u32,
            words: part.words as u32,
            rows: part.rows as u32,
            kind,
            how,
            pad: 0,
        };
        // SAFETY: the table's addresses were made from memory of this world that the table, the item or the graph keep, and
        // which is not freed before this stream has got past the kernel; its sizes were checked with the schedule.
        unsafe { ffi::tandem_exec_messages_run(team, &args, stream) }
    })
}
