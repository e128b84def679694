//! Which GPUs a user's choice means, and backends on them for callers who know what they compute.

use crate::{DeviceChoice, DeviceReport, Error, Result};
use tandem_ops::cpu::Cpu;
use tandem_ops::Backend;
use tandem_ops_cuda::{Cuda, Device, Found};

/// The GPUs that are taken, and why, in one sentence.
pub(crate) struct Choice {
    pub(crate) devices: Vec<Device>,
    pub(crate) why: String,
}

/// A backend.
pub enum Opened {
    /// The CPU, or pretend GPUs.
    Cpu(Cpu),
    /// GPUs.
    Cuda(Cuda),
}

impl Opened {
    /// What was opened, and `why` it was chosen.
    pub fn report(&self, why: String) -> DeviceReport {
        let info = match self {
            Opened::Cpu(cpu) => cpu.info(),
            Opened::Cuda(cuda) => cuda.info(),
        };
        DeviceReport { kind: info.kind, lanes: info.lane_names, why }
    }
}

/// The backend of `choice` with its first lanes, `most` at the most, and why it was chosen where the user left that open.
///
/// # Errors
/// As [`crate::Engine::open`].
pub fn open(choice: &DeviceChoice, most: usize) -> Result<(Opened, String)> {
    tandem_ops::threads::ready()?;
    let gpus = |wanted: &[u32]| {
        let Choice { devices, why } = choose(wanted)?;
        Ok::<_, Error>((Opened::Cuda(Cuda::open(&devices[..devices.len().min(most)])?), why))
    };
    let cpu = |lanes: usize, why| Ok((Opened::Cpu(Cpu::new(lanes.min(most))), why));
    match choice {
        DeviceChoice::Cpu => cpu(1, String::new()),
        DeviceChoice::Sim(lanes) => cpu(*lanes, String::new()),
        DeviceChoice::Cuda(wanted) => gpus(wanted).map(|(cuda, _)| (cuda, String::new())),
        DeviceChoice::Auto => gpus(&[]).or_else(|no_gpu| cpu(1, no_gpu.to_string())),
    }
}

/// The GPUs with the numbers in `wanted`, or all usable ones where it is empty.
pub(crate) fn choose(wanted: &[u32]) -> Result<Choice> {
    choose_of(tandem_ops_cuda::probe(), wanted)
}

fn choose_of(found: std::result::Result<Vec<Found>, String>, wanted: &[u32]) -> Result<Choice> {
    let found = found.map_err(Error::Device)?;
    let refused = |gpu: &Found, why: &str| format!("cuda:{} ({}) is not usable: {why}", gpu.index, gpu.properties.name);
    let mut devices = Vec::new();
    if !wanted.is_empty() {
        for &index in wanted {
            let gpu = found.iter().find(|gpu| gpu.index == index).ok_or_else(|| {
                let there: Vec<_> = found.iter().map(|gpu| format!("cuda:{}", gpu.index)).collect();
                Error::input(format!("there is no GPU cuda:{index}; there are {}", there.join(", ")))
            })?;
            devices.push(*gpu.usable.as_ref().map_err(|why| Error::Device(refused(gpu, why)))?);
        }
        return Ok(Choice { devices, why: String::new() });
    }
    let mut refusals = Vec::new();
    for gpu in &found {
        match &gpu.usable {
            Ok(device) => devices.push(*device),
            Err(why) => refusals.push(refused(gpu, why)),
        }
    }
    if devices.is_empty() {
        return Err(Error::Device(refusals.join("; ")));
    }
    let taken = match devices.len() {
        1 => "the only usable GPU".into(),
        n => format!("all {n} usable GPUs"),
    };
    let why = std::iter::once(taken).chain(refusals).collect::<Vec<_>>().join("; ");
    Ok(Choice { devices, why })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_ops_cuda::Properties;

    fn refused(index: u32) -> Found {
        let properties = Properties {
            name: "Old GPU".into(),
            pci: String::new(),
            memory_bytes: 1,
            capability: (5, 2),
            multiprocessors: 1,
            threads_per_multiprocessor: 1,
            registers_per_multiprocessor: 1,
            l2_bytes: 0,
            shared_per_multiprocessor: 0,
            shared_per_block: 0,
            copy_engines: 1,
            memory_pools: true,
        };
        Found { index, properties, usable: Err("too old".into()) }
    }

    fn message(found: std::result::Result<Vec<Found>, String>, wanted: &[u32]) -> (String, u8) {
        match choose_of(found, wanted) {
            Ok(_) => panic!("no GPU here is usable"),
            Err(error) => (error.to_string(), error.exit_status()),
        }
    }

    // Usable devices exist only where there is a GPU: the tests on one take them.
    #[test]
    fn refusals_say_why() {
        assert_eq!(message(Err("no driver".into()), &[]), ("no driver".into(), 3));
        assert_eq!(message(Err("no driver".into()), &[0]), ("no driver".into(), 3));
        let both = || Ok(vec![refused(0), refused(1)]);
        assert_eq!(message(both(), &[1]), ("cuda:1 (Old GPU) is not usable: too old".into(), 3));
        assert_eq!(message(both(), &[2]), ("there is no GPU cuda:2; there are cuda:0, cuda:1".into(), 2));
        let (text, status) = message(both(), &[]);
        assert!(text.contains("cuda:0") && text.contains("cuda:1") && status == 3, "{text}");
    }
}
