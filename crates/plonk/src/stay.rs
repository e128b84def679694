//! What of a key stays on the lanes: a pure decision, made once a key by what is free.
//!
//! A proof needs all of a key, but not all of it at a time. Values on the cosets are eleven vectors for each of three cosets. They follow
//! from the eight polynomials, by transforms that take a sixth of a proof's time. The polynomials and the powers of tau can lie on the
//! host; to bring them takes longer than that. A sum over a part of the powers needs digits for that part alone.

use std::fmt;

/// Pieces of a sum that have digits and powers on a lane at a time, at most: sums over three columns are under way at once, each with its last
/// piece, and one piece is added up while the next one comes.
pub(crate) const AT_ONCE: usize = 4;

/// Into how many pieces sums are cut. Each piece has buckets of its own, so that fewer are better; with no more than [`AT_ONCE`] nothing is gained.
const PIECES: [usize; 4] = [1, 8, 32, 128];
/// So many of these where values on the cosets stay: to make them takes less time than more pieces do.
const PIECES_OF_ALL: usize = 2;

/// What of a key stays on the lanes from proof to proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stay {
    /// Values on the cosets. Else each proof makes those of one coset after the other, from the polynomials.
    pub cosets: bool,
    /// The polynomials, and what follows from them at the rows. Else the polynomials lie on the host, and come when a proof needs them.
    pub polynomials: bool,
    /// The powers of tau. Else they lie on the host, and come with each sum.
    pub powers: bool,
    /// Pieces of each sum, at least one.
    pub pieces: usize,
}

impl Stay {
    /// All of it.
    pub const ALL: Stay = Stay { cosets: true, polynomials: true, powers: true, pieces: 1 };

    /// What can be done without, the fastest way first. The last one takes the least memory.
    pub fn ways() -> impl Iterator<Item = Stay> {
        let places = [(true, true, true), (false, true, true), (false, false, true), (false, false, false)];
        let of_places = |(cosets, polynomials, powers)| {
            let most = if cosets { PIECES_OF_ALL } else { PIECES.len() };
            PIECES.into_iter().take(most).map(move |pieces| Stay { cosets, polynomials, powers, pieces })
        };
        places.into_iter().flat_map(of_places)
    }

    /// How a sum over so many `powers` is cut, where each piece is split over so many lanes.
    pub(crate) fn cut(&self, powers: usize, lanes: usize) -> Cut {
        let piece = powers.div_ceil(self.pieces.max(1)).max(1);
        Cut { piece, count: powers.div_ceil(piece), of_lane: piece.div_ceil(lanes.max(1)) }
    }
}

/// Pieces of a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Powers of a piece; the last one may have fewer.
    pub(crate) piece: usize,
    /// How many there are.
    pub(crate) count: usize,
    /// Powers of a piece on one lane, at most.
    pub(crate) of_lane: usize,
}

impl Cut {
    /// How many are at work at once.
    pub(crate) fn at_once(&self) -> usize {
        self.count.min(AT_ONCE)
    }
}

impl fmt::Display for Stay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::ALL {
            return write!(f, "all of the key stays");
        }
        let place = |stays: bool, else_: &'static str| if stays { "stay" } else { else_ };
        let (cosets, pieces) = (place(self.cosets, "are made by each proof"), self.pieces);
        write!(f, "values on cosets {cosets}, polynomials {}, ", place(self.polynomials, "come from the host"))?;
        write!(f, "powers of tau {}, ", place(self.powers, "come from the host"))?;
        match pieces {
            1 => write!(f, "whole sums"),
            _ => write!(f, "sums in {pieces} pieces"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_begin_with_all_and_end_with_the_least() {
        let ways: Vec<Stay> = Stay::ways().collect();
        assert_eq!((ways.first(), ways.len()), (Some(&Stay::ALL), 14));
        let least = Stay { cosets: false, polynomials: false, powers: false, pieces: 128 };
        assert_eq!(ways.last(), Some(&least));
    }

    /// However few there are, lanes have room for all pieces, of which none is empty.
    #[test]
    fn pieces_are_all_of_a_sum() {
        for pieces in [0, 1, 8, 32, 128] {
            for lanes in [0, 1, 2, 3, 8] {
                for powers in [1, 2, 14, 96, 127, 128, 129, 1 << 20] {
                    let cut = Stay { pieces, ..Stay::ALL }.cut(powers, lanes);
                    assert!(cut.count <= pieces.max(1) && (cut.count - 1) * cut.piece < powers, "{cut:?}");
                    assert!(cut.count * cut.piece >= powers && cut.of_lane * lanes.max(1) >= cut.piece);
                    assert!((1..=AT_ONCE).contains(&cut.at_once()) && cut.at_once() <= cut.count);
                }
            }
        }
        let all = Stay::ALL.cut(100, 3);
        assert_eq!(all, Cut { piece: 100, count: 1, of_lane: 34 });
    }

    #[test]
    fn it_prints_itself() {
        assert_eq!(Stay::ALL.to_string(), "all of the key stays");
        let text = Stay { cosets: false, pieces: 8, ..Stay::ALL }.to_string();
        assert_eq!(
            text,
            "values on cosets are made by each proof, polynomials stay, powers of tau stay, sums in 8 pieces"
        );
        assert!(Stay { cosets: false, ..Stay::ALL }.to_string().ends_with("powers of tau stay, whole sums"));
    }
}
