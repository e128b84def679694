//! The largest of everything that has a size. Whatever is larger is refused before memory is taken for it.
//!
//! Counts inside files are mostly bounded by the files themselves: a count is compared with the bytes of its section
//! before anything is allocated. The numbers below bound what a file's own length does not.

use tandem_ops::CurveId;

/// Sections of one binary file. snarkjs writes at most 18 (fflonk); other tools may add a few.
pub const SECTIONS_MAX: u32 = 64;

/// Bytes of one JSON file: enough for the verification key of a hundred thousand public inputs.
pub const JSON_BYTES_MAX: u64 = 32 << 20;

/// Characters of one number in a JSON file. The largest coordinate has 115 decimal digits.
pub const JSON_NUMBER_MAX: usize = 160;

/// Bytes of a witness file: 2^32 - 1 values of 32 bytes and the headers.
pub const WTNS_BYTES_MAX: u64 = (1 << 37) + 4096;

/// Templates of custom gates in one r1cs.
pub const CUSTOM_GATES_MAX: u32 = 1 << 16;

/// Bytes of the name of a custom gate.
pub const CUSTOM_GATE_NAME_MAX: usize = 4096;

/// Bytes of a line of a symbol file, its end included.
pub const SYM_LINE_MAX: usize = 1 << 16;

/// Names of signals that are taken from a symbol file.
pub const SIGNALS_MAX: usize = 1 << 16;

/// Contributions to one key.
pub const CONTRIBUTIONS_MAX: u32 = 1 << 16;

/// Bytes of the section that lists them: as many with the largest points and parameters.
pub const CONTRIBUTIONS_BYTES_MAX: usize = 68 + (CONTRIBUTIONS_MAX as usize) * (3 * 96 + 192 + 64 + 8 + 516);

/// Bytes of a section that are looked at before memory is taken for all of it; no header has more.
pub const HEAD_BYTES: usize = 1 << 12;

/// Largest power of two that divides r - 1: a domain of 2^28 (BN254) or 2^32 (BLS12-381) has its root of unity. A file
/// holds the domain's size in 32 bits, so no file reaches the latter.
pub const fn two_adicity(curve: CurveId) -> u32 {
    match curve {
        CurveId::Bn254 => 28,
        CurveId::Bls12_381 => 32,
    }
}

/// Smallest domain that snarkjs makes.
pub const DOMAIN_MIN: u32 = 2;

/// Binary logarithm of the largest domain of bellperson's keys: its coset lies among the roots of unity of the domain of twice its size,
/// which BLS12-381 has up to 2^32.
pub const PARAMS_DOMAIN_LOG_MAX: u32 = 31;
