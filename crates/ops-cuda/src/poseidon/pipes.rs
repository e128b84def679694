//! Columns through a GPU: up, hashed, down again, with all three at once.
//!
//! A part of the columns goes to one of a few pipes, each of which is a stream with memory of its own. Within a pipe the
//! steps follow each other; beside them run those of the other pipes. Uploads go through the lane's page-locked ring.

use crate::lane::LaneCtx;
use crate::tuning::poseidon::{PART, PIPES};
use std::collections::VecDeque;
use std::sync::Arc;
use tandem_cuda::ffi::tandem_stream;
use tandem_cuda::{DeviceBuffer, DevicePtr, Pool, Stream};
use tandem_ops::{Canonical, Pending, Result, Unaligned};

/// The pipes of one GPU.
pub(super) struct Pipes {
    pool: Arc<Pool>,
    arity: usize,
    pipes: Vec<Pipe>,
}

/// Columns and their hashes, in the order of one stream.
struct Pipe {
    input: DeviceBuffer<Canonical>,
    output: DeviceBuffer<Canonical>,
}

impl Pipes {
    pub(super) fn new(pool: &Arc<Pool>, arity: usize) -> Self {
        Pipes { pool: pool.clone(), arity, pipes: Vec::new() }
    }

    /// Hashes the columns of `input` into `out`. `launch` gets a stream, columns, room for hashes, and their number.
    pub(super) fn run(
        &mut self,
        ctx: &Arc<LaneCtx>,
        input: Unaligned<'_, Canonical>,
        out: &mut [Canonical],
        launch: impl Fn(tandem_stream, DevicePtr<Canonical>, DevicePtr<Canonical>, usize) -> i32,
    ) -> Result<()> {
        let done = self.parts(ctx, input, out, launch);
        // After a failure nothing that was started may still use the memory of the pipes or of the hasher.
        let idle: Vec<_> = self.pipes.iter().map(|pipe| pipe.input.stream().synchronize()).collect();
        let idle: tandem_cuda::Result<()> = idle.into_iter().collect();
        // Overwrites what was uploaded.
        done.and(idle.map_err(|e| ctx.error(super::OP, e))).and(ctx.synchronize())
    }

    fn parts(
        &mut self,
        ctx: &Arc<LaneCtx>,
        input: Unaligned<'_, Canonical>,
        out: &mut [Canonical],
        launch: impl Fn(tandem_stream, DevicePtr<Canonical>, DevicePtr<Canonical>, usize) -> i32,
    ) -> Result<()> {
        let part = PART.min(out.len().div_ceil(PIPES)).max(1);
        self.make(ctx, part)?;
        let mut on_the_way: VecDeque<(&mut [Canonical], Pending<Vec<Canonical>>)> = VecDeque::new();
        for (index, out) in out.chunks_mut(part).enumerate() {
            if on_the_way.len() == PIPES {
                on_the_way.pop_front().map_or(Ok(()), arrive)?;
            }
            let pipe = &mut self.pipes[index % PIPES];
            let first = index * part * self.arity;
            let columns = input.slice(first..first + out.len() * self.arity);
            ctx.upload(super::OP, &mut pipe.input, 0, columns)?;
            let (from, to) = (pipe.input.ptr(), pipe.output.ptr());
            let launched = pipe.input.stream().call(super::OP, |stream| launch(stream, from, to, out.len()));
            launched.map_err(|e| ctx.error(super::OP, e))?;
            on_the_way.push_back((out, ctx.download(super::OP, &pipe.output)?));
        }
        on_the_way.into_iter().try_for_each(arrive)
    }

    /// Pipes for parts of this many columns.
    fn make(&mut self, ctx: &LaneCtx, part: usize) -> Result<()> {
        if self.pipes.first().is_some_and(|pipe| pipe.output.len() >= part) {
            return Ok(());
        }
        self.pipes.clear();
        let pipe = || {
            let stream = Arc::new(Stream::new(ctx.device)?);
            let input = self.pool.alloc(&stream, part * self.arity, true)?;
            Ok(Pipe { input, output: self.pool.alloc(&stream, part, true)? })
        };
        let made: tandem_cuda::Result<Vec<Pipe>> = (0..PIPES).map(|_| pipe()).collect();
        self.pipes = made.map_err(|e| ctx.error(super::OP, e))?;
        Ok(())
    }
}

/// Waits for hashes and puts them where they belong; what lies behind them in the pipe is left.
fn arrive((out, hashes): (&mut [Canonical], Pending<Vec<Canonical>>)) -> Result<()> {
    out.copy_from_slice(&hashes.wait()?[..out.len()]);
    Ok(())
}
