//! The suite on what needs no GPU. `dual` holds what the processor does eight at a time against what any does.

use tandem_conformance::{copies, suite, Dual, Fault, Faulty};
use tandem_ops::{cpu::Cpu, DeviceKind};

suite!(cpu, DeviceKind::Cpu, Ok(Cpu::new(1)));
suite!(sim, DeviceKind::Sim, Ok(Cpu::new(4)));
suite!(dual, DeviceKind::Cpu, Ok(Dual::new(Cpu::new(1), Cpu::plain(2))));

#[test]
fn copies_are_counted_where_they_are_enqueued() {
    (1..=4).for_each(|lanes| copies(&Cpu::new(lanes)).unwrap());
    // A copy that stays where it was, and spans that never end.
    for (fault, part) in [(Fault::CopyLane, "a copy to another lane moves"), (Fault::Spans, "an upload moves")] {
        let told = copies(&Faulty::new(2, fault)).unwrap_err();
        assert!(told.0.starts_with(part), "{told:?}");
    }
}
