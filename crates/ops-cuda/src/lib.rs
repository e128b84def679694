//! tandem-ops-cuda
