//! GPUs of other nodes: which of their addresses a step means, and what NVSHMEM is told for it.

use crate::op::Op;
use crate::{ffi, Error, Result};

/// The windows of a team of which this process has one. Those of the others have addresses, as offsets from this one's, and no memory there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Windows {
    /// The address of PE 0's.
    pub(super) heap: u64,
    /// Bytes from one to the next.
    pub(super) window: u64,
    /// This process's PE, and how many there are.
    pub(super) own: usize,
    pub(super) pes: usize,
}

/// What is to be done at a PE of another node. Its addresses are those of the same places in this PE's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) pe: usize,
    pub(super) what: What,
    /// Where it happens, as the team names it, for what is said of it.
    pub(super) place: u64,
    pub(super) bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Put { to: u64, from: u64 },
    Get { to: u64, from: u64 },
    Store { to: u64, value: [u64; 2] },
    Signal { word: u64, value: u64, is_added: bool },
}

impl Windows {
    /// Those of `pes` PEs, with the `own`-th at `at`.
    ///
    /// # Errors
    /// The addresses of the others would not be any.
    pub(super) fn around(at: u64, window: u64, own: usize, pes: usize) -> Result<Self> {
        let heap = window.checked_mul(own as u64).and_then(|before| at.checked_sub(before));
        let end = |heap: &u64| window.checked_mul(pes as u64).and_then(|bytes| heap.checked_add(bytes)).is_some();
        let none = || {
            let problem = format!(
                "no addresses for {pes} windows of {window} bytes around {at:#x}: take smaller ones (Options::window)"
            );
            Error::invalid(super::OPEN, problem)
        };
        Ok(Windows { heap: heap.filter(end).ok_or_else(none)?, window, own, pes })
    }

    /// The address of this process's.
    pub(super) fn base(&self) -> u64 {
        self.heap + self.own as u64 * self.window
    }

    /// The PE of another node that has an address, and the same place in this one's window.
    pub(super) fn far(&self, at: u64) -> Option<(usize, u64)> {
        let offset = at.checked_sub(self.heap)?;
        let pe = usize::try_from(offset / self.window).ok().filter(|&pe| pe < self.pes && pe != self.own)?;
        Some((pe, self.base() + offset % self.window))
    }

    /// What NVSHMEM is to do of a step; `None` where the step is of this PE alone.
    ///
    /// # Errors
    /// NVSHMEM does no such thing.
    pub(super) fn step(&self, op: &Op) -> Result<Option<Step>> {
        let refused = |op: &'static str, pe: usize, why: &str| {
            Err(Error::invalid(op, format!("PE {pe} of the world is on another node, which NVSHMEM reaches: {why}")))
        };
        match *op {
            Op::Copy { to, from, bytes } | Op::HostStagedCopy { to, from, bytes, .. } => {
                Ok(match (self.far(to), self.far(from)) {
                    (Some((pe, there)), None) => {
                        Some(Step { pe, what: What::Put { to: there, from }, place: to, bytes })
                    }
                    (None, Some((pe, there))) => {
                        Some(Step { pe, what: What::Get { to, from: there }, place: from, bytes })
                    }
                    (None, None) => None,
                    (Some((pe, _)), Some(_)) => return refused("copy", pe, "one end of a copy is this process's"),
                })
            }
            Op::Store(ffi::tandem_fabric_store_args { to, value, bytes }) => Ok(self.far(to).map(|(pe, there)| Step {
                pe,
                what: What::Store { to: there, value },
                place: to,
                bytes,
            })),
            Op::Atomic(args) => {
                let Some((pe, word)) = self.far(args.word) else { return Ok(None) };
                let is_wide = [ffi::TANDEM_WORD_U64, ffi::TANDEM_WORD_I64].contains(&args.kind);
                let (value, is_added) = match args.op {
                    ffi::TANDEM_AMO_SET => (args.value, false),
                    ffi::TANDEM_AMO_ADD => (args.value, true),
                    ffi::TANDEM_AMO_INC => (1, true),
                    _ => return refused("atomic", pe, "words are set and added to, and nothing else"),
                };
                if !is_wide || args.fetched != 0 {
                    let why = "words of 64 bits are set and added to, and what they were is not told";
                    return refused("atomic", pe, why);
                }
                Ok(Some(Step { pe, what: What::Signal { word, value, is_added }, place: args.word, bytes: 8 }))
            }
            Op::Strided(args) => match self.far(args.to).or(self.far(args.from)) {
                Some((pe, _)) => {
                    let why =
                        "elements with gaps are gathered here first (put_strided to this PE), and put together then";
                    refused("strided copy", pe, why)
                }
                None => Ok(None),
            },
            Op::Fill { .. } | Op::Wait(_) | Op::Barrier | Op::Run(_) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: u64 = 1 << 20;

    /// Four PEs, of which this process has the third.
    fn windows() -> Windows {
        Windows::around(10 << 20, WINDOW, 2, 4).unwrap()
    }

    fn of(pe: u64, offset: u64) -> u64 {
        (8 << 20) + pe * WINDOW + offset
    }

    fn atomic(op: i32, kind: i32, fetched: u64) -> Op {
        let args = ffi::tandem_fabric_atomic_args { word: of(1, 64), value: 9, expected: 0, fetched, op, kind };
        Op::Atomic(args)
    }

    fn refusal(op: &Op) -> String {
        windows().step(op).unwrap_err().to_string()
    }

    #[test]
    fn an_address_is_of_one_pe() {
        let windows = windows();
        assert_eq!((windows.heap, windows.base()), (8 << 20, 10 << 20));
        for (pe, offset) in [(0, 0), (0, WINDOW - 1), (1, 5), (3, 0), (3, WINDOW - 1)] {
            assert_eq!(windows.far(of(pe, offset)), Some((pe as usize, of(2, offset))));
        }
        for near in [of(2, 0), of(2, WINDOW - 1), of(4, 0), of(0, 0) - 1, 0, u64::MAX] {
            assert_eq!(windows.far(near), None, "{near:#x}");
        }
        // The first of them would begin below 0, or the last end behind all addresses.
        for (at, own) in [(2 * WINDOW - 1, 2), (u64::MAX - 2 * WINDOW + 2, 2), (0, 1)] {
            let text = Windows::around(at, WINDOW, own, 4).unwrap_err().to_string();
            assert!(text.contains("Options::window"), "{text}");
        }
        assert!(Windows::around(1, u64::MAX, 0, 2).is_err() && Windows::around(2 * WINDOW, WINDOW, 2, 4).is_ok());
    }

    #[test]
    fn copies_are_puts_and_gets() {
        let step = |to, from| windows().step(&Op::Copy { to, from, bytes: 7 }).unwrap();
        let put = What::Put { to: of(2, 3), from: of(2, 100) };
        assert_eq!(step(of(0, 3), of(2, 100)), Some(Step { pe: 0, what: put, place: of(0, 3), bytes: 7 }));
        let get = What::Get { to: of(2, 100), from: of(2, 3) };
        assert_eq!(step(of(2, 100), of(3, 3)), Some(Step { pe: 3, what: get, place: of(3, 3), bytes: 7 }));
        assert_eq!(step(of(2, 100), of(2, 3)), None);
        let text = refusal(&Op::Copy { to: of(1, 0), from: of(3, 0), bytes: 1 });
        assert!(text.contains("PE 1") && text.contains("another node"), "{text}");
    }

    #[test]
    fn stores_and_signals_keep_their_values() {
        let store = |to| ffi::tandem_fabric_store_args { to, value: [5, 6], bytes: 12 };
        let what = What::Store { to: of(2, 8), value: [5, 6] };
        let wanted = Some(Step { pe: 1, what, place: of(1, 8), bytes: 12 });
        assert_eq!(windows().step(&Op::Store(store(of(1, 8)))).unwrap(), wanted);
        assert_eq!(windows().step(&Op::Store(store(of(2, 8)))).unwrap(), None);
        for kind in [ffi::TANDEM_WORD_U64, ffi::TANDEM_WORD_I64] {
            for (op, value, is_added) in
                [(ffi::TANDEM_AMO_SET, 9, false), (ffi::TANDEM_AMO_ADD, 9, true), (ffi::TANDEM_AMO_INC, 1, true)]
            {
                let what = What::Signal { word: of(2, 64), value, is_added };
                let wanted = Some(Step { pe: 1, what, place: of(1, 64), bytes: 8 });
                assert_eq!(windows().step(&atomic(op, kind, 0)).unwrap(), wanted);
            }
        }
    }

    #[test]
    fn what_nvshmem_does_not_do_is_refused() {
        for op in [
            ffi::TANDEM_AMO_AND,
            ffi::TANDEM_AMO_OR,
            ffi::TANDEM_AMO_XOR,
            ffi::TANDEM_AMO_COMPARE_SWAP,
            ffi::TANDEM_AMO_FETCH,
        ] {
            let text = refusal(&atomic(op, ffi::TANDEM_WORD_U64, 0));
            assert!(text.contains("PE 1") && text.contains("set and added to"), "{text}");
        }
        for (kind, fetched) in [(ffi::TANDEM_WORD_U32, 0), (ffi::TANDEM_WORD_I32, 0), (ffi::TANDEM_WORD_U64, 8)] {
            let text = refusal(&atomic(ffi::TANDEM_AMO_ADD, kind, fetched));
            assert!(text.contains("words of 64 bits") && text.contains("not told"), "{text}");
        }
        for (to, from) in [(of(0, 0), of(2, 0)), (of(2, 0), of(0, 0))] {
            let args = |to, from| ffi::tandem_fabric_strided_args {
                to,
                from,
                to_stride: 2,
                from_stride: 1,
                count: 3,
                element: 4,
            };
            let text = refusal(&Op::Strided(args(to, from)));
            assert!(text.contains("PE 0") && text.contains("gathered here first"), "{text}");
            assert_eq!(windows().step(&Op::Strided(args(of(2, 0), of(2, 64)))).unwrap(), None);
        }
    }
}
