//! Whether the processor's wide registers are used.

use std::sync::OnceLock;
use tandem_field_simd::Avx512;

/// Leaves AVX-512 alone where it is `0`.
const VARIABLE: &str = "TANDEM_AVX512";

/// AVX-512 where the processor has it, unless the environment forbids it.
pub(super) fn default() -> Option<Avx512> {
    static FOUND: OnceLock<Option<Avx512>> = OnceLock::new();
    *FOUND.get_or_init(|| if std::env::var_os(VARIABLE).is_some_and(|v| v == "0") { None } else { Avx512::detect() })
}
