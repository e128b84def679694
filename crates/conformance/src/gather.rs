//! Elements picked by a map of indices.

use crate::{samples, Outcome, Suite};
use rand_chacha::rand_core::RngCore;
use std::fmt::Debug;
use tandem_ops::{BabyBear, Backend, Canonical, Gather, Goldilocks, Lane, Mont, Wire};

impl<B: Backend> Suite<'_, B> {
    /// Elements picked by a map of indices.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn gather(&mut self) -> Outcome
    where
        B: Gather,
    {
        let large = 1usize << self.log_n;
        for lane in self.lanes() {
            let shapes = [
                (0, 0),
                (0, 5),
                (1, 1),
                (2, 1),
                (3, 300),
                (31, 7),
                (32, 32),
                (33, 1000),
                (255, 9),
                (256, 3),
                (257, 257),
            ];
            for (picks, from) in shapes.into_iter().chain([(large - 1, large + 1), (large + 1, large)]) {
                let rng = &mut samples::rng((picks + from) as u64);
                // First and last elements are among those that are picked.
                let index = |i: usize| match i % 7 {
                    0 => 0,
                    1 => from as u32 - 1,
                    _ => rng.next_u32() % from as u32,
                };
                let map: Vec<u32> = (0..picks).map(index).collect();
                let mut word = || u64::from(rng.next_u32()) << 32 | u64::from(rng.next_u32());
                let numbers: Vec<[u64; 4]> = (0..from).map(|_| [word(), word(), word(), word()]).collect();
                let of = |make: fn(&[u64; 4]) -> Mont| numbers.iter().map(make).collect::<Vec<_>>();
                self.picked(lane, &map, &of(|&x| Mont(x)))?;
                self.picked(lane, &map, &numbers.iter().map(|&x| Canonical(x)).collect::<Vec<_>>())?;
                self.picked(lane, &map, &numbers.iter().map(|x| Goldilocks(x[0])).collect::<Vec<_>>())?;
                self.picked(lane, &map, &numbers.iter().map(|x| BabyBear(x[0] as u32)).collect::<Vec<_>>())?;
            }
        }
        self.bad_maps()
    }

    fn picked<T: Wire + PartialEq + Debug>(&mut self, lane: Lane, map: &[u32], from: &[T]) -> Outcome
    where
        B: Gather,
    {
        let loaded = self.backend.load_map(lane, map, from.len())?;
        let picked: Vec<T> = map.iter().map(|&i| from[i as usize]).collect();
        let filled = |len: usize| -> Vec<T> {
            (0..len).map(|_| bytemuck::pod_read_unaligned(&[7; 32][..size_of::<T>()])).collect()
        };
        for (tail, longer) in [(0, 0), (1, 2), (40, 0)] {
            let buf = self.backend.upload(lane, &[from, &filled(longer)].concat())?;
            let mut to = self.backend.upload(lane, &filled(map.len() + tail))?;
            self.backend.gather(&loaded, &buf, &mut to)?;
            let expected = [&picked[..], &vec![T::zeroed(); tail]].concat();
            self.holds(&to, &expected, format_args!("{} of {}, {tail} beyond", map.len(), from.len()))?;
        }
        Ok(())
    }

    fn bad_maps(&mut self) -> Outcome
    where
        B: Gather,
    {
        for (map, bound) in [(&[0, 1, 5][..], 5), (&[0], 0), (&[u32::MAX], 1 << 20), (&[3, 9, 2, 1], 9)] {
            let refused = self.backend.load_map(Lane(0), map, bound);
            self.refused(refused, format_args!("a map {map:?} into {bound} elements"))?;
        }
        let nowhere = Lane(self.backend.lanes());
        let refused = self.backend.load_map(nowhere, &[0], 1);
        self.refused(refused, "a map for a lane that is not there")?;
        let map = self.backend.load_map(Lane(0), &[4, 0, 4], 5)?;
        for (from, to) in [(4, 3), (0, 3), (5, 2), (5, 0)] {
            let from_buf = self.backend.alloc::<Mont>(Lane(0), from)?;
            let mut to_buf = self.backend.alloc::<Mont>(Lane(0), to)?;
            let refused = self.backend.gather(&map, &from_buf, &mut to_buf);
            self.refused(refused, format_args!("3 indices below 5, from {from} to {to} elements"))?;
        }
        let last = Lane(self.backend.lanes() - 1);
        if last != Lane(0) {
            for (from, to) in [(last, Lane(0)), (Lane(0), last), (last, last)] {
                let from = self.backend.alloc::<Mont>(from, 5)?;
                let mut to = self.backend.alloc::<Mont>(to, 3)?;
                let refused = self.backend.gather(&map, &from, &mut to);
                self.refused(refused, "a map of another lane")?;
            }
        }
        Ok(())
    }
}
