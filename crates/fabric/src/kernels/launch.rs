//! Kernels that run on all PEs of a team at once and wait for each other.

use crate::{Error, OneSided, Result, Team};
use tandem_cuda::{Grid, Kernel};

impl Team {
    /// Blocks of `kernel` that every PE of this process holds at once when it is otherwise idle; `grid.blocks` is not looked at. PEs of one GPU have
    /// equal shares of it. Also loads the kernel's code everywhere, as one must before kernels that wait are launched.
    ///
    /// # Errors
    /// The PEs are pretend ones; a device cannot launch cooperatively, or failed.
    pub fn resident_blocks(&self, kernel: Kernel, grid: Grid) -> Result<u64> {
        let mut least = u64::MAX;
        for pe in self.core().local() {
            least = least.min(self.resident_on(pe, kernel, grid)?);
        }
        Ok(least)
    }

    fn resident_on(&self, pe: usize, kernel: Kernel, grid: Grid) -> Result<u64> {
        let pretend = || Error::invalid("launch a kernel", "the PEs are pretend ones: use Queue::run");
        let stream = self.queue(pe).stream().ok_or_else(pretend)?;
        Ok(kernel.resident_blocks(stream.device(), grid)? / self.sharing(pe) as u64)
    }

    /// Launches `kernel` on the queue of every PE of this process, so that all its blocks on all PEs are there at once and may wait for
    /// each other: `barrier_grid` of the device API needs that. The kernel's parameters are a `tandem_team` and an `A`,
    /// which `arguments` gives for each PE. Nothing is launched where one PE would not hold the grid.
    ///
    /// Of kernels that are launched like this, one at a time should run on a PE: two may each hold what the other needs,
    /// and then end by the team's timeout.
    ///
    /// # Safety
    /// The kernel has these two parameters, and touches no memory that it should not.
    ///
    /// # Errors
    /// [`Error::NotResident`] names the PE that does not hold the grid, and how much it holds; the PEs are pretend ones, or some do not
    /// reach each other; the team had a fault; a device failed.
    pub unsafe fn launch<A: Copy>(&self, kernel: Kernel, grid: Grid, arguments: impl Fn(usize) -> A) -> Result<()> {
        self.check()?;
        self.core().all_reach()?;
        if grid.blocks == 0 || grid.threads == 0 {
            return Err(Error::invalid("launch a kernel", "a grid needs blocks and threads"));
        }
        for pe in self.core().local() {
            let most = self.resident_on(pe, kernel, grid)?;
            if u64::from(grid.blocks) > most {
                return Err(Error::NotResident(format!(
                    "a kernel of {} blocks of {} threads with {} bytes of shared memory cannot be launched on all PEs at \
                     once: PE {pe} ({}) holds {most} of its blocks; launch at most as many, or smaller ones",
                    grid.blocks,
                    grid.threads,
                    grid.shared_bytes,
                    self.name(pe)
                )));
            }
        }
        for queue in self.queues() {
            let (Some(stream), Some(mut team)) = (queue.stream(), queue.handle()) else { continue };
            let mut own = arguments(queue.me());
            let mut addresses = [(&raw mut team).cast::<u8>(), (&raw mut own).cast::<u8>()];
            // SAFETY: the caller's promise; both values live until the launch has copied them.
            unsafe { kernel.launch_cooperative(stream, grid, &mut addresses)? };
        }
        Ok(())
    }
}
