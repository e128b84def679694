//! Transforms as cubes, for measurements: whole, and their exchange alone.

use super::ntt::{check_size, check_values, forward, upload, Transformed};
use super::ntt_input::Input;
use tandem_engine::{Error, Result};
use tandem_ops::ntt::cube::{Cube, Way};
use tandem_ops::ntt::MAX_SHARDS;
use tandem_ops::{Curve, Gather, Lane, NttSpread, Spread, VecOps};

/// How long transforms took, and the exchange of each, by the devices' clocks: of the lane that took longest.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CubeTimes {
    /// Of the transforms.
    pub(crate) whole: Transformed,
    /// Of their exchanges, in seconds.
    pub(crate) exchange: Vec<f64>,
}

/// `runs` forward transforms from natural to bit-reversed order over as many lanes as there are, a power of two. Some values of one are checked
/// first.
pub(crate) fn bench<C: Curve, B: NttSpread<C> + VecOps<C> + Gather>(
    backend: &B,
    log_n: u32,
    way: Way,
    runs: usize,
) -> Result<CubeTimes> {
    check_size::<C>(log_n)?;
    let log_shards = backend.lanes().min(MAX_SHARDS).ilog2();
    if log_n < 2 * log_shards {
        let (lanes, least) = (1 << log_shards, 2 * log_shards);
        return Err(Error::input(format!("size 2^{log_n}: expected 2^{least} or more for a cube on {lanes} lanes")));
    }
    let (spread, lanes) = (Spread { log_n, log_shards }, 1usize << log_shards);
    let op = forward();
    let on: Vec<Lane> = (0..lanes).map(Lane).collect();
    let cube = Cube::<C, B>::new(backend, &on, log_n, op)?;
    let input = Input::<C>::new(log_n, log_n - log_shards);
    let coefficients = upload(&input, spread, backend)?;
    let whole: Vec<_> =
        coefficients.iter().zip(&on).map(|(shard, &lane)| (lane, vec![(shard, 0..spread.len())])).collect();
    let timeline = backend.timeline();
    for run in 0..=runs {
        let shards = backend.join(&whole)?;
        let spans: Vec<_> = on.iter().map(|&lane| timeline.begin(lane, "transform")).collect();
        let shards = cube.transform(backend, shards, way, &timeline)?;
        spans.into_iter().for_each(|span| timeline.end(span));
        if run == 0 {
            check_values(backend, &shards.iter().collect::<Vec<_>>(), &input)?;
        }
    }
    let spans = timeline.take()?;
    // The first run warms up.
    let longest = |name: &str, run: usize| {
        let of_lane = |&lane: &Lane| spans.iter().filter(move |span| span.lane == lane && span.name == name).nth(run);
        on.iter().filter_map(of_lane).map(|span| span.duration_us / 1e6).fold(0.0, f64::max)
    };
    let all = |name| (1..=runs).map(|run| longest(name, run)).collect();
    Ok(CubeTimes { whole: Transformed { seconds: all("transform"), lanes }, exchange: all("exchange") })
}
