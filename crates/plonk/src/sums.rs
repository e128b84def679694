//! Sums over the powers of tau: whole, or piece by piece.

use crate::key::FIRST;
use crate::stay::{Cut, Stay};
use crate::{PlonkBackend, Result, P1};
use ark_ff::AdditiveGroup;
use std::collections::VecDeque;
use std::ops::Range;
use tandem_ops::timeline::UPLOADS;
use tandem_ops::{
    memory, Backend, Buffer, Curve, DealtScalars, Error as Fault, Group, HostBuf, Lane, Mont, Pending, SplitMsm,
    Stored, Timeline,
};

/// Pieces of one sum under way while the next one is enqueued.
const UNDER_WAY: usize = 2;

/// Vectors of scalars, for their sums.
pub(crate) enum DealtSums<'a, B: Backend> {
    /// On their way to the lanes that have all their points.
    AtOnce(DealtScalars<'a, B>),
    /// Where they are.
    OneByOne(Vec<&'a B::Buf<Mont>>),
}

/// Powers of tau, where they lie, for any number of sums.
pub(crate) enum Sums<C: Curve, B: PlonkBackend<C>> {
    /// On the lanes, each sum at once.
    Whole(SplitMsm<C::G1, B>),
    /// On the lanes, in pieces.
    Pieces(Vec<Piece<C, B>>),
    /// On the host.
    Coming(Coming<C>),
}

/// A piece of the powers that stays.
pub(crate) struct Piece<C: Curve, B: PlonkBackend<C>> {
    range: Range<usize>,
    powers: SplitMsm<C::G1, B>,
}

/// Powers of tau that come with each sum, piece by piece.
pub(crate) struct Coming<C: Curve> {
    powers: HostBuf<P1<C>>,
    /// How many are a piece.
    piece: usize,
    /// Bytes that a piece may take on each lane.
    rooms: Vec<u64>,
}

/// Ranges of so many, but for the last one, of all from 0 to `count`.
fn ranges(count: usize, piece: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count).step_by(piece.max(1)).map(move |start| start..count.min(start + piece))
}

impl<C: Curve, B: PlonkBackend<C>> Sums<C, B> {
    /// Puts `powers` where they stay, for so many `uses`. They may take so many bytes on each lane, `rooms`.
    ///
    /// # Errors
    /// They do not fit; they cannot be read.
    pub(crate) fn load(backend: &B, stay: Stay, rooms: &[u64], powers: Stored<'_, P1<C>>, uses: u64) -> Result<Self> {
        let Cut { piece, count, .. } = stay.cut(powers.len(), rooms.len());
        // Those that may wait lie outside memory, and are read where they are.
        if !stay.powers && !powers.may_wait() {
            let mut copy = on_host(backend, powers.len())?;
            powers.read_parallel(0, bytemuck::cast_slice_mut(&mut copy))?;
            return Ok(Sums::Coming(Coming { powers: copy, piece, rooms: rooms.to_vec() }));
        }
        if count <= 1 {
            return Ok(Sums::Whole(SplitMsm::load_within(backend, rooms, powers, uses)?));
        }
        let rooms: Vec<u64> = rooms.iter().map(|room| room / count as u64).collect();
        let of_piece = |range: Range<usize>| -> Result<Piece<C, B>> {
            let powers = SplitMsm::load_within(backend, &rooms, powers.slice(range.clone()), uses)?;
            Ok(Piece { range, powers })
        };
        Ok(Sums::Pieces(ranges(powers.len(), piece).map(of_piece).collect::<Result<_>>()?))
    }

    /// Deals vectors of scalars, of one length, to the lanes that sum them up. Scalar i of each belongs to power i.
    ///
    /// # Errors
    /// There are more scalars than powers; not enough memory; the device failed.
    pub(crate) fn deal<'a>(
        &self,
        backend: &B,
        vectors: &[&'a B::Buf<Mont>],
        timeline: &Timeline,
    ) -> tandem_ops::Result<DealtSums<'a, B>> {
        match self {
            Sums::Whole(split) => Ok(DealtSums::AtOnce(split.deal(backend, vectors, timeline)?)),
            _ => Ok(DealtSums::OneByOne(vectors.to_vec())),
        }
    }

    /// The sums of what was dealt, each within spans of its name. In pieces all but the last one of each sum is waited for.
    ///
    /// # Errors
    /// As [`Sums::deal`].
    pub(crate) fn sums_of(
        &self,
        backend: &B,
        dealt: DealtSums<'_, B>,
        names: &[&'static str],
        timeline: &Timeline,
    ) -> tandem_ops::Result<Vec<Pending<<C::G1 as Group>::Ark>>> {
        match (self, dealt) {
            (Sums::Whole(split), DealtSums::AtOnce(dealt)) => split.sums_of(backend, dealt, names, timeline),
            (_, DealtSums::OneByOne(vectors)) => {
                let named = vectors.into_iter().zip(names);
                let sum = |(vector, name): (_, &&'static str)| {
                    let span = timeline.begin(FIRST, name);
                    let sum = self.in_pieces(backend, vector, timeline);
                    timeline.end(span);
                    sum
                };
                named.map(sum).collect()
            }
            _ => Err(Fault::invalid("sum", "scalars that were dealt for another sum")),
        }
    }

    /// A sum whose pieces come one after the other.
    fn in_pieces(
        &self,
        backend: &B,
        scalars: &B::Buf<Mont>,
        timeline: &Timeline,
    ) -> tandem_ops::Result<Pending<<C::G1 as Group>::Ark>> {
        let mut sum = Adding::<C>::default();
        let mut add = |split: &SplitMsm<C::G1, B>, range: Range<usize>| {
            sum.make_room()?;
            let part = backend.copy(scalars, range, scalars.lane())?;
            sum.under_way.push_back(split.sum_of(backend, &part, timeline)?);
            Ok::<_, Fault>(())
        };
        let powers = match self {
            Sums::Whole(split) => return split.sum_of(backend, scalars, timeline),
            Sums::Pieces(pieces) => pieces.last().map_or(0, |piece| piece.range.end),
            Sums::Coming(of) => of.powers.len(),
        };
        if scalars.len() > powers {
            return Err(Fault::invalid("sum", format!("{} scalars for {powers} powers of tau", scalars.len())));
        }
        let within = |range: Range<usize>| range.start..range.end.min(scalars.len());
        match self {
            Sums::Whole(_) => {}
            Sums::Pieces(pieces) => {
                for Piece { range, powers } in pieces.iter().filter(|piece| piece.range.start < scalars.len()) {
                    add(powers, within(range.clone()))?;
                }
            }
            Sums::Coming(Coming { powers, piece, rooms }) => {
                for range in ranges(scalars.len(), *piece) {
                    let points = Stored::from(&powers[range.clone()]);
                    let lanes = (0..rooms.len()).map(Lane);
                    let spans: Vec<_> = lanes.map(|lane| timeline.begin_in(lane, UPLOADS, "upload points")).collect();
                    let split = SplitMsm::load_within(backend, rooms, points, 1)?;
                    spans.into_iter().for_each(|span| timeline.end(span));
                    add(&split, range)?;
                }
            }
        }
        sum.last()
    }
}

/// A sum whose pieces come one after the other.
struct Adding<C: Curve> {
    done: <C::G1 as Group>::Ark,
    under_way: VecDeque<Pending<<C::G1 as Group>::Ark>>,
}

impl<C: Curve> Default for Adding<C> {
    fn default() -> Self {
        Adding { done: <C::G1 as Group>::Ark::ZERO, under_way: VecDeque::new() }
    }
}

impl<C: Curve> Adding<C> {
    /// Waits until so few pieces are under way that another one may come.
    fn make_room(&mut self) -> tandem_ops::Result<()> {
        self.wait_for_all_but(UNDER_WAY - 1)
    }

    fn wait_for_all_but(&mut self, last: usize) -> tandem_ops::Result<()> {
        while self.under_way.len() > last {
            if let Some(piece) = self.under_way.pop_front() {
                self.done += piece.wait()?;
            }
        }
        Ok(())
    }

    fn last(mut self) -> tandem_ops::Result<Pending<<C::G1 as Group>::Ark>> {
        self.wait_for_all_but(1)?;
        let Adding { done, mut under_way } = self;
        Ok(match under_way.pop_front() {
            Some(last) => Pending::new(move || Ok(done + last.wait()?)),
            None => Pending::ready(done),
        })
    }
}

/// Host memory for what everyone may know and lanes take again and again: page-locked where it can be.
pub(crate) fn on_host<T: tandem_ops::Wire, B: tandem_ops::Backend>(backend: &B, len: usize) -> Result<HostBuf<T>> {
    memory::check("load key", (len as u64).saturating_mul(size_of::<T>() as u64))?;
    match backend.host_copy(len) {
        Some(memory) => Ok(memory),
        None => Ok(HostBuf::zeros(len)?),
    }
}
