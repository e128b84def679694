//! Copies through the ring on a GPU.

use super::*;
use crate::Pool;

const SLOT: usize = 1 << 12;

/// A short upload after a long one: what the long one has left is overwritten, too. Where there is no GPU this is passed over.
#[test]
fn nothing_stays_in_slots() {
    let Some(&device) = crate::testing::gpus().first() else { return };
    let (stream, pool) = (Arc::new(Stream::new(device).unwrap()), Arc::new(Pool::new(device).unwrap()));
    let ring = Staging::new(2, SLOT, |work| work());
    let mut buffer = pool.alloc::<u8>(&stream, 2 * SLOT, true).unwrap();
    for bytes in [2 * SLOT, SLOT + 1, 3] {
        Upload::run(&[ring.upload(&mut buffer, 0, &vec![0xa5; bytes]).unwrap()]).unwrap();
    }
    stream.synchronize().unwrap();
    assert!(!ring.is_wiped());
    let left = || {
        let in_slot = |slot: &Mutex<Slot>| lock(slot).memory.as_ref().map_or(0, |m| count(m.as_slice()));
        ring.slots.iter().map(in_slot).sum::<usize>()
    };
    assert_eq!(left(), 2 * SLOT, "every slot was full once");
    ring.wipe();
    assert_eq!(left(), 0);
    assert!(ring.is_wiped());
}

/// Bytes that are made where they are asked for, but for one.
struct Made {
    len: usize,
    lead: usize,
    lost: usize,
}

impl Pieces for Made {
    fn len(&self) -> usize {
        self.len
    }
    fn lead(&self) -> usize {
        self.lead
    }
    fn fill(&self, at: usize, into: &mut [u8]) -> bool {
        let ends_well = (self.lead + at + into.len()).is_multiple_of(SLOT) || at + into.len() == self.len;
        assert!(ends_well && into.len() <= SLOT, "{} bytes at {at}", into.len());
        (at..).zip(&mut *into).for_each(|(i, byte)| *byte = (i % 251) as u8);
        !(at..at + into.len()).contains(&self.lost)
    }
}

/// Pieces arrive in their places, rounds of the ring later too; one that does not come is an error, and the ring serves on. Where there is
/// no GPU this is passed over.
#[test]
fn pieces_arrive_or_are_missed() {
    let Some(&device) = crate::testing::gpus().first() else { return };
    let (stream, pool) = (Arc::new(Stream::new(device).unwrap()), Arc::new(Pool::new(device).unwrap()));
    let three: Workers = |work| std::thread::scope(|scope| (0..3).for_each(|_| _ = scope.spawn(work)));
    let (ring, downloads) = (Staging::new(3, SLOT, three), Downloads::default());
    for (len, lead) in [(0, 0), (1, 0), (SLOT, 0), (SLOT, 1), (10 * SLOT, SLOT - 1), (10 * SLOT + 7, 5), (9, SLOT + 3)]
    {
        let mut buffer = pool.alloc::<u8>(&stream, len, true).unwrap();
        for lost in [0, len / 2, len.saturating_sub(1), len] {
            let made = Made { len, lead, lost };
            let upload = [ring.upload_pieces(&mut buffer, 0, &made).unwrap()];
            assert_eq!(Upload::run(&upload).is_ok(), lost >= len, "{lost} of {len} from {lead} on");
        }
        let expected: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
        assert!(downloads.start(&buffer).unwrap().wait().unwrap() == expected, "{len} bytes from {lead} on");
    }
}

fn count(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte != 0).count()
}
