//! tandem-cuda
