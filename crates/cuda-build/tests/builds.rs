//! What a build does about nvcc: real builds of a small package outside the checkout, where no `.cuda` is above it.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Package(PathBuf);

impl Package {
    fn new() -> Self {
        let dir = std::env::temp_dir().join(format!(
            "tandem-builds-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        let write = |path: &str, text: &str| {
            let path = dir.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let ours = env!("CARGO_MANIFEST_DIR");
        let manifest = format!(
            "[package]\nname = \"small\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[workspace]\n\
             [build-dependencies]\ntandem-cuda-build = {{ path = \"{ours}\" }}\n"
        );
        write("Cargo.toml", &manifest);
        write("build.rs", "fn main() { tandem_cuda_build::Library::new(\"small\").build(); }");
        let main = "fn main() { println!(\"{}\", if cfg!(tandem_nvcc) { \"with nvcc\" } else { \"without nvcc\" }); }";
        write("src/main.rs", main);
        write("native/src/a.cu", "extern \"C\" int a() { return 1; }");
        write("native/include/a.h", "#pragma once");
        write("old/bin/nvcc", "#!/bin/sh\necho 'Cuda compilation tools, release 12.4, V12.4.1'\n");
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(dir.join("old/bin/nvcc"), executable).unwrap();
        Package(dir)
    }

    /// Builds and runs it with these variables; whether that succeeded, and all that was printed.
    fn run(&self, variables: &[(&str, &str)]) -> (bool, String) {
        self.run_as("dev", variables)
    }

    fn run_as(&self, profile: &str, variables: &[(&str, &str)]) -> (bool, String) {
        let mut command = Command::new(env!("CARGO"));
        command
            .args(["run", "--offline", "--profile", profile])
            .current_dir(&self.0)
            .env("CARGO_TARGET_DIR", self.0.join("target"));
        for name in
            ["TANDEM_NVCC", "TANDEM_REQUIRE_NVCC", "TANDEM_CUDA_ARCHS", "TANDEM_CUDA_QUICK", "CUDA_HOME", "CUDA_PATH"]
        {
            command.env_remove(name);
        }
        let output = command.envs(variables.iter().copied()).output().unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        (output.status.success(), text.concat())
    }
}

impl Drop for Package {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn nvcc_is_optional_unless_it_is_asked_for() {
    let package = Package::new();
    let (done, text) = package.run(&[("TANDEM_NVCC", "none")]);
    assert!(done && text.contains("without nvcc") && !text.contains("warning"), "{text}");

    let (done, text) = package.run(&[("TANDEM_NVCC", "none"), ("TANDEM_REQUIRE_NVCC", "1")]);
    assert!(!done && text.contains("TANDEM_NVCC=none"), "{text}");

    let (done, text) = package.run(&[("TANDEM_NVCC", "/nowhere/nvcc")]);
    assert!(!done && text.contains("/nowhere/nvcc cannot be run") && text.contains("install-nvcc.sh"), "{text}");

    let (done, text) = package.run(&[("TANDEM_NVCC", "none"), ("TANDEM_CUDA_ARCHS", "sm_90")]);
    assert!(!done && text.contains("TANDEM_CUDA_ARCHS=sm_90: expected numbers"), "{text}");

    // An old toolkit is passed over. Whether there is another one is the machine's business; where there is none,
    // the build says why, once, and goes on.
    let old = package.0.join("old").display().to_string();
    let (done, text) = package.run(&[("CUDA_HOME", &old), ("TANDEM_CUDA_ARCHS", "90")]);
    assert!(done, "{text}");
    if text.contains("without nvcc") {
        assert_eq!(text.matches("is CUDA 12.4, too old: 12.8 or newer").count(), 1, "{text}");
        assert!(text.contains("building without CUDA, for the CPU alone"), "{text}");
    }
}

/// Debug builds define what they are told to, release builds do not; and nvcc hardly optimises where nobody will run the kernels. The
/// compiler is the host's, with nvcc's words.
#[test]
fn builds_have_their_options() {
    let package = Package::new();
    let write = |path: &str, text: &str| {
        std::fs::create_dir_all(package.0.join(path).parent().unwrap()).unwrap();
        std::fs::write(package.0.join(path), text).unwrap();
    };
    let library = "tandem_cuda_build::Library::new(\"small\").define_in_debug(\"CHECKS\")";
    write("build.rs", &format!("fn main() {{ {library}.build(); }}"));
    let source = "#ifdef CHECKS\n#error it is checked\n#endif\n#ifdef QUICK\n#error it is quick\n#endif\n";
    write("native/src/a.cu", &format!("{source}int a(void) {{ return 1; }}\n"));
    write("cuda/lib64/libcudart_static.a", "!<arch>\n");
    let script = |version: &str| {
        format!(
            "#!/bin/sh\n[ $1 = --version ] && echo 'release {version}, V{version}.1' && exit\n\
             for last; do case $last in -D*) macro=$last;; -Ofc=max) quick=-DQUICK;; esac; done\n\
             while [ $# -gt 0 ]; do case $1 in -MF) rule=$2;; -o) object=$2;; esac; shift; done\n\
             case $last in *trial.cu) exit;; esac\n\
             echo \"$object : $last\" >$rule; cc -x c $macro $quick -c -fPIC -o $object $last\n"
        )
    };
    let made = |version: &str| {
        write("cuda/bin/script", &script(version));
        let nvcc = package.0.join("cuda/bin/nvcc");
        // Written by another process: a file that this one has open for writing, or a child that another test forks, cannot be run.
        assert!(Command::new("cp").arg(package.0.join("cuda/bin/script")).arg(&nvcc).status().unwrap().success());
        std::fs::set_permissions(&nvcc, std::fs::Permissions::from_mode(0o755)).unwrap();
        nvcc.to_str().unwrap().to_string()
    };
    let nvcc = made("13.0");
    let variables = [("TANDEM_NVCC", nvcc.as_str())];
    let (done, text) = package.run_as("dev", &variables);
    assert!(!done && text.contains("it is checked") && !text.contains("it is quick"), "{text}");
    let (done, text) = package.run_as("release", &variables);
    assert!(done && text.contains("with nvcc"), "{text}");
    let quick = |value| [variables[0], ("TANDEM_CUDA_QUICK", value)];
    let (done, text) = package.run_as("release", &quick("1"));
    assert!(!done && text.contains("it is quick"), "{text}");
    let (done, text) = package.run_as("release", &quick("0"));
    assert!(done, "{text}");
    // An nvcc that may not know the option.
    made("12.8");
    let (done, text) = package.run_as("release", &quick("1"));
    assert!(done, "{text}");
}

#[test]
fn a_source_that_does_not_compile_fails_the_build() {
    let found = tandem_cuda_build::toolkit::find(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let toolkit = match found {
        Ok(toolkit) => toolkit,
        Err(reason) => {
            assert_ne!(std::env::var("TANDEM_REQUIRE_NVCC").as_deref(), Ok("1"), "{reason}");
            // As tandem-cuda's tests say it: past what libtest captures.
            let test = "builds::a_source_that_does_not_compile_fails_the_build";
            std::io::stderr().write_all(format!("skipped: {test}: no nvcc: {reason}\n").as_bytes()).unwrap();
            return;
        }
    };
    let package = Package::new();
    let nvcc = toolkit.nvcc.display().to_string();
    let variables = [("TANDEM_NVCC", nvcc.as_str()), ("TANDEM_CUDA_ARCHS", "90")];
    let (done, text) = package.run(&variables);
    assert!(done && text.contains("with nvcc"), "{text}");
    std::fs::write(package.0.join("native/src/a.cu"), "extern \"C\" int a() { return missing; }").unwrap();
    let (done, text) = package.run(&variables);
    assert!(!done && text.contains("a.cu") && text.contains("missing"), "{text}");
}
