//! What a pretend PE does with steps that wait for nothing.

use super::memory::{Memory, Unmapped};
use crate::exec::protocol;
use crate::ffi;
use crate::op::Op;
use crate::word::width;

/// Operations that wait for nothing.
pub(crate) fn access<W: protocol::Word + Default + Send + Sync + 'static>(
    memory: &Memory<W>,
    op: &Op,
) -> std::result::Result<(), Unmapped> {
    match op {
        Op::Copy { to, from, bytes } | Op::HostStagedCopy { to, from, bytes, .. } => memory.copy(*to, *from, *bytes)?,
        Op::Fill { to, bytes, value } => memory.fill(*to, *bytes, *value)?,
        Op::Strided(args) => {
            for i in 0..args.count {
                let to = args.to + i * args.to_stride * args.element;
                let from = args.from + i * args.from_stride * args.element;
                memory.copy(to, from, args.element)?;
            }
        }
        Op::Store(args) => {
            let value: [u8; 16] = bytemuck::cast(args.value);
            memory.write(args.to, &value[..args.bytes as usize])?;
        }
        Op::Atomic(args) => {
            change(memory, args)?;
        }
        Op::Wait(_) | Op::Barrier | Op::Run(_) => {}
    }
    W::settle();
    Ok(())
}

/// Changes a word after everything before, and returns what it was.
pub(crate) fn change<W: protocol::Word + Default + Send + Sync + 'static>(
    memory: &Memory<W>,
    args: &ffi::tandem_fabric_atomic_args,
) -> std::result::Result<u64, Unmapped> {
    W::settle();
    let old = memory.word(args.word, args.kind)?.change(args.op, args.value, args.expected);
    if args.fetched != 0 {
        memory.write(args.fetched, &old.to_le_bytes()[..width(args.kind) as usize])?;
    }
    Ok(old)
}
