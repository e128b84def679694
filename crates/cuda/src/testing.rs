//! For tests that need a GPU.

use crate::{probe, Device};

/// The usable GPUs, or none on a machine without. Where `TANDEM_REQUIRE_GPU=1` says that there must be one, a machine
/// without fails the test instead of passing it over.
///
/// # Panics
/// There is no usable GPU although `TANDEM_REQUIRE_GPU=1`.
pub fn gpus() -> Vec<Device> {
    let reason = match probe() {
        Ok(found) => {
            let usable: Vec<Device> = found.iter().filter_map(|f| f.usable.clone().ok()).collect();
            if !usable.is_empty() {
                return usable;
            }
            found.iter().filter_map(|f| f.usable.clone().err()).collect::<Vec<_>>().join("; ")
        }
        Err(reason) => reason,
    };
    assert_ne!(std::env::var("TANDEM_REQUIRE_GPU").as_deref(), Ok("1"), "a GPU is required: {reason}");
    eprintln!("passed over: {reason}");
    Vec::new()
}
