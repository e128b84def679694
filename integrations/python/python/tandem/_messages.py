"""Messages between the processes of a group of PyTorch's, and what is begun and waited for (`tandem.torch`)."""

from __future__ import annotations

import datetime
import threading
import time
import traceback
from collections import deque
from typing import Any, Callable, Deque, List, Optional, Tuple

import numpy as np
import torch
import torch.distributed as dist

from ._fabric import World

SLOT = 256 << 10
"""Bytes of a message that pass at a time."""
_HEAD = 24


class Work(dist._Work):
    """What was begun."""

    def __init__(self, result: List[torch.Tensor]) -> None:
        super().__init__()
        self._result = result
        self._ended = threading.Event()
        self._error: Optional[BaseException] = None
        self._source = -1
        self._future: torch.futures.Future[Any] = torch.futures.Future()

    def _end(self, error: Optional[BaseException] = None) -> None:
        self._error = error
        self._ended.set()
        if isinstance(error, Exception):
            self._future.set_exception(error)
        else:
            self._future.set_result(self._result)

    def wait(self, timeout: Any = None) -> bool:
        """Waits until it is done, and raises what has gone wrong."""
        seconds = timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else 0.0
        if not self._ended.wait(seconds if seconds > 0 else None):
            raise RuntimeError(f"the operation is not done after {seconds} s")
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return self._ended.is_set()

    def is_success(self) -> bool:
        return self._ended.is_set() and self._error is None

    def exception(self) -> Optional[BaseException]:
        return self._error

    def result(self) -> List[torch.Tensor]:
        return self._result

    def source_rank(self) -> int:
        return self._source

    def _source_rank(self) -> int:
        return self._source

    def get_future(self) -> Any:
        return self._future


def elements_of(tensor: torch.Tensor) -> torch.Tensor:
    """Its elements in order, which are its own where it lies in one piece."""
    tensor = tensor.detach()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.resolve_neg().contiguous().view(-1)


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Its elements in order, as bytes."""
    return elements_of(tensor).view(torch.uint8)


def fill(tensor: torch.Tensor, elements: torch.Tensor) -> None:
    """Gives a tensor the elements that `elements_of` has of it."""
    tensor = tensor.detach()
    target = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    if elements.data_ptr() != target.data_ptr() or not target.is_contiguous():
        target.copy_(elements.view(target.dtype).view(target.shape))


class _Message:
    """One that is sent, or waited for."""

    def __init__(self, peer: Optional[int], tag: int, work: Work, tensor: torch.Tensor, end: float) -> None:
        self.peer, self.tag, self.work, self.tensor = peer, tag, work, tensor
        # When it has waited in vain.
        self.end = end
        # Of one that is sent: its bytes, and those that have left.
        self.data: np.ndarray[Any, Any] = np.empty(0, "uint8")
        self.at = 0


class Mail:
    """Messages between two processes: a thread writes them, piece by piece, into a slot of the receiver's memory for this sender."""

    def __init__(self, world: World, me: int, patience: float) -> None:
        self.world, self.me, self.patience = world, me, patience
        n = world.size
        self.slots = world.zeros((n, SLOT), "uint8")
        # By peer: pieces that have come from it, and pieces that it has taken.
        self.words = world.zeros((2, n), "uint64")
        self.sent, self.taken = [0] * n, [0] * n
        self.sends: List[Deque[_Message]] = [deque() for _ in range(n)]
        self.receives: List[_Message] = []
        # By peer: whole messages that nobody has asked for, and the one that is coming.
        self.kept: List[List[Tuple[int, np.ndarray[Any, Any]]]] = [[] for _ in range(n)]
        self.coming: List[Optional[Tuple[int, np.ndarray[Any, Any], int]]] = [None] * n
        self.changed = threading.Condition()
        self.is_over = False
        self.error: Optional[BaseException] = None
        self.thread = threading.Thread(target=self._work, name="tandem messages", daemon=True)
        self.thread.start()

    def send(self, tensor: torch.Tensor, to: int, tag: int, work: Work) -> None:
        message = _Message(to, tag, work, tensor, time.monotonic() + self.patience)
        message.data = as_bytes(tensor).numpy()
        self._add(lambda: self.sends[to].append(message))

    def receive(self, tensor: torch.Tensor, source: Optional[int], tag: int, work: Work) -> None:
        message = _Message(source, tag, work, tensor, time.monotonic() + self.patience)
        self._add(lambda: self.receives.append(message))

    def _add(self, add: Callable[[], None]) -> None:
        with self.changed:
            if self.error is not None:
                raise self.error
            if self.is_over:
                raise RuntimeError("the process group is closed")
            add()
            self.changed.notify_all()

    def close(self) -> None:
        with self.changed:
            self.is_over = True
            self.changed.notify_all()
        self.thread.join(10)

    def _is_idle(self) -> bool:
        return not self.receives and not any(self.sends)

    def _work(self) -> None:
        pause, begun = 0.0, time.monotonic()
        try:
            while True:
                with self.changed:
                    while self._is_idle() and not self.is_over:
                        self.changed.wait()
                    if self.is_over:
                        raise RuntimeError("the process group is closed")
                    went = self._step()
                now = time.monotonic()
                begun = now if went else begun
                pause = 0.0 if went else min(pause + 10e-6, 500e-6)
                if now - begun > 1e-3 and not went:
                    self.world.check()
                    self._give_up(now)
                if pause:
                    time.sleep(pause)
        except BaseException as error:  # whoever waits gets it
            with self.changed:
                self.error = error
                traceback.clear_frames(error.__traceback__)
                waiting = [message for sends in self.sends for message in sends] + self.receives
                self.sends, self.receives = [deque() for _ in self.sends], []
            for message in waiting:
                message.work._end(error)

    def _name(self, peer: int) -> str:
        process = self.world.process_of(peer)
        return f"process {peer}" if process is None else f"process {peer} (pid {process.pid})"

    def _give_up(self, now: float) -> None:
        """Ends what has waited too long: a message that nobody sends, or one that nobody takes, with all behind it. Where a part of one has
        left, what follows it would be taken for its rest: then there are no messages any more."""
        broken = None
        with self.changed:
            late = [message for message in self.receives if message.end < now]
            self.receives = [message for message in self.receives if message.end >= now]
            for sends in self.sends:
                if sends and sends[0].end < now:
                    broken = sends[0].work if sends[0].at else broken
                    late += sends
                    sends.clear()
        for message in late:
            peer = "any process" if message.peer is None else self._name(message.peer)
            text = f"a message with the tag {message.tag} waited {self.patience} s in vain for {peer}"
            message.work._end(RuntimeError(text))
        if broken is not None and broken._error is not None:
            raise broken._error

    def _step(self) -> bool:
        """Goes on with what can go on: whether there was something."""
        come, taken = self.words.read(self.me).tolist()
        went = False
        for to, sends in enumerate(self.sends):
            if sends and taken[to] == self.sent[to]:
                self._send(to, sends)
                went = True
        wanted = {message.peer for message in self.receives}
        for source in range(len(self.sends)):
            if (source in wanted or None in wanted) and come[source] > self.taken[source]:
                self._take(source)
                went = True
        return self._match() or went

    def _send(self, to: int, sends: Deque[_Message]) -> None:
        message = sends[0]
        at, size = message.at, message.data.size
        end = min(at + SLOT - _HEAD, size)
        head = np.array([message.tag, size, end - at], "int64").view("uint8")
        piece = np.concatenate([head, message.data[at:end]])
        self.slots[self.me, : piece.size].write(to, piece)
        self.sent[to] += 1
        self.words[0, self.me].write(to, np.array(self.sent[to], "uint64"))
        message.at, message.end = end, time.monotonic() + self.patience
        if end == size:
            sends.popleft()
            message.work._end()

    def _take(self, source: int) -> None:
        tag, total, length = self.slots[source, :_HEAD].read(self.me).view("int64").tolist()
        if not 0 <= length <= SLOT - _HEAD or total < 0:
            raise RuntimeError(f"a message of {self._name(source)} is damaged: {length} bytes of {total}")
        # What the tag was at the beginning counts.
        tag, data, at = self.coming[source] or (tag, np.empty(total, "uint8"), 0)
        if at + length > data.size:
            raise RuntimeError(f"a message of {self._name(source)} is damaged: {at + length} bytes of {data.size}")
        data[at : at + length] = self.slots[source, _HEAD : _HEAD + length].read(self.me)
        self.taken[source] += 1
        self.words[1, self.me].write(source, np.array(self.taken[source], "uint64"))
        if at + length < data.size:
            self.coming[source] = (tag, data, at + length)
        else:
            self.coming[source] = None
            self.kept[source].append((tag, data))

    def _match(self) -> bool:
        """Gives messages that have come to those who wait for them, in order."""
        left: List[_Message] = []
        for wanted in self.receives:
            tensor, work = wanted.tensor, wanted.work
            for peer in range(len(self.kept)) if wanted.peer is None else [wanted.peer]:
                place = next((i for i, kept in enumerate(self.kept[peer]) if kept[0] == wanted.tag), None)
                if place is None:
                    continue
                _, data = self.kept[peer].pop(place)
                size = tensor.numel() * tensor.element_size()
                if data.size != size:
                    text = f"recv: a message of {data.size} bytes from {self._name(peer)} for a tensor of {size}"
                    work._end(ValueError(text))
                    break
                if size:
                    flat = torch.from_numpy(data)
                    dtype = tensor.real.dtype if tensor.is_complex() else tensor.dtype
                    fill(tensor, flat.view(dtype))
                work._source = peer
                work._end()
                break
            else:
                left.append(wanted)
        went = len(left) < len(self.receives)
        self.receives = left
        return went
