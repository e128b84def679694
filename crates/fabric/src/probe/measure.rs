//! What the links of this machine carry, by copies that take a few milliseconds each.

use crate::{HostLinks, OneSided, Result, Team};
use std::time::Instant;
use tandem_cuda::Pinned;

/// Bytes of a copy.
const BYTES: usize = 256 << 20;
/// Of pretend PEs, which only show that it works.
const PRETEND_BYTES: usize = 1 << 20;
/// Copies that are timed together, after one to warm up.
const COPIES: usize = 8;

/// GB/s (10^9 bytes a second).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Measured {
    /// From GPU to GPU, alone; `None` on the diagonal and where there is no way.
    pub copy: Vec<Vec<Option<f64>>>,
    /// From GPU to GPU while the other copies back: each way.
    pub both_ways: Vec<Vec<Option<f64>>>,
    /// By GPU: from page-locked host memory over its own slot, and to it.
    pub host: Vec<(f64, f64)>,
    /// By GPU: from page-locked host memory over the slots of all, and to it.
    pub all_links: Vec<(f64, f64)>,
}

/// Measures the pairs and the host links of a team.
///
/// # Errors
/// Too little memory; a device failed.
pub fn measure(team: &Team) -> Result<Measured> {
    let n = team.size();
    let bytes = if team.is_cuda() { BYTES } else { PRETEND_BYTES };
    let (from, to) = (team.alloc::<u8>(bytes)?, team.alloc::<u8>(bytes)?);
    let rate = |seconds: f64| (bytes * COPIES) as f64 / seconds / 1e9;
    // The directions start together and each has its own queue; the time is that of all.
    let copies = |pairs: &[(usize, usize)]| -> Result<f64> {
        let run = |count: usize| -> Result<()> {
            for _ in 0..count {
                pairs.iter().try_for_each(|&(a, b)| team.queue(a).put(&to, &from, b))?;
            }
            pairs.iter().try_for_each(|&(a, _)| team.queue(a).synchronize())
        };
        run(1)?;
        let begun = Instant::now();
        run(COPIES)?;
        Ok(rate(begun.elapsed().as_secs_f64()))
    };
    let mut measured =
        Measured { copy: vec![vec![None; n]; n], both_ways: vec![vec![None; n]; n], ..Measured::default() };
    for a in 0..n {
        for b in (0..n).filter(|&b| b != a && team.reaches(a, b).is_ok()) {
            measured.copy[a][b] = Some(copies(&[(a, b)])?);
            if a < b && team.reaches(b, a).is_ok() {
                let both = copies(&[(a, b), (b, a)])?;
                (measured.both_ways[a][b], measured.both_ways[b][a]) = (Some(both), Some(both));
            }
        }
    }
    let device = team.queue(0).stream().map(|stream| stream.device());
    let mut pinned = device.map(|device| Pinned::new(device, bytes)).transpose()?;
    let mut plain = if pinned.is_none() { vec![0x5a; bytes] } else { Vec::new() };
    let host = pinned.as_mut().map_or(&mut plain[..], |memory| memory.bytes());
    let mut host_rate = |links: &HostLinks, pe: usize, is_upload: bool| -> Result<f64> {
        let mut once = || match is_upload {
            true => links.upload(pe, &to, host),
            false => links.download(pe, &to, host),
        };
        once()?;
        let begun = Instant::now();
        (0..COPIES).try_for_each(|_| once().map(drop))?;
        Ok(rate(begun.elapsed().as_secs_f64()))
    };
    let all = HostLinks::new(team).for_all();
    for pe in 0..n {
        let own = HostLinks::new(&team.split(&[pe])?);
        measured.host.push((host_rate(&own, 0, true)?, host_rate(&own, 0, false)?));
        measured.all_links.push((host_rate(&all, pe, true)?, host_rate(&all, pe, false)?));
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    #[test]
    fn pretend_pes_are_measured() {
        let team = Team::sim(3, Options { apart: vec![(0, 2)], ..Options::default() }).unwrap();
        let measured = measure(&team).unwrap();
        let has = |a: usize, b: usize| measured.copy[a][b].is_some_and(|rate| rate > 0.0);
        assert!(has(0, 1) && has(1, 0) && has(1, 2) && !has(0, 0) && !has(0, 2));
        assert!(measured.both_ways[0][1].is_some() && measured.both_ways[0][2].is_none());
        assert_eq!((measured.host.len(), measured.all_links.len()), (3, 3));
        assert!(measured.host.iter().chain(&measured.all_links).all(|(up, down)| *up > 0.0 && *down > 0.0));
    }
}
