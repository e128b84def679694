//! The textbook's way: every lane sorts its own keys, gets from every other what belongs to its share, and merges that.

use super::{Piece, LANES, OP};
use crate::backend::{Cuda, CudaBuf};
use crate::ffi;
use std::collections::VecDeque;
use std::ops::Range;
use tandem_cuda::DeviceBuffer;
use tandem_ops::sort::{borders, SortKey};
use tandem_ops::{Backend, Buffer, Error, Lane, Result};

/// A sorted run on the lane that merges it.
struct Run<K: SortKey> {
    keys: CudaBuf<K>,
    values: Option<CudaBuf<K>>,
}

impl Cuda {
    /// `pieces` are the buffers `keys` and `values`.
    pub(super) fn merge_sorted<K: SortKey>(
        &self,
        pieces: &[Piece<K>],
        keys: &mut [&mut CudaBuf<K>],
        mut values: Option<&mut [&mut CudaBuf<K>]>,
        descending: bool,
    ) -> Result<()> {
        // Each sort waits for its lane.
        std::thread::scope(|scope| {
            let pieces = pieces.iter().map(std::slice::from_ref);
            let sorts: Vec<_> = pieces.map(|piece| scope.spawn(move || self.partition(piece, descending))).collect();
            let panicked = || Err(Error::invalid(OP, "a thread of the host panicked"));
            sorts.into_iter().try_for_each(|sort| sort.join().unwrap_or_else(|_| panicked()))
        })?;
        let cuts = self.cuts(pieces, keys, descending)?;
        // Each lane's share of every run.
        let mut shares: Vec<VecDeque<Run<K>>> = Vec::with_capacity(pieces.len());
        for (to, ends) in pieces.iter().zip(cuts.windows(2)) {
            let mut share = VecDeque::new();
            for (from, run) in keys.iter().enumerate() {
                let range = ends[0][from]..ends[1][from];
                if !range.is_empty() {
                    let copy = |of: &CudaBuf<K>, range: Range<usize>| self.copy(of, range, to.lane);
                    let values = values.as_deref().map(|values| copy(values[from], range.clone())).transpose()?;
                    share.push_back(Run { keys: copy(run, range)?, values });
                }
            }
            shares.push(share);
        }
        let mut replaced = Vec::with_capacity(pieces.len());
        for (i, share) in shares.into_iter().enumerate() {
            let Some(mut merged) = self.merge_all(share, pieces[i].lane, descending)? else { continue };
            std::mem::swap(keys[i].memory(), merged.keys.memory());
            if let (Some(to), Some(from)) = (values.as_deref_mut(), &mut merged.values) {
                std::mem::swap(to[i].memory(), from.memory());
            }
            replaced.push(merged);
        }
        // Until all is done, other lanes read what was replaced.
        self.synchronize()
    }

    /// How many elements of each run the lanes before each border have.
    fn cuts<K: SortKey>(
        &self,
        pieces: &[Piece<K>],
        keys: &[&mut CudaBuf<K>],
        descending: bool,
    ) -> Result<Vec<Vec<usize>>> {
        let first = self.lane(OP, pieces[0].lane)?;
        let mut args = ffi::tandem_sort_cuts_args {
            keys: [std::ptr::null(); LANES],
            length: [0; LANES],
            rank: [0; LANES + 1],
            cuts: std::ptr::null_mut(),
            runs: pieces.len() as u32,
            key_bytes: size_of::<K>() as u32,
            descending: descending.into(),
        };
        args.rank.iter_mut().zip(borders(pieces.iter().map(|p| p.length))).for_each(|(to, border)| *to = border);
        // What the first lane's GPU does not reach is copied to it.
        let mut copies: Vec<CudaBuf<K>> = Vec::new();
        for (i, piece) in pieces.iter().enumerate() {
            args.length[i] = piece.length as u64;
            args.keys[i] = piece.keys.cast::<u8>().raw().cast_const();
            if !self.sort_reaches(first.lane, piece.lane)? {
                let copy = self.copy(keys[i], 0..piece.length, first.lane)?;
                args.keys[i] = copy.ptr().cast::<u8>().raw().cast_const();
                copies.push(copy);
            }
        }
        let cuts: DeviceBuffer<u64> = first.alloc_public(OP, LANES * (pieces.len() + 1))?;
        args.cuts = cuts.ptr().raw();
        self.meet(pieces)?;
        // SAFETY: the runs have the lengths that are named and are reached by this GPU; there is a row of LANES numbers for
        // each of runs + 1 ranks; all of it lives until the download below has been waited for.
        first.launch(OP, |stream| unsafe { ffi::tandem_sort_cuts(&args, stream) })?;
        let cuts = first.download(OP, &cuts)?.wait()?;
        drop(copies);
        let row = |row: &[u64]| row.iter().take(pieces.len()).map(|&cut| cut as usize).collect();
        Ok(cuts.chunks(LANES).map(row).collect())
    }

    /// One run of several on a lane, whose order is that of equal keys.
    fn merge_all<K: SortKey>(&self, runs: VecDeque<Run<K>>, lane: Lane, descending: bool) -> Result<Option<Run<K>>> {
        let mut runs = runs;
        while runs.len() > 1 {
            let mut merged = VecDeque::with_capacity(runs.len().div_ceil(2));
            while let Some(a) = runs.pop_front() {
                merged.push_back(match runs.pop_front() {
                    Some(b) => self.merge_two(&a, &b, lane, descending)?,
                    None => a,
                });
            }
            runs = merged;
        }
        Ok(runs.pop_front())
    }

    fn merge_two<K: SortKey>(&self, a: &Run<K>, b: &Run<K>, lane: Lane, descending: bool) -> Result<Run<K>> {
        let all = a.keys.len().checked_add(b.keys.len()).ok_or_else(|| Error::invalid(OP, "too many keys"))?;
        let keys = self.uninit::<K>(OP, lane, all)?;
        let values = a.values.as_ref().map(|_| self.uninit::<K>(OP, lane, all)).transpose()?;
        let address = |buf: &CudaBuf<K>| buf.ptr().cast::<u8>().raw();
        let address_of = |buf: &Option<CudaBuf<K>>| buf.as_ref().map_or(std::ptr::null_mut(), address);
        let args = ffi::tandem_sort_merge_args {
            keys: [address(&a.keys).cast_const(), address(&b.keys).cast_const()],
            values: [address_of(&a.values).cast_const(), address_of(&b.values).cast_const()],
            length: [a.keys.len() as u64, b.keys.len() as u64],
            out_keys: address(&keys),
            out_values: address_of(&values),
            key_bytes: size_of::<K>() as u32,
            descending: descending.into(),
        };
        // SAFETY: both runs and the room for all of their elements are on this lane; they are freed in its order.
        self.lane(OP, lane)?.launch(OP, |stream| unsafe { ffi::tandem_sort_merge(&args, stream) })?;
        Ok(Run { keys, values })
    }
}
