//! Kernels over the device API: those that measure it, its litmus tests, the examples of the guide, and single operations
//! for tests. All need GPUs; lengths are checked here.

use crate::{ffi, Error, GlobalArray, OneSided, Queue, Result, Symmetric, Team};
use bytemuck::Pod;
use tandem_cuda::ffi::tandem_stream;
use tandem_cuda::{Grid, Kernel};

/// Who does an operation of the device API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// One thread.
    Thread,
    /// The threads of a warp.
    Warp,
    /// The threads of a block.
    Block,
}

impl Scope {
    fn code(self) -> i32 {
        match self {
            Scope::Thread => ffi::TANDEM_SCOPE_THREAD,
            Scope::Warp => ffi::TANDEM_SCOPE_WARP,
            Scope::Block => ffi::TANDEM_SCOPE_BLOCK,
        }
    }
}

fn long_enough<T: Pod>(op: &'static str, memory: &Symmetric<T>, wanted: u64) -> Result<()> {
    if memory.len() as u64 >= wanted {
        return Ok(());
    }
    Err(Error::invalid(op, format!("{} elements where {wanted} are needed", memory.len())))
}

/// The kernel that `get` gives; the error that stands for another status of it.
fn kernel(op: &'static str, get: impl FnOnce(&mut ffi::tandem_kernel) -> i32) -> Result<Kernel> {
    let mut raw = std::ptr::null_mut();
    if get(&mut raw) != tandem_cuda::ffi::TANDEM_OK || raw.is_null() {
        return Err(Error::invalid(op, "the program was built without nvcc"));
    }
    // SAFETY: the functions of the header give addresses of kernels.
    Ok(unsafe { Kernel::new(raw) })
}

/// Assignment of arrays element by element, for [`GlobalArray::assign`].
pub(crate) fn assign(
    team: &ffi::tandem_team,
    to: &ffi::tandem_array,
    from: &ffi::tandem_array,
    element: usize,
    stream: tandem_stream,
) -> i32 {
    // SAFETY: the handles are those of two arrays of the team with this size of elements.
    unsafe { ffi::tandem_array_assign(team, to, from, element as u64, stream) }
}

/// A transfer that a kernel repeats.
#[derive(Debug, Clone, Copy)]
pub struct Transfer {
    /// Whether the peer's memory is read; else it is written.
    pub is_get: bool,
    /// The other PE.
    pub peer: usize,
    /// Who of each block moves the block's part.
    pub scope: Scope,
    /// Blocks that share the bytes.
    pub blocks: u32,
    /// Threads of a block: a multiple of 32, at most 1024.
    pub threads: u32,
    /// How often.
    pub rounds: u32,
}

/// Queues a kernel of the queue's PE that puts `from` to the peer's `to` again and again, or gets the peer's `from` into
/// `to`. Both are multiples of 16 bytes.
///
/// # Errors
/// The lengths differ or are no multiples; no such grid; as of [`Queue::call`].
pub fn transfer<T: Pod>(queue: &Queue, to: &Symmetric<T>, from: &Symmetric<T>, how: Transfer) -> Result<()> {
    let op = "transfer by a kernel";
    if to.len() != from.len() || how.peer >= queue.size() {
        return Err(Error::invalid(op, format!("{} elements to {} of PE {}", from.len(), to.len(), how.peer)));
    }
    let args = ffi::tandem_bench_transfer_args {
        to: queue.address(to)?,
        from: queue.address(from)?,
        bytes: to.bytes(),
        rounds: how.rounds,
        blocks: how.blocks,
        threads: how.threads,
        peer: how.peer as u32,
        is_get: i32::from(how.is_get),
        scope: how.scope.code(),
    };
    queue.keep(to);
    queue.keep(from);
    // SAFETY: both are memory of the team, as long as `bytes`; the launcher checks the rest.
    queue.call(op, |stream, team| unsafe { ffi::tandem_bench_transfer(team, &args, stream) })
}

/// What is sent back and forth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ball {
    /// A signal that is set, relaxed.
    Signal,
    /// An atomic increment, relaxed.
    Atomic,
    /// Eight bytes that travel with their signal.
    Message,
    /// Eight bytes by `put_signal`.
    PutSignal,
}

/// Launches a kernel on all PEs in which PEs 0 and 1 send each other a word, `rounds` times back and forth. `words` are
/// six, 0 at first; afterwards the last but one of each PE is how many values were wrong.
///
/// # Errors
/// Fewer than two PEs or six words; as of [`Team::launch`].
pub fn pingpong(team: &Team, ball: Ball, words: &Symmetric<u64>, rounds: u64) -> Result<()> {
    let op = "ping-pong";
    long_enough(op, words, 6)?;
    if team.size() < 2 {
        return Err(Error::invalid(op, "it takes two PEs"));
    }
    let form = match ball {
        Ball::Signal => ffi::TANDEM_PINGPONG_SIGNAL,
        Ball::Atomic => ffi::TANDEM_PINGPONG_ATOMIC,
        Ball::Message => ffi::TANDEM_PINGPONG_MESSAGE,
        Ball::PutSignal => ffi::TANDEM_PINGPONG_PUT_SIGNAL,
    };
    // SAFETY: the place for the kernel is valid to write to.
    let kernel = kernel(op, |raw| unsafe { ffi::tandem_bench_pingpong(form, raw) })?;
    let addresses = addresses(team, words)?;
    let args = |pe: usize| {
        let word = addresses[pe];
        // tandem_bench_pingpong_args
        [word, word + 16, word + 32, rounds]
    };
    // SAFETY: these are the kernel's parameters, and the words are memory of the team.
    unsafe { team.launch(kernel, Grid { blocks: 1, threads: 1, shared_bytes: 0 }, args) }
}

/// The address of each PE's own part.
fn addresses<T: Pod>(team: &Team, memory: &Symmetric<T>) -> Result<Vec<u64>> {
    team.queues().iter().map(|queue| queue.address(memory)).collect()
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
    /// [`Litmus::Message`] without the fence, and free to go wrong.
    MessageUnfenced,
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
        return Err(Error::invalid(op, "it takes two PEs"));
    }
    let (is_buffering, code) = match test {
        Litmus::Message => (false, ffi::TANDEM_LITMUS_MESSAGE),
        Litmus::PutSignal => (false, ffi::TANDEM_LITMUS_PUT_SIGNAL),
        Litmus::Buffering => (true, ffi::TANDEM_LITMUS_BUFFERING),
        Litmus::MessageUnfenced => (false, ffi::TANDEM_LITMUS_MESSAGE_UNFENCED),
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
        return Err(Error::invalid(op, format!("{} elements from {}", to.len(), from.len())));
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
