//! Ordered queues of work of a PE, and recordings of them.

use crate::machine::{CommandQueue, Point, Recording};
use crate::onesided::{sealed, OneSided};
use crate::op::Op;
use crate::pe::Pe;
use crate::rank::TeamRank;
use crate::world::Allocation;
use crate::{ffi, Error, Result, Symmetric};
use bytemuck::Pod;
use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// An ordered queue of work of one PE: a CUDA stream, or a thread of a pretend PE. What it is told is done in order, and
/// each step is complete, at the peer too, before the next begins: [`OneSided`] has most of the steps, and nothing like
/// `fence` and `quiet` is needed between them. Queues run beside each other; signals, barriers and [`Event`]s order them.
pub struct Queue {
    seat: Arc<TeamRank>,
    commands: Arc<dyn CommandQueue>,
    /// While recording: what the steps work on.
    kept: Mutex<Option<Vec<KeepAlive>>>,
    /// Whether it may have been told something that is not known to be done.
    busy: AtomicBool,
}

/// What a recording works on.
pub(crate) type KeepAlive = Arc<dyn Any + Send + Sync>;

/// A point in a queue.
#[derive(Debug)]
pub struct Event(pub(crate) Arc<dyn Point>);

impl Event {
    /// Whether the queue has got there.
    ///
    /// # Errors
    /// The device failed.
    pub fn is_done(&self) -> Result<bool> {
        self.0.is_done()
    }

    /// Blocks until the queue has got there: as long as what it was told before takes.
    ///
    /// # Errors
    /// The device failed.
    pub fn synchronize(&self) -> Result<()> {
        self.0.synchronize()
    }

    /// Blocks until the queue has done all, or until `end`: whether it has.
    ///
    /// # Errors
    /// The device failed.
    pub fn synchronize_until(&self, end: Instant) -> Result<bool> {
        self.0.synchronize_until(end)
    }
}

/// Steps that a queue has written down, to be done as often as one likes: a CUDA graph, or a list of a pretend PE's. It
/// keeps the memory alive that they work on.
pub struct Graph {
    commands: Arc<dyn CommandQueue>,
    recording: Recording,
    _kept: Vec<KeepAlive>,
}

impl Queue {
    pub(crate) fn new(seat: Arc<TeamRank>) -> Result<Self> {
        let world = seat.core.world.clone();
        let pe = seat.core.members[seat.me];
        let commands = world.command_queue(|machine| machine.command_queue(pe, Some(seat.clone())))?;
        Ok(Self::with(seat, commands))
    }

    /// One that is a stream of the caller's, of the PE's device.
    pub(crate) fn on(seat: Arc<TeamRank>, stream: Arc<tandem_cuda::Stream>) -> Result<Self> {
        let world = seat.core.world.clone();
        let commands = world.command_queue(|machine| machine.command_queue_on(stream, seat.clone()))?;
        Ok(Self::with(seat, commands))
    }

    fn with(seat: Arc<TeamRank>, commands: Arc<dyn CommandQueue>) -> Self {
        Queue { seat, commands, kept: Mutex::new(None), busy: AtomicBool::new(false) }
    }

    /// Blocks until all that it was told is done: as long as the caller's own kernels and programs run, and no longer than collectives
    /// may take. Where one of these waits for a PE that does not come, that is the team's fault, and its copies may still be on their way.
    ///
    /// # Errors
    /// A fault of the team; the first error of a program; the device failed.
    pub fn synchronize(&self) -> Result<()> {
        // First, so that what another thread adds meanwhile counts.
        self.busy.store(false, Ordering::SeqCst);
        let result = self.seat.core.watched(&*self.commands);
        if result.is_err() {
            self.busy.store(true, Ordering::SeqCst);
        }
        self.seat.core.check()?;
        result
    }

    /// A point that is reached when all that the queue was told so far is done.
    ///
    /// # Errors
    /// The queue is recording; the device failed.
    pub fn record(&self) -> Result<Event> {
        let recording = || Error::invalid("record an event", "the queue is recording a graph");
        Ok(Event(self.commands.mark()?.ok_or_else(recording)?))
    }

    /// What the queue is told after this begins when `event`, of any queue of the process, is reached.
    ///
    /// # Errors
    /// The queue is recording; the event is of another kind of team; the device failed.
    pub fn wait(&self, event: &Event) -> Result<()> {
        if self.kept.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            return Err(Error::invalid("wait for an event", "the queue is recording a graph"));
        }
        self.busy.store(true, Ordering::SeqCst);
        self.commands.wait(&*event.0)
    }

    /// Runs a program on a pretend PE, as a kernel runs on a GPU.
    ///
    /// # Errors
    /// The PE is a GPU; the team had a fault.
    pub fn run(&self, program: impl Fn(&Pe) -> Result<()> + Send + Sync + 'static) -> Result<()> {
        self.seat.core.check()?;
        self.program(program, &[])
    }

    /// Enqueues a program that works on `keep`.
    pub(crate) fn program(
        &self,
        program: impl Fn(&Pe) -> Result<()> + Send + Sync + 'static,
        keep: &[&Arc<Allocation>],
    ) -> Result<()> {
        let gpu = || Error::invalid("run a program", "the PE is a GPU, which runs kernels: use Queue::call");
        let pe = Pe::at(&self.seat).ok_or_else(gpu)?;
        self.issue(Op::Run(Arc::new(move || program(&pe))), keep)
    }

    /// Calls `f` to launch kernels on the queue's stream, with the team as they get it, and makes a `Result` of the
    /// status that it returns. In a recording, [`Queue::keep`] what they work on.
    ///
    /// # Errors
    /// The PE is a pretend one; the team had a fault; the one that the status stands for.
    pub fn call(
        &self,
        op: &'static str,
        f: impl FnOnce(tandem_cuda::ffi::tandem_stream, &ffi::tandem_team) -> i32,
    ) -> Result<()> {
        self.seat.core.check()?;
        self.busy.store(true, Ordering::SeqCst);
        let (Some(stream), Some(team)) = (self.commands.stream(), self.handle()) else {
            return Err(Error::invalid(op, "a pretend PE has no stream: use Queue::run"));
        };
        Ok(stream.call(op, |raw| f(raw, &team))?)
    }

    /// The queue without the team.
    pub(crate) fn commands(&self) -> &dyn CommandQueue {
        &*self.commands
    }

    /// The team as kernels of this PE get it; `None` for a pretend PE. It knows the memory and the regions that there
    /// are now.
    pub fn handle(&self) -> Option<ffi::tandem_team> {
        self.seat.core.handle(self.seat.me)
    }

    /// Whether it is that of PE `pe` of the team.
    pub(crate) fn is_of(&self, pe: usize) -> bool {
        self.seat.me == pe
    }

    /// Whether all that it was told is known to be done.
    pub(crate) fn is_idle(&self) -> bool {
        !self.busy.load(Ordering::SeqCst)
    }

    /// Whether it is recording.
    pub(crate) fn is_recording(&self) -> bool {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// The stream behind the queue; `None` for a pretend PE.
    pub fn stream(&self) -> Option<&Arc<tandem_cuda::Stream>> {
        self.busy.store(true, Ordering::SeqCst);
        self.commands.stream()
    }

    /// The address of the PE's own part.
    ///
    /// # Errors
    /// The memory is of another world, or the PE has no part of it.
    pub fn address<T: Pod>(&self, memory: &Symmetric<T>) -> Result<u64> {
        self.seat.own("address", memory)
    }

    /// Keeps `memory` alive as long as the graph that is being recorded; for what [`Queue::call`] works on.
    pub fn keep<T: Pod>(&self, memory: &Symmetric<T>) {
        self.keep_any(memory.memory().clone());
    }

    /// Keeps anything until what is being recorded is dropped.
    pub(crate) fn keep_any(&self, what: KeepAlive) {
        if let Some(kept) = &mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner) {
            kept.push(what);
        }
    }

    /// Writes down what `f` tells this queue instead of doing it.
    ///
    /// # Errors
    /// The queue is recording already; the error of `f`; the device failed.
    pub fn capture(&self, f: impl FnOnce(&Queue) -> Result<()>) -> Result<Graph> {
        {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.is_some() {
                return Err(Error::invalid("capture a graph", "the queue is recording already"));
            }
            self.commands.begin()?;
            *kept = Some(Vec::new());
        }
        // Ends the recording whatever `f` does.
        struct End<'a>(&'a Queue, bool);
        impl End<'_> {
            fn now(&mut self) -> (Result<Recording>, Vec<KeepAlive>) {
                self.1 = true;
                let recording = self.0.commands.end();
                let kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
                (recording, kept.unwrap_or_default())
            }
        }
        impl Drop for End<'_> {
            fn drop(&mut self) {
                if !self.1 {
                    let _ = self.now();
                }
            }
        }
        let mut end = End(self, false);
        let told = f(self);
        let (recording, kept) = end.now();
        told?;
        Ok(Graph { commands: self.commands.clone(), recording: recording?, _kept: kept })
    }

    /// Does what was written down. The graph must have been captured on this queue.
    ///
    /// # Errors
    /// It was not; the team had a fault; the device failed.
    pub fn launch(&self, graph: &Graph) -> Result<()> {
        self.seat.core.check()?;
        if !Arc::ptr_eq(&self.commands, &graph.commands) {
            return Err(Error::invalid("launch a graph", "it was captured on another queue"));
        }
        self.busy.store(true, Ordering::SeqCst);
        self.commands.replay(&graph.recording)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // What it was told is still done. A failed device does nothing more.
        if let Ok(Some(end)) = self.commands.mark() {
            self.seat.core.world.depart(end, self.seat.core.faults.clone());
        }
    }
}

impl sealed::Sealed for Queue {}

impl OneSided for Queue {
    fn seat(&self) -> &Arc<TeamRank> {
        &self.seat
    }

    fn may_cross(&self) -> bool {
        !self.is_recording()
    }

    fn is_queue(&self) -> bool {
        true
    }

    fn issue(&self, op: Op, keep: &[&Arc<Allocation>]) -> Result<()> {
        if let Some(kept) = &mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner) {
            kept.extend(keep.iter().map(|&memory| -> KeepAlive { memory.clone() }));
        }
        self.busy.store(true, Ordering::SeqCst);
        self.commands.push(match Pe::at(&self.seat) {
            Some(pe) => pe.step(op),
            None => op,
        })
    }
}
