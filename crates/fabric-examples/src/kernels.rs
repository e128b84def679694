//! Checked calls of the native functions.

use crate::ffi;
use bytemuck::Pod;
use tandem_cuda::{Grid, Kernel};
use tandem_fabric::{Error, GlobalArray, Queue, Result, Symmetric, Team};

fn invalid(op: &'static str, problem: impl Into<String>) -> Error {
    Error::Invalid { op, problem: problem.into() }
}

fn long_enough<T: Pod>(op: &'static str, memory: &Symmetric<T>, wanted: u64) -> Result<()> {
    if memory.len() as u64 >= wanted {
        return Ok(());
    }
    Err(invalid(op, format!("{} elements where {wanted} are needed", memory.len())))
}

/// The kernel that `get` gives; the error that stands for another status of it.
fn kernel(op: &'static str, get: impl FnOnce(&mut tandem_cuda::ffi::tandem_kernel) -> i32) -> Result<Kernel> {
    let mut raw = std::ptr::null_mut();
    if get(&mut raw) != tandem_cuda::ffi::TANDEM_OK || raw.is_null() {
        return Err(invalid(op, "the program was built without nvcc"));
    }
    // SAFETY: the functions of the header give addresses of kernels.
    Ok(unsafe { Kernel::new(raw) })
}

/// The address of each PE's own part.
fn addresses<T: Pod>(team: &Team, memory: &Symmetric<T>) -> Result<Vec<u64>> {
    team.queues().iter().map(|queue| queue.address(memory)).collect()
}

/// A kernel for [`Team::launch`] whose blocks on all PEs count and meet, and see whether the counts are right; its
/// arguments are a `tandem_meet_args`.
///
/// # Errors
/// The program was built without nvcc.
pub fn meet() -> Result<Kernel> {
    // SAFETY: the place for the kernel is valid to write to.
    kernel("meet", |raw| unsafe { ffi::tandem_meet(raw) })
}

/// A test of the memory order between two PEs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Litmus {
    /// Writes of many threads, a fence, a signal: who has the signal sees the writes.
    Message,
    /// Data by `put_signal`: who has the signal sees the data.
    PutSignal,
    /// Each writes the other's word, is quiet, reads its own: one of them sees the other's write.
    Buffering,
    /// [`Litmus::Message`] with a fence and waits of the whole block.
    MessageGroup,
    /// [`Litmus::Message`] with the signal before the data, and free to go wrong.
    MessageEarly,
    /// [`Litmus::Buffering`] without being quiet, and free to go wrong.
    BufferingLoud,
}

/// Runs a litmus test between PEs 0 and 1, `rounds` rounds in each of `lanes` blocks with locations of their own. Returns
/// how often the outcome was the forbidden one, and how many rounds were run by both.
///
/// # Errors
/// Fewer than two PEs; as of [`Team::launch`].
pub fn litmus(team: &Team, test: Litmus, lanes: u32, rounds: u64) -> Result<(u64, u64)> {
    let op = "litmus test";
    if team.size() < 2 {
        return Err(invalid(op, "it takes two PEs"));
    }
    let (is_buffering, code) = match test {
        Litmus::Message => (false, ffi::TANDEM_LITMUS_MESSAGE),
        Litmus::PutSignal => (false, ffi::TANDEM_LITMUS_PUT_SIGNAL),
        Litmus::Buffering => (true, ffi::TANDEM_LITMUS_BUFFERING),
        Litmus::MessageGroup => (false, ffi::TANDEM_LITMUS_MESSAGE_GROUP),
        Litmus::MessageEarly => (false, ffi::TANDEM_LITMUS_MESSAGE_EARLY),
        Litmus::BufferingLoud => (true, ffi::TANDEM_LITMUS_BUFFERING_LOUD),
    };
    // SAFETY: the place for the kernel is valid to write to.
    let kernel = kernel(op, |raw| unsafe { ffi::tandem_litmus(code, raw) })?;
    let locations: Symmetric<u8> = team.alloc(lanes as usize * ffi::TANDEM_LITMUS_LANE_BYTES as usize)?;
    let saw: Symmetric<u8> = team.alloc(if is_buffering { lanes as usize * rounds as usize } else { 1 })?;
    let counts: Symmetric<u64> = team.alloc(2)?;
    let (places, sights, wrongs) = (addresses(team, &locations)?, addresses(team, &saw)?, addresses(team, &counts)?);
    // tandem_litmus_args
    let args = |pe: usize| [places[pe], sights[pe], wrongs[pe], rounds];
    // SAFETY: these are the kernel's parameters; the memory is the team's, and as long as the header says.
    unsafe { team.launch(kernel, Grid { blocks: lanes, threads: 64, shared_bytes: 0 }, args)? };
    team.synchronize()?;
    let (zero, one) = (team.read(0, &counts)?, team.read(1, &counts)?);
    let finished = zero[1].min(one[1]);
    if !is_buffering {
        return Ok((zero[0] + one[0], finished));
    }
    let blind = team.read(0, &saw)?.iter().zip(team.read(1, &saw)?).filter(|(&a, b)| a == 0 && *b == 0).count();
    Ok((blind as u64, finished))
}

/// One operation of the device API on the queue's PE; `args` with addresses of that PE.
///
/// # Safety
/// All that the operation touches is memory of the team, on this PE and on the peer.
///
/// # Errors
/// As of [`Queue::call`].
pub unsafe fn single(queue: &Queue, args: &ffi::tandem_single_args) -> Result<()> {
    // SAFETY: the caller's promise.
    queue.call("single operation", |stream, team| unsafe { ffi::tandem_single(team, args, stream) })
}

/// Writes the number of the queue's PE into `slot` of the next PE: the first example.
///
/// # Errors
/// `slot` is empty; as of [`Queue::call`].
pub fn shift(queue: &Queue, slot: &Symmetric<i32>) -> Result<()> {
    long_enough("shift", slot, 1)?;
    let at = queue.address(slot)?;
    queue.keep(slot);
    // SAFETY: the slot is memory of the team.
    queue.call("shift", |stream, team| unsafe { ffi::tandem_example_shift(team, at, stream) })
}

/// The shape of a PE's field in the stencil example: `rows` rows between two halo rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stencil {
    /// Points of a row.
    pub columns: u64,
    /// Rows of each PE, without the halos.
    pub rows: u64,
}

impl Stencil {
    /// Points of a PE's field, with the halos.
    pub fn points(&self) -> u64 {
        self.rows.saturating_add(2).saturating_mul(self.columns)
    }

    /// Queues a step of the queue's PE. Halos are sent by single threads or by blocks.
    ///
    /// # Errors
    /// A field is too short; as of [`Queue::call`].
    pub fn step(&self, queue: &Queue, to: &Symmetric<f32>, from: &Symmetric<f32>, by_blocks: bool) -> Result<()> {
        let op = "step of a stencil";
        long_enough(op, to, self.points())?;
        long_enough(op, from, self.points())?;
        let (a, b) = (queue.address(from)?, queue.address(to)?);
        let args = ffi::tandem_example_stencil_args { a, b, columns: self.columns, rows: self.rows, steps: 1 };
        queue.keep(to);
        queue.keep(from);
        // SAFETY: both fields are memory of the team, and long enough.
        queue.call(op, |stream, team| unsafe { ffi::tandem_example_stencil(team, &args, i32::from(by_blocks), stream) })
    }

    /// Launches one kernel on all PEs that does all steps; the result is in `b` after an odd number of them.
    ///
    /// # Errors
    /// A field is too short; the PEs do not hold so many blocks; as of [`Team::launch`].
    pub fn run(&self, team: &Team, a: &Symmetric<f32>, b: &Symmetric<f32>, steps: u64, blocks: u32) -> Result<()> {
        let op = "stencil in one kernel";
        long_enough(op, a, self.points())?;
        long_enough(op, b, self.points())?;
        // SAFETY: the place for the kernel is valid to write to.
        let kernel = kernel(op, |raw| unsafe { ffi::tandem_example_stencil_loop(raw) })?;
        let (first, second) = (addresses(team, a)?, addresses(team, b)?);
        let grid = Grid { blocks, threads: 256, shared_bytes: 0 };
        // tandem_example_stencil_args
        let args = |pe: usize| [first[pe], second[pe], self.columns, self.rows, steps];
        // SAFETY: these are the kernel's parameters; both fields are memory of the team, and long enough.
        unsafe { team.launch(kernel, grid, args) }
    }
}

/// `array[i] = i * i` by `forall`: on GPUs a kernel, on pretend PEs a closure.
///
/// # Errors
/// As of [`GlobalArray::forall`].
pub fn squares(array: &GlobalArray<u64>) -> Result<()> {
    array.forall(
        // SAFETY: the handle is that of an array of this type on the team.
        |stream, team, array| unsafe { ffi::tandem_example_squares(team, array, stream) },
        |i, element| *element = (i as u64).wrapping_mul(i as u64),
    )
}

/// `to[i] = from[len - 1 - i]` on GPUs: every PE indexes the elements of the others.
///
/// # Errors
/// The arrays have different lengths; the PEs are pretend ones; as of [`Queue::call`].
pub fn reverse(team: &Team, to: &GlobalArray<u64>, from: &GlobalArray<u64>) -> Result<()> {
    let op = "reverse an array";
    if to.len() != from.len() {
        return Err(invalid(op, format!("{} elements from {}", to.len(), from.len())));
    }
    for queue in team.queues() {
        let (target, source) = (to.handle(queue)?, from.handle(queue)?);
        queue.keep(to.part());
        queue.keep(from.part());
        // SAFETY: the handles are those of two arrays of this type and length.
        queue.call(op, |stream, handle| unsafe { ffi::tandem_example_reverse(handle, &target, &source, stream) })?;
    }
    Ok(())
}

/// A collective of the device API for each PE of a team: a kernel of one block for [`Team::launch`], whose arguments are a
/// `tandem_collective_args`. `kind` is `TANDEM_EXEC_*`, or [`ffi::TANDEM_COLLECTIVE_FIELD`].
///
/// # Errors
/// No such kind; the program was built without nvcc.
pub fn collective(kind: i32) -> Result<Kernel> {
    // SAFETY: the place for the kernel is valid to write to.
    kernel("collective", |raw| unsafe { ffi::tandem_collective(kind, raw) })
}
