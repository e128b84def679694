//! How a proof is shared by several lanes.

/// How a proof is laid out over several lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// As the system finds it fastest: of Groth16 as [`Layout::Roles`], of PLONK and FFLONK as [`Layout::Split`], over as many lanes as make it
    /// faster.
    #[default]
    Auto,
    /// The first lane transforms. In Groth16 it also sums over the quotient, and the others sum over the witness: what one has left to do
    /// when the others are done is cut off and given to them, so that at most one sum is cut between two lanes. In PLONK and FFLONK all
    /// share the sums.
    Roles,
    /// Transforms are placed one a lane, of PLONK and FFLONK those of one coset, and every sum is split by points over all lanes.
    Split,
}
