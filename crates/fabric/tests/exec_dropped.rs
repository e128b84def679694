//! What a collective uses stays until it is done, though its handles go before.

use tandem_fabric::exec::Tuning;
use tandem_fabric::topology::Topology;
use tandem_fabric::{Collectives, Options, Team};

/// Sends from the first PE to the second in which most goes through host memory, each time with other numbers, and drops everything
/// that was made for it at once.
fn drop_at_once(team: &Team, is_recorded: bool) {
    let topology = Topology::preset("h200-pair").unwrap();
    let tuning = Tuning { engines: 0, resident: 0, host_share: 1.5, ..Tuning::default() };
    let count = 6 << 20;
    let (from, to) = (team.alloc::<u64>(count).unwrap(), team.alloc::<u64>(count).unwrap());
    for round in 1..5u64 {
        let data: Vec<u64> = (0..count as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ round).collect();
        team.write(0, &from, &data).unwrap();
        let c = Collectives::of(team, &topology, &[0, 1], tuning).unwrap();
        if is_recorded {
            let mut second = None;
            let first = team.queue(0).capture(|_| {
                second = Some(team.queue(1).capture(|_| c.send(0, 1, &from, &to))?);
                Ok(())
            });
            team.queue(0).launch(&first.unwrap()).unwrap();
            team.queue(1).launch(&second.unwrap()).unwrap();
        } else {
            c.send(0, 1, &from, &to).unwrap();
        }
        drop(c);
        // What was dropped may be given away again now.
        let others = [1 << 10, count, 1 << 10].map(|len| team.alloc::<u64>(len).unwrap());
        team.synchronize().unwrap();
        let got = team.read(1, &to).unwrap();
        let wrong = got.iter().zip(&data).filter(|(a, b)| a != b).count();
        assert!(wrong == 0, "{wrong} elements of round {round}, recorded: {is_recorded}");
        drop(others);
    }
}

#[test]
fn handles_that_go_before() {
    let apart = Options { apart: vec![(0, 1)], ..Options::default() };
    for is_recorded in [false, true] {
        drop_at_once(&Team::sim(2, Options::default()).unwrap(), is_recorded);
    }
    let gpus = tandem_cuda::testing::at_least(2);
    if gpus.len() > 1 {
        for options in [Options::default(), apart] {
            let team = Team::cuda(&gpus[..2], options).unwrap();
            [false, true].into_iter().for_each(|is_recorded| drop_at_once(&team, is_recorded));
        }
    }
}
