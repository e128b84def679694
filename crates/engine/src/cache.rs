//! What is remembered between runs: the contents of keys whose points have been checked.
//!
//! One empty file for each, `<folder>/checked-keys/<hash>`. Nothing breaks without it; a key is then checked again.

use std::env;
use std::fs;
use std::path::PathBuf;

/// Changes when a check asks for more than it did before: what passed an older one is checked again.
const CHECK: &str = "points 2";

/// The folder: `TANDEM_CACHE_DIR`, else `tandem` in the user's cache folder.
fn folder() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    set("TANDEM_CACHE_DIR")
        .or_else(|| set("XDG_CACHE_HOME").map(|d| d.join("tandem")))
        .or_else(|| set("HOME").map(|d| d.join(".cache/tandem")))
}

/// The content of a key, as this cache names it.
pub(crate) struct Checked(Option<PathBuf>);

impl Checked {
    pub(crate) fn of(key: &[u8]) -> Self {
        Self(folder().map(|folder| {
            let hash = blake3::Hasher::new_derive_key(CHECK).update_rayon(key).finalize();
            folder.join("checked-keys").join(hash.to_hex().as_str())
        }))
    }

    /// Whether this content has been checked.
    pub(crate) fn is_known(&self) -> bool {
        self.0.as_ref().is_some_and(|path| path.is_file())
    }

    /// Remembers that it has. A folder that cannot be written to is no error: the next run checks again.
    pub(crate) fn remember(&self) {
        if let Some(path) = &self.0 {
            if let Some(parent) = path.parent() {
                let _ = fs::create_dir_all(parent);
            }
            let _ = fs::write(path, []);
        }
    }
}
