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
import traceback
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np
import torch
import torch.distributed as dist

from ._fabric import Array, Meeting, World
from ._messages import Mail, Work, as_bytes, elements_of, fill

PIECE = 4 << 20
"""Bytes of a tensor that pass through symmetric memory at a time."""
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


def _room(count: int, most: int) -> int:
    """A length from `count` to `most` that calls of like lengths share: each new one is planned."""
    step = 1 << max(count.bit_length() - 3, 0)
    return min(-(-count // step) * step, most)


def _ranges(count: int, most: int) -> Iterator[Tuple[int, int]]:
    for at in range(0, count, most):
        yield at, min(at + most, count)


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
        self._mail = Mail(self._world, rank, seconds)
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
        flat = as_bytes(tensor)
        for at, end in _ranges(flat.numel(), PIECE):
            count, room = end - at, _room(end - at, PIECE)
            if self._me == root:
                mine[:count].copy_(flat[at:end])
            self._world.broadcast(source[:room], root, to[:room], wait=True)
            if self._me != root:
                flat[at:end].copy_(got[:count])
        if self._me != root:
            fill(tensor, flat)

    def _gather(self, outputs: Optional[Sequence[torch.Tensor]], tensor: torch.Tensor) -> None:
        """All parts to all; who has no outputs only gives its own."""
        source, to, mine, got = self._stage("uint8")
        flat, most = as_bytes(tensor), PIECE // self._n // 16 * 16
        flats = [as_bytes(output) for output in outputs or []]
        for at, end in _ranges(flat.numel(), most):
            count, room = end - at, _room(end - at, most)
            mine[:count].copy_(flat[at:end])
            self._world.all_gather(source[:room], to[: self._n * room], wait=True)
            for i, output in enumerate(flats):
                output[at:end].copy_(got[i * room : i * room + count])
        for output, flat in zip(outputs or [], flats):
            fill(output, flat)

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
        self._exchange([as_bytes(part) for part in came], [as_bytes(part) for part in parts])
        total = came[0]
        for part in came[1:]:
            total = _LOCAL[op](total, part)
        return total

    def _all_reduce(self, tensor: torch.Tensor, output: Optional[torch.Tensor], op: str) -> None:
        """The combination to the output of those that have one."""
        flat = elements_of(tensor)
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
        flats = [elements_of(part) for part in inputs]
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
        fill(output, (total != 0) if dtype == torch.bool else total.to(dtype))

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
            flat = as_bytes(output)
            parts = [as_bytes(part) for part in inputs] or [none] * self._n
            self._exchange([flat if rank == root else none for rank in range(self._n)], parts)
            fill(output, flat)

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
            flats = [as_bytes(output) for output in outputs]
            self._exchange(flats, [as_bytes(part) for part in inputs])
            for output, flat in zip(outputs, flats):
                fill(output, flat)

        return self._begin(outputs, call)

    def alltoall_base(
        self, output: Any, input: Any, output_split_sizes: Any = (), input_split_sizes: Any = (), opts: Any = None, **_: Any
    ) -> Any:
        outputs = self._split("all_to_all_single", output, output_split_sizes)
        inputs = self._split("all_to_all_single", input, input_split_sizes)

        def exchange(parts: Sequence[torch.Tensor]) -> None:
            flats = [as_bytes(part) for part in parts]
            self._exchange(flats, [as_bytes(part) for part in inputs])
            for part, flat in zip(parts, flats):
                fill(part, flat)

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
