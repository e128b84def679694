//! Copies: between PEs, and between host memory and a PE.

use super::context::{cuda_failed, failed, Context};
use super::data::{compared, Pattern, SEND};
use super::subject::Subject;
use std::ops::Range;
use std::sync::Arc;
use tandem_console::failure::Outcome;
use tandem_cuda::{HostCopy, PeerCopy, Pinned};
use tandem_fabric::{HostLinks, OneSided, Symmetric, Team};

/// A put or a get on a queue: the copy engine, over the link between the two PEs.
pub(crate) struct QueueCopy {
    team: Team,
    links: Arc<HostLinks>,
    pattern: Arc<Pattern>,
    from: Symmetric<f32>,
    to: Symmetric<f32>,
    is_get: bool,
    len: usize,
}

impl QueueCopy {
    pub(crate) fn new(c: &Context, is_get: bool) -> Outcome<Self> {
        let alloc = || c.team.alloc::<f32>(c.most).map_err(failed);
        let (from, to) = (alloc()?, alloc()?);
        let (team, links, pattern) = (c.team.clone(), c.links.clone(), c.pattern.clone());
        Ok(Self { team, links, pattern, from, to, is_get, len: 0 })
    }
}

impl Subject for QueueCopy {
    fn library(&self) -> String {
        if self.is_get { "tandem get on a queue" } else { "tandem put on a queue" }.into()
    }

    fn prepare(&mut self, bytes: u64) -> Outcome<u64> {
        self.len = (bytes / 4) as usize;
        let from = self.from.slice(0..self.len).map_err(failed)?;
        self.links.upload(usize::from(self.is_get), &from, self.pattern.of(0, self.len)).map_err(failed)?;
        Ok(self.len as u64 * 4)
    }

    fn start(&mut self) -> Outcome {
        let part = |memory: &Symmetric<f32>| memory.slice(0..self.len).map_err(failed);
        let (queue, to, from) = (self.team.queue(0), part(&self.to)?, part(&self.from)?);
        if self.is_get { queue.get(&to, &from, 1) } else { queue.put(&to, &from, 1) }.map_err(failed)
    }

    fn wait(&mut self) -> Outcome {
        self.team.queue(0).synchronize().map_err(failed)
    }

    fn wrong(&mut self) -> Outcome<Option<u64>> {
        let (target, pes) = (usize::from(!self.is_get), self.team.size());
        let pieces = compared(self.len);
        for piece in &pieces {
            let to = self.to.slice(piece.clone()).map_err(failed)?;
            self.links.upload(target, &to, self.pattern.poison(piece.len())).map_err(failed)?;
        }
        self.start()?;
        self.wait()?;
        let mut wrong = 0;
        for piece in pieces {
            let (to, mut got) = (self.to.slice(piece.clone()).map_err(failed)?, vec![0f32; piece.len()]);
            self.links.download(target, &to, &mut got).map_err(failed)?;
            wrong += self.pattern.wrong_from(SEND, (pes, 1), self.len, piece.start, &got);
        }
        Ok(Some(wrong))
    }
}

/// The runtime's copy between two devices.
pub(crate) struct MemcpyPeer {
    copy: PeerCopy,
    len: usize,
}

impl MemcpyPeer {
    pub(crate) fn new(c: &Context) -> Outcome<Self> {
        let copy = PeerCopy::new(c.devices[0], c.devices[1], c.most * 4, 0x5a).map_err(cuda_failed)?;
        Ok(Self { copy, len: 0 })
    }
}

impl Subject for MemcpyPeer {
    fn library(&self) -> String {
        "cudaMemcpyPeer".into()
    }

    fn prepare(&mut self, bytes: u64) -> Outcome<u64> {
        self.len = (bytes / 4 * 4) as usize;
        Ok(self.len as u64)
    }

    fn start(&mut self) -> Outcome {
        self.copy.start(self.len).map_err(cuda_failed)
    }

    fn wait(&mut self) -> Outcome {
        self.copy.wait().map_err(cuda_failed)
    }

    fn wrong(&mut self) -> Outcome<Option<u64>> {
        Ok(None)
    }
}

/// Host memory, page-locked or not.
enum Memory {
    Pinned(Pinned),
    Pageable(Vec<u8>),
}

impl Memory {
    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Memory::Pinned(memory) => memory.bytes(),
            Memory::Pageable(memory) => memory,
        }
    }
}

/// Host memory to or from PE 0 over the links of some PEs.
pub(crate) struct Links {
    team: Team,
    links: Arc<HostLinks>,
    pattern: Arc<Pattern>,
    device: Symmetric<u8>,
    memory: Memory,
    is_upload: bool,
    bytes: usize,
    name: String,
}

impl Links {
    /// Over the links of all PEs, or over that of PE 0 alone.
    pub(crate) fn new(c: &Context, is_upload: bool, is_pinned: bool, all: bool) -> Outcome<Self> {
        let bytes = c.most * 4;
        let memory = match c.devices.first() {
            Some(&device) if is_pinned => Memory::Pinned(Pinned::new(device, bytes).map_err(cuda_failed)?),
            _ => Memory::Pageable(vec![0; bytes]),
        };
        let links = match all {
            true => c.links.clone(),
            false => Arc::new(HostLinks::new(&c.team.split(&[0]).map_err(failed)?)),
        };
        let slots = if all { "all links" } else { "one link" };
        let kind = if is_pinned { "pinned" } else { "pageable" };
        let device = c.team.alloc(bytes).map_err(failed)?;
        let (team, pattern, name) = (c.team.clone(), c.pattern.clone(), format!("tandem, {slots}, {kind}"));
        Ok(Self { team, links, pattern, device, memory, is_upload, bytes: 0, name })
    }
}

impl Subject for Links {
    fn library(&self) -> String {
        self.name.clone()
    }

    fn prepare(&mut self, bytes: u64) -> Outcome<u64> {
        self.bytes = (bytes / 4 * 4) as usize;
        Ok(self.bytes as u64)
    }

    fn start(&mut self) -> Outcome {
        let device = self.device.slice(0..self.bytes).map_err(failed)?;
        let host = &mut self.memory.bytes()[..self.bytes];
        let moved = match self.is_upload {
            true => self.links.upload(0, &device, host),
            false => self.links.download(0, &device, host),
        };
        moved.map(drop).map_err(failed)
    }

    fn wait(&mut self) -> Outcome {
        Ok(())
    }

    fn is_queued(&self) -> bool {
        false
    }

    /// Checked by the team's own way between host and PEs.
    fn wrong(&mut self) -> Outcome<Option<u64>> {
        let (team, pattern, pes) = (self.team.clone(), self.pattern.clone(), self.team.size());
        let len = self.bytes / 4;
        let device = self.device.slice(0..self.bytes).map_err(failed)?;
        let (data, poison) = (pattern.of(0, len), pattern.poison(len));
        let (on_device, on_host) = if self.is_upload { (poison, data) } else { (data, poison) };
        // All of the host's memory, so that all of its pages are there.
        super::data::copy(&mut self.memory.bytes()[..self.bytes], bytemuck::cast_slice(on_host));
        let pieces = compared(len);
        let bytes = |piece: &Range<usize>| 4 * piece.start..4 * piece.end;
        for piece in &pieces {
            let there = device.slice(bytes(piece)).map_err(failed)?;
            team.write(0, &there, bytemuck::cast_slice(&on_device[piece.clone()])).map_err(failed)?;
        }
        self.start()?;
        let mut wrong = 0;
        for piece in pieces {
            let got = match self.is_upload {
                true => team.read(0, &device.slice(bytes(&piece)).map_err(failed)?).map_err(failed)?,
                false => self.memory.bytes()[bytes(&piece)].to_vec(),
            };
            let got: Vec<f32> = got.chunks_exact(4).map(bytemuck::pod_read_unaligned).collect();
            wrong += pattern.wrong_from(SEND, (pes, 1), len, piece.start, &got);
        }
        Ok(Some(wrong))
    }
}

/// The runtime's copy between host memory and a device.
pub(crate) struct MemcpyHost {
    copy: HostCopy,
    is_upload: bool,
    bytes: usize,
    name: &'static str,
}

impl MemcpyHost {
    pub(crate) fn new(c: &Context, is_upload: bool, is_pinned: bool) -> Outcome<Self> {
        let mut copy = HostCopy::new(c.devices[0], c.most * 4, is_pinned).map_err(cuda_failed)?;
        let host = copy.bytes().map_err(cuda_failed)?;
        super::data::copy(host, bytemuck::cast_slice(c.pattern.of(0, c.most)));
        let name = if is_pinned { "cudaMemcpy, pinned" } else { "cudaMemcpy, pageable" };
        Ok(Self { copy, is_upload, bytes: 0, name })
    }
}

impl Subject for MemcpyHost {
    fn library(&self) -> String {
        self.name.into()
    }

    fn prepare(&mut self, bytes: u64) -> Outcome<u64> {
        self.bytes = (bytes / 4 * 4) as usize;
        Ok(self.bytes as u64)
    }

    fn start(&mut self) -> Outcome {
        self.copy.start(self.bytes, self.is_upload).map_err(cuda_failed)
    }

    fn wait(&mut self) -> Outcome {
        self.copy.wait().map_err(cuda_failed)
    }

    fn wrong(&mut self) -> Outcome<Option<u64>> {
        Ok(None)
    }
}
