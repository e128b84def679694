//! What `--version` says: the version, the commit where it is known, and what the program was built for.

use std::sync::OnceLock;

/// Such as `0.1.0 (abc1234def56, CUDA 13.0, sm_90)`.
pub(crate) fn text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| compose(env!("CARGO_PKG_VERSION"), commit(), tandem_cuda::built_with()))
}

/// The commit of the sources; none where they are no checkout.
pub(crate) fn commit() -> Option<&'static str> {
    Some(tandem_console::COMMIT).filter(|commit| *commit != "unknown")
}

fn compose(version: &str, commit: Option<&str>, cuda: Option<(&str, &str)>) -> String {
    let built: Vec<String> = match cuda {
        None => vec!["no CUDA".into()],
        Some((nvcc, archs)) => {
            let archs = archs.split([',', ' ', ';']).filter(|arch| !arch.is_empty()).map(|arch| format!("sm_{arch}"));
            std::iter::once(format!("CUDA {nvcc}")).chain(archs).collect()
        }
    };
    let parts: Vec<String> = commit.map(String::from).into_iter().chain(built).collect();
    format!("{version} ({})", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_said() {
        assert_eq!(compose("0.1.0", Some("abc1234"), Some(("13.0", "90"))), "0.1.0 (abc1234, CUDA 13.0, sm_90)");
        assert_eq!(
            compose("0.1.0", Some("abc1234"), Some(("13.0", "80,90"))),
            "0.1.0 (abc1234, CUDA 13.0, sm_80, sm_90)"
        );
        assert_eq!(compose("0.1.0", None, None), "0.1.0 (no CUDA)");
    }
}
