//! `cudaMemcpyPeer` between two devices, as a peer to measure against.

use crate::error::Result;
use crate::{ffi, Device, DeviceBuffer, Pool, Stream};
use std::sync::Arc;

/// Two buffers, and a stream that copies from the first to the second.
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
