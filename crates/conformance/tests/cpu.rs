//! The suite on what needs no GPU. `dual` holds what the processor does eight at a time against what any does.

use tandem_conformance::{suite, Dual};
use tandem_ops::{cpu::Cpu, DeviceKind};

suite!(cpu, DeviceKind::Cpu, Ok(Cpu::new(1)));
suite!(sim, DeviceKind::Sim, Ok(Cpu::new(4)));
suite!(dual, DeviceKind::Cpu, Ok(Dual::new(Cpu::new(1), Cpu::plain(2))));
