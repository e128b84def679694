//! Discrete Fourier transforms against their definition, and against what holds for all of them.
//!
//! Errors are measured as [`fft::error_bound`] has them: the root of the sum of the squares of all differences, relative to that of the values. On the
//! CPU 6.3 u log2 n of it are used, u being half the distance from 1 to the next number: that is what a butterfly adds at most. What the
//! definition itself is off by, in numbers of 64 bits, is added: 8 u.

use rand_chacha::{rand_core::RngCore, rand_core::SeedableRng, ChaCha8Rng};
use std::fmt::Debug;
use tandem_ops::ntt::fft::{self, Grid};
use tandem_ops::timeline::Moved;
use tandem_ops::{
    cpu::Cpu, naive, Backend, Buffer, Complex, Complex32, Complex64, Direction, Error, Fft, Lane, Order, Result, Spread,
};

const BOTH: [Direction; 2] = [Direction::Forward, Direction::Inverse];

fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Between -1 and 1.
fn real(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() as i64) as f64 / 2f64.powi(63)
}

fn random<T: Complex>(n: usize, rng: &mut ChaCha8Rng) -> Vec<T> {
    (0..n).map(|_| T::new(real(rng), real(rng))).collect()
}

fn parts<T: Complex>(x: &[T]) -> Vec<[f64; 2]> {
    x.iter().map(|x| x.parts()).collect()
}

fn norm(x: &[[f64; 2]]) -> f64 {
    naive::float_sum(x.iter().map(|[re, im]| re * re + im * im)).sqrt()
}

fn differences(a: &[[f64; 2]], b: &[[f64; 2]]) -> Vec<[f64; 2]> {
    a.iter().zip(b).map(|(a, b)| [a[0] - b[0], a[1] - b[1]]).collect()
}

/// What transforms of 2^`log_n` numbers may be off by on the CPU.
fn bound<T: Complex>(log_n: u32) -> f64 {
    let bound = 6.3 * T::ROUNDING * f64::from(log_n);
    assert!(bound <= fft::error_bound::<T>(log_n));
    bound
}

/// What the definition is off by.
const DEFINITION: f64 = 8.0 / (1u64 << 53) as f64;

fn transformed<T: Complex>(input: &[T], count: usize, direction: Direction) -> Vec<T> {
    let cpu = Cpu::new(1);
    let mut buf = cpu.upload(Lane(0), input).unwrap();
    cpu.fft_batch(&mut buf, count, direction).unwrap();
    buf.as_slice().to_vec()
}

fn defined<T: Complex>(input: &[T], direction: Direction) -> Vec<[f64; 2]> {
    let input = parts(input);
    (0..input.len()).map(|k| naive::dft_at(&input, direction, k)).collect()
}

#[track_caller]
fn close<T: Complex>(got: &[T], expected: &[[f64; 2]], log_n: u32, what: impl Debug) {
    assert_eq!(got.len(), expected.len());
    let (error, most) = (norm(&differences(&parts(got), expected)), (bound::<T>(log_n) + DEFINITION) * norm(expected));
    assert!(error <= most, "{what:?}: {error:e} of at most {most:e}");
}

fn agrees_with_the_definition<T: Complex>() {
    for log_n in 0..=10 {
        let input = random::<T>(1 << log_n, &mut rng(log_n.into()));
        for direction in BOTH {
            let got = transformed(&input, 1, direction);
            close(&got, &defined(&input, direction), log_n, (log_n, direction));
        }
    }
    // Sizes that several threads share, at some places: the errors of random numbers' values are alike.
    for log_n in [12, 17] {
        let n = 1usize << log_n;
        let input = random::<T>(n, &mut rng(log_n.into()));
        for direction in BOTH {
            let got = transformed(&input, 1, direction);
            let (places, input) = ((0..20).map(|i| (i * 0x9e37_79b9) % n), parts(&input));
            let some: Vec<T> = places.clone().map(|k| got[k]).collect();
            let of: Vec<[f64; 2]> = places.map(|k| naive::dft_at(&input, direction, k)).collect();
            close(&some, &of, log_n, (log_n, direction));
        }
    }
}

#[test]
fn both_precisions_agree_with_the_definition() {
    agrees_with_the_definition::<Complex32>();
    agrees_with_the_definition::<Complex64>();
}

/// The sign of the exponent, the order and the factor are those of numpy.
#[test]
fn small_transforms_are_known() {
    let of = |parts: [[f64; 2]; 4]| parts.map(|[re, im]| Complex64 { re, im });
    let x = of([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [4.0, 0.0]]);
    let values = of([[10.0, 0.0], [-2.0, 2.0], [-2.0, 0.0], [-2.0, -2.0]]);
    assert_eq!(transformed(&x, 1, Direction::Forward), values);
    assert_eq!(transformed(&values, 1, Direction::Inverse), x);
    let one = [Complex32 { re: 3.0, im: -4.0 }];
    assert_eq!(transformed(&one, 1, Direction::Inverse), one);
    let two = [Complex32 { re: 3.0, im: 1.0 }, Complex32 { re: 1.0, im: -1.0 }];
    assert_eq!(
        transformed(&two, 1, Direction::Inverse),
        [Complex32 { re: 2.0, im: 0.0 }, Complex32 { re: 1.0, im: 1.0 }]
    );
}

fn laws<T: Complex>() {
    for log_n in [1, 2, 3, 8, 13] {
        let n = 1usize << log_n;
        let mut rng = rng(100 + u64::from(log_n));
        let (x, y) = (random::<T>(n, &mut rng), random::<T>(n, &mut rng));
        let (values_x, values_y) = (transformed(&x, 1, Direction::Forward), transformed(&y, 1, Direction::Forward));
        let scale = norm(&parts(&values_x)) + norm(&parts(&values_y));
        let bound = bound::<T>(log_n);

        // Parseval.
        let (before, after) = (norm(&parts(&x)) * (n as f64).sqrt(), norm(&parts(&values_x)));
        assert!((before - after).abs() <= bound * after, "2^{log_n}: {before} and {after}");

        // Linearity: a sum of transforms is the transform of the sum, whose numbers are rounded once more on either side.
        let sums: Vec<T> = x.iter().zip(&y).map(|(&x, &y)| x + y).collect();
        let sum: Vec<T> = values_x.iter().zip(&values_y).map(|(&x, &y)| x + y).collect();
        let error = norm(&differences(&parts(&transformed(&sums, 1, Direction::Forward)), &parts(&sum)));
        assert!(error <= (2.0 * bound + 2.0 * T::ROUNDING) * scale, "2^{log_n}: {error}");

        // A cyclic shift by s multiplies value k by e^(-2 pi i s k / n).
        let s = (rng.next_u32() as usize) % n;
        let shifted: Vec<T> = (0..n).map(|j| x[(j + n - s) % n]).collect();
        let turned: Vec<T> = (0..n).map(|k| values_x[k] * fft::root((s * k) as u64, log_n)).collect();
        let error = norm(&differences(&parts(&transformed(&shifted, 1, Direction::Forward)), &parts(&turned)));
        assert!(error <= (2.0 * bound + 6.0 * T::ROUNDING) * scale, "2^{log_n}, {s}: {error}");

        // There and back again.
        close(&transformed(&values_x, 1, Direction::Inverse), &parts(&x), 2 * log_n, log_n);
    }
}

#[test]
fn laws_hold() {
    laws::<Complex32>();
    laws::<Complex64>();
}

#[test]
fn each_vector_of_a_batch_is_transformed_by_itself() {
    for (log_n, count) in [(0, 5), (1, 3), (4, 33), (12, 3)] {
        let input = random::<Complex32>(count << log_n, &mut rng(7));
        for direction in BOTH {
            let alone = input.chunks(1 << log_n).flat_map(|vector| transformed(vector, 1, direction));
            assert!(alone.eq(transformed(&input, count, direction)), "{count} times 2^{log_n}");
        }
    }
}

/// A NaN or an infinity is in all values of its vector and in none of another one.
#[test]
fn what_is_not_finite_stays_so() {
    fn of<T: Complex>(direction: Direction) {
        for (log_n, wrong) in [(0, f64::NAN), (3, f64::INFINITY), (6, f64::NEG_INFINITY), (12, f64::NAN)] {
            let n = 1usize << log_n;
            let mut input = random::<T>(3 * n, &mut rng(9));
            let at = n + n / 3;
            input[at] = if log_n == 3 { T::new(0.5, wrong) } else { T::new(wrong, 0.5) };
            let got = transformed(&input, 3, direction);
            let finite = |x: &T| x.parts().iter().all(|part| part.is_finite());
            assert!(got[n..2 * n].iter().all(|x| !finite(x)), "2^{log_n}, {wrong}");
            assert!(got[..n].iter().chain(&got[2 * n..]).all(finite), "2^{log_n}, {wrong}");
        }
    }
    for direction in BOTH {
        of::<Complex32>(direction);
        of::<Complex64>(direction);
    }
}

#[track_caller]
fn refused<T>(result: Result<T>, parts: &[&str]) {
    match result {
        Err(Error::Invalid { op: "fft", reason }) => {
            assert!(parts.iter().all(|part| reason.contains(part)) && !reason.contains('\n'), "{reason}");
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("was accepted"),
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let cpu = Cpu::new(4);
    for (len, count) in [(0, 1), (3, 1), (12, 1), (1000, 1), (8, 0), (0, 0), (8, 3), (12, 2), (8, 16)] {
        let mut buf = cpu.upload(Lane(0), &vec![Complex32 { re: 1.0, im: 2.0 }; len]).unwrap();
        let what = format!("{count} vectors of together {len} complex numbers");
        refused(cpu.fft_batch(&mut buf, count, Direction::Forward), &[&what, "power of two up to 2^32"]);
        assert!(buf.as_slice().iter().all(|x| *x == Complex32 { re: 1.0, im: 2.0 }), "changed");
    }
    for (lengths, part) in [
        (&[][..], "0 shards; expected a power of two up to 16"),
        (&[8; 3], "3 shards"),
        (&[1; 32], "32 shards"),
        (&[8, 4], "shards of 8 and of 4 elements"),
        (&[0; 2], "together 0 complex numbers"),
        (&[3; 2], "together 6 complex numbers"),
    ] {
        let alloc = |(s, &len): (usize, &usize)| cpu.alloc::<Complex64>(Lane(s % 4), len).unwrap();
        let mut shards: Vec<_> = lengths.iter().enumerate().map(alloc).collect();
        refused(cpu.fft_spread(&mut shards.iter_mut().collect::<Vec<_>>(), Direction::Inverse), &[part]);
    }
    assert_eq!(fft::log_size(1 << 32, 1).unwrap(), 32);
    refused(fft::log_size(1 << 33, 1), &["8589934592 complex numbers"]);
    refused(Spread::of_complex([usize::MAX; 2].into_iter()), &["power of two up to 2^32"]);
    for sides in [&[][..], &[3], &[4, 6], &[0, 4], &[1 << 17, 1 << 17], &[1 << 40, 1 << 40]] {
        refused(Grid::new(&cpu, &[Lane(0)], sides), &["expected powers of two"]);
    }
}

#[test]
fn arrays_that_do_not_fit_their_lanes_are_refused() {
    let cpu = Cpu::new(8);
    let lanes = |numbers: &[usize]| numbers.iter().map(|&lane| Lane(lane)).collect::<Vec<_>>();
    for (on, sides, part) in [
        (&[][..], &[4, 4][..], "on 0 lanes"),
        (&[0, 1, 2], &[4, 4], "on 3 lanes; expected a power of two"),
        (&[0, 1], &[1, 8], "1 planes of 8 numbers on 2 lanes"),
        (&[0, 1, 2, 3], &[2, 8], "no more lanes than either"),
        (&[0, 1, 2, 3], &[8, 2], "8 planes of 2 numbers on 4 lanes"),
        (&[0, 1], &[8], "8 planes of 1 numbers on 2 lanes"),
        (&[0, 1, 0, 2], &[8, 8], "lane 0 is named twice"),
        (&[7, 8], &[8, 8], "lane 8 of a device with 8"),
        (&[8], &[8], "lane 8 of a device with 8"),
        (&[0, 1], &[1 << 17, 1 << 17], "on 2 lanes; expected powers of two, together 2^32 numbers a lane"),
    ] {
        refused(Grid::new(&cpu, &lanes(on), sides), &[part]);
    }
    for (sides, slabs, part) in [
        (&[4, 4][..], &[(8, 1), (8, 3)][..], "slab 1 of 8 numbers on lane 3; expected 8 on lane 2"),
        (&[4, 4], &[(8, 2), (8, 1)], "slab 0 of 8 numbers on lane 2; expected 8 on lane 1"),
        (&[4, 4], &[(8, 1), (16, 2)], "slab 1 of 16 numbers on lane 2; expected 8"),
        (&[4, 4], &[(4, 1), (8, 2)], "slab 0 of 4 numbers on lane 1; expected 8"),
        (&[4, 4], &[(16, 1)], "1 slabs; expected 2"),
        (&[4, 4], &[(8, 1), (8, 2), (8, 3)], "3 slabs; expected 2"),
        (&[4, 4], &[], "0 slabs; expected 2"),
    ] {
        let grid = Grid::new(&cpu, &lanes(&[1, 2]), sides).unwrap();
        let number = Complex32 { re: 1.0, im: 2.0 };
        let upload = |&(len, lane): &(usize, usize)| cpu.upload(Lane(lane), &vec![number; len]).unwrap();
        let mut slabs: Vec<_> = slabs.iter().map(upload).collect();
        refused(grid.transform(&cpu, &mut slabs, Direction::Forward), &[part]);
        assert!(slabs.iter().all(|slab| slab.as_slice().iter().all(|x| *x == number)), "changed");
    }
}

/// On as many lanes as one likes the result is the same, bit for bit.
#[test]
fn lanes_do_not_change_a_byte() {
    fn of<T: Complex>() {
        for (log_n, most) in [(0, 0), (1, 1), (2, 2), (3, 3), (5, 4), (7, 4), (8, 4), (13, 4)] {
            let input = random::<T>(1 << log_n, &mut rng(31 + u64::from(log_n)));
            for direction in BOTH {
                let expected = transformed(&input, 1, direction);
                for log_shards in 0..=most {
                    let spread = Spread { log_n, log_shards };
                    let sim = Cpu::new(spread.shards());
                    let dealt = spread.deal(Order::Natural, &input);
                    let upload = |(lane, part): (usize, &Vec<T>)| sim.upload(Lane(lane), part).unwrap();
                    let mut shards: Vec<_> = dealt.iter().enumerate().map(upload).collect();
                    sim.fft_spread(&mut shards.iter_mut().collect::<Vec<_>>(), direction).unwrap();
                    let got: Vec<_> = shards.iter().map(|shard| shard.as_slice()).collect();
                    let got = spread.collect(Order::Natural, &got);
                    let same = bytemuck::cast_slice::<T, u8>(&got) == bytemuck::cast_slice::<T, u8>(&expected);
                    assert!(same, "{direction:?}, {spread:?}");
                }
            }
        }
    }
    of::<Complex32>();
    of::<Complex64>();
}

/// Each is off by 3 u at the most; those of 32 bits are those of 64, rounded; axes and diagonals are exact or nearest.
#[test]
fn roots_are_rounded_once() {
    let quarter = |k| fft::root::<Complex64>(k, 2);
    let axes = [[1.0, 0.0], [0.0, -1.0], [-1.0, 0.0], [0.0, 1.0]];
    assert_eq!([0, 1, 2, 3].map(|k| quarter(k).parts()), axes);
    assert_eq!(fft::root::<Complex64>(5, 0).parts(), [1.0, 0.0]);
    let half = std::f64::consts::FRAC_1_SQRT_2;
    for (k, sign) in [(1, [1.0, -1.0]), (3, [-1.0, -1.0]), (5, [-1.0, 1.0]), (7, [1.0, 1.0])] {
        let [re, im] = fft::root::<Complex64>(k, 3).parts();
        let off = (re - sign[0] * half).abs().max((im - sign[1] * half).abs());
        assert!(off <= 2.0 * Complex64::ROUNDING, "{k}: {re}, {im}");
    }
    let mut rng = rng(3);
    for _ in 0..2000 {
        let log_n = rng.next_u32() % 33;
        let of = |k: u64| fft::root::<Complex64>(k, log_n);
        let (j, k) = (rng.next_u64() >> 20, rng.next_u64() >> 20);
        // A product of two is the third: three errors and the product's own, sqrt(5) u.
        let (product, sum) = (of(j) * of(k), of(j + k));
        let error = norm(&differences(&[product.parts()], &[sum.parts()]));
        assert!(error <= 11.3 * Complex64::ROUNDING, "{j}, {k} of 2^{log_n}: {error}");
        let [re, im] = of(k).parts();
        assert_eq!(fft::root::<Complex32>(k, log_n), Complex32 { re: re as f32, im: im as f32 });
    }
}

/// By the definition along each dimension in turn.
fn defined_grid(mut data: Vec<[f64; 2]>, sides: &[usize], direction: Direction) -> Vec<[f64; 2]> {
    let mut below = data.len();
    for &side in sides {
        below /= side;
        for start in (0..data.len()).filter(|at| (at / below).is_multiple_of(side)) {
            let column: Vec<[f64; 2]> = (0..side).map(|i| data[start + i * below]).collect();
            for k in 0..side {
                data[start + k * below] = naive::dft_at(&column, direction, k);
            }
        }
    }
    data
}

/// The transform of an array whose slabs lie on so many lanes, the last of them first.
fn on_lanes<T: Complex>(input: &[T], sides: &[usize], count: usize, direction: Direction) -> Vec<T> {
    let sim = Cpu::new(count + 1);
    let lanes: Vec<Lane> = (1..=count).rev().map(Lane).collect();
    let grid = Grid::new(&sim, &lanes, sides).unwrap();
    let parts = input.chunks(input.len() / count).zip(&lanes);
    let mut slabs: Vec<_> = parts.map(|(part, &lane)| sim.upload(lane, part).unwrap()).collect();
    grid.transform(&sim, &mut slabs, direction).unwrap();
    assert!(slabs.iter().map(Buffer::lane).eq(lanes));
    slabs.iter().flat_map(|slab| slab.as_slice().to_vec()).collect()
}

#[test]
fn one_two_and_more_dimensions() {
    fn of<T: Complex>() {
        for sides in [
            &[1][..],
            &[8],
            &[1, 1],
            &[4, 1],
            &[1, 4],
            &[2, 8],
            &[16, 4],
            &[8, 8],
            &[32, 16],
            &[2, 4, 8],
            &[8, 1, 4],
            &[8, 16, 1],
            &[32, 2, 4],
            &[8, 8, 8],
            &[2, 2, 4, 2],
        ] {
            let n: usize = sides.iter().product();
            let most = if sides.len() > 1 { sides[0].min(n / sides[0]) } else { 1 };
            let input = random::<T>(n, &mut rng(n as u64));
            for direction in BOTH {
                let one = on_lanes(&input, sides, 1, direction);
                close(&one, &defined_grid(parts(&input), sides, direction), n.ilog2(), (sides, direction));
                for count in [2, 4, 8].into_iter().filter(|&count| count <= most) {
                    let got = on_lanes(&input, sides, count, direction);
                    let same = bytemuck::cast_slice::<T, u8>(&got) == bytemuck::cast_slice::<T, u8>(&one);
                    assert!(same, "{sides:?} on {count} lanes, {direction:?}");
                }
            }
        }
    }
    of::<Complex32>();
    of::<Complex64>();
}

/// Each lane sends to each other one what that needs, there and back, and nothing else.
#[test]
fn lanes_exchange_twice() {
    let sides = [16, 4, 8];
    let n: usize = sides.iter().product();
    for count in [1, 2, 4, 8] {
        let sim = Cpu::new(count);
        let lanes: Vec<Lane> = (0..count).map(Lane).collect();
        let grid = Grid::new(&sim, &lanes, &sides).unwrap();
        let slab = |&lane: &Lane| sim.alloc::<Complex32>(lane, n / count).unwrap();
        let mut slabs: Vec<_> = lanes.iter().map(slab).collect();
        sim.take_moved();
        lanes.iter().for_each(|&lane| assert!(sim.take_most_bytes(lane) > 0));
        grid.transform(&sim, &mut slabs, Direction::Forward).unwrap();
        let bytes = n * size_of::<Complex32>();
        assert_eq!(sim.take_moved(), Moved { across: (2 * bytes * (count - 1) / count) as u64, ..Moved::default() });
        // A slab and as much again.
        assert!(lanes.iter().all(|&lane| sim.take_most_bytes(lane) == (2 * bytes / count) as u64), "{count} lanes");
    }
}
