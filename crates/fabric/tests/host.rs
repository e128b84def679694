//! Copies between host memory and PEs: every byte, every route, and what is refused. On pretend PEs, and on GPUs where there are some.

use tandem_fabric::topology::Topology;
use tandem_fabric::{HostLinks, Options, Team};

/// SplitMix64.
fn random(len: usize, seed: u64) -> Vec<u8> {
    let word = |i: u64| {
        let mut x = (seed << 32 | i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ x >> 31).to_le_bytes()
    };
    (0..len.div_ceil(8) as u64).flat_map(word).take(len).collect()
}

/// Up and down again, with other data in the way.
#[track_caller]
fn round_trip(links: &HostLinks, team: &Team, pe: usize, len: usize) {
    let there = team.alloc::<u8>(len + 2).unwrap();
    let sent = random(len, len as u64 + 1);
    team.write(pe, &there, &random(len + 2, 7)).unwrap();
    let before = team.read(pe, &there).unwrap();
    let moved = links.upload(pe, &there.slice(1..len + 1).unwrap(), &sent).unwrap();
    assert_eq!(moved.through.iter().sum::<u64>(), len as u64);
    let after = team.read(pe, &there).unwrap();
    assert!(after[1..=len] == sent[..], "{len} bytes to PE {pe}");
    assert_eq!((after[0], after[len + 1]), (before[0], before[len + 1]), "{len} bytes to PE {pe}: the ends");
    let mut got = random(len, 99);
    let moved = links.download(pe, &there.slice(1..len + 1).unwrap(), &mut got).unwrap();
    assert_eq!(moved.through.iter().sum::<u64>(), len as u64);
    assert!(got == sent, "{len} bytes from PE {pe}");
}

fn teams() -> Vec<Team> {
    let gpus = tandem_cuda::testing::gpus();
    let mut teams: Vec<Team> = [1, 2, 3, 8].iter().map(|&n| Team::sim(n, Options::default()).unwrap()).collect();
    if !gpus.is_empty() {
        teams.push(Team::cuda(&gpus, Options::default()).unwrap());
    }
    teams
}

#[test]
fn every_byte_arrives() {
    for team in teams() {
        let links = HostLinks::new(&team).for_all();
        // Around the least chunk, and large enough for every worker of every link.
        for len in [0, 1, 2, 4095, 4097, 262_143, 262_144, 262_145, 1 << 20, 5_000_003, (6 << 20) + 13] {
            round_trip(&links, &team, len % team.size(), len);
        }
        links.wipe().unwrap();
        round_trip(&links, &team, team.size() - 1, 1 << 20);
    }
}

#[test]
fn wide_elements_keep_their_order() {
    let team = Team::sim(2, Options::default()).unwrap();
    let links = HostLinks::new(&team);
    let there = team.alloc::<[u64; 4]>(70_000).unwrap();
    let sent: Vec<[u64; 4]> = (0..70_000u64).map(|i| [i, !i, i << 32, i * i]).collect();
    links.upload(1, &there, &sent).unwrap();
    assert!(team.read(1, &there).unwrap() == sent);
    assert!(team.read(0, &there).unwrap().iter().all(|x| *x == [0; 4]));
}

#[test]
fn a_plan_gives_the_shares_and_transfers_correct_them() {
    let team = Team::sim(2, Options::default()).unwrap();
    let machine = Topology::preset("h200-pair").unwrap();
    let links = HostLinks::planned(&team, &machine, &[0, 1]).unwrap().for_all();
    assert_eq!(links.shares(0), [0.5, 0.5]);
    assert_eq!(links.shares(2), [0.0; 0]);
    let there = team.alloc::<u8>(8 << 20).unwrap();
    let moved = links.upload(0, &there, &random(8 << 20, 3)).unwrap();
    assert!(moved.through.iter().all(|bytes| *bytes > 0), "{moved:?}");
    let expected = moved.through.iter().map(|b| (*b as f64 / f64::from(8 << 20)).max(0.01)).collect::<Vec<_>>();
    assert_eq!(links.shares(0), expected);
    assert_eq!(links.shares(1), [0.5, 0.5]);
}

/// Little goes over few links, which are the target's own and then those with the largest shares; and what is learnt of these changes no shares.
#[test]
fn small_transfers_take_few_links() {
    let team = Team::sim(4, Options::default()).unwrap();
    let machine = Topology::preset("hgx-h200").unwrap();
    // Each has a PCIe switch of its own.
    let links = HostLinks::planned(&team, &machine, &[0, 2, 4, 6]).unwrap();
    let shares = links.shares(3);
    assert!(shares.iter().all(|share| *share > 0.0), "{shares:?}");
    for (mib, used) in [(2, 1), (63, 2)] {
        let data = random(mib << 20, mib as u64);
        let there = team.alloc::<u8>(mib << 20).unwrap();
        let moved = links.upload(3, &there, &data).unwrap();
        let through: Vec<usize> = (0..4).filter(|&pe| moved.through[pe] > 0).collect();
        assert!(through.len() <= used && through.contains(&3), "{mib} MiB: {moved:?}");
        assert_eq!(moved.through.iter().sum::<u64>(), (mib << 20) as u64);
        let mut got = vec![0; mib << 20];
        links.download(3, &there, &mut got).unwrap();
        assert!(got == data, "{mib} MiB");
        assert_eq!(links.shares(3), shares);
    }
    let there = team.alloc::<u8>(8 << 20).unwrap();
    let moved = links.for_all().upload(3, &there, &random(8 << 20, 5)).unwrap();
    assert!(moved.through.iter().filter(|bytes| **bytes > 0).count() > 1, "{moved:?}");
}

#[test]
fn a_plan_without_gain_leaves_the_others_alone() {
    // Two GPUs on one PCIe switch: what leads to it is the bottleneck.
    let json = r#"{"format":"tandem-topology","version":1,"name":"t",
        "devices":[{"name":"GPU0","kind":"gpu"},{"name":"GPU1","kind":"gpu"},{"name":"S","kind":"pcie-switch"},{"name":"C","kind":"cpu"}],
        "links":[{"a":"GPU0","b":"S","kind":"pcie","gbs_ab":24,"gbs_ba":24},{"a":"GPU1","b":"S","kind":"pcie","gbs_ab":24,"gbs_ba":24},
                 {"a":"S","b":"C","kind":"pcie","gbs_ab":24,"gbs_ba":24},{"a":"GPU0","b":"GPU1","kind":"nvlink","gbs_ab":100,"gbs_ba":100}]}"#;
    let team = Team::sim(2, Options::default()).unwrap();
    let links = HostLinks::planned(&team, &Topology::from_json(json).unwrap(), &[0, 1]).unwrap();
    assert_eq!(links.shares(0), [1.0, 0.0]);
    let there = team.alloc::<u8>(8 << 20).unwrap();
    let moved = links.upload(0, &there, &random(8 << 20, 3)).unwrap();
    assert_eq!(moved.through, [8 << 20, 0]);
}

#[test]
fn pes_that_do_not_reach_each_other_use_their_own_links() {
    let team = Team::sim(3, Options { apart: vec![(0, 1), (1, 0)], ..Options::default() }).unwrap();
    let links = HostLinks::new(&team);
    assert_eq!(links.shares(0), [1.0, 0.0, 1.0]);
    round_trip(&links, &team, 0, 3 << 20);
    round_trip(&links, &team, 1, 3 << 20);
}

#[test]
fn what_does_not_fit_is_refused() {
    let team = Team::sim(2, Options::default()).unwrap();
    let links = HostLinks::new(&team);
    let there = team.alloc::<u32>(10).unwrap();
    let text = links.upload(0, &there, &[0; 9]).unwrap_err().to_string();
    assert!(text.contains("9 elements") && text.contains("10 of PE 0"), "{text}");
    let text = links.download(2, &there, &mut [0; 10]).unwrap_err().to_string();
    assert!(text.contains("no PE 2"), "{text}");
    let machine = Topology::preset("h200-pair").unwrap();
    assert!(HostLinks::planned(&team, &machine, &[0]).is_err());
    assert!(HostLinks::planned(&team, &machine, &[0, 2]).is_err());
    let other = Team::sim(1, Options::default()).unwrap();
    assert!(links.upload(0, &other.alloc::<u32>(4).unwrap(), &[1; 4]).is_err());
}

#[test]
fn a_team_with_a_fault_is_refused() {
    use tandem_fabric::{Compare, OneSided};
    let options = Options { timeout: std::time::Duration::from_millis(20), ..Options::default() };
    let team = Team::sim(2, options).unwrap();
    let links = HostLinks::new(&team);
    let word = team.alloc::<u64>(1).unwrap();
    team.queue(0).wait_until(&word, Compare::Eq, 1, Some(1)).unwrap();
    assert!(team.queue(0).synchronize().is_err());
    let there = team.alloc::<u8>(1 << 20);
    assert!(there.is_err());
    let text = links.upload(0, &word, &[1]).unwrap_err().to_string();
    assert!(text.contains("unusable"), "{text}");
}
