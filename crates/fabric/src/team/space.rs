//! Memory of a team that is not that of its PEs.

use crate::{cuda, sim, Error, Memory, Result, Space, Symmetric, Team};
use bytemuck::Pod;

impl Team {
    /// `len` elements of zeros on every PE of the team, in memory of this kind. Of [`Space::Host`] there can be as many as registered
    /// regions, 64 with these, and not in a team of several processes.
    ///
    /// # Errors
    /// As for [`Team::alloc`]; for host memory: none of it, no more regions, no elements, several processes.
    pub fn alloc_in<T: Pod>(&self, space: Space, len: usize) -> Result<Symmetric<T>> {
        if space == Space::Device {
            return self.alloc(len);
        }
        let (op, core) = ("allocate host memory", self.core());
        core.check()?;
        core.world.of_one_process(op)?;
        let bytes = len.checked_mul(size_of::<T>()).filter(|&bytes| bytes > 0 && bytes <= isize::MAX as usize);
        let bytes = bytes.ok_or_else(|| Error::invalid(op, format!("{len} elements of {} bytes", size_of::<T>())))?;
        let (at, held) = match &core.pretend {
            Some(memory) => {
                let zeros = |_| -> Result<Memory<u8>> {
                    let mut zeros = Vec::new();
                    let full = |_| Error::invalid(op, format!("no host memory for {bytes} bytes"));
                    zeros.try_reserve_exact(bytes).map_err(full)?;
                    zeros.resize(bytes, 0);
                    Ok(Memory::Host(zeros))
                };
                sim::register(memory, &core.members, (0..self.size()).map(zeros).collect::<Result<_>>()?)?
            }
            None => cuda::host_memory(&*core.world.machine, &core.members, bytes)?,
        };
        Ok(Symmetric::new(core.world.register(bytes as u64, at, held, space)?, len))
    }
}
