//! A line for each step: its time, and the most memory that the process had during it.

use std::fs;
use std::time::Instant;

use anyhow::Result;

/// Runs a step and prints its line.
pub fn step<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    // 5 sets the peak to what is resident now (proc(5)).
    let _ = fs::write("/proc/self/clear_refs", "5");
    let start = Instant::now();
    let result = work();
    let took = start.elapsed().as_secs_f64();
    let outcome = if result.is_ok() { "" } else { "  FAILED" };
    println!("{name:<36} {took:>9.2} s {:>8} MiB{outcome}", peak_mib());
    result
}

fn peak_mib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) / 1024
}
