//! Transforms on any device, for measurements, with neither the field nor the device in any type.

use super::ntt_batch::Batching;
use super::ntt_cube::{self, CubeTimes};
use super::ntt_input::Input;
use ark_ff::Field;
use tandem_engine::gpus::{self, Opened};
use tandem_engine::{DeviceChoice, DeviceReport, Error, Result};
use tandem_ops::ntt::cube::Way;
use tandem_ops::{
    BabyBear, Backend, Bls12_381, Bn254, Coset, Direction, FieldId, Gather, Goldilocks, Lane, NttField, NttOp,
    NttSpread, Order, Spread, VecOps,
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

    /// As [`Transformer::bench`], as a cube with this way of its exchange, over all lanes.
    ///
    /// # Errors
    /// As there; a field that is not a curve's.
    pub(crate) fn bench_cube(&self, field: FieldId, log_n: u32, way: Way, runs: usize) -> Result<CubeTimes> {
        self.on.cube(field, log_n, way, runs)
    }
}

/// A backend without its type.
trait Transforming: Batching {
    fn info(&self) -> tandem_ops::Info;
    fn spread(&self, field: FieldId, log_n: u32, runs: usize) -> Result<Transformed>;
    fn cube(&self, field: FieldId, log_n: u32, way: Way, runs: usize) -> Result<CubeTimes>;
}

impl<B> Transforming for B
where
    B: NttSpread<Bn254> + NttSpread<Bls12_381> + NttSpread<Goldilocks> + NttSpread<BabyBear>,
    B: VecOps<Bn254> + VecOps<Bls12_381> + Gather,
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
    fn cube(&self, field: FieldId, log_n: u32, way: Way, runs: usize) -> Result<CubeTimes> {
        match field {
            FieldId::Bn254 => ntt_cube::bench::<Bn254, B>(self, log_n, way, runs),
            FieldId::Bls12_381 => ntt_cube::bench::<Bls12_381, B>(self, log_n, way, runs),
            FieldId::Goldilocks | FieldId::BabyBear => {
                Err(Error::input(format!("a cube over {field}; expected bn254 or bls12-381")))
            }
        }
    }
}

/// Puts a vector into memory of `backend`, in natural order, by one inverse transform.
pub(super) fn upload<F: NttField, B: NttSpread<F>>(
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

/// Fails where a measurement may not ask for transforms of 2^`log_n` elements, or there are none.
pub(super) fn check_size<F: NttField>(log_n: u32) -> Result<()> {
    if LOG_SIZES.contains(&log_n) && F::root_of_unity(log_n).is_some() {
        return Ok(());
    }
    let most = (1..=*LOG_SIZES.end()).rev().find(|&k| F::root_of_unity(k).is_some()).unwrap_or(0);
    Err(Error::input(format!("size 2^{log_n}: expected 2^{} to 2^{most} for {}", LOG_SIZES.start(), F::FIELD)))
}

/// What is measured: from natural to bit-reversed order.
pub(super) fn forward<E>() -> NttOp<E> {
    let (direction, coset) = (Direction::Forward, Coset::Subgroup);
    NttOp { direction, coset, input: Order::Natural, output: Order::BitReversed }
}

/// Fails unless some values, in bit-reversed order in shards on as many lanes, are those of the input.
pub(super) fn check_values<F: NttField, B: NttSpread<F>>(
    backend: &B,
    shards: &[&B::Buf<F::Element>],
    input: &Input<F>,
) -> Result<()> {
    let (log_n, lanes) = (input.log_n, shards.len());
    let root = F::root_of_unity(log_n).unwrap_or(F::Ark::ONE);
    for i in 0..CHECKED {
        let k = checked_value(i, log_n);
        let place = tandem_ops::naive::place(Order::BitReversed, k / lanes, log_n - lanes.ilog2());
        let got = backend.download(&backend.copy(shards[k % lanes], place..place + 1, Lane(k % lanes))?)?.wait()?;
        if got.first() != Some(&F::element(input.value(0, root.pow([k as u64])))) {
            let what = format!("value {k} of a transform of 2^{log_n} elements is wrong: nothing to measure");
            return Err(Error::Device(what));
        }
    }
    Ok(())
}

/// The number of the `i`-th of the values that are compared: spread over all shards and, by the golden ratio, over all of their places.
pub(super) fn checked_value(i: usize, log_n: u32) -> usize {
    (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(i as u64 & 1) as usize & ((1 << log_n) - 1)
}

/// How long each of `runs` transforms took on the lane that took longest, after one to warm up. `transform` gets the number of its run.
///
/// # Errors
/// As `transform`; the device failed.
pub(super) fn timed<B: Backend>(
    backend: &B,
    lanes: usize,
    runs: usize,
    mut transform: impl FnMut(usize) -> tandem_ops::Result<()>,
) -> Result<Transformed> {
    let timeline = backend.timeline();
    for run in 0..=runs {
        let spans: Vec<_> = (0..lanes).map(|lane| timeline.begin(Lane(lane), "transform")).collect();
        transform(run)?;
        spans.into_iter().for_each(|span| timeline.end(span));
    }
    let spans = timeline.take()?;
    let longest = |run: usize| {
        let of_lane = |lane| spans.iter().filter(move |span| span.lane == Lane(lane)).nth(run);
        (0..lanes).filter_map(of_lane).map(|span| span.duration_us / 1e6).fold(0.0, f64::max)
    };
    Ok(Transformed { seconds: (1..=runs).map(longest).collect(), lanes })
}

fn bench<F: NttField, B: NttSpread<F>>(backend: &B, log_n: u32, runs: usize) -> Result<Transformed> {
    check_size::<F>(log_n)?;
    let lanes = NttSpread::<F>::ntt_lanes(backend, log_n);
    let spread = Spread { log_n, log_shards: lanes.ilog2() };
    let input = Input::<F>::new(log_n, log_n - spread.log_shards);
    let mut shards = upload(&input, spread, backend)?;
    let mut all: Vec<_> = shards.iter_mut().collect();
    let forward = forward();
    NttSpread::<F>::ntt_spread(backend, &mut all, forward)?;
    check_values(backend, &all.iter().map(|shard| &**shard).collect::<Vec<_>>(), &input)?;
    timed(backend, lanes, runs, |_| NttSpread::<F>::ntt_spread(backend, &mut all, forward))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_ops::{cpu::Cpu, naive};

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

    /// Cubes over as many lanes as a power of two has, by both ways; sizes and fields that have none are refused.
    #[test]
    fn cubes_are_measured_by_either_way() {
        for (device, lanes) in [("cpu", 1), ("sim:3", 2), ("sim:4", 4), ("sim:8", 8)] {
            let on = Transformer::open(&device.parse().unwrap()).unwrap();
            for field in [FieldId::Bn254, FieldId::Bls12_381] {
                for way in [Way::Direct, Way::Host] {
                    let times = on.bench_cube(field, 9, way, 2).unwrap();
                    assert_eq!((times.whole.lanes, times.whole.seconds.len(), times.exchange.len()), (lanes, 2, 2));
                    let within = times.exchange.iter().zip(&times.whole.seconds).all(|(part, all)| part <= all);
                    assert!(within && times.whole.seconds.iter().all(|&seconds| seconds > 0.0), "{times:?}");
                }
            }
            for (field, log_n) in
                [(FieldId::Goldilocks, 9), (FieldId::BabyBear, 9), (FieldId::Bn254, 0), (FieldId::Bn254, 29)]
            {
                assert_eq!(
                    on.bench_cube(field, log_n, Way::Direct, 1).unwrap_err().exit_status(),
                    2,
                    "{field} {log_n}"
                );
            }
            let few = on.bench_cube(FieldId::Bn254, 2 * lanes.ilog2() - u32::from(lanes > 1), Way::Direct, 1);
            assert!(lanes == 1 || few.is_err_and(|e| e.to_string().contains("for a cube on")), "{device}");
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
