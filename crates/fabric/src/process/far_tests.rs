//! Processes of several nodes that are threads here: how they meet, whom they let in, and what they answer. crates/fabric/tests/processes
//! has real ones.

use super::meeting::Meeting;
use super::transport::{serve, Busy, Change, Failure, Local, Span, Target, Tcp, Transport};
use super::{Group, Lent, Parcel};
use crate::{ffi, Result};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(1500);
const SECRET: &str = "known to all who are to come";

fn each<T: Send>(size: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..size).map(|rank| (rank, &f)).map(|(rank, f)| scope.spawn(move || f(rank))).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

fn address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

fn problem<T>(result: Result<T>) -> String {
    result.err().map_or_else(String::new, |error| error.to_string())
}

/// Meetings by rank, with a folder for each node.
struct Plan {
    places: Vec<String>,
    size: usize,
    address: String,
}

impl Plan {
    fn new(size: usize, nodes: usize) -> Self {
        Plan { places: (0..nodes).map(|_| Meeting::unique()).collect(), size, address: address() }
    }

    fn meeting(&self, rank: usize, secret: &str) -> Result<Meeting> {
        let nodes = self.places.len();
        let place = &self.places[rank * nodes / self.size];
        Meeting::new(place, rank, self.size)?.within(PATIENCE).across(nodes, &self.address, secret)
    }
}

#[test]
fn nodes_meet_and_agree() {
    for (size, nodes) in [(2, 2), (4, 2), (6, 3), (4, 4)] {
        let plan = Plan::new(size, nodes);
        let meet = |rank: usize| Group::meet(plan.meeting(rank, SECRET)?, rank + 1, "terms", PATIENCE);
        let groups: Vec<Arc<Group>> = each(size, meet).into_iter().collect::<Result<_>>().unwrap();
        let texts = each(size, |rank| {
            let group = &groups[rank];
            let first = |rank: usize| rank * (rank + 1) / 2;
            let per_node = size / nodes;
            let node = rank / per_node;
            assert_eq!(group.local(), first(rank)..first(rank + 1));
            assert_eq!(group.near(), first(node * per_node)..first((node + 1) * per_node));
            assert_eq!(group.process_of(0).unwrap().node, Some(0));
            assert_eq!(group.nodes().len(), group.count());
            assert_eq!(group.nodes()[group.count() - 1], nodes - 1);
            let all = group.exchange("test", Parcel { note: rank.to_string(), ..Parcel::about("a round") }).unwrap();
            all.into_iter().map(|parcel| parcel.note).collect::<Vec<_>>()
        });
        let wanted: Vec<String> = (0..size).map(|rank| rank.to_string()).collect();
        assert!(texts.into_iter().all(|text| text == wanted));
        assert!(plan.places.iter().all(|place| !std::path::Path::new(place).exists()));
    }
}

/// Those who knock and are none of ours keep nobody from meeting, whatever they say, or if they say nothing.
#[test]
fn strangers_keep_nobody_from_meeting() {
    let plan = Plan::new(2, 2);
    let noise = || {
        let begun = Instant::now();
        let mut open = Vec::new();
        while open.len() < 20 && begun.elapsed() < PATIENCE {
            let Ok(mut tcp) = TcpStream::connect(&plan.address) else {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            };
            // One in two says nothing, and all stay.
            if open.len() % 2 == 0 {
                let _ = tcp.write_all(&b"GET / HTTP/1.1\r\n\r\n".repeat(10));
            }
            open.push(tcp);
        }
        open
    };
    let groups = std::thread::scope(|scope| {
        let open = scope.spawn(noise);
        let first = scope.spawn(|| Group::meet(plan.meeting(0, SECRET).unwrap(), 1, "", PATIENCE));
        let open = open.join().unwrap();
        assert!(open.len() == 20, "nobody has listened");
        let second = Group::meet(plan.meeting(1, SECRET).unwrap(), 1, "", PATIENCE);
        [first.join().unwrap(), second]
    });
    assert!(groups.into_iter().all(|group| group.unwrap().count() == 2));
}

/// Threads of this process that hear who has come.
fn knockers() -> usize {
    let names = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
    names.map(name).filter(|name| name.trim() == "knocker").count()
}

/// However many come and say nothing, few are heard at a time; who is one of ours waits until it is heard, and no longer than these may take.
#[test]
fn a_crowd_of_strangers_takes_few_threads_and_keeps_nobody_out() {
    let long = Duration::from_secs(40);
    let plan = Plan::new(2, 2);
    let meet = |rank: usize| Group::meet(plan.meeting(rank, SECRET).unwrap().within(long), 1, "", PATIENCE);
    let groups = std::thread::scope(|scope| {
        let first = scope.spawn(|| meet(0));
        let begun = Instant::now();
        let mut crowd = Vec::new();
        while crowd.len() < 200 && begun.elapsed() < PATIENCE {
            match TcpStream::connect(&plan.address) {
                Ok(tcp) => crowd.push(tcp),
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        assert!(crowd.len() == 200, "nobody has listened");
        let mut most = 0;
        let heard = Instant::now();
        while heard.elapsed() < Duration::from_secs(1) {
            most = most.max(knockers());
            std::thread::sleep(Duration::from_millis(10));
        }
        // Those of other tests are fewer than 40.
        assert!((64..104).contains(&most), "{most} threads");
        crowd.truncate(70);
        let groups = [meet(1), first.join().unwrap()];
        drop(crowd);
        groups
    });
    assert!(groups.into_iter().all(|group| group.unwrap().count() == 2));
}

#[test]
fn who_does_not_know_the_secret_is_not_let_in() {
    let plan = Plan::new(2, 2);
    let texts = each(2, |rank| {
        let meeting = plan.meeting(rank, if rank == 0 { SECRET } else { "not what the others know" }).unwrap();
        problem(Group::meet(meeting.within(SHORT), 1, "", PATIENCE))
    });
    assert!(texts[0].contains("in vain for process 1"), "{}", texts[0]);
    assert!(texts[1].contains("the secrets differ"), "{}", texts[1]);
}

#[test]
fn nodes_that_differ_are_named() {
    // Another size, which both name.
    let (address, places) = (address(), [Meeting::unique(), Meeting::unique()]);
    let texts = each(2, |rank| {
        let meeting = Meeting::new(&places[rank], rank * 2, 2 + rank * 2).unwrap().within(SHORT);
        let meeting = if rank == 0 { meeting.across(2, &address, SECRET) } else { meeting.across(4, &address, SECRET) };
        problem(Group::meet(meeting.unwrap(), 1, "", PATIENCE))
    });
    for text in &texts {
        assert!(text.contains("2 processes on 2 nodes") || text.contains("4 processes on 4 nodes"), "{texts:?}");
        assert!(text.contains("process 0 (pid ") && text.contains("process 2 (pid "), "{texts:?}");
    }
    let plan = Plan::new(2, 2);
    let texts = each(2, |rank| {
        let mut meeting = plan.meeting(rank, SECRET).unwrap().within(SHORT);
        meeting.version = format!("8.{rank}");
        problem(Group::meet(meeting, 1, "", PATIENCE))
    });
    assert!(texts.iter().all(|text| text.contains("Tandem 8.0") && text.contains("Tandem 8.1")), "{texts:?}");
    // Other terms.
    let plan = Plan::new(2, 2);
    let meet = |rank: usize| Group::meet(plan.meeting(rank, SECRET)?, 1, &format!("a window of {rank}"), PATIENCE);
    for text in each(2, meet).into_iter().map(problem) {
        assert!(text.contains("says: a window of 0") && text.contains("says: a window of 1"), "{text}");
    }
}

#[test]
fn a_node_that_does_not_come_is_named() {
    let plan = Plan::new(4, 2);
    let begun = Instant::now();
    let texts =
        each(2, |rank| problem(Group::meet(plan.meeting(rank, SECRET).unwrap().within(SHORT), 1, "", PATIENCE)));
    assert!(texts[0].contains("in vain for process 2, 3 at"), "{}", texts[0]);
    assert!(begun.elapsed() < PATIENCE);
    let alone = problem(Group::meet(plan.meeting(2, SECRET).unwrap().within(SHORT), 1, "", PATIENCE));
    assert!(alone.contains("in vain for process 3") || alone.contains("in vain for process 0"), "{alone}");
    for (nodes, address, secret, words) in [
        (3, "a:1", SECRET, "4 processes on 3 nodes"),
        (0, "a:1", SECRET, "4 processes on 0 nodes"),
        (2, "a", SECRET, "not HOST:PORT"),
        (2, ":7", SECRET, "not HOST:PORT"),
        (2, "a:1", "short", "fewer than 16 characters"),
    ] {
        let text = problem(Meeting::new("/x", 0, 4).unwrap().across(nodes, address, secret));
        assert!(text.contains(words), "{text}");
    }
    let text = problem(Meeting::new("tcp:a:1", 0, 4).unwrap().across(2, "a:1", SECRET));
    assert!(text.contains("meet in a folder"), "{text}");
}

/// Memory of words from [`AT`] on, which the system may have or not.
struct Bytes {
    words: Vec<AtomicU64>,
    is_lent: bool,
}

const AT: u64 = 1 << 40;
const LEN: usize = 1 << 20;

impl Bytes {
    fn new(is_lent: bool) -> Self {
        Bytes { words: (0..LEN / 8).map(|_| AtomicU64::new(0)).collect(), is_lent }
    }

    fn all(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect()
    }

    fn set(&self, at: usize, byte: u8) {
        let shift = at % 8 * 8;
        let set = |word: u64| Some(word & !(0xff << shift) | u64::from(byte) << shift);
        self.words[at / 8].fetch_update(Ordering::Relaxed, Ordering::Relaxed, set).unwrap();
    }
}

impl Local for Bytes {
    fn read(&self, at: u64, to: &mut [u8]) {
        let from = (at - AT) as usize;
        let byte = |i: usize| self.words[i / 8].load(Ordering::Relaxed).to_le_bytes()[i % 8];
        (from..).zip(to).for_each(|(i, to)| *to = byte(i));
    }
    fn write(&self, at: u64, from: &[u8]) {
        ((at - AT) as usize..).zip(from).for_each(|(i, byte)| self.set(i, *byte));
    }
    fn lend(
        &self,
        at: u64,
        most: usize,
        f: &mut dyn FnMut(Lent<'_>) -> std::io::Result<usize>,
    ) -> Option<std::io::Result<usize>> {
        let from = (at - AT) as usize;
        // In blocks of an odd number of words, as memory that was mapped in pieces.
        let end = (from + most).min((from / 100_008 + 1) * 100_008).min(LEN);
        Lent::new(&self.words, from..end).filter(|_| self.is_lent).map(f)
    }
}

impl Target for Bytes {
    fn has(&self, at: u64, bytes: u64) -> bool {
        at.checked_sub(AT).and_then(|from| from.checked_add(bytes)).is_some_and(|end| end <= LEN as u64)
    }
    fn change(&self, change: Change) -> u64 {
        self.words[(change.word - AT) as usize / 8].fetch_add(change.value, Ordering::Relaxed)
    }
    fn settle(&self) {}
}

/// The two ends of a stream, one of which is served.
fn served(is_lent: bool) -> (TcpStream, Arc<Bytes>, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let tcp = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    tcp.set_read_timeout(Some(PATIENCE)).unwrap();
    let other = listener.accept().unwrap().0;
    let memory = Arc::new(Bytes::new(is_lent));
    let target = memory.clone();
    (tcp, memory, std::thread::spawn(move || serve(other, &*target, &Arc::<Busy>::default())))
}

fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + i / 251 + seed * 17) as u8).collect()
}

/// Whether the system has the memory of neither end, of one, or of both.
#[test]
fn bytes_and_gaps_come_as_they_went() {
    for (here, there) in [(false, false), (false, true), (true, false), (true, true)] {
        bytes_and_gaps(here, there);
    }
}

fn bytes_and_gaps(is_lent_here: bool, is_lent_there: bool) {
    let (tcp, memory, _) = served(is_lent_there);
    let client = Tcp::new(vec![None, Some(tcp)], PATIENCE);
    let here = Bytes::new(is_lent_here);
    let (mut model, mut own) = (vec![0; LEN], pattern(LEN, 1));
    here.write(AT, &own);
    // At the target, and here; elements of as many bytes, or as many bytes in other elements.
    let spans = [
        ((0, 0, 1, 1), (0, 0, 1, 1)),
        ((3, 1, 1, 1), (7, 1, 1, 1)),
        ((5, 700_001, 700_001, 1), (11, 700_001, 700_001, 1)),
        ((9, 8, 24, 1000), (1, 8, 8, 1000)),
        ((1, 3, 3, 5), (2, 3, 9, 5)),
        ((2, 300_000, 300_007, 3), (0, 300_000, 300_000, 3)),
        ((6, 300_000, 300_000, 3), (13, 100, 110, 9000)),
        ((1, 20_000, 20_001, 40), (4, 16_000, 16_400, 50)),
        ((0, 16_383, 20_000, 50), (0, 16_383, 16_383, 50)),
        ((0, 16_384, 20_001, 50), (3, 16_384, 16_385, 50)),
    ];
    let span = |(at, element, stride, count): (u64, u64, u64, u64)| Span { at: AT + at, element, stride, count };
    let places = |span: Span| {
        let byte = move |i: u64| (span.at - AT + i / span.element * span.stride + i % span.element) as usize;
        (0..span.bytes()).map(byte)
    };
    for (there, mine) in spans.map(|(there, mine)| (span(there), span(mine))) {
        assert_eq!(there.bytes(), mine.bytes());
        client.put(1, there, &here, mine).unwrap();
        places(there).zip(places(mine)).for_each(|(to, from)| model[to] = own[from]);
        assert!(memory.all() == model && here.all() == own, "put of {mine:?} to {there:?}");
        // Others back.
        (0..LEN).for_each(|i| model[i] = model[i].wrapping_add(i as u8 | 1));
        memory.write(AT, &model);
        client.get(1, there, &here, mine).unwrap();
        places(there).zip(places(mine)).for_each(|(from, to)| own[to] = model[from]);
        assert!(memory.all() == model && here.all() == own, "get of {there:?} to {mine:?}");
    }
    let change = Change { word: AT + 8, kind: ffi::TANDEM_WORD_U64, op: ffi::TANDEM_AMO_ADD, value: 7, expected: 0 };
    let old = u64::from_le_bytes(model[8..16].try_into().unwrap());
    assert_eq!(client.change(1, change), Ok(old));
    assert_eq!(client.change(1, change), Ok(old + 7));
    // Nobody is there, or is this process itself.
    assert_eq!((client.change(0, change), client.change(2, change)), (Err(Failure::Closed), Err(Failure::Closed)));
}

/// A request for what is not there, or that is none, ends the stream: nothing is read or written, and nothing panics.
#[test]
fn requests_outside_of_memory_are_refused() {
    let words = |what: u32, kind: i32, op: i32, numbers: [u64; 6]| -> Vec<u8> {
        let head = [what, kind as u32, op as u32, 0];
        let head = head.iter().flat_map(|word| word.to_le_bytes());
        head.chain(numbers.iter().flat_map(|number| number.to_le_bytes())).collect()
    };
    let (last, max) = (AT + LEN as u64, u64::MAX);
    let spans = [
        [AT - 1, 1, 1, 1, 0, 0],
        [last, 1, 1, 1, 0, 0],
        [last - 7, 8, 8, 1, 0, 0],
        [AT, max, max, 1, 0, 0],
        [AT, 1, max, 3, 0, 0],
        [AT, 1 << 40, 1, 1 << 40, 0, 0],
        [AT, 8, 4, 3, 0, 0],
        [AT, 8, 8, 0, 0, 0],
        [AT, 1, 1 << 19, 4, 0, 0],
        [max, 1, 1, 1, 0, 0],
        [0; 6],
    ];
    let bad_words = [
        (ffi::TANDEM_WORD_U64, 0, AT + 4),
        (ffi::TANDEM_WORD_U64, 0, last),
        (ffi::TANDEM_WORD_U32, 0, AT + 2),
        (99, 0, AT),
        (-1, 0, AT),
        (0, 8, AT),
        (0, -1, AT),
    ];
    let mut requests: Vec<Vec<u8>> = Vec::new();
    for numbers in spans {
        requests.extend([1, 2].map(|what| words(what, 0, 0, numbers)));
    }
    requests.extend(bad_words.map(|(kind, op, word)| words(3, kind, op, [word, 1, 0, 0, 0, 0])));
    requests.extend([0, 4, u32::MAX].map(|what| words(what, 0, 0, [AT, 1, 1, 1, 0, 0])));
    for request in requests {
        let (mut tcp, memory, server) = served(true);
        tcp.write_all(&request).unwrap();
        let _ = tcp.write_all(&[0xff; 4096]);
        let mut rest = Vec::new();
        let _ = tcp.read_to_end(&mut rest);
        assert!(rest.is_empty(), "{request:?} was answered");
        server.join().unwrap();
        assert!(memory.all().iter().all(|&byte| byte == 0), "{request:?} has written");
    }
    // One that is cut off in the middle ends, too.
    for bytes in [1000, 100_000] {
        let (mut tcp, memory, server) = served(true);
        tcp.write_all(&words(1, 0, 0, [AT, bytes, bytes, 1, 0, 0])).unwrap();
        tcp.write_all(&[7; 100]).unwrap();
        drop(tcp);
        server.join().unwrap();
        assert!(memory.all()[100..].iter().all(|&byte| byte == 0));
    }
}

/// Who answers with something else, late or not at all: an error in time, and no second attempt on the same stream.
#[test]
fn wrong_and_missing_answers_are_failures() {
    let (span, here) = (Span::plain(AT, 8), Bytes::new(true));
    for answer in [Some(vec![0u8; 16]), Some(vec![0xff; 64]), Some(vec![1; 3]), None] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let tcp = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        tcp.set_read_timeout(Some(SHORT)).unwrap();
        let mut other = listener.accept().unwrap().0;
        let is_silent = answer.is_none();
        let told = std::thread::spawn(move || {
            let mut request = [0; 64];
            other.read_exact(&mut request).unwrap();
            match answer {
                Some(answer) => other.write_all(&answer).unwrap(),
                None => std::thread::sleep(SHORT * 2),
            }
        });
        let client = Tcp::new(vec![Some(tcp)], SHORT);
        let begun = Instant::now();
        let wanted = if is_silent { Failure::Late(SHORT) } else { Failure::Closed };
        assert_eq!(client.get(0, span, &here, span), Err(wanted));
        assert!(begun.elapsed() < SHORT * 2);
        assert_eq!(client.put(0, span, &here, span), Err(wanted));
        told.join().unwrap();
    }
}
