//! What goes wrong between PEs, and is found out while they run.

use crate::{ffi, Process};
use std::fmt;

/// A wait that took too long, or an access past the end. The team that had it is unusable from then on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What happened.
    pub kind: FaultKind,
    /// The PE of the team that waited or accessed.
    pub waiter: usize,
    /// The PE of the team that it waited for or accessed, where that is known.
    pub peer: Option<usize>,
    /// The process that has the peer, if the team is of several.
    pub process: Option<Process>,
    /// Where, in words: which byte of which allocation.
    pub place: String,
    /// What the word was last; the last command that was done for [`FaultKind::Command`], milliseconds of waiting for
    /// [`FaultKind::Copy`].
    pub seen: u64,
    /// What was wanted; bytes for [`FaultKind::Bounds`] and [`FaultKind::Copy`].
    pub wanted: u64,
}

/// The kind of a [`Fault`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// A word did not become what was wanted in time.
    Wait,
    /// A PE did not come to a barrier in time.
    Barrier,
    /// An access past the end of what is mapped.
    Bounds,
    /// A PE's kernel that stays ([`crate::Collectives::now`]) did not do in time what the host told it. The place is where the
    /// waiter gets its part of the result.
    Command,
    /// A copy that the host waits for was not done in time: between host memory and PEs ([`crate::HostLinks`]), where the peer is the PE
    /// whose host link carries it, or by copy engines ([`crate::Collectives`]), where it is the PE whose queue or copies did not come, or a
    /// step at a PE of another node, which has not answered. The
    /// copy may still happen: memory of the fabric is given back behind it.
    Copy,
    /// The process that has the peer has ended without a farewell.
    Process,
    /// A PE did not come in time to a collective inside kernels or programs.
    Collective,
    /// A PE began a collective inside kernels or programs while another one of the same team was under way on it.
    Overlap,
    /// A kernel accessed memory of a PE that its own does not reach ([`crate::Team::reaches`]), or did something with all PEs of a team that
    /// has such.
    Apart,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { waiter, place, seen, wanted, .. } = self;
        let of = self.process.map_or(String::new(), |process| format!(" of {process}"));
        let peer = self.peer.map_or("a PE that was not named".into(), |peer| format!("PE {peer}{of}"));
        match self.kind {
            FaultKind::Wait => {
                write!(f, "PE {waiter} waited in vain for {peer}: {place} was {seen}, wanted {wanted}")
            }
            FaultKind::Barrier => {
                write!(f, "PE {waiter} waited in vain for {peer} at barrier {wanted}: it has come to {seen} of them")
            }
            FaultKind::Collective => {
                write!(
                    f,
                    "PE {waiter} waited in vain for {peer} at collective {wanted} inside kernels: {place} was {seen}"
                )
            }
            FaultKind::Overlap => {
                let begun = wanted + 1;
                write!(
                    f,
                    "PE {waiter} began collective {begun} inside kernels when it had left {seen} only: a PE does one at a time in a team; \
                     split a team off for each that is to run beside it"
                )
            }
            FaultKind::Process => write!(f, "{peer} is lost: its process has ended while the team was open"),
            FaultKind::Apart => write!(
                f,
                "a kernel of PE {waiter} was to access {peer}, which it does not reach: {place}; what kernels do needs a direct link, queues and the \
                 host reach it"
            ),
            FaultKind::Bounds => write!(f, "PE {waiter} accessed {wanted} bytes of {peer} past the end: {place}"),
            FaultKind::Command => {
                write!(
                    f,
                    "PE {waiter} waited in vain for {peer}, which has not done command {wanted} of the host: it has done {seen}; \
                     the result was to be at {place}"
                )
            }
            FaultKind::Copy => {
                // Of several processes it may be the network.
                let what = if self.process.is_some() {
                    "that process and its network or device work"
                } else {
                    "the device works (nvidia-smi)"
                };
                write!(
                    f,
                    "PE {waiter} waited in vain for {peer}, which has not copied its part of {wanted} bytes in {seen} ms: {place}; look \
                     whether {what} and what holds it up, or open the team with a longer Options::timeout"
                )
            }
        }
    }
}

/// A fault as it is recorded: the numbers of tandem_fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) what: u32,
    pub(crate) waiter: u32,
    pub(crate) peer: u32,
    pub(crate) place: u64,
    pub(crate) seen: u64,
    pub(crate) wanted: u64,
}

impl Record {
    /// In words; `describe` says where an address is, `process_of` which process has a PE of the team.
    pub(crate) fn fault(
        self,
        describe: impl FnOnce(u64) -> String,
        process_of: impl FnOnce(usize) -> Option<Process>,
    ) -> Fault {
        let kind = match self.what as i32 {
            ffi::TANDEM_FAULT_BARRIER => FaultKind::Barrier,
            ffi::TANDEM_FAULT_BOUNDS => FaultKind::Bounds,
            ffi::TANDEM_FAULT_COMMAND => FaultKind::Command,
            ffi::TANDEM_FAULT_COPY => FaultKind::Copy,
            ffi::TANDEM_FAULT_PROCESS => FaultKind::Process,
            ffi::TANDEM_FAULT_COLLECTIVE => FaultKind::Collective,
            ffi::TANDEM_FAULT_OVERLAP => FaultKind::Overlap,
            ffi::TANDEM_FAULT_APART => FaultKind::Apart,
            _ => FaultKind::Wait,
        };
        let known = self.peer < ffi::TANDEM_FABRIC_MAX_PES as u32;
        let peer = known.then_some(self.peer as usize);
        Fault {
            kind,
            waiter: self.waiter as usize,
            peer,
            process: peer.and_then(process_of),
            place: describe(self.place),
            seen: self.seen,
            wanted: self.wanted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_no_team_has_is_not_named() {
        let most = ffi::TANDEM_FABRIC_MAX_PES as u32;
        let peer = |peer| {
            let record = Record { what: 0, waiter: 1, peer, place: 2, seen: 3, wanted: 4 };
            record.fault(|place| place.to_string(), |_| None).peer
        };
        assert_eq!([0, most - 1, most, u32::MAX].map(peer), [Some(0), Some(most as usize - 1), None, None]);
    }
}
