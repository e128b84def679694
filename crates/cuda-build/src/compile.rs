//! Compiling what changed, several files at a time.

use crate::{Arch, Toolkit};
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

/// The static library of `sources`, made in `out`.
pub(crate) fn library(
    toolkit: &Toolkit,
    name: &str,
    sources: &[PathBuf],
    includes: &[PathBuf],
    archs: &[Arch],
    out: &Path,
) -> Result<PathBuf, String> {
    let objects: Vec<Object> = sources.iter().map(|s| Object::new(toolkit, s, includes, archs, out)).collect();
    let stale: Vec<&Object> = objects.iter().filter(|object| object.is_stale()).collect();
    compile(&stale)?;

    // Made anew: an archive would keep the objects of sources that are gone.
    let archive = out.join(format!("lib{name}.a"));
    let _ = std::fs::remove_file(&archive);
    run(Command::new("ar").arg("crs").arg(&archive).args(objects.iter().map(|o| &o.object)))?;
    Ok(archive)
}

/// One source and what is made of it.
struct Object {
    source: PathBuf,
    object: PathBuf,
    /// Files that it was made of, as make's rule, written by nvcc.
    depfile: PathBuf,
    /// The command that made it; older than the object, as old as the start of the compilation.
    stamp: PathBuf,
    program: PathBuf,
    args: Vec<String>,
}

impl Object {
    fn new(toolkit: &Toolkit, source: &Path, includes: &[PathBuf], archs: &[Arch], out: &Path) -> Self {
        // Two folders may hold files of one name; the path's letters keep their objects apart.
        let mut stem = source.with_extension("");
        if let Some(position) = source.iter().position(|part| part == "native") {
            stem = stem.iter().skip(position + 1).collect();
        }
        let stem = stem.display().to_string().trim_start_matches('/').replace('/', "-");
        let at = |extension: &str| out.join(format!("{stem}.{extension}"));
        let (object, depfile, stamp) = (at("o"), at("d"), at("cmd"));
        let mut args: Vec<String> = ["-std=c++17", "-O3", "-c", "-cudart=static"].map(String::from).into();
        args.push("-Xcompiler=-fPIC,-Wall,-Wextra,-Wno-unused-parameter".into());
        args.push("-Werror=cross-execution-space-call,reorder".into());
        // Source lines for profilers; costs nothing at run time.
        args.push("-lineinfo".into());
        args.extend(includes.iter().map(|dir| format!("-I{}", dir.display())));
        args.extend(archs.iter().map(Arch::flag));
        args.extend(["-MMD".into(), "-MF".into(), depfile.display().to_string()]);
        args.extend(["-o".into(), object.display().to_string(), source.display().to_string()]);
        Object { source: source.into(), object, depfile, stamp, program: toolkit.nvcc.clone(), args }
    }

    /// What the stamp holds: a change of compiler or flags makes everything anew.
    fn command(&self) -> String {
        format!("{} {}", self.program.display(), self.args.join(" "))
    }

    fn is_stale(&self) -> bool {
        let time = |path: &Path| std::fs::metadata(path).and_then(|m| m.modified()).ok();
        let Some(made) = time(&self.stamp).filter(|_| self.object.exists()) else { return true };
        if std::fs::read_to_string(&self.stamp).ok() != Some(self.command()) {
            return true;
        }
        let Ok(rule) = std::fs::read_to_string(&self.depfile) else { return true };
        dependencies(&rule).iter().any(|file| time(Path::new(file)).is_none_or(|changed| changed >= made))
    }

    fn compile(&self) -> Result<(), String> {
        let started = self.stamp.with_extension("started");
        let io = |e: std::io::Error| format!("{}: {e}", started.display());
        let _ = std::fs::remove_file(&self.stamp);
        std::fs::write(&started, self.command()).map_err(io)?;
        run(Command::new(&self.program).args(&self.args)).map_err(|e| format!("{}: {e}", self.source.display()))?;
        std::fs::rename(&started, &self.stamp).map_err(io)
    }
}

/// The files after the colon of a make rule; a backslash before a space belongs to the name.
fn dependencies(rule: &str) -> Vec<String> {
    let rest = rule.split_once(": ").map_or("", |(_, rest)| rest).replace("\\\n", " ");
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
