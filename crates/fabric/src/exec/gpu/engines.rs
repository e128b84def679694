//! Copy engines: the steps of a schedule as copies on streams, ordered by events. Sums are kernels between them.

use super::super::check::Run;
use super::super::schedule::{Endpoint, Place, Schedule, Shape, Transfer};
use super::super::sim::Bound;
use super::numbered;
use crate::bound::{bound, Watch};
use crate::machine::Point;
use crate::plan::Operation;
use crate::planner::{Algorithm, Item, Planner, HOST_SLOTS};
use crate::world::PinnedLoan;
use crate::{ffi, Error, Result, Symmetric};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use tandem_cuda::{Device, Event, Pinned, Stream};

/// Streams of each PE: as many transfers go on at the same time.
const STREAMS: usize = 6;

pub(super) struct Engines {
    /// By PE: streams for copies, and one for sums after the last.
    streams: Vec<Vec<Arc<Stream>>>,
    /// Rings in host memory; made when they are first needed.
    host: Option<PinnedLoan>,
    /// The ends of the call that used them last, by PE: these may be others than those of the next.
    host_ends: Vec<(usize, Arc<Event>)>,
    device: Option<Device>,
    /// The copies whose times say whether that is right.
    measured: Option<Measured>,
}

/// Begin and end of what went over the links of GPUs and of what went through host memory.
struct Measured {
    links: (Event, Event),
    host: (Event, Event),
}

impl Engines {
    pub(super) fn new(devices: &[Device]) -> Result<Self> {
        let streams =
            |(_, device): (usize, Device)| (0..=STREAMS).map(|_| Ok(Arc::new(Stream::new(device)?))).collect();
        Ok(Self {
            streams: numbered(devices).map(streams).collect::<Result<_>>()?,
            host: None,
            host_ends: Vec::new(),
            device: devices.first().copied(),
            measured: None,
        })
    }

    #[cfg(test)]
    pub(super) fn streams_of(&self, pe: usize) -> &[Arc<Stream>] {
        &self.streams[pe]
    }

    /// Tables of large chunks; copies from one PE to another also go through host memory. With them comes the memory of their rings on the
    /// PEs, to be kept until they have run.
    pub(super) fn bind(&mut self, shared: &Planner, items: &[Item]) -> Result<(Vec<Bound>, Symmetric<u8>)> {
        let tuning = shared.tuning();
        self.adapt(shared);
        let host = shared.through(items);
        let (chunk, slots) =
            if host > 0 { (tuning.host_chunk, HOST_SLOTS) } else { (tuning.engine_chunk, tuning.engine_slots) };
        // Two workers for trees that reduce and spread, one rooted at either side.
        let workers = if items.iter().any(|item| item.call.operation == Operation::AllReduce) { 2 } else { 1 };
        let shape = Shape { workers, chunk: chunk / items.len() as u64 / 16 * 16, slots };
        let table = |item: &Item| match shared.table(item, &shape, Algorithm::Planned(host)) {
            // A machine whose topology does not name its CPUs has no such way.
            Err(_) if host > 0 => shared.table(item, &shape, Algorithm::Planned(0)),
            table => table,
        };
        let tables = items.iter().map(table).collect::<Result<Vec<_>>>()?;
        let rings: u64 = tables.iter().map(|t| t.staging[t.host()]).sum();
        let at = self.rings(shared, rings)?;
        let (bounds, staging) = shared.bind(items, tables, at)?;
        shared.tell_through_host(&bounds);
        Ok((bounds, staging))
    }

    /// The address of so many bytes of host memory.
    fn rings(&mut self, shared: &Planner, bytes: u64) -> Result<u64> {
        let bytes = usize::try_from(bytes).map_err(|_| Error::invalid("staging", "too large"))?;
        if bytes > self.host.as_ref().map_or(0, PinnedLoan::len) {
            let memory = self.device.map(|device| Pinned::new(device, bytes)).transpose()?;
            self.host = memory.map(|memory| PinnedLoan::new(&shared.team().core().world, memory));
        }
        Ok(self.host.as_ref().map_or(1, PinnedLoan::address))
    }

    /// Moves the share towards where both ways take the same time.
    fn adapt(&mut self, shared: &Planner) {
        let is_done = |m: &Measured| m.links.1.is_done().unwrap_or(false) && m.host.1.is_done().unwrap_or(false);
        let Some(measured) = self.measured.take_if(|m| is_done(m)) else { return };
        let time = |(a, b): &(Event, Event)| a.elapsed_ms(b).ok().filter(|ms| *ms > 0.0);
        if let (Some(links), Some(host)) = (time(&measured.links), time(&measured.host)) {
            shared.observe(links.into(), host.into());
        }
    }

    /// Puts all steps on streams. They wait for the queues of all PEs that take part, and those for them; where the host waits, it
    /// does so here, and queues that are idle are left out. Copies that take too long are a fault of the team, here or when somebody
    /// waits for a queue behind them: no copy engine ends a wait by itself.
    pub(super) fn run(&mut self, shared: &Planner, bounds: &[Bound], is_now: bool) -> Result<()> {
        let team = shared.team();
        let mut pes: Vec<usize> = bounds.iter().flat_map(Bound::workers).collect();
        pes.sort_unstable();
        pes.dedup();
        let mut begun = Vec::new();
        for &pe in pes.iter().filter(|&&pe| !is_now || !team.queue(pe).is_idle()) {
            begun.push((pe, Arc::new(stream(team, pe)?.record()?)));
        }
        let is_there = begun.len() < pes.len();
        let is_ringed = bounds.iter().any(|bound| bound.schedule.staging[bound.schedule.host()] > 0);
        if is_ringed {
            begun.append(&mut self.host_ends);
        }
        let mut used: HashMap<(usize, usize), Arc<Stream>> = HashMap::new();
        let mut enqueue =
            Enqueue { engines: self, begun: &begun, used: &mut used, ends: Vec::new(), steps: Vec::new() };
        let put = bounds.iter().try_for_each(|bound| enqueue.bound(bound));
        let (ends, mut steps) = (std::mem::take(&mut enqueue.ends), std::mem::take(&mut enqueue.steps));
        let end = |((pe, _), stream): (&(usize, usize), &Arc<Stream>)| Ok((*pe, Arc::new(stream.record()?)));
        let done = used.iter().map(end).collect::<tandem_cuda::Result<Vec<_>>>()?;
        steps.extend(done.iter().cloned());
        let watch = watch(team, bounds, begun, steps, is_there);
        let waited = match is_now {
            true => team.core().settle_copies(watch),
            false => team.core().watch(watch),
        };
        if !is_now || waited.is_err() {
            // Also after an error: what copies may still write is freed behind the queues.
            for &pe in &pes {
                let queue = stream(team, pe)?;
                done.iter().try_for_each(|(_, event)| queue.wait(event))?;
            }
            if is_ringed {
                self.host_ends = done;
            }
        }
        waited?;
        put?;
        if let (None, [bound]) = (&self.measured, bounds) {
            self.measured = measured(bound, ends);
        }
        Ok(())
    }
}

fn stream(team: &crate::Team, pe: usize) -> Result<&Arc<Stream>> {
    team.queue(pe).stream().ok_or_else(|| Error::invalid("collective", "the PE is not a GPU"))
}

/// What the host looks at while it waits for the copies of a call. `is_there` if some PE has come already.
fn watch(
    team: &crate::Team,
    bounds: &[Bound],
    begun: Vec<(usize, Arc<Event>)>,
    steps: Vec<(usize, Arc<Event>)>,
    is_there: bool,
) -> Watch {
    let bytes = bounds.iter().flat_map(|bound| &bound.schedule.transfers).map(|transfer| transfer.bytes).sum();
    let points = |events: Vec<(usize, Arc<Event>)>| {
        events.into_iter().map(|(pe, event)| (pe, event as Arc<dyn Point>)).collect::<Vec<_>>()
    };
    let place = |bound: &Bound, node: usize| bound.output.get(node).copied().unwrap_or(0);
    let pes = bounds.iter().flat_map(|b| b.workers().enumerate().map(|(node, pe)| (pe, place(b, node)))).collect();
    Watch {
        begun: points(begun),
        steps: points(steps).into(),
        bound: bound(team.core().timeout, bytes),
        since: is_there.then(Instant::now),
        pes,
        bytes,
    }
}

/// Begin and end of a transfer: whether it has to do with host memory, and its events.
struct Span {
    is_host: bool,
    is_first: bool,
    begin: Event,
    end: Event,
}

/// The slowest of each kind. Times of two devices cannot be compared, so each span is of one stream; a way through host memory
/// lasts as long as its last hop, which begins when the first chunk is there.
fn measured(bound: &Bound, ends: Vec<Span>) -> Option<Measured> {
    let is_copy = matches!(bound.schedule.call.operation, Operation::Broadcast | Operation::Send);
    let mut links = None;
    let mut host = None;
    for span in ends.into_iter().filter(|_| is_copy) {
        match (span.is_host, span.is_first) {
            (true, false) => host = Some((span.begin, span.end)),
            (false, _) => links = Some((span.begin, span.end)),
            _ => {}
        }
    }
    Some(Measured { links: links?, host: host? })
}

/// What the steps of one schedule have told each other by events, by channel and chunk.
struct Told {
    /// A chunk is there.
    there: HashMap<(usize, u64), Arc<Event>>,
    /// A chunk has been read: its place in the ring is free.
    read: HashMap<(usize, u64), Arc<Event>>,
    /// By channel: whether somebody waits for its chunks.
    is_awaited: Vec<bool>,
    /// By transfer: which of its PE's streams has it. They take turns.
    numbers: Vec<usize>,
    /// Whether transfers are timed, and by transfer when it began.
    is_timed: bool,
    spans: HashMap<usize, Event>,
}

impl Told {
    fn of(bound: &Bound, engines: &Engines) -> Self {
        let schedule = &bound.schedule;
        let mut count = vec![0; engines.streams.len()];
        let number = |transfer: &Transfer| {
            let count = &mut count[bound.pes[transfer.at]];
            *count += 1;
            (*count - 1) % STREAMS
        };
        let numbers = schedule.transfers.iter().map(number).collect();
        let mut is_awaited = vec![false; schedule.channels.len()];
        let sources = schedule.transfers.iter().flat_map(|t| &t.sources);
        sources.filter_map(|s| s.channel).for_each(|ch| is_awaited[ch] = true);
        let is_timed = schedule.staging[schedule.host()] > 0 && engines.measured.is_none();
        let (there, read, spans) = Default::default();
        Told { there, read, is_awaited, numbers, is_timed, spans }
    }

    /// Whether somebody waits for what a transfer brings.
    fn is_awaited(&self, transfer: &Transfer) -> bool {
        transfer.targets.iter().filter_map(|s| s.channel).any(|ch| self.is_awaited[ch])
    }

    /// Makes `stream` wait until the sources of a chunk are there and its places in rings are free.
    fn wait(&mut self, schedule: &Schedule, transfer: &Transfer, c: u64, stream: &Stream) -> Result<()> {
        for ch in transfer.sources.iter().filter_map(|s| s.channel) {
            self.there.get(&(ch, c)).map_or(Ok(()), |event| stream.wait(event))?;
        }
        for endpoint in &transfer.targets {
            let Place::Ring(ch) = endpoint.place else { continue };
            let Some(old) = c.checked_sub(schedule.slots) else { continue };
            self.read.remove(&(ch, old)).map_or(Ok(()), |event| stream.wait(&event))?;
        }
        Ok(())
    }

    /// Notes when a chunk's sources have been read, on `sums`, and when it has come to its targets, on `stream`: these events.
    fn tell(&mut self, transfer: &Transfer, c: u64, sums: &Stream, stream: &Stream) -> Result<Vec<Arc<Event>>> {
        let mut events = Vec::new();
        for endpoint in &transfer.sources {
            if let Place::Ring(ch) = endpoint.place {
                let event = Arc::new(sums.record()?);
                events.push(event.clone());
                self.read.insert((ch, c), event);
            }
        }
        if self.is_awaited(transfer) {
            let event = Arc::new(stream.record()?);
            events.push(event.clone());
            for ch in transfer.targets.iter().filter_map(|s| s.channel) {
                self.there.insert((ch, c), event.clone());
            }
        }
        Ok(events)
    }
}

struct Enqueue<'a> {
    engines: &'a Engines,
    /// The points of all queues before this.
    begun: &'a [(usize, Arc<Event>)],
    /// Streams that have something to do, by PE and number.
    used: &'a mut HashMap<(usize, usize), Arc<Stream>>,
    ends: Vec<Span>,
    /// What other streams wait for, by PE: each step behind all that it waits for itself.
    steps: Vec<(usize, Arc<Event>)>,
}

impl Enqueue<'_> {
    fn stream(&mut self, pe: usize, number: usize) -> Result<Arc<Stream>> {
        let stream = &self.engines.streams[pe][number];
        if let std::collections::hash_map::Entry::Vacant(entry) = self.used.entry((pe, number)) {
            self.begun.iter().try_for_each(|(_, event)| stream.wait(event))?;
            entry.insert(stream.clone());
        }
        Ok(stream.clone())
    }

    /// All steps of a schedule, in an order in which each finds what it waits for already on a stream.
    fn bound(&mut self, bound: &Bound) -> Result<()> {
        let mut run = Run::new(&bound.schedule);
        let mut told = Told::of(bound, self.engines);
        let mut is_moving = true;
        while is_moving {
            is_moving = false;
            for t in 0..bound.schedule.transfers.len() {
                if run.may(t) {
                    is_moving = true;
                    let steps = self.step(bound, &mut told, t, run.next[t])?;
                    (0..steps).for_each(|_| run.step(t));
                }
            }
        }
        run.finish()
    }

    /// Puts chunk `c` of transfer `t` on streams, or all of it where nothing waits for its chunks: how many chunks that is.
    fn step(&mut self, bound: &Bound, told: &mut Told, t: usize, c: u64) -> Result<u64> {
        let schedule = &bound.schedule;
        let transfer = &schedule.transfers[t];
        let is_sum = transfer.sources.len() > 1;
        // What nothing waits for, before or after, goes as one copy.
        let waits = transfer.sources.iter().any(|s| s.channel.is_some());
        let is_whole = !waits && !told.is_awaited(transfer) && !is_sum;
        let bytes = if is_whole { transfer.bytes } else { schedule.chunk.min(transfer.bytes - c * schedule.chunk) };
        let pe = bound.pes[transfer.at];
        let stream = self.stream(pe, told.numbers[t])?;
        if c == 0 && told.is_timed {
            told.spans.insert(t, stream.record_timed()?);
        }
        let sums = if is_sum { self.stream(pe, STREAMS)? } else { stream.clone() };
        told.wait(schedule, transfer, c, &sums)?;
        let combined = self.combine(bound, transfer, c, bytes, &sums, &stream)?;
        let splits = transfer.targets.len() > 1 && !is_sum && !waits;
        let local = if splits { self.stream(pe, STREAMS)? } else { stream.clone() };
        self.copies(bound, transfer, c, bytes, combined, &stream, &local)?;
        // After the copies: where nothing is summed, it is they that read the ring. `local` is this stream then.
        let steps = told.tell(transfer, c, &sums, &stream)?;
        self.steps.extend(steps.into_iter().map(|event| (pe, event)));
        let steps = if is_whole { schedule.chunks(transfer) } else { 1 };
        if c + steps == schedule.chunks(transfer) {
            if let Some(begin) = told.spans.remove(&t) {
                let is_host = transfer.sources.iter().chain(&transfer.targets).any(|s| s.node == schedule.host());
                let is_first = transfer.sources.iter().all(|s| matches!(s.place, Place::Input));
                self.ends.push(Span { is_host, is_first, begin, end: stream.record_timed()? });
            }
        }
        Ok(steps)
    }

    /// Combines a chunk's sources, where there are several, into the first target that is the PE's own or else the first; says
    /// which. `stream` then waits for it.
    fn combine(
        &self,
        bound: &Bound,
        transfer: &Transfer,
        c: u64,
        bytes: u64,
        sums: &Stream,
        stream: &Stream,
    ) -> Result<Option<Endpoint>> {
        let (Some((kind, how)), true) = (bound.numbers, transfer.sources.len() > 1) else { return Ok(None) };
        let own = transfer.targets.iter().find(|s| s.node == transfer.at);
        let Some(target) = own.or(transfer.targets.first()) else { return Ok(None) };
        let to = bound.address(target, c);
        let all: Vec<u64> = transfer.sources.iter().map(|s| bound.address(s, c)).collect();
        const MOST: usize = 16;
        let mut done = 0;
        while done < all.len() {
            let mut at = [0; MOST];
            // After the first round the target is a source.
            let carried = usize::from(done > 0);
            let more = (MOST - 1 - carried).min(all.len() - done);
            at[..carried].fill(to);
            at[carried..carried + more].copy_from_slice(&all[done..done + more]);
            at[carried + more] = to;
            let sources = (carried + more) as u32;
            let args = ffi::tandem_exec_move { at, bytes, sources, targets: 1, kind: kind as i32, op: how as i32 };
            // SAFETY: the addresses are of buffers of this world, which the caller's items keep until this is on a stream, and
            // which are not freed before the queues, which wait for this stream, have got past it.
            sums.call("combine", |raw| unsafe { ffi::tandem_exec_combine(&args, raw) })?;
            done += more;
        }
        stream.wait(&sums.record()?)?;
        Ok(Some(*target))
    }

    /// Copies a chunk to all targets but `combined`, which is the source if there is one.
    #[allow(clippy::too_many_arguments)] // private, and each is one thing
    fn copies(
        &self,
        bound: &Bound,
        transfer: &Transfer,
        c: u64,
        bytes: u64,
        combined: Option<Endpoint>,
        stream: &Stream,
        local: &Stream,
    ) -> Result<()> {
        let Some(source) = combined.or(transfer.sources.first().copied()) else { return Ok(()) };
        let host = bound.schedule.host();
        let from = bound.address(&source, c);
        let size = bytes as usize;
        for target in transfer.targets.iter().filter(|target| combined.is_none_or(|done| done != **target)) {
            let to = bound.address(target, c);
            // What stays in a PE's memory is not in the way of what leaves it.
            if source.node == transfer.at && target.node == transfer.at {
                // Nor does it take a copy engine away.
                let stream = if transfer.targets.len() > 1 { local } else { stream };
                let mut at = [0; 16];
                (at[0], at[1]) = (from, to);
                let kind = ffi::TANDEM_EXEC_BYTES;
                let args = ffi::tandem_exec_move { at, bytes, sources: 1, targets: 1, kind, op: 0 };
                // SAFETY: as for sums.
                stream.call("copy", |raw| unsafe { ffi::tandem_exec_combine(&args, raw) })?;
                continue;
            }
            stream.call("copy", |raw| {
                // SAFETY: as for sums; host memory is the engines' own or the caller's, page-locked.
                unsafe {
                    use tandem_cuda::ffi::{tandem_cuda_copy, tandem_cuda_copy_to_device, tandem_cuda_copy_to_host};
                    let (to, from) = (to as *mut u8, from as *const u8);
                    match (source.node == host, target.node == host) {
                        (true, _) => tandem_cuda_copy_to_device(to, from, size, raw),
                        (_, true) => tandem_cuda_copy_to_host(to, from, size, raw),
                        _ => tandem_cuda_copy(to, from, size, raw),
                    }
                }
            })?;
        }
        Ok(())
    }
}
