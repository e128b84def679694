//! Numbers found by measuring.

/// Multi-scalar multiplication, in mixed additions of G1. NVIDIA H200, 2026-11-21, `tandem bench msm`.
pub(crate) mod msm {
    /// An addition of G2.
    pub(crate) const G2_COST: f64 = 3.0;
    /// A bucket: two full additions on its way to the sum, and its share of what does not fill the device.
    pub(crate) const BUCKET_COST: f64 = 4.0;
    /// A digit's way from the scalar to its place.
    pub(crate) const ENTRY_COST: f64 = 0.1;
}

/// Transforms.
pub(crate) mod ntt {
    /// All tables of factors take at most this share of a GPU's memory: one 16th, so that two kinds of transforms of
    /// 2^24 elements keep theirs (1 GiB each) beside a key of that size on a GPU of 141 GB.
    pub(crate) const TABLES_SHARE: u64 = 16;
    /// One table takes at most one 4th of that. A pass without a table makes one product more an element.
    pub(crate) const TABLE_SHARE: u64 = 4;
}

/// Sparse products.
pub(crate) mod spmv {
    /// Rows of up to this many entries are done by one thread each.
    pub(crate) const THREAD_ROW: usize = 24;
    /// Longer ones of up to this many by one warp each, those above by one block each.
    pub(crate) const WARP_ROW: usize = 1024;
}
