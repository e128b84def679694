//! NCCL's operations, in the same process.

use super::context::{cuda_failed, Context};
use super::data::{workers, Job, Pattern};
use super::subject::Subject;
use std::sync::Arc;
use tandem_console::failure::{Failure, Outcome};
use tandem_cuda::nccl::{Collective, Nccl, Ranks};
use tandem_cuda::{Device, DeviceBuffer, Downloads, Pool, Staging, Stream, Upload};
use tandem_fabric::plan::Operation;

/// Results are looked at up to this size: NCCL is not what is tested here.
const CHECKED: u64 = 16 << 20;

/// An operation of NCCL.
pub(crate) struct NcclOp {
    nccl: Arc<Nccl>,
    ranks: Ranks,
    job: Job,
    pattern: Arc<Pattern>,
    staging: Staging,
    downloads: Arc<Downloads>,
    pools: Vec<Arc<Pool>>,
    send: Vec<DeviceBuffer<f32>>,
    receive: Vec<DeviceBuffer<f32>>,
    len: usize,
    out: usize,
}

fn failed(why: String) -> Failure {
    Failure::device(why)
}

impl NcclOp {
    /// `None` where NCCL was not asked for; sends both ways are a ring of NCCL's, which is the same for two GPUs alone.
    pub(crate) fn new(c: &Context, job: Job) -> Outcome<Option<Self>> {
        let Some(nccl) = c.nccl.clone().filter(|_| !job.both_ways || c.job.len() == 2) else { return Ok(None) };
        let devices: Vec<Device> = c.job.iter().map(|&pe| c.devices[pe]).collect();
        let ranks = nccl.start(&devices).map_err(failed)?;
        let (mut pools, mut send, mut receive) = (Vec::new(), Vec::new(), Vec::new());
        for &device in &devices {
            let pool = Arc::new(Pool::new(device).map_err(cuda_failed)?);
            // NCCL reads and writes the buffers of its peers in the same process.
            for &peer in devices.iter().filter(|peer| **peer != device) {
                if device.can_access(peer).map_err(cuda_failed)? {
                    pool.share(peer).map_err(cuda_failed)?;
                }
            }
            let stream = Arc::new(Stream::new(device).map_err(cuda_failed)?);
            send.push(pool.alloc(&stream, c.most, false).map_err(cuda_failed)?);
            receive.push(pool.alloc(&stream, c.most, false).map_err(cuda_failed)?);
            pools.push(pool);
        }
        let staging = Staging::new(8, 4 << 20, workers);
        let (pattern, downloads) = (c.pattern.clone(), Arc::default());
        Ok(Some(Self { nccl, ranks, job, pattern, staging, downloads, pools, send, receive, len: 0, out: 0 }))
    }

    fn collective(&self) -> (Collective, usize) {
        let ranks = self.send.len();
        match self.job.operation {
            Operation::Send if self.job.both_ways => (Collective::Exchange, self.len),
            Operation::Send | Operation::Upload | Operation::Download => (Collective::Send, self.len),
            Operation::Broadcast => (Collective::Broadcast, self.len),
            Operation::Reduce => (Collective::Reduce, self.len),
            Operation::AllReduce => (Collective::AllReduce, self.len),
            Operation::AllGather => (Collective::AllGather, self.len),
            Operation::ReduceScatter => (Collective::ReduceScatter, self.out),
            Operation::AllToAll => (Collective::AllToAll, self.len / ranks),
        }
    }
}

impl Subject for NcclOp {
    fn library(&self) -> String {
        let ways = if self.job.both_ways { ", both ways" } else { "" };
        format!("NCCL {}{ways}", self.nccl.version())
    }

    fn prepare(&mut self, bytes: u64) -> Outcome<u64> {
        (self.len, self.out) = self.job.lens((bytes / 4) as usize, self.send.len());
        for (rank, buffer) in self.send.iter_mut().enumerate() {
            let bytes = bytemuck::cast_slice(self.pattern.of(rank, self.len));
            let upload = self.staging.upload(buffer, 0, bytes).map_err(cuda_failed)?;
            Upload::run(&[upload]).map_err(cuda_failed)?;
        }
        self.wait()?;
        Ok(self.len.max(self.out) as u64 * 4)
    }

    fn start(&mut self) -> Outcome {
        let (what, count) = self.collective();
        self.ranks.run(what, &self.send, &mut self.receive, count).map_err(failed)
    }

    fn wait(&mut self) -> Outcome {
        self.send.iter().try_for_each(|buffer| buffer.stream().synchronize()).map_err(cuda_failed)
    }

    fn wrong(&mut self) -> Outcome<Option<u64>> {
        if self.out as u64 * 4 > CHECKED {
            return Ok(None);
        }
        let pes = self.receive.len();
        for buffer in &mut self.receive {
            buffer.fill(0..buffer.len().min(self.out), 0xff).map_err(cuda_failed)?;
        }
        self.start()?;
        self.wait()?;
        let mut wrong = 0;
        for pe in (0..pes).filter(|pe| self.job.has_result(*pe)) {
            let received = &self.receive[pe];
            let mut part = self.pools[pe].alloc(received.stream(), self.out, false).map_err(cuda_failed)?;
            part.copy_from(0, received, 0..self.out).map_err(cuda_failed)?;
            let got = self.downloads.start(&part).map_err(cuda_failed)?.wait().map_err(cuda_failed)?;
            wrong += self.pattern.wrong(self.job, pes, pe, self.len, &got);
        }
        Ok(Some(wrong))
    }
}
