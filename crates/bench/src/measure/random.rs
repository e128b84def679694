//! Bytes that look random, the same each time, made by all processors.

use rayon::prelude::*;

/// Fills `to`. `finish` may change what was drawn, in pieces of a multiple of 64 bytes but for the last.
pub(crate) fn fill(to: &mut [u8], finish: impl Fn(&mut [u8]) + Sync) {
    let share = to.len().div_ceil(rayon::current_num_threads()).max(1).next_multiple_of(64);
    to.par_chunks_mut(share).enumerate().for_each(|(i, part)| {
        let mut stream = blake3::Hasher::new_derive_key("tandem bench elements").finalize_xof();
        stream.set_position((i * share) as u64);
        stream.fill(part);
        finish(part);
    });
}
