//! What of a device's memory a key's points may take.

use crate::Error;
use tandem_ops::Error as Fault;

/// Bytes for points and their multiples of the `free` ones of a lane, after the `working` ones that a proof itself needs. Some are kept back for
/// buckets, for what a sum keeps of its additions, and for what a runtime keeps for itself.
pub fn for_points(free: u64, working: u64) -> u64 {
    let overhead = (free / 16).max(512 << 20).min(free / 8);
    free.saturating_sub(working).saturating_sub(overhead)
}

/// A key that was refused for want of memory, by an error that names what one step of its loading asked for: says what the key and a proof `need`
/// in all, and what was `free`. Any other error stays.
pub fn whole_need(error: Error, need: u64, free: u64) -> Error {
    match error {
        Error::Backend(Fault::OutOfMemory { device, .. }) => {
            Fault::OutOfMemory { op: "load key", device, wanted: need, free }.into()
        }
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_for_points_is_what_is_left_and_never_more() {
        assert_eq!(for_points(1000, 1000), 0);
        // An eighth is kept back from little memory, a sixteenth from much.
        assert_eq!(for_points(8 << 20, 1000), (7 << 20) - 1000);
        assert_eq!(for_points(1 << 40, 1000), (1 << 40) - 1000 - (1 << 36));
        assert_eq!(for_points(u64::MAX, 8), u64::MAX - 8 - u64::MAX / 16);
        assert_eq!(for_points(7, u64::MAX), 0);
    }

    #[test]
    fn a_refused_key_says_what_it_needs() {
        let short = |op| Fault::OutOfMemory { op, device: "GPU".into(), wanted: 1, free: 2 };
        let told = whole_need(short("alloc").into(), 30, 20);
        assert!(
            matches!(told, Error::Backend(Fault::OutOfMemory { op: "load key", wanted: 30, free: 20, .. })),
            "{told}"
        );
        assert!(matches!(whole_need(Error::Interrupted, 30, 20), Error::Interrupted));
    }
}
