//! tandem-formats
