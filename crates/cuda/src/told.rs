//! A few elements that a kernel writes to the host itself, with a word behind them by which the host sees at once that they are there: an event
//! takes the host and the device some microseconds to make, to record and to see.

use crate::pinned::PinnedBlock;
use crate::{ffi, traffic, Downloads, Error, Result, Stream};
use bytemuck::Pod;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the device is asked whether it still works.
const LOOK: Duration = Duration::from_millis(1);
/// How long a thread that waits does not go to sleep.
const AWAKE: Duration = Duration::from_millis(50);
/// Looks at the word between two looks at the clock.
const SPINS: u32 = 64;

impl Downloads {
    /// Has `enqueue` enqueue on `stream` what writes `len` elements to the host, and then any number but zero to the word behind them. It gets both
    /// addresses, which devices reach as well; the word is zero.
    ///
    /// # Safety
    /// What is enqueued writes nothing beyond these elements and the word, and the word last: whoever sees it sees the elements.
    ///
    /// # Errors
    /// No page-locked memory; that of `enqueue`; the device failed.
    pub unsafe fn told_by<T: Pod>(
        &self,
        stream: &Arc<Stream>,
        len: usize,
        enqueue: impl FnOnce(*mut u8, *mut u32) -> Result<()>,
    ) -> Result<Told<T>> {
        let word = len.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_next_multiple_of(align_of::<u32>()));
        let bytes = word.and_then(|at| at.checked_add(size_of::<u32>()));
        let too_large = || Error::new("copy to host", Some(stream.device()), ffi::TANDEM_CUDA_OUT_OF_MEMORY);
        let (Some(word), Some(bytes)) = (word, bytes) else { return Err(too_large()) };
        let block = self.blocks.take(stream.device(), bytes)?;
        let told = Told { block, word, len, stream: stream.clone(), is_over: false, of: PhantomData };
        told.word().store(0, Ordering::Relaxed);
        enqueue(told.block.address(), told.word().as_ptr())?;
        traffic::to_host(len * size_of::<T>());
        Ok(told)
    }
}

/// Elements that a kernel writes to the host, on their way. Dropping it waits for the stream and overwrites them.
#[derive(Debug)]
pub struct Told<T: Pod> {
    block: PinnedBlock,
    /// Where the word is in the block.
    word: usize,
    len: usize,
    stream: Arc<Stream>,
    /// Whether what was enqueued writes no more.
    is_over: bool,
    of: PhantomData<fn() -> T>,
}

impl<T: Pod> Told<T> {
    fn word(&self) -> &AtomicU32 {
        // SAFETY: four bytes at a multiple of four in a page-aligned block that is as long as this value lives; all that writes them, here and on
        // the device, writes the whole word.
        unsafe { AtomicU32::from_ptr(self.block.address().add(self.word).cast()) }
    }

    fn has_come(&self) -> bool {
        self.word().load(Ordering::Acquire) != 0
    }

    /// Blocks until they are there.
    ///
    /// # Errors
    /// The failure of what was to write them or of work before it; the word was not written; too little host memory.
    pub fn wait(mut self) -> Result<Vec<T>> {
        self.wait_for_word()?;
        self.is_over = true;
        let mut out: Vec<T> = Vec::new();
        let room = out.try_reserve_exact(self.len);
        room.map_err(|_| Error::new("copy to host: host memory", None, ffi::TANDEM_CUDA_OUT_OF_MEMORY))?;
        let bytes = &self.block.as_slice()[..self.len * size_of::<T>()];
        out.extend(bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned::<T>));
        Ok(out)
    }

    fn wait_for_word(&mut self) -> Result<()> {
        let begun = Instant::now();
        let mut look = LOOK;
        loop {
            for _ in 0..SPINS {
                if self.has_come() {
                    return Ok(());
                }
                std::hint::spin_loop();
            }
            std::thread::yield_now();
            let waited = begun.elapsed();
            if waited < look {
                continue;
            }
            look = waited + LOOK;
            let until = self.stream.record()?;
            let is_over = if waited < AWAKE { until.is_done()? } else { until.synchronize().map(|()| true)? };
            if is_over && !self.has_come() {
                self.is_over = true;
                return Err(Error::new("wait for a kernel's word", Some(self.stream.device()), ffi::TANDEM_INVALID));
            }
        }
    }
}

impl<T: Pod> Drop for Told<T> {
    fn drop(&mut self) {
        if !self.is_over {
            // A failed device writes no more.
            let _ = self.stream.synchronize();
        }
    }
}
