//! Kernels that measure the device API, and the launch of kernels that wait for each other. All need GPUs; lengths are checked here.

mod launch;

use crate::{ffi, Error, OneSided, Queue, Result, Symmetric, Team};
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
    /// Bytes of a round, a multiple of 16. Rounds walk through the memory, so that what caches keep of one is of no use to
    /// the next.
    pub bytes: u64,
    /// Who of each block moves the block's part.
    pub scope: Scope,
    /// Blocks that share the bytes.
    pub blocks: u32,
    /// Threads of a block, for [`Scope::Block`]: a multiple of 32, at most 1024.
    pub threads: u32,
    /// How often.
    pub rounds: u32,
}

/// Queues a kernel of the queue's PE that puts `from` to the peer's `to`, piece by piece and again from the start, or gets
/// the peer's `from` into `to`. Both are as long, and a whole number of pieces.
///
/// # Errors
/// They are not; the peer is not reached; no such grid; as of [`Queue::call`].
pub fn transfer<T: Pod>(queue: &Queue, to: &Symmetric<T>, from: &Symmetric<T>, how: Transfer) -> Result<()> {
    let op = "transfer by a kernel";
    if to.len() != from.len() || how.peer >= queue.size() || how.bytes == 0 || !to.bytes().is_multiple_of(how.bytes) {
        return Err(Error::invalid(
            op,
            format!("{} elements to {} of PE {}, {} bytes at a time", from.len(), to.len(), how.peer, how.bytes),
        ));
    }
    queue.seat().core.reach(queue.me(), how.peer)?;
    let args = ffi::tandem_bench_transfer_args {
        to: queue.address(to)?,
        from: queue.address(from)?,
        bytes: how.bytes,
        room: to.bytes(),
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

/// A collective inside kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inside {
    /// Nothing moves.
    Barrier,
    /// From each PE in turn.
    Broadcast,
    /// A sum.
    AllReduce,
    /// A word of each.
    AllGather,
    /// A word from each to each.
    AllToAll,
}

impl Inside {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Barrier, Self::Broadcast, Self::AllReduce, Self::AllGather, Self::AllToAll];
}

/// Launches a kernel of one block on all PEs that does a collective of 8 bytes of each PE again and again, by one thread, warp or block of 128
/// threads. `words` are two for each PE of the team and one more, which afterwards says how many values were wrong; more than 2^62 if a
/// collective failed.
///
/// # Errors
/// Too few words; as of [`Team::launch`].
pub fn inside(team: &Team, what: Inside, scope: Scope, words: &Symmetric<u64>, rounds: u64) -> Result<()> {
    let op = "collective inside kernels";
    let n = team.size() as u64;
    long_enough(op, words, 2 * n + 1)?;
    let form = match what {
        Inside::Barrier => ffi::TANDEM_INSIDE_BARRIER,
        Inside::Broadcast => ffi::TANDEM_INSIDE_BROADCAST,
        Inside::AllReduce => ffi::TANDEM_INSIDE_ALL_REDUCE,
        Inside::AllGather => ffi::TANDEM_INSIDE_ALL_GATHER,
        Inside::AllToAll => ffi::TANDEM_INSIDE_ALL_TO_ALL,
    };
    // SAFETY: the place for the kernel is valid to write to.
    let kernel = kernel(op, |raw| unsafe { ffi::tandem_bench_inside(form, scope.code(), raw) })?;
    let addresses = addresses(team, words)?;
    let args = |pe: usize| {
        let from = addresses[pe];
        // tandem_bench_inside_args
        [from, from + 8 * n, from + 16 * n, rounds]
    };
    let threads = [1, 32, 128][scope as usize];
    // SAFETY: these are the kernel's parameters, and the words are memory of the team.
    unsafe { team.launch(kernel, Grid { blocks: 1, threads, shared_bytes: 0 }, args) }
}

/// The address of each PE's own part.
fn addresses<T: Pod>(team: &Team, memory: &Symmetric<T>) -> Result<Vec<u64>> {
    (0..team.size()).map(|pe| team.core().address("address", memory, pe)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FaultKind, Options, Team};

    /// What the host has not refused, as it does not see what a kernel will do, the kernel finds.
    #[test]
    fn a_kernel_finds_that_it_has_no_link() {
        let gpus = tandem_cuda::testing::at_least(2);
        let _alone = tandem_cuda::testing::alone();
        let Some(pair) = gpus.get(..2) else { return };
        for is_get in [0, 1] {
            let team = Team::cuda(pair, Options { apart: vec![(0, 1)], ..Options::default() }).unwrap();
            let words: Symmetric<u64> = team.alloc(64).unwrap();
            team.write(1, &words, &[7; 64]).unwrap();
            let at = team.queue(0).address(&words).unwrap();
            let args = |peer| ffi::tandem_bench_transfer_args {
                to: at,
                from: at + 256,
                bytes: 256,
                room: 256,
                rounds: 1,
                blocks: 1,
                threads: 32,
                peer,
                is_get,
                scope: ffi::TANDEM_SCOPE_BLOCK,
            };
            let run = |peer| {
                // SAFETY: both places are memory of the team, as long as `bytes`.
                let told =
                    |stream, team: &ffi::tandem_team| unsafe { ffi::tandem_bench_transfer(team, &args(peer), stream) };
                team.queue(0).call("transfer", told).and_then(|()| team.queue(0).synchronize())
            };
            run(0).unwrap();
            let Err(Error::Fault(fault)) = run(1) else { panic!("PE 0 has reached PE 1") };
            assert_eq!((fault.kind, fault.waiter, fault.peer), (FaultKind::Apart, 0, Some(1)), "{fault}");
            assert!(fault.to_string().contains("needs a direct link"), "{fault}");
        }
    }
}
