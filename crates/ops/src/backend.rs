//! Memory and ordered queues of work.

use crate::timeline::DEALS;
use crate::{Error, HostBuf, Pending, Result, Timeline, Wire};
use std::sync::Arc;
use zeroize::Zeroizing;

/// One ordered queue of work with memory of its own: a GPU of a team, or a share of the CPU. What is enqueued on
/// one lane runs in order; lanes run beside each other. Counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lane(pub usize);

/// What a backend runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceKind {
    /// Host processors.
    Cpu,
    /// NVIDIA GPUs.
    Cuda,
    /// Pretend GPUs in host memory.
    Sim,
}

/// What a backend is, in words and numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// What it runs on.
    pub kind: DeviceKind,
    /// One line a lane, such as `NVIDIA H200 (cuda:0)`.
    pub lane_names: Vec<String>,
    /// Bytes of memory that each lane could still hand out when asked.
    pub free_bytes: Vec<u64>,
}

/// The name of spans of copies from lane to lane.
pub const COPY_TO_LANE: &str = "copy to lane";

/// Elements of `T` in a lane's memory. A buffer is overwritten with zeros when it is dropped: it may hold witnesses.
pub trait Buffer<T: Wire>: Send + Sync {
    /// Number of elements.
    fn len(&self) -> usize;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Lane that holds it.
    fn lane(&self) -> Lane;
}

/// A buffer whose contents may still be on their way, beside what its lane does. [`Backend::arrived`] makes it one to work with.
#[derive(Debug)]
pub struct Arriving<B>(B);

impl<B> Arriving<B> {
    /// For implementations of [`Backend::upload_beside`].
    pub fn new(buf: B) -> Self {
        Arriving(buf)
    }

    /// For implementations of [`Backend::arrived`]: nothing else waits for the contents.
    pub fn into_inner(self) -> B {
        self.0
    }
}

impl<B> Arriving<B> {
    /// Lane that it comes to.
    pub fn lane<T: Wire>(&self) -> Lane
    where
        B: Buffer<T>,
    {
        self.0.lane()
    }
}

/// For each vector that was dealt, its shares on their way.
pub type Dealt<B> = Vec<Vec<Arriving<B>>>;

/// Ranges of buffers, for [`Backend::join`].
pub type Pieces<'a, B> = Vec<(&'a B, std::ops::Range<usize>)>;

/// Fails where elements are past the end of a buffer of `len`.
///
/// # Errors
/// [`Error::Invalid`].
pub fn check_range(op: &'static str, range: &std::ops::Range<usize>, len: usize) -> Result<()> {
    if range.start > range.end || range.end > len {
        return Err(Error::invalid(op, format!("elements {}..{} of a buffer of {len}", range.start, range.end)));
    }
    Ok(())
}

/// The number of elements of pieces together.
///
/// # Errors
/// [`Error::Invalid`]: a range is past the end of its buffer, or there are not so many addresses.
pub fn check_pieces<T: Wire, B: Buffer<T>>(op: &'static str, pieces: &[(&B, std::ops::Range<usize>)]) -> Result<usize> {
    pieces.iter().try_fold(0usize, |len, (buf, range)| {
        check_range(op, range, buf.len())?;
        let of = pieces.len();
        len.checked_add(range.len())
            .ok_or_else(|| Error::invalid(op, format!("{of} pieces of more than 2^64 elements together")))
    })
}

/// Fails where there is not memory for just `len` elements.
///
/// # Errors
/// [`Error::Invalid`].
pub fn check_same(op: &'static str, len: usize, memory: usize) -> Result<()> {
    if memory != len {
        return Err(Error::invalid(op, format!("{len} elements to memory of {memory}")));
    }
    Ok(())
}

/// Fails where a buffer of `room` elements has not room for `len`.
///
/// # Errors
/// [`Error::Invalid`].
pub fn check_room(op: &'static str, len: usize, room: usize) -> Result<()> {
    if len > room {
        return Err(Error::invalid(op, format!("{len} elements for a buffer of {room}")));
    }
    Ok(())
}

/// Fails where a lane is named twice.
///
/// # Errors
/// [`Error::Invalid`].
pub fn check_lanes_differ(op: &'static str, lanes: &[Lane]) -> Result<()> {
    match lanes.iter().enumerate().find(|(i, lane)| lanes[..*i].contains(lane)) {
        Some((_, lane)) => Err(Error::invalid(op, format!("lane {} is named twice", lane.0))),
        None => Ok(()),
    }
}

/// Who computes: memory, queues and time. The primitives are traits of their own on top of it.
///
/// Operations take effect in the order in which they are called, lane by lane; an operation that reads a buffer
/// of another lane waits, on the device, for what that lane had been told before. A failed operation may be
/// reported by a later call or by [`Pending::wait`].
pub trait Backend: Send + Sync + 'static {
    /// A buffer on one of this backend's lanes.
    type Buf<T: Wire>: Buffer<T> + 'static;

    /// What it runs on.
    fn info(&self) -> Info;

    /// How many lanes there are; at least one.
    fn lanes(&self) -> usize;

    /// A buffer of `len` zeros.
    ///
    /// # Errors
    /// No such lane; not enough memory.
    fn alloc<T: Wire>(&self, lane: Lane, len: usize) -> Result<Self::Buf<T>>;

    /// Copies `src` into `dst` from element `at` on. `src` may be reused when this returns.
    ///
    /// # Errors
    /// `at + src.len()` is past the end of `dst`.
    fn write<T: Wire>(&self, dst: &mut Self::Buf<T>, at: usize, src: &[T]) -> Result<()>;

    /// A new buffer with the contents of `src`, which may be reused when this returns.
    ///
    /// # Errors
    /// As [`Backend::alloc`].
    fn upload<T: Wire>(&self, lane: Lane, src: &[T]) -> Result<Self::Buf<T>> {
        let mut buf = self.alloc(lane, src.len())?;
        self.write(&mut buf, 0, src)?;
        Ok(buf)
    }

    /// Host memory of `len` zeros for uploads by [`Backend::upload_to_all`]: where the devices are faster from memory of a
    /// certain kind, it is of that kind, and is kept for the next call when it is dropped.
    ///
    /// # Errors
    /// Not enough memory.
    fn host_buf<T: Wire>(&self, len: usize) -> Result<HostBuf<T>> {
        HostBuf::zeros(len)
    }

    /// Host memory for `len` elements that everyone may know and that lanes take again and again: of the kind that the devices are fastest from,
    /// given back when it is dropped. `None` where there is none of that kind.
    fn host_copy<T: Wire>(&self, len: usize) -> Option<HostBuf<T>> {
        let _ = len;
        None
    }

    /// Gets ready for [`Backend::upload_to_all`] to these lanes, as far as that takes long, beside whatever the caller does next. What
    /// fails here is as if nobody had called it.
    fn expect_uploads_to_all(&self, lanes: &[Lane]) {
        let _ = lanes;
    }

    /// A buffer with the contents of `src` on each of `lanes`, over all the ways to them at once where there are several.
    /// The copies may still be on their way when this returns; `src` is kept until they are done. Where the lanes give each other
    /// pieces, `timeline` gets spans of that.
    ///
    /// # Errors
    /// A lane is named twice; as [`Backend::alloc`].
    fn upload_to_all<T: Wire>(
        &self,
        lanes: &[Lane],
        src: &Arc<HostBuf<T>>,
        timeline: &Timeline,
    ) -> Result<Vec<Self::Buf<T>>> {
        let _ = timeline;
        check_lanes_differ("upload", lanes)?;
        lanes.iter().map(|&lane| self.upload(lane, src)).collect()
    }

    /// A buffer of `len` elements with the contents of `src`, and zeros behind them, uploaded beside what `lane` does: neither waits for the
    /// other. `src` is kept until it has been copied.
    ///
    /// # Errors
    /// `src` has more elements; as [`Backend::alloc`].
    fn upload_beside<T: Wire>(&self, lane: Lane, src: &Arc<HostBuf<T>>, len: usize) -> Result<Arriving<Self::Buf<T>>> {
        check_room("upload", src.len(), len)?;
        if len == src.len() {
            return self.upload(lane, src).map(Arriving::new);
        }
        let mut buf = self.alloc(lane, len)?;
        self.write(&mut buf, 0, src)?;
        Ok(Arriving::new(buf))
    }

    /// The buffer, for what its lane is told from here on: the lane waits for the contents, the caller does not.
    ///
    /// # Errors
    /// The device failed.
    fn arrived<T: Wire>(&self, arriving: Arriving<Self::Buf<T>>) -> Result<Self::Buf<T>> {
        Ok(arriving.into_inner())
    }

    /// A copy of `src[range]` on `lane`, which may be another lane than the one that holds `src`.
    ///
    /// # Errors
    /// The range is past the end; as [`Backend::alloc`].
    fn copy<T: Wire>(&self, src: &Self::Buf<T>, range: std::ops::Range<usize>, lane: Lane) -> Result<Self::Buf<T>>;

    /// A new buffer for each of `joins`, on its lane, with the contents of its pieces, one behind the other. Pieces may be of buffers of any lanes,
    /// and of one buffer more than once. All are copied at once: none waits for another, so that copies between two lanes go both ways at the
    /// same time.
    ///
    /// # Errors
    /// The range of a piece is past the end of its buffer; as [`Backend::alloc`].
    fn join<T: Wire>(&self, joins: &[(Lane, Pieces<'_, Self::Buf<T>>)]) -> Result<Vec<Self::Buf<T>>>;

    /// Copies of ranges of each of `sources` on lanes, as `shares` says: for each source one for each share. They are made beside what any lane
    /// does. A copy waits for what the lane of its source had been told before, and for nothing that the lane does to which it goes. Lanes go on
    /// at once, as the sources are given up; they wait for copies where these have [arrived](Backend::arrived). `timeline` gets a span for each
    /// source.
    ///
    /// # Errors
    /// As [`Backend::copy`].
    fn deal<T: Wire>(
        &self,
        sources: Vec<Self::Buf<T>>,
        shares: &[(std::ops::Range<usize>, Lane)],
        timeline: &Timeline,
    ) -> Result<Dealt<Self::Buf<T>>> {
        let of = |source: Self::Buf<T>| {
            let span = timeline.begin_in(source.lane(), DEALS, COPY_TO_LANE);
            let copy = |(range, lane): &(std::ops::Range<usize>, Lane)| self.copy(&source, range.clone(), *lane);
            let copies = shares.iter().map(|share| copy(share).map(Arriving::new)).collect();
            timeline.end(span);
            copies
        };
        sources.into_iter().map(of).collect()
    }

    /// The contents of `src` as they are when the lane gets there. The caller owns, and wipes, what it receives.
    ///
    /// # Errors
    /// Not enough host memory for the transfer.
    fn download<T: Wire>(&self, src: &Self::Buf<T>) -> Result<Pending<Vec<T>>>;

    /// As [`Backend::download`], to memory of the caller's ([`Backend::host_buf`]), which devices write at their links' rate where it is of their kind.
    ///
    /// # Errors
    /// `to` has not as many elements as `src`; as [`Backend::download`].
    fn download_to<T: Wire>(&self, src: &Self::Buf<T>, mut to: HostBuf<T>) -> Result<Pending<HostBuf<T>>> {
        check_same("download", src.len(), to.len())?;
        let values = self.download(src)?;
        Ok(values.map(move |values| {
            to.copy_from_slice(&Zeroizing::new(values));
            to
        }))
    }

    /// Blocks until every lane has done all that it was told.
    ///
    /// # Errors
    /// The first failure of that work.
    fn synchronize(&self) -> Result<()>;

    /// A timeline for one request, such as a proof. It measures on the devices, from the backend's creation on.
    fn timeline(&self) -> Timeline;
}
