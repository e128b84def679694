//! The team of GPUs.

use crate::lane::LaneCtx;
use crate::spans::Spans;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use tandem_cuda::{Device, DeviceBuffer, DevicePtr, Upload};
use tandem_ops::{Backend, Buffer, DeviceKind, Error, Info, Lane, Pending, Result, Span, SpanId, Wire};

/// A team of GPUs; lane i is the i-th of them.
pub struct Cuda {
    lanes: Vec<Arc<LaneCtx>>,
    spans: Mutex<Spans>,
}

/// A buffer in a GPU's memory.
pub struct CudaBuf<T: Wire> {
    memory: DeviceBuffer<T>,
    lane: Lane,
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
    /// Address of the first element, for a launcher.
    pub(crate) fn ptr(&self) -> DevicePtr<T> {
        self.memory.ptr()
    }
}

impl Cuda {
    /// The team of `devices`, in this order.
    ///
    /// # Errors
    /// No device; one of them twice; a device fails.
    pub fn open(devices: &[Device]) -> Result<Self> {
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
        };
        let mut lanes = Vec::with_capacity(devices.len());
        for (i, &device) in devices.iter().enumerate() {
            if devices[..i].contains(&device) {
                return Err(Error::invalid(OP, format!("{device} is named twice")));
            }
            lanes.push(Arc::new(LaneCtx::new(Lane(i), device).map_err(device_error)?));
        }
        for lane in &lanes {
            for peer in lanes.iter().filter(|peer| peer.lane != lane.lane) {
                lane.share(peer).map_err(device_error)?;
            }
        }
        let spans = Mutex::new(Spans::new(&lanes).map_err(device_error)?);
        Ok(Cuda { lanes, spans })
    }

    /// A lane's GPU.
    pub(crate) fn lane(&self, op: &'static str, lane: Lane) -> Result<&Arc<LaneCtx>> {
        self.lanes
            .get(lane.0)
            .ok_or_else(|| Error::invalid(op, format!("lane {} of a team of {} GPUs", lane.0, self.lanes.len())))
    }

    /// A buffer of a lane with undefined contents, which the caller will write.
    pub(crate) fn uninit<T: Wire>(&self, op: &'static str, lane: Lane, len: usize) -> Result<CudaBuf<T>> {
        Ok(CudaBuf { memory: self.lane(op, lane)?.alloc(op, len)?, lane })
    }

    fn spans(&self) -> MutexGuard<'_, Spans> {
        self.spans.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
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

    /// Each lane gets a piece over its own link, and the others' pieces from them.
    fn upload_to_all<T: Wire>(&self, lanes: &[Lane], src: &[T]) -> Result<Vec<CudaBuf<T>>> {
        const OP: &str = "upload";
        let mut bufs: Vec<CudaBuf<T>> =
            lanes.iter().map(|&lane| self.uninit(OP, lane, src.len())).collect::<Result<_>>()?;
        let pieces: Vec<Range<usize>> =
            (0..lanes.len()).map(|i| src.len() * i / lanes.len()..src.len() * (i + 1) / lanes.len()).collect();
        let uploads = bufs.iter_mut().zip(&pieces).map(|(buf, piece)| {
            let from = src[piece.clone()].into();
            self.lanes[buf.lane.0].prepare(OP, &mut buf.memory, piece.start, from)
        });
        let uploads: Vec<Upload<'_>> = uploads.collect::<Result<_>>()?;
        Upload::run(&uploads).map_err(|e| self.lanes[lanes[0].0].error(OP, e))?;
        drop(uploads);
        for (from, piece) in pieces.iter().enumerate() {
            for to in (0..lanes.len()).filter(|&to| to != from) {
                let [source, target] =
                    bufs.get_disjoint_mut([from, to]).map_err(|_| Error::invalid(OP, "a lane twice"))?;
                let copied = target.memory.copy_from(piece.start, &source.memory, piece.clone());
                copied.map_err(|e| self.lanes[source.lane.0].error(OP, e))?;
            }
        }
        Ok(bufs)
    }

    fn copy<T: Wire>(&self, src: &CudaBuf<T>, range: Range<usize>, lane: Lane) -> Result<CudaBuf<T>> {
        if range.start > range.end || range.end > src.len() {
            let reason = format!("elements {}..{} of a buffer of {}", range.start, range.end, src.len());
            return Err(Error::invalid("copy", reason));
        }
        let mut buf = self.uninit("copy", lane, range.len())?;
        let ctx = self.lane("copy", src.lane)?;
        buf.memory.copy_from(0, &src.memory, range).map_err(|e| ctx.error("copy", e))?;
        Ok(buf)
    }

    fn download<T: Wire>(&self, src: &CudaBuf<T>) -> Result<Pending<Vec<T>>> {
        self.lane("download", src.lane)?.download("download", &src.memory)
    }

    fn synchronize(&self) -> Result<()> {
        // Every lane is waited for, even where one has failed.
        let done: Vec<Result<()>> = self.lanes.iter().map(|lane| lane.synchronize()).collect();
        done.into_iter().collect()
    }

    fn begin(&self, lane: Lane, name: &'static str) -> SpanId {
        match self.lanes.get(lane.0) {
            Some(ctx) => self.spans().begin(ctx, name),
            None => SpanId(u64::MAX),
        }
    }

    fn end(&self, span: SpanId) {
        self.spans().end(&self.lanes, span);
    }

    fn take_spans(&self) -> Result<Vec<Span>> {
        self.spans().take(&self.lanes)
    }
}
