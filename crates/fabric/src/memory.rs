//! Memory that a user gives to be registered.

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
