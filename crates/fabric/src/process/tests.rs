//! Processes that are threads here: they share nothing but the folder where they meet. crates/fabric/tests/processes.rs has real ones.

use super::meeting::Meeting;
use super::socket::Socket;
use super::{Group, Parcel, Watcher};
use crate::Result;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(300);

fn each<T: Send>(size: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..size).map(|rank| (rank, &f)).map(|(rank, f)| scope.spawn(move || f(rank))).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

/// A group of processes with a PE more than their rank each.
fn groups(size: usize) -> Vec<Arc<Group>> {
    let place = Meeting::unique();
    let meet = |rank| Group::meet(Meeting::new(&place, rank, size)?, rank + 1, "terms", PATIENCE);
    let all = each(size, meet).into_iter().collect::<Result<Vec<_>>>().unwrap();
    assert!(!std::path::Path::new(&place).exists(), "something is left behind");
    all
}

fn problem<T>(result: Result<T>) -> String {
    result.err().map_or_else(String::new, |error| error.to_string())
}

#[test]
fn all_meet_and_know_each_other() {
    for size in 1..=6 {
        for (rank, group) in groups(size).into_iter().enumerate() {
            let first = rank * (rank + 1) / 2;
            assert_eq!((group.local(), group.count()), (first..first + rank + 1, size * (size + 1) / 2));
            let last = group.process_of(group.count() - 1).unwrap();
            assert_eq!((last.rank, last.pid), (size - 1, std::process::id()));
            assert_eq!(group.process_of(group.count()), None);
        }
    }
}

#[test]
fn they_meet_by_tcp() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let place = format!("tcp:127.0.0.1:{port}");
    let found = each(3, |rank| Group::meet(Meeting::new(&place, rank, 3)?, 1, "", PATIENCE).map(|group| group.count()));
    assert!(found.into_iter().all(|count| count.unwrap() == 3));
}

#[test]
fn another_version_is_refused_and_named() {
    let place = Meeting::unique();
    let meet = |rank: usize| {
        let mut meeting = Meeting::new(&place, rank, 2)?.within(PATIENCE);
        meeting.version = format!("7.{rank}");
        meeting.meet(PATIENCE).map(drop)
    };
    for (rank, found) in each(2, meet).into_iter().enumerate() {
        let text = problem(found);
        assert!(text.contains("Tandem 7.0") && text.contains("Tandem 7.1"), "process {rank}: {text}");
        assert!(text.contains("process 0 (pid ") && text.contains("process 1 (pid "), "process {rank}: {text}");
    }
}

#[test]
fn another_size_is_refused_and_named() {
    let place = Meeting::unique();
    let meet = |rank: usize| Meeting::new(&place, rank, 2 + rank)?.within(SHORT * 3).meet(PATIENCE).map(drop);
    let texts: Vec<String> = each(2, meet).into_iter().map(problem).collect();
    assert!(texts[0].contains("one of 2 processes") && texts[0].contains("one of 3"), "{}", texts[0]);
    assert!(texts[1].contains("one of 3 processes") && texts[1].contains("one of 2"), "{}", texts[1]);
}

#[test]
fn who_does_not_come_is_named() {
    let place = Meeting::unique();
    let begun = Instant::now();
    let text = problem(Meeting::new(&place, 1, 4).unwrap().within(SHORT).meet(PATIENCE));
    assert!(text.contains("process 1 waited 300.0ms in vain for process 0 at"), "{text}");
    let text = problem(Meeting::new(&place, 0, 4).unwrap().within(SHORT).meet(PATIENCE));
    assert!(text.contains("in vain for process 1, 2, 3 at"), "{text}");
    let asked = Meeting::new("tcp:127.0.0.1:9", 1, 2).unwrap().within(SHORT).meet(PATIENCE);
    assert!(problem(asked).contains("tcp:127.0.0.1:9: no process 0 in time"));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

/// What a killed process has left is no obstacle; a process that lives is.
#[test]
fn a_rank_is_taken_once() {
    let place = Meeting::unique();
    std::fs::create_dir(&place).unwrap();
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o700)).unwrap();
    for rank in 0..3 {
        drop(Socket::listen(&std::path::Path::new(&place).join(rank.to_string())).unwrap());
    }
    let found = each(3, |rank| Meeting::new(&place, rank, 3)?.within(PATIENCE).meet(PATIENCE).map(|met| met.me));
    assert_eq!(found.into_iter().collect::<Result<Vec<_>>>().unwrap(), [0, 1, 2]);
    let place = Meeting::unique();
    let texts: Vec<String> =
        each(2, |_| problem(Meeting::new(&place, 0, 2).unwrap().within(SHORT).meet(PATIENCE).map(drop)));
    let taken = format!("rank 0 is taken by the process with pid {}", std::process::id());
    assert_eq!(texts.iter().filter(|text| text.contains(&taken)).count(), 1, "{texts:?}");
}

#[test]
fn only_a_folder_that_is_closed_to_others_will_do() {
    let meet = |place: &str| problem(Meeting::new(place, 0, 2).unwrap().within(SHORT).meet(PATIENCE).map(drop));
    let place = Meeting::unique();
    std::fs::create_dir(&place).unwrap();
    for mode in [0o710, 0o701, 0o777] {
        std::fs::set_permissions(&place, std::fs::Permissions::from_mode(mode)).unwrap();
        let text = meet(&place);
        assert!(text.contains(&format!("with mode {mode:o}")) && text.contains("mode 700"), "{text}");
    }
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o700)).unwrap();
    // Root can make it somebody else's.
    if std::os::unix::fs::chown(&place, Some(65534), None).is_ok() {
        assert!(meet(&place).contains("is of user 65534"));
        std::os::unix::fs::chown(&place, Some(rustix::process::geteuid().as_raw()), None).unwrap();
    }
    let link = format!("{place}-link");
    std::os::unix::fs::symlink(&place, &link).unwrap();
    assert!(meet(&link).contains("is no folder"));
    std::fs::remove_file(&link).unwrap();
    assert!(meet("/proc/self/exe").contains("is no folder"));
    let long = format!("{place}{}", "x".repeat(100));
    assert!(!meet(&long).is_empty());
    let _ = std::fs::remove_dir(long);
    std::fs::remove_dir(place).unwrap();
    for place in ["relative", "tcp:", "tcp:7", ""] {
        assert!(problem(Meeting::new(place, 0, 2)).contains("neither an absolute path nor tcp:HOST:PORT"), "{place}");
    }
    for (rank, size) in [(0, 0), (2, 2), (0, 33)] {
        assert!(problem(Meeting::new("/x", rank, size)).contains("rank"));
    }
}

#[test]
fn the_environment_names_rank_size_and_place() {
    let meeting = |set: &[(&str, &str)]| {
        Meeting::from_variables(|name| set.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_string()))
    };
    let of = |set: &[(&str, &str)]| meeting(set).unwrap().map(|meeting| (meeting.rank(), meeting.size()));
    assert_eq!(of(&[]), None);
    let place = ("TANDEM_MEET", "/x/y");
    assert_eq!(
        of(&[("TANDEM_RANK", "2"), ("TANDEM_SIZE", "5"), place, ("PMI_RANK", "0"), ("PMI_SIZE", "9")]),
        Some((2, 5))
    );
    assert_eq!(of(&[("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "3"), place]), Some((1, 3)));
    assert_eq!(of(&[("PMI_RANK", "0"), ("PMI_SIZE", "1"), place]), Some((0, 1)));
    let slurm = [("SLURM_PROCID", "3"), ("SLURM_NTASKS", "4"), ("SLURM_JOB_ID", "77"), ("SLURM_STEP_ID", "0")];
    let place_of = |set: &[(&str, &str)]| format!("{:?}", meeting(set).unwrap().unwrap());
    assert!(place_of(&slurm).contains("slurm-77-0"), "{}", place_of(&slurm));
    let open_mpi = [("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "2"), ("PMIX_NAMESPACE", "prterun-a@1/..")];
    assert!(place_of(&open_mpi).contains("prterun-a_1___"), "{}", place_of(&open_mpi));
    for (set, words) in [
        (&[("PMI_RANK", "0"), ("PMI_SIZE", "2")][..], "PMI_RANK is set, and TANDEM_MEET is not"),
        (&[("PMI_RANK", "x"), ("PMI_SIZE", "2")], "PMI_RANK is \"x\""),
        (&[("PMI_RANK", "1"), place], "one of them is not set"),
        (&[("PMI_RANK", "2"), ("PMI_SIZE", "2"), place], "rank 2 of 2"),
        (&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "2"), ("SLURM_NNODES", "2"), place], "one host"),
        (
            &[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"), place],
            "one host",
        ),
    ] {
        let text = problem(meeting(set));
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn exchanges_bring_what_each_says() {
    let groups = groups(4);
    let rounds = 200u64;
    each(4, |rank| {
        for round in 0..rounds {
            let mine = Parcel { numbers: vec![round, rank as u64], ..Parcel::about(format!("round {round}")) };
            let all = groups[rank].exchange("test", mine).unwrap();
            let numbers: Vec<Vec<u64>> = all.into_iter().map(|parcel| parcel.numbers).collect();
            assert_eq!(numbers, (0..4).map(|other| vec![round, other]).collect::<Vec<_>>());
        }
    });
}

#[test]
fn other_terms_and_other_calls_are_refused_by_all() {
    let place = Meeting::unique();
    let meet = |rank: usize| {
        let terms = if rank == 2 { "a window of 5" } else { "a window of 4" };
        Group::meet(Meeting::new(&place, rank, 3)?, 1, terms, PATIENCE)
    };
    for text in each(3, meet).into_iter().map(problem) {
        assert!(text.contains("process 0 (pid ") && text.contains("says: a window of 4; process 2 (pid "), "{text}");
        assert!(text.contains("says: a window of 5"), "{text}");
    }
    let place = Meeting::unique();
    for text in each(2, |rank| Group::meet(Meeting::new(&place, rank, 2)?, 17, "", PATIENCE)).into_iter().map(problem) {
        assert!(text.contains("34 PEs in all"), "{text}");
    }
    // Who has differed once may agree again.
    let groups = groups(3);
    for (round, is_refused) in [(1, true), (2, false)] {
        let call = |rank: usize| Parcel::about(if rank == 1 && round == 1 { "free" } else { "allocate" });
        for found in each(3, |rank| groups[rank].exchange("test", call(rank)).map(drop)) {
            assert_eq!(problem(found).contains("says: allocate; process 1 (pid "), is_refused);
        }
    }
}

/// The PEs that are lost; none for a process that has left.
#[derive(Default)]
struct Seen(Mutex<Vec<(usize, usize)>>);

impl Watcher for Seen {
    fn lost(&self, pes: &Range<usize>) {
        self.0.lock().unwrap().push((pes.start, pes.end));
    }

    fn left(&self) {
        self.0.lock().unwrap().push((0, 0));
    }

    fn told(&self, _: &super::Told) {}
}

fn until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "it does not come");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A socket that closes without a farewell is a process that has ended; one that says farewell first has left.
#[test]
fn the_lost_are_told_from_those_who_leave() {
    let mut groups = groups(3);
    let seen: Arc<Seen> = Arc::default();
    let watcher: Arc<dyn Watcher> = seen.clone();
    groups[0].watch(&watcher);
    groups[2].leave();
    until(|| groups[0].has_left(3) && groups[1].has_left(5));
    until(|| *seen.0.lock().unwrap() == [(0, 0)]);
    assert!(!groups[0].has_left(0) && !groups[0].has_left(1));
    let begun = Instant::now();
    assert!(problem(groups[0].exchange("test", Parcel::default())).contains("process 2 (pid"));
    assert!(begun.elapsed() < PATIENCE / 2, "who has left is not waited for");
    // Dropped without a farewell.
    drop(groups.remove(1));
    until(|| *seen.0.lock().unwrap() == [(0, 0), (1, 3)]);
    // Who asks later is told too.
    let late: Arc<Seen> = Arc::default();
    let watcher: Arc<dyn Watcher> = late.clone();
    groups[0].watch(&watcher);
    assert_eq!(*late.0.lock().unwrap(), [(0, 0), (1, 3)]);
}

/// Takes its time when it is told, and notes what it drops.
struct Slow(Arc<Mutex<Vec<&'static str>>>);

impl Watcher for Slow {
    fn lost(&self, _: &Range<usize>) {}

    fn told(&self, _: &super::Told) {}

    fn left(&self) {
        self.0.lock().unwrap().push("told");
        std::thread::sleep(SHORT / 3);
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        self.0.lock().unwrap().push("dropped");
    }
}

/// Who has said farewell may end the process: no watcher is left with another thread.
#[test]
fn a_farewell_waits_for_watchers_that_are_told() {
    let groups = groups(2);
    let seen = Arc::default();
    let watcher: Arc<dyn Watcher> = Arc::new(Slow(Arc::clone(&seen)));
    groups[0].watch(&watcher);
    groups[1].leave();
    until(|| !seen.lock().unwrap().is_empty());
    drop(watcher);
    assert_eq!(*seen.lock().unwrap(), ["told"], "the thread that listens holds it");
    groups[0].leave();
    assert_eq!(*seen.lock().unwrap(), ["told", "dropped"]);
}

#[test]
fn a_process_that_ends_ends_the_exchange() {
    let mut groups = groups(3);
    let lost = groups.pop().unwrap();
    let begun = Instant::now();
    let texts = std::thread::scope(|scope| {
        let waiting: Vec<_> =
            groups.iter().map(|group| scope.spawn(|| problem(group.exchange("test", Parcel::default())))).collect();
        std::thread::sleep(Duration::from_millis(50));
        drop(lost);
        waiting.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(begun.elapsed() < PATIENCE / 2);
    for text in texts {
        assert!(text.contains("process 2 (pid") && text.contains("has ended"), "{text}");
    }
    assert!(problem(groups[0].exchange("test", Parcel::default())).contains("agree on nothing any more"));
}

/// Who waits in vain says so to the others, which then wait no longer; and nobody goes on out of step.
#[test]
fn who_does_not_come_to_an_exchange_is_named() {
    let place = Meeting::unique();
    let meet = |rank| Group::meet(Meeting::new(&place, rank, 3)?, 1, "", if rank == 0 { SHORT } else { PATIENCE });
    let groups: Vec<Arc<Group>> = each(3, meet).into_iter().collect::<Result<_>>().unwrap();
    let begun = Instant::now();
    let texts = each(2, |rank| problem(groups[rank].exchange("test", Parcel::about("allocate"))));
    assert!(begun.elapsed() >= SHORT && begun.elapsed() < PATIENCE / 2, "{:?}", begun.elapsed());
    assert!(texts[0].contains("process 2 (pid") && texts[0].contains("has not come in 300.0ms"), "{}", texts[0]);
    assert!(texts[1].contains("process 0 (pid") && texts[1].contains("waited in vain: process 2 (pid"), "{}", texts[1]);
    let late = problem(
        groups[2]
            .exchange("test", Parcel::about("allocate"))
            .and_then(|_| groups[2].exchange("test", Parcel::default())),
    );
    assert!(late.contains("waited in vain"), "{late}");
}

/// What is no message ends the connection, as nobody knows what comes next.
#[test]
fn a_process_that_talks_nonsense_is_lost() {
    for nonsense in [&b"hello"[..], &[0; 24], &[255; 4000]] {
        let place = Meeting::unique();
        let (group, met) = std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let met = Meeting::new(&place, 1, 2).unwrap().meet(PATIENCE).unwrap();
                let mine = Parcel { numbers: vec![1], ..Parcel::about("") };
                met.lines[0].as_ref().unwrap().send(&mine.encode(1), &[]).unwrap();
                met
            });
            let group = Group::meet(Meeting::new(&place, 0, 2).unwrap(), 1, "", PATIENCE).unwrap();
            (group, other.join().unwrap())
        });
        let seen: Arc<Seen> = Arc::default();
        let watcher: Arc<dyn Watcher> = seen.clone();
        group.watch(&watcher);
        met.lines[0].as_ref().unwrap().send(nonsense, &[]).unwrap();
        until(|| *seen.0.lock().unwrap() == [(1, 2)]);
    }
}
