//! Wires that the host reads, against the module's own code.

use super::recognise::Parts;
use super::tests::{names, MODULES};
use super::*;
use crate::machine::{Machine, Mode};
use crate::Limits;

/// What the host reads without a call is what the module's `getWitness` reads, and a change of any byte of it makes it other code, or other
/// addresses.
#[test]
fn wires_are_read_as_the_module_reads_them() {
    let wires = |wasm: &[u8], mode| -> Result<Vec<Result<[u32; 8], String>>, String> {
        let limits = Limits { steps: 1 << 20, memory_bytes: 1 << 30, time: None };
        // Offsets in what is said of a module that is not valid are of the other code.
        let mut machine = Machine::load(wasm, mode, limits, &|| false).map_err(|_| String::new())?;
        machine.call::<i32, ()>("init", 1).map_err(|e| e.to_string())?;
        let (get, read) = (machine.export("getWitness").unwrap(), machine.export("readSharedRWMemory").unwrap());
        let numbers = (0..40).chain([1 << 14, 1 << 29, (1 << 30) - 1, 1 << 30, (1 << 31) + 3, u32::MAX as usize]);
        let read = |number| {
            let mut element = [0; 8];
            let done = machine.read_wire(get, number).and_then(|()| machine.read_shared(read, &mut element));
            done.map(|()| element).map_err(|e| e.to_string())
        };
        Ok(numbers.map(read).collect())
    };
    for wasm in MODULES {
        let (names, parts) = (names(wasm), Parts::read(wasm).unwrap());
        let range = parts.bodies[(names["getWitness"] - parts.imports) as usize].range();
        let found = |wasm: &[u8]| recognise(wasm).and_then(|native| native.wires);
        let (whole, mut moved, mut other) = (found(wasm), 0, 0);
        assert!(whole.is_some());
        for at in range {
            for bits in [0, 1, 2, 4, 8, 0x40] {
                let mut changed = wasm.to_vec();
                changed[at] ^= bits;
                match found(&changed) {
                    None => other += 1,
                    found => moved += usize::from(found != whole),
                }
                assert_eq!(wires(&changed, Mode::Native), wires(&changed, Mode::Own), "byte {at} ^ {bits}");
            }
        }
        assert!(moved > 5 && other > 50, "{moved} {other}");
    }
}
