//! Places in windows, which each process has at addresses of its own.

/// Where nodes name windows to each other, at which no memory is.
const ABROAD: u64 = 1 << 63;

/// Where a process has the windows of all PEs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    /// The address of PE 0's.
    pub(crate) heap: u64,
    /// Bytes of all.
    pub(crate) bytes: u64,
}

impl Span {
    /// The same place of the windows where they begin at `to`; what is no place of theirs stays.
    pub(crate) fn moved(self, place: u64, to: u64) -> u64 {
        let offset = place.wrapping_sub(self.heap);
        if offset < self.bytes {
            to + offset
        } else {
            place
        }
    }

    /// A place as other nodes are told it.
    pub(crate) fn abroad(self, place: u64) -> u64 {
        self.moved(place, ABROAD)
    }

    /// The place here of what another node has told.
    pub(crate) fn at_home(self, place: u64) -> u64 {
        Span { heap: ABROAD, ..self }.moved(place, self.heap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Span = Span { heap: 1000, bytes: 500 };

    #[test]
    fn places_of_windows_move_and_others_stay() {
        for (place, wanted) in [(1000, 5000), (1499, 5499), (1500, 1500), (999, 999), (0, 0), (u64::MAX, u64::MAX)] {
            assert_eq!(HERE.moved(place, 5000), wanted);
            assert!(wanted == place || Span { heap: 5000, ..HERE }.moved(wanted, 1000) == place);
        }
    }

    /// A process that has the windows elsewhere finds the same place of them.
    #[test]
    fn places_come_home_from_abroad() {
        let there = Span { heap: 70_000, ..HERE };
        for (place, wanted) in [(1000, 70_000), (1499, 70_499), (1500, 1500), (0, 0)] {
            assert_eq!(there.at_home(HERE.abroad(place)), wanted);
        }
    }
}
