//! Tables of kernels in the memory of each PE, kept for calls with the same memory.

use super::element::{Combine, Kind};
use super::launchers::{Launchers, Part};
use super::sim::Bound;
use crate::planner::{Item, Planner};
use crate::world::PinnedLoan;
use crate::{ffi, Result, Symmetric};
use std::collections::HashMap;
use std::sync::Arc;
use tandem_cuda::ffi::tandem_stream;

/// Tables that are kept.
const MAX_TABLES: usize = 256;

/// Schedules by their address, which the table keeps taken, and what they are bound to.
type Key = Vec<(usize, Option<(Kind, Combine)>, Vec<u64>, Vec<u64>, Vec<u64>)>;

/// Those of one kernel; `A` is what it gets.
pub(crate) struct Tables<A>(HashMap<Key, Arc<Table<A>>>);

impl<A> Default for Tables<A> {
    fn default() -> Self {
        Tables(HashMap::new())
    }
}

/// What the kernels of one call read and count in.
pub(crate) struct Table<A> {
    /// By PE of the team; `None` for one that has nothing to do.
    args: Vec<Option<A>>,
    /// What the arguments point to.
    _memory: Vec<Symmetric<u8>>,
    _host: Option<PinnedLoan>,
    _bounds: Vec<Bound>,
}

impl<A> Tables<A> {
    /// The table of a call, built where there is none yet.
    pub(crate) fn get(
        &mut self,
        bounds: Vec<Bound>,
        build: impl FnOnce(Vec<Bound>) -> Result<Table<A>>,
    ) -> Result<Arc<Table<A>>> {
        let one = |b: &Bound| {
            (Arc::as_ptr(&b.schedule) as usize, b.numbers, b.input.clone(), b.output.clone(), b.staging.clone())
        };
        let key: Key = bounds.iter().map(one).collect();
        if let Some(table) = self.0.get(&key) {
            return Ok(table.clone());
        }
        if self.0.len() >= MAX_TABLES {
            self.0.clear();
        }
        let table = Arc::new(build(bounds)?);
        self.0.insert(key, table.clone());
        Ok(table)
    }
}

impl<A: Send + Sync + 'static> Table<A> {
    pub(crate) fn new(
        args: Vec<Option<A>>,
        memory: Vec<Symmetric<u8>>,
        host: Option<PinnedLoan>,
        bounds: Vec<Bound>,
    ) -> Self {
        Table { args, _memory: memory, _host: host, _bounds: bounds }
    }

    /// What each PE gets that has something to do.
    pub(crate) fn args(&self) -> impl Iterator<Item = (usize, &A)> {
        self.args.iter().enumerate().filter_map(|(pe, args)| Some((pe, args.as_ref()?)))
    }

    /// Calls `f` for each PE's queue, which keeps all memory while it records; for queues that do not record beside each other.
    pub(crate) fn launch(
        self: &Arc<Self>,
        launchers: &Launchers,
        shared: &Planner,
        items: &[Item],
        f: impl Fn(tandem_stream, &ffi::tandem_team, &A) -> i32 + Copy + Send + 'static,
    ) -> Result<()> {
        let mut parts: Vec<Part> = Vec::with_capacity(self.args.len());
        for (pe, _) in self.args() {
            let queue = shared.team().queue(pe);
            queue.keep_any(self.clone());
            items.iter().flat_map(|item| &item.keep).for_each(|memory| queue.keep(memory));
            let (table, team) = (self.clone(), shared.team().clone());
            parts.push(Box::new(move || {
                let Some(args) = table.args.get(pe).and_then(Option::as_ref) else { return Ok(()) };
                team.queue(pe).call("collective", |stream, team| f(stream, team, args))
            }));
        }
        match shared.is_recording() {
            true => parts.into_iter().try_for_each(|part| part()),
            false => launchers.run(parts),
        }
    }
}

/// Words of 64 bits of the structs of the header.
pub(crate) const ENDPOINT: usize = size_of::<ffi::tandem_exec_endpoint>() / 8;
pub(crate) const ROW: usize = size_of::<ffi::tandem_exec_transfer>() / 8;
const _: () = assert!(ENDPOINT == 4 && ROW == 6);

/// Rows and endpoints as kernels read them.
#[derive(Default)]
pub(crate) struct Rows {
    pub(crate) rows: Vec<u64>,
    pub(crate) endpoints: Vec<u64>,
}

impl Rows {
    /// Adds a row with the endpoints from `first` on: so many sources, targets, and places that are told.
    pub(crate) fn row(
        &mut self,
        bytes: u64,
        touches: u64,
        chunk: u64,
        slots: u64,
        first: usize,
        ends: (usize, usize, usize),
    ) {
        let two = |a: usize, b: usize| a as u64 | (b as u64) << 32;
        self.rows.extend([bytes, touches, chunk, slots, two(first, ends.0), two(ends.1, ends.2)]);
    }
}

/// How the numbers of a call are combined, as kernels know it.
pub(crate) fn numbers(numbers: Option<(Kind, Combine)>) -> (i32, i32) {
    numbers.map_or((ffi::TANDEM_EXEC_BYTES, 0), |(kind, how)| (kind as i32, how as i32))
}
