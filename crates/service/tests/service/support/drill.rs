//! A drill: callers send jobs to several nodes, each until it is accepted, while things break. No job is lost, wrong, or done twice.

use super::{codes, Service};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tandem_service::client::{CallError, Client, Content, Method};

/// How many jobs, where not so many as a test has by itself.
const JOBS: &str = "TANDEM_DRILL_JOBS";

/// Callers at a time.
const SENDERS: usize = 3;

/// Between two things that break.
const PAUSE: Duration = Duration::from_millis(400);

/// Each thing breaks once at least.
const ROUNDS: usize = 8;

pub(crate) fn jobs(usual: usize) -> usize {
    std::env::var(JOBS).map_or(usual, |jobs| jobs.parse().unwrap())
}

/// Sends so many jobs while `breaks` is called with a number that grows, and looks at each of them. What `breaks` did in its round 7 of 8
/// mends what others did. Fails the test unless each job has one proof, which is right, of one attempt.
pub(crate) fn run(jobs: usize, mut nodes: Vec<Service>, mut breaks: impl FnMut(usize, &mut [Service])) {
    let folders: Vec<PathBuf> = nodes.iter().map(|node| node.folder.path().to_path_buf()).collect();
    let begun = Instant::now();
    let mut round = 0;
    let ids: Vec<String> = std::thread::scope(|scope| {
        let sender = |part: usize| {
            let mut caller = Caller::new(&folders);
            scope.spawn(move || (part..jobs).step_by(SENDERS).map(|job| caller.send(job)).collect::<Vec<_>>())
        };
        let senders: Vec<_> = (0..SENDERS).map(sender).collect();
        // Beside them, also when all are accepted and wait.
        while round < ROUNDS || senders.iter().any(|sender| !sender.is_finished()) {
            round += 1;
            std::thread::sleep(PAUSE);
            breaks(round, &mut nodes);
        }
        let parts: Vec<Vec<String>> = senders.into_iter().map(|sender| sender.join().unwrap()).collect();
        (0..jobs).map(|job| parts[job % SENDERS][job / SENDERS].clone()).collect()
    });
    println!("{jobs} jobs accepted after {:.1} s", begun.elapsed().as_secs_f64());
    while open(&nodes) > 0 {
        round += 1;
        std::thread::sleep(PAUSE);
        breaks(round, &mut nodes);
        assert!(begun.elapsed() < Duration::from_secs(60 + jobs as u64 / 5), "{} jobs wait", open(&nodes));
    }
    breaks(ROUNDS - 1, &mut nodes);
    println!("{round} kills and cuts; all ended after {:.1} s", begun.elapsed().as_secs_f64());
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), jobs);
    // The job that was sent is that which was accepted, by whichever node it is asked for again.
    for job in [0, jobs / 2, jobs - 1] {
        assert_eq!(Caller::new(&folders[2..]).send(job), ids[job]);
    }
    let nodes = &nodes;
    let again: usize = std::thread::scope(|scope| {
        let looks = |part: usize| {
            let mine = ids.iter().enumerate().skip(part).step_by(SENDERS);
            scope.spawn(move || look(&nodes[part], mine.map(|(_, id)| id)))
        };
        (0..SENDERS).map(looks).map(|thread| thread.join().unwrap()).sum()
    });
    println!("{jobs} jobs, {jobs} proofs, {again} attempts more than jobs, {:.1} s", begun.elapsed().as_secs_f64());
    assert!(again > 0);
    let left = nodes[0].client().get("/v1/jobs?limit=1000").unwrap()["jobs"].as_array().unwrap().len();
    assert_eq!(left, jobs.min(1000));
}

/// Jobs that have not ended, by a node that answers.
fn open(nodes: &[Service]) -> u64 {
    let overview = nodes.iter().find_map(|node| node.client().get("/v1/overview").ok());
    let count = |line: &Value| ["pending", "running"].iter().filter_map(|of| line[of].as_u64()).sum::<u64>();
    overview.map_or(1, |overview| overview["queue"].as_array().unwrap().iter().map(count).sum())
}

/// Each of these jobs has one proof, which is right. How many attempts more there were.
fn look<'a>(node: &Service, ids: impl Iterator<Item = &'a String>) -> usize {
    let (verifier, mut again) = (node.verifier(), 0);
    for id in ids {
        let job = node.ended(id);
        let done = codes(&job).into_iter().filter(|code| *code == "done").count();
        assert!(job["state"] == "done" && done == 1 && !codes(&job).contains(&""), "{job}");
        again += codes(&job).len() - 1;
        node.verify(&verifier, id);
    }
    again
}

/// Somebody who sends a job to one node after the other, until it is accepted.
struct Caller {
    /// Folders of the nodes, and how each is reached.
    nodes: Vec<(PathBuf, Option<Client>)>,
}

impl Caller {
    fn new(folders: &[PathBuf]) -> Caller {
        Caller { nodes: folders.iter().map(|folder| (folder.clone(), None)).collect() }
    }

    fn send(&mut self, job: usize) -> String {
        let (request, begun) = (format!("job-{job}"), Instant::now());
        for turn in job.. {
            assert!(begun.elapsed() < Duration::from_secs(60), "{request} is not accepted");
            let at = turn % self.nodes.len();
            let (folder, client) = &mut self.nodes[at];
            if client.is_none() {
                // It is another one after each start.
                *client = std::fs::read_to_string(folder.join("address")).ok().and_then(|at| Client::new(&at).ok());
            }
            let headers = [("idempotency-key", request.as_str())];
            let witness = folder.join("small.wtns");
            let call = |of: &Client| of.call(Method::POST, "/v1/jobs?key=small", &headers, Content::File(&witness));
            match client.as_ref().map(call) {
                Some(Ok(sent)) => return id(&sent),
                Some(Err(CallError::Unreachable(_) | CallError::Refused { status: 503, .. })) | None => *client = None,
                Some(Err(other)) => panic!("{request}: {other:?}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        unreachable!()
    }
}

pub(crate) fn kill_worker(node: &Service) {
    let workers = node.client().get("/v1/workers");
    if let Some(pid) = workers.ok().and_then(|workers| workers["workers"][0]["pid"].as_u64()) {
        // It may have gone already.
        let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
    }
}

fn id(job: &Value) -> String {
    job["id"].as_str().unwrap().into()
}
