//! tandem-conformance
