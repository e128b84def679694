//! A shift along a ring and a ping-pong, over one process or several: every PE writes its number to its right-hand neighbour, then PE 0 and
//! PE 1 hand a signal to and fro.
//!
//! ```text
//! cargo run -p tandem-fabric --example shift
//! tandem run -n 4 target/debug/examples/shift
//! ```

use std::time::Instant;
use tandem_fabric::{Compare, Meeting, OneSided, Options, Result, Signal, Symmetric, Team};

/// Signals from PE 0 to PE 1.
const ROUNDS: u64 = 1000;

pub(crate) fn main() -> Result<()> {
    // A PE of each process where there are several, four here else.
    let team = match Meeting::from_env()? {
        Some(meeting) => Team::sim_in(meeting, 1, Options::default())?,
        None => Team::sim(4, Options::default())?,
    };
    let n = team.size();

    // Every process calls this in the same order; it tells its own PEs alone what to do.
    let from_left: Symmetric<u64> = team.alloc(1)?;
    let ball: Symmetric<u64> = team.alloc(1)?;
    for queue in team.queues() {
        queue.p(&from_left, queue.me() as u64, (queue.me() + 1) % n)?;
    }
    team.barrier()?;
    team.synchronize()?;
    for pe in team.local() {
        let got = team.read(pe, &from_left)?[0];
        assert_eq!(got as usize, (pe + n - 1) % n);
        let place = team.process_of(pe).map_or("this process".into(), |process| process.to_string());
        println!("PE {pe} of {n}, in {place}: got {got}");
    }
    if n == 1 {
        return Ok(());
    }
    // Programs reach PEs of the same node alone.
    if let Err(reason) = team.reaches(0, 1) {
        if team.local().contains(&0) {
            println!("no ping-pong: {reason}");
        }
        return Ok(());
    }

    let begun = Instant::now();
    for queue in team.queues().iter().filter(|queue| queue.me() < 2) {
        let (me, other, ball) = (queue.me(), 1 - queue.me(), ball.clone());
        // A wait that nobody ends is an error which names the other PE and its process.
        queue.run(move |pe| {
            for round in 1..=ROUNDS {
                if me == 0 {
                    pe.signal_op(&ball, Signal::Set(round), other)?;
                }
                pe.signal_wait_until(&ball, Compare::Ge, round, Some(other))?;
                if me == 1 {
                    pe.signal_op(&ball, Signal::Set(round), other)?;
                }
            }
            Ok(())
        })?;
    }
    team.barrier()?;
    team.synchronize()?;
    if team.local().contains(&0) {
        println!("there and back: {:.1} us", begun.elapsed().as_secs_f64() * 1e6 / ROUNDS as f64);
    }
    Ok(())
}
