"""The exceptions of tandem. Every text names what was wrong, where, and which PE it was about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from ._fabric import Process


class Error(Exception):
    """What the fabric raises beside Python's own TypeError, ValueError, IndexError and BufferError."""


class InvalidError(Error, ValueError):
    """A length, a combination or a text that an operation does not allow."""


class ClosedError(Error):
    """The world was closed."""


class DeviceError(Error):
    """A device failed, or has not done in time what the host waits for."""


class ProcessError(Error):
    """The processes of a world have not met or do not agree, or one of them is gone. The text names those that it is about."""


class NoPeerError(Error):
    """PE `pe` does not reach the memory of PE `peer`."""

    pe: int
    peer: int


class OutOfMemoryError(Error, MemoryError):
    """PE `pe`, which is `device`, has too little memory. No PE keeps any part of the allocation."""

    pe: int
    device: str


class FaultError(Error):
    """PE `pe` waited in vain for PE `peer` (None where nobody was named), or accessed memory past an end.

    `kind` is "wait", "barrier", "bounds", "command", "copy", "process", "collective", "overlap" or "apart", `place` the word or the
    bytes, and `process` the one that has the peer, in a world of several. The team is unusable from then on; the process and other worlds go on.
    """

    kind: str
    pe: int
    peer: Optional[int]
    place: str
    process: Optional[Process]
