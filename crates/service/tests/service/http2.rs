//! What callers do to a connection of HTTP/2, by mistake or on purpose: it is bounded, it ends, and nobody else notices.

use crate::support::grpc::*;
use crate::support::{grpc, wait_for, Service};
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A service whose worker does not get on.
fn idle(more: &str) -> Service {
    let settings = "workers = ['cpu']\nproof_seconds = 3600\nin_hand = 1\ninterfaces = ['grpc']";
    let service = Service::start(&format!("{settings}\n{more}"));
    service.fault("pause,key,1");
    service
}

/// The service answers others, and soon.
#[track_caller]
fn answers(service: &Service) {
    let begun = Instant::now();
    let caller = Caller::new(service, None);
    let request = caller.with(tandem_service::proto::GetVersionRequest {});
    caller.runtime.block_on(caller.client.clone().get_version(request)).unwrap();
    assert_eq!(service.client().get("/health").unwrap()["status"], "ok");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

/// KiB of memory that the service has.
fn memory(service: &Service) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// A message of gRPC: its length, and so many bytes of it.
fn message(says: usize, bytes: &[u8]) -> Vec<u8> {
    [&[0], &(says as u32).to_be_bytes()[..], bytes].concat()
}

#[test]
fn what_is_said_of_itself_is_bounded() {
    let service = idle("");
    let mut frames = Frames::open(&service);
    // SETTINGS: what the service takes.
    let (kind, _, _, content) = frames.next().unwrap();
    assert_eq!(kind, SETTINGS);
    let said = |id: u16| {
        let of = content.chunks(6).find(|part| part[..2] == id.to_be_bytes()).unwrap();
        u32::from_be_bytes(of[2..].try_into().unwrap())
    };
    // Streams at a time, the window of one, bytes of a frame, bytes of a head.
    assert_eq!([3, 4, 5, 6].map(said), [32, 1 << 20, 64 << 10, 16 << 10]);
}

/// Sends something.
type Send<'a> = &'a dyn Fn(&mut Frames) -> std::io::Result<()>;

#[test]
fn garbage_ends_the_connection() {
    let service = idle("header_seconds = 1");
    for bytes in [
        &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\ngarbage, and more of it"[..],
        b"PRI * HTTP/2.0\r\n\r\nSN\r\n\r\n",
        b"PRI\r\n\r\n",
        b"\0\x01\x02\x03",
        b"",
        b"PRI * HTTP/2.0\r\n\r\nS",
    ] {
        let begun = Instant::now();
        let reply = service.raw(bytes, Duration::from_secs(10));
        assert!(!reply.contains("200 OK"), "{reply}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{bytes:?}: {:?}", begun.elapsed());
    }
    // A frame larger than may be, a frame on a stream that there is not, a head that is none, a stream's number that goes back.
    let wrong: [Send; 4] = [
        &|frames| frames.0.write_all(&[0xff, 0xff, 0xff, HEADERS, 0, 0, 0, 0, 1]),
        &|frames| frames.send(DATA, 0, 9, b"x"),
        &|frames| frames.send(HEADERS, END_HEADERS, 1, &[0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
        &|frames| frames.send(HEADERS, END_HEADERS, 2, &call("GetJob")),
    ];
    for (number, send) in wrong.iter().enumerate() {
        let mut frames = Frames::open(&service);
        send(&mut frames).unwrap();
        assert!(frames.end().is_some_and(|code| code != 0), "{number}");
    }
    answers(&service);
}

/// Random bytes behind a good begin, as frames and as messages: the service is there afterwards.
#[test]
fn random_bytes_are_borne() {
    let service = idle("");
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    for round in 0..300 {
        let mut frames = Frames::open(&service);
        let bytes: Vec<u8> = (0..1 + next() % 200).map(|_| next() as u8).collect();
        let method = ["Submit", "GetJob", "UploadKey", "ListJobs", "None"][round % 5];
        // It may be closed before everything is sent.
        let _ = match round % 3 {
            0 => frames.0.write_all(&bytes),
            1 => frames.send((next() % 10) as u8, next() as u8, (next() % 4) as u32, &bytes),
            _ => frames
                .send(HEADERS, END_HEADERS, 1, &call(method))
                .and_then(|()| frames.send(DATA, 1, 1, &message(bytes.len(), &bytes))),
        };
    }
    answers(&service);
    wait_for("what was begun to be removed", || service.witnesses().is_empty());
}

/// A head that is too long is refused, in one frame or in many that never end.
#[test]
fn heads_are_bounded() {
    let service = idle("");
    let mut frames = Frames::open(&service);
    let long = [call("GetJob"), hpack(&[("x", &"x".repeat(20_000))])].concat();
    frames.send(HEADERS, END_HEADERS | 1, 1, &long).unwrap();
    let answer = loop {
        let (kind, _, stream, _) = frames.next().unwrap();
        if stream == 1 {
            break kind;
        }
    };
    // 431, or no more of that request.
    assert!([HEADERS, RST_STREAM].contains(&answer), "{answer}");
    // A flood of continuations (CVE-2024-27316).
    let mut frames = Frames::open(&service);
    frames.send(HEADERS, 0, 1, &call("GetJob")).unwrap();
    let before = memory(&service);
    let line = hpack(&[("x", &"x".repeat(16_000))]);
    let sent = (0..20_000).take_while(|_| frames.send(CONTINUATION, 0, 1, &line).is_ok()).count();
    assert!(sent < 20_000 && frames.end().is_none_or(|code| code != 0), "{sent} were taken");
    assert!(memory(&service) < before + (32 << 10), "{before} and {} KiB", memory(&service));
    answers(&service);
}

/// Requests that are taken back at once (CVE-2023-44487): the connection ends, and what was begun for them is bounded.
#[test]
fn requests_that_are_taken_back_are_bounded() {
    let service = idle("tokens = true");
    let before = memory(&service);
    let mut frames = Frames::open(&service);
    let begun = Instant::now();
    let token = "tandem_0123456789abcdef_".to_string() + &"0".repeat(64);
    let head = [call("GetJob"), hpack(&[("authorization", &format!("Bearer {token}"))])].concat();
    let taken = (0..200_000u32).take_while(|number| {
        let stream = 2 * number + 1;
        frames
            .send(HEADERS, END_HEADERS, stream, &head)
            .and_then(|()| frames.send(RST_STREAM, 0, stream, &[0, 0, 0, 8]))
            .is_ok()
    });
    let taken = taken.count();
    eprintln!("{taken} were taken in {:?}", begun.elapsed());
    assert!(taken < 200_000);
    // ENHANCE_YOUR_CALM, if it is still read.
    assert!(frames.end().is_none_or(|code| code == 11));
    assert!(memory(&service) < before + (32 << 10), "{before} and {} KiB", memory(&service));
    answers(&service);
}

/// More requests at a time than a connection may have are refused one by one; so are those of all connections together.
#[test]
fn requests_at_a_time_are_bounded() {
    let service = idle("connections = 40\nheader_seconds = 60");
    let open = |count: u32| {
        let mut frames = Frames::open(&service);
        // A submission whose first message does not come.
        for number in 0..count {
            frames.send(HEADERS, END_HEADERS, 2 * number + 1, &call("Submit")).unwrap();
        }
        frames
    };
    let refused = Arc::new(AtomicU32::new(0));
    let count = |frames: &Frames| {
        let (mut frames, refused) = (frames.reader(), refused.clone());
        std::thread::spawn(move || {
            while let Some((kind, _, stream, content)) = frames.next() {
                // REFUSED_STREAM by HTTP/2, or a head of gRPC that says why.
                if stream > 0 && (kind == HEADERS || kind == RST_STREAM && content == [0, 0, 0, 7]) {
                    refused.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
    };
    // Two are more than a connection has. Of the others, forty are under way, whichever came first.
    let (first, second) = (open(34), open(20));
    [&first, &second].into_iter().for_each(count);
    wait_for("refusals", || refused.load(Ordering::SeqCst) == 34 + 20 - 40);
    let caller = Caller::new(&service, None);
    let get = || {
        let request = caller.with(tandem_service::proto::GetVersionRequest {});
        caller.runtime.block_on(caller.client.clone().get_version(request))
    };
    assert_eq!(grpc::refused(get()), (tonic::Code::Unavailable, "busy".into()));
    first.close();
    wait_for("room", || get().is_ok());
    assert_eq!(refused.load(Ordering::SeqCst), 34 + 20 - 40);
}

/// A message that says it has more than may be is refused before it is taken in.
#[test]
fn lengths_are_refused_before_anything_is_read() {
    let service = idle("");
    for says in [(1 << 20) + 1, u32::MAX as usize] {
        let mut frames = Frames::open(&service);
        frames.send(HEADERS, END_HEADERS, 1, &call("Submit")).unwrap();
        frames.send(DATA, 0, 1, &message(says, b"x")).unwrap();
        let answer = loop {
            let (kind, _, stream, content) = frames.next().unwrap();
            if (kind, stream) == (HEADERS, 1) {
                break content;
            }
        };
        assert!(!answer.is_empty());
    }
    answers(&service);
}

/// Half a submission a hundred times, and then nobody: nothing is left, and the next is taken.
#[test]
fn callers_that_vanish_leave_nothing() {
    let service = idle("small_in_database = false");
    let (first, part) = (first(head("small", "")), piece(&[0; 64]));
    let coded = |of: &tandem_service::proto::SubmitRequest| {
        let bytes = prost::Message::encode_to_vec(of);
        message(bytes.len(), &bytes)
    };
    let begun: Vec<Frames> = (0..100)
        .map(|_| {
            let mut frames = Frames::open(&service);
            frames.send(HEADERS, END_HEADERS, 1, &call("Submit")).unwrap();
            frames.send(DATA, 0, 1, &[coded(&first), coded(&part)].concat()).unwrap();
            frames
        })
        .collect();
    wait_for("the halves", || service.witnesses().len() > 90);
    answers(&service);
    drop(begun);
    wait_for("the halves to be removed", || service.witnesses().is_empty());
    // So does one that takes its request back and stays.
    let mut frames = Frames::open(&service);
    frames.send(HEADERS, END_HEADERS, 1, &call("Submit")).unwrap();
    frames.send(DATA, 0, 1, &[coded(&first), coded(&part)].concat()).unwrap();
    wait_for("the half", || !service.witnesses().is_empty());
    frames.send(RST_STREAM, 0, 1, &[0, 0, 0, 8]).unwrap();
    wait_for("the half to be removed", || service.witnesses().is_empty());
    assert!(Caller::new(&service, None).submit(&service, "a").unwrap().is_new);
}

/// A byte now and then: the call ends with a word, and what was begun is removed.
#[test]
fn slow_callers_are_ended() {
    let service = idle("header_seconds = 1\nstall_seconds = 1");
    let coded = prost::Message::encode_to_vec(&first(head("small", "")));
    let code = |frames: &mut Frames| {
        let begun = Instant::now();
        loop {
            let (kind, _, stream, content) = frames.next().unwrap();
            if (kind, stream) == (HEADERS, 1) {
                return String::from_utf8_lossy(&content).into_owned();
            }
            assert!(begun.elapsed() < Duration::from_secs(10));
        }
    };
    // No first message, and no pieces behind it.
    for data in [Vec::new(), message(coded.len(), &coded)] {
        let mut frames = Frames::open(&service);
        frames.send(HEADERS, END_HEADERS, 1, &call("Submit")).unwrap();
        if !data.is_empty() {
            frames.send(DATA, 0, 1, &data).unwrap();
        }
        let mut slow = Frames(frames.0.try_clone().unwrap());
        let trickle = std::thread::spawn(move || {
            // Messages without anything in them are no progress.
            while slow.send(DATA, 0, 1, &[0]).is_ok() && slow.0.take_error().is_ok_and(|error| error.is_none()) {
                std::thread::sleep(Duration::from_millis(300));
            }
        });
        code(&mut frames);
        frames.0.shutdown(std::net::Shutdown::Both).unwrap();
        trickle.join().unwrap();
    }
    wait_for("the halves to be removed", || service.witnesses().is_empty());
    assert_eq!(service.metric("tandem_grpc_requests_total{method=\"Submit\",code=\"DeadlineExceeded\"}"), 2.0);
    assert!(Caller::new(&service, None).submit(&service, "a").unwrap().is_new);
}

/// A connection without requests is asked to end, and ended where it does not; one that has some stays.
#[test]
fn connections_of_no_use_end() {
    let service = idle("stall_seconds = 1");
    let caller = Caller::new(&service, None);
    let id = caller.submit(&service, "a").unwrap().job.unwrap().id;
    let begun = Instant::now();
    let request = caller.with(tandem_service::proto::WaitJobRequest { id });
    let mut stream = caller.runtime.block_on(caller.client.clone().wait_job(request)).unwrap().into_inner();
    assert_eq!(Frames::open(&service).end(), Some(0));
    assert!((1.0..6.0).contains(&begun.elapsed().as_secs_f64()), "{:?}", begun.elapsed());
    // Nothing but the begin, without settings.
    let mut silent = Frames(TcpStream::connect(service.address()).unwrap());
    silent.0.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    silent.0.write_all(PREFACE).unwrap();
    silent.end();
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
    // Its request is under way all the while.
    std::fs::write(service.at("go"), "").unwrap();
    let mut last = tandem_service::proto::State::Pending;
    while let Some(job) = caller.runtime.block_on(stream.message()).unwrap() {
        last = job.state();
    }
    assert_eq!(last, tandem_service::proto::State::Done);
}

/// One that takes nothing of its replies, which HTTP/2 allows for each of them, holds its places no longer than one of HTTP/1 does.
#[test]
fn callers_that_take_nothing_are_ended() {
    // So long that it is seen that the places are taken, also where the machine is busy.
    let service = idle("stall_seconds = 3\nconnections = 32");
    let begun = Instant::now();
    let mut frames = Frames::open(&service);
    // SETTINGS_INITIAL_WINDOW_SIZE 0.
    frames.send(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]).unwrap();
    for number in 0..32u32 {
        frames.send(HEADERS, END_HEADERS, 2 * number + 1, &call("GetVersion")).unwrap();
        frames.send(DATA, 1, 2 * number + 1, &message(0, b"")).unwrap();
    }
    let get = || {
        // A connection on which everything is refused is of no use, and ends, too.
        let caller = Caller::new(&service, None);
        let request = caller.with(tandem_service::proto::GetVersionRequest {});
        caller.runtime.block_on(caller.client.clone().get_version(request))
    };
    // One that comes before all are there would take the place of one of them.
    let answered = || service.metric("tandem_grpc_requests_total{method=\"GetVersion\",code=\"Ok\"}");
    wait_for("all places to be taken", || answered() == 32.0);
    assert_eq!(refused(get()), (tonic::Code::Unavailable, "busy".into()));
    wait_for("the places", || get().is_ok());
    assert!((3.0..30.0).contains(&begun.elapsed().as_secs_f64()), "{:?}", begun.elapsed());
    frames.end();
}

/// One that waits is answered for as long as a request may wait, and no longer.
#[test]
fn waiting_has_an_end() {
    let service = idle("wait_seconds = 1");
    let caller = Caller::new(&service, None);
    let id = caller.submit(&service, "a").unwrap().job.unwrap().id;
    let begun = Instant::now();
    let request = caller.with(tandem_service::proto::WaitJobRequest { id });
    let mut stream = caller.runtime.block_on(caller.client.clone().wait_job(request)).unwrap().into_inner();
    while caller.runtime.block_on(stream.message()).unwrap().is_some() {}
    assert!((0.9..4.0).contains(&begun.elapsed().as_secs_f64()), "{:?}", begun.elapsed());
}
