//! Communicators whose ranks are all of this process, and how their ranks decide together who does a call.
//!
//! Every rank must decide alike, or NCCL would wait for one that went to the fabric. So a call is taken over only once all ranks are known to
//! want it: because one thread has called for all of them in a group, or because the threads of all ranks have come. Calls of a rank are
//! counted from its start; the n-th of one rank belongs to the n-th of every other.

mod meet;
mod plan;

use crate::call::{Buffers, Call, Work};
use crate::fabric::{Fabric, Ready};
use crate::machine::Visit;
use crate::settings::log;
use crate::{lock, real, table, Status, INTERNAL_ERROR, SUCCESS};
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Arc, Condvar, Mutex, OnceLock};

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It goes to NCCL.
    Forward,
    /// It is done, or failed.
    Done(Status),
}

/// A call of a rank.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub(crate) clique: Arc<Clique>,
    pub(crate) rank: usize,
    pub(crate) comm: usize,
    pub(crate) call: Call,
    pub(crate) buffers: Buffers,
}

/// Ranks that belong together.
pub(crate) struct Clique {
    ranks: usize,
    state: Mutex<State>,
    /// Told when the state of a meeting changes.
    changed: Condvar,
    fault: OnceLock<CString>,
}

struct State {
    /// By rank: the communicator and its device.
    members: Vec<Option<(usize, i32)>>,
    /// Why all goes to NCCL.
    closed: Option<String>,
    /// By rank: calls so far.
    count: Vec<u64>,
    meetings: HashMap<u64, meet::Meeting>,
    /// Meetings to which somebody did not come.
    missed: u32,
    fabric: Option<Fabric>,
    tables: HashMap<Key, Table>,
}

/// A call with the buffers and streams of all ranks.
type Key = (Work, Vec<Buffers>, Vec<u64>);

enum Table {
    /// The call came once. A table takes longer to make than the call takes NCCL, so it is made for what comes again.
    Once,
    Made(Arc<Ready>),
    /// It cannot be made.
    Never,
}

/// Tables of a communicator. They stay as long as it does, since kernels that read them may be on any stream.
const MOST_TABLES: usize = 256;
/// Calls that are remembered to have come once.
const MOST_KEYS: usize = 4096;

/// A clique, and a rank of it.
type Seat = (Arc<Clique>, usize);

/// By communicator.
static MEMBERS: Mutex<Option<HashMap<usize, Seat>>> = Mutex::new(None);
/// By unique id: those whose ranks have not all come.
static FORMING: Mutex<Option<HashMap<[u8; 128], Arc<Clique>>>> = Mutex::new(None);

/// The clique of a communicator, and its rank.
pub(crate) fn of(comm: usize) -> Option<Seat> {
    lock(&MEMBERS).as_ref()?.get(&comm).cloned()
}

/// A communicator has come up as a rank of those with this id.
pub(crate) fn join(id: &[u8; 128], ranks: usize, rank: usize, comm: usize) {
    if !table::RANKS.contains(&ranks) || rank >= ranks || comm == 0 {
        return;
    }
    let mut device = -1;
    if real::ncclCommCuDevice(comm as real::Comm, &mut device) != SUCCESS {
        return;
    }
    let mut forming = lock(&FORMING);
    let forming = forming.get_or_insert_default();
    let clique = forming.entry(*id).or_insert_with(|| Arc::new(Clique::new(ranks))).clone();
    let mut state = lock(&clique.state);
    if clique.ranks != ranks || state.members[rank].is_some() {
        state.close("two communicators have one rank of an id");
        return;
    }
    state.members[rank] = Some((comm, device));
    if state.members.iter().all(Option::is_some) {
        forming.remove(id);
    }
    drop(state);
    lock(&MEMBERS).get_or_insert_default().insert(comm, (clique, rank));
}

/// A communicator is about to go, or, with `is_aborted`, is given up.
pub(crate) fn leave(comm: usize, is_aborted: bool) {
    let Some((clique, rank)) = of(comm) else { return };
    lock(&MEMBERS).get_or_insert_default().remove(&comm);
    let mut forming = lock(&FORMING);
    forming.get_or_insert_default().retain(|_, one| !Arc::ptr_eq(one, &clique));
    drop(forming);
    let mut state = lock(&clique.state);
    state.close("a rank has gone");
    clique.changed.notify_all();
    state.members[rank] = None;
    if is_aborted {
        // Kernels may wait for what never comes, and use its memory.
        std::mem::forget(state.fabric.take());
        std::mem::forget(std::mem::take(&mut state.tables));
    }
    if state.members.iter().all(Option::is_none) {
        let visit = Visit::begin();
        let tables = std::mem::take(&mut state.tables);
        if let Some(fabric) = state.fabric.take() {
            fabric.close(&visit);
        }
        drop(tables);
    }
}

/// All calls of a communicator go to NCCL from now on.
pub(crate) fn close(comm: usize, why: &str) {
    if let Some((clique, _)) = of(comm) {
        lock(&clique.state).close(why);
        clique.changed.notify_all();
    }
}

/// What is wrong with a communicator's fabric, if something is.
pub(crate) fn fault_of(comm: usize) -> Option<*const libc::c_char> {
    let (clique, _) = of(comm)?;
    if clique.fault.get().is_none() {
        let checked = lock(&clique.state).fabric.as_ref().map(Fabric::check);
        if let Some(Err(reason)) = checked {
            clique.fail(&reason);
        }
    }
    // The text stays as long as the communicator, like NCCL's.
    clique.fault.get().map(|text| text.as_ptr())
}

/// Decides on the calls of a thread's group, or on one without a group.
pub(crate) fn decide(batch: &[Wanted]) -> Vec<Outcome> {
    let mut out = vec![Outcome::Forward; batch.len()];
    let mut cliques: Vec<&Arc<Clique>> = Vec::new();
    for wanted in batch {
        if !cliques.iter().any(|clique| Arc::ptr_eq(clique, &wanted.clique)) {
            cliques.push(&wanted.clique);
        }
    }
    let of = |clique: &Arc<Clique>| -> Vec<usize> {
        (0..batch.len()).filter(|&i| Arc::ptr_eq(&batch[i].clique, clique)).collect()
    };
    let is_whole = |clique: &Arc<Clique>| {
        let is_there = |rank| batch.iter().any(|wanted| wanted.rank == rank && Arc::ptr_eq(&wanted.clique, clique));
        (0..clique.ranks).all(is_there)
    };
    // Threads that wait for each other at several communicators might do so in different orders.
    let may_meet = cliques.len() == 1;
    for &clique in &cliques {
        let places = of(clique);
        let calls: Vec<&Wanted> = places.iter().map(|&i| &batch[i]).collect();
        let outcome = if is_whole(clique) {
            vec![clique.together(&calls); calls.len()]
        } else if may_meet && meet::is_one_each(&calls) {
            clique.meet(&calls)
        } else {
            let mut state = lock(&clique.state);
            calls.iter().for_each(|wanted| state.pass(wanted));
            clique.changed.notify_all();
            vec![Outcome::Forward; calls.len()]
        };
        places.into_iter().zip(outcome).for_each(|(i, outcome)| out[i] = outcome);
    }
    out
}

impl Clique {
    fn new(ranks: usize) -> Self {
        let state = State {
            members: vec![None; ranks],
            closed: None,
            count: vec![0; ranks],
            meetings: HashMap::new(),
            missed: 0,
            fabric: None,
            tables: HashMap::new(),
        };
        Clique { ranks, state: Mutex::new(state), changed: Condvar::new(), fault: OnceLock::new() }
    }

    /// The fabric cannot go on; nor can the communicator, some of whose calls it has.
    fn fail(&self, reason: &str) -> Outcome {
        let text = format!("Tandem's fabric: {reason}").replace('\0', " ");
        self.fault.get_or_init(|| CString::new(text).unwrap_or_default());
        log(|| format!("fault: {reason}"));
        Outcome::Done(INTERNAL_ERROR)
    }

    /// Calls of all ranks, of one thread.
    fn together(&self, calls: &[&Wanted]) -> Outcome {
        let mut state = lock(&self.state);
        let is_level = state.count.iter().all(|count| *count == state.count[0]) && state.meetings.is_empty();
        calls.iter().for_each(|wanted| state.pass(wanted));
        if self.fault.get().is_some() {
            return Outcome::Done(INTERNAL_ERROR);
        }
        if !is_level {
            self.changed.notify_all();
            log(|| "forwarded: the ranks have made different numbers of calls".into());
            return Outcome::Forward;
        }
        let steps = plan::steps(calls, self.ranks);
        self.carry_out(&mut state, steps)
    }

    /// Does these steps, all of them or none.
    fn carry_out(&self, state: &mut State, steps: Result<Vec<plan::Step>, &'static str>) -> Outcome {
        let visit = Visit::begin();
        let ready = steps.map_err(String::from).and_then(|steps| {
            let made: Result<Vec<_>, String> = steps.iter().map(|step| state.ready(step, self.ranks, &visit)).collect();
            Ok((made?, steps))
        });
        let (ready, steps) = match ready {
            Ok(both) => both,
            Err(reason) => {
                log(|| format!("forwarded: {reason}"));
                return Outcome::Forward;
            }
        };
        let Some(fabric) = &state.fabric else { return Outcome::Forward };
        for (ready, step) in ready.iter().zip(&steps) {
            if let Err(reason) = fabric.run(ready) {
                return self.fail(&reason);
            }
            let (name, bytes) = (step.work.operation.name(), step.work.bytes(self.ranks));
            log(|| format!("taken over: {name} of {bytes} bytes, {} ranks", self.ranks));
        }
        Outcome::Done(SUCCESS)
    }
}

impl State {
    fn close(&mut self, why: &str) {
        if self.closed.is_none() {
            log(|| format!("all calls of a communicator go to NCCL from now on: {why}"));
            self.closed = Some(why.into());
        }
        self.meetings.values_mut().for_each(meet::Meeting::forward);
    }

    /// Counts a call that its rank does not wait with.
    fn pass(&mut self, wanted: &Wanted) {
        if wanted.call.what.is_of_a_pair() {
            return;
        }
        let number = self.count[wanted.rank];
        self.count[wanted.rank] += 1;
        if let Some(meeting) = self.meetings.get_mut(&number) {
            meeting.forward();
        }
    }

    /// The table of a step, or why it is not taken over.
    fn ready(&mut self, step: &plan::Step, ranks: usize, visit: &Visit) -> Result<Arc<Ready>, String> {
        if let Some(why) = &self.closed {
            return Err(why.clone());
        }
        if !table::has(&step.work, ranks) {
            let (name, bytes) = (step.work.operation.name(), step.work.bytes(ranks));
            return Err(format!("{name} of {bytes} bytes, {ranks} ranks: not in the table"));
        }
        if self.members.iter().any(Option::is_none) {
            return Err("not all ranks are of this process".into());
        }
        let streams: Option<Vec<u64>> = step.buffers.iter().map(|rank| visit.stream(rank.stream)).collect();
        let streams = streams.ok_or("a stream is being captured, or is another one on each thread")?;
        let key = (step.work, step.buffers.clone(), streams);
        match self.tables.get(&key) {
            Some(Table::Made(ready)) => return Ok(ready.clone()),
            Some(Table::Never) => return Err("the fabric cannot do it".into()),
            Some(Table::Once) => {}
            None if self.tables.len() >= MOST_KEYS => return Err("too many different calls".into()),
            None => {
                self.tables.insert(key, Table::Once);
                return Err("its first time with these buffers and streams".into());
            }
        }
        if self.tables.values().filter(|table| matches!(table, Table::Made(_))).count() >= MOST_TABLES {
            return Err(format!("{MOST_TABLES} other calls are taken over, which is the most"));
        }
        if self.fabric.is_none() {
            let devices: Vec<i32> = self.members.iter().flatten().map(|(_, device)| *device).collect();
            match Fabric::open(&devices) {
                Ok(fabric) => self.fabric = Some(fabric),
                Err(reason) => {
                    self.close(&reason);
                    return Err(reason);
                }
            }
        }
        let Some(fabric) = &self.fabric else { return Err("there is no fabric".into()) };
        let made = fabric.prepare(&step.work, &step.buffers).map(Arc::new);
        let table = made.as_ref().map_or(Table::Never, |ready| Table::Made(ready.clone()));
        self.tables.insert(key, table);
        made
    }
}
