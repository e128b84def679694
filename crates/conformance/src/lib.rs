//! One suite for every backend.
//!
//! [`suite!`] makes the tests of one backend. Every primitive is compared with its naive definition at small sizes
//! and at single elements of large ones, and with [`Cpu`] at all elements. A part of the suite
//! counts what it compared, and every part first asks the backend what it is, so that a suite that ran nothing, or
//! ran on something else, does not pass. [`Dual`] compares two backends at every operation of any program.
//!
//! `TANDEM_CONFORMANCE_LOG_N` sets the largest size, 2^14 if unset; a GPU takes 20 and more. Below 10 there are fewer sums, too: a tool
//! that watches every access takes seconds for one. `TANDEM_CONFORMANCE_SHARE=2/8` runs the third of eight shares of the sums and the
//! sorts, which take such a tool longest; all shares together are the whole.
#![forbid(unsafe_code)]

mod batch_inverse;
mod copies;
mod dual;
mod faulty;
mod forward;
mod gather;
mod memory;
mod msm;
mod ntt;
mod plonk_rows;
mod point_ntt;
mod poseidon;
mod reduce;
mod samples;
mod scan;
mod sort;
mod spmv;
mod stepped;
mod sumcheck;
mod vector;

pub use copies::copies;
pub use dual::{Dual, Pair};
pub use faulty::{Fault, Faulty};
pub use stepped::{Script, Step, Stepped};

use std::fmt::Display;
use tandem_ops::{cpu::Cpu, Backend, Buffer, DeviceKind, Error, Lane, Wire};

/// A check that failed, in words.
#[derive(Debug)]
pub struct Failure(pub String);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure(error.to_string())
    }
}

/// Outcome of a part of the suite.
pub type Outcome<T = ()> = Result<T, Failure>;

/// The suite on one backend. Each part can be run by itself.
pub struct Suite<'a, B: Backend> {
    backend: &'a B,
    reference: Cpu,
    log_n: u32,
    checks: u64,
    share: Share,
    /// How many pieces of work were met that go to one share each.
    met: u64,
}

/// One of several shares of the work, each of which a run of its own can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    number: u64,
    of: u64,
}

impl Share {
    /// All there is.
    pub const WHOLE: Share = Share { number: 0, of: 1 };

    /// Reads `NUMBER/OF`, numbers from 0 on; none if it is not one of them.
    pub fn parse(text: &str) -> Option<Self> {
        let (number, of) = text.split_once('/')?;
        let share = Share { number: number.parse().ok()?, of: of.parse().ok()? };
        (share.number < share.of).then_some(share)
    }
}

impl<'a, B: Backend> Suite<'a, B> {
    /// A suite up to the size 2^`log_n`.
    ///
    /// # Errors
    /// The backend is not of this kind, or does not describe its lanes.
    pub fn new(backend: &'a B, kind: DeviceKind, log_n: u32) -> Outcome<Self> {
        let info = backend.info();
        if info.kind != kind {
            return Err(Failure(format!("the suite is for {kind:?}, this backend is {:?}", info.kind)));
        }
        if backend.lanes() == 0 || [info.lane_names.len(), info.free_bytes.len()] != [backend.lanes(); 2] {
            return Err(Failure(format!("{} lanes, described as {info:?}", backend.lanes())));
        }
        Ok(Suite { backend, reference: Cpu::new(1), log_n, checks: 0, share: Share::WHOLE, met: 0 })
    }

    /// A suite that does this share of itself.
    #[must_use]
    pub fn with_share(self, share: Share) -> Self {
        Suite { share, ..self }
    }

    /// Whether the next piece of work belongs to this share.
    fn takes(&mut self) -> bool {
        self.met += 1;
        (self.met - 1) % self.share.of == self.share.number
    }

    /// How many comparisons were made.
    pub fn checks(&self) -> u64 {
        self.checks
    }

    /// Whether a tool watches every access.
    fn is_small(&self) -> bool {
        self.log_n < 10
    }

    fn that(&mut self, holds: bool, what: impl Display) -> Outcome {
        self.checks += 1;
        if holds {
            Ok(())
        } else {
            Err(Failure(what.to_string()))
        }
    }

    /// Checks that `buf` holds `expected`.
    fn holds<T: Wire>(&mut self, buf: &B::Buf<T>, expected: &[T], what: impl Display) -> Outcome {
        let got = self.backend.download(buf)?.wait()?;
        let first = got.iter().zip(expected).position(|(a, b)| a != b);
        let same = first.is_none() && got.len() == expected.len() && buf.len() == expected.len();
        let place = first.unwrap_or(got.len().min(expected.len()));
        self.that(same, format_args!("{what}: wrong from element {place} of {}", expected.len()))
    }

    /// Checks that an operation was refused for what the caller did.
    fn refused<T>(&mut self, result: tandem_ops::Result<T>, what: impl Display) -> Outcome {
        match result {
            Err(Error::Invalid { .. }) => self.that(true, what),
            Err(other) => self.that(false, format_args!("{what}: expected an Invalid error, got: {other}")),
            Ok(_) => self.that(false, format_args!("{what}: was accepted")),
        }
    }

    fn lanes(&self) -> impl Iterator<Item = Lane> {
        (0..self.backend.lanes()).map(Lane)
    }
}

/// The largest size of a run, as its logarithm: `TANDEM_CONFORMANCE_LOG_N`, or 14.
///
/// # Panics
/// The variable is no number from 4 to 26: a run of another size than was asked for would look like the one that was.
pub fn largest() -> u32 {
    let Ok(text) = std::env::var("TANDEM_CONFORMANCE_LOG_N") else { return 14 };
    match text.parse() {
        Ok(log_n @ 4..=26) => log_n,
        _ => panic!("TANDEM_CONFORMANCE_LOG_N={text}: expected a number from 4 to 26"),
    }
}

/// The share that a run does: `TANDEM_CONFORMANCE_SHARE`, or all.
///
/// # Panics
/// The variable names no share.
pub fn share() -> Share {
    let Ok(text) = std::env::var("TANDEM_CONFORMANCE_SHARE") else { return Share::WHOLE };
    Share::parse(&text).unwrap_or_else(|| panic!("TANDEM_CONFORMANCE_SHARE={text}: expected such as 0/8 to 7/8"))
}

/// Runs one part of the suite as a test: panics with the failure, or if the part compared nothing. Without a backend
/// it says why there is none.
pub fn run_part<B: Backend>(
    name: &str,
    kind: DeviceKind,
    backend: Result<B, String>,
    part: impl FnOnce(&mut Suite<'_, B>) -> Outcome,
) {
    let backend = match backend {
        Ok(backend) => backend,
        Err(reason) => return println!("{name}: skipped: {reason}"),
    };
    let outcome = Suite::new(&backend, kind, largest()).and_then(|suite| {
        let mut suite = suite.with_share(share());
        part(&mut suite)?;
        suite.backend.synchronize()?;
        Ok(suite.checks())
    });
    match outcome {
        Ok(0) => panic!("{name}: nothing was compared"),
        Ok(checks) => println!("{name}: {checks} comparisons on {}", backend.info().lane_names.join(", ")),
        Err(Failure(what)) => panic!("{name} on {}: {what}", backend.info().lane_names.join(", ")),
    }
}

/// The tests of one backend: `suite!(name, kind, backend)`. `backend` is evaluated for each test and gives a
/// `Result<B, String>`, the error being the reason to skip it. With `transforms` behind it there are only those of transforms.
#[macro_export]
macro_rules! suite {
    ($name:ident, $kind:expr, $backend:expr) => {
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            $crate::suite!(@part $name, $kind, $backend, memory);
            $crate::suite!(@part $name, $kind, $backend, vector, Bn254, Bls12_381);
            $crate::suite!(@part $name, $kind, $backend, plonk_rows, Bn254, Bls12_381);
            $crate::suite!(@part $name, $kind, $backend, batch_inverse, Bn254, Bls12_381);
            $crate::suite!(@part $name, $kind, $backend, scan, Bn254, Bls12_381);
            $crate::suite!(@part $name, $kind, $backend, point_ntt, Bn254, Bls12_381);
            $crate::suite!(@part $name, $kind, $backend, sumcheck, Bn254, Bls12_381, Goldilocks);
            $crate::suite!(@part $name, $kind, $backend, gather);
            $crate::suite!(@part $name, $kind, $backend, ntt, Bn254, Bls12_381, Goldilocks, BabyBear);
            $crate::suite!(@part $name, $kind, $backend, ntt_products, Bn254, Bls12_381);
            $crate::suite!(@part $name, $kind, $backend, ntt_spread, Bn254, Bls12_381, Goldilocks, BabyBear);
            $crate::suite!(@part $name, $kind, $backend, ntt_cube, Bn254, Bls12_381);
            $crate::suite!(@part $name, $kind, $backend, fft, Complex32, Complex64);
            $crate::suite!(@part $name, $kind, $backend, fft_grid, Complex32, Complex64);
            $crate::suite!(@part $name, $kind, $backend, spmv, Bn254, Bls12_381);
            $crate::suite!(@part $name, $kind, $backend, msm, Bn254, Bls12_381);
            $crate::suite!(@part $name, $kind, $backend, poseidon, Bn254, Bls12_381);
            $crate::suite!(@part $name, $kind, $backend, reduce);
            $crate::suite!(@part $name, $kind, $backend, sort);
        }
    };
    ($name:ident, $kind:expr, $backend:expr, transforms) => {
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            $crate::suite!(@part $name, $kind, $backend, ntt, Bn254, Bls12_381, Goldilocks, BabyBear);
            $crate::suite!(@part $name, $kind, $backend, ntt_products, Bn254, Bls12_381);
            $crate::suite!(@part $name, $kind, $backend, ntt_spread, Bn254, Bls12_381, Goldilocks, BabyBear);
            $crate::suite!(@part $name, $kind, $backend, ntt_cube, Bn254, Bls12_381);
            $crate::suite!(@part $name, $kind, $backend, fft, Complex32, Complex64);
            $crate::suite!(@part $name, $kind, $backend, fft_grid, Complex32, Complex64);
        }
    };
    (@part $name:ident, $kind:expr, $backend:expr, $part:ident) => {
        #[test]
        fn $part() {
            let name = concat!(stringify!($name), " ", stringify!($part));
            $crate::run_part(name, $kind, $backend, |suite| suite.$part());
        }
    };
    (@part $name:ident, $kind:expr, $backend:expr, $part:ident, $($field:ident),+) => {
        mod $part {
            #[allow(unused_imports)]
            use super::*;
            $(
                #[allow(non_snake_case)]
                #[test]
                fn $field() {
                    let name = concat!(stringify!($name), " ", stringify!($part), " ", stringify!($field));
                    $crate::run_part(name, $kind, $backend, |suite| suite.$part::<$crate::fields::$field>());
                }
            )+
        }
    };
}

/// The curves, fields and complex numbers that a suite runs on.
pub mod fields {
    pub use tandem_ops::{BabyBear, Bls12_381, Bn254, Complex32, Complex64, Goldilocks};
}
