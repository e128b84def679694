//! Functions of native code, and what stands for them in a build without it.

/// What a function returns that was not built.
#[doc(hidden)]
pub trait NotBuilt {
    /// `TANDEM_NOT_BUILT`, or a text that says so.
    fn not_built() -> Self;
}

impl NotBuilt for i32 {
    fn not_built() -> Self {
        crate::ffi::TANDEM_NOT_BUILT
    }
}

impl NotBuilt for *const core::ffi::c_char {
    fn not_built() -> Self {
        c"not built".as_ptr()
    }
}

/// Declares functions of native code. In a build without nvcc it makes functions of the same names and types that do nothing and say that they
/// were not built.
#[doc(hidden)]
#[macro_export]
macro_rules! native {
    ($($(#[$doc:meta])* pub fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $returned:ty;)*) => {
        #[cfg(tandem_nvcc)]
        unsafe extern "C" {
            $($(#[$doc])* pub fn $name($($argument: $type),*) -> $returned;)*
        }
        $(
            $(#[$doc])*
            #[cfg(not(tandem_nvcc))]
            pub unsafe extern "C" fn $name($(_: $type),*) -> $returned {
                <$returned as $crate::NotBuilt>::not_built()
            }
        )*
    };
}
