//! Figures found by measuring, on two H200 or four H100 of one box (NV18, CUDA 13.0, driver 580), with `tandem bench broadcast --tuning` and the
//! like; docs/design/fabric.md says what they choose.

use super::schedule::GRAIN;
use crate::{Error, Result};
use std::str::FromStr;

/// Choices that have no influence on what a collective computes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tuning {
    /// Where all GPUs reach each other, operations on so many bytes of all PEs together go as messages with flags in every word, when they are
    /// told to queues.
    pub messages: u64,
    /// Parts of up to so many bytes are exchanged without relays and rings where all GPUs reach each other: what trees save
    /// in bytes on a link they lose in waiting.
    pub direct: u64,
    /// `direct` where there are only two PEs, whose trees save no bytes.
    pub direct_pair: u64,
    /// Whether exchanges among more PEs, of any size, go so too where the plan's ways are no faster. With an NVSwitch they are not: eight GPUs
    /// gathered 256 MiB in 784 us over trees, and in 707 directly, with half as many blocks.
    pub straight: bool,
    /// Rows of a table that a PE does at the same time, each by one block: enough to fill a link with stores.
    pub workers: usize,
    /// Bytes of a chunk of a fused kernel.
    pub chunk: u64,
    /// The most bytes of a chunk where more than two PEs pass on what they get: a chunk is there whole before it is passed on, so that small
    /// ones fill a chain of PEs sooner. To four GPUs a broadcast of 1 GiB reached 361 GB/s with 128 KiB and 358 with 256.
    pub relay_chunk: u64,
    /// Chunks of a ring of a fused kernel.
    pub slots: u64,
    /// From so many bytes on copy engines do what only copies between two PEs: they reach 391 GB/s each way where stores reach 365, and cost
    /// some microseconds a chunk. Among more PEs kernels are faster: an all-gather of 1 GiB on four GPUs 428 GB/s, with engines 298. Sums of 1 GiB on two GPUs reached 361 GB/s with kernels of 128 workers, 337 with 64, and 342 with
    /// copy engines.
    pub engines: u64,
    /// Bytes of a chunk for copy engines.
    pub engine_chunk: u64,
    /// Chunks of a ring for copy engines.
    pub engine_slots: u64,
    /// Up to so many bytes the resident kernel does what [`super::super::Collectives::now`] asks for: it saves a launch.
    pub resident: u64,
    /// `resident` for all that one PE sends to several others, or gets from them: they go over its link one after the other, and along a chain of
    /// PEs at once. To eight GPUs 16 MiB took 335 us so, and over a chain, queued, 80.
    pub resident_root: u64,
    /// `resident` where a PE has several things to do, one after the other: to all PEs 1 MiB took 14 us and 16 MiB 58, and on copy engines
    /// 23 and 49.
    pub resident_rounds: u64,
    /// From so many bytes on, what it copies from one GPU to another also takes the way through host memory: 16 MiB 357 GB/s, 333
    /// without; 64 MiB 396 and 365; nothing is gained with 4 MiB.
    pub resident_split: u64,
    /// How long it stays without work.
    pub linger_ns: u64,
    /// Whether copies from one GPU also take the way through host memory.
    pub through_host: bool,
    /// Bytes of a chunk on that way: 4 MiB reached 439 GB/s with 1 GiB, 2 MiB 431, 1 MiB 371.
    pub host_chunk: u64,
    /// The share that the way through host memory gets at first, of what the plan gives it; it adapts.
    pub host_share: f64,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            messages: 512 << 10,
            direct: 1 << 20,
            direct_pair: 16 << 20,
            straight: true,
            workers: 128,
            chunk: 256 << 10,
            relay_chunk: 128 << 10,
            slots: 4,
            engines: 96 << 20,
            engine_chunk: 16 << 20,
            engine_slots: 3,
            resident: 80 << 20,
            resident_root: 24 << 20,
            resident_rounds: 2 << 20,
            resident_split: 8 << 20,
            linger_ns: 200_000,
            through_host: true,
            host_chunk: 4 << 20,
            host_share: 0.82,
        }
    }
}

/// Of the usual one, with other choices: `workers=64,engines=never,resident_split=16M`. Bytes may have the units K, M and G.
impl FromStr for Tuning {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut tuning = Self::default();
        for choice in text.split(',') {
            let set = choice.split_once('=').and_then(|(name, value)| tuning.set(name.trim(), value.trim()));
            let names = "messages, direct, direct_pair, straight, workers, chunk, relay_chunk, slots, engines, engine_chunk, engine_slots, resident, \
                         resident_root, resident_rounds, resident_split, linger_ns, through_host, host_chunk or host_share";
            set.ok_or_else(|| Error::invalid("tuning", format!("found {choice:?}, expected NAME=VALUE of {names}")))?;
        }
        Ok(tuning)
    }
}

impl Tuning {
    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        match name {
            "messages" => self.messages = number(value)?,
            "direct" => self.direct = number(value)?,
            "direct_pair" => self.direct_pair = number(value)?,
            "straight" => self.straight = value.parse().ok()?,
            "workers" => self.workers = number(value)?.clamp(1, 1024) as usize,
            "chunk" => self.chunk = number(value)?,
            "relay_chunk" => self.relay_chunk = number(value)?,
            "slots" => self.slots = number(value)?,
            "engines" => self.engines = number(value)?,
            "engine_chunk" => self.engine_chunk = number(value)?,
            "engine_slots" => self.engine_slots = number(value)?,
            "resident" => self.resident = number(value)?,
            "resident_root" => self.resident_root = number(value)?,
            "resident_rounds" => self.resident_rounds = number(value)?,
            "resident_split" => self.resident_split = number(value)?,
            // A kernel that does not end would hold up the device.
            "linger_ns" => self.linger_ns = number(value)?.min(1_000_000_000),
            "through_host" => self.through_host = value.parse().ok()?,
            "host_chunk" => self.host_chunk = number(value)?,
            "host_share" => self.host_share = value.parse().ok().filter(|share| (0.0..=2.0).contains(share))?,
            _ => return None,
        }
        Some(())
    }
}

/// `never`, or a number with or without a unit.
fn number(text: &str) -> Option<u64> {
    if text == "never" {
        return Some(u64::MAX);
    }
    let digits = text.trim_end_matches(['K', 'M', 'G']);
    let unit = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// The bytes of a chunk where PEs pass on what they get, of an operation on `bytes`: an eighth of a worker's part, within bounds. On four GPUs a
/// broadcast of 16 MiB took 0.083 ms with 64 KiB, 0.1 with 256, 0.089 with 16; of 64 MiB 0.23, 0.27 and 0.3.
pub(crate) fn relay_chunk(tuning: &Tuning, bytes: u64, workers: usize) -> u64 {
    let most = tuning.relay_chunk.min(tuning.chunk);
    let part = bytes / workers.max(1) as u64;
    (part / 8 / GRAIN * GRAIN).max(RELAY_LEAST).min(most)
}

/// Smaller chunks cost more in waiting than they gain.
const RELAY_LEAST: u64 = 64 << 10;

/// Blocks of the resident kernel for what goes over the links.
pub(crate) const RESIDENT_BLOCKS: usize = 64;
/// Those where a copy takes the way through host memory too, and behind them those for that way: 16 MiB took 47.4 us with 40 and 32, 48.4 with
/// 48 and 32, 47.9 with 32 and 32, 48.5 with 40 and 40, 56 with 64 and 16, all with 8 % through host memory.
pub(crate) const SPLIT_BLOCKS: usize = 40;
pub(crate) const STAGED_BLOCKS: usize = 32;
/// Bounds of the share of that way.
pub(crate) const STAGED_SHARES: (f64, f64) = (0.005, 0.2);

/// Where the share of that way begins: 0.08 was best for 16 MiB and 0.11 for 64 MiB, as the way takes some microseconds for anything at all.
pub(crate) fn staged_share(bytes: u64) -> f64 {
    (0.12 - 0.12 * 5.3 * f64::from(1 << 20) / bytes.max(1) as f64).clamp(STAGED_SHARES.0, STAGED_SHARES.1)
}

/// Blocks of the resident kernel that do a row of so many bytes. More fill the links sooner, and fewer are told and waited for sooner:
/// the least time of 1, 2, 4, ... 128 blocks for 4 KiB to 16 MiB, pushed and combined. 1 MiB took 7.2 us with 24 or 32 and 7.4 with 64.
pub(crate) fn resident_blocks(bytes: u64) -> usize {
    let kib = bytes >> 10;
    match kib {
        0..=64 => (kib / 8).max(1) as usize,
        65..=2047 => (kib / 16).clamp(8, 32) as usize,
        _ => RESIDENT_BLOCKS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_that_are_passed_on_are_small() {
        let usual = Tuning::default();
        let chunk = |mib: u64| relay_chunk(&usual, mib << 20, 128) >> 10;
        assert_eq!([1, 16, 64, 96, 128, 1024].map(chunk), [64, 64, 64, 96, 128, 128]);
        // A chunk is never larger than one that is not passed on, and workers are never none.
        assert_eq!(relay_chunk(&Tuning { chunk: 4096, ..usual }, 1 << 30, 128), 4096);
        assert_eq!(relay_chunk(&usual, 0, 0), RELAY_LEAST);
        assert_eq!(relay_chunk(&usual, (1 << 20) + 8 * 24, 1) % GRAIN, 0);
    }

    #[test]
    fn choices_are_read() {
        let usual = Tuning::default();
        let found: Tuning =
            "workers=64, engines=never,resident_split=16M,through_host=false,host_share=0.5".parse().unwrap();
        let resident_split = 16 << 20;
        let wanted =
            Tuning { workers: 64, engines: u64::MAX, resident_split, through_host: false, host_share: 0.5, ..usual };
        assert_eq!(found, wanted);
        for bad in [
            "",
            "workers",
            "workers=",
            "workers=-1",
            "worker=3",
            "chunk=1T",
            "chunk=1MM",
            "host_share=nan",
            "slots=99999999999G",
        ] {
            let text = bad.parse::<Tuning>().unwrap_err().to_string();
            assert!(text.contains("expected NAME=VALUE"), "{text}");
        }
    }

    #[test]
    fn more_bytes_take_a_larger_share_of_the_way_through_host_memory() {
        let shares = [0, 1, 8 << 20, 16 << 20, 64 << 20, u64::MAX].map(staged_share);
        assert!(
            shares.windows(2).all(|w| w[0] <= w[1]) && shares[0] == STAGED_SHARES.0 && shares[5] <= 0.12,
            "{shares:?}"
        );
        assert!((shares[3] - 0.08).abs() < 0.005 && (shares[4] - 0.11).abs() < 0.005, "{shares:?}");
    }

    #[test]
    fn more_bytes_take_no_fewer_blocks() {
        assert_eq!([0, 1, 4096, 64 << 10, 1 << 20, u64::MAX].map(resident_blocks), [1, 1, 1, 8, 32, 64]);
        let blocks: Vec<usize> = (0..4000).map(|i| resident_blocks(i * 1000)).collect();
        assert!(blocks.windows(2).all(|w| w[0] <= w[1]) && blocks.iter().all(|b| *b <= RESIDENT_BLOCKS));
    }
}
