//! Reductions: of what lies on one lane or on several, by every way, and of host memory and files.

use crate::{samples, Failure, Outcome, Suite};
use ark_ff::{BigInt, PrimeField};
use rand_chacha::{rand_core::RngCore, ChaCha8Rng};
use std::io::Write;
use tandem_ops::reduce::{shares, ElementKind, Scalar, GROUP_BYTES, TILE_BYTES};
use tandem_ops::{
    naive, Backend, Bls12_381, Bn254, Canonical, Curve, Element, HostData, Lane, Reduce, ReduceOp, ReduceWay,
};

const OPS: [ReduceOp; 3] = [ReduceOp::Sum, ReduceOp::Min, ReduceOp::Max];

/// A kind of elements with samples and an oracle.
trait Sample: Element {
    /// Of every size that there is.
    fn samples(n: usize, rng: &mut ChaCha8Rng) -> Vec<Self::Wire>;
    /// Whether `result` is what the definition, in other arithmetic, makes of the elements.
    fn is_right(op: ReduceOp, elements: &[Self::Wire], result: Self::Wire) -> bool;
}

macro_rules! integers {
    ($($t:ident),+) => {$(
        impl Sample for $t {
            fn samples(n: usize, rng: &mut ChaCha8Rng) -> Vec<$t> {
                // Sums wrap from the third element on.
                (0..n).map(|i| if i % 7 == 3 { i as $t } else { (rng.next_u64() | 1 << 63) as $t }).collect()
            }
            fn is_right(op: ReduceOp, elements: &[$t], result: $t) -> bool {
                let all = elements.iter().copied();
                match op {
                    ReduceOp::Sum => result == all.map(u128::from).sum::<u128>() as $t,
                    ReduceOp::Min => all.min() == Some(result),
                    ReduceOp::Max => all.max() == Some(result),
                }
            }
        }
    )+};
}
integers!(u32, u64);

macro_rules! floats {
    ($($t:ident),+) => {$(
        impl Sample for $t {
            fn samples(n: usize, rng: &mut ChaCha8Rng) -> Vec<$t> {
                let one = |rng: &mut ChaCha8Rng| {
                    // Both signs, and magnitudes from 2^-20 to 2^20.
                    let size = (rng.next_u32() % 41) as i32 - 20;
                    (f64::from(rng.next_u32() as i32) * 2f64.powi(size - 31)) as $t
                };
                (0..n).map(|_| one(rng)).collect()
            }
            fn is_right(op: ReduceOp, elements: &[$t], result: $t) -> bool {
                let all = elements.iter().copied();
                match op {
                    // The bound that `tandem_ops::reduce` states.
                    ReduceOp::Sum => {
                        let exact = naive::float_sum(all.clone().map(f64::from));
                        let sizes: f64 = all.map(|x| f64::from(x.abs())).sum();
                        let groups = (elements.len() * size_of::<$t>()).div_ceil(GROUP_BYTES);
                        let steps = 24.0 + (4096.0 / size_of::<$t>() as f64).log2() + groups as f64;
                        (f64::from(result) - exact).abs() <= steps * f64::from($t::EPSILON) / 2.0 * sizes
                    }
                    ReduceOp::Min => all.reduce(|a, b| if b < a { b } else { a }) == Some(result),
                    ReduceOp::Max => all.reduce(|a, b| if b > a { b } else { a }) == Some(result),
                }
            }
        }
    )+};
}
floats!(f32, f64);

impl<C: Curve> Sample for Scalar<C> {
    fn samples(n: usize, rng: &mut ChaCha8Rng) -> Vec<Canonical> {
        samples::canonical::<C>(&samples::elements::<C>(n, rng))
    }
    fn is_right(op: ReduceOp, elements: &[Canonical], result: Canonical) -> bool {
        let integers = elements.iter().map(|x| BigInt(x.0));
        let expected = match op {
            ReduceOp::Sum => Some(integers.filter_map(C::Fr::from_bigint).sum::<C::Fr>().into_bigint()),
            ReduceOp::Min => integers.min(),
            ReduceOp::Max => integers.max(),
        };
        expected.map(|x| x.0) == Some(result.0)
    }
}

/// Whether two values have equal bits: a number that is none equals itself here.
fn same<T: bytemuck::Pod>(a: &T, b: &T) -> bool {
    bytemuck::bytes_of(a) == bytemuck::bytes_of(b)
}

/// A file without a name.
fn file_of(bytes: &[u8]) -> Outcome<std::fs::File> {
    let written = tempfile::tempfile().and_then(|mut file| file.write_all(bytes).map(|()| file));
    written.map_err(|e| Failure(format!("a temporary file: {e}")))
}

impl<B: Backend> Suite<'_, B> {
    /// Every operation on every kind of elements at sizes around those of rows, tiles and groups, dealt to lanes in several ways.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn reduce(&mut self) -> Outcome
    where
        B: Reduce,
    {
        self.kind::<u32>()?;
        self.kind::<u64>()?;
        self.kind::<f32>()?;
        self.kind::<f64>()?;
        self.kind::<Scalar<Bn254>>()?;
        self.kind::<Scalar<Bls12_381>>()?;
        self.no_numbers::<f32>(f32::NAN, f32::INFINITY, -0.0)?;
        self.no_numbers::<f64>(f64::NAN, f64::INFINITY, -0.0)?;
        self.too_large::<Bn254>()?;
        self.too_large::<Bls12_381>()?;
        self.reduce_refusals()
    }

    fn kind<E: Sample>(&mut self) -> Outcome
    where
        B: Reduce,
    {
        let size = size_of::<E::Wire>();
        let (tile, group, most) = (TILE_BYTES / size, GROUP_BYTES / size, 1usize << self.log_n);
        let mut sizes = vec![0, 1, 2, 3, 255, 256, 257, tile - 1, tile, tile + 1, 5 * tile + 3, most - 1, most + 1];
        // Groups are 16 MiB.
        sizes.push(group + 1);
        if E::KIND == ElementKind::F32 {
            sizes.push(2 * group + tile + 5);
        }
        let elements = E::samples(sizes.iter().copied().max().unwrap_or(0), &mut samples::rng(size as u64));
        for n in sizes {
            // As many as that are dealt in one way, and only added.
            let ops = if n > most + 1 { &OPS[..1] } else { &OPS[..] };
            for &op in ops {
                self.dealt::<E>(op, &elements[..n])?;
            }
        }
        Ok(())
    }

    /// The elements on one lane, in halves, in uneven parts, by every way; in host memory; in a file.
    fn dealt<E: Sample>(&mut self, op: ReduceOp, elements: &[E::Wire]) -> Outcome
    where
        B: Reduce,
    {
        let (n, lanes) = (elements.len(), self.backend.lanes());
        let what = format!("{op:?} of {n} {:?}", E::KIND);
        let bytes: &[u8] = bytemuck::cast_slice(elements);
        if n == 0 && op != ReduceOp::Sum {
            let empty = self.backend.upload(Lane(0), elements)?;
            self.refused(self.backend.reduce::<E>(op, &[&empty], None).and_then(|r| r.wait()), &what)?;
            self.refused(self.backend.reduce::<E>(op, &[], None).and_then(|r| r.wait()), &what)?;
            return self.refused(self.backend.reduce_host::<E>(op, HostData::Memory(bytes)), &what);
        }
        let at_once = self.reference.upload(Lane(0), elements)?;
        let expected = self.reference.reduce::<E>(op, &[&at_once], None)?.wait()?;
        let right = if n == 0 { same(&expected, &E::neutral(op)) } else { E::is_right(op, elements, expected) };
        self.that(right, format_args!("{what}: the CPU's is not that of the definition"))?;

        let halves: Vec<usize> = shares(n, size_of::<E::Wire>(), lanes).into_iter().map(|share| share.end).collect();
        let cuts = [vec![n], halves, vec![0, n / 3, n / 3 + n / 2, n]];
        let is_long = n > (1 << self.log_n) + 1;
        for (i, ends) in cuts.iter().enumerate() {
            let starts = std::iter::once(0).chain(ends.iter().copied());
            let ranges: Vec<_> = starts.zip(ends).map(|(start, &end)| start..end).collect();
            let lane = |part: usize| Lane((part + n) % lanes);
            let upload = |(part, range): (usize, &std::ops::Range<usize>)| {
                self.backend.upload(lane(part), &elements[range.clone()])
            };
            let parts: Vec<_> = ranges.iter().enumerate().map(upload).collect::<tandem_ops::Result<_>>()?;
            let parts: Vec<_> = parts.iter().collect();
            // Only parts that are whole groups give what one part gives: floating-point numbers are added in that order.
            let expected = if i < 2 {
                expected
            } else {
                let parts: Vec<_> = ranges
                    .iter()
                    .map(|r| self.reference.upload(Lane(0), &elements[r.clone()]))
                    .collect::<Result<_, _>>()?;
                self.reference.reduce::<E>(op, &parts.iter().collect::<Vec<_>>(), None)?.wait()?
            };
            for way in [None, Some(ReduceWay::Local), Some(ReduceWay::Peer)] {
                if is_long && way.is_some() && i != 0 {
                    continue;
                }
                let got = self.backend.reduce::<E>(op, &parts, way)?.wait()?;
                self.that(same(&got, &expected), format_args!("{what} in {} parts, {way:?}", parts.len()))?;
            }
        }
        // At an address that is no multiple of anything, in memory that the backend likes best, and from a file.
        let mut moved = vec![0u8];
        moved.extend_from_slice(bytes);
        let mut pinned = self.backend.host_buf::<u8>(bytes.len())?;
        pinned.copy_from_slice(bytes);
        let file = file_of(bytes)?;
        let file = HostData::File { file: &file, bytes: bytes.len() as u64 };
        for (data, kind) in
            [(HostData::Memory(&moved[1..]), "memory"), (HostData::Memory(&pinned), "a buffer"), (file, "a file")]
        {
            let got = self.backend.reduce_host::<E>(op, data)?;
            self.that(same(&got, &expected), format_args!("{what} from {kind}"))?;
        }
        Ok(())
    }

    /// What is no number, infinities and negative zeros.
    fn no_numbers<E: Sample>(&mut self, nan: E::Wire, infinity: E::Wire, zero: E::Wire) -> Outcome
    where
        B: Reduce,
    {
        let most = TILE_BYTES / size_of::<E::Wire>() + 9;
        let plain = E::samples(most, &mut samples::rng(77));
        let none = E::neutral(ReduceOp::Sum);
        for (special, n) in [(nan, 1), (nan, 600), (nan, most), (infinity, 600), (zero, 1), (zero, 2), (zero, most)] {
            let mut elements = plain[..n].to_vec();
            elements[n / 2] = special;
            if same(&special, &zero) {
                elements = vec![none; n];
                elements[n / 2] = zero;
            }
            for op in OPS {
                let what = format!("{op:?} of {n} {:?} with {special:?}", E::KIND);
                let (there, here) =
                    (self.backend.upload(Lane(0), &elements)?, self.reference.upload(Lane(0), &elements)?);
                let got = self.backend.reduce::<E>(op, &[&there], None)?.wait()?;
                let expected = self.reference.reduce::<E>(op, &[&here], None)?.wait()?;
                let right = match op {
                    _ if same(&special, &nan) => same(&expected, &nan),
                    ReduceOp::Min if same(&special, &infinity) => !same(&expected, &infinity),
                    _ if same(&special, &infinity) => same(&expected, &infinity),
                    // A sum begins with +0, and only where all are -0 is the greatest not +0.
                    ReduceOp::Sum => same(&expected, &none),
                    ReduceOp::Min => same(&expected, &zero),
                    ReduceOp::Max => same(&expected, if n == 1 { &zero } else { &none }),
                };
                self.that(right, format_args!("{what}: the CPU's"))?;
                self.that(same(&got, &expected), &what)?;
                let host = self.backend.reduce_host::<E>(op, HostData::Memory(bytemuck::cast_slice(&elements)))?;
                self.that(same(&host, &expected), format_args!("{what}, from host memory"))?;
            }
        }
        Ok(())
    }

    /// Integers that are not below the modulus: the first is named, wherever it lies.
    fn too_large<C: Curve>(&mut self) -> Outcome
    where
        B: Reduce,
    {
        let n = GROUP_BYTES / size_of::<Canonical>() + 4099;
        let good = vec![C::canonical(-C::Fr::from(1u64)); n];
        let large = [Canonical(C::Fr::MODULUS.0), Canonical([u64::MAX; 4])];
        let places: [&[usize]; 4] = [&[0], &[n - 1, 2049], &[n - 1], &[70_000, 69_999, n - 3]];
        for (places, op) in places.into_iter().zip(OPS.into_iter().cycle()) {
            let mut elements = good.clone();
            places.iter().enumerate().for_each(|(i, &place)| elements[place] = large[i % 2]);
            let first = places.iter().copied().min().unwrap_or(0);
            let what = format!("{op:?} of {n} elements with {places:?} too large, {:?}", C::ID);
            let half = Lane(self.backend.lanes() - 1);
            let parts =
                [self.backend.upload(Lane(0), &elements[..n / 2])?, self.backend.upload(half, &elements[n / 2..])?];
            let parts: Vec<_> = parts.iter().collect();
            let file = file_of(bytemuck::cast_slice(&elements))?;
            let file = HostData::File { file: &file, bytes: (n * size_of::<Canonical>()) as u64 };
            let results = [
                self.backend.reduce::<Scalar<C>>(op, &parts, None).and_then(|r| r.wait()),
                self.backend.reduce::<Scalar<C>>(op, &parts, Some(ReduceWay::Peer)).and_then(|r| r.wait()),
                self.backend.reduce_host::<Scalar<C>>(op, HostData::Memory(bytemuck::cast_slice(&elements))),
                self.backend.reduce_host::<Scalar<C>>(op, file),
            ];
            for result in results {
                let named = matches!(&result, Err(e) if e.to_string().contains(&format!("element {first} ")));
                self.that(named, format_args!("{what}: {:?}", result.as_ref().err().map(|e| e.to_string())))?;
                self.refused(result, &what)?;
            }
        }
        Ok(())
    }

    fn reduce_refusals(&mut self) -> Outcome
    where
        B: Reduce,
    {
        let bytes = [1u8; 37];
        let host = |data| self.backend.reduce_host::<u64>(ReduceOp::Sum, data);
        let cut = host(HostData::Memory(&bytes));
        let file = file_of(&bytes)?;
        let short = host(HostData::File { file: &file, bytes: 40 });
        let good = host(HostData::File { file: &file, bytes: 32 });
        let none = self.backend.reduce::<u64>(ReduceOp::Sum, &[], None).and_then(|r| r.wait());
        let part = self.backend.upload(Lane(0), &[1u64, 2])?;
        let stream =
            self.backend.reduce::<u64>(ReduceOp::Sum, &[&part], Some(ReduceWay::Stream)).and_then(|r| r.wait());
        self.refused(cut, "37 bytes of u64")?;
        self.refused(short, "a file that is shorter than was said")?;
        self.refused(stream, "a stream of what lies on a lane")?;
        let all_ones = 0x0101_0101_0101_0101u64;
        self.that(matches!(good, Ok(sum) if sum == all_ones.wrapping_mul(4)), "the first 32 bytes of a file")?;
        self.that(matches!(none, Ok(0)), "the sum of no parts")?;
        self.refused(self.backend.reduce_plan::<u64>(&[(Lane(self.backend.lanes()), 1)], None), "a lane that is none")
    }
}
