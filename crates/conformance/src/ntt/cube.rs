//! Transforms as cubes, over the subgroup, by either way of their exchange.

use crate::{samples, Outcome, Suite};
use tandem_ops::ntt::cube::{Cube, Way};
use tandem_ops::ntt::MAX_SHARDS;
use tandem_ops::{
    naive, Backend, Buffer, Coset, Curve, Direction, Gather, Lane, Mont, Ntt, NttOp, Order, Spread, Timeline, VecOps,
};

/// Up to this size all forms are done at all numbers of shards; above it a form takes turns with the others.
const WHOLE: u32 = 7;

impl<B: Backend> Suite<'_, B> {
    /// Cubes of every size up to 2^12 and of the largest, in 1 to 16 shards, dealt to the lanes in turn.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn ntt_cube<C: Curve>(&mut self) -> Outcome
    where
        B: Ntt<C> + VecOps<C> + Gather,
    {
        let sizes = (0..=12.min(self.log_n)).chain((13..=self.log_n).rev().take(1));
        for log_n in sizes {
            let input = samples::elements::<C>(1 << log_n, &mut samples::rng(300 + u64::from(log_n)));
            for log_shards in 0..=MAX_SHARDS.ilog2().min(log_n / 2) {
                let every = if log_n <= WHOLE { 1 } else { 5 };
                for op in forms().into_iter().skip((log_n + log_shards) as usize % every).step_by(every) {
                    self.cube::<C>(Spread { log_n, log_shards }, &input, op)?;
                }
            }
        }
        self.cube_refusals::<C>()
    }

    fn cube<C: Curve>(&mut self, spread: Spread, input: &[C::Fr], op: NttOp) -> Outcome
    where
        B: Ntt<C> + VecOps<C> + Gather,
    {
        let (backend, what) = (self.backend, format!("{op:?} of 2^{} elements as a cube", spread.log_n));
        let wire = samples::wire::<C>(input);
        let lanes: Vec<Lane> = (0..spread.shards()).map(|s| Lane(s % backend.lanes())).collect();
        let cube = Cube::<C, B>::new(backend, &lanes, spread.log_n, op)?;
        let natural = NttOp { input: Order::Natural, output: Order::Natural, ..op };
        let mut reference = self.reference.upload(Lane(0), &wire)?;
        Ntt::<C>::ntt(&self.reference, &mut reference, natural)?;
        let expected = spread.deal(op.output, reference.as_slice());
        for way in [Way::Direct, Way::Host] {
            let parts = spread.deal(op.input, &wire);
            let upload = |(part, &lane): (&Vec<Mont>, &Lane)| backend.upload(lane, part);
            let shards = parts.iter().zip(&lanes).map(upload).collect::<tandem_ops::Result<_>>()?;
            let shards = cube.transform(backend, shards, way, &Timeline::none())?;
            self.that(shards.len() == expected.len(), format_args!("{what}: the number of shards"))?;
            for (s, (shard, expected)) in shards.iter().zip(&expected).enumerate() {
                self.that(shard.lane() == lanes[s], format_args!("{what}: the lane of shard {s}"))?;
                self.holds(shard, expected, format_args!("{what}, {way:?}: shard {s} of {}", lanes.len()))?;
            }
        }
        let index = input.len() / 3;
        let at = naive::ntt_at::<C>(input, natural, index).map(C::mont);
        self.that(at == Some(reference.as_slice()[index]), format_args!("{what}: index {index}"))
    }

    fn cube_refusals<C: Curve>(&mut self) -> Outcome
    where
        B: Ntt<C> + VecOps<C> + Gather,
    {
        let backend = self.backend;
        let (op, last) = (forms()[0], Lane(backend.lanes() - 1));
        let new = |lanes: &[Lane], log_n, op| Cube::<C, B>::new(backend, lanes, log_n, op).map(drop);
        for coset in [Coset::Odd, Coset::Shift(C::mont(C::Fr::from(7u64)))] {
            self.refused(new(&[Lane(0); 2], 6, NttOp { coset, ..op }), "a cube over a coset")?;
        }
        for (count, log_n) in [(0, 6), (3, 6), (32, 12), (4, 3), (16, 7), (2, 64), (1, 60), (16, 100)] {
            let what = format_args!("a cube of 2^{log_n} elements in {count} shards");
            self.refused(new(&vec![Lane(0); count], log_n, op), what)?;
        }
        self.refused(new(&[Lane(0), Lane(backend.lanes())], 6, op), "a cube on a lane that is not there")?;
        let cube = Cube::<C, B>::new(backend, &[Lane(0), Lane(0)], 6, op)?;
        let mut wrong = vec![vec![(Lane(0), 32)], vec![(Lane(0), 32), (Lane(0), 31)], vec![(Lane(0), 32); 4]];
        if last != Lane(0) {
            wrong.push(vec![(Lane(0), 32), (last, 32)]);
        }
        for wrong in wrong {
            let shards = wrong.iter().map(|&(lane, len)| backend.alloc::<Mont>(lane, len));
            let shards = shards.collect::<tandem_ops::Result<Vec<_>>>()?;
            let refused = cube.transform(backend, shards, Way::Direct, &Timeline::none()).map(drop);
            self.refused(refused, format_args!("a cube of two shards with {wrong:?}"))?;
        }
        Ok(())
    }
}

/// Both directions, in all orders.
fn forms() -> Vec<NttOp> {
    let orders = [Order::Natural, Order::BitReversed];
    let of = |direction| {
        let pairs = orders.into_iter().flat_map(move |input| orders.map(|output| (input, output)));
        pairs.map(move |(input, output)| NttOp { direction, coset: Coset::Subgroup, input, output })
    };
    of(Direction::Forward).chain(of(Direction::Inverse)).collect()
}
