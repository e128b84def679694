//! The examples `lu` and `particles`: on 1 to 8 pretend PEs and on GPUs, with PEs that come late or not at all, and their arguments.
// Their own `main` is not called, and each has what they share.
#![allow(dead_code, clippy::duplicate_mod)]

#[path = "../examples/lu.rs"]
mod lu;
#[path = "../examples/particles.rs"]
mod particles;
mod teams;

use lu::check::Found;
use lu::{Deal, Entry};
use particles::physics::{Motion, Particle};
use particles::Slabs;
use std::time::{Duration, Instant};
use tandem_fabric::{OneSided, Options, Queue, Team};
use teams::{each, numbers};

/// Long enough to come too late for what must wait for it.
const LATE: Duration = Duration::from_millis(200);

/// Factors and pivots over all PEs of a team, of which one begins late.
fn factored(team: &Team, n: usize, block: usize, late: usize, entry: Entry) -> (Vec<f64>, Vec<usize>) {
    let deal = Deal { n, block, pes: team.size() };
    let memory = lu::Memory::new(team, deal).unwrap();
    let body = |queue: &Queue| {
        if queue.me() == late {
            std::thread::sleep(LATE);
        }
        lu::factor(team, queue, &memory, deal, entry)
    };
    let pivots = lu::on_each_pe(team, body).unwrap();
    assert!(pivots.iter().all(|of| *of == pivots[0]), "all PEs know all pivots");
    (lu::gather(team, &memory, deal).unwrap(), pivots[0].clone())
}

/// A matrix of numbers between -1 and 1.
fn random(n: usize, seed: u64) -> impl Fn(usize, usize) -> f64 {
    let all: Vec<u32> = numbers(n * n, seed);
    move |i, j| f64::from(all[i * n + j]) / 2f64.powi(31) - 1.0
}

#[test]
fn lu_is_that_of_a_plain_program() {
    each(&Options::default(), |team| {
        for (n, block) in [(0, 3), (1, 1), (2, 5), (7, 1), (33, 4), (64, 8), (101, 13)] {
            let entry = random(n, n as u64 + 1);
            let (factors, pivots) = factored(team, n, block, usize::MAX, &entry);
            let found = Found { factors: &factors, pivots: &pivots };
            let said = found.check(&entry).unwrap_or_else(|wrong| panic!("{n} {block}: {}", wrong.text));
            assert!(said.contains("b - Ax"), "{said}");
            if n > 30 {
                assert!(pivots.iter().enumerate().any(|(k, &row)| row / block > k / block), "rows of other blocks");
            }
        }
    });
}

/// Matrices whose factors are known without a program.
#[test]
fn lu_of_matrices_that_are_known() {
    each(&Options::default(), |team| {
        let n = 23;
        // J. H. Wilkinson's: what is left doubles in every step.
        let doubling = |i: usize, j: usize| if i == j || j == n - 1 { 1.0 } else { f64::from(-i32::from(i > j)) };
        let (factors, pivots) = factored(team, n, 4, usize::MAX, &doubling);
        assert!(pivots.iter().enumerate().all(|(k, &row)| k == row), "the first of the largest: {pivots:?}");
        assert!((0..n).all(|i| factors[(n - 1) * n + i] == 2f64.powi(i as i32)));
        // Rows of the unit matrix the other way round.
        let (factors, pivots) = factored(team, n, 4, usize::MAX, &|i, j| f64::from(i32::from(i + j == n - 1)));
        assert!((0..n * n).all(|at| factors[at] == f64::from(i32::from(at % n == at / n))));
        assert!(pivots.iter().enumerate().all(|(k, &row)| row == k.max(n - 1 - k)), "{pivots:?}");
    });
}

#[test]
fn a_singular_matrix_has_factors_and_no_solution() {
    let team = Team::sim(3, Options::default()).unwrap();
    let others = random(20, 7);
    for (entry, column) in [
        // Of ones, of zeros, and with a column of zeros.
        (&(|_, _| 1.0) as Entry, 1),
        (&|_, _| 0.0, 0),
        (&move |i, j| if j == 11 { 0.0 } else { others(i, j) }, 11),
    ] {
        let (factors, pivots) = factored(&team, 20, 3, usize::MAX, entry);
        let said = Found { factors: &factors, pivots: &pivots }.check(entry).unwrap();
        assert!(said.ends_with(&format!("singular: column {column} has no pivot")), "{said}");
    }
}

#[test]
fn wrong_factors_are_found() {
    let team = Team::sim(2, Options::default()).unwrap();
    let (n, entry) = (40, random(40, 3));
    let (factors, pivots) = factored(&team, n, 8, usize::MAX, &entry);
    let b = vec![1.0; n];
    let x = Found { factors: &factors, pivots: &pivots }.solve(&b).unwrap();
    for at in [0, 41, 20 * n + 5, 20 * n + 39, n * n - 1] {
        let mut near = factors.clone();
        near[at] = f64::from_bits(near[at].to_bits() ^ 1);
        let found = Found { factors: &near, pivots: &pivots };
        assert!(found.is_plain(&entry).unwrap_err().text.contains("in a plain program"));
        assert!(found.residual(&entry).is_ok(), "a last bit is within the bound");
        near[at] *= 1.0 + 1e-9;
        assert!(Found { factors: &near, pivots: &pivots }.residual(&entry).is_err(), "{at}");
        let mut wrong = x.clone();
        wrong[at % n] *= 1.0 + 1e-9;
        assert!(Found { factors: &factors, pivots: &pivots }.solves(&entry, &b, &wrong).is_err());
    }
    let mut other = pivots.clone();
    other[5] = if pivots[5] == 6 { 7 } else { 6 };
    let found = Found { factors: &factors, pivots: &other };
    assert!(found.is_plain(&entry).is_err() && found.residual(&entry).is_err());
    // Rows that were not exchanged, and should have been.
    let small = |i: usize, j: usize| if i + j == 0 { 0.5 } else { 1.0 };
    let found = Found { factors: &[0.5, 2.0, 1.0, -1.0], pivots: &[0, 1] };
    assert!(found.residual(&small).unwrap_err().text.contains("its pivot was not the largest"));
}

/// Others come as far as panels have places, and wait there.
#[test]
fn lu_waits_for_a_pe_that_is_late() {
    for (pes, late) in [(2, 0), (2, 1), (4, 0), (4, 3), (8, 5)] {
        let team = Team::sim(pes, Options::default()).unwrap();
        let entry = random(90, 5);
        let (factors, pivots) = factored(&team, 90, 4, late, &entry);
        Found { factors: &factors, pivots: &pivots }.is_plain(&entry).unwrap_or_else(|wrong| panic!("{}", wrong.text));
    }
}

/// Particles after so many steps over all PEs, of which one begins late; and how many times one has gone to another PE.
fn moved(team: &Team, slabs: Slabs, start: &[Particle], steps: usize, late: usize) -> (Vec<Particle>, u64) {
    let memory = particles::Memory::new(team, &slabs, start.len()).unwrap();
    let body = |queue: &Queue| {
        if queue.me() == late {
            std::thread::sleep(LATE);
        }
        particles::go(team, queue, &memory, slabs, start, steps)
    };
    particles::on_each_pe(team, body).unwrap();
    let (all, [_, left]) = particles::gather(team, &memory).unwrap();
    (all, left)
}

fn cloud(n: usize, pes: usize, seed: u64) -> (Slabs, Vec<Particle>) {
    let motion = Motion::of(n, pes);
    let all: Vec<u64> = numbers(2 * n, seed);
    (Slabs::new(motion, n, pes).unwrap(), motion.particles(n, |index| all[index as usize]))
}

#[test]
fn particles_go_where_all_pairs_say() {
    each(&Options::default(), |team| {
        for (n, steps) in [(0, 3), (1, 3), (2, 0), (3, 50), (90, 120), (150, 60)] {
            let (slabs, start) = cloud(n, team.size(), n as u64 + 1);
            let (all, left) = moved(team, slabs, &start, steps, usize::MAX);
            assert_eq!(all, slabs.motion.naive(&start, steps), "{n} particles on {} PEs", team.size());
            assert!(n < 90 || team.size() == 1 || left > 0, "none of {n} has gone to another PE");
        }
    });
}

/// Two particles that fly at each other along the first coordinate, over a border, from so far apart.
fn meeting(motion: Motion, border: u64, apart: f64) -> Vec<Particle> {
    let unit = motion.side / 2f64.powi(64);
    let one = |(id, sign): (u64, i64)| Particle {
        id,
        place: [border.wrapping_add_signed(sign * (apart / 2.0 / unit) as i64), 1 << 63],
        speed: [-sign * (motion.step / unit) as i64, 0],
    };
    [(0, -1), (1, 1)].map(one).to_vec()
}

/// Over the border of two PEs, and over that of the square.
#[test]
fn particles_that_meet_exchange_their_speeds() {
    for pes in 1..=8 {
        let (slabs, _) = cloud(2, pes, 1);
        let team = Team::sim(pes, Options::default()).unwrap();
        for border in [0, u64::MAX / pes as u64] {
            let start = meeting(slabs.motion, border, 1.3);
            let (all, _) = moved(&team, slabs, &start, (0.5 / slabs.motion.step) as usize, usize::MAX);
            for (one, other) in [(0, 1), (1, 0)] {
                let speed = start[other].speed[0];
                assert!((all[one].speed[0] - speed).abs() < speed.abs() / 1000, "{pes} PEs at {border}: {all:?}");
                assert_eq!(all[one].place[1], 1 << 63);
            }
        }
    }
}

#[test]
fn particles_go_back_where_they_began() {
    let turned = |all: &[Particle]| -> Vec<Particle> {
        all.iter().map(|particle| Particle { speed: particle.speed.map(|speed| -speed), ..*particle }).collect()
    };
    for pes in [1, 3, 4, 8] {
        let team = Team::sim(pes, Options::default()).unwrap();
        let (slabs, start) = cloud(400, pes, 9);
        let (there, _) = moved(&team, slabs, &start, 150, usize::MAX);
        let (back, _) = moved(&team, slabs, &turned(&there), 150, usize::MAX);
        assert!(there != start && turned(&back) == start);
    }
}

/// While two are near, steps half as long have changed the energy a quarter as much: pushes are the slope of the potential.
#[test]
fn the_energy_is_kept_to_the_second_order() {
    let team = Team::sim(2, Options::default()).unwrap();
    let drift = |halvings: i32| {
        let (mut slabs, _) = cloud(2, 2, 2);
        slabs.motion.step *= 2f64.powi(-halvings);
        let start = meeting(slabs.motion, 1 << 63, 1.1);
        let (all, _) = moved(&team, slabs, &start, 50 << halvings, usize::MAX);
        let (before, after) = (slabs.motion.energy(&start), slabs.motion.energy(&all));
        assert!(all[0].speed[0] < start[0].speed[0] / 4 * 3, "they have slowed each other down: {all:?}");
        (after - before).abs()
    };
    let drifts = [0, 1, 2].map(drift);
    assert!(drifts[0] < 1e-3, "{drifts:?}");
    for pair in drifts.windows(2) {
        assert!((3.5..4.5).contains(&(pair[0] / pair[1])), "{drifts:?}");
    }
}

#[test]
fn particles_wait_for_a_pe_that_is_late() {
    for (pes, late) in [(1, 0), (2, 1), (3, 0), (5, 3)] {
        let team = Team::sim(pes, Options::default()).unwrap();
        let (slabs, start) = cloud(100, pes, 4);
        let (all, _) = moved(&team, slabs, &start, 60, late);
        assert_eq!(all, slabs.motion.naive(&start, 60));
    }
}

#[test]
fn wrong_particles_are_found() {
    let (slabs, start) = cloud(50, 1, 6);
    let good = slabs.motion.naive(&start, 30);
    let check = |change: &dyn Fn(&mut Vec<Particle>)| {
        let mut all = good.clone();
        change(&mut all);
        slabs.motion.check(&start, &all, 30).map_err(|wrong| wrong.text)
    };
    check(&|_| {}).unwrap();
    assert!(check(&|all| all.truncate(49)).unwrap_err().contains("of 50 particles 49 have come"));
    assert!(check(&|all| all[3] = all[4]).unwrap_err().contains("or not the same"));
    assert!(check(&|all| all[3].speed[1] += 1).unwrap_err().contains("momentum"));
    assert!(check(&|all| all[3].place[0] ^= 1).unwrap_err().contains("and by all pairs"));
    let fast = |all: &mut Vec<Particle>| {
        let much = all[3].speed[0].abs() * 20;
        (all[3].speed[0], all[4].speed[0]) = (all[3].speed[0] + much, all[4].speed[0] - much);
    };
    assert!(check(&fast).unwrap_err().contains("energy"));
}

/// What ends one PE ends the program with its reason, and not with that of those who wait for it.
#[test]
fn what_does_not_fit_is_said() {
    let options = Options { timeout: Duration::from_millis(300), ..Options::default() };
    let (slabs, start) = cloud(200, 4, 8);
    let run = |slabs: Slabs, start: &[Particle]| {
        let team = Team::sim(4, options.clone()).unwrap();
        let memory = particles::Memory::new(&team, &slabs, start.len()).unwrap();
        let body = |queue: &Queue| particles::go(&team, queue, &memory, slabs, start, 5);
        particles::on_each_pe(&team, body).unwrap_err()
    };
    let full = run(Slabs { room: 3, ..slabs }, &start);
    assert!(full.text.contains(" particles for PE ") && full.text.ends_with("a message has room for 3: raise --room"));
    let mut fast = start.clone();
    fast[7].speed[0] = i64::MIN;
    let fast = run(slabs, &fast);
    assert!(fast.text.starts_with("in step 0 particle 7 goes from PE "), "{}", fast.text);
    assert!(!full.text.contains('\n') && full.status == 1);
    assert!(Slabs::new(slabs.motion, 200, 100).is_err_and(|wrong| wrong.text.contains("for 100 PEs")));
}

/// Who waits for a PE that does not come, or for one that does so, ends in time and names it.
#[test]
fn a_pe_that_does_not_come_ends_the_waits_of_all() {
    let options = Options { timeout: Duration::from_millis(300), ..Options::default() };
    let named = |ended: Result<Vec<()>, lu::Failure>, pes: usize, missing: usize| {
        let wrong = ended.unwrap_err();
        let (_, peer) = wrong.text.split_once("waited in vain for PE ").unwrap_or_else(|| panic!("{}", wrong.text));
        assert!(pes > 2 || peer.starts_with(&format!("{missing}:")), "{}", wrong.text);
        assert!(!wrong.text.contains('\n') && wrong.status == 1);
    };
    for pes in [2, 3, 4] {
        for missing in 0..pes {
            let begun = Instant::now();
            let team = Team::sim(pes, options.clone()).unwrap();
            let deal = Deal { n: 60, block: 4, pes };
            let (memory, entry) = (lu::Memory::new(&team, deal).unwrap(), random(60, 1));
            let body = |queue: &Queue| match queue.me() == missing {
                true => Ok(()),
                false => lu::factor(&team, queue, &memory, deal, &entry).map(drop),
            };
            named(lu::on_each_pe(&team, body), pes, missing);

            let team = Team::sim(pes, options.clone()).unwrap();
            let (slabs, start) = cloud(60, pes, 1);
            let memory = particles::Memory::new(&team, &slabs, 60).unwrap();
            let body = |queue: &Queue| match queue.me() == missing {
                true => Ok(()),
                false => particles::go(&team, queue, &memory, slabs, &start, 9)
                    .map_err(|particles::Failure { text, status }| lu::Failure { text, status }),
            };
            named(lu::on_each_pe(&team, body), pes, missing);
            assert!(begun.elapsed() < Duration::from_secs(60), "the waits end");
        }
    }
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(String::from).collect()
}

#[test]
fn both_run_as_programs() {
    for device in ["", "--device sim:1", "--device sim:2", "--device sim:3", "--device sim:8"] {
        for size in ["--n 0", "--n 1", "--n 37"] {
            let line = format!("{device} {size} --seed 5");
            let said = lu::run(words(&format!("{line} --block 4"))).unwrap_or_else(|wrong| panic!("{}", wrong.text));
            assert!(said.contains("GFLOP/s") && said.contains("bit for bit"), "{said}");
            let said =
                particles::run(words(&format!("{line} --steps 12"))).unwrap_or_else(|wrong| panic!("{}", wrong.text));
            assert!(said.contains("MB put") && said.contains("to the last bit"), "{said}");
        }
    }
}

#[test]
fn wrong_arguments_are_one_line_and_status_2() {
    for (line, part) in [
        ("--n", "--n has no value"),
        ("--n x", "--n \"x\" is no number"),
        ("--n -1", "--n \"-1\" is no number"),
        ("--n 99999999999999999999", "is no number"),
        ("--n 9999999", "expected at most"),
        ("--seed 1.5", "is no number"),
        ("--foo 1", "no argument is called \"--foo\"; there are --device sim:4, --n "),
        ("500", "no argument is called \"500\""),
        ("--device", "--device has no value"),
        ("--device sim:0", "expected sim:1 to sim:32, cuda or cuda:0,1"),
        ("--device sim:33", "expected sim:1 to sim:32"),
        ("--device cpu", "expected sim:1 to sim:32"),
        ("--device cuda0", "expected sim:1 to sim:32"),
        ("--device cuda:", "expected sim:1 to sim:32"),
        ("--device cuda:0,x", "expected sim:1 to sim:32"),
        ("--device cuda:4000", "--device \"cuda:4000\": "),
    ] {
        let wrong = lu::run(words(line)).unwrap_err();
        assert!(wrong.text.contains(part) && !wrong.text.contains('\n') && wrong.status == 2, "{line}: {}", wrong.text);
        let wrong = particles::run(words(line)).unwrap_err();
        assert!(wrong.text.contains(part) && !wrong.text.contains('\n') && wrong.status == 2, "{line}: {}", wrong.text);
    }
    let code = |code| format!("{:?}", std::process::ExitCode::from(code));
    assert_eq!(format!("{:?}", lu::end("lu", lu::run(words("--n x")))), code(2));
    assert_eq!(format!("{:?}", lu::end("lu", Err(lu::failed("as a test")))), code(1));
    assert_eq!(format!("{:?}", lu::end("lu", Ok(String::new()))), code(0));
    let wrong = lu::run(words("--block 0")).unwrap_err();
    assert!(wrong.text.contains("blocks of 1 column or more") && wrong.status == 2);
}
