//! Arrays that lie on all PEs of a team.
//!
//! Kernels index them by `a[i]` from any GPU (`tandem::fabric::GlobalArray` of `tandem/fabric.cuh`); the host reads and
//! writes them, runs a kernel over each PE's own elements, and assigns one to another.

use crate::{ffi, Collectives, Error, OneSided, Queue, Result, Symmetric, Team};
use bytemuck::Pod;
use std::ops::Range;

/// Runs of fewer bytes are copied by a kernel, which reads a peer at 370 GB/s whatever their length; a copy engine reaches
/// 30 GB/s with 64 KiB, 219 with 1 MiB and 363 with 16 MiB (two H200, CUDA 13.0, `tandem bench put`).
const SHORTEST_COPY: usize = 4 << 20;
/// Runs of fewer bytes are copied over the link between two PEs alone. From here on the paths beside it bring more than it
/// costs to use them (two H200, `tandem bench p2p`: 351 GB/s with them and 389 without at 64 MiB, 412 and 396 at 256 MiB).
const SHORTEST_SEND: usize = 128 << 20;
/// Bytes that go through the host at a time where PEs do not reach each other and there are only short runs.
const HOST_PIECE: usize = 64 << 20;

/// How elements are dealt to the PEs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    /// One run of elements for each PE, all as long but for the last ones.
    Block,
    /// Element i to PE i modulo their number.
    Cyclic,
    /// Runs of so many elements, dealt in turn.
    BlockCyclic(usize),
}

/// Where the elements of an array are: blocks of `block` elements, dealt to `pes` PEs in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    len: usize,
    block: usize,
    pes: usize,
}

/// Elements that follow each other in both of two arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    to: usize,
    from_pe: usize,
    from: usize,
    len: usize,
}

impl Layout {
    /// # Errors
    /// Blocks of no elements, no PE, or more elements than can be counted.
    pub fn new(len: usize, distribution: Distribution, pes: usize) -> Result<Self> {
        let op = "lay out an array";
        if pes == 0 {
            return Err(Error::invalid(op, "there is no PE"));
        }
        let block = match distribution {
            Distribution::Block => len.div_ceil(pes).max(1),
            Distribution::Cyclic => 1,
            Distribution::BlockCyclic(0) => return Err(Error::invalid(op, "a block has at least one element")),
            Distribution::BlockCyclic(block) => block,
        };
        let layout = Layout { len, block, pes };
        let fits = block.checked_mul(pes).and_then(|round| round.checked_add(len)).is_some();
        fits.then_some(layout)
            .ok_or_else(|| Error::invalid(op, format!("{len} elements in blocks of {block} are too many")))
    }

    /// Elements of a block.
    pub fn block(&self) -> usize {
        self.block
    }

    /// Elements that every PE needs room for.
    fn room(&self) -> usize {
        self.len.div_ceil(self.block).div_ceil(self.pes) * self.block
    }

    /// The PE that has element `i`, and where among its elements.
    pub fn owner(&self, i: usize) -> (usize, usize) {
        let block = i / self.block;
        (block % self.pes, block / self.pes * self.block + i % self.block)
    }

    /// Which element `place` of PE `pe` is.
    pub fn index_of(&self, pe: usize, place: usize) -> usize {
        (place / self.block * self.pes + pe) * self.block + place % self.block
    }

    /// How many of the first `count` elements PE `pe` has.
    fn of_first(&self, count: usize, pe: usize) -> usize {
        let (blocks, rest) = (count / self.block, count % self.block);
        let (rounds, before) = (blocks / self.pes, blocks % self.pes);
        let last = match pe.cmp(&before) {
            std::cmp::Ordering::Less => self.block,
            std::cmp::Ordering::Equal => rest,
            std::cmp::Ordering::Greater => 0,
        };
        rounds * self.block + last
    }

    /// Number of elements of PE `pe`.
    pub fn local_len(&self, pe: usize) -> usize {
        self.of_first(self.len, pe)
    }

    /// What PE `pe` of this layout gets from `from`, in runs as long as can be.
    fn pieces(self, from: Self, pe: usize) -> impl Iterator<Item = Piece> {
        let here = self.local_len(pe);
        let mut to = 0;
        std::iter::from_fn(move || {
            if to == here {
                return None;
            }
            // One layout for both: all at once.
            if self == from {
                to = here;
                return Some(Piece { to: 0, from_pe: pe, from: 0, len: here });
            }
            let i = self.index_of(pe, to);
            let (from_pe, place) = from.owner(i);
            let len = (self.block - i % self.block).min(from.block - i % from.block).min(self.len - i);
            let piece = Piece { to, from_pe, from: place, len };
            to += len;
            Some(piece)
        })
    }

    /// Whether an assignment is done by a kernel rather than by a copy for each piece.
    fn is_fine(self, from: Self, element: usize) -> bool {
        let run = self.block.min(from.block).min(self.len.max(1)).saturating_mul(element);
        self != from && run < SHORTEST_COPY
    }
}

/// An array over the PEs of a team. A handle, as [`Symmetric`] is: a clone is the same array.
#[derive(Clone)]
pub struct GlobalArray<T: Pod> {
    team: Team,
    part: Symmetric<T>,
    layout: Layout,
    /// What sends long runs over every path, if that was given.
    ways: Option<Collectives>,
}

impl<T: Pod> GlobalArray<T> {
    /// An array of `len` zeros.
    ///
    /// # Errors
    /// As of [`Layout::new`] and [`Team::alloc`].
    pub fn new(team: &Team, len: usize, distribution: Distribution) -> Result<Self> {
        let layout = Layout::new(len, distribution, team.size())?;
        Ok(GlobalArray { team: team.clone(), part: team.alloc(layout.room())?, layout, ways: None })
    }

    /// A new array on the team of `ways`: long runs of what is assigned to it are sent over every path between two PEs, through
    /// other PEs and host memory where that is faster.
    ///
    /// # Errors
    /// As of [`GlobalArray::new`].
    pub fn over(ways: &Collectives, len: usize, distribution: Distribution) -> Result<Self> {
        Ok(GlobalArray { ways: Some(ways.clone()), ..Self::new(ways.team(), len, distribution)? })
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.layout.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.layout.len == 0
    }

    /// Where the elements are.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The memory of the parts: the same number of elements on every PE, some of them unused.
    pub fn part(&self) -> &Symmetric<T> {
        &self.part
    }

    /// The array as kernels of the queue's PE get it.
    ///
    /// # Errors
    /// The queue is of another world.
    pub fn handle(&self, queue: &Queue) -> Result<ffi::tandem_array> {
        let (length, block) = (self.layout.len as u64, self.layout.block as u64);
        Ok(ffi::tandem_array { part: queue.address(&self.part)?, length, block })
    }

    /// The part of `range` that PE `pe` has, among its elements.
    fn places(&self, range: &Range<usize>, pe: usize) -> Range<usize> {
        self.layout.of_first(range.start, pe)..self.layout.of_first(range.end, pe)
    }

    fn inside(&self, op: &'static str, range: &Range<usize>) -> Result<()> {
        if range.start <= range.end && range.end <= self.len() {
            return Ok(());
        }
        Err(Error::invalid(op, format!("elements {} to {} of an array of {}", range.start, range.end, self.len())))
    }

    /// Overwrites the elements from `at` on, from the host. In no order with what queues do meanwhile.
    ///
    /// # Errors
    /// They are past the end; as of [`Team::write`].
    pub fn write(&self, at: usize, from: &[T]) -> Result<()> {
        let op = "write to an array";
        let end = at.checked_add(from.len()).ok_or_else(|| Error::invalid(op, "the end cannot be counted"))?;
        self.inside(op, &(at..end))?;
        (0..self.team.size()).try_for_each(|pe| self.write_part(pe, at, from))
    }

    /// Of the elements from `at` on those that PE `pe` has.
    fn write_part(&self, pe: usize, at: usize, from: &[T]) -> Result<()> {
        let places = self.places(&(at..at + from.len()), pe);
        let mine: Vec<T> = places.clone().map(|place| from[self.layout.index_of(pe, place) - at]).collect();
        self.team.write(pe, &self.part.slice(places)?, &mine)
    }

    /// Elements of the array, to the host. In no order with what queues do meanwhile: synchronize what writes them first.
    ///
    /// # Errors
    /// They are past the end; as of [`Team::read`].
    pub fn read(&self, range: Range<usize>) -> Result<Vec<T>> {
        self.inside("read of an array", &range)?;
        let mut out = vec![T::zeroed(); range.len()];
        for pe in 0..self.team.size() {
            let places = self.places(&range, pe);
            let mine = self.team.read(pe, &self.part.slice(places.clone())?)?;
            for (place, element) in places.zip(mine) {
                out[self.layout.index_of(pe, place) - range.start] = element;
            }
        }
        Ok(out)
    }

    /// Runs over every element where it lives: `kernel` launches on the stream of each GPU, or `program` gets the index
    /// and the element on each pretend PE. In the order of each PE's queue; a [`Team::barrier`] orders it with other PEs.
    ///
    /// # Errors
    /// As of [`Queue::call`] and [`Queue::run`].
    pub fn forall(
        &self,
        kernel: impl Fn(tandem_cuda::ffi::tandem_stream, &ffi::tandem_team, &ffi::tandem_array) -> i32,
        program: impl Fn(usize, &mut T) + Clone + Send + Sync + 'static,
    ) -> Result<()> {
        for queue in self.team.queues() {
            let pe = queue.me();
            if queue.stream().is_some() {
                let array = self.handle(queue)?;
                queue.keep(&self.part);
                queue.call("forall over an array", |stream, team| kernel(stream, team, &array))?;
                continue;
            }
            let (layout, program) = (self.layout, program.clone());
            let mine = self.part.slice(0..layout.local_len(pe))?;
            queue.run(move |here| {
                let mut elements = here.load(&mine)?;
                for (place, element) in elements.iter_mut().enumerate() {
                    program(layout.index_of(pe, place), element);
                }
                here.store(&mine, &elements)
            })?;
        }
        Ok(())
    }

    /// Copies all of `from` here, in the order of the queues: what any PE's queue did to `from` before is copied, and what
    /// one does to it later is not. Each PE gets its elements by copies of long runs, over every path where this array was
    /// made for it ([`GlobalArray::over`]), or by one kernel where the distributions leave only short ones. Where PEs do not reach each
    /// other, as those of different nodes, short runs go through memory of the host: then it waits for the queues of all, and is done when it
    /// returns.
    ///
    /// # Errors
    /// The arrays have different lengths or teams; as of [`Team::barrier`], [`OneSided::get`] and [`Collectives::send`].
    pub fn assign(&self, from: &Self) -> Result<()> {
        self.assign_with(from, SHORTEST_SEND)
    }

    /// Sends runs of `shortest_send` bytes or more.
    fn assign_with(&self, from: &Self, shortest_send: usize) -> Result<()> {
        let op = "assign an array";
        if self.len() != from.len() || self.team.members() != from.team.members() {
            return Err(Error::invalid(op, format!("{} elements from {}, or another team", self.len(), from.len())));
        }
        let is_fine = self.layout.is_fine(from.layout, size_of::<T>());
        if is_fine && self.team.core().all_reach().is_err() {
            return self.assign_by_host(from);
        }
        self.team.barrier()?;
        let mut long = Vec::new();
        for pe in 0..self.team.size() {
            let queue = self.team.core().is_local(pe).then(|| self.team.queue(pe));
            if is_fine && self.team.is_cuda() {
                let Some(queue) = queue else { continue };
                let (to, source) = (self.handle(queue)?, from.handle(queue)?);
                queue.keep(&self.part);
                queue.keep(&from.part);
                queue.call(op, |stream, team| crate::kernels::assign(team, &to, &source, size_of::<T>(), stream))?;
                continue;
            }
            for piece in self.layout.pieces(from.layout, pe) {
                let to = self.part.slice(piece.to..piece.to + piece.len)?;
                let source = from.part.slice(piece.from..piece.from + piece.len)?;
                if self.ways.is_some() && piece.from_pe != pe && piece.len * size_of::<T>() >= shortest_send {
                    // Every process names all of them.
                    long.push((piece.from_pe, pe, source, to));
                } else if let Some(queue) = queue {
                    queue.get(&to, &source, piece.from_pe)?;
                }
            }
        }
        if let Some(ways) = self.ways.as_ref().filter(|_| !long.is_empty()) {
            ways.together(|group| {
                long.iter().try_for_each(|(source, pe, from, to)| group.send(*source, *pe, from, to))
            })?;
        }
        self.team.barrier()
    }

    /// Reads and writes in order of the elements, after all that the queues of all processes were told: each writes what its own PEs get.
    fn assign_by_host(&self, from: &Self) -> Result<()> {
        if self.team.queues().iter().any(Queue::is_recording) {
            // A recording would hold nothing of it.
            return self.team.core().all_reach();
        }
        self.team.barrier()?;
        self.team.synchronize()?;
        let (piece, own) = ((HOST_PIECE / size_of::<T>()).max(1), self.team.local());
        for at in (0..self.len()).step_by(piece) {
            let part = from.read(at..self.len().min(at + piece))?;
            own.iter().try_for_each(|&pe| self.write_part(pe, at, &part))?;
        }
        // The others have read, too.
        self.team.barrier()?;
        self.team.synchronize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deals one element after the other.
    fn dealt(len: usize, block: usize, pes: usize) -> Vec<(usize, usize)> {
        let mut counts = vec![0; pes];
        let deal = |i: usize| {
            let pe = i / block % pes;
            counts[pe] += 1;
            (pe, counts[pe] - 1)
        };
        (0..len).map(deal).collect()
    }

    fn layouts(len: usize, pes: usize) -> Vec<Layout> {
        let kinds = [
            Distribution::Block,
            Distribution::Cyclic,
            Distribution::BlockCyclic(3),
            Distribution::BlockCyclic(len + 5),
        ];
        kinds.into_iter().map(|kind| Layout::new(len, kind, pes).unwrap()).collect()
    }

    #[test]
    fn elements_are_dealt_in_turn() {
        for pes in 1..6 {
            for len in [0, 1, 2, 3, 7, 8, 9, 64, 65, 100] {
                for layout in layouts(len, pes) {
                    let table = dealt(len, layout.block, pes);
                    for (i, &(pe, place)) in table.iter().enumerate() {
                        assert_eq!(layout.owner(i), (pe, place), "{layout:?}");
                        assert_eq!(layout.index_of(pe, place), i, "{layout:?}");
                        assert!(place < layout.room());
                    }
                    for pe in 0..pes {
                        for count in 0..=len {
                            let wanted = table[..count].iter().filter(|x| x.0 == pe).count();
                            assert_eq!(layout.of_first(count, pe), wanted, "{layout:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn pieces_cover_each_element_once() {
        for pes in 1..5 {
            for len in [0, 1, 5, 16, 33, 100] {
                for to in layouts(len, pes) {
                    for from in layouts(len, pes) {
                        for pe in 0..pes {
                            let mut next = 0;
                            for piece in to.pieces(from, pe) {
                                assert!(piece.len > 0 && piece.to == next);
                                for k in 0..piece.len {
                                    let i = to.index_of(pe, piece.to + k);
                                    assert_eq!(from.owner(i), (piece.from_pe, piece.from + k), "{to:?} from {from:?}");
                                }
                                next += piece.len;
                            }
                            assert_eq!(next, to.local_len(pe));
                        }
                    }
                }
            }
        }
    }

    /// Long runs through other PEs and host memory, on pretend PEs.
    #[test]
    fn long_runs_are_sent_over_every_path() {
        use crate::topology::Topology;
        for pes in 1..=8 {
            let team = Team::sim(pes, crate::Options::default()).unwrap();
            let ways = Collectives::new(&team, &Topology::preset("dgx1-v100").unwrap()).unwrap();
            let len = 30_000 * pes + 7;
            let block: GlobalArray<u32> = GlobalArray::over(&ways, len, Distribution::Block).unwrap();
            let runs: GlobalArray<u32> = GlobalArray::over(&ways, len, Distribution::BlockCyclic(11_000)).unwrap();
            let contents: Vec<u32> = (0..len as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
            block.write(0, &contents).unwrap();
            runs.assign_with(&block, 4096).unwrap();
            block.assign_with(&runs, 4096).unwrap();
            team.synchronize().unwrap();
            assert!(runs.read(0..len).unwrap() == contents && block.read(0..len).unwrap() == contents, "{pes} PEs");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(Layout::new(5, Distribution::BlockCyclic(0), 2).is_err());
        assert!(Layout::new(5, Distribution::Block, 0).is_err());
        assert!(Layout::new(usize::MAX, Distribution::Block, 2).is_err());
        assert!(Layout::new(5, Distribution::BlockCyclic(usize::MAX), 2).is_err());
    }
}
