//! The fabric under a communicator.

use crate::call::{Buffers, Work};
use crate::machine::Visit;
use std::time::Duration;
use tandem_fabric::exec::{Small, SmallCall};
use tandem_fabric::{Collectives, Team};

/// How long a kernel waits for another rank: as long as NCCL, but for ever.
const TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// A team of a PE for each rank.
pub(crate) struct Fabric {
    team: Team,
    collectives: Collectives,
    #[cfg(not(feature = "pretend"))]
    devices: Vec<tandem_cuda::Device>,
    /// What stands for the memory of each rank's GPU: the first half for what is read.
    #[cfg(feature = "pretend")]
    memory: tandem_fabric::Symmetric<u8>,
}

/// An operation whose table is made.
pub(crate) struct Ready {
    small: Small,
    #[cfg(not(feature = "pretend"))]
    streams: Vec<tandem_cuda::Stream>,
    #[cfg(feature = "pretend")]
    copies: Vec<pretend::Copies>,
    #[cfg(feature = "pretend")]
    is_faulty: bool,
}

impl Fabric {
    /// Whether a kernel has given up.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.team.check().map_err(|error| error.to_string())
    }

    fn small(&self, work: &Work, from: Vec<u64>, to: Vec<u64>) -> Result<Small, String> {
        let (root, part) = (work.root, work.part as u64);
        let call = SmallCall { operation: work.operation, numbers: work.numbers, root, part, from, to };
        self.collectives.small(&call).map_err(|error| error.to_string())
    }
}

#[cfg(not(feature = "pretend"))]
impl Fabric {
    /// On the GPUs with these numbers, by rank.
    pub(crate) fn open(devices: &[i32]) -> Result<Self, String> {
        let found = tandem_cuda::probe()?;
        let device = |&number: &i32| {
            let gpu = found.iter().find(|gpu| i64::from(gpu.index) == i64::from(number));
            gpu.ok_or_else(|| format!("there is no GPU {number}"))?.usable.clone()
        };
        let gpus = devices.iter().map(device).collect::<Result<Vec<_>, String>>()?;
        let options = tandem_fabric::Options { timeout: TIMEOUT, checks: false, ..Default::default() };
        let team = Team::cuda(&gpus, options).map_err(|error| error.to_string())?;
        let topology = tandem_fabric::probe::topology(&gpus).map_err(|error| error.to_string())?;
        let collectives = Collectives::new(&team, &topology).map_err(|error| error.to_string())?;
        Ok(Fabric { team, collectives, devices: gpus })
    }

    pub(crate) fn prepare(&self, work: &Work, ranks: &[Buffers]) -> Result<Ready, String> {
        let from = ranks.iter().map(|rank| rank.send as u64).collect();
        let to = ranks.iter().map(|rank| rank.receive as u64).collect();
        let small = self.small(work, from, to)?;
        let stream = |(rank, &device): (&Buffers, &tandem_cuda::Device)| {
            // SAFETY: the caller's stream, of the rank's GPU. What is ready is used for this very stream alone (`Visit::stream`), which
            // is alive then.
            unsafe { tandem_cuda::Stream::borrowed(device, rank.stream as *mut _) }
        };
        let streams = ranks.iter().zip(&self.devices).map(stream).collect();
        Ok(Ready { small, streams })
    }

    pub(crate) fn run(&self, ready: &Ready) -> Result<(), String> {
        // SAFETY: buffers and streams are those of a call of NCCL, whose rules are the same: they are of the rank's GPU, long enough,
        // and left alone until the stream is past the call. A fabric goes once its GPUs are done.
        unsafe { ready.small.run(&ready.streams) }.map_err(|error| error.to_string())
    }

    /// Waits until all kernels are done, and goes.
    pub(crate) fn close(self, visit: &Visit) {
        visit.wait_for(&self.devices);
    }
}

#[cfg(feature = "pretend")]
impl Fabric {
    pub(crate) fn open(devices: &[i32]) -> Result<Self, String> {
        pretend::open(devices.len(), TIMEOUT)
    }

    pub(crate) fn prepare(&self, work: &Work, ranks: &[Buffers]) -> Result<Ready, String> {
        let copies = pretend::copies(work, ranks)?;
        let base: Vec<u64> = (0..ranks.len())
            .map(|pe| self.team.queue(pe).address(&self.memory).map_err(|error| error.to_string()))
            .collect::<Result<_, String>>()?;
        let at =
            |f: fn(&pretend::Copies) -> usize| base.iter().zip(&copies).map(|(base, c)| base + f(c) as u64).collect();
        let small = self.small(work, at(|c| c.from), at(|c| c.to))?;
        let is_faulty = ranks.iter().any(|rank| crate::machine::is_faulty(rank.stream));
        Ok(Ready { small, copies, is_faulty })
    }

    pub(crate) fn run(&self, ready: &Ready) -> Result<(), String> {
        if ready.is_faulty {
            return Err("the test asks for a fault".into());
        }
        pretend::run(&self.team, &self.memory, ready).map_err(|error| error.to_string())
    }

    pub(crate) fn close(self, _: &Visit) {}
}

/// Ranks that are pretend PEs: what a call reads is copied to the PE's memory, and what it has written from there.
#[cfg(feature = "pretend")]
mod pretend {
    use super::{Buffers, Fabric, Ready, Work};
    use std::time::Duration;
    use tandem_fabric::topology::Topology;
    use tandem_fabric::{Collectives, Options, Result, Symmetric, Team};

    const HALF: usize = 1 << 20;

    pub(super) struct Copies {
        /// Where in the memory.
        pub(super) from: usize,
        pub(super) to: usize,
        /// Address and bytes.
        read: (usize, usize),
        written: (usize, usize),
    }

    pub(super) fn open(pes: usize, timeout: Duration) -> std::result::Result<Fabric, String> {
        let open = || -> Result<Fabric> {
            let team = Team::sim(pes, Options { timeout, ..Options::default() })?;
            let collectives = Collectives::new(&team, &Topology::preset("hgx-h200")?)?;
            let memory = team.alloc(2 * HALF)?;
            Ok(Fabric { team, collectives, memory })
        };
        open().map_err(|error| error.to_string())
    }

    /// Buffers that overlap do so in the memory too.
    pub(super) fn copies(work: &Work, ranks: &[Buffers]) -> std::result::Result<Vec<Copies>, String> {
        let one = |(rank, at): (usize, &Buffers)| {
            let (reads, writes) = (work.reads(rank, ranks.len()), work.writes(rank, ranks.len()));
            if reads.max(writes) > HALF {
                return Err(format!("{} bytes for a pretend PE", reads.max(writes)));
            }
            let inside =
                |inner: usize, outer: usize, bytes: usize| inner.checked_sub(outer).filter(|&step| step < bytes);
            let (from, to) = match (inside(at.send, at.receive, writes), inside(at.receive, at.send, reads)) {
                (Some(step), _) => (HALF + step, HALF),
                (_, Some(step)) => (0, step),
                _ => (0, HALF),
            };
            Ok(Copies { from, to, read: (at.send, reads), written: (at.receive, writes) })
        };
        ranks.iter().enumerate().map(one).collect()
    }

    pub(super) fn run(team: &Team, memory: &Symmetric<u8>, ready: &Ready) -> Result<()> {
        for (pe, copy) in ready.copies.iter().enumerate().filter(|(_, copy)| copy.read.1 > 0) {
            // SAFETY: the test's buffer, of as many bytes.
            let bytes = unsafe { std::slice::from_raw_parts(copy.read.0 as *const u8, copy.read.1) };
            team.write(pe, &memory.slice(copy.from..copy.from + bytes.len())?, bytes)?;
        }
        // SAFETY: the memory is the team's, and is touched again when its queues are done.
        unsafe { ready.small.run(&[]) }?;
        team.synchronize()?;
        for (pe, copy) in ready.copies.iter().enumerate().filter(|(_, copy)| copy.written.1 > 0) {
            let bytes = team.read(pe, &memory.slice(copy.to..copy.to + copy.written.1)?)?;
            // SAFETY: the test's buffer, of as many bytes, which is no part of the team's memory.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), copy.written.0 as *mut u8, bytes.len()) };
        }
        Ok(())
    }
}
