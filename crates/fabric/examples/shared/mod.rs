//! What the examples with arguments have in common: which PEs there are, a thread for each, and how a program ends.

use std::process::ExitCode;
use tandem_fabric::{Error, Meeting, OneSided, Options, Queue, Team, MAX_PES};

/// Why a program ends early, in one line.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) text: String,
    /// 2 for wrong arguments, else 1.
    pub(crate) status: u8,
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        failed(error.to_string())
    }
}

pub(crate) fn failed(text: impl Into<String>) -> Failure {
    Failure { text: text.into(), status: 1 }
}

/// The device and the numbers that `--name value` gives, in the order of `known`, which has names and what holds without them.
pub(crate) fn arguments<const N: usize>(
    given: impl IntoIterator<Item = String>,
    known: [(&str, usize); N],
) -> Result<(Option<String>, [usize; N])> {
    let all = known.map(|(name, number)| format!("{name} {number}")).join(", ");
    let wrong = |what: String| Failure { text: format!("{what}; there are --device sim:4, {all}"), status: 2 };
    let (mut device, mut numbers) = (None, known.map(|(_, number)| number));
    let mut given = given.into_iter();
    while let Some(name) = given.next() {
        let place = known.iter().position(|(known, _)| *known == name);
        if place.is_none() && name != "--device" {
            return Err(wrong(format!("no argument is called {name:?}")));
        }
        let value = given.next().ok_or_else(|| wrong(format!("{name} has no value")))?;
        match place {
            Some(place) => {
                numbers[place] = value.parse().map_err(|_| wrong(format!("{name} {value:?} is no number")))?;
            }
            None => device = Some(value),
        }
    }
    Ok((device, numbers))
}

/// The PEs of `sim:4`, `cuda` or `cuda:0,1`: four pretend ones where none are named. Where the program is one of several processes these are
/// the process's own, one where none are named.
pub(crate) fn open(device: Option<&str>, options: Options) -> Result<Team> {
    let meeting = Meeting::from_env()?;
    let device = device.unwrap_or(if meeting.is_some() { "sim:1" } else { "sim:4" });
    let wrong = |why: String| Failure { text: format!("--device {device:?}: {why}"), status: 2 };
    let other = || wrong(format!("expected sim:1 to sim:{MAX_PES}, cuda or cuda:0,1"));
    if let Some(pes) = device.strip_prefix("sim:") {
        let pes = pes.parse().ok().filter(|pes| (1..=MAX_PES).contains(pes)).ok_or_else(other)?;
        return Ok(match meeting {
            Some(meeting) => Team::sim_in(meeting, pes, options)?,
            None => Team::sim(pes, options)?,
        });
    }
    let list = device.strip_prefix("cuda").ok_or_else(other)?;
    let numbers: Option<Vec<u32>> = match list.strip_prefix(':') {
        Some(list) => {
            Some(list.split(',').map(str::parse).collect::<std::result::Result<_, _>>().map_err(|_| other())?)
        }
        None if list.is_empty() => None,
        None => return Err(other()),
    };
    let found = tandem_cuda::probe().map_err(&wrong)?;
    let numbers = numbers.unwrap_or_else(|| found.iter().map(|gpu| gpu.index).collect());
    let gpu = |number: &u32| match found.iter().find(|gpu| gpu.index == *number) {
        Some(gpu) => gpu.usable.clone().map_err(&wrong),
        None => Err(wrong(format!("there is no GPU {number} among {}", found.len()))),
    };
    let gpus = numbers.iter().map(gpu).collect::<Result<Vec<_>>>()?;
    Ok(match meeting {
        Some(meeting) => Team::cuda_in(meeting, &gpus, options)?,
        None => Team::cuda(&gpus, options)?,
    })
}

/// Does the same for every PE of this process, each on a thread of its own, and returns what each has come to.
pub(crate) fn on_each_pe<R: Send>(team: &Team, body: impl Fn(&Queue) -> Result<R> + Sync) -> Result<Vec<R>> {
    let ends: Vec<Result<R>> = std::thread::scope(|scope| {
        let threads: Vec<_> = team.queues().iter().map(|queue| scope.spawn(|| body(queue))).collect();
        let end = |(thread, queue): (std::thread::ScopedJoinHandle<'_, _>, &Queue)| {
            thread.join().unwrap_or_else(|_| Err(failed(format!("the thread of PE {} has panicked", queue.me()))))
        };
        threads.into_iter().zip(team.queues()).map(end).collect()
    });
    // Where one PE fails, others wait for it until the team has a fault. What failed first is the reason.
    let fault = team.check().err().map(|fault| fault.to_string());
    let (good, bad): (Vec<_>, Vec<_>) = ends.into_iter().partition(std::result::Result::is_ok);
    let mut reasons: Vec<Failure> = bad.into_iter().filter_map(std::result::Result::err).collect();
    reasons.sort_by_key(|reason| Some(&reason.text) == fault.as_ref());
    match reasons.into_iter().next() {
        Some(reason) => Err(reason),
        None => Ok(good.into_iter().filter_map(std::result::Result::ok).collect()),
    }
}

/// Numbers that look like nothing, from 0 to 2^64 (splitmix64 of `seed` and `index`).
pub(crate) fn number(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Prints what a program has found, or why it has not.
pub(crate) fn end(program: &str, result: Result<String>) -> ExitCode {
    match result {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(Failure { text, status }) => {
            eprintln!("{program}: {text}");
            ExitCode::from(status)
        }
    }
}
