//! tandem-groth16
