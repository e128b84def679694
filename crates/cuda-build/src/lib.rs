//! tandem-cuda-build
