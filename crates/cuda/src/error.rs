//! What the CUDA runtime says.

use crate::{ffi, Device};
use std::ffi::CStr;

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{op}{} failed: {name} ({code}), {text}", self.place())]
pub struct Error {
    /// What was called.
    pub op: &'static str,
    /// On which device; `None` before there is one.
    pub device: Option<Device>,
    /// The status: above 0 a `cudaError_t`, below 0 one of ours.
    pub code: i32,
    /// Its name, such as `cudaErrorMemoryAllocation`.
    pub name: String,
    /// What it means.
    pub text: String,
}

/// Result of a call.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The error that `code` stands for.
    pub fn new(op: &'static str, device: Option<Device>, code: i32) -> Self {
        // SAFETY: both return a string that lives as long as the program, for any code.
        let (name, text) = unsafe {
            (CStr::from_ptr(ffi::tandem_cuda_error_name(code)), CStr::from_ptr(ffi::tandem_cuda_error_text(code)))
        };
        let own = |text: &CStr| text.to_string_lossy().into_owned();
        Error { op, device, code, name: own(name), text: own(text) }
    }

    /// Whether the device had too little memory.
    pub fn is_out_of_memory(&self) -> bool {
        self.code == ffi::TANDEM_CUDA_OUT_OF_MEMORY
    }

    fn place(&self) -> String {
        self.device.map_or(String::new(), |device| format!(" on {device}"))
    }
}

/// Makes a `Result` of a status.
pub(crate) fn check(op: &'static str, device: Option<Device>, code: i32) -> Result<()> {
    if code == ffi::TANDEM_OK {
        Ok(())
    } else {
        Err(Error::new(op, device, code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carries_operation_device_code_and_name() {
        assert!(check("alloc", None, 0).is_ok());
        let error = check("alloc", Some(Device::for_tests(3)), 2).unwrap_err();
        assert!(error.is_out_of_memory());
        let text = error.to_string();
        assert!(text.starts_with("alloc on cuda:3 failed: ") && text.contains("(2)"), "{text}");
        if crate::built_with().is_some() {
            assert!(text.contains("cudaErrorMemoryAllocation"), "{text}");
        } else {
            assert!(text.contains("not built"), "{text}");
        }
    }

    #[test]
    fn knows_our_own_codes() {
        for code in [ffi::TANDEM_NOT_BUILT, ffi::TANDEM_INVALID, ffi::TANDEM_SCRATCH_TOO_SMALL, i32::MIN, i32::MAX] {
            let error = Error::new("x", None, code);
            assert!(!error.name.is_empty() && !error.text.is_empty());
            if crate::built_with().is_some() && (-3..0).contains(&code) {
                assert!(error.name.starts_with("TANDEM_"), "{error}");
            }
        }
    }
}
