//! A sum over all PEs by a ring, with nothing but one-sided operations: every PE hands what it has to its right-hand
//! neighbour and says so, `n - 1` times. Runs on all GPUs of the machine, or on four pretend PEs where there is none.
//!
//! ```text
//! cargo run -p tandem-fabric --example ring
//! ```

use tandem_fabric::{Atomic, Compare, OneSided, Options, Result, Signal, Symmetric, Team};

/// Numbers on each PE.
const LEN: usize = 1 << 16;

fn main() -> Result<()> {
    let team = open()?;
    let n = team.size();
    println!("{n} PEs: {}", (0..n).map(|pe| team.name(pe)).collect::<Vec<_>>().join(", "));

    // Every PE has these. `travelling[k]` is what arrives in step k; `arrived` counts the steps.
    let total: Symmetric<u64> = team.alloc(1)?;
    let travelling: Vec<Symmetric<u64>> = (0..n).map(|_| team.alloc(LEN)).collect::<Result<_>>()?;
    let arrived: Symmetric<u64> = team.alloc(1)?;

    for pe in 0..n {
        let own: Vec<u64> = (0..LEN as u64).map(|i| i * (pe as u64 + 1)).collect();
        team.write(pe, &travelling[0], &own)?;
    }

    // Told to the queues, and done by them: the host does not take part.
    for (me, queue) in team.queues().iter().enumerate() {
        let (left, right) = ((me + n - 1) % n, (me + 1) % n);
        for step in 1..n {
            queue.put_signal(&travelling[step], &travelling[step - 1], &arrived, Signal::Add(1), right)?;
            // Ends in an error that names the left neighbour, should it never send.
            queue.signal_wait_until(&arrived, Compare::Ge, step as u64, Some(left))?;
        }
        queue.atomic(&total, Atomic::Add(1), 0)?;
    }
    team.synchronize()?;
    assert_eq!(team.read(0, &total)?, [n as u64], "every PE has come to the end");

    // Every PE has now seen the numbers of all.
    let expected = |i: usize| i as u64 * (n * (n + 1) / 2) as u64;
    for pe in 0..n {
        let mut sum = vec![0; LEN];
        for numbers in &travelling {
            for (sum, number) in sum.iter_mut().zip(team.read(pe, numbers)?) {
                *sum += number;
            }
        }
        assert!((0..LEN).all(|i| sum[i] == expected(i)), "PE {pe} has a wrong sum");
    }
    println!("every PE has the sum of {LEN} numbers of each");
    Ok(())
}

/// All usable GPUs, or pretend PEs.
fn open() -> Result<Team> {
    let found = tandem_cuda::probe().unwrap_or_else(|reason| {
        println!("no GPU: {reason}");
        Vec::new()
    });
    let gpus: Vec<_> = found.into_iter().filter_map(|gpu| gpu.usable.ok()).collect();
    if gpus.is_empty() {
        return Team::sim(4, Options::default());
    }
    Team::cuda(&gpus, Options::default())
}
