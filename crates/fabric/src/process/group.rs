//! The processes of a world: what they agree on, and who of them is gone.

use super::meeting::{Meeting, Met};
use super::message::{bye, decode, fault, gave_up, Message, Parcel, Told};
use super::socket::{ready, Line};
use super::transport::{serve, Busy, Target, Tcp, Transport};
use super::Process;
use crate::{Error, Result};
use std::collections::VecDeque;
use std::net::{Shutdown, TcpStream};
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Parcels of a process that wait to be taken.
const MOST_AHEAD: usize = 2;

/// Who wants to know that a process is gone.
pub(crate) trait Watcher: Send + Sync {
    /// The PEs `pes` of the world were of a process that has ended without a farewell.
    fn lost(&self, pes: &Range<usize>);

    /// A process has said farewell: [`Group::has_left`] says so of its PEs.
    fn left(&self);

    /// A team had a fault on another node.
    fn told(&self, told: &Told);
}

/// How a process has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It said farewell.
    Left,
    /// It did not.
    Lost,
}

/// The processes of a world, this one among them. Every two of them are joined by a socket, which is closed when one of them ends,
/// however it ends.
pub(crate) struct Group {
    me: usize,
    processes: Vec<Process>,
    /// By rank: the PEs.
    pes: Vec<Range<usize>>,
    /// By rank; none to itself.
    lines: Vec<Option<Arc<Line>>>,
    /// The ranks of this node.
    near: Range<usize>,
    /// Reaches the memory of other nodes' processes; none where there are no other nodes.
    transport: Option<Arc<Tcp>>,
    /// Streams on which other nodes' processes ask for this one's memory.
    serves: Vec<TcpStream>,
    busy: Arc<Busy>,
    shared: Arc<Shared>,
    /// The number of the last exchange.
    step: Mutex<u64>,
    patience: Duration,
}

/// What the thread that listens and those that wait have in common.
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Held while watchers are told, by the thread that listens.
    telling: Mutex<()>,
    listener: OnceLock<ThreadId>,
}

struct State {
    processes: Vec<Process>,
    /// By rank; known once the first exchange is done.
    pes: Vec<Range<usize>>,
    /// By rank: what came and was not taken.
    parcels: Vec<VecDeque<(u64, Parcel)>>,
    /// By rank: how it ended, if it did.
    ends: Vec<Option<End>>,
    /// Why there are no exchanges any more.
    broken: Option<String>,
    watchers: Vec<Weak<dyn Watcher>>,
    /// Whether this process takes part no longer.
    is_over: bool,
}

impl Group {
    /// Meets the others. `pes` is how many PEs this process has, `terms` what must be the same for all, and `patience` how long
    /// another one is waited for in an exchange.
    ///
    /// # Errors
    /// As of [`Meeting`]; other terms; more PEs than a world has.
    pub(crate) fn meet(meeting: Meeting, pes: usize, terms: &str, patience: Duration) -> Result<Arc<Self>> {
        let op = "open a team of several processes";
        let Met { me, processes, lines, asks, serves, near } = meeting.meet(patience)?;
        let count = processes.len();
        let state = State {
            processes: processes.clone(),
            pes: vec![0..0; count],
            parcels: (0..count).map(|_| VecDeque::new()).collect(),
            ends: vec![None; count],
            broken: None,
            watchers: Vec::new(),
            is_over: false,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
            telling: Mutex::new(()),
            listener: OnceLock::new(),
        });
        let lines: Vec<Option<Arc<Line>>> = lines.into_iter().map(|line| line.map(Arc::new)).collect();
        let open: Vec<(usize, Arc<Line>)> =
            lines.iter().enumerate().filter_map(|(rank, line)| Some((rank, line.clone()?))).collect();
        let transport = (near.len() < count).then(|| Arc::new(Tcp::new(asks, patience)));
        let (busy, step) = Default::default();
        let mut group =
            Group { me, processes, pes: Vec::new(), lines, near, transport, serves, busy, shared, step, patience };
        let shared = group.shared.clone();
        let failed = |error: std::io::Error| Error::processes(op, format!("no thread: {error}"));
        std::thread::Builder::new().name("processes".into()).spawn(move || shared.listen(open)).map_err(failed)?;
        let mine = Parcel { numbers: vec![pes as u64], ..Parcel::about(terms) };
        let counts = group.exchange(op, mine)?;
        let mut first = 0usize;
        for parcel in counts {
            let [count] = parcel.numbers[..] else {
                return Err(Error::processes(op, "a process has not said its PEs"));
            };
            let end = first.saturating_add(usize::try_from(count).unwrap_or(usize::MAX));
            group.pes.push(first..end);
            first = end;
        }
        if first > crate::MAX_PES {
            return Err(Error::processes(op, format!("{first} PEs in all; a team has at most {}", crate::MAX_PES)));
        }
        lock(&group.shared.state).pes = group.pes.clone();
        Ok(Arc::new(group))
    }

    /// The PEs of this process.
    pub(crate) fn local(&self) -> Range<usize> {
        self.pes[self.me].clone()
    }

    /// PEs of all processes.
    pub(crate) fn count(&self) -> usize {
        self.pes.last().map_or(0, |last| last.end)
    }

    /// By rank: PEs.
    pub(crate) fn pes(&self) -> &[Range<usize>] {
        &self.pes
    }

    /// The process that has PE `pe` of the world.
    pub(crate) fn process_of(&self, pe: usize) -> Option<Process> {
        self.rank_of(pe).map(|rank| self.processes[rank])
    }

    /// The rank of the process that has PE `pe` of the world.
    pub(crate) fn rank_of(&self, pe: usize) -> Option<usize> {
        self.pes.iter().position(|pes| pes.contains(&pe))
    }

    /// The PEs of this node: they are of consecutive processes.
    pub(crate) fn near(&self) -> Range<usize> {
        self.pes[self.near.start].start..self.pes[self.near.end - 1].end
    }

    /// By PE of the world: its node.
    pub(crate) fn nodes(&self) -> Vec<usize> {
        let by_rank = self.pes.iter().enumerate();
        by_rank.flat_map(|(rank, pes)| pes.clone().map(move |_| rank / self.near.len())).collect()
    }

    /// The way to the memory of other nodes, if there are such.
    pub(crate) fn transport(&self) -> Option<Arc<dyn Transport>> {
        self.transport.clone().map(|transport| -> Arc<dyn Transport> { transport })
    }

    /// Answers what other nodes' processes ask of `target` from here on.
    ///
    /// # Errors
    /// There is no thread for it.
    pub(crate) fn serve(&self, target: &Arc<dyn Target>) -> Result<()> {
        let failed = |error: std::io::Error| Error::processes("answer other nodes", error.to_string());
        for tcp in &self.serves {
            let (tcp, target, busy) = (tcp.try_clone().map_err(failed)?, target.clone(), self.busy.clone());
            let work = move || serve(tcp, &*target, &busy);
            std::thread::Builder::new().name("answers".into()).spawn(work).map_err(failed)?;
        }
        Ok(())
    }

    /// Tells the processes of other nodes of a fault.
    pub(crate) fn tell(&self, told: &Told) {
        let far = self.lines.iter().flatten().filter(|line| line.is_far());
        // Who cannot be told is gone, which is a fault too.
        far.for_each(|line| _ = line.send(&fault(told), &[]));
    }

    /// How the process of PE `pe` has ended, once that is known and for `patience` at most: its streams may close before its farewell is read.
    pub(crate) fn ended(&self, pe: usize, patience: Duration) -> Option<End> {
        let rank = self.rank_of(pe)?;
        let state = lock(&self.shared.state);
        let waiting = self.shared.changed.wait_timeout_while(state, patience, |state| state.ends[rank].is_none());
        waiting.unwrap_or_else(PoisonError::into_inner).0.ends[rank]
    }

    /// Tells all what `mine` says, and returns what each says, by rank. All processes must call this in the same order.
    ///
    /// # Errors
    /// Others are about something else: all have taken part, and all get this error. Or a process is gone or does not come in time: then
    /// there are no exchanges any more.
    pub(crate) fn exchange(&self, op: &'static str, mine: Parcel) -> Result<Vec<Parcel>> {
        let mut step = lock(&self.step);
        {
            let state = lock(&self.shared.state);
            let left = state.is_over.then_some("this one has left");
            if let Some(reason) = state.broken.as_deref().or(left) {
                return Err(Error::processes(op, format!("the processes agree on nothing any more: {reason}")));
            }
        }
        *step += 1;
        let bytes = mine.encode(*step);
        let memory: Vec<_> = mine.memory.iter().map(AsFd::as_fd).collect();
        // Who cannot be told is gone, which the thread that listens finds out, or late.
        self.lines.iter().flatten().for_each(|line| _ = line.send(&bytes, &memory));
        drop(memory);
        let end = Instant::now() + self.patience;
        let about = mine.text.clone();
        let all = match self.wait(*step, mine, end) {
            Ok(all) => all,
            Err(why) => {
                let reason = format!("{} waited in vain ({about}): {why}", self.processes[self.me]);
                lock(&self.shared.state).broken.get_or_insert(reason);
                let told = gave_up(&why);
                self.lines.iter().flatten().for_each(|line| _ = line.send(&told, &[]));
                return Err(Error::processes(op, why));
            }
        };
        let (first, here) = (&all[0].text, &self.processes);
        if let Some(other) = (1..all.len()).find(|&rank| all[rank].text != *first) {
            let problem = format!(
                "{} says: {first}; {} says: {}; all must make the same calls in the same order, with the same options",
                here[0], here[other], all[other].text
            );
            return Err(Error::processes(op, problem));
        }
        Ok(all)
    }

    /// What each process says in exchange `step`, or why that is not known.
    fn wait(&self, step: u64, mine: Parcel, end: Instant) -> std::result::Result<Vec<Parcel>, String> {
        let name = |rank: usize| self.processes[rank].to_string();
        let mut state = lock(&self.shared.state);
        loop {
            let others = (0..self.processes.len()).filter(|&rank| rank != self.me);
            let missing: Vec<usize> = others.filter(|&rank| state.parcels[rank].is_empty()).collect();
            if missing.is_empty() {
                break;
            }
            if let Some((rank, how)) = missing.iter().find_map(|&rank| Some((rank, state.ends[rank].as_ref()?))) {
                let how = if *how == End::Left { "left" } else { "ended" };
                return Err(format!("{} has {how}", name(rank)));
            }
            if let Some(reason) = &state.broken {
                return Err(reason.clone());
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let names: Vec<String> = missing.into_iter().map(name).collect();
                return Err(format!("{} has not come in {:.1?}", names.join(", "), self.patience));
            }
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let mut mine = Some(mine);
        let mut all = Vec::with_capacity(self.processes.len());
        for rank in 0..self.processes.len() {
            let Some((number, parcel)) = state.parcels[rank].pop_front() else {
                all.extend(mine.take());
                continue;
            };
            if number != step {
                return Err(format!("{} is at exchange {number}, and not at {step}", name(rank)));
            }
            all.push(parcel);
        }
        Ok(all)
    }

    /// Whether the process of PE `pe` has said farewell: it does nothing any more, and all that it did is done.
    pub(crate) fn has_left(&self, pe: usize) -> bool {
        let Some(rank) = self.rank_of(pe) else { return false };
        lock(&self.shared.state).ends[rank] == Some(End::Left)
    }

    /// Tells `watcher` of every process that goes, and of those that are gone.
    pub(crate) fn watch(&self, watcher: &Arc<dyn Watcher>) {
        let mut state = lock(&self.shared.state);
        state.watchers.retain(|watcher| watcher.strong_count() > 0);
        state.watchers.push(Arc::downgrade(watcher));
        let lost: Vec<usize> = (0..state.ends.len()).filter(|&rank| state.ends[rank] == Some(End::Lost)).collect();
        let has_anyone_left = state.ends.contains(&Some(End::Left));
        drop(state);
        if has_anyone_left {
            watcher.left();
        }
        lost.into_iter().for_each(|rank| watcher.lost(&self.pes[rank]));
    }

    /// Says farewell: this process takes part no longer, and all that it did is done.
    pub(crate) fn leave(&self) {
        self.end(true);
    }

    /// Takes part no longer, without a farewell: the others find this process lost.
    pub(crate) fn abandon(&self) {
        self.end(false);
    }

    fn end(&self, says_bye: bool) {
        let was_over = std::mem::replace(&mut lock(&self.shared.state).is_over, true);
        if was_over {
            return;
        }
        let lines = || self.lines.iter().flatten();
        if says_bye {
            // Who has asked for something goes on with the answer.
            self.busy.wait(self.patience);
            lines().for_each(|line| _ = line.send(&bye(), &[]));
        }
        lines().for_each(|line| line.close());
        self.serves.iter().for_each(|tcp| _ = tcp.shutdown(Shutdown::Both));
        // A watcher that is being told may hold the last handle to GPUs, which must not be used while the process ends.
        if self.shared.listener.get() != Some(&std::thread::current().id()) {
            drop(lock(&self.shared.telling));
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end(false);
    }
}

impl Shared {
    /// Takes what comes until all are gone.
    fn listen(&self, mut open: Vec<(usize, Arc<Line>)>) {
        let _ = self.listener.set(std::thread::current().id());
        while !open.is_empty() {
            let Ok(found) = ready(open.iter().map(|(_, line)| &**line)) else { break };
            let mut found = found.into_iter();
            open.retain(|(rank, line)| !found.next().unwrap_or(true) || self.take(*rank, line));
        }
        // Without ears nobody is known to be there.
        open.into_iter().for_each(|(rank, _)| self.ended(rank, End::Lost));
    }

    /// Takes a message: whether there may be more.
    fn take(&self, rank: usize, line: &Line) -> bool {
        let message = line.receive().ok().flatten().and_then(|(bytes, memory)| decode(&bytes, memory));
        match message {
            // One that has said something waits for this one's answer before it says the next.
            Some(Message::Parcel(step, parcel)) if lock(&self.state).parcels[rank].len() < MOST_AHEAD => {
                lock(&self.state).parcels[rank].push_back((step, parcel));
                self.changed.notify_all();
                true
            }
            Some(Message::GaveUp(why)) => {
                let mut state = lock(&self.state);
                let reason = format!("{} waited in vain: {why}", state.processes[rank]);
                state.broken.get_or_insert(reason);
                drop(state);
                self.changed.notify_all();
                true
            }
            Some(Message::Fault(told)) if line.is_far() => {
                let watchers: Vec<_> = lock(&self.state).watchers.iter().filter_map(Weak::upgrade).collect();
                watchers.into_iter().for_each(|watcher| watcher.told(&told));
                true
            }
            Some(Message::Bye) => {
                self.ended(rank, End::Left);
                false
            }
            _ => {
                // Closed, or not one of ours: what it will do next nobody knows.
                line.close();
                self.ended(rank, End::Lost);
                false
            }
        }
    }

    fn ended(&self, rank: usize, how: End) {
        // Let go of after the watchers.
        let _telling = lock(&self.telling);
        let mut state = lock(&self.state);
        if state.is_over || state.ends[rank].is_some() {
            return;
        }
        let watchers: Vec<_> = state.watchers.iter().filter_map(Weak::upgrade).collect();
        state.ends[rank] = Some(how);
        let pes = state.pes[rank].clone();
        drop(state);
        self.changed.notify_all();
        for watcher in watchers {
            match how {
                End::Left => watcher.left(),
                End::Lost => watcher.lost(&pes),
            }
        }
    }
}

impl std::fmt::Debug for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.processes[self.me], self.processes.len())
    }
}
