//! For tests that need GPUs.

use crate::{probe, Device};

/// How many usable GPUs `TANDEM_REQUIRE_GPU` says that there must be; none where it is not set.
///
/// # Panics
/// It is no number.
pub fn required() -> usize {
    match std::env::var("TANDEM_REQUIRE_GPU") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("TANDEM_REQUIRE_GPU={text}: expected a number of GPUs")),
        Err(_) => 0,
    }
}

/// The usable GPUs, or none on a machine without. A machine with fewer than [`required`] fails the test instead of passing
/// it over.
///
/// # Panics
/// There are fewer usable GPUs than `TANDEM_REQUIRE_GPU` says.
pub fn gpus() -> Vec<Device> {
    let (usable, reason) = match probe() {
        Ok(found) => {
            let usable: Vec<Device> = found.iter().filter_map(|f| f.usable.clone().ok()).collect();
            (usable, found.into_iter().filter_map(|f| f.usable.err()).collect::<Vec<_>>().join("; "))
        }
        Err(reason) => (Vec::new(), reason),
    };
    let (found, required) = (usable.len(), required());
    assert!(found >= required, "{required} GPUs are required, {found} can be used: {reason}");
    if usable.is_empty() {
        eprintln!("passed over: {reason}");
    }
    usable
}
