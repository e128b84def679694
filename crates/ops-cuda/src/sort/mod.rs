//! Sort: one partition that writes every key to the GPU that sorts it, or the textbook's local sorts, exchange and merge.

mod merge;
mod plan;

use crate::backend::{Cuda, CudaBuf};
use crate::ffi;
use crate::lane::LaneCtx;
use std::sync::Arc;
use tandem_cuda::ffi::tandem_stream;
use tandem_cuda::{DeviceBuffer, DevicePtr};
use tandem_ops::sort::{borders, check, partition::ATTEMPTS, Sort, SortKey, SortOptions, SortWay};
use tandem_ops::{Backend, Buffer, Error, Lane, Result};

const OP: &str = "sort";

/// The most buffers that are sorted together.
const LANES: usize = ffi::TANDEM_SORT_LANES as usize;

type Room = unsafe extern "C" fn(*const ffi::tandem_sort_args, *mut usize) -> i32;
type Launcher = unsafe extern "C" fn(*const ffi::tandem_sort_args, tandem_stream) -> i32;

fn launcher<K: SortKey>(pairs: bool) -> (Room, Launcher) {
    match (size_of::<K>(), pairs) {
        (4, false) => (ffi::tandem_sort_u32_room, ffi::tandem_sort_u32),
        (4, true) => (ffi::tandem_sort_u32_pairs_room, ffi::tandem_sort_u32_pairs),
        (_, false) => (ffi::tandem_sort_u64_room, ffi::tandem_sort_u64),
        (_, true) => (ffi::tandem_sort_u64_pairs_room, ffi::tandem_sort_u64_pairs),
    }
}

/// A lane's share of a sequence.
#[derive(Clone, Copy)]
struct Piece<K> {
    lane: Lane,
    length: usize,
    keys: DevicePtr<K>,
    values: Option<DevicePtr<K>>,
}

impl<K: SortKey> Sort<K> for Cuda {
    fn sort(&self, keys: &mut [&mut CudaBuf<K>], options: SortOptions) -> Result<()> {
        check(keys, None)?;
        let pieces: Vec<Piece<K>> = keys.iter().map(|buf| piece(buf, None)).collect();
        match self.way(&pieces, options)? {
            SortWay::Partition => self.partition(&pieces, options.descending),
            SortWay::Merge => self.merge_sorted(&pieces, keys, None, options.descending),
        }
    }

    fn sort_pairs(
        &self,
        keys: &mut [&mut CudaBuf<K>],
        values: &mut [&mut CudaBuf<K>],
        options: SortOptions,
    ) -> Result<()> {
        check(keys, Some(values))?;
        let pieces: Vec<Piece<K>> = keys.iter().zip(&*values).map(|(keys, values)| piece(keys, Some(values))).collect();
        match self.way(&pieces, options)? {
            SortWay::Partition => self.partition(&pieces, options.descending),
            SortWay::Merge => self.merge_sorted(&pieces, keys, Some(values), options.descending),
        }
    }
}

fn piece<K: SortKey>(keys: &CudaBuf<K>, values: Option<&CudaBuf<K>>) -> Piece<K> {
    Piece { lane: keys.lane(), length: keys.len(), keys: keys.ptr(), values: values.map(CudaBuf::ptr) }
}

/// Takes samples until one spreads the keys: `attempt(seed)` returns what the first lane that failed says, or 0.
fn until_spread(mut attempt: impl FnMut(u64) -> Result<u32>) -> Result<()> {
    for seed in 1..=ATTEMPTS {
        match attempt(seed)?.cast_signed() {
            0 => return Ok(()),
            ffi::TANDEM_SORT_CROWDED => {}
            _ => return Err(Error::invalid(OP, "keys were left unsorted: the lists of segments were too short")),
        }
    }
    Err(Error::invalid(OP, format!("{ATTEMPTS} samples could not spread the keys over the lanes")))
}

impl Cuda {
    fn way<K: SortKey>(&self, pieces: &[Piece<K>], options: SortOptions) -> Result<SortWay> {
        if pieces.len() > LANES {
            return Err(Error::invalid(OP, format!("{} buffers; expected at most {LANES}", pieces.len())));
        }
        let reach = |from: usize, to: usize| self.sort_reaches(pieces[from].lane, pieces[to].lane);
        plan::way(pieces.len(), options.way, reach)
    }

    /// Whether kernels of one lane's GPU can use the memory of another's.
    fn sort_reaches(&self, from: Lane, to: Lane) -> Result<bool> {
        let (from, to) = (self.lane(OP, from)?, self.lane(OP, to)?);
        Ok(from.device == to.device || from.device.can_access(to.device).map_err(|e| from.error(OP, e))?)
    }

    /// Every lane waits for what all others have been told.
    fn meet<K>(&self, pieces: &[Piece<K>]) -> Result<()> {
        if pieces.len() < 2 {
            return Ok(());
        }
        let contexts = pieces.iter().map(|p| self.lane(OP, p.lane)).collect::<Result<Vec<&Arc<LaneCtx>>>>()?;
        let record = |lane: &&Arc<LaneCtx>| lane.stream().record().map_err(|e| lane.error(OP, e));
        let events = contexts.iter().map(record).collect::<Result<Vec<_>>>()?;
        for (i, lane) in contexts.iter().enumerate() {
            for (_, event) in events.iter().enumerate().filter(|&(j, _)| j != i) {
                lane.stream().wait(event).map_err(|e| lane.error(OP, e))?;
            }
        }
        Ok(())
    }

    /// Sorts pieces whose GPUs reach each other's memory.
    fn partition<K: SortKey>(&self, pieces: &[Piece<K>], descending: bool) -> Result<()> {
        if pieces.iter().all(|p| p.length == 0) {
            return Ok(());
        }
        until_spread(|seed| {
            let done = self.attempt(pieces, descending, seed);
            // Other lanes may still write to memory that a failure is about to free.
            if done.is_err() {
                self.synchronize()?;
            }
            done
        })
    }

    /// The sort with one sample; returns what the first lane that failed says, or 0.
    fn attempt<K: SortKey>(&self, pieces: &[Piece<K>], descending: bool, seed: u64) -> Result<u32> {
        let (room, launcher) = launcher::<K>(pieces[0].values.is_some());
        let mut args = ffi::tandem_sort_args {
            first: [0; LANES + 1],
            keys: [std::ptr::null_mut(); LANES],
            values: [std::ptr::null_mut(); LANES],
            scratch: [std::ptr::null_mut(); LANES],
            failed: std::ptr::null_mut(),
            seed,
            lane: 0,
            lanes: pieces.len() as u32,
            descending: descending.into(),
            step: 0,
        };
        args.first.iter_mut().zip(borders(pieces.iter().map(|p| p.length))).for_each(|(to, border)| *to = border);
        let mut scratch = Vec::with_capacity(pieces.len());
        let mut failed: Vec<DeviceBuffer<u32>> = Vec::with_capacity(pieces.len());
        for (i, piece) in pieces.iter().enumerate() {
            let lane = self.lane(OP, piece.lane)?;
            args.lane = i as u32;
            args.keys[i] = piece.keys.cast().raw();
            args.values[i] = piece.values.map_or(std::ptr::null_mut(), |values| values.cast().raw());
            let mut bytes = 0;
            // SAFETY: the query reads the arguments and writes the number alone.
            lane.launch(OP, |_| unsafe { room(&args, &mut bytes) })?;
            // Keys are no secrets: their copies are not overwritten.
            let memory = lane.alloc_public::<u8>(OP, bytes)?;
            args.scratch[i] = memory.ptr().raw();
            scratch.push(memory);
            failed.push(lane.alloc_public(OP, 1)?);
        }
        let step = |args: &mut ffi::tandem_sort_args, step: i32| -> Result<()> {
            self.meet(pieces)?;
            args.step = step.cast_unsigned();
            for (i, piece) in pieces.iter().enumerate() {
                args.lane = i as u32;
                args.failed = failed[i].ptr().raw();
                // SAFETY: the lanes' keys and values have the lengths that `first` says, scratch memory the size that was
                // asked for, all lie on GPUs that reach each other, and outlive what is launched: it is waited for below.
                self.lane(OP, piece.lane)?.launch(OP, |stream| unsafe { launcher(args, stream) })?;
            }
            Ok(())
        };
        if plan::is_whole(pieces.len(), pieces[0].length, size_of::<K>()) {
            step(&mut args, ffi::TANDEM_SORT_WHOLE)?;
        } else {
            for number in
                [ffi::TANDEM_SORT_SAMPLE, ffi::TANDEM_SORT_COUNT, ffi::TANDEM_SORT_EXCHANGE, ffi::TANDEM_SORT_FINISH]
            {
                step(&mut args, number)?;
            }
        }
        self.meet(pieces)?;
        let mut downloads = Vec::with_capacity(pieces.len());
        for (piece, failed) in pieces.iter().zip(&failed) {
            downloads.push(self.lane(OP, piece.lane)?.download(OP, failed)?);
        }
        let mut worst = 0;
        for download in downloads {
            worst = worst.max(download.wait()?.first().copied().unwrap_or(0));
        }
        drop(scratch);
        Ok(worst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_taken_until_one_spreads_the_keys() {
        let crowded = ffi::TANDEM_SORT_CROWDED.cast_unsigned();
        let run = |says: &dyn Fn(u64) -> u32| {
            let mut taken = 0;
            let done = until_spread(|seed| {
                taken = seed;
                Ok(says(seed))
            });
            (done, taken)
        };
        assert!(matches!(run(&|_| 0), (Ok(()), 1)));
        assert!(matches!(run(&|seed| if seed < 3 { crowded } else { 0 }), (Ok(()), 3)));
        assert!(matches!(run(&|_| crowded), (Err(Error::Invalid { .. }), ATTEMPTS)));
        assert!(matches!(run(&|_| crowded + 1), (Err(Error::Invalid { .. }), 1)));
        assert!(until_spread(|_| Err(Error::invalid(OP, "lost"))).is_err());
    }
    use tandem_ops::sort::scratch_bytes;

    /// Bytes that a launcher asks for on one of `lanes` lanes with `share` keys each.
    fn asked<K: SortKey>(pairs: bool, lanes: usize, share: u64) -> Option<u64> {
        // SAFETY: all fields are numbers or pointers that may be null.
        let mut args: ffi::tandem_sort_args = unsafe { std::mem::zeroed() };
        (args.lanes, args.lane) = (lanes as u32, lanes as u32 - 1);
        (1..=lanes).for_each(|lane| args.first[lane] = share * lane as u64);
        let mut bytes = 0;
        // SAFETY: the query reads the arguments and writes the number alone.
        let status = unsafe { launcher::<K>(pairs).0(&args, &mut bytes) };
        (status == tandem_cuda::ffi::TANDEM_OK).then_some(bytes as u64)
    }

    fn fits<K: SortKey>() {
        for pairs in [false, true] {
            let element = size_of::<K>() as u64 * if pairs { 2 } else { 1 };
            // What CUB asks for it says on a GPU alone.
            for lanes in if size_of::<K>() == 4 { 2..=LANES } else { 1..=LANES } {
                for share in [1, 6143, 6145, 1 << 20, (1 << 24) + 1, 1 << 28, (3 << 30) / lanes as u64] {
                    let asked = asked::<K>(pairs, lanes, share);
                    let planned = scratch_bytes(share, element);
                    let name = K::NAME;
                    assert!(
                        asked.is_some_and(|bytes| bytes <= planned),
                        "{name}, {lanes}, {share}: {asked:?}, {planned}"
                    );
                }
            }
        }
    }

    #[test]
    fn scratch_memory_is_what_plans_count_with() {
        if asked::<u64>(false, 1, 7000).is_none() {
            return println!("skipped: built without nvcc");
        }
        fits::<u32>();
        fits::<u64>();
    }
}
