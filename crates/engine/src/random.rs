//! Bytes that look random, the same each time, made by all processors.

/// Fills `to`. `finish` may change what was drawn, in pieces of a multiple of 64 bytes but for the last.
pub(crate) fn fill(to: &mut [u8], finish: impl Fn(&mut [u8]) + Sync) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = to.len().div_ceil(threads).max(1).next_multiple_of(64);
    std::thread::scope(|scope| {
        for (i, part) in to.chunks_mut(share).enumerate() {
            let finish = &finish;
            scope.spawn(move || {
                let mut stream = blake3::Hasher::new_derive_key("tandem bench elements").finalize_xof();
                stream.set_position((i * share) as u64);
                stream.fill(part);
                finish(part);
            });
        }
    });
}
