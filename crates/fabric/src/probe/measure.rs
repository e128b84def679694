//! What the links of this machine carry.

/// GB/s (10^9 bytes a second).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Measured {
    /// From GPU to GPU, alone; `None` on the diagonal and where there is no way.
    pub copy: Vec<Vec<Option<f64>>>,
    /// The same while the other GPU copies back: each way.
    pub both_ways: Vec<Vec<Option<f64>>>,
    /// By GPU: from page-locked host memory, and to it.
    pub host: Vec<(f64, f64)>,
    /// From host memory to all GPUs at once, in all, and back.
    pub host_all: (f64, f64),
}
