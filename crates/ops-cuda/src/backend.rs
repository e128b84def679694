//! The team of GPUs.

use crate::all_gather::AllGatherCache;
use crate::lane::{on_threads, LaneCtx};
use crate::msm::Ahead;
use crate::spans::{Clock, Recorded};
use std::ops::Range;
use std::sync::Arc;
use tandem_cuda::{Device, DeviceBuffer, DevicePtr, Event, Pinned, PinnedBlock, PinnedPool, Source, Upload};
use tandem_ops::backend::{check_pieces, check_range, check_same, COPY_TO_LANE};
use tandem_ops::timeline::{count, BackendId, Ends, DEALS};
use tandem_ops::{
    check_lanes_differ, check_room, memory, Arriving, Backend, Buffer, Dealt, DeviceKind, Error, HostBuf, HostMemory,
    Info, Lane, Pending, Pieces, Result, Timeline, Wire,
};

/// Page-locked host memory that is kept when nobody uses it: four witnesses of 2^24 values, or more where the host has much. To lock the
/// 12 GiB of one of Filecoin's largest circuits takes a second.
fn kept_host_bytes() -> usize {
    const LEAST: u64 = 2 << 30;
    let memory::Memory { total, .. } = memory::host();
    let third = if total == u64::MAX { LEAST } else { total / 3 };
    usize::try_from(third.max(LEAST)).unwrap_or(usize::MAX)
}

/// A team of GPUs; lane i is the i-th of them.
pub struct Cuda {
    pub(crate) lanes: Vec<Arc<LaneCtx>>,
    clock: Arc<Clock>,
    host_blocks: Arc<PinnedPool>,
    gathers: AllGatherCache,
    /// Kernels that are loaded before they are needed.
    pub(crate) ahead: Ahead,
}

/// A page-locked block as host memory of uploads.
struct Locked(PinnedBlock);

impl HostMemory for Locked {
    fn bytes(&self) -> &[u8] {
        self.0.as_slice()
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.bytes()
    }
}

/// Page-locked memory of its own.
struct Own(Pinned);

impl HostMemory for Own {
    fn bytes(&self) -> &[u8] {
        self.0.as_slice()
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.bytes()
    }
}

/// What a copy reads.
struct Kept<T: Wire>(Arc<HostBuf<T>>);

impl<T: Wire> Source for Kept<T> {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

/// A buffer in a GPU's memory.
pub struct CudaBuf<T: Wire> {
    memory: DeviceBuffer<T>,
    lane: Lane,
    /// Of a share that was dealt: when it is there.
    there: Option<Event>,
}

impl<T: Wire> Buffer<T> for CudaBuf<T> {
    fn len(&self) -> usize {
        self.memory.len()
    }
    fn lane(&self) -> Lane {
        self.lane
    }
}

impl<T: Wire> CudaBuf<T> {
    /// The memory itself, to put other memory of this length and lane in its place.
    pub(crate) fn memory(&mut self) -> &mut DeviceBuffer<T> {
        &mut self.memory
    }

    /// Address of the first element, for a launcher.
    pub(crate) fn ptr(&self) -> DevicePtr<T> {
        self.memory.ptr()
    }
}

/// A page-locked block as memory for `len` elements, or ordinary memory where there is none.
fn locked_or_ordinary<T: Wire>(block: tandem_cuda::Result<PinnedBlock>, len: usize) -> Result<HostBuf<T>> {
    let buf = block.ok().and_then(|block| HostBuf::new(Box::new(Locked(block)), len));
    buf.map_or_else(|| HostBuf::zeros(len), Ok)
}

impl Cuda {
    /// The team of `devices`, in this order.
    ///
    /// # Errors
    /// No device; one of them twice; a device fails.
    pub fn open(devices: &[Device]) -> Result<Self> {
        Self::open_as(devices, |_| {})
    }

    /// The team of `devices` with transforms planned as on GPUs that have so many bytes of memory: small ones then take the plans
    /// that only the largest have else.
    ///
    /// # Errors
    /// As [`Cuda::open`].
    pub fn with_memory(devices: &[Device], bytes: u64) -> Result<Self> {
        Self::open_as(devices, |lane| lane.properties.memory_bytes = bytes)
    }

    /// The team of `devices` with transforms of no fewer than so many passes, as far as their sizes have bits for them: small ones then
    /// take the plans that only large ones have else.
    ///
    /// # Errors
    /// As [`Cuda::open`].
    pub fn with_passes(devices: &[Device], least: u32) -> Result<Self> {
        Self::open_as(devices, |lane| lane.least_passes = least)
    }

    /// The team of `devices`, of each of which it takes no more than so many bytes, beside the runtime's own.
    ///
    /// # Errors
    /// As [`Cuda::open`].
    pub fn within(devices: &[Device], bytes: Option<u64>) -> Result<Self> {
        Self::open_as(devices, |lane| bytes.into_iter().for_each(|bytes| lane.limit_to(bytes)))
    }

    fn open_as(devices: &[Device], change: impl Fn(&mut LaneCtx)) -> Result<Self> {
        const OP: &str = "open GPUs";
        if devices.is_empty() {
            let reason = match tandem_cuda::built_with() {
                Some(_) => "a team needs at least one GPU",
                None => "this program was built without CUDA",
            };
            return Err(Error::invalid(OP, reason));
        }
        let device_error = |e: tandem_cuda::Error| Error::Device {
            op: OP,
            device: e.device.map_or("the CUDA runtime".into(), |d| d.to_string()),
            code: e.code,
            code_name: e.name,
            text: e.text,
        };
        let (backend, mut lanes) = (BackendId::fresh(), Vec::with_capacity(devices.len()));
        for (i, &device) in devices.iter().enumerate() {
            let sharing = devices.iter().filter(|&&other| other == device).count() as u64;
            let mut lane = LaneCtx::new(Lane(i), device, sharing).map_err(device_error)?;
            change(&mut lane);
            lane.backend = backend;
            lanes.push(Arc::new(lane));
        }
        for lane in &lanes {
            for peer in lanes.iter().filter(|peer| peer.lane != lane.lane) {
                lane.share(peer).map_err(device_error)?;
            }
        }
        let clock = Arc::new(Clock::new(&lanes).map_err(device_error)?);
        Ok(Cuda {
            lanes,
            clock,
            host_blocks: Arc::new(PinnedPool::by(on_threads, kept_host_bytes())),
            gathers: AllGatherCache::default(),
            ahead: Ahead::default(),
        })
    }

    /// A lane's GPU.
    pub(crate) fn lane(&self, op: &'static str, lane: Lane) -> Result<&Arc<LaneCtx>> {
        self.lanes
            .get(lane.0)
            .ok_or_else(|| Error::invalid(op, format!("lane {} of a team of {} GPUs", lane.0, self.lanes.len())))
    }

    /// A buffer of a lane with undefined contents, which the caller will write.
    pub(crate) fn uninit<T: Wire>(&self, op: &'static str, lane: Lane, len: usize) -> Result<CudaBuf<T>> {
        Ok(CudaBuf { memory: self.lane(op, lane)?.alloc(op, len)?, lane, there: None })
    }
}

impl Backend for Cuda {
    type Buf<T: Wire> = CudaBuf<T>;

    fn info(&self) -> Info {
        Info {
            kind: DeviceKind::Cuda,
            lane_names: self.lanes.iter().map(|lane| lane.name()).collect(),
            free_bytes: self.lanes.iter().map(|lane| lane.free_bytes()).collect(),
        }
    }

    fn lanes(&self) -> usize {
        self.lanes.len()
    }

    fn alloc<T: Wire>(&self, lane: Lane, len: usize) -> Result<CudaBuf<T>> {
        let mut buf = self.uninit("alloc", lane, len)?;
        buf.memory.zero(0..len).map_err(|e| self.lanes[lane.0].error("alloc", e))?;
        Ok(buf)
    }

    fn write<T: Wire>(&self, dst: &mut CudaBuf<T>, at: usize, src: &[T]) -> Result<()> {
        if at.checked_add(src.len()).is_none_or(|end| end > dst.len()) {
            let reason = format!("{} elements at {at} of a buffer of {}", src.len(), dst.len());
            return Err(Error::invalid("write", reason));
        }
        self.lane("write", dst.lane)?.upload("write", &mut dst.memory, at, src.into())
    }

    fn upload<T: Wire>(&self, lane: Lane, src: &[T]) -> Result<CudaBuf<T>> {
        let mut buf = self.uninit("upload", lane, src.len())?;
        self.write(&mut buf, 0, src)?;
        Ok(buf)
    }

    /// Page-locked, from a pool; ordinary memory where the system locks no more.
    fn host_buf<T: Wire>(&self, len: usize) -> Result<HostBuf<T>> {
        let bytes =
            len.checked_mul(size_of::<T>()).ok_or_else(|| Error::invalid("host memory", "too many elements"))?;
        locked_or_ordinary(self.host_blocks.take(self.lanes[0].device, bytes), len)
    }

    fn host_copy<T: Wire>(&self, len: usize) -> Option<HostBuf<T>> {
        let bytes = len.checked_mul(size_of::<T>())?;
        let locked = Pinned::at_once(self.lanes[0].device, bytes, on_threads).ok()?;
        HostBuf::new(Box::new(Own(locked)), len)
    }

    /// Opens the fabric between them.
    fn expect_uploads_to_all(&self, lanes: &[Lane]) {
        let ctxs: Option<Vec<_>> = lanes.iter().map(|lane| self.lanes.get(lane.0)).collect();
        if let Some(ctxs) = ctxs {
            self.gathers.expect(&ctxs);
        }
    }

    /// Each lane gets a piece over its own link, and the others' pieces through the fabric; or everything over its own link, where
    /// nothing else joins them. Nothing is waited for where `src` is page-locked.
    fn upload_to_all<T: Wire>(
        &self,
        lanes: &[Lane],
        src: &Arc<HostBuf<T>>,
        timeline: &Timeline,
    ) -> Result<Vec<CudaBuf<T>>> {
        const OP: &str = "upload";
        check_lanes_differ(OP, lanes)?;
        let gathered = lanes.iter().map(|&lane| self.lane(OP, lane)).collect::<Result<Vec<_>>>()?;
        // To open the fabric takes as long as hundreds of uploads gain by it. Who makes so many has taken memory from `host_buf`.
        let source: Arc<dyn Source> = Arc::new(Kept(src.clone()));
        let is_locked = gathered.first().is_some_and(|ctx| ctx.is_locked(source.bytes()));
        let gather = self.gathers.of(&gathered, is_locked);
        // The fabric gathers equal pieces; the buffers have room for the last one.
        let pieces = if gather.is_some() { lanes.len() } else { 1 };
        let piece = src.len().div_ceil(pieces);
        let mut bufs: Vec<DeviceBuffer<T>> =
            gathered.iter().map(|ctx| ctx.alloc(OP, piece * pieces)).collect::<Result<_>>()?;
        let mut uploads: Vec<Upload<'_>> = Vec::new();
        for (i, (ctx, buf)) in gathered.iter().zip(&mut bufs).enumerate() {
            let at = |i: usize| (i % pieces * piece).min(src.len());
            let own = at(i)..(at(i) + piece).min(src.len());
            let bytes = own.start * size_of::<T>()..own.end * size_of::<T>();
            if !ctx.queue_upload(OP, (buf, own.start), &source, bytes)? {
                uploads.push(ctx.prepare(OP, buf, own.start, src[own].into())?);
            }
        }
        Upload::run(&uploads).map_err(|e| gathered[0].error(OP, e))?;
        drop(uploads);
        if let Some(gather) = gather {
            let spans: Vec<_> = lanes.iter().map(|&lane| timeline.begin(lane, "exchange pieces")).collect();
            // Each sends its piece to each other one.
            for (&from, &to) in lanes.iter().flat_map(|from| lanes.iter().map(move |to| (from, to))) {
                count(gathered[0].backend, Ends::Across(from, to), piece * size_of::<T>());
            }
            gather.all_gather_buffers(&mut bufs).map_err(|e| gathered[0].fabric_error(OP, e))?;
            spans.into_iter().for_each(|span| timeline.end(span));
        }
        bufs.iter_mut().for_each(|buf| buf.truncate(src.len()));
        Ok(bufs.into_iter().zip(lanes).map(|(memory, &lane)| CudaBuf { memory, lane, there: None }).collect())
    }

    /// On a stream of its own, in memory that no kernel in hand has used: the copy waits for nothing, and the lane for it only once it has
    /// arrived.
    fn upload_beside<T: Wire>(&self, lane: Lane, src: &Arc<HostBuf<T>>, len: usize) -> Result<Arriving<CudaBuf<T>>> {
        const OP: &str = "upload";
        check_room(OP, src.len(), len)?;
        let ctx = self.lane(OP, lane)?;
        let mut memory = ctx.alloc_on_upload_stream(OP, len)?;
        memory.zero(src.len()..len).map_err(|e| ctx.error(OP, e))?;
        let source: Arc<dyn Source> = Arc::new(Kept(src.clone()));
        let bytes = 0..source.bytes().len();
        if !ctx.queue_upload(OP, (&mut memory, 0), &source, bytes)? {
            ctx.upload(OP, &mut memory, 0, src[..].into())?;
        }
        Ok(Arriving::new(CudaBuf { memory, lane, there: None }))
    }

    fn arrived<T: Wire>(&self, arriving: Arriving<CudaBuf<T>>) -> Result<CudaBuf<T>> {
        let mut buf = arriving.into_inner();
        let ctx = self.lane("arrive", buf.lane)?;
        match buf.there.take() {
            // Other shares may still be on their way behind it.
            Some(there) => buf.memory.follow_behind(ctx.stream(), &there).map_err(|e| ctx.error("arrive", e))?,
            None => ctx.move_to_stream("upload", &mut buf.memory)?,
        }
        Ok(buf)
    }

    fn copy<T: Wire>(&self, src: &CudaBuf<T>, range: Range<usize>, lane: Lane) -> Result<CudaBuf<T>> {
        check_range("copy", &range, src.len())?;
        let mut buf = self.uninit("copy", lane, range.len())?;
        let ctx = self.lane("copy", src.lane)?;
        count(ctx.backend, Ends::Across(src.lane, lane), range.len() * size_of::<T>());
        buf.memory.copy_from(0, &src.memory, range).map_err(|e| ctx.error("copy", e))?;
        Ok(buf)
    }

    fn join<T: Wire>(&self, joins: &[(Lane, Pieces<'_, CudaBuf<T>>)]) -> Result<Vec<CudaBuf<T>>> {
        const OP: &str = "join";
        let Some(&(first, _)) = joins.first() else { return Ok(Vec::new()) };
        // Before memory is taken.
        let length = |(lane, pieces): &(Lane, Pieces<'_, CudaBuf<T>>)| {
            self.lane(OP, *lane)?;
            check_pieces(OP, pieces)
        };
        let lengths = joins.iter().map(length).collect::<Result<Vec<_>>>()?;
        let (mut bufs, mut all) = (Vec::with_capacity(joins.len()), Vec::with_capacity(joins.len()));
        for ((lane, pieces), len) in joins.iter().zip(lengths) {
            bufs.push(self.lane(OP, *lane)?.alloc(OP, len)?);
            all.push(pieces.iter().map(|(from, range)| (&from.memory, range.clone())).collect::<Vec<_>>());
        }
        DeviceBuffer::join_all(&mut bufs, &all).map_err(|e| self.lanes[first.0].error(OP, e))?;
        for (lane, pieces) in joins {
            for (from, range) in pieces {
                let ends = Ends::Across(from.lane, *lane);
                count(self.lanes[first.0].backend, ends, range.len() * size_of::<T>());
            }
        }
        Ok(bufs
            .into_iter()
            .zip(joins)
            .map(|(memory, (lane, _))| CudaBuf { memory, lane: *lane, there: None })
            .collect())
    }

    /// On streams of their own, in memory that no kernel in hand has used. The sources are overwritten there too, when they have been copied.
    fn deal<T: Wire>(
        &self,
        sources: Vec<CudaBuf<T>>,
        shares: &[(Range<usize>, Lane)],
        timeline: &Timeline,
    ) -> Result<Dealt<CudaBuf<T>>> {
        const OP: &str = "copy";
        let mut leaving = Vec::with_capacity(sources.len());
        for CudaBuf { mut memory, lane, .. } in sources {
            shares.iter().try_for_each(|(range, _)| check_range(OP, range, memory.len()))?;
            let ctx = self.lane(OP, lane)?;
            memory.follow(ctx.deal_stream()).map_err(|e| ctx.error(OP, e))?;
            leaving.push((memory, lane));
        }
        let Some((_, first)) = leaving.first() else { return Ok(Vec::new()) };
        let begin = |(_, from): &(_, Lane)| {
            let span = timeline.begin_in(*from, DEALS, COPY_TO_LANE);
            // While it is the innermost of its lane: other sources may be of the same lane.
            let sent = |(range, to): &(Range<usize>, Lane)| (Ends::Across(*from, *to), range.len() * size_of::<T>());
            shares.iter().map(sent).for_each(|(ends, bytes)| count(self.lanes[from.0].backend, ends, bytes));
            span
        };
        let spans: Vec<_> = leaving.iter().map(begin).collect();
        let mut dealt: Vec<(usize, CudaBuf<T>)> = Vec::with_capacity(leaving.len() * shares.len());
        // What stays on its lane is there before the others are.
        for stays in [true, false] {
            let (mut targets, mut pieces, mut places) = (Vec::new(), Vec::new(), Vec::new());
            for (number, (memory, from)) in leaving.iter().enumerate() {
                let chosen = shares.iter().enumerate().filter(|(_, (_, lane))| (lane == from) == stays);
                for (share, (range, lane)) in chosen {
                    let to = self.lane(OP, *lane)?.alloc_on_deal_stream(OP, range.len())?;
                    targets.push(to);
                    pieces.push((memory, range.clone()));
                    places.push((number * shares.len() + share, *lane));
                }
            }
            let there = DeviceBuffer::copy_each(&mut targets, &pieces).map_err(|e| self.lanes[first.0].error(OP, e))?;
            let placed = targets.into_iter().zip(places).zip(there);
            dealt.extend(
                placed.map(|((memory, (place, lane)), there)| (place, CudaBuf { memory, lane, there: Some(there) })),
            );
        }
        spans.into_iter().for_each(|span| timeline.end(span));
        dealt.sort_by_key(|(place, _)| *place);
        let mut dealt = dealt.into_iter().map(|(_, buf)| Arriving::new(buf));
        Ok((0..leaving.len()).map(|_| dealt.by_ref().take(shares.len()).collect()).collect())
    }

    fn download<T: Wire>(&self, src: &CudaBuf<T>) -> Result<Pending<Vec<T>>> {
        self.lane("download", src.lane)?.download("download", &src.memory)
    }

    fn download_to<T: Wire>(&self, src: &CudaBuf<T>, to: HostBuf<T>) -> Result<Pending<HostBuf<T>>> {
        check_same("download", src.len(), to.len())?;
        self.lane("download", src.lane)?.download_to("download", &src.memory, to)
    }

    fn synchronize(&self) -> Result<()> {
        // Every lane is waited for, even where one has failed.
        let done: Vec<Result<()>> = self.lanes.iter().map(|lane| lane.synchronize()).collect();
        done.into_iter().collect()
    }

    fn timeline(&self) -> Timeline {
        Timeline::new(self.lanes[0].backend, Recorded::new(&self.lanes, &self.clock))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_memory_stands_in_where_the_system_locks_no_more() {
        let failed = tandem_cuda::Error::new("allocate page-locked memory", None, 2);
        let mut buf = locked_or_ordinary::<u64>(Err(failed), 7).unwrap();
        buf.fill(9);
        assert_eq!(buf[..], [9; 7]);
    }

    /// Where there is no GPU this is passed over.
    #[test]
    fn every_lane_is_synchronized() {
        let gpus = tandem_cuda::testing::gpus();
        if gpus.is_empty() {
            return;
        }
        let cuda = Cuda::open(&gpus).unwrap();
        for lane in &cuda.lanes {
            let is_awaited = || {
                let mut busy = lane.alloc::<u8>("test", 1 << 28).unwrap();
                (0..100).for_each(|value| busy.fill(0..1 << 28, value).unwrap());
                let done = lane.stream().record().unwrap();
                let is_early = !done.is_done().unwrap();
                cuda.synchronize().unwrap();
                assert!(done.is_done().unwrap());
                is_early
            };
            assert!(std::iter::repeat_with(is_awaited).take(50).any(|early| early), "the work was always done");
        }
    }
}
