//! Made-up partitions, for measurements: keys of the sizes of Filecoin's, and what bellperson's prover would hand over.

use crate::source::Made;
use crate::system::Powers;
use crate::{key, Assignment, Density, Engine, Error, Key, Progress, Result};
use std::path::Path;
use std::sync::Arc;
use tandem_groth16::partition::{Partition, PartitionAssignment, PartitionKey};
use tandem_ops::Bls12_381;

/// A made-up key without matrices, to be loaded into any number of engines. It takes no more memory than a few points.
pub struct SyntheticPartition(Arc<PartitionKey>);

impl SyntheticPartition {
    /// Makes it, on all cores. With `waits`, its points may be left where they are until a sum takes them.
    ///
    /// # Errors
    /// [`Error::BadInput`] for sizes that no partition has; [`Error::Interrupted`]; [`Error::OutOfMemory`].
    pub fn make(partition: Partition, waits: bool, progress: &dyn Progress) -> Result<Self> {
        tandem_ops::threads::ready()?;
        let key = PartitionKey::make(partition, progress).map_err(prover)?;
        Ok(Self(Arc::new(if waits { key.waiting() } else { key })))
    }

    /// An assignment of it, drawn from `seed`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn assignment(&self, seed: u64) -> Result<SyntheticAssignment> {
        let blinding = [1, 2].map(|i| [seed.wrapping_mul(2) + i, seed, i, 0]);
        Ok(SyntheticAssignment { made: self.0.assignment(seed).map_err(prover)?, blinding })
    }
}

/// An assignment of a made-up partition, in ordinary memory, with r and s of its proof.
pub struct SyntheticAssignment {
    made: PartitionAssignment,
    blinding: [[u64; 4]; 2],
}

impl SyntheticAssignment {
    /// As bellperson's prover hands it over.
    pub fn view(&self) -> Assignment<'_> {
        let PartitionAssignment { inputs, aux, a, b, c, a_aux, b_inputs, b_aux } = &self.made;
        Assignment {
            inputs,
            aux,
            a,
            b,
            c,
            a_aux: Density { words: a_aux, bits: aux.len() },
            b_inputs: Density { words: b_inputs, bits: inputs.len() },
            b_aux: Density { words: b_aux, bits: aux.len() },
            blinding: self.blinding,
        }
    }
}

impl Engine {
    /// Loads the key of a made-up partition.
    ///
    /// # Errors
    /// It does not fit.
    pub fn load_partition(&self, of: &SyntheticPartition, progress: &dyn Progress) -> Result<Key> {
        key::load_made::<Bls12_381, Powers>(&self.loader(), Made::Partition(of.0.clone()), progress)
    }
}

fn prover(error: tandem_groth16::Error) -> Error {
    Error::prover(error, Path::new(""))
}
