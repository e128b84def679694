//! Transforms on any device, for measurements, with neither the field nor the device in any type.

use super::ntt_batch::Batching;
use super::ntt_input::Input;
use ark_ff::Field;
use tandem_engine::gpus::{self, Opened};
use tandem_engine::{DeviceChoice, DeviceReport, Error, Result};
use tandem_ops::{
    BabyBear, Bls12_381, Bn254, Coset, Direction, FieldId, Goldilocks, Lane, NttField, NttOp, NttSpread, Order, Spread,
};

/// Sizes that a measurement may ask for: 2^1 to 2^32.
const LOG_SIZES: std::ops::RangeInclusive<u32> = 1..=32;
/// Values of a transform that are compared with the polynomial's.
const CHECKED: usize = 8;

/// A device that transforms.
pub(crate) struct Transformer {
    on: Box<dyn Transforming>,
    report: DeviceReport,
}

/// Times of transforms.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Transformed {
    /// Of each transform, by the devices' clocks: of the lane that took longest.
    pub(crate) seconds: Vec<f64>,
    /// Over how many lanes it was spread.
    pub(crate) lanes: usize,
}

impl Transformer {
    /// Opens the devices of `choice`.
    ///
    /// # Errors
    /// As [`tandem_engine::Engine::open`].
    pub(crate) fn open(choice: &DeviceChoice) -> Result<Self> {
        let (opened, why) = gpus::open(choice, usize::MAX)?;
        let on: Box<dyn Transforming> = match opened {
            Opened::Cpu(cpu) => Box::new(cpu),
            Opened::Cuda(cuda) => Box::new(cuda),
        };
        let info = on.info();
        Ok(Transformer { on, report: DeviceReport { kind: info.kind, lanes: info.lane_names, why } })
    }

    pub(crate) fn batching(&self) -> &dyn Batching {
        &*self.on
    }

    /// What was opened.
    pub(crate) fn report(&self) -> &DeviceReport {
        &self.report
    }

    /// How long each of `runs` forward transforms of 2^`log_n` elements of the field took that lie on the device, from natural to
    /// bit-reversed order, on as many lanes as is fastest. Some values of one are checked first.
    ///
    /// # Errors
    /// The size is out of range or does not fit; a value is wrong.
    pub(crate) fn bench(&self, field: FieldId, log_n: u32, runs: usize) -> Result<Transformed> {
        self.on.spread(field, log_n, runs)
    }
}

/// A backend without its type.
trait Transforming: Batching {
    fn info(&self) -> tandem_ops::Info;
    fn spread(&self, field: FieldId, log_n: u32, runs: usize) -> Result<Transformed>;
}

impl<B> Transforming for B
where
    B: NttSpread<Bn254> + NttSpread<Bls12_381> + NttSpread<Goldilocks> + NttSpread<BabyBear>,
{
    fn info(&self) -> tandem_ops::Info {
        tandem_ops::Backend::info(self)
    }
    fn spread(&self, field: FieldId, log_n: u32, runs: usize) -> Result<Transformed> {
        match field {
            FieldId::Bn254 => bench::<Bn254, B>(self, log_n, runs),
            FieldId::Bls12_381 => bench::<Bls12_381, B>(self, log_n, runs),
            FieldId::Goldilocks => bench::<Goldilocks, B>(self, log_n, runs),
            FieldId::BabyBear => bench::<BabyBear, B>(self, log_n, runs),
        }
    }
}

/// Puts a vector into memory of `backend`, in natural order, by one inverse transform.
fn upload<F: NttField, B: NttSpread<F>>(
    input: &Input<F>,
    spread: Spread,
    backend: &B,
) -> Result<Vec<B::Buf<F::Element>>> {
    let shard = |s| backend.alloc(Lane(s), spread.len());
    let mut shards = (0..spread.shards()).map(shard).collect::<tandem_ops::Result<Vec<_>>>()?;
    // All values that are not zero are those of the first shard.
    backend.write(&mut shards[0], 0, &input.spectrum(0)?)?;
    let mut all: Vec<_> = shards.iter_mut().collect();
    NttSpread::<F>::ntt_spread(backend, &mut all, input.to_coefficients(Order::Natural))?;
    Ok(shards)
}

fn bench<F: NttField, B: NttSpread<F>>(backend: &B, log_n: u32, runs: usize) -> Result<Transformed> {
    let root = F::root_of_unity(log_n).filter(|_| LOG_SIZES.contains(&log_n)).ok_or_else(|| {
        let most = (1..=*LOG_SIZES.end()).rev().find(|&k| F::root_of_unity(k).is_some()).unwrap_or(0);
        Error::input(format!("size 2^{log_n}: expected 2^{} to 2^{most} for {}", LOG_SIZES.start(), F::FIELD))
    })?;
    let lanes = NttSpread::<F>::ntt_lanes(backend, log_n);
    let spread = Spread { log_n, log_shards: lanes.ilog2() };
    let input = Input::<F>::new(log_n, log_n - spread.log_shards);
    let mut shards = upload(&input, spread, backend)?;
    let mut all: Vec<_> = shards.iter_mut().collect();
    let forward = NttOp {
        direction: Direction::Forward,
        coset: Coset::Subgroup,
        input: Order::Natural,
        output: Order::BitReversed,
    };
    NttSpread::<F>::ntt_spread(backend, &mut all, forward)?;
    for i in 0..CHECKED {
        // Spread over all shards and, by the golden ratio, over all of their places.
        let k = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(i as u64 & 1) as usize & ((1 << log_n) - 1);
        let shard = &all[k % lanes];
        let place = tandem_ops::naive::place(Order::BitReversed, k / lanes, log_n - spread.log_shards);
        let got = backend.download(&backend.copy(shard, place..place + 1, Lane(k % lanes))?)?.wait()?;
        if got.first() != Some(&F::element(input.value(0, root.pow([k as u64])))) {
            let what = format!("value {k} of a transform of 2^{log_n} elements is wrong: nothing to measure");
            return Err(Error::Device(what));
        }
    }
    backend.take_spans()?;
    for _ in 0..=runs {
        let spans: Vec<_> = (0..lanes).map(|lane| backend.begin(Lane(lane), "transform")).collect();
        NttSpread::<F>::ntt_spread(backend, &mut all, forward)?;
        spans.into_iter().for_each(|span| backend.end(span));
    }
    let spans = backend.take_spans()?;
    // The first run warms up.
    let longest = |run: usize| {
        let of_lane = |lane| spans.iter().filter(move |span| span.lane == Lane(lane)).nth(run);
        (0..lanes).filter_map(of_lane).map(|span| span.duration_us / 1e6).fold(0.0, f64::max)
    };
    Ok(Transformed { seconds: (1..=runs).map(longest).collect(), lanes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_ops::{cpu::Cpu, naive, Backend};

    /// The vector on the device is the one that the values are of, on one lane and on four.
    #[test]
    fn values_are_those_of_the_vector() {
        let backend = Cpu::new(4);
        for (log_n, log_shards, log_period) in [(1, 0, 3), (5, 0, 5), (6, 2, 2), (6, 2, 4), (9, 1, 4), (12, 2, 10)] {
            let spread = Spread { log_n, log_shards };
            let input = Input::<Bn254>::new(log_n, log_period);
            let shards = upload(&input, spread, &backend).unwrap();
            let parts: Vec<_> = shards.iter().map(|shard| backend.download(shard).unwrap().wait().unwrap()).collect();
            let vector = spread.collect(Order::Natural, &parts);
            let vector: Vec<_> = vector.into_iter().map(<Bn254 as NttField>::value).collect();
            let root = <Bn254 as NttField>::root_of_unity(log_n).unwrap();
            let (input_order, output) = (Order::Natural, Order::Natural);
            let natural = NttOp { direction: Direction::Forward, coset: Coset::Subgroup, input: input_order, output };
            assert!((0..1 << log_n).all(|i| vector[i] == input.coefficient(0, i)), "{spread:?}");
            for k in [0, 1, (1 << log_n) - 1] {
                assert_eq!(
                    naive::ntt_at::<Bn254>(&vector, natural, k),
                    Some(input.value(0, root.pow([k as u64]))),
                    "{spread:?}, {k}"
                );
            }
        }
    }

    #[test]
    fn every_device_is_measured() {
        for device in ["cpu", "sim:3"] {
            let on = Transformer::open(&device.parse().unwrap()).unwrap();
            for field in [FieldId::Bn254, FieldId::Bls12_381, FieldId::Goldilocks, FieldId::BabyBear] {
                for log_n in [1, 2, 9] {
                    let times = on.bench(field, log_n, 2).unwrap();
                    assert!(times.seconds.len() == 2 && times.lanes == 1, "{times:?}");
                }
            }
            for (field, log_n) in
                [(FieldId::Bn254, 0), (FieldId::Bn254, 29), (FieldId::Bls12_381, 33), (FieldId::BabyBear, 28)]
            {
                assert_eq!(on.bench(field, log_n, 1).unwrap_err().exit_status(), 2);
            }
        }
    }
}
