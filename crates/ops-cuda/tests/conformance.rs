//! The conformance suite on the GPUs of this machine: by themselves, and beside the CPU at every operation; its transforms in
//! more passes than their sizes ask for, too. Where there is no GPU each test is passed over, or fails if
//! `TANDEM_REQUIRE_GPU=1`.

use tandem_conformance::{suite, Dual};
use tandem_cuda::Device;
use tandem_ops::{cpu::Cpu, DeviceKind};
use tandem_ops_cuda::Cuda;

fn opened(open: impl FnOnce(&[Device]) -> tandem_ops::Result<Cuda>) -> Result<Cuda, String> {
    let gpus = tandem_cuda::testing::gpus();
    if gpus.is_empty() {
        return Err("no usable GPU".into());
    }
    // A GPU that is there and cannot be opened is a failure, and nothing to pass over.
    Ok(open(&gpus).unwrap_or_else(|e| panic!("{e}")))
}

fn cuda() -> Result<Cuda, String> {
    opened(Cuda::open)
}

/// With transforms of so many passes wherever there are bits for them: else three are from 2^19 elements on, four from 2^28.
fn passes(least: u32) -> Result<Cuda, String> {
    opened(|gpus| Cuda::with_passes(gpus, least))
}

fn dual() -> Result<Dual<Cuda, Cpu>, String> {
    let cuda = cuda()?;
    let cpu = Cpu::new(tandem_ops::Backend::lanes(&cuda));
    Ok(Dual::new(cuda, cpu))
}

suite!(cuda, DeviceKind::Cuda, cuda());
suite!(dual_with_cpu, DeviceKind::Cuda, dual());
suite!(three_passes, DeviceKind::Cuda, passes(3), transforms);
suite!(four_passes, DeviceKind::Cuda, passes(4), transforms);
