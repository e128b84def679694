//! Compiles the native sources of a crate with nvcc, for that crate's build script.
//!
//! [`Library::build`] finds a CUDA toolkit ([`toolkit::find`]), compiles what changed, and tells Cargo to link the
//! result with the static CUDA runtime. It sets the cfg `tandem_nvcc` when there is native code. Without a toolkit
//! it says so once and the crate is built without native code; nothing else changes for its callers.
//!
//! | variable | meaning |
//! |---|---|
//! | `TANDEM_NVCC` | the nvcc to use; `none` builds without CUDA |
//! | `CUDA_HOME`, `CUDA_PATH` | a toolkit folder |
//! | `TANDEM_CUDA_ARCHS` | GPU architectures, such as `90` or `80,90,90+ptx`, or `native` for this machine's |
//! | `TANDEM_CUDA_QUICK` | `1`: hardly optimise kernels, for builds that run none: a third of the time |
//! | `TANDEM_REQUIRE_NVCC` | `1`: fail where there is no usable nvcc |
#![forbid(unsafe_code)]

pub mod arch;
mod compile;
pub mod toolkit;

pub use arch::Arch;
pub use toolkit::Toolkit;

use std::path::{Path, PathBuf};

/// Set to 1 where kernels are compiled and not run.
const QUICK: &str = "TANDEM_CUDA_QUICK";

/// The first nvcc that is known to have levels of quick compilation. Older ones optimise.
const QUICK_SINCE: (u32, u32) = (13, 0);

/// Native code of one crate: every `.cu` below its source folder, as one static library.
pub struct Library {
    name: String,
    root: PathBuf,
    includes: Vec<PathBuf>,
    defines: Vec<String>,
    announce: bool,
}

impl Library {
    /// A library called `name` from `native/src` of the package that is being built, with its headers in
    /// `native/include`.
    pub fn new(name: &str) -> Self {
        let root = PathBuf::from(env("CARGO_MANIFEST_DIR")).join("native");
        Library { name: name.into(), includes: vec![root.join("include")], defines: Vec::new(), root, announce: true }
    }

    /// Adds a folder of headers that belongs to another crate.
    pub fn include(mut self, dir: impl Into<PathBuf>) -> Self {
        self.includes.push(dir.into());
        self
    }

    /// Defines a macro in debug builds: where Cargo's profile is `dev`, `test` or one that inherits from them.
    pub fn define_in_debug(mut self, name: &str) -> Self {
        if is_debug() {
            self.defines.push(name.into());
        }
        self
    }

    /// Says nothing where there is no toolkit, because the build script of another crate does.
    pub fn quiet(mut self) -> Self {
        self.announce = false;
        self
    }

    /// Builds the library and tells Cargo about it.
    ///
    /// # Panics
    /// The sources do not compile; or there is no usable nvcc although `TANDEM_REQUIRE_NVCC=1` or `TANDEM_NVCC` asks
    /// for it. A panic with a message is how a build script fails.
    pub fn build(self) {
        println!("cargo:rustc-check-cfg=cfg(tandem_nvcc)");
        for var in ["TANDEM_NVCC", "CUDA_HOME", "CUDA_PATH", "TANDEM_CUDA_ARCHS", QUICK, "TANDEM_REQUIRE_NVCC", "PATH"]
        {
            println!("cargo:rerun-if-env-changed={var}");
        }
        println!("cargo:rerun-if-changed=build.rs");
        println!("cargo:rerun-if-changed={}", self.root.join("src").display());
        for dir in &self.includes {
            println!("cargo:rerun-if-changed={}", dir.display());
        }
        println!("cargo:include={}", self.root.join("include").display());

        let out = PathBuf::from(env("OUT_DIR"));
        let archs = arch::from_env().unwrap_or_else(|reason| panic!("{reason}"));
        let toolkit = match toolkit::find(&out) {
            Ok(toolkit) => toolkit,
            Err(reason) => return self.without(&reason),
        };
        println!("cargo:rerun-if-changed={}", toolkit.nvcc.display());
        let sources = compile::sources(&self.root.join("src"));
        let mut options: Vec<String> = self.defines.iter().map(|name| format!("-D{name}")).collect();
        if std::env::var(QUICK).is_ok_and(|v| v == "1") && toolkit.version >= QUICK_SINCE {
            options.push("-Ofc=max".into());
        }
        let archive = compile::library(&toolkit, &self.name, &sources, &self.includes, &options, &archs, &out)
            .unwrap_or_else(|reason| panic!("{reason}"));

        println!("cargo:rustc-cfg=tandem_nvcc");
        println!("cargo:rustc-env=TANDEM_CUDA_ARCHS_BUILT={}", arch::list(&archs));
        println!("cargo:rustc-env=TANDEM_NVCC_VERSION={}", toolkit.version_text());
        println!("cargo:rustc-link-search=native={}", parent(&archive).display());
        println!("cargo:rustc-link-lib=static={}", self.name);
        println!("cargo:rustc-link-search=native={}", toolkit.lib.display());
        println!("cargo:rustc-link-lib=static=cudart_static");
        for lib in ["stdc++", "dl", "rt", "pthread"] {
            println!("cargo:rustc-link-lib=dylib={lib}");
        }
    }

    fn without(&self, reason: &toolkit::Missing) {
        if reason.asked_for || std::env::var("TANDEM_REQUIRE_NVCC").is_ok_and(|v| v == "1") {
            panic!("{reason}");
        }
        if self.announce && !reason.declined {
            println!("cargo:warning=building without CUDA, for the CPU alone: {reason}");
        }
    }
}

/// Whether this is a debug build, as Cargo tells build scripts.
fn is_debug() -> bool {
    std::env::var("PROFILE").is_ok_and(|profile| profile == "debug")
}

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: this library is for build scripts"))
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
