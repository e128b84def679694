//! Which lane does what: a pure decision, made once a key.
//!
//! The first lane has the polynomials, and the columns, the grand product, evaluations and divisions are its own: each round waits for the
//! one before it, and what they take is little beside sums and cosets. A sum can be cut between any two points. A coset needs the columns
//! and Z, five vectors of n elements that come from the first lane, and gives one back.

use crate::coset::COSETS;
use std::fmt;
use tandem_ops::Lane;
use tandem_proof::Layout;

/// Who does what in a proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Over how many lanes each sum is split by points; the first ones.
    pub sums: usize,
    /// The lane of each coset that the quotient is computed on.
    pub cosets: [Lane; COSETS],
}

impl Plan {
    /// The plan for so many `lanes`, where a sum over the powers of tau is done soonest on so many of them, `for_sum`.
    ///
    /// Where a sum is not worth sharing, no coset is, unless `layout` asks for it: both grow with the rows, and a coset's vectors have
    /// to be moved first.
    pub fn new(lanes: usize, for_sum: usize, layout: Layout) -> Self {
        let lanes = lanes.max(1);
        let sums = if layout == Layout::Split { lanes } else { for_sum.clamp(1, lanes) };
        let of_cosets = match layout {
            Layout::Auto => sums,
            Layout::Roles => 1,
            Layout::Split => lanes,
        };
        Self { sums, cosets: std::array::from_fn(|j| Lane(j % of_cosets)) }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c] = self.cosets.map(|lane| lane.0);
        write!(f, "sums over {} {}, cosets on {a}, {b}, {c}", self.sums, if self.sums == 1 { "lane" } else { "lanes" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The plan where a sum wants `for_sum` lanes.
    fn plan(lanes: usize, for_sum: usize, layout: Layout) -> (usize, [usize; COSETS]) {
        let Plan { sums, cosets } = Plan::new(lanes, for_sum, layout);
        (sums, cosets.map(|lane| lane.0))
    }

    #[test]
    fn every_layout_has_its_plan() {
        for layout in [Layout::Auto, Layout::Roles, Layout::Split] {
            assert_eq!(plan(1, 1, layout), (1, [0, 0, 0]));
            // No lane is named that there is not.
            assert_eq!(plan(0, 0, layout), (1, [0, 0, 0]));
            assert_eq!(plan(2, 9, layout).0, 2);
        }
        assert_eq!(plan(2, 2, Layout::Auto), (2, [0, 1, 0]));
        assert_eq!(plan(8, 8, Layout::Auto), (8, [0, 1, 2]));
        // What is small stays on one.
        assert_eq!(plan(8, 1, Layout::Auto), (1, [0, 0, 0]));
        assert_eq!(plan(8, 2, Layout::Auto), (2, [0, 1, 0]));
        assert_eq!(plan(8, 8, Layout::Roles), (8, [0, 0, 0]));
        assert_eq!(plan(8, 1, Layout::Roles), (1, [0, 0, 0]));
        assert_eq!(plan(4, 1, Layout::Split), (4, [0, 1, 2]));
    }

    #[test]
    fn a_plan_prints_itself() {
        assert_eq!(Plan::new(2, 2, Layout::Auto).to_string(), "sums over 2 lanes, cosets on 0, 1, 0");
        assert_eq!(Plan::new(3, 1, Layout::Auto).to_string(), "sums over 1 lane, cosets on 0, 0, 0");
    }
}
