//! What a request for a proof brings along.

use crate::{Error, Progress, Result, Silent};
use std::ops::Range;
use tandem_ops::backend::COPY_TO_LANE;
use tandem_ops::{Arriving, Backend, Buffer, Lane, Timeline, Wire};

/// One request for a proof: where its spans go, and who hears of its progress and may cancel it. Requests on one backend
/// share nothing of it.
pub struct Request<'a> {
    /// Its spans. The backend's own ([`Backend::timeline`]), or none.
    pub timeline: Timeline,
    /// Its listener.
    pub progress: &'a dyn Progress,
}

impl<'a> Request<'a> {
    /// Of this timeline and this listener.
    pub fn new(timeline: Timeline, progress: &'a dyn Progress) -> Self {
        Request { timeline, progress }
    }

    /// One that nobody measures, hears of or cancels.
    pub fn silent() -> Request<'static> {
        Request { timeline: Timeline::none(), progress: &Silent }
    }

    /// Fails if it was cancelled.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn check(&self) -> Result<()> {
        match self.progress.cancelled() {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }

    /// Enqueues one primitive on `lane` within a span, unless the request was cancelled.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; those of the primitive.
    pub fn enqueue<T>(
        &self,
        lane: Lane,
        stage: &'static str,
        work: impl FnOnce() -> tandem_ops::Result<T>,
    ) -> Result<T> {
        self.check()?;
        let span = self.timeline.begin(lane, stage);
        let result = work();
        self.timeline.end(span);
        let result = result?;
        self.progress.enqueued(stage, lane);
        Ok(result)
    }

    /// A buffer for what its lane is told from here on, with a span of the lane's wait for it.
    ///
    /// # Errors
    /// The device failed.
    pub fn arrived<B: Backend, T: Wire>(
        &self,
        backend: &B,
        arriving: Arriving<B::Buf<T>>,
    ) -> tandem_ops::Result<B::Buf<T>> {
        self.timeline.waiting(arriving.lane(), || backend.arrived(arriving))
    }

    /// A copy. Where it goes from lane to lane there is a span of the one, and one of the other's wait.
    ///
    /// # Errors
    /// As [`Request::enqueue`].
    pub fn copied<B: Backend, T: Wire>(
        &self,
        backend: &B,
        from: &B::Buf<T>,
        range: Range<usize>,
        lane: Lane,
    ) -> Result<B::Buf<T>> {
        if from.lane() == lane {
            self.check()?;
            return Ok(backend.copy(from, range, lane)?);
        }
        self.enqueue(from.lane(), COPY_TO_LANE, || self.timeline.waiting(lane, || backend.copy(from, range, lane)))
    }
}

/// After a cancelled request nothing of it is left on the lanes, and what was uploaded is overwritten.
///
/// # Errors
/// That of `made`.
pub fn settled<B: Backend, T>(backend: &B, made: Result<T>) -> Result<T> {
    if let Err(Error::Interrupted) = &made {
        // A device that failed meanwhile says so with the next request.
        _ = backend.synchronize();
    }
    made
}
