//! Memory that a user gives to be registered, and where a team's memory lies.

use bytemuck::Pod;
use tandem_cuda::DeviceBuffer;

/// A user's own memory, to be registered: a buffer of a GPU, or elements for a pretend PE.
pub enum Memory<T: Pod> {
    /// On a GPU. Its pool is opened to the GPUs of the team.
    Device(DeviceBuffer<T>),
    /// For a pretend PE.
    Host(Vec<T>),
}

impl<T: Pod> Memory<T> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Memory::Device(buffer) => buffer.len(),
            Memory::Host(elements) => elements.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Pod> std::fmt::Debug for Memory<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // What is in it may be secret.
        write!(f, "{} elements of {} bytes", self.len(), size_of::<T>())
    }
}

/// Kinds of memory of a team. A user's own buffers are a third one: [`Team::register`](crate::Team::register).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// The memory of the PEs: of GPUs, their own.
    Device,
    /// Page-locked memory of the host, a part for each PE, that every GPU of the team reads and writes over PCIe; for pretend PEs ordinary
    /// memory. For what is larger than a GPU's memory, or what the host looks at. Copies, stores, signals that set a value, waits and
    /// `remote_ptr` work as elsewhere. On GPUs other atomics are refused, as PCIe does not make those of two GPUs one; kernels must not use
    /// them either. It is not in the windows ([`Symmetric::offset`](crate::Symmetric::offset) is `None`): a kernel finds it as it does
    /// registered memory.
    Host,
}
