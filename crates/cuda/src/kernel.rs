//! Kernels whose blocks wait for each other.

use crate::error::{check, Error, Result};
use crate::{ffi, Device, Stream};

/// A kernel of this program, by its address.
#[derive(Debug, Clone, Copy)]
pub struct Kernel {
    raw: ffi::tandem_kernel,
}

// SAFETY: an address of code, which is there as long as the program.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

/// How a kernel is launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// Number of blocks.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of dynamic shared memory of a block.
    pub shared_bytes: u32,
}

impl Kernel {
    /// The kernel at `raw`.
    ///
    /// # Safety
    /// `raw` is the address of a `__global__` function of this program, as native code takes it of one.
    pub unsafe fn new(raw: ffi::tandem_kernel) -> Self {
        Kernel { raw }
    }

    /// How many blocks with so many threads and so much shared memory are on the device at once when it is otherwise
    /// idle. Loads the kernel's code, which could else wait for a kernel that waits for this one.
    ///
    /// # Errors
    /// The device cannot launch cooperatively, or has less shared memory; it failed.
    pub fn resident_blocks(self, device: Device, grid: Grid) -> Result<u64> {
        let mut blocks = 0;
        let threads = i32::try_from(grid.threads).unwrap_or(i32::MAX);
        // SAFETY: the address is a kernel's (Kernel::new), `blocks` is valid to write to.
        check("occupancy of a kernel", Some(device), unsafe {
            let shared = grid.shared_bytes as usize;
            ffi::tandem_cuda_resident_blocks(device.raw(), self.raw, threads, shared, &mut blocks)
        })?;
        Ok(blocks)
    }

    /// Launches it so that all blocks are on the device at once, or fails.
    ///
    /// # Safety
    /// `arguments` has one address for each parameter of the kernel, of a value of that parameter's size; what the
    /// kernel does with these values is sound.
    ///
    /// # Errors
    /// The blocks do not fit at once; the device failed.
    pub unsafe fn launch_cooperative(self, stream: &Stream, grid: Grid, arguments: &mut [*mut u8]) -> Result<()> {
        let op = "launch a cooperative kernel";
        let (Ok(blocks), Ok(threads)) = (i32::try_from(grid.blocks), i32::try_from(grid.threads)) else {
            return Err(Error::new(op, Some(stream.device()), ffi::TANDEM_INVALID));
        };
        let shared = grid.shared_bytes as usize;
        let arguments = arguments.as_mut_ptr();
        // SAFETY: the caller's promise; the stream is alive and its device current.
        stream.call(op, |raw| unsafe {
            ffi::tandem_cuda_launch_cooperative(self.raw, blocks, threads, shared, arguments, raw)
        })
    }
}
