//! Compiling what changed, several files at a time.

use crate::{Arch, Toolkit};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

/// Every `.cu` below `dir`, in the order of their names.
pub(crate) fn sources(dir: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "cu") {
                out.push(path);
            }
        }
    }
    out.sort();
    out
}

/// The static library of `sources`, made in `out`. `options` are this library's own.
pub(crate) fn library(
    toolkit: &Toolkit,
    name: &str,
    sources: &[PathBuf],
    includes: &[PathBuf],
    options: &[String],
    archs: &[Arch],
    out: &Path,
) -> Result<PathBuf, String> {
    // OUT_DIR is <target>/<profile>/build/<package>/out.
    let shared = out.ancestors().nth(4).unwrap_or(out).join("cuda").join(name);
    let objects: Vec<Object> =
        sources.iter().map(|s| Object::new(toolkit, s, includes, options, archs, &shared)).collect();
    let stale: Vec<&Object> = objects.iter().filter(|object| object.is_stale()).collect();
    compile(&stale)?;

    // Made anew: an archive would keep the objects of sources that are gone.
    let archive = out.join(format!("lib{name}.a"));
    let _ = std::fs::remove_file(&archive);
    run(Command::new("ar").arg("crs").arg(&archive).args(objects.iter().map(|o| &o.object)))?;
    Ok(archive)
}

/// Kernels take a tenth of the room in the program, and the driver unpacks what it loads; drivers of CUDA 12.4 and later can. Not
/// among the flags that an object's folder is named after: the code is the same.
const COMPRESS: &str = "-compress-mode=size";

/// One source and what is made of it.
///
/// Objects lie in a folder of the target folder that is named after the compiler and its flags, so that every
/// profile of Cargo shares them and a change of flags and back costs nothing. Files appear there by renaming: two
/// builds at a time do no harm.
struct Object {
    source: PathBuf,
    object: PathBuf,
    /// Files that it was made of, as make's rule, written by nvcc.
    depfile: PathBuf,
    /// Its time is the start of the compilation: what has changed since then is not in the object.
    stamp: PathBuf,
    program: PathBuf,
    flags: Vec<String>,
}

impl Object {
    fn new(
        toolkit: &Toolkit,
        source: &Path,
        includes: &[PathBuf],
        options: &[String],
        archs: &[Arch],
        shared: &Path,
    ) -> Self {
        let mut flags: Vec<String> = ["-std=c++17", "-O3", "-c", "-cudart=static"].map(String::from).into();
        flags.push("-Xcompiler=-fPIC,-Wall,-Wextra,-Wno-unused-parameter".into());
        flags.push("-Werror=cross-execution-space-call,reorder".into());
        // Source lines for profilers; costs nothing at run time.
        flags.push("-lineinfo".into());
        flags.extend(includes.iter().map(|dir| format!("-I{}", dir.display())));
        flags.extend_from_slice(options);
        flags.extend(archs.iter().map(Arch::flag));

        let mut hasher = DefaultHasher::new();
        (&toolkit.nvcc, toolkit.version, &flags).hash(&mut hasher);
        let folder = shared.join(format!("{:016x}", hasher.finish()));
        // Two folders may hold files of one name; the path keeps their objects apart.
        let parts: Vec<_> = source.iter().map(|part| part.to_string_lossy()).collect();
        let native = parts.iter().rposition(|part| part == "native").map_or(0, |i| i + 1);
        let at = |extension: &str| folder.join(format!("{}.{extension}", parts[native..].join("-")));
        let (object, depfile, stamp) = (at("o"), at("d"), at("stamp"));
        Object { source: source.into(), object, depfile, stamp, program: toolkit.nvcc.clone(), flags }
    }

    fn is_stale(&self) -> bool {
        let time = |path: &Path| std::fs::metadata(path).and_then(|m| m.modified()).ok();
        let Some(made) = time(&self.stamp).filter(|_| self.object.exists()) else { return true };
        let Ok(rule) = std::fs::read_to_string(&self.depfile) else { return true };
        let files = dependencies(&rule);
        files.is_empty() || files.iter().any(|file| time(Path::new(file)).is_none_or(|changed| changed >= made))
    }

    fn compile(&self) -> Result<(), String> {
        let mine = |path: &Path| PathBuf::from(format!("{}.{}", path.display(), std::process::id()));
        let io = |e: std::io::Error| format!("{}: {e}", self.object.display());
        std::fs::create_dir_all(self.object.parent().unwrap_or(Path::new("."))).map_err(io)?;
        std::fs::write(mine(&self.stamp), "").map_err(io)?;
        let mut nvcc = Command::new(&self.program);
        nvcc.args(&self.flags)
            .arg(COMPRESS)
            .arg("-MMD")
            .arg("-MF")
            .arg(mine(&self.depfile))
            .arg("-o")
            .arg(mine(&self.object));
        run(nvcc.arg(&self.source)).map_err(|e| format!("{}: {e}", self.source.display()))?;
        for path in [&self.depfile, &self.object, &self.stamp] {
            std::fs::rename(mine(path), path).map_err(io)?;
        }
        Ok(())
    }
}

/// The files after the colon of a make rule; a backslash before a space belongs to the name.
fn dependencies(rule: &str) -> Vec<String> {
    let (_, rest) = rule.split_once(" : ").or_else(|| rule.split_once(": ")).unwrap_or_default();
    let rest = rest.replace("\\\n", " ");
    let joined = rest.replace("\\ ", "\0");
    joined.split_whitespace().map(|name| name.replace('\0', " ")).collect()
}

/// Compiles with as many processes as Cargo allows jobs.
fn compile(objects: &[&Object]) -> Result<(), String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = std::env::var("NUM_JOBS").ok().and_then(|n| n.parse().ok()).unwrap_or(cores);
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, cores.max(1)).min(objects.len()) {
            scope.spawn(|| loop {
                let Some(object) = objects.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                if let Err(reason) = object.compile() {
                    failed.lock().unwrap_or_else(|e| e.into_inner()).push(reason);
                    // What is running finishes; nothing new starts.
                    next.store(objects.len(), Ordering::Relaxed);
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(|e| e.into_inner());
    if failed.is_empty() {
        Ok(())
    } else {
        Err(failed.join("\n"))
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| format!("{program} cannot be run: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Err(format!("{program} failed ({})\n{out}{err}", output.status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::time::{Duration, Instant, SystemTime};

    #[test]
    fn reads_make_rules() {
        let rule = "out/a.o : native/a.cu \\\n  include/my\\ x.h \\\n  b.h\n";
        assert_eq!(dependencies(rule), ["native/a.cu", "include/my x.h", "b.h"]);
        assert!(dependencies("").is_empty());
    }

    /// A compiler that writes one line a run, an object, and the rule that nvcc would write.
    fn fake_nvcc(dir: &Path) -> Toolkit {
        let nvcc = dir.join("nvcc");
        let script = format!(
            "#!/bin/sh\necho run >> {0}/log\nfor last; do :; done\n\
             while [ $# -gt 0 ]; do case $1 in -MF) d=$2;; -o) o=$2;; esac; shift; done\n\
             grep -q error $last && echo \"$last: broken\" >&2 && exit 1\n\
             echo \"$o : $last {0}/native/a.h\" > $d; echo object > $o\n",
            dir.display()
        );
        std::fs::write(&nvcc, script).unwrap();
        std::fs::set_permissions(&nvcc, std::fs::Permissions::from_mode(0o755)).unwrap();
        Toolkit { nvcc, lib: dir.into(), version: (13, 0) }
    }

    /// Returns once the file system gives a later time than it gave before: times move in steps of some milliseconds, and a source
    /// of the same step as its stamp counts as changed.
    fn tick(clock: &Path) {
        let now = || {
            std::fs::write(clock, "").unwrap();
            std::fs::metadata(clock).unwrap().modified().unwrap()
        };
        let (started, before) = (Instant::now(), now());
        while now() == before {
            assert!(started.elapsed() < Duration::from_secs(10), "{}: its time does not move", clock.display());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn compiles_what_changed() {
        let dir = std::env::temp_dir().join(format!("tandem-cuda-build-compile-{}", std::process::id()));
        let out = dir.join("target/debug/build/package/out");
        std::fs::create_dir_all(dir.join("native/sub")).unwrap();
        std::fs::create_dir_all(&out).unwrap();
        let past = SystemTime::now() - Duration::from_secs(60);
        let age = |path: &Path| {
            std::fs::File::options().append(true).open(path).unwrap().set_modified(past).unwrap();
        };
        for file in ["native/a.cu", "native/sub/a.cu", "native/a.h"] {
            std::fs::write(dir.join(file), "fine").unwrap();
            age(&dir.join(file));
        }
        let clock = dir.join("clock");
        let change = |file: &str, text: &str| {
            tick(&clock);
            std::fs::write(dir.join(file), text).unwrap();
            tick(&clock);
        };
        let toolkit = fake_nvcc(&dir);
        let found = sources(&dir.join("native"));
        assert_eq!(found, [dir.join("native/a.cu"), dir.join("native/sub/a.cu")]);
        let build = |archs: &str| {
            let archs = crate::arch::parse(archs).unwrap();
            let before = std::fs::read_to_string(dir.join("log")).unwrap_or_default().lines().count();
            let result = library(&toolkit, "x", &found, &[], &[], &archs, &out);
            (result, std::fs::read_to_string(dir.join("log")).unwrap().lines().count() - before)
        };

        let (archive, runs) = build("90");
        assert!(archive.unwrap().ends_with("libx.a"));
        assert_eq!(runs, 2);
        assert_eq!(build("90").1, 0, "nothing changed");
        assert_eq!(build("80").1, 2, "other flags");
        assert_eq!(build("90").1, 0, "and back");
        change("native/sub/a.cu", "changed");
        assert_eq!(build("90").1, 1, "one source changed");
        change("native/a.h", "changed");
        assert_eq!(build("90").1, 2, "a header changed");

        change("native/a.cu", "error");
        let (result, runs) = build("90");
        assert!(result.unwrap_err().contains("native/a.cu: broken"));
        assert_eq!(runs, 1);
        assert_eq!(build("90").1, 1, "a failure is not remembered as done");

        // What is not there, or empty, as a machine that went down may leave it.
        change("native/a.cu", "fine");
        assert_eq!(build("90").1, 1);
        let made = |extension: &str| {
            let folders = std::fs::read_dir(dir.join("target/cuda/x")).unwrap().map(|folder| folder.unwrap().path());
            let of = |folder: PathBuf| folder.join(format!("a.cu.{extension}"));
            folders.map(of).max_by_key(|path| std::fs::metadata(path).unwrap().modified().unwrap()).unwrap()
        };
        std::fs::remove_file(made("o")).unwrap();
        assert_eq!(build("90").1, 1, "no object");
        std::fs::write(made("d"), "").unwrap();
        assert_eq!(build("90").1, 1, "a rule without files");

        // What is gone is not in the archive, and after a failure nothing is begun.
        let members = |archive: &Path| Command::new("ar").arg("t").arg(archive).output().unwrap().stdout;
        let of = |found: &[PathBuf]| library(&toolkit, "x", found, &[], &[], &crate::arch::parse("90").unwrap(), &out);
        assert_eq!(members(&of(&found).unwrap()), b"a.cu.o\nsub-a.cu.o\n");
        assert_eq!(members(&of(&found[..1]).unwrap()), b"a.cu.o\n");
        let broken: Vec<PathBuf> = (0..64).map(|i| dir.join(format!("native/broken{i}.cu"))).collect();
        broken.iter().for_each(|source| std::fs::write(source, "error").unwrap());
        let log = || std::fs::read_to_string(dir.join("log")).unwrap().lines().count();
        let before = log();
        of(&broken).unwrap_err();
        assert!(log() - before < 64, "none was left out");
        std::fs::remove_dir_all(dir).unwrap();
    }
}
