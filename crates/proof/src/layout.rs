//! How a proof is shared by several lanes.

use crate::{Error, Result};

/// How a proof is laid out over several lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// As the system finds it fastest: of Groth16 as [`Layout::Roles`], of PLONK and FFLONK as [`Layout::Split`], over as many lanes as make it
    /// faster.
    #[default]
    Auto,
    /// The first lane transforms, or of many each of the first three. In Groth16 these also sum over the quotient, and the others sum over the
    /// witness: what one has left to do when the others are done is cut off and given to them, so that at most one sum is cut between two lanes.
    /// In PLONK and FFLONK all share the sums.
    Roles,
    /// Transforms are placed one a lane, of PLONK and FFLONK those of one coset, and every sum is split by points over all lanes.
    Split,
    /// Groth16 over two lanes, word for word as a text on NVLink has it: the first has witness and matrices and makes the quotient, the second
    /// has all points, and each reads what it lacks in the other's memory. For comparison.
    Blueprint,
}

impl Layout {
    /// How many lanes it is for, where not for any number.
    pub fn lanes(self) -> Option<usize> {
        (self == Layout::Blueprint).then_some(2)
    }

    /// Fails where it is a layout of Groth16 alone, for a key of `system`.
    ///
    /// # Errors
    /// [`Error::Key`].
    pub fn check_any_system(self, system: &str) -> Result<()> {
        match self {
            Layout::Blueprint => Err(Error::Key(format!(
                "the schedule blueprint is for Groth16 keys with matrices (.zkey); this one is of {system}"
            ))),
            Layout::Auto | Layout::Roles | Layout::Split => Ok(()),
        }
    }
}
