//! Finding a CUDA toolkit that works.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest nvcc that is used: the first that knows every architecture of the release list.
pub const OLDEST: (u32, u32) = (12, 8);

/// A usable nvcc with its static runtime library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolkit {
    /// The compiler.
    pub nvcc: PathBuf,
    /// The folder that holds `libcudart_static.a`.
    pub lib: PathBuf,
    /// Version, such as (13, 0).
    pub version: (u32, u32),
}

impl Toolkit {
    /// The version as text.
    pub fn version_text(&self) -> String {
        format!("{}.{}", self.version.0, self.version.1)
    }
}

/// Why there is no toolkit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// `TANDEM_NVCC` names a compiler that cannot be used.
    pub asked_for: bool,
    /// `TANDEM_NVCC=none`.
    pub declined: bool,
    /// What was found unusable, in words.
    pub found: Vec<String>,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.declined {
            return f.write_str("TANDEM_NVCC=none");
        }
        if self.found.is_empty() {
            f.write_str("no nvcc in $TANDEM_NVCC, $CUDA_HOME, $CUDA_PATH, $PATH, /usr/local/cuda or .cuda")?;
        } else {
            f.write_str(&self.found.join("; "))?;
        }
        f.write_str(" (scripts/install-nvcc.sh puts a CUDA compiler into this folder, without root)")
    }
}

/// Looks for a toolkit: `$TANDEM_NVCC` alone where it is set; else the first usable one of `$CUDA_HOME`, `$CUDA_PATH`,
/// `$PATH`, `/usr/local/cuda`, and `.cuda` in a folder above the package. `work` is for a trial compilation.
///
/// # Errors
/// What was found and why it cannot be used.
pub fn find(work: &Path) -> Result<Toolkit, Missing> {
    let mut missing = Missing { asked_for: false, declined: false, found: Vec::new() };
    let candidates = match std::env::var_os("TANDEM_NVCC") {
        Some(value) if value == "none" => {
            missing.declined = true;
            return Err(missing);
        }
        Some(value) if !value.is_empty() => {
            missing.asked_for = true;
            vec![PathBuf::from(value)]
        }
        _ => candidates().into_iter().filter(|nvcc| nvcc.exists()).collect(),
    };
    for nvcc in candidates {
        match check(&nvcc, work) {
            Ok(toolkit) => return Ok(toolkit),
            Err(reason) => missing.found.push(reason),
        }
    }
    Err(missing)
}

fn candidates() -> Vec<PathBuf> {
    let mut out = Vec::new();
    for var in ["CUDA_HOME", "CUDA_PATH"] {
        if let Some(dir) = std::env::var_os(var).filter(|dir| !dir.is_empty()) {
            out.push(PathBuf::from(dir).join("bin/nvcc"));
        }
    }
    if let Some(path) = std::env::var_os("PATH") {
        out.extend(std::env::split_paths(&path).map(|dir| dir.join("nvcc")));
    }
    out.push("/usr/local/cuda/bin/nvcc".into());
    if let Some(package) = std::env::var_os("CARGO_MANIFEST_DIR") {
        out.extend(Path::new(&package).ancestors().map(|dir| dir.join(".cuda/nvidia/cu13/bin/nvcc")));
    }
    out
}

/// Checks version, runtime library and, by a trial compilation, the host compiler.
fn check(nvcc: &Path, work: &Path) -> Result<Toolkit, String> {
    let name = nvcc.display();
    let output = Command::new(nvcc).arg("--version").output().map_err(|e| format!("{name} cannot be run: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = version(&text)
        .filter(|_| output.status.success())
        .ok_or_else(|| format!("{name} is broken: --version gave no version ({})", output.status))?;
    if version < OLDEST {
        return Err(format!(
            "{name} is CUDA {}.{}, too old: {}.{} or newer is needed",
            version.0, version.1, OLDEST.0, OLDEST.1
        ));
    }
    // A distribution may put a link to nvcc on the PATH; the libraries are beside the real one.
    let real = nvcc.canonicalize().unwrap_or_else(|_| nvcc.to_path_buf());
    let lib = [nvcc, real.as_path()]
        .iter()
        .filter_map(|nvcc| nvcc.parent()?.parent())
        .flat_map(|root| ["lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"].map(|d| root.join(d)))
        .chain(["/usr/lib/x86_64-linux-gnu".into(), "/usr/lib/aarch64-linux-gnu".into()])
        .find(|dir| dir.join("libcudart_static.a").exists())
        .ok_or_else(|| format!("{name} has no libcudart_static.a beside it"))?;
    let toolkit = Toolkit { nvcc: nvcc.to_path_buf(), lib, version };
    trial(&toolkit, work)?;
    Ok(toolkit)
}

/// Compiles one empty kernel. The result is remembered for this nvcc.
fn trial(toolkit: &Toolkit, work: &Path) -> Result<(), String> {
    let stamp = work.join("nvcc-works");
    let key = format!("{} {}", toolkit.nvcc.display(), toolkit.version_text());
    if std::fs::read_to_string(&stamp).is_ok_and(|known| known == key) {
        return Ok(());
    }
    let source = work.join("nvcc-trial.cu");
    let fail = |e: String| format!("{} is broken: {e}", toolkit.nvcc.display());
    std::fs::write(&source, "#include <cstdint>\n__global__ void k(uint32_t* p) { p[threadIdx.x] = 1; }\n")
        .map_err(|e| fail(format!("{}: {e}", source.display())))?;
    let output = Command::new(&toolkit.nvcc)
        .args(["-std=c++17", "-arch=sm_80", "-c", "-o"])
        .arg(work.join("nvcc-trial.o"))
        .arg(&source)
        .output()
        .map_err(|e| fail(e.to_string()))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("no message");
        return Err(fail(format!("it does not compile an empty kernel: {line}")));
    }
    std::fs::write(&stamp, key).map_err(|e| fail(format!("{}: {e}", stamp.display())))
}

/// The version in the output of `nvcc --version`: `Cuda compilation tools, release 13.0, V13.0.88`.
fn version(text: &str) -> Option<(u32, u32)> {
    let rest = text.split("release ").nth(1)?;
    let (major, rest) = rest.split_once('.')?;
    let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn folder(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("tandem-cuda-build-{name}-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("bin")).unwrap();
        dir
    }

    fn fake(dir: &Path, script: &str) -> PathBuf {
        let (nvcc, text) = (dir.join("bin/nvcc"), dir.join("script"));
        std::fs::write(&text, format!("#!/bin/sh\n{script}\n")).unwrap();
        // Written by another process: a file that this one has open for writing, or a child that another test forks
        // meanwhile, cannot be run.
        assert!(Command::new("cp").args([&text, &nvcc]).status().unwrap().success());
        std::fs::set_permissions(&nvcc, std::fs::Permissions::from_mode(0o755)).unwrap();
        nvcc
    }

    #[test]
    fn missing_says_where_it_looked_and_what_to_do() {
        let mut missing = Missing { asked_for: false, declined: false, found: Vec::new() };
        for part in ["$CUDA_HOME", "$PATH", ".cuda", "scripts/install-nvcc.sh"] {
            assert!(missing.to_string().contains(part), "{missing}");
        }
        missing.found = vec!["/a/nvcc is broken".into(), "/b/nvcc is too old".into()];
        let text = missing.to_string();
        assert!(text.starts_with("/a/nvcc is broken; /b/nvcc is too old (scripts"), "{text}");
        missing.declined = true;
        assert_eq!(missing.to_string(), "TANDEM_NVCC=none");
    }

    #[test]
    fn reads_the_version() {
        assert_eq!(version("Cuda compilation tools, release 13.0, V13.0.88\nBuild x"), Some((13, 0)));
        assert_eq!(version("Cuda compilation tools, release 12.8, V12.8.1"), Some((12, 8)));
        assert_eq!(version("gcc 12"), None);
        assert_eq!(version("release thirteen.0"), None);
    }

    #[test]
    fn says_what_is_wrong_with_a_toolkit() {
        let dir = folder("bad");
        let cases = [
            ("echo 'release 12.4, V12.4.1'", "too old: 12.8 or newer"),
            ("exit 1", "is broken: --version gave no version"),
            ("echo 'release 13.0, V13.0.88'; exit 1", "is broken: --version gave no version"),
            ("echo 'release 13.0, V13.0.88'", "no libcudart_static.a"),
        ];
        for (script, expected) in cases {
            let reason = check(&fake(&dir, script), &dir).unwrap_err();
            assert!(reason.contains(expected), "{reason}");
        }
        std::fs::create_dir_all(dir.join("lib64")).unwrap();
        std::fs::write(dir.join("lib64/libcudart_static.a"), "").unwrap();
        let script = "[ $1 = --version ] && echo 'release 13.0, V13.0.88' && exit\necho 'no host compiler' >&2; exit 1";
        let reason = check(&fake(&dir, script), &dir).unwrap_err();
        assert!(reason.contains("empty kernel: no host compiler"), "{reason}");
        let reason = check(&dir.join("absent"), &dir).unwrap_err();
        assert!(reason.contains("cannot be run"), "{reason}");
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn remembers_that_a_toolkit_works() {
        let dir = folder("good");
        std::fs::create_dir_all(dir.join("lib")).unwrap();
        std::fs::write(dir.join("lib/libcudart_static.a"), "").unwrap();
        let log = dir.join("log");
        let nvcc = fake(&dir, &format!("[ $1 = --version ] && echo 'release 13.1' || echo ran >> {}", log.display()));
        for _ in 0..2 {
            let toolkit = check(&nvcc, &dir).unwrap();
            assert_eq!((toolkit.version, toolkit.lib), ((13, 1), dir.join("lib")));
        }
        assert_eq!(std::fs::read_to_string(log).unwrap(), "ran\n");
        std::fs::remove_dir_all(dir).unwrap();
    }
}
