//! What a key and its proofs take of memory, told before any of it is taken.
//!
//! A key itself is counted exactly ([`KeyInfo::device_bytes`]). What a proof takes beside it, and the host on the way, is bounded by bytes
//! for each row, wire and scalar: on the CPU they lie up to a half above what proofs are seen to take.

use crate::key::Form;
use crate::{key_info, KeyInfo, Protocol, Result};
use std::path::Path;
use tandem_formats::ParamsFile;
use tandem_groth16::plan::{memory_plan, schedule, working_set, Layout, Planned, PointBytes};
use tandem_groth16::{Queries, Shape};
use tandem_ops::{with_curve, Bls12_381, Curve, CurveId, Group, Lane};

/// Bytes of a field element.
const SCALAR: u64 = 32;

/// Memory that one proof takes, its key counted in, in bytes. What the program itself takes, some 20 MiB, is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyMemory {
    /// Of all GPUs together, beside a context of some 0.5 GiB on each: what is enough. Where more is free, sums and tables of multiples take
    /// more.
    pub gpus: u64,
    /// The least of one GPU with which it proves: points then come in pieces, of PLONK and FFLONK polynomials, too. `None` of a key with matrices,
    /// which has to be there.
    pub gpu_least: Option<u64>,
    /// Of the host where GPUs prove.
    pub beside_gpus: u64,
    /// Of the host where a GPU has no more than the least: of PLONK and FFLONK what comes to it lies there, page-locked.
    pub beside_gpu_least: Option<u64>,
    /// Of the host where the CPU makes one proof. Of a Groth16 key it then holds no points but those of the sum that it works on, or, where
    /// there is less memory, a piece of them.
    pub cpu: u64,
    /// Of the host where the CPU holds the key, to make one proof after the other.
    pub holding_key: u64,
}

/// What a protocol takes for each row of the domain beside a key on a device, in bytes.
struct OfRow {
    /// Powers of tau, which are checked.
    powers: u64,
    /// Made on the way while a key is loaded.
    load: u64,
    /// Of a proof on the CPU: its vectors, the scalars of a sum and their digits.
    on_cpu: u64,
    /// What runs beside the threads of a sum, and takes as much as one of them: PLONK verifies beside its last ones.
    more_threads: u64,
}

/// An entry of a Groth16 key's matrices in its file, and where it lies in memory: a column and the number of its value, before and after it is put
/// in its place.
const ENTRY: u64 = 44;
const INDEXED: u64 = 2 * (4 + 4);

/// A scalar of a sum on the CPU, by its absolute value, its index and its sign.
const TAKEN_APART: u64 = SCALAR + 4;

/// A scalar's digit in a window, and its place in the order of digits; windows of a sum, at most.
const SORTED: u64 = 4 + 4;
const WINDOWS: u64 = 20;

/// Roots of unity for each row: twice as many, of five words each where transforms go eight at a time.
const ROOTS: u64 = 2 * 5 * 8;

/// What a thread of the CPU adds up at a time of a sum, and what it needs for that.
fn of_threads(more: u64) -> u64 {
    let of_one = if tandem_ops::cpu::is_wide() { 2 << 20 } else { 1 << 20 };
    (tandem_ops::threads::count() as u64 + more) * of_one
}

/// Of a point of G1.
fn g1_bytes(curve: CurveId) -> u64 {
    with_curve!(curve, C => size_of::<<<C as Curve>::G1 as Group>::Point>() as u64)
}

/// Of a key on the host, where each row has an addition: the addition, its number and its level.
const ADDITION: u64 = 72 + 4 + 4;

/// Of a PLONK or FFLONK key's file while it is loaded: eight polynomials, three columns and an addition.
const HELD: u64 = 8 * SCALAR + 3 * 4 + 72;

/// Of a power of tau while it is checked on the host: a point of either curve, a factor and its digits.
const CHECKED: u64 = 96 + SCALAR + 3 * SCALAR;

/// Powers of tau that are checked at a time, at most.
const CHECKED_MAX: u64 = 1 << 20;

/// Blocks of a key's file that threads read at a time; PLONK and FFLONK read several sections side by side.
const READ: u64 = 2 << 20;

/// Of a proof on the host where GPUs prove: signals of additions.
const BESIDE_GPUS: u64 = 2 * SCALAR;

const PLONK: OfRow = OfRow { powers: 1, load: 5 * SCALAR + 2 * 4, on_cpu: 30 * SCALAR, more_threads: 1 };

/// Polynomials have up to nine coefficients for each row.
const FFLONK: OfRow = OfRow { powers: 9, load: (8 + 5) * SCALAR + 2 * 4, on_cpu: 16 * 9 * SCALAR, more_threads: 0 };

impl KeyInfo {
    /// What one proof with the key takes of memory.
    pub fn memory(&self) -> KeyMemory {
        let (rows, wires) = (self.domain as u64, self.variables as u64);
        let (key, witness) = (self.device_bytes(), 2 * wires * SCALAR);
        let (of_protocol, working, (gpu_least, to_come)) = match self.protocol {
            Protocol::Groth16 => {
                let shape = Shape { variables: self.variables, publics: self.publics, domain: self.domain };
                let points = self.point_bytes();
                let entries = self.file_bytes.saturating_sub(points);
                let cpu = self.groth16_on_cpu(entries, witness);
                return KeyMemory {
                    gpus: key.saturating_add(working_set(shape, self.variables.max(self.domain))),
                    gpu_least: None,
                    // The matrices are made of the file's entries.
                    beside_gpus: (2 * self.file_bytes).max(witness),
                    beside_gpu_least: None,
                    cpu,
                    holding_key: cpu.saturating_add(points),
                };
            }
            Protocol::Plonk => with_curve!(self.curve, C => {
                let working = tandem_plonk::working_bytes::<C>(self.domain);
                (PLONK, working, tandem_plonk::least_bytes::<C>(self.domain))
            }),
            Protocol::Fflonk => {
                let working = tandem_plonk::fflonk::working_bytes(self.domain);
                (FFLONK, working, tandem_plonk::fflonk::least_bytes(self.domain))
            }
        };
        let of = |bytes: u64| rows.saturating_mul(bytes);
        let checked = of(of_protocol.powers).min(CHECKED_MAX) * CHECKED;
        let load = 3 * READ + of(HELD).saturating_add((of(of_protocol.load) + of(ADDITION)).max(checked));
        // Additions go to the device, of whose memory they are a part of the key; those of few keys stay on the host.
        let on_host = of(ADDITION) + witness;
        let cpu = key + witness + of_threads(of_protocol.more_threads) + load.max(of(of_protocol.on_cpu));
        let beside_gpus = on_host + load.max(of(BESIDE_GPUS));
        KeyMemory {
            gpus: key.saturating_add(working),
            gpu_least: Some(gpu_least),
            beside_gpus,
            beside_gpu_least: Some(beside_gpus.saturating_add(to_come)),
            cpu,
            holding_key: cpu,
        }
    }

    /// What one proof takes with a key without matrices, of the wires of which so many have points in A and in B, as its own plan has it.
    fn memory_of_params(&self, a: usize, b: usize) -> KeyMemory {
        type C = Bls12_381;
        let shape = Shape { variables: self.variables, publics: self.publics, domain: self.domain };
        let (queries, g1) = (Queries::picked(shape, a, b), g1_bytes(C::ID));
        let schedule = schedule(C::ID, queries, 1, Layout::Auto);
        let of = Planned {
            queries,
            schedule: &schedule,
            points: PointBytes { g1, g2: 2 * g1 },
            sum: &tandem_ops_cuda::sum_bytes::<C>,
            may_wait: true,
            may_cut: true,
        };
        let plan = |limit| memory_plan(&of, (Lane(0), limit));
        // The assignment as it is copied, and the sides of the rows.
        let (rows, witness) = (self.domain as u64 * SCALAR, self.variables as u64 * SCALAR);
        let cpu = self.groth16_on_cpu(0, 2 * witness).saturating_add(2 * rows);
        KeyMemory {
            gpus: least(|limit| plan(limit).points_stay),
            gpu_least: Some(least(|limit| plan(limit).fits())),
            beside_gpus: witness + 2 * rows,
            beside_gpu_least: None,
            cpu,
            holding_key: cpu.saturating_add(self.file_bytes),
        }
    }

    /// Bytes of the points of a Groth16 key's sections.
    fn point_bytes(&self) -> u64 {
        let (rows, wires) = (self.domain as u64, self.variables as u64);
        // A, B1 and L in G1, B2 in G2, which takes twice as much.
        (5 * wires + rows).saturating_mul(g1_bytes(self.curve))
    }

    /// What one Groth16 proof takes on the CPU where points stay in the file: the matrices and the witness, and beside them what the greatest
    /// of its steps does.
    fn groth16_on_cpu(&self, entries: u64, witness: u64) -> u64 {
        let (rows, wires) = (self.domain as u64, self.variables as u64);
        let threads = tandem_ops::threads::count() as u64;
        let g1 = g1_bytes(self.curve);
        let matrices = entries / ENTRY * INDEXED + 2 * rows * 4;
        // Windows that threads work on at once, of which there are no more than that.
        let windows = SORTED * threads.min(WINDOWS);
        let sum_over_wires = wires * (2 * g1 + 2 * TAKEN_APART + windows);
        let transforms = rows * (3 * SCALAR + ROOTS + SCALAR);
        let sum_over_rows = rows * (ROOTS + g1 + TAKEN_APART + windows);
        let steps = (of_threads(0) + sum_over_wires.max(sum_over_rows)).max(transforms).max(entries);
        (matrices + witness + steps).saturating_add(READ)
    }
}

/// What one proof takes of memory with the key in a file, told from its header.
///
/// # Errors
/// As [`key_info`].
pub fn key_memory(path: &Path) -> Result<KeyMemory> {
    let info = key_info(path)?;
    match Form::of_file(path)? {
        Form::Params => {
            let sizes = ParamsFile::open(path)?.outline.sizes();
            Ok(info.memory_of_params(sizes.a as usize, sizes.b as usize))
        }
        Form::Zkey(_) => Ok(info.memory()),
    }
}

/// The least number of bytes that is enough, to a MiB; where less is, more is, too.
fn least(is_enough: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, 1);
    while !is_enough(high << 20) && high < 1 << 40 {
        (low, high) = (high, 2 * high);
    }
    while high - low > 1 {
        let middle = low.midpoint(high);
        if is_enough(middle << 20) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high << 20
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_that_is_enough_is_found() {
        for mib in [1, 2, 3, 1000, 12345, 1 << 30, (1 << 30) + 1, 1 << 35] {
            assert_eq!(least(|bytes| bytes >= mib << 20), mib << 20);
        }
    }

    /// The largest of Filecoin's: its plan says what is enough, and a .zkey of these sizes would take more.
    #[test]
    fn a_key_of_filecoin_is_foretold_by_its_plan() {
        let info = KeyInfo {
            protocol: Protocol::Groth16,
            curve: CurveId::Bls12_381,
            variables: 130_170_221,
            publics: 327,
            domain: 1 << 27,
            file_bytes: 47_373_928_632,
            has_circuit: false,
        };
        let gib = |bytes: u64| bytes >> 30;
        let KeyMemory { gpus, gpu_least, beside_gpus, cpu, .. } = info.memory_of_params(129_753_620, 33_112_282);
        assert!((60..80).contains(&gib(gpus)), "{} GiB", gib(gpus));
        assert!((14..24).contains(&gib(gpu_least.unwrap())), "{} GiB", gib(gpu_least.unwrap()));
        assert_eq!(gib(beside_gpus), 11);
        assert!(gpus < info.memory().gpus && cpu > beside_gpus);
        // Small ones, and one without points in B.
        for (variables, domain, a, b) in [(2, 2, 2, 0), (100, 64, 50, 100)] {
            let small = KeyInfo { variables, publics: 1, domain, file_bytes: 10_000, ..info.clone() };
            let memory = small.memory_of_params(a, b);
            assert!(memory.gpu_least.unwrap() <= memory.gpus && memory.gpus < 64 << 20, "{memory:?}");
        }
    }

    fn info(protocol: Protocol, log_rows: u32, publics: usize, file_bytes: u64) -> KeyInfo {
        let domain = 1 << log_rows;
        let (curve, variables, has_circuit) = (CurveId::Bn254, domain / 2, true);
        KeyInfo { protocol, curve, variables, publics, domain, file_bytes, has_circuit }
    }

    #[test]
    fn memory_grows_with_rows_and_with_the_file() {
        for protocol in [Protocol::Groth16, Protocol::Plonk, Protocol::Fflonk] {
            let of = |log_rows: u32, times: u64| info(protocol, log_rows, 1, times * (2000 << log_rows)).memory();
            let (one, double) = (of(20, 1), of(21, 1));
            for (small, large) in
                [(one.gpus, double.gpus), (one.beside_gpus, double.beside_gpus), (one.cpu, double.cpu)]
            {
                let ratio = large as f64 / small as f64;
                // Powers of tau are checked some at a time, however many there are.
                let least = if protocol == Protocol::Groth16 { 1.99 } else { 1.8 };
                assert!((least..2.01).contains(&ratio), "{protocol} {ratio}");
            }
            assert!(
                one.holding_key >= one.cpu && (one.cpu >= one.beside_gpus || protocol == Protocol::Groth16),
                "{one:?}"
            );
            // Many public signals: PLONK's files grow by 160 bytes a row and signal, none of which is needed.
            assert_eq!(of(20, 10) == one, protocol != Protocol::Groth16);
        }
    }

    /// The goal of a 2^24 key on one GPU.
    #[test]
    fn a_plonk_key_of_2_to_the_24_fits_in_70_gib() {
        let memory = info(Protocol::Plonk, 24, 1, 1504 << 24).memory();
        assert!(memory.gpus < 70 << 30, "{}", memory.gpus);
        // And in less than a third of that, where the host has what comes.
        let (least, beside) = (memory.gpu_least.unwrap(), memory.beside_gpu_least.unwrap());
        assert!(least < memory.gpus / 3, "{least}");
        assert_eq!(beside - memory.beside_gpus, ((8 * 32 + 64) << 24) + 6 * 64);
    }

    #[test]
    fn no_size_overflows() {
        for protocol in [Protocol::Groth16, Protocol::Plonk, Protocol::Fflonk] {
            let memory = info(protocol, 31, 1 << 20, 1 << 50).memory();
            let least = if protocol == Protocol::Groth16 { 1 << 50 } else { 1000 << 31 };
            assert!(memory.cpu > least, "{memory:?}");
        }
    }
}
