//! GPU architectures to compile for.

use std::fmt;

/// Code for one architecture: machine code (`90`) or PTX that a driver compiles for what is newer (`90+ptx`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arch {
    /// Ten times the compute capability: 90 for 9.0, 120 for 12.0.
    pub number: u32,
    /// PTX instead of machine code.
    pub ptx: bool,
}

/// The oldest architecture that the sources are written for (Ampere).
pub const OLDEST: u32 = 80;

/// What a release holds: machine code of Ampere to Blackwell, and the PTX that covers the gaps (11.0) and the future.
pub const RELEASE: [Arch; 7] = [sass(80), sass(86), sass(89), sass(90), sass(100), sass(120), ptx(90)];

const fn sass(number: u32) -> Arch {
    Arch { number, ptx: false }
}

const fn ptx(number: u32) -> Arch {
    Arch { number, ptx: true }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.number, if self.ptx { "+ptx" } else { "" })
    }
}

impl Arch {
    /// The flag that makes nvcc produce it.
    pub fn flag(&self) -> String {
        let kind = if self.ptx { "compute" } else { "sm" };
        format!("-gencode=arch=compute_{0},code={kind}_{0}", self.number)
    }
}

/// The list as text, such as `80,90,90+ptx`.
pub fn list(archs: &[Arch]) -> String {
    archs.iter().map(Arch::to_string).collect::<Vec<_>>().join(",")
}

/// Reads a list such as `80,90,90+ptx`.
///
/// # Errors
/// What is wrong with it, in words.
pub fn parse(text: &str) -> Result<Vec<Arch>, String> {
    let one = |item: &str| {
        let (number, is_ptx) = match item.strip_suffix("+ptx") {
            Some(number) => (number, true),
            None => (item, false),
        };
        match number.parse() {
            Ok(number) if (OLDEST..1000).contains(&number) => Ok(Arch { number, ptx: is_ptx }),
            _ => Err(format!(
                "TANDEM_CUDA_ARCHS={text}: expected numbers from {OLDEST} on, with commas between them, such as \
                 80,90,90+ptx; found {item:?}"
            )),
        }
    };
    text.split(',').map(|item| one(item.trim())).collect()
}

/// The architectures of this machine's GPUs, as the driver tells them.
fn native() -> Result<Vec<Arch>, String> {
    let output = std::process::Command::new("nvidia-smi")
        .args(["--query-gpu=compute_cap", "--format=csv,noheader"])
        .output()
        .map_err(|e| format!("TANDEM_CUDA_ARCHS=native: nvidia-smi cannot be run: {e}"))?;
    capabilities(&String::from_utf8_lossy(&output.stdout))
}

/// The architectures of lines such as `9.0`, those that are too old left out.
fn capabilities(text: &str) -> Result<Vec<Arch>, String> {
    let mut numbers: Vec<u32> = text.lines().filter_map(|line| line.trim().replace('.', "").parse().ok()).collect();
    numbers.retain(|number| *number >= OLDEST);
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.is_empty() {
        return Err(format!("TANDEM_CUDA_ARCHS=native: nvidia-smi names no usable GPU: {:?}", text.trim()));
    }
    Ok(numbers.into_iter().map(sass).collect())
}

/// `TANDEM_CUDA_ARCHS`, of which `native` means this machine's. Where it is not set, the release list in a release build; a debug build is for tests, and
/// holds the one architecture that they run on.
///
/// # Errors
/// As [`parse`].
pub fn from_env() -> Result<Vec<Arch>, String> {
    match std::env::var("TANDEM_CUDA_ARCHS") {
        Ok(text) if text.trim() == "native" => native(),
        Ok(text) if !text.trim().is_empty() => parse(&text),
        _ if crate::is_debug() => Ok(vec![sass(90)]),
        _ => Ok(RELEASE.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        assert_eq!(parse(&list(&RELEASE)).unwrap(), RELEASE);
        assert_eq!(parse(" 90 , 120+ptx ").unwrap(), [sass(90), ptx(120)]);
    }

    #[test]
    fn refuses_nonsense() {
        for text in ["", "x", "90,,80", "70", "sm_90", "90 ptx", "99999999999"] {
            let reason = parse(text).unwrap_err();
            assert!(reason.contains("TANDEM_CUDA_ARCHS") && reason.contains("80,90,90+ptx"), "{reason}");
        }
    }

    #[test]
    fn reads_what_nvidia_smi_prints() {
        assert_eq!(capabilities("9.0\n8.6\n9.0\n7.5\n").unwrap(), [sass(86), sass(90)]);
        assert_eq!(capabilities("12.0\n").unwrap(), [sass(120)]);
        assert!(capabilities("NVIDIA-SMI has failed\n").unwrap_err().contains("has failed"));
        assert!(capabilities("7.5").is_err());
    }

    #[test]
    fn flags() {
        assert_eq!(sass(90).flag(), "-gencode=arch=compute_90,code=sm_90");
        assert_eq!(ptx(90).flag(), "-gencode=arch=compute_90,code=compute_90");
    }
}
