//! Times sppark's MSM and NTT on one GPU and prints a JSON row per measurement; see src/peer.cu, and src/small.cu for the
//! small fields' NTT.

// Linked for their native libraries.
use blst as _;
use sppark as _;

extern "C" {
    fn peer_main(log_min: i32, log_max: i32) -> i32;
}

/// Runs the peer of the curve or field whose program this is, over the sizes of the command line.
pub fn run() -> ! {
    let mut sizes = std::env::args().skip(1).map(|a| a.parse().expect("usage: sppark-CURVE [LOG_MIN [LOG_MAX]]"));
    let log_min = sizes.next().unwrap_or(18);
    let log_max = sizes.next().unwrap_or(24);
    assert!(4 <= log_min && log_min <= log_max && log_max <= 28, "sizes are powers of two from 4 to 28");
    // SAFETY: takes two plain numbers and returns a status.
    std::process::exit(unsafe { peer_main(log_min, log_max) });
}
