//! What is uploaded: bytes in memory, or such as are brought on their way.

/// Bytes that are brought into slots piece by piece.
#[allow(clippy::len_without_is_empty)]
pub trait Pieces: Sync {
    /// Their number.
    fn len(&self) -> usize;
    /// Bytes before the first one in its block, where the bytes come in blocks of a slot's size: pieces end where blocks do.
    fn lead(&self) -> usize {
        0
    }
    /// Fills `into` with the bytes from `at` on: whether that is done. Several threads call it at once, each for another piece.
    fn fill(&self, at: usize, into: &mut [u8]) -> bool;
}

/// What is copied.
#[derive(Clone, Copy)]
pub(crate) enum Bytes<'a> {
    Memory(&'a [u8]),
    Pieces(&'a dyn Pieces),
}

impl Bytes<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Bytes::Memory(bytes) => bytes.len(),
            Bytes::Pieces(pieces) => pieces.len(),
        }
    }

    pub(crate) fn lead(&self) -> usize {
        match self {
            Bytes::Memory(_) => 0,
            Bytes::Pieces(pieces) => pieces.lead(),
        }
    }
}

impl std::fmt::Debug for Bytes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}
