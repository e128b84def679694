//! A queue that is a stream.

use super::far::Far;
use super::far_queue::FarQueue;
use crate::machine::{self, Late, Point, Recording, Seat};
use crate::op::Op;
use crate::{ffi, Error, Result};
use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tandem_cuda::{Device, Event, Graph, Stream};

pub(super) struct StreamQueue {
    stream: Arc<Stream>,
    /// The PE's place in its team; `None` for what the host does.
    seat: Option<Arc<dyn Seat>>,
    /// By PE of the world.
    devices: Arc<[Device]>,
    recording: Mutex<bool>,
    /// Its steps at other nodes' PEs, if there are such.
    far: Option<FarQueue>,
}

impl StreamQueue {
    pub(super) fn new(
        stream: Arc<Stream>,
        seat: Option<Arc<dyn Seat>>,
        devices: &Arc<[Device]>,
        far: Option<&Arc<Far>>,
    ) -> Self {
        StreamQueue {
            stream,
            seat,
            devices: devices.clone(),
            recording: Mutex::new(false),
            far: far.map(FarQueue::new),
        }
    }

    fn handle(&self) -> Result<ffi::tandem_team> {
        let handle = self.seat.as_ref().and_then(|seat| seat.handle());
        handle.ok_or_else(|| Error::invalid("queue of the host", "it is of no team, and takes no waits"))
    }

    /// Does what a step has to do with PEs of other nodes: whether that was all of it.
    fn push_far(&self, far: &FarQueue, op: &Op) -> Result<bool> {
        let step = far.far.windows.step(op)?;
        if step.is_none() && !matches!(op, Op::Barrier) {
            return Ok(false);
        }
        if self.is_recording() {
            let problem = "the queue is recording a graph, which holds no steps at GPUs of other nodes";
            return Err(Error::invalid("reach another node", problem));
        }
        let team = self.handle()?;
        match (step, &self.seat) {
            (Some(step), _) => far.push(&self.stream, &team, step)?,
            (None, Some(seat)) => far.barrier(&self.stream, &team, seat.next_barrier())?,
            (None, None) => {}
        }
        Ok(true)
    }

    fn is_recording(&self) -> bool {
        *self.recording.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl machine::CommandQueue for StreamQueue {
    fn push(&self, op: Op) -> Result<()> {
        if self.far.as_ref().map_or(Ok(false), |far| self.push_far(far, &op))? {
            return Ok(());
        }
        // SAFETY (of all below): whoever made the operation has checked its addresses and lengths against allocations of
        // this world, which are not freed before this stream has got past it (World::retire); argument structs are copied
        // by the launch.
        let done = match op {
            Op::Copy { bytes: 0, .. } | Op::HostStagedCopy { bytes: 0, .. } | Op::Fill { bytes: 0, .. } => Ok(()),
            Op::Copy { to, from, bytes } => self.stream.call("copy", |raw| {
                // SAFETY: as above.
                unsafe { tandem_cuda::ffi::tandem_cuda_copy(to as *mut u8, from as *const u8, bytes as usize, raw) }
            }),
            Op::HostStagedCopy { to, from, bytes, pes } => {
                let [there, here] = [pes.0, pes.1].map(|pe| self.devices[pe]);
                let (there, here) = (there.index() as i32, here.index() as i32);
                self.stream.call("copy through the host", |raw| {
                    // SAFETY: as above.
                    unsafe {
                        let (to, from) = (to as *mut u8, from as *const u8);
                        tandem_cuda::ffi::tandem_cuda_copy_peer(to, there, from, here, bytes as usize, raw)
                    }
                })
            }
            Op::Fill { to, bytes, value } => self.stream.call("fill memory", |raw| {
                // SAFETY: as above.
                unsafe { tandem_cuda::ffi::tandem_cuda_memset(to as *mut u8, value.into(), bytes as usize, raw) }
            }),
            Op::Strided(args) => self.stream.call("strided copy", |raw| {
                // SAFETY: as above.
                unsafe { ffi::tandem_fabric_strided(&args, raw) }
            }),
            Op::Store(args) => self.stream.call("store", |raw| {
                // SAFETY: as above.
                unsafe { ffi::tandem_fabric_store(&args, raw) }
            }),
            Op::Atomic(args) => self.stream.call("atomic", |raw| {
                // SAFETY: as above.
                unsafe { ffi::tandem_fabric_atomic(&args, raw) }
            }),
            Op::Wait(args) => {
                let team = self.handle()?;
                // SAFETY: as above; the team's state and records live as long as the team, which this queue holds.
                self.stream.call("wait", |raw| unsafe { ffi::tandem_fabric_wait(&team, &args, raw) })?;
                return self.far.as_ref().map_or(Ok(()), |far| far.settle(&self.stream, &team));
            }
            Op::Barrier => {
                let team = self.handle()?;
                // SAFETY: as for a wait.
                self.stream.call("barrier", |raw| unsafe { ffi::tandem_fabric_barrier(&team, raw) })
            }
            Op::Run(_) => return Err(Error::invalid("run a program", "the PE is a GPU, which runs kernels")),
        };
        Ok(done?)
    }

    fn mark(&self) -> Result<Option<Arc<dyn Point>>> {
        if self.is_recording() {
            return Ok(None);
        }
        Ok(Some(Arc::new(self.stream.record()?)))
    }

    fn wait(&self, mark: &dyn Point) -> Result<()> {
        match (mark as &dyn Any).downcast_ref::<Event>() {
            Some(event) => Ok(self.stream.wait(event)?),
            None => Err(Error::invalid("wait for an event", "the event is of a pretend PE, the queue of a GPU")),
        }
    }

    fn synchronize(&self) -> Result<()> {
        if self.is_recording() {
            return Err(Error::invalid("synchronize a queue", "it is recording a graph"));
        }
        Ok(self.stream.synchronize()?)
    }

    fn synchronize_until(&self, end: Instant) -> Result<bool> {
        if self.is_recording() {
            return Err(Error::invalid("synchronize a queue", "it is recording a graph"));
        }
        Ok(self.stream.synchronize_until(end)?)
    }

    fn begin(&self) -> Result<()> {
        let mut recording = self.recording.lock().unwrap_or_else(PoisonError::into_inner);
        self.stream.begin_capture()?;
        *recording = true;
        Ok(())
    }

    fn end(&self) -> Result<Recording> {
        let mut recording = self.recording.lock().unwrap_or_else(PoisonError::into_inner);
        *recording = false;
        Ok(Box::new(self.stream.end_capture()?))
    }

    fn replay(&self, recording: &Recording) -> Result<()> {
        match recording.downcast_ref::<Graph>() {
            Some(graph) => Ok(graph.launch(&self.stream)?),
            None => Err(Error::invalid("launch a graph", "the graph is of a pretend PE, the queue of a GPU")),
        }
    }

    fn may_be_late(&self) -> bool {
        self.far.is_some()
    }

    fn late(&self, now: Instant) -> Result<Option<Late>> {
        self.far.as_ref().map_or(Ok(None), |far| far.look(now))
    }

    fn stream(&self) -> Option<&Arc<Stream>> {
        Some(&self.stream)
    }
}

impl Drop for StreamQueue {
    fn drop(&mut self) {
        self.far.iter().for_each(|far| far.leave(&self.stream));
    }
}

impl Point for Event {
    fn is_done(&self) -> Result<bool> {
        Ok(Event::is_done(self)?)
    }

    fn synchronize(&self) -> Result<()> {
        Ok(Event::synchronize(self)?)
    }

    fn synchronize_until(&self, end: Instant) -> Result<bool> {
        Ok(Event::synchronize_until(self, end)?)
    }
}
