//! Sockets between processes of one user on one host. They keep messages whole (SOCK_SEQPACKET) and carry file descriptors.

use super::stream::Stream;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_timeout, socket_peercred, Timeout};
use rustix::net::{self, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags};
use rustix::net::{
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType,
};
use std::io::{Error, ErrorKind, IoSlice, IoSliceMut, Result};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of the longest message.
pub(super) const MOST_BYTES: usize = 64 << 10;
/// File descriptors that one message carries.
pub(super) const MOST_FDS: usize = crate::ffi::TANDEM_FABRIC_MAX_PES as usize;
/// Processes that may knock before they are let in.
const BACKLOG: i32 = 64;

/// One end.
#[derive(Debug)]
pub(super) struct Socket(OwnedFd);

/// The user and the process at the other end, as the operating system knows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peer {
    pub(super) user: u32,
    pub(super) pid: u32,
}

fn socket() -> Result<OwnedFd> {
    Ok(net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

fn is_interrupted(error: Errno) -> bool {
    error == Errno::INTR
}

impl Socket {
    /// One that others reach at `path`, which nothing may be at yet.
    pub(super) fn listen(path: &Path) -> Result<Self> {
        let fd = socket()?;
        net::bind(&fd, &SocketAddrUnix::new(path)?)?;
        net::listen(&fd, BACKLOG)?;
        Ok(Socket(fd))
    }

    /// The other end is who listens at `path`.
    pub(super) fn connect(path: &Path) -> Result<Self> {
        let fd = socket()?;
        net::connect(&fd, &SocketAddrUnix::new(path)?)?;
        Ok(Socket(fd))
    }

    /// Whoever connects before `end`.
    pub(super) fn accept(&self, end: Instant) -> Result<Option<Self>> {
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let wait = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
            match poll(&mut fds, Some(&wait)) {
                Ok(0) => return Ok(None),
                Ok(_) => return Ok(Some(Socket(net::accept_with(&self.0, SocketFlags::CLOEXEC)?))),
                Err(error) if is_interrupted(error) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Who is at the other end.
    pub(super) fn peer(&self) -> Result<Peer> {
        let cred = socket_peercred(&self.0)?;
        Ok(Peer { user: cred.uid.as_raw(), pid: cred.pid.as_raw_nonzero().get() as u32 })
    }

    /// No message is sent or waited for longer than this.
    pub(super) fn limit(&self, send: Duration, receive: Option<Duration>) -> Result<()> {
        // 0 would be without limit.
        let least = Duration::from_millis(1);
        set_socket_timeout(&self.0, Timeout::Send, Some(send.max(least)))?;
        Ok(set_socket_timeout(&self.0, Timeout::Recv, receive.map(|time| time.max(least)))?)
    }

    /// Sends a message of 1 to [`MOST_BYTES`] bytes and up to [`MOST_FDS`] file descriptors.
    pub(super) fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<()> {
        if bytes.is_empty() || bytes.len() > MOST_BYTES || fds.len() > MOST_FDS {
            let problem = format!("a message of {} bytes and {} file descriptors", bytes.len(), fds.len());
            return Err(Error::new(ErrorKind::InvalidInput, problem));
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
        loop {
            let mut control = SendAncillaryBuffer::new(&mut space);
            if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
                return Err(ErrorKind::InvalidInput.into());
            }
            match net::sendmsg(&self.0, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL) {
                Err(error) if is_interrupted(error) => {}
                sent => return Ok(sent.map(drop)?),
            }
        }
    }

    /// The next message; `None` where the other end is closed.
    pub(super) fn receive(&self) -> Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
        let mut bytes = vec![0; MOST_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
        let mut was_reset = false;
        loop {
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut place = [IoSliceMut::new(&mut bytes)];
            let got = match net::recvmsg(&self.0, &mut place, &mut control, RecvFlags::CMSG_CLOEXEC) {
                Err(error) if is_interrupted(error) => continue,
                // Told once, before the messages that came before it.
                Err(Errno::CONNRESET) if !was_reset => {
                    was_reset = true;
                    continue;
                }
                Err(Errno::CONNRESET) => return Ok(None),
                got => got?,
            };
            let rights = control.drain().filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(fds) => Some(fds),
                _ => None,
            });
            let fds: Vec<OwnedFd> = rights.flatten().collect();
            if got.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
                return Err(Error::new(ErrorKind::InvalidData, "a message longer than any of ours"));
            }
            bytes.truncate(got.bytes);
            return Ok((got.bytes > 0).then_some((bytes, fds)));
        }
    }

    /// Closes both directions; a thread that waits for a message gets none.
    pub(super) fn close(&self) {
        let _ = net::shutdown(&self.0, Shutdown::Both);
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// What joins this process and another one: a socket on one node, or a stream between two.
#[derive(Debug)]
pub(super) enum Line {
    Near(Socket),
    Far(Stream),
}

impl Line {
    /// Sends a message; memory goes to a process of the same node alone.
    pub(super) fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<()> {
        match self {
            Line::Near(socket) => socket.send(bytes, fds),
            Line::Far(stream) => stream.send(bytes),
        }
    }

    /// The next message; `None` where the other end is closed.
    pub(super) fn receive(&self) -> Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
        match self {
            Line::Near(socket) => socket.receive(),
            Line::Far(stream) => Ok(stream.receive()?.map(|bytes| (bytes, Vec::new()))),
        }
    }

    pub(super) fn close(&self) {
        match self {
            Line::Near(socket) => socket.close(),
            Line::Far(stream) => stream.close(),
        }
    }

    pub(super) fn is_far(&self) -> bool {
        matches!(self, Line::Far(_))
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Line::Near(socket) => socket.as_fd(),
            Line::Far(stream) => stream.tcp().as_fd(),
        }
    }
}

/// Waits until some of the sockets have a message or are closed: which.
pub(super) fn ready<'a>(sockets: impl Iterator<Item = &'a Line>) -> Result<Vec<bool>> {
    let mut fds: Vec<PollFd<'_>> = sockets.map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
    loop {
        match poll(&mut fds, None) {
            Err(error) if is_interrupted(error) => {}
            found => {
                found?;
                return Ok(fds.iter().map(|fd| !fd.revents().is_empty()).collect());
            }
        }
    }
}
