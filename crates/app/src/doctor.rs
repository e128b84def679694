//! `tandem doctor`: what was built in, what was found, why a GPU is not used.

use crate::cli;
use crate::version;
use serde_json::{json, Value};
use std::path::PathBuf;
use tandem_console::failure::Outcome;
use tandem_console::report;
use tandem_console::session::Session;
use tandem_cuda::{Found, Version};

/// What there is on this machine.
struct Facts {
    built: Option<(&'static str, &'static str)>,
    versions: Option<(Option<Version>, Version)>,
    /// Or why there are none.
    gpus: Result<Vec<Found>, String>,
    /// What the program would use, and why; or why it cannot.
    device: Result<String, String>,
    why: String,
    cores: usize,
    memory: Option<(u64, u64)>,
    cache: Option<PathBuf>,
}

pub(crate) fn run(session: &Session, args: &cli::Doctor) -> Outcome {
    let gpus = tandem_cuda::probe();
    let opened = session.open();
    let (device, why) = match &opened {
        Ok(opened) => (Ok(opened.engine.report().lanes.join(", ")), opened.engine.report().why.clone()),
        Err(failure) => (Err(failure.to_string()), String::new()),
    };
    let facts = Facts {
        built: tandem_cuda::built_with(),
        versions: tandem_cuda::versions(),
        gpus,
        device,
        why,
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        memory: memory(),
        cache: tandem_engine::cache::folder(),
    };
    report::result(&if args.json.json { facts.json().to_string() } else { facts.text(session) });
    opened.map(drop)
}

impl Facts {
    fn json(&self) -> Value {
        let gpu = |gpu: &Found| {
            let p = &gpu.properties;
            json!({
                "index": gpu.index, "name": p.name, "pci": p.pci, "memory_bytes": p.memory_bytes,
                "capability": format!("{}.{}", p.capability.0, p.capability.1),
                "multiprocessors": p.multiprocessors, "refused": gpu.usable.as_ref().err(),
            })
        };
        let pair = |(major, minor): (u32, u32)| format!("{major}.{minor}");
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "commit": version::commit(),
            "nvcc": self.built.map(|b| b.0),
            "architectures": self.built.map(|b| b.1),
            "cuda_runtime": self.versions.map(|v| pair(v.1)),
            "cuda_driver": self.versions.and_then(|v| v.0).map(pair),
            "gpus": self.gpus.iter().flatten().map(gpu).collect::<Vec<_>>(),
            "no_gpu": self.gpus.as_ref().err(),
            "device": self.device.as_ref().ok(),
            "device_error": self.device.as_ref().err(),
            "why": self.why,
            "cores": self.cores,
            "memory_bytes": self.memory.map(|m| m.0),
            "memory_available_bytes": self.memory.map(|m| m.1),
            "cache_folder": self.cache.as_ref().map(|c| c.display().to_string()),
        })
    }

    fn text(&self, session: &Session) -> String {
        let mut lines = vec![row("tandem", version::text())];
        match self.built {
            Some((nvcc, archs)) => lines.push(row("CUDA", &format!("built in: nvcc {nvcc}, architectures {archs}"))),
            None => lines.push(row("CUDA", "not built in: no nvcc was found when this program was built")),
        }
        if let Some((driver, runtime)) = self.versions {
            let driver = driver.map_or("none".into(), |(a, b)| format!("for CUDA {a}.{b}"));
            lines.push(row("driver", &format!("{driver} (runtime {}.{})", runtime.0, runtime.1)));
        }
        match &self.gpus {
            Err(why) => lines.push(row("GPUs", &format!("none: {why}"))),
            Ok(gpus) => lines.extend(gpus.iter().map(|gpu| row(&format!("cuda:{}", gpu.index), &about(gpu)))),
        }
        lines.push(row("CPU", &format!("{} cores", self.cores)));
        if let Some((total, available)) = self.memory {
            lines.push(row("memory", &format!("{}, {} available", report::bytes(total), report::bytes(available))));
        }
        let cache = self.cache.as_ref().map_or("none: HOME is not set".into(), |c| c.display().to_string());
        lines.push(row("cache", &cache));
        if let Ok(device) = &self.device {
            lines.push(row(&format!("--device {}", session.device), device));
        }
        lines.join("\n")
    }
}

/// One GPU, in words.
fn about(gpu: &Found) -> String {
    let p = &gpu.properties;
    let (major, minor) = p.capability;
    let used = match &gpu.usable {
        Ok(_) => "usable".into(),
        Err(why) => format!("not used: {why}"),
    };
    format!("{}, {}, capability {major}.{minor}, {}: {used}", p.name, report::bytes(p.memory_bytes), p.pci)
}

fn row(name: &str, what: &str) -> String {
    report::row(16, name, what)
}

/// Bytes of memory that this process could have and still take, as its control groups and limits leave them.
fn memory() -> Option<(u64, u64)> {
    let memory = tandem_ops::memory::host();
    (memory.total < u64::MAX).then_some((memory.total, memory.free))
}
