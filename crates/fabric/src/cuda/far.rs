//! The way to GPUs of other nodes: NVSHMEM, in whose memory the windows are. Each process is a node with one GPU.

use super::windows::Windows;
use super::{OPEN, STAGING};
use crate::bound::{bound, PATIENCE};
use crate::process::{Group, Parcel};
use crate::{Error, Result};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tandem_cuda::nvshmem::{Nvshmem, Pes, ID_BYTES};
use tandem_cuda::{Device, Event, Stream};

/// Bytes of a window, unless the options say otherwise: it has memory from the start.
pub(crate) const WINDOW: u64 = 1 << 30;
/// The variable that names NVSHMEM's host library.
const LIBRARY: &str = "TANDEM_NVSHMEM";
/// How long NVSHMEM may take to start at least, whatever the team's timeout is: it opens networks and maps memory.
const START: Duration = Duration::from_secs(60);
/// What the memory begins at a multiple of.
const ALIGNMENT: usize = 2 << 20;
/// Bytes of a place where a queue keeps what it stores elsewhere, and how many there are.
const SLOT: u64 = 16;
const SLOTS: u64 = 4096;

/// NVSHMEM's memory in this process, which one team at a time has.
struct Held {
    at: u64,
    bytes: u64,
    is_used: bool,
}

static HELD: Mutex<Held> = Mutex::new(Held { at: 0, bytes: 0, is_used: false });

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The right of a team to that memory.
struct Lease;

impl Lease {
    fn take() -> std::result::Result<Self, String> {
        if std::mem::replace(&mut lock(&HELD).is_used, true) {
            return Err("a team over several nodes is open in this process; there is one at a time".into());
        }
        Ok(Lease)
    }

    /// At least so many bytes of it, at one offset in all processes: all have as much, and call this together.
    fn memory(&self, pes: &'static Pes, bytes: u64, patience: Duration) -> std::result::Result<u64, String> {
        let mut held = lock(&HELD);
        if held.bytes < bytes {
            let before = std::mem::replace(&mut *held, Held { at: 0, bytes: 0, is_used: true });
            if before.bytes > 0 {
                // SAFETY: `allocate` has returned it, and the team that had it is gone with its queues.
                unsafe { pes.free(before.at, patience) }?;
            }
            let size = usize::try_from(bytes).map_err(|_| format!("{bytes} bytes are no size"))?;
            held.at = pes.allocate(size, ALIGNMENT, patience)?;
            held.bytes = bytes;
        }
        Ok(held.at)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        lock(&HELD).is_used = false;
    }
}

/// NVSHMEM as a process has it when it meets the others.
enum Found {
    Running(&'static Pes),
    Loaded(Nvshmem),
}

/// What a process says of that: all say the same, but for the id.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Says {
    version: String,
    is_running: bool,
    /// Bytes of its memory.
    held: u64,
    /// The id by which PEs find each other, if the process has made it.
    id: Option<[u8; ID_BYTES]>,
}

impl Says {
    fn text(&self) -> String {
        let state = if self.is_running { "runs" } else { "is not started" };
        format!("NVSHMEM {}, which {state}, with {} bytes", self.version, self.held)
    }
}

fn find(device: Device, me: usize, all: usize) -> std::result::Result<(Found, Says), String> {
    let held = lock(&HELD).bytes;
    if let Some(pes) = Pes::running()? {
        if (pes.place(), pes.device()) != ((me, all), device) {
            return Err(format!("NVSHMEM runs in this process as {pes:?} on {}, and not as PE {me} of {all} on {device}; start the processes anew", pes.device()));
        }
        return Ok((Found::Running(pes), Says { version: pes.version(), is_running: true, held, id: None }));
    }
    let path = std::env::var_os(LIBRARY).map(PathBuf::from);
    let hint = |problem: String| format!("{problem} ({LIBRARY} names its file)");
    let nvshmem = Nvshmem::load(path.as_deref()).map_err(hint)?;
    let id = (me == 0).then(|| nvshmem.unique_id()).transpose()?;
    let says = Says { version: nvshmem.version(), is_running: false, held, id };
    Ok((Found::Loaded(nvshmem), says))
}

/// Tells the others what this process has and what its device is, and hears it of all: their devices, and process 0's id. `bytes` of memory are
/// wanted.
///
/// # Errors
/// As of an exchange; a process cannot use NVSHMEM, or has another one: all get this error.
fn agree(
    group: &Group,
    bytes: u64,
    device: &str,
    mine: std::result::Result<&Says, &String>,
) -> Result<(Vec<String>, [u8; ID_BYTES])> {
    let note = match mine {
        Ok(says) => format!("has {}\n{device}", says.text()),
        Err(problem) => format!("failed\n{problem}"),
    };
    let id = mine.ok().and_then(|says| says.id);
    let numbers = id.iter().flat_map(|id| id.chunks_exact(8)).map(bytemuck::pod_read_unaligned).collect();
    let about = format!("GPUs of several nodes, by NVSHMEM, with {bytes} bytes each");
    let all = group.exchange(OPEN, Parcel { note, numbers, ..Parcel::about(about) })?;
    let name = |rank: usize| group.process_of(group.pes()[rank].start).map_or(String::new(), |it| it.to_string());
    let notes: Vec<(&str, &str)> = all.iter().filter_map(|parcel| parcel.note.split_once('\n')).collect();
    if notes.len() != all.len() {
        return Err(Error::processes(OPEN, "a process has not said which NVSHMEM it has"));
    }
    if let Some((rank, (_, problem))) = notes.iter().enumerate().find(|(_, (has, _))| *has == "failed") {
        return Err(Error::processes(OPEN, format!("{}: {problem}", name(rank))));
    }
    let first = notes[0].0;
    if let Some((rank, (other, _))) = notes.iter().enumerate().find(|(_, (has, _))| *has != first) {
        let problem = format!(
            "{} {first}; {} {other}: all processes have the same NVSHMEM, and start it together",
            name(0),
            name(rank)
        );
        return Err(Error::processes(OPEN, problem));
    }
    let mut id = [0; ID_BYTES];
    let words = &all[0].numbers;
    if !words.is_empty() && words.len() * 8 != ID_BYTES {
        return Err(Error::processes(OPEN, format!("{} has sent an id of {} words", name(0), words.len())));
    }
    id.chunks_exact_mut(8).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_ne_bytes()));
    Ok((notes.into_iter().map(|(_, device)| device.to_string()).collect(), id))
}

/// Tells the others whether this process has done its part, and fails where one has not.
fn together<T>(group: &Group, about: &str, own: std::result::Result<T, String>) -> Result<T> {
    let note = own.as_ref().err().cloned().unwrap_or_default();
    let all = group.exchange(OPEN, Parcel { note, ..Parcel::about(about) })?;
    let failed = all.iter().zip(group.pes()).find(|(parcel, _)| !parcel.note.is_empty());
    if let Some((parcel, pes)) = failed {
        let process = group.process_of(pes.start).map_or(String::new(), |process| process.to_string());
        return Err(Error::processes(OPEN, format!("{process}: {}", parcel.note)));
    }
    own.map_err(|problem| Error::processes(OPEN, problem))
}

/// Has NVSHMEM do once what streams will be told, at the next PE, in memory from `at` on that nobody uses yet: a kernel that is loaded later
/// could wait for another that waits for it.
fn warm(pes: &'static Pes, at: u64, patience: Duration) -> std::result::Result<(), String> {
    let (me, all) = pes.place();
    let work = || -> tandem_cuda::Result<bool> {
        let stream = Stream::new(pes.device())?;
        let (next, bytes) = ((me + 1) % all, SLOT as usize);
        stream.call("load NVSHMEM's kernels", |raw| {
            // SAFETY: all places are of memory that all PEs have allocated; the stream is of the PE's device.
            unsafe {
                pes.put(at + SLOT, at, bytes, next, raw);
                pes.get(at + 2 * SLOT, at, bytes, next, raw);
                pes.signal(at + 3 * SLOT, 0, false, next, raw);
                pes.signal(at + 4 * SLOT, 0, true, next, raw);
                pes.quiet(raw);
                pes.settle(at, raw);
            }
            tandem_cuda::ffi::TANDEM_OK
        })?;
        stream.synchronize_until(Instant::now() + patience)
    };
    match work() {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!("NVSHMEM has not moved {SLOT} bytes in {patience:.1?}")),
        Err(error) => Err(error.to_string()),
    }
}

/// NVSHMEM for one team.
pub(crate) struct Far {
    pub(super) pes: &'static Pes,
    pub(super) windows: Windows,
    group: Arc<Group>,
    /// By PE: what its process calls its device.
    names: Vec<String>,
    /// Whether NVSHMEM has mapped the memory of all PEs here.
    is_mapped: bool,
    /// Slots that no queue has, and what is to have happened before one is used.
    slots: Mutex<Vec<(u64, Option<Event>)>>,
    /// Where the host's reads and writes pass through.
    pub(super) staging: u64,
    _lease: Lease,
}

impl Far {
    /// Starts NVSHMEM in all processes, unless it runs, and takes memory of it for windows of `window` bytes. Each step waits for the others
    /// for `patience` at most, or a minute where that is longer.
    ///
    /// # Errors
    /// As of an exchange; NVSHMEM cannot be used in a process, or is another one there; too little memory.
    pub(crate) fn open(group: &Arc<Group>, device: Device, window: u64, patience: Duration) -> Result<Arc<Self>> {
        let (me, all, patience) = (group.local().start, group.count(), patience.max(START));
        let bytes = window + SLOT * SLOTS + STAGING as u64;
        let found = Lease::take().and_then(|lease| Ok((lease, find(device, me, all)?)));
        let (names, id) = agree(group, bytes, &device.to_string(), found.as_ref().map(|(_, (_, says))| says))?;
        let (lease, (found, _)) = found.map_err(|problem| Error::processes(OPEN, problem))?;
        let started = match found {
            Found::Running(pes) => Ok(pes),
            Found::Loaded(nvshmem) => nvshmem.start(device, (me, all), id, patience),
        };
        let pes = together(group, "start NVSHMEM", started)?;
        let at = together(group, "allocate memory of NVSHMEM", lease.memory(pes, bytes, patience))?;
        let windows = Windows::around(at, window, me, all).map_err(|error| error.to_string());
        let windows = together(group, "agree on addresses", windows)?;
        together(group, "load NVSHMEM's kernels", warm(pes, at + window, patience))?;
        let slots = (0..SLOTS).map(|slot| (at + window + slot * SLOT, None)).collect();
        let far = Far {
            pes,
            windows,
            group: group.clone(),
            names,
            is_mapped: pes.is_mapped(at),
            slots: Mutex::new(slots),
            staging: at + window + SLOT * SLOTS,
            _lease: lease,
        };
        Ok(Arc::new(far))
    }

    /// What PE `pe` is.
    pub(super) fn name(&self, pe: usize) -> String {
        self.names.get(pe).cloned().unwrap_or_default()
    }

    /// Says if the process of PE `pe` has left: its memory may go any time.
    pub(super) fn is_there(&self, op: &'static str, pe: usize) -> Result<()> {
        if !self.group.has_left(pe) {
            return Ok(());
        }
        let process = self.group.process_of(pe).map_or(String::new(), |process| process.to_string());
        Err(Error::processes(op, format!("{process} has left, and its memory with it")))
    }

    /// Whether the process of PE `pe` has left.
    pub(super) fn has_left(&self, pe: usize) -> bool {
        self.group.has_left(pe)
    }

    /// Makes a stream see what came by a network before a word that it has seen; `word` is one of 64 bits of this PE.
    pub(super) fn settle(&self, stream: &Stream, word: u64) -> Result<()> {
        if self.is_mapped {
            return Ok(());
        }
        let settled = stream.call("see what other nodes wrote", |raw| {
            // SAFETY: the word is of the window, the stream of the PE's device.
            unsafe { self.pes.settle(word, raw) };
            tandem_cuda::ffi::TANDEM_OK
        });
        Ok(settled?)
    }

    /// Tells a stream to copy `bytes` bytes of the memory that the host passes through to a place of PE `pe`'s window.
    pub(super) fn send_staged(
        &self,
        op: &'static str,
        stream: &Stream,
        (pe, to): (usize, u64),
        bytes: usize,
    ) -> Result<()> {
        self.is_there(op, pe)?;
        let told = stream.call(op, |raw| {
            // SAFETY: whoever calls has checked the place, and has the staging memory, of which this is no more, to itself; the stream is of the PE's
            // device.
            unsafe {
                self.pes.put(to, self.staging, bytes, pe, raw);
                self.pes.quiet(raw);
            }
            tandem_cuda::ffi::TANDEM_OK
        });
        Ok(told?)
    }

    /// Tells a stream to copy `bytes` bytes from a place of PE `pe`'s window to the memory that the host passes through.
    pub(super) fn fetch_staged(
        &self,
        op: &'static str,
        stream: &Stream,
        (pe, from): (usize, u64),
        bytes: usize,
    ) -> Result<()> {
        self.is_there(op, pe)?;
        let told = stream.call(op, |raw| {
            // SAFETY: as above.
            unsafe {
                self.pes.get(self.staging, from, bytes, pe, raw);
                self.pes.quiet(raw);
            }
            tandem_cuda::ffi::TANDEM_OK
        });
        Ok(told?)
    }

    /// An error of the host's copy to or from PE `pe`: where it was late it is that PE's process that has not answered.
    pub(super) fn late(&self, op: &'static str, error: Error, pe: usize) -> Error {
        let Error::Late { bytes, waited, .. } = error else { return error };
        let process = self.group.process_of(pe).map_or(String::new(), |process| process.to_string());
        Error::processes(
            op,
            format!(
                "{process} has not taken or given {bytes} bytes in {waited:.1?}; look whether it and the network work"
            ),
        )
    }

    /// A place of 16 bytes in memory that other PEs' copies may come from.
    pub(super) fn slot(&self) -> Result<u64> {
        let mut slots = lock(&self.slots);
        let is_free = |(_, end): &(u64, Option<Event>)| end.as_ref().is_none_or(|end| end.is_done().unwrap_or(false));
        let Some(index) = slots.iter().position(is_free) else {
            return Err(Error::invalid("p", format!("{SLOTS} queues store to other nodes; there can be no more")));
        };
        Ok(slots.swap_remove(index).0)
    }

    /// Gives it back, to be used after `end`.
    pub(super) fn give_back(&self, slot: u64, end: Event) {
        lock(&self.slots).push((slot, Some(end)));
    }
}

impl Drop for Far {
    /// Overwrites what the team had in memory that another one may get. No queue of the team is at work on it any more.
    fn drop(&mut self) {
        let (at, bytes) = (self.windows.base(), self.staging + STAGING as u64 - self.windows.base());
        let Ok(stream) = Stream::new(self.pes.device()) else { return };
        let wiped = stream.call("wipe memory", |raw| {
            // SAFETY: the memory is NVSHMEM's, which stays, and this team's alone until the lease is gone.
            unsafe { tandem_cuda::ffi::tandem_cuda_memset(at as *mut u8, 0, bytes as usize, raw) }
        });
        // A device that has failed has nothing to give away.
        let _ = wiped.and_then(|()| stream.synchronize_until(Instant::now() + bound(PATIENCE, bytes)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Meeting;
    use std::net::TcpListener;

    const PATIENCE: Duration = Duration::from_secs(10);

    /// Groups of so many processes, which are threads here and each of which is a node.
    fn groups(size: usize) -> Vec<Arc<Group>> {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        each(size, |rank| {
            let meeting = Meeting::new(&Meeting::unique(), rank, size).unwrap().within(PATIENCE);
            let meeting = meeting.across(size, &address, "known to all who are to come").unwrap();
            Group::meet(meeting, 1, "terms", PATIENCE).unwrap()
        })
    }

    fn each<T: Send>(size: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..size).map(|rank| (rank, &f)).map(|(rank, f)| scope.spawn(move || f(rank))).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        })
    }

    fn says(rank: usize) -> Says {
        let id = (rank == 0).then(|| std::array::from_fn(|i| i as u8 ^ 0x5a));
        Says { version: "3.8.0".into(), is_running: false, held: 0, id }
    }

    #[test]
    fn all_get_the_id_of_the_first_and_the_names_of_all() {
        let groups = groups(3);
        let got = each(3, |rank| agree(&groups[rank], 100, &format!("cuda:{rank}"), Ok(&says(rank))).unwrap());
        for (names, id) in got {
            assert_eq!(names, ["cuda:0", "cuda:1", "cuda:2"]);
            assert_eq!(Some(id), says(0).id);
        }
        // Where it runs there is none.
        let running = Says { is_running: true, held: 7, ..says(1) };
        let got = each(3, |rank| agree(&groups[rank], 100, "cuda:0", Ok(&running)).unwrap());
        assert!(got.into_iter().all(|(_, id)| id == [0; ID_BYTES]));
    }

    /// One that differs in its bytes, its version, or what has become of NVSHMEM before; or that cannot use it.
    #[test]
    fn processes_that_differ_are_named_in_all() {
        let groups = groups(2);
        let other = |change: fn(&mut Says)| {
            let mut other = says(1);
            change(&mut other);
            other
        };
        let cases = [
            (100, Ok(other(|says| says.version = "3.4.5".into())), "has NVSHMEM 3.4.5"),
            (100, Ok(other(|says| says.is_running = true)), "which runs"),
            (100, Ok(other(|says| says.held = 5)), "with 5 bytes"),
            (100, Err("no such file".to_string()), "no such file"),
            (101, Ok(says(1)), "with 101 bytes"),
        ];
        for (bytes, second, words) in cases {
            let texts = each(2, |rank| {
                let first = Ok(says(0));
                let (bytes, mine) = if rank == 0 { (100, &first) } else { (bytes, &second) };
                agree(&groups[rank], bytes, "cuda:0", mine.as_ref()).unwrap_err().to_string()
            });
            for text in texts {
                assert!(text.contains("process 1 (pid") && text.contains(words), "{text}");
            }
        }
        // An id of another length.
        let texts = each(2, |rank| {
            let about = "GPUs of several nodes, by NVSHMEM, with 100 bytes each";
            if rank == 0 {
                let note = format!("has {}\ncuda:0", says(0).text());
                return groups[0]
                    .exchange(OPEN, Parcel { note, numbers: vec![1; 15], ..Parcel::about(about) })
                    .map(drop);
            }
            agree(&groups[1], 100, "cuda:0", Ok(&says(1))).map(drop)
        });
        let text = texts[1].as_ref().unwrap_err().to_string();
        assert!(texts[0].is_ok() && text.contains("an id of 15 words"), "{text}");
    }

    #[test]
    fn what_one_has_not_done_is_an_error_of_all() {
        let groups = groups(2);
        let done = each(2, |rank| together(&groups[rank], "a step", Ok::<_, String>(rank)).unwrap());
        assert_eq!(done, [0, 1]);
        let texts = each(2, |rank| {
            let own = if rank == 1 { Err("no memory".to_string()) } else { Ok(()) };
            together(&groups[rank], "a step", own).unwrap_err().to_string()
        });
        assert!(texts.iter().all(|text| text.contains("process 1 (pid") && text.contains("no memory")), "{texts:?}");
    }

    #[test]
    fn one_team_at_a_time_has_the_memory() {
        let first = Lease::take().unwrap();
        assert!(Lease::take().err().unwrap().contains("one at a time"));
        drop(first);
        drop(Lease::take().unwrap());
    }
}
