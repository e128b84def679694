//! Figures found by measuring, on two H200 of one box (NV18, CUDA 13.0, driver 580), 2026-11-22, with `tests/exec_bench.rs`;
//! docs/adr/0221 says which of them were run together.

/// Choices that have no influence on what a collective computes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tuning {
    /// Where all GPUs reach each other, operations on so many bytes of all PEs together go as messages with flags in every word, when they are
    /// told to queues.
    pub messages: u64,
    /// Parts of up to so many bytes are exchanged without relays and rings where all GPUs reach each other: what trees save
    /// in bytes on a link they lose in waiting.
    pub direct: u64,
    /// Rows of a table that a PE does at the same time, each by one block: enough to fill a link with stores.
    pub lanes: usize,
    /// Bytes of a chunk of a fused kernel, and chunks of a ring.
    pub chunk: u64,
    /// Likewise.
    pub slots: u64,
    /// From so many bytes on copy engines do what only copies: they reach 391 GB/s each way where stores reach 365, and cost
    /// some microseconds a chunk. Sums of 1 GiB on two GPUs reached 361 GB/s with kernels of 128 lanes, 337 with 64, and 342 with
    /// copy engines.
    pub engines: u64,
    /// Bytes of a chunk for copy engines, and chunks of a ring.
    pub engine_chunk: u64,
    /// Likewise.
    pub engine_slots: u64,
    /// Up to so many bytes the resident kernel does what [`super::super::Collectives::now`] asks for: it saves a launch.
    pub resident: u64,
    /// Up to so many bytes one block of it does.
    pub resident_alone: u64,
    /// How long it stays without work.
    pub linger_ns: u64,
    /// Whether copies from one GPU also take the way through host memory.
    pub through_host: bool,
    /// Bytes of a chunk on that way: 4 MiB reached 439 GB/s with 1 GiB, 2 MiB 431, 1 MiB 371.
    pub host_chunk: u64,
    /// The share that the way through host memory gets at first, of what the plan gives it; it adapts.
    pub host_share: f64,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            messages: 128 << 10,
            direct: 1 << 20,
            lanes: 128,
            chunk: 256 << 10,
            slots: 4,
            engines: 96 << 20,
            engine_chunk: 16 << 20,
            engine_slots: 3,
            resident: 80 << 20,
            resident_alone: 16 << 10,
            linger_ns: 200_000,
            through_host: true,
            host_chunk: 4 << 20,
            host_share: 0.82,
        }
    }
}
