//! The kernels that measure the device API, on GPUs.

mod teams;

use std::time::Instant;
use tandem_fabric::kernels::{self, Ball, Scope, Transfer};
use tandem_fabric::{Options, Symmetric};
use teams::{each_cuda, numbers};

#[test]
fn pingpong_carries_what_was_sent() {
    each_cuda(&Options::default(), |team| {
        let words: Symmetric<u64> = team.alloc(6).unwrap();
        if team.size() < 2 {
            assert!(kernels::pingpong(team, Ball::Signal, &words, 1).is_err());
            return;
        }
        const ROUNDS: u64 = 20_000;
        for ball in [Ball::Signal, Ball::Atomic, Ball::Message, Ball::PutSignal] {
            let mut best = f64::MAX;
            for _ in 0..4 {
                for pe in 0..team.size() {
                    team.write(pe, &words, &[0, 0, 0, 0, u64::MAX, 0]).unwrap();
                }
                let start = Instant::now();
                kernels::pingpong(team, ball, &words, ROUNDS).unwrap();
                team.synchronize().unwrap();
                best = best.min(start.elapsed().as_secs_f64() * 1e6 / ROUNDS as f64);
                for pe in 0..2 {
                    assert_eq!(team.read(pe, &words).unwrap()[4], 0, "{ball:?}: wrong values at PE {pe}");
                }
            }
            println!("pingpong {ball:?}: {best:.3} us");
        }
    });
}

#[test]
fn transfers_by_kernels_bring_the_data() {
    each_cuda(&Options::default(), |team| {
        let peer = team.size() - 1;
        for (bytes, blocks, threads, scope) in [
            (16, 1, 32, Scope::Thread),
            (272, 1, 32, Scope::Thread),
            (4096, 1, 32, Scope::Thread),
            (65536 + 16, 1, 32, Scope::Warp),
            (4096, 1, 1024, Scope::Block),
            (65536, 1, 1024, Scope::Block),
            (1 << 20, 1, 1024, Scope::Block),
            ((1 << 20) + 16, 7, 96, Scope::Block),
            (1 << 20, 128, 512, Scope::Block),
            (64 << 20, 128, 512, Scope::Block),
        ] {
            for is_get in [false, true] {
                // Three pieces, and once more the first.
                let len = 3 * bytes;
                let (to, from): (Symmetric<u8>, Symmetric<u8>) = (team.alloc(len).unwrap(), team.alloc(len).unwrap());
                let contents: Vec<u8> = numbers(len, bytes as u64);
                let (source, target) = if is_get { (peer, 0) } else { (0, peer) };
                team.write(source, &from, &contents).unwrap();
                let how = Transfer { is_get, peer, bytes: bytes as u64, scope, blocks, threads, rounds: 4 };
                kernels::transfer(team.queue(0), &to, &from, how).unwrap();
                team.synchronize().unwrap();
                assert!(team.read(target, &to).unwrap() == contents, "{bytes} bytes, {scope:?}");
            }
        }
        let memory: Symmetric<u8> = team.alloc(64).unwrap();
        let odd = memory.slice(0..24).unwrap();
        let how = Transfer { is_get: false, peer, bytes: 24, scope: Scope::Block, blocks: 1, threads: 32, rounds: 1 };
        assert!(kernels::transfer(team.queue(0), &odd, &odd, how).is_err(), "24 bytes are no multiple of 16");
        assert!(kernels::transfer(team.queue(0), &memory, &odd, how).is_err());
        for wrong in [
            Transfer { bytes: 48, ..how },
            Transfer { bytes: 0, ..how },
            Transfer { bytes: 64, threads: 2048, ..how },
            Transfer { bytes: 64, blocks: 0, ..how },
            Transfer { bytes: 64, peer: team.size(), ..how },
        ] {
            assert!(kernels::transfer(team.queue(0), &memory, &memory, wrong).is_err(), "{wrong:?}");
        }
    });
}
