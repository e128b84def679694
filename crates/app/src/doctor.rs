//! `tandem doctor`: what was built in, what was found, why a GPU is not used.

use crate::cli;
use crate::version;
use serde_json::{json, Value};
use tandem_console::failure::Outcome;
use tandem_console::report;
use tandem_console::session::Session;

pub(crate) fn run(session: &Session, args: &cli::Doctor) -> Outcome {
    let built = tandem_cuda::built_with();
    let versions = tandem_cuda::versions();
    let found = tandem_cuda::probe();
    let opened = session.open();
    let (device, why) = match &opened {
        Ok(opened) => (Ok(opened.engine.report().lanes.join(", ")), opened.engine.report().why.clone()),
        Err(failure) => (Err(failure.to_string()), String::new()),
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = memory();
    let cache = tandem_engine::cache::folder();

    if args.json.json {
        let gpus: Value = match &found {
            Ok(gpus) => gpus
                .iter()
                .map(|gpu| {
                    let p = &gpu.properties;
                    json!({
                        "index": gpu.index, "name": p.name, "pci": p.pci, "memory_bytes": p.memory_bytes,
                        "capability": format!("{}.{}", p.capability.0, p.capability.1),
                        "multiprocessors": p.multiprocessors, "refused": gpu.usable.as_ref().err(),
                    })
                })
                .collect(),
            Err(_) => json!([]),
        };
        let pair = |(major, minor): (u32, u32)| format!("{major}.{minor}");
        report::result(
            &json!({
                "version": env!("CARGO_PKG_VERSION"),
                "commit": version::commit(),
                "nvcc": built.map(|b| b.0),
                "architectures": built.map(|b| b.1),
                "cuda_runtime": versions.map(|v| pair(v.1)),
                "cuda_driver": versions.and_then(|v| v.0).map(pair),
                "gpus": gpus,
                "no_gpu": found.as_ref().err(),
                "device": device.as_ref().ok(),
                "device_error": device.as_ref().err(),
                "why": why,
                "cores": cores,
                "memory_bytes": memory.map(|m| m.0),
                "memory_available_bytes": memory.map(|m| m.1),
                "cache_folder": cache.as_ref().map(|c| c.display().to_string()),
            })
            .to_string(),
        );
        return opened.map(drop);
    }

    let mut lines = vec![row("tandem", version::text())];
    match built {
        Some((nvcc, archs)) => lines.push(row("CUDA", &format!("built in: nvcc {nvcc}, architectures {archs}"))),
        None => lines.push(row("CUDA", "not built in: no nvcc was found when this program was built")),
    }
    if let Some((driver, runtime)) = versions {
        let driver = driver.map_or("none".into(), |(a, b)| format!("for CUDA {a}.{b}"));
        lines.push(row("driver", &format!("{driver} (runtime {}.{})", runtime.0, runtime.1)));
    }
    match &found {
        Err(why) => lines.push(row("GPUs", &format!("none: {why}"))),
        Ok(gpus) => {
            for gpu in gpus {
                let p = &gpu.properties;
                let (major, minor) = p.capability;
                let memory = report::bytes(p.memory_bytes);
                let used = match &gpu.usable {
                    Ok(_) => "usable".into(),
                    Err(why) => format!("not used: {why}"),
                };
                let what = format!("{}, {memory}, capability {major}.{minor}, {}: {used}", p.name, p.pci);
                lines.push(row(&format!("cuda:{}", gpu.index), &what));
            }
        }
    }
    lines.push(row("CPU", &format!("{cores} cores")));
    if let Some((total, available)) = memory {
        lines.push(row("memory", &format!("{}, {} available", report::bytes(total), report::bytes(available))));
    }
    lines.push(row("cache", &cache.map_or("none: HOME is not set".into(), |c| c.display().to_string())));
    if let Ok(device) = &device {
        lines.push(row(&format!("--device {}", session.device), device));
    }
    report::result(&lines.join("\n"));
    opened.map(drop)
}

fn row(name: &str, what: &str) -> String {
    report::row(16, name, what)
}

/// Bytes of memory that this process could have and still take, as its control groups and limits leave them.
fn memory() -> Option<(u64, u64)> {
    let memory = tandem_ops::memory::host();
    (memory.total < u64::MAX).then_some((memory.total, memory.free))
}
