//! Which GPUs nobody uses: those may help others.

use crate::topology::Topology;
use crate::{Error, Result};
use tandem_cuda::nvml::Nvml;
use tandem_cuda::Device;

/// Whether a GPU is idle, or in words why it is not, or not known to be.
pub type Idle = std::result::Result<(), String>;

const OP: &str = "look for idle GPUs";

/// Whether these GPUs of a topology, which is that of this machine, are used by no other process: no process computes or draws on
/// them, no kernel runs, next to none of their memory is in use, and they are not divided. NVML is asked, and only now: whoever comes later
/// finds a helper at work.
///
/// # Errors
/// NVML cannot be used; a GPU that the topology does not have, or without the PCI address by which NVML knows it.
pub fn idle(topology: &Topology, gpus: &[usize]) -> Result<Vec<Idle>> {
    let all = topology.gpus();
    let pci = |&gpu: &usize| {
        let missing = || Error::invalid(OP, format!("there is no GPU {gpu} in {}", topology.name()));
        let device = &topology.devices()[*all.get(gpu).ok_or_else(missing)?];
        let unknown = || {
            let problem = format!(
                "{} of {} has no PCI address (busid), by which NVML knows a GPU; ask for a topology of this machine, or name the GPUs",
                device.name,
                topology.name()
            );
            Error::invalid(OP, problem)
        };
        device.attributes.get("busid").cloned().ok_or_else(unknown)
    };
    ask(gpus.iter().map(pci).collect::<Result<_>>()?)
}

/// Whether these GPUs are used by no other process, as [`idle`].
///
/// # Errors
/// NVML cannot be used; a device failed.
pub fn idle_devices(devices: &[Device]) -> Result<Vec<Idle>> {
    let pci = |device: &Device| Ok(device.properties()?.pci);
    ask(devices.iter().map(pci).collect::<Result<_>>()?)
}

fn ask(pci: Vec<String>) -> Result<Vec<Idle>> {
    let refused = |why| {
        let problem = format!("who uses which GPU is known to NVML alone, which cannot be used: {why}; name the GPUs");
        Error::invalid(OP, problem)
    };
    let nvml = Nvml::load().map_err(refused)?;
    let one = |pci: &String| {
        let gpu = nvml.gpu(pci).ok_or_else(|| format!("NVML knows no GPU at {pci} of this machine"))?;
        gpu.usage().idle(std::process::id())
    };
    Ok(pci.iter().map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_without_an_address_is_not_asked_for() {
        let dgx = Topology::preset("dgx1-v100").unwrap();
        let why = |gpus: &[usize]| idle(&dgx, gpus).unwrap_err().to_string();
        assert!(why(&[8]).contains("no GPU 8 in dgx1-v100"), "{}", why(&[8]));
        assert!(why(&[2]).contains("GPU2 of dgx1-v100 has no PCI address"), "{}", why(&[2]));
    }
}
