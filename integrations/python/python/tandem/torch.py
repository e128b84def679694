"""PyTorch's process groups over the fabric: `backend="tandem"`.

    import torch.distributed as dist
    import tandem.torch

    dist.init_process_group("tandem")        # with the variables of torchrun, or a store

Each process of a group has one pretend PE, and all are of one host. Tensors are on the CPU. Each group, those of `new_group` too, is a
world of its own processes.

How it is done: a tensor passes through symmetric memory piece by piece (`PIECE` bytes). Sums, minima and maxima of float32, float64,
int32 and int64 are the fabric's collectives. float16 and bfloat16 are combined as float32 and rounded once; int8, uint8, int16 and bool are
combined as int32, sums with the same wrap. Complex numbers are sums of their parts. Products and bitwise operations are combined in the
order of ranks by the process that has the part, after an all-to-all.
"""

from __future__ import annotations

import atexit
import datetime
import queue
import sys
import threading
import time
import traceback
import weakref
from collections import deque
from typing import Any, Callable, Deque, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.distributed as dist

from ._fabric import Array, Meeting, World

PIECE = 4 << 20
"""Bytes of a tensor that pass through symmetric memory at a time."""
SLOT = 256 << 10
"""Bytes of a message from one process to another at a time."""
_HEAD = 24
_NATIVE = {torch.float32: "float32", torch.float64: "float64", torch.int32: "int32", torch.int64: "int64"}
_WIDER = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.int8: torch.int32,
    torch.uint8: torch.int32,
    torch.int16: torch.int32,
    torch.bool: torch.int32,
}
_COMBINE = {"SUM": "sum", "AVG": "sum", "MIN": "min", "MAX": "max"}
_LOCAL: Dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "PRODUCT": torch.mul,
    "BAND": torch.bitwise_and,
    "BOR": torch.bitwise_or,
    "BXOR": torch.bitwise_xor,
}


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


def _checked(op: str, tensors: Sequence[torch.Tensor]) -> None:
    for tensor in tensors:
        if tensor.device.type != "cpu" or tensor.layout is not torch.strided or tensor.is_quantized:
            raise TypeError(f"{op}: a tensor {tensor.layout} on {tensor.device}; the backend \"tandem\" takes dense ones on the CPU")


def _alike(op: str, tensors: Sequence[torch.Tensor], like: torch.Tensor) -> None:
    """Raises unless all are as large as one, and of its type."""
    _checked(op, [*tensors, like])
    for tensor in tensors:
        if tensor.numel() != like.numel() or tensor.dtype != like.dtype:
            kinds = f"{tensor.dtype} of {tensor.numel()} elements and {like.dtype} of {like.numel()}"
            raise ValueError(f"{op}: tensors {kinds}; expected one type and size")


def _only(op: str, tensors: Any) -> Any:
    """The tensor, or list of tensors, of a process, which has one device."""
    if len(tensors) != 1:
        raise ValueError(f"{op}: {len(tensors)} tensors of one process; expected 1")
    return tensors[0]


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """Its elements in order, which are its own where it lies in one piece."""
    tensor = tensor.detach()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.resolve_neg().contiguous().view(-1)


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return _flat(tensor).view(torch.uint8)


def _fill(tensor: torch.Tensor, flat: torch.Tensor) -> None:
    """Gives a tensor the elements that `_flat` has of it."""
    tensor = tensor.detach()
    target = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    if flat.data_ptr() != target.data_ptr() or not target.is_contiguous():
        target.copy_(flat.view(target.dtype).view(target.shape))


def _room(count: int, most: int) -> int:
    """A length from `count` to `most` that calls of like lengths share: each new one is planned."""
    step = 1 << max(count.bit_length() - 3, 0)
    return min(-(-count // step) * step, most)


def _ranges(count: int, most: int) -> Iterator[Tuple[int, int]]:
    for at in range(0, count, most):
        yield at, min(at + most, count)


class _Message:
    """One that is sent, or waited for."""

    def __init__(self, peer: Optional[int], tag: int, work: Work, tensor: torch.Tensor, end: float) -> None:
        self.peer, self.tag, self.work, self.tensor = peer, tag, work, tensor
        # When it has waited in vain.
        self.end = end
        # Of one that is sent: its bytes, and those that have left.
        self.data: np.ndarray[Any, Any] = np.empty(0, "uint8")
        self.at = 0


class _Mail:
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
        message.data = _bytes(tensor).numpy()
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
                    _fill(tensor, flat.view(dtype))
                work._source = peer
                work._end()
                break
            else:
                left.append(wanted)
        went = len(left) < len(self.receives)
        self.receives = left
        return went


class ProcessGroup(dist.ProcessGroup):
    """A group of processes of one host, each with a pretend PE."""

    def __init__(self, store: Any, rank: int, size: int, timeout: datetime.timedelta) -> None:
        super().__init__(rank, size)
        self._me, self._n, self._store = rank, size, store
        self._name, self._desc = "tandem", ""
        seconds = min(max(timeout.total_seconds(), 1.0), 86400.0)
        if rank == 0:
            store.set("tandem", Meeting.unique())
        place = store.get("tandem").decode()
        self._world = World("sim:1", meeting=Meeting(place, rank, size, within=seconds), timeout=seconds)
        # By type: what goes in and what comes out, and both as this process's tensors.
        self._stages: Dict[str, Tuple[Array, Array, torch.Tensor, torch.Tensor]] = {}
        self._mail = _Mail(self._world, rank, seconds)
        self._tasks: "queue.SimpleQueue[Optional[Tuple[Callable[[], None], Work]]]" = queue.SimpleQueue()
        self._is_over = False
        self._thread = threading.Thread(target=self._carry_out, name="tandem collectives", daemon=True)
        self._thread.start()
        _GROUPS.add(self)

    # What PyTorch asks for.

    def getBackendName(self) -> str:
        return "tandem"

    def _get_backend_name(self) -> str:
        return "tandem"

    def name(self) -> str:
        return "tandem"

    def rank(self) -> int:
        return self._me

    def size(self) -> int:
        return self._n

    def get_group_store(self) -> Any:
        return self._store

    def _set_group_name(self, name: str) -> None:
        self._name = name

    def _set_group_desc(self, desc: str) -> None:
        self._desc = desc

    @property
    def group_name(self) -> str:
        return self._name

    @property
    def group_desc(self) -> str:
        return self._desc

    def getGroupName(self) -> str:
        return self._name

    def getGroupDesc(self) -> str:
        return self._desc

    def _set_sequence_number_for_group(self) -> None:
        pass

    def __repr__(self) -> str:
        return f"<tandem.torch.ProcessGroup, process {self._me} of {self._n}>"

    def shutdown(self) -> None:
        """Ends what was begun, and leaves the group in order."""
        self._close(True)

    def abort(self) -> None:
        """Leaves the group at once: the waits of the others end."""
        self._close(False)

    def _close(self, is_well: bool) -> None:
        if self._is_over:
            return
        self._is_over = True
        _GROUPS.discard(self)
        self._tasks.put(None)
        self._thread.join(None if is_well else 10)
        self._mail.close()
        self._stages.clear()
        if is_well and not self._thread.is_alive():
            self._world.close()
        elif not is_well:
            self._world.__exit__(RuntimeError, None, None)

    # How it is done.

    def _carry_out(self) -> None:
        torch.set_grad_enabled(False)
        while True:
            task = self._tasks.get()
            if task is None:
                return
            call, work = task
            error: Optional[BaseException] = None
            try:
                call()
            except BaseException as raised:  # whoever waits gets it
                error = raised
                # Whose frames see the stages: the world could not be closed as long as somebody has the error.
                traceback.clear_frames(raised.__traceback__)
            del call, task
            work._end(error)

    def _begin(self, result: List[torch.Tensor], call: Callable[[], None]) -> Work:
        if self._is_over:
            raise RuntimeError("the process group is closed")
        work = Work(result)
        self._tasks.put((call, work))
        return work

    def _stage(self, dtype: str) -> Tuple[Array, Array, torch.Tensor, torch.Tensor]:
        found = self._stages.get(dtype)
        if found is None:
            count = PIECE // np.dtype(dtype).itemsize
            arrays = [self._world.zeros(count, dtype) for _ in range(2)]
            views = [torch.from_numpy(np.asarray(array.on(self._me))) for array in arrays]
            found = self._stages[dtype] = (arrays[0], arrays[1], views[0], views[1])
        return found

    def _broadcast(self, tensor: torch.Tensor, root: int) -> None:
        source, to, mine, got = self._stage("uint8")
        flat = _bytes(tensor)
        for at, end in _ranges(flat.numel(), PIECE):
            count, room = end - at, _room(end - at, PIECE)
            if self._me == root:
                mine[:count].copy_(flat[at:end])
            self._world.broadcast(source[:room], root, to[:room], wait=True)
            if self._me != root:
                flat[at:end].copy_(got[:count])
        if self._me != root:
            _fill(tensor, flat)

    def _gather(self, outputs: Optional[Sequence[torch.Tensor]], tensor: torch.Tensor) -> None:
        """All parts to all; who has no outputs only gives its own."""
        source, to, mine, got = self._stage("uint8")
        flat, most = _bytes(tensor), PIECE // self._n // 16 * 16
        flats = [_bytes(output) for output in outputs or []]
        for at, end in _ranges(flat.numel(), most):
            count, room = end - at, _room(end - at, most)
            mine[:count].copy_(flat[at:end])
            self._world.all_gather(source[:room], to[: self._n * room], wait=True)
            for i, output in enumerate(flats):
                output[at:end].copy_(got[i * room : i * room + count])
        for output, flat in zip(outputs or [], flats):
            _fill(output, flat)

    def _exchange(self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> None:
        """The i-th input to the i-th process, of any sizes; both are flat bytes."""
        longest = torch.tensor([max(part.numel() for part in [*outputs, *inputs])])
        self._reduce_native([longest], [longest], "max")
        source, to, mine, got = self._stage("uint8")
        most = PIECE // self._n // 16 * 16
        for at, end in _ranges(int(longest), most):
            room = _room(end - at, most)
            for i, part in enumerate(inputs):
                piece = part[at:end]
                mine[i * room : i * room + piece.numel()].copy_(piece)
            self._world.all_to_all(source[: self._n * room], to[: self._n * room], wait=True)
            for i, part in enumerate(outputs):
                piece = part[at:end]
                piece.copy_(got[i * room : i * room + piece.numel()])

    def _reduce_native(self, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], how: str) -> None:
        """Combines flat tensors: one of each process into all, or the i-th input of each into process i's output."""
        dtype = inputs[0].dtype
        source, to, mine, got = self._stage(_NATIVE[dtype])
        is_scatter = len(inputs) > 1
        most = PIECE // dtype.itemsize // len(inputs) // 16 * 16
        for at, end in _ranges(inputs[0].numel(), most):
            count, room = end - at, _room(end - at, most)
            for i, part in enumerate(inputs):
                mine[i * room : i * room + count].copy_(part[at:end])
            if is_scatter:
                self._world.reduce_scatter(source[: len(inputs) * room], to[:room], how, wait=True)  # type: ignore[arg-type]
            else:
                self._world.all_reduce(source[:room], to[:room], how, wait=True)  # type: ignore[arg-type]
            for output in outputs:
                output[at:end].copy_(got[:count])

    def _reduce_local(self, parts: Sequence[torch.Tensor], op: str) -> torch.Tensor:
        """What becomes of this process's part: `parts` has what this one gives to each."""
        came = [torch.empty_like(parts[self._me]) for _ in parts]
        self._exchange([_bytes(part) for part in came], [_bytes(part) for part in parts])
        total = came[0]
        for part in came[1:]:
            total = _LOCAL[op](total, part)
        return total

    def _all_reduce(self, tensor: torch.Tensor, output: Optional[torch.Tensor], op: str) -> None:
        """The combination to the output of those that have one."""
        flat = _flat(tensor)
        wide = flat.to(_WIDER.get(flat.dtype, flat.dtype))
        if op in _COMBINE:
            total = torch.empty_like(wide)
            self._reduce_native([wide], [total], _COMBINE[op])
        else:
            length = -(-wide.numel() // self._n)
            padded = torch.zeros(length * self._n, dtype=wide.dtype)
            padded[: wide.numel()] = wide
            mine = self._reduce_local(list(padded.view(self._n, length)), op) if length else padded
            total = torch.empty_like(padded)
            self._gather(list(total.view(self._n, length)), mine)
            total = total[: wide.numel()]
        if output is not None:
            self._finish(output, total, op)

    def _reduce_scatter(self, output: torch.Tensor, inputs: Sequence[torch.Tensor], op: str) -> None:
        flats = [_flat(part) for part in inputs]
        wide = [flat.to(_WIDER.get(flat.dtype, flat.dtype)) for flat in flats]
        if op not in _COMBINE:
            total = self._reduce_local(wide, op)
        else:
            total = torch.empty_like(wide[0])
            self._reduce_native(wide, [total], _COMBINE[op])
        self._finish(output, total, op)

    def _finish(self, output: torch.Tensor, total: torch.Tensor, op: str) -> None:
        if op == "AVG":
            total = total / self._n
        dtype = output.real.dtype if output.is_complex() else output.dtype
        _fill(output, (total != 0) if dtype == torch.bool else total.to(dtype))

    def _op(self, what: str, op: Any, tensor: torch.Tensor) -> str:
        """The name of a combination, if there is one of such elements."""
        names = [name for name in [*_COMBINE, *_LOCAL] if op == getattr(dist.ReduceOp, name)]
        name = names[0] if names else str(op)
        _checked(what, [tensor])
        dtype = tensor.dtype
        is_number = dtype in _NATIVE or dtype in _WIDER or dtype in (torch.complex64, torch.complex128)
        is_float = dtype.is_floating_point
        fits = {
            "AVG": is_float or dtype.is_complex,
            "MIN": not dtype.is_complex,
            "MAX": not dtype.is_complex,
            "PRODUCT": not dtype.is_complex,
            "BAND": not is_float and not dtype.is_complex,
            "BOR": not is_float and not dtype.is_complex,
            "BXOR": not is_float and not dtype.is_complex,
        }
        if not names or not is_number or not fits.get(name, True):
            raise TypeError(f'{what}: the backend "tandem" has no {name} of {dtype}')
        return name

    # The operations.

    def broadcast(self, tensors: Any, opts: Any = None, **_: Any) -> Any:
        tensor = _only("broadcast", tensors)
        _checked("broadcast", [tensor])
        root = opts.rootRank
        return self._begin([tensor], lambda: self._broadcast(tensor, root))

    def allreduce(self, tensors: Any, opts: Any = None, **_: Any) -> Any:
        tensor = _only("all_reduce", tensors)
        op = self._op("all_reduce", dist.ReduceOp.SUM if opts is None else opts.reduceOp, tensor)
        return self._begin([tensor], lambda: self._all_reduce(tensor, tensor, op))

    def allreduce_coalesced(self, tensors: Any, opts: Any = None, **_: Any) -> Any:
        ops = [self._op("all_reduce_coalesced", opts.reduceOp, tensor) for tensor in tensors]

        def call() -> None:
            for tensor, op in zip(tensors, ops):
                self._all_reduce(tensor, tensor, op)

        return self._begin(list(tensors), call)

    def reduce(self, tensors: Any, opts: Any = None, **_: Any) -> Any:
        tensor = _only("reduce", tensors)
        op, output = self._op("reduce", opts.reduceOp, tensor), tensor if opts.rootRank == self._me else None
        return self._begin([tensor], lambda: self._all_reduce(tensor, output, op))

    def allgather(self, output_tensors: Any, input_tensors: Any, opts: Any = None, **_: Any) -> Any:
        outputs, tensor = _only("all_gather", output_tensors), _only("all_gather", input_tensors)
        self._count("all_gather", outputs)
        _alike("all_gather", outputs, tensor)
        return self._begin(list(outputs), lambda: self._gather(outputs, tensor))

    def _allgather_base(self, output: Any, input: Any, opts: Any = None, **_: Any) -> Any:
        parts = self._parts("all_gather_into_tensor", output, input)
        return self._begin([output], lambda: self._into(output, parts, lambda parts: self._gather(parts, input)))

    def allgather_into_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None, **_: Any) -> Any:
        works = [self._allgather_base(output, tensor) for output, tensor in zip(outputs, inputs)]
        return self._all(list(outputs), works)

    def gather(self, output_tensors: Any, input_tensors: Any, opts: Any = None, **_: Any) -> Any:
        tensor = _only("gather", input_tensors)
        outputs = _only("gather", output_tensors) if opts.rootRank == self._me else []
        if opts.rootRank == self._me:
            self._count("gather", outputs)
        _alike("gather", outputs, tensor)
        return self._begin(list(outputs), lambda: self._gather(outputs, tensor))

    def scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = None, **_: Any) -> Any:
        output, root = _only("scatter", output_tensors), opts.rootRank
        inputs = _only("scatter", input_tensors) if root == self._me else []
        if root == self._me:
            self._count("scatter", inputs)
        _alike("scatter", inputs, output)

        def call() -> None:
            none = torch.empty(0, dtype=torch.uint8)
            flat = _bytes(output)
            parts = [_bytes(part) for part in inputs] or [none] * self._n
            self._exchange([flat if rank == root else none for rank in range(self._n)], parts)
            _fill(output, flat)

        return self._begin([output], call)

    def reduce_scatter(self, output_tensors: Any, input_tensors: Any, opts: Any = None, **_: Any) -> Any:
        output, inputs = _only("reduce_scatter", output_tensors), _only("reduce_scatter", input_tensors)
        self._count("reduce_scatter", inputs)
        _alike("reduce_scatter", inputs, output)
        op = self._op("reduce_scatter", opts.reduceOp, output)
        return self._begin([output], lambda: self._reduce_scatter(output, inputs, op))

    def _reduce_scatter_base(self, output: Any, input: Any, opts: Any = None, **_: Any) -> Any:
        parts = self._parts("reduce_scatter_tensor", input, output)
        op = self._op("reduce_scatter_tensor", opts.reduceOp, output)
        return self._begin([output], lambda: self._reduce_scatter(output, parts, op))

    def reduce_scatter_tensor_coalesced(self, outputs: Any, inputs: Any, opts: Any = None, **_: Any) -> Any:
        works = [self._reduce_scatter_base(output, tensor, opts) for output, tensor in zip(outputs, inputs)]
        return self._all(list(outputs), works)

    def alltoall(self, output_tensors: Any, input_tensors: Any, opts: Any = None, **_: Any) -> Any:
        outputs, inputs = list(output_tensors), list(input_tensors)
        self._count("all_to_all", outputs)
        self._count("all_to_all", inputs)
        _checked("all_to_all", outputs + inputs)

        def call() -> None:
            flats = [_bytes(output) for output in outputs]
            self._exchange(flats, [_bytes(part) for part in inputs])
            for output, flat in zip(outputs, flats):
                _fill(output, flat)

        return self._begin(outputs, call)

    def alltoall_base(
        self, output: Any, input: Any, output_split_sizes: Any = (), input_split_sizes: Any = (), opts: Any = None, **_: Any
    ) -> Any:
        outputs = self._split("all_to_all_single", output, output_split_sizes)
        inputs = self._split("all_to_all_single", input, input_split_sizes)

        def exchange(parts: Sequence[torch.Tensor]) -> None:
            flats = [_bytes(part) for part in parts]
            self._exchange(flats, [_bytes(part) for part in inputs])
            for part, flat in zip(parts, flats):
                _fill(part, flat)

        return self._begin([output], lambda: self._into(output, outputs, exchange))

    def send(self, tensors: Any, dst: int, tag: int = 0, **_: Any) -> Any:
        return self._message("send", tensors, dst, lambda tensor, work: self._mail.send(tensor, dst, tag, work))

    def recv(self, tensors: Any, src: int, tag: int = 0, **_: Any) -> Any:
        return self._message("recv", tensors, src, lambda tensor, work: self._mail.receive(tensor, src, tag, work))

    def recv_anysource(self, tensors: Any, tag: int = 0, **_: Any) -> Any:
        return self._message("recv", tensors, self._me, lambda tensor, work: self._mail.receive(tensor, None, tag, work))

    def _message(self, op: str, tensors: Any, peer: int, tell: Callable[[torch.Tensor, Work], None]) -> Work:
        tensor = _only(op, tensors)
        _checked(op, [tensor])
        if not 0 <= peer < self._n:
            raise ValueError(f"{op}: there is no process {peer}; the group has {self._n}")
        work = Work([tensor])
        tell(tensor.detach(), work)
        return work

    def barrier(self, opts: Any = None, **_: Any) -> Any:
        def call() -> None:
            self._world.barrier()
            self._world.synchronize()

        return self._begin([], call)

    # Their arguments.

    def _count(self, op: str, tensors: Sequence[torch.Tensor]) -> None:
        if len(tensors) != self._n:
            raise ValueError(f"{op}: {len(tensors)} tensors for {self._n} processes")

    def _parts(self, op: str, whole: torch.Tensor, part: torch.Tensor) -> List[torch.Tensor]:
        """Flat parts of a tensor, one for each process, as large as `part`."""
        _checked(op, [whole, part])
        if whole.numel() != self._n * part.numel() or whole.dtype != part.dtype:
            kinds = f"{whole.dtype} of {whole.numel()} elements and {part.dtype} of {part.numel()}"
            raise ValueError(f"{op}: tensors {kinds} among {self._n} processes")
        return list(whole.detach().contiguous().view(self._n, part.numel()))

    def _split(self, op: str, tensor: torch.Tensor, sizes: Sequence[int]) -> List[torch.Tensor]:
        """Parts of a tensor along its first axis: of these lengths, or equal ones."""
        _checked(op, [tensor])
        length = tensor.shape[0] if tensor.dim() else 1
        if not sizes:
            if length % self._n:
                raise ValueError(f"{op}: {length} rows do not divide among {self._n} processes")
            sizes = [length // self._n] * self._n
        if len(sizes) != self._n or sum(sizes) != length or min(sizes) < 0:
            raise ValueError(f"{op}: parts of {list(sizes)} rows of a tensor of {length}, among {self._n} processes")
        return list(torch.split(tensor.detach().contiguous(), list(sizes)))

    def _into(
        self, whole: torch.Tensor, parts: Sequence[torch.Tensor], call: Callable[[Sequence[torch.Tensor]], None]
    ) -> None:
        """Fills parts, which are those of `whole` itself unless that does not lie in one piece."""
        call(parts)
        if not whole.is_contiguous():
            whole.detach().copy_(torch.cat([part.reshape(-1) for part in parts]).view(whole.shape))

    def _all(self, result: List[torch.Tensor], works: Sequence[Work]) -> Work:
        def call() -> None:
            for work in works:
                work.wait()

        return self._begin(result, call)


_GROUPS: "weakref.WeakSet[ProcessGroup]" = weakref.WeakSet()


@atexit.register
def _leave() -> None:
    """The groups of a program that ends. After an exception the others are not told that all is well."""
    has_failed = getattr(sys, "last_value", None) is not None
    for group in list(_GROUPS):
        try:
            group._close(not has_failed)
        except BaseException as error:  # the program is over
            print(f"{group!r}: {error}", file=sys.stderr)


def _create(store: Any, rank: int, size: int, timeout: datetime.timedelta) -> ProcessGroup:
    return ProcessGroup(store, rank, size, timeout)


if "tandem" not in dist.Backend.backend_list:
    dist.Backend.register_backend("tandem", _create, devices=["cpu"])
