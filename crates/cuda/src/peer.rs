//! The runtime's own copies, as peers to measure against.

use crate::error::Result;
use crate::{ffi, Device, DeviceBuffer, Pinned, Pool, Stream};
use std::sync::Arc;

/// `cudaMemcpyPeer`: two buffers, and a stream that copies from the first to the second.
#[derive(Debug)]
pub struct PeerCopy {
    from: DeviceBuffer<u8>,
    to: DeviceBuffer<u8>,
}

impl PeerCopy {
    /// Buffers of `bytes` bytes with every byte `value`, and another one at the target. The devices reach each other's pools where the
    /// driver lets them.
    ///
    /// # Errors
    /// Too little memory; a device failed.
    pub fn new(from: Device, to: Device, bytes: usize, value: u8) -> Result<Self> {
        let make = |device: Device, peer: Device, value: u8| -> Result<DeviceBuffer<u8>> {
            let pool = Arc::new(Pool::new(device)?);
            if device.can_access(peer)? {
                pool.share(peer)?;
            }
            let stream = Arc::new(Stream::new(device)?);
            let mut buffer = pool.alloc(&stream, bytes, false)?;
            buffer.fill(0..bytes, value)?;
            stream.synchronize()?;
            Ok(buffer)
        };
        Ok(PeerCopy { from: make(from, to, value)?, to: make(to, from, !value)? })
    }

    /// Queues a copy of the first `bytes` bytes.
    ///
    /// # Errors
    /// There are fewer; a device failed.
    pub fn start(&mut self, bytes: usize) -> Result<()> {
        let op = "copy between devices";
        let ((from, _), (to, _)) = (self.from.span(op, &(0..bytes))?, self.to.span(op, &(0..bytes))?);
        let (here, there) = (self.from.stream().device().raw(), self.to.stream().device().raw());
        // SAFETY: both spans lie in buffers of this value, whose drop waits for the stream; nothing else uses the target.
        self.from.stream().call(op, |raw| unsafe { ffi::tandem_cuda_copy_peer(to, there, from, here, bytes, raw) })
    }

    /// Waits until all copies are done.
    ///
    /// # Errors
    /// A device failed.
    pub fn wait(&self) -> Result<()> {
        self.from.stream().synchronize()
    }

    /// Both buffers; nothing is being copied.
    ///
    /// # Errors
    /// A device failed.
    pub fn buffers(&mut self) -> Result<(&DeviceBuffer<u8>, &DeviceBuffer<u8>)> {
        self.wait()?;
        Ok((&self.from, &self.to))
    }
}

impl Drop for PeerCopy {
    fn drop(&mut self) {
        // A device that failed copies no more.
        let _ = self.wait();
    }
}

/// `cudaMemcpyAsync` between host memory and a device, the driver's own way, as a peer to measure against.
#[derive(Debug)]
pub struct HostCopy {
    device: DeviceBuffer<u8>,
    host: HostMemory,
}

#[derive(Debug)]
enum HostMemory {
    Pinned(Pinned),
    Pageable(Vec<u8>),
}

impl HostCopy {
    /// `bytes` bytes on the device and as many of host memory, page-locked or not.
    ///
    /// # Errors
    /// Too little memory; the device failed.
    pub fn new(device: Device, bytes: usize, is_pinned: bool) -> Result<Self> {
        let host = match is_pinned {
            true => HostMemory::Pinned(Pinned::new(device, bytes)?),
            false => HostMemory::Pageable(vec![0x5a; bytes]),
        };
        let stream = Arc::new(Stream::new(device)?);
        let mut buffer = Arc::new(Pool::new(device)?).alloc(&stream, bytes, false)?;
        buffer.fill(0..bytes, 0xa5)?;
        stream.synchronize()?;
        Ok(HostCopy { device: buffer, host })
    }

    /// The host memory; nothing is being copied.
    ///
    /// # Errors
    /// The device failed.
    pub fn bytes(&mut self) -> Result<&mut [u8]> {
        self.wait()?;
        Ok(match &mut self.host {
            HostMemory::Pinned(memory) => memory.bytes(),
            HostMemory::Pageable(memory) => memory,
        })
    }

    /// Queues a copy of the first `bytes` bytes to the device, or back.
    ///
    /// # Errors
    /// There are fewer; the device failed.
    pub fn start(&mut self, bytes: usize, is_upload: bool) -> Result<()> {
        let op = "copy of host memory";
        let (device, _) = self.device.span(op, &(0..bytes))?;
        let host = match &mut self.host {
            HostMemory::Pinned(memory) => memory.address(),
            HostMemory::Pageable(memory) => memory.as_mut_ptr(),
        };
        // SAFETY: both are this value's own with at least as many bytes (`span` has checked the one, and the other is as long); its
        // drop waits for the stream. From and to pageable memory the runtime copies through memory of its own.
        self.device.stream().call(op, |raw| unsafe {
            match is_upload {
                true => ffi::tandem_cuda_copy_to_device(device, host, bytes, raw),
                false => ffi::tandem_cuda_copy_to_host(host, device, bytes, raw),
            }
        })
    }

    /// Waits until all copies are done.
    ///
    /// # Errors
    /// The device failed.
    pub fn wait(&self) -> Result<()> {
        self.device.stream().synchronize()
    }
}

impl Drop for HostCopy {
    fn drop(&mut self) {
        // A device that failed copies no more.
        let _ = self.wait();
    }
}
