//! How a team is opened, and what that means for its world.

use crate::machine::Links;
use crate::rank::MAX_PES;
use crate::{Error, Result};
use std::time::Duration;

/// How a team is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// Bytes of addresses that are kept for the heap of each PE: the most that it can ever have. 0 is 256 GiB on GPUs and
    /// 16 GiB for pretend PEs.
    pub window: u64,
    /// Bytes that each heap gets at once; it grows when more is needed.
    pub initial: u64,
    /// A wait that takes longer ends in a [`Fault`](crate::Fault).
    pub timeout: Duration,
    /// Bytes that the heap of a PE may have, for PEs that may have less than the window.
    pub memory: Vec<(usize, u64)>,
    /// Whether kernels that are built with TANDEM_FABRIC_CHECKS are told where each allocation ends, so that they find an access
    /// past it; else they find those past the end of the heap. Costs a 64th of the heap more, and a write to each PE for every
    /// allocation. On in debug builds.
    pub checks: bool,
    /// Pairs of PEs that are treated as if the driver refused them access to each other's memory.
    pub apart: Vec<(usize, usize)>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            window: 0,
            initial: 0,
            timeout: Duration::from_secs(10),
            memory: Vec::new(),
            checks: cfg!(debug_assertions),
            apart: Vec::new(),
        }
    }
}

/// Bytes between windows, what each PE's heap may have, and what PEs cannot do.
pub(super) type Shape = (u64, Vec<u64>, Links);

pub(super) fn shape(pes: usize, options: &Options, window: u64) -> Result<Shape> {
    let op = "open a team";
    if !(1..=MAX_PES).contains(&pes) {
        return Err(Error::invalid(op, format!("{pes} PEs; a team has 1 to {MAX_PES}")));
    }
    /// 48-bit addresses, with room for other things.
    const LARGEST_WINDOW: u64 = 1 << 42;
    let window = if options.window == 0 { window } else { options.window };
    if window > LARGEST_WINDOW {
        return Err(Error::invalid(op, format!("a window of {window} bytes; the largest is {LARGEST_WINDOW}")));
    }
    let known = |pe: usize| {
        let problem = || Error::invalid(op, format!("the options name PE {pe}; the team has {pes}"));
        (pe < pes).then_some(pe).ok_or_else(problem)
    };
    // A multiple of every page size that devices have.
    let window = window.next_multiple_of(2 << 20);
    let mut caps = vec![window; pes];
    for &(pe, bytes) in &options.memory {
        caps[known(pe)?] = bytes.min(window);
    }
    let mut links = Links::all(pes);
    for &(a, b) in &options.apart {
        let (a, b) = (known(a)?, known(b)?);
        if a == b {
            return Err(Error::invalid(op, format!("PE {a} cannot be apart from itself")));
        }
        for (a, b) in [(a, b), (b, a)] {
            links.part(a, b, "the options say so".into());
        }
    }
    Ok((window, caps, links))
}

/// What is wrong with GPUs of `processes` processes on `nodes` nodes, of which this one has `gpus`, if something is.
pub(super) fn far_problem(processes: usize, nodes: usize, gpus: usize) -> Option<String> {
    let is_fine = nodes == 1 || (processes == nodes && gpus == 1);
    let problem = || {
        format!(
            "{processes} processes on {nodes} nodes, and {gpus} GPUs in this one: among GPUs of several nodes each process is a node, with one \
             GPU (tandem run --nodes N -n 1, also where several are on a host)"
        )
    };
    (!is_fine).then(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn among_nodes_a_process_is_one_with_one_gpu() {
        for (processes, nodes, gpus) in [(1, 1, 1), (4, 1, 3), (2, 2, 1), (8, 8, 1)] {
            assert_eq!(far_problem(processes, nodes, gpus), None);
        }
        for (processes, nodes, gpus) in [(4, 2, 1), (2, 2, 2), (8, 4, 2)] {
            let text = far_problem(processes, nodes, gpus).unwrap();
            let said = format!("{processes} processes on {nodes} nodes, and {gpus} GPUs");
            assert!(text.contains(&said) && text.contains("-n 1"), "{text}");
        }
    }

    #[test]
    fn a_heap_has_no_more_than_its_window() {
        let memory = vec![(1, 5 << 20), (2, u64::MAX)];
        let (window, caps, _) = shape(3, &Options { memory, ..Options::default() }, (2 << 20) + 1).unwrap();
        assert_eq!((window, caps), (4 << 20, vec![4 << 20; 3]));
        let less = Options { memory: vec![(0, 7)], ..Options::default() };
        assert_eq!(shape(2, &less, 2 << 20).unwrap().1, [7, 2 << 20]);
    }
}
