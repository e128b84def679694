//! The conformance suite on the GPUs of this machine: by themselves, and beside the CPU at every operation. Where there
//! is no GPU each test is passed over, or fails if `TANDEM_REQUIRE_GPU=1`.

use tandem_conformance::{suite, Dual};
use tandem_ops::{cpu::Cpu, DeviceKind};
use tandem_ops_cuda::Cuda;

fn cuda() -> Result<Cuda, String> {
    let gpus = tandem_cuda::testing::gpus();
    if gpus.is_empty() {
        return Err("no usable GPU".into());
    }
    // A GPU that is there and cannot be opened is a failure, and nothing to pass over.
    Ok(Cuda::open(&gpus).unwrap_or_else(|e| panic!("{e}")))
}

fn dual() -> Result<Dual<Cuda, Cpu>, String> {
    let cuda = cuda()?;
    let cpu = Cpu::new(tandem_ops::Backend::lanes(&cuda));
    Ok(Dual::new(cuda, cpu))
}

suite!(cuda, DeviceKind::Cuda, cuda());
suite!(dual_with_cpu, DeviceKind::Cuda, dual());
