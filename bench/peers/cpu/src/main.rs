//! The CPU backend beside the libraries that it could have used: sums over both groups of both curves, and
//! transforms. `cargo run --release [log2 of the size]`; alternatives take turns, so that a busy machine is equally
//! busy for all of them; there only the processor time says much.

use ark_ec::{CurveGroup, PrimeGroup, VariableBaseMSM};
use ark_ff::{PrimeField, UniformRand};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use rand_chacha::{rand_core::SeedableRng, ChaCha8Rng};
use std::{hint::black_box, time::Instant};
use tandem_ops::*;

const ROUNDS: usize = 9;

/// Milliseconds of processor time that this process has taken, its finished threads included, in steps of 10.
fn cpu_ms() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    fields.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap() * 10.0).sum()
}

/// Runs the alternatives in turn and prints a row for each: the mean processor time, and the shortest time passed.
fn race(what: &str, alternatives: &mut [(&str, Box<dyn FnMut() + '_>)]) {
    let mut times = vec![(0.0, f64::MAX); alternatives.len()];
    for _ in 0..ROUNDS {
        for ((_, run), time) in alternatives.iter_mut().zip(&mut times) {
            let (start, cpu) = (Instant::now(), cpu_ms());
            run();
            time.0 += (cpu_ms() - cpu) / ROUNDS as f64;
            time.1 = time.1.min(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    for ((name, _), (cpu, wall)) in alternatives.iter().zip(times) {
        println!("{what:32} {name:22} {cpu:8.0} ms of processors {wall:8.0} ms passed");
    }
}

fn points<G: Group>(n: usize, rng: &mut ChaCha8Rng) -> Vec<<G::Ark as CurveGroup>::Affine> {
    let step = G::Ark::generator() * <G::Curve as Curve>::Fr::rand(rng);
    let mut p = step;
    let all: Vec<_> = (0..n)
        .map(|_| {
            p += step;
            p
        })
        .collect();
    G::Ark::normalize_batch(&all)
}

fn tandem<'a, G: Group>(cpu: &'a Cpu, points: &[G::Point], scalars: &[Canonical]) -> Box<dyn FnMut() -> G::Ark + 'a> {
    let sets = vec![MsmSet { g2: G::NAME == "G2", first: 0, points: points.len() }];
    let request = MsmRequest { scalars: scalars.len(), sets, memory_bytes: u64::MAX, uses: 1, pipelined: false };
    let plan = ScalarRecoding::<G::Curve>::plan(cpu, Lane(0), &request).unwrap();
    let bases = Msm::<G>::load(cpu, Lane(0), &plan, 0, Unaligned::from(points)).unwrap();
    let scalars = cpu.upload(Lane(0), scalars).unwrap();
    Box::new(move || {
        let entries = ScalarRecoding::<G::Curve>::recode(cpu, &plan, Scalars::Canonical(&scalars)).unwrap();
        Msm::<G>::msm(cpu, &bases, &entries, &Timeline::none()).unwrap().wait().unwrap()
    })
}

use tandem_ops::cpu::Cpu;

/// halo2curves reads the Montgomery limbs of a point as they are on the wire.
fn halo2<P: halo2curves::serde::SerdeObject>(wire: &[u64]) -> P {
    let bytes: Vec<u8> = wire.iter().flat_map(|l| l.to_le_bytes()).collect();
    P::from_raw_bytes_unchecked(&bytes)
}

fn bn254(log_n: u32) {
    use halo2curves::{bn256, ff::PrimeField as _, msm::msm_best};
    let cpu = Cpu::new(1);
    let rng = &mut ChaCha8Rng::seed_from_u64(1);
    let n = 1 << log_n;
    let scalars: Vec<ark_bn254::Fr> = (0..n).map(|_| UniformRand::rand(rng)).collect();
    let canonical: Vec<_> = scalars.iter().map(|&k| Bn254::canonical(k)).collect();
    let ints: Vec<_> = scalars.iter().map(|k| k.into_bigint()).collect();
    let h_scalars: Vec<_> = canonical
        .iter()
        .map(|k| {
            let mut repr = <bn256::Fr as halo2curves::ff::PrimeField>::Repr::default();
            let bytes: Vec<u8> = k.0.iter().flat_map(|l| l.to_le_bytes()).collect();
            repr.as_mut().copy_from_slice(&bytes);
            bn256::Fr::from_repr(repr).unwrap()
        })
        .collect();
    macro_rules! group {
        ($g:ty, $halo2:ty) => {{
            let ark = points::<$g>(n, rng);
            let wire: Vec<_> = ark.iter().map(<$g>::from_ark).collect();
            let h: Vec<$halo2> = wire.iter().map(|p| halo2(&p.0)).collect();
            let mut ours = tandem::<$g>(&cpu, &wire, &canonical);
            assert_eq!(ours(), <$g as Group>::Ark::msm_bigint(&ark, &ints));
            race(
                &format!("BN254 {} 2^{log_n}", <$g>::NAME),
                &mut [
                    (
                        "this",
                        Box::new(|| {
                            let _ = black_box(ours());
                        }),
                    ),
                    (
                        "arkworks 0.6",
                        Box::new(|| {
                            let _ = black_box(<$g as Group>::Ark::msm_bigint(&ark, &ints));
                        }),
                    ),
                    (
                        "halo2curves 0.10 asm",
                        Box::new(|| {
                            let _ = black_box(msm_best(&h_scalars, &h));
                        }),
                    ),
                ],
            );
        }};
    }
    group!(G1<Bn254>, bn256::G1Affine);
    group!(G2<Bn254>, bn256::G2Affine);
}

fn bls12_381(log_n: u32) {
    use blst::MultiPoint;
    let cpu = Cpu::new(1);
    let rng = &mut ChaCha8Rng::seed_from_u64(1);
    let n = 1 << log_n;
    let scalars: Vec<ark_bls12_381::Fr> = (0..n).map(|_| UniformRand::rand(rng)).collect();
    let canonical: Vec<_> = scalars.iter().map(|&k| Bls12_381::canonical(k)).collect();
    let ints: Vec<_> = scalars.iter().map(|k| k.into_bigint()).collect();
    let bytes: Vec<u8> = canonical.iter().flat_map(|k| k.0.iter().flat_map(|l| l.to_le_bytes())).collect();
    let fp = |limbs: &[u64]| blst::blst_fp { l: limbs.try_into().unwrap() };
    let g1 = |p: &Point<12>| blst::blst_p1_affine { x: fp(&p.0[..6]), y: fp(&p.0[6..]) };
    let fp2 = |limbs: &[u64]| blst::blst_fp2 { fp: [fp(&limbs[..6]), fp(&limbs[6..])] };
    let g2 = |p: &Point<24>| blst::blst_p2_affine { x: fp2(&p.0[..12]), y: fp2(&p.0[12..]) };
    macro_rules! group {
        ($g:ty, $convert:expr) => {{
            let ark = points::<$g>(n, rng);
            let wire: Vec<_> = ark.iter().map(<$g>::from_ark).collect();
            let b: Vec<_> = wire.iter().map($convert).collect();
            let mut ours = tandem::<$g>(&cpu, &wire, &canonical);
            assert_eq!(ours(), <$g as Group>::Ark::msm_bigint(&ark, &ints));
            race(
                &format!("BLS12-381 {} 2^{log_n}", <$g>::NAME),
                &mut [
                    (
                        "this",
                        Box::new(|| {
                            let _ = black_box(ours());
                        }),
                    ),
                    (
                        "arkworks 0.6",
                        Box::new(|| {
                            let _ = black_box(<$g as Group>::Ark::msm_bigint(&ark, &ints));
                        }),
                    ),
                    (
                        "blst 0.3.17",
                        Box::new(|| {
                            let _ = black_box(b[..].mult(&bytes, 255));
                        }),
                    ),
                ],
            );
        }};
    }
    group!(G1<Bls12_381>, g1);
    group!(G2<Bls12_381>, g2);
}

fn transforms<C: Curve>(log_n: u32) {
    let cpu = Cpu::new(1);
    let rng = &mut ChaCha8Rng::seed_from_u64(1);
    let values: Vec<C::Fr> = (0..1 << log_n).map(|_| UniformRand::rand(rng)).collect();
    let wire: Vec<_> = values.iter().map(|&x| C::mont(x)).collect();
    let mut buf = cpu.upload(Lane(0), &wire).unwrap();
    let domain = Radix2EvaluationDomain::<C::Fr>::new(1 << log_n).unwrap();
    let mut ark = values;
    let op = |direction, coset, input, output| NttOp { direction, coset, input, output };
    let (n, r) = (Order::Natural, Order::BitReversed);
    race(
        &format!("{} inverse + coset 2^{log_n}", C::ID),
        &mut [
            (
                "this",
                Box::new(|| {
                    Ntt::<C>::ntt(&cpu, &mut buf, op(Direction::Inverse, Coset::Subgroup, n, r)).unwrap();
                    Ntt::<C>::ntt(&cpu, &mut buf, op(Direction::Forward, Coset::Odd, r, n)).unwrap();
                }),
            ),
            (
                "arkworks 0.6",
                Box::new(|| {
                    domain.ifft_in_place(&mut ark);
                    let coset = domain.get_coset(C::root_of_unity(log_n + 1).unwrap()).unwrap();
                    coset.fft_in_place(&mut ark);
                }),
            ),
        ],
    );
}

fn main() {
    let log_n = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(15);
    transforms::<Bn254>(log_n);
    transforms::<Bls12_381>(log_n);
    bn254(log_n);
    bls12_381(log_n);
}
