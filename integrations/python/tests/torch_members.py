"""What one process of a group does in test_torch.py: `python torch_members.py SCENE SEED FILE RANK SIZE`."""

from __future__ import annotations

import copy
import datetime
import os
import random
import signal
import sys
import time
from typing import Any, Callable

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import tandem
import tandem._messages
import tandem.torch

OPS = {
    "sum": dist.ReduceOp.SUM, "product": dist.ReduceOp.PRODUCT, "min": dist.ReduceOp.MIN, "max": dist.ReduceOp.MAX, "avg": dist.ReduceOp.AVG,
    "band": dist.ReduceOp.BAND, "bor": dist.ReduceOp.BOR, "bxor": dist.ReduceOp.BXOR,
}  # fmt: skip
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
COMPLEX = [torch.complex64, torch.complex128]
SIZES = [1, 7, 1000, 33_333]
VICTIM = 1


def data(seed: int, rank: int, size: Any, dtype: torch.dtype) -> torch.Tensor:
    """Random elements, the same in every process; floating-point numbers near 1, whose products stay finite."""
    random = torch.Generator().manual_seed(seed * 64 + rank)
    if dtype == torch.bool:
        return torch.randint(0, 2, size, generator=random).bool()
    if dtype in INTS:
        info = torch.iinfo(dtype)
        return torch.randint(max(info.min, -(2**40)), min(info.max, 2**40), size, generator=random).to(dtype)
    return (torch.rand(size, generator=random, dtype=torch.float64) + 0.5).to(dtype)


def same(found: torch.Tensor, expected: torch.Tensor, what: str) -> None:
    """Sums of floating-point numbers depend on their order."""
    rough = {torch.float16: 1e-2, torch.bfloat16: 5e-2, torch.float32: 1e-4, torch.complex64: 1e-4}.get(found.dtype)
    exact = not (found.is_floating_point() or found.is_complex())
    tolerance = 0.0 if exact else rough or 1e-10
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance, msg=lambda text: f"{what}: {text}")


def combined(op: str, parts: list[torch.Tensor]) -> torch.Tensor:
    """What the combination is, by PyTorch itself."""
    dtype = parts[0].dtype
    if dtype == torch.bool:
        stack = torch.stack(parts).to(torch.int64)
        how: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
            "sum": lambda x: x.sum(0), "max": lambda x: x.amax(0), "bor": lambda x: x.amax(0), "min": lambda x: x.amin(0),
            "product": lambda x: x.amin(0), "band": lambda x: x.amin(0), "bxor": lambda x: x.sum(0) % 2,
        }  # fmt: skip
        return how[op](stack) != 0
    wide = [part.double() if dtype in FLOATS else part for part in parts]
    total = wide[0].clone()
    for part in wide[1:]:
        total = {
            "sum": torch.add, "avg": torch.add, "product": torch.mul, "min": torch.minimum, "max": torch.maximum,
            "band": torch.bitwise_and, "bor": torch.bitwise_or, "bxor": torch.bitwise_xor,
        }[op](total, part)  # fmt: skip
    return (total / len(parts) if op == "avg" else total).to(dtype)


def has(op: str, dtype: torch.dtype) -> bool:
    if dtype in FLOATS:
        return not op.startswith("b")
    if dtype in COMPLEX:
        return op in ("sum", "avg")
    return op != "avg"


def known_to_gloo(op: str, dtype: torch.dtype) -> bool:
    if dtype in COMPLEX or dtype == torch.int16 or dtype == torch.bool or op == "avg":
        return False
    return not (op.startswith("b") and dtype in FLOATS)


class Scene:
    """A process of a group "tandem", and of one of gloo, which says what is right."""

    def __init__(self, seed: int, size: int, rank: int) -> None:
        self.seed, self.n, self.me = seed, size, rank
        self.gloo: Any = dist.new_group(backend="gloo")

    def all(self, size: Any, dtype: torch.dtype, salt: int = 0) -> list[torch.Tensor]:
        return [data(self.seed + salt, rank, size, dtype) for rank in range(self.n)]

    def reductions(self) -> None:
        for number, dtype in enumerate([*FLOATS, *INTS, torch.bool, *COMPLEX]):
            for op in OPS:
                sizes = SIZES if dtype in (torch.float32, torch.int64) else [7, 1001]
                for size in sizes if has(op, dtype) else []:
                    self.reduction(op, dtype, size, 100 * number + size)

    def reduction(self, op: str, dtype: torch.dtype, size: int, salt: int) -> None:
        what = f"{op} of {size} {dtype}"
        parts = self.all((size,), dtype, salt)
        found = parts[self.me].clone()
        dist.all_reduce(found, OPS[op])
        same(found, combined(op, parts), f"all_reduce, {what}")
        if known_to_gloo(op, dtype):
            other = parts[self.me].clone()
            dist.all_reduce(other, OPS[op], group=self.gloo)
            same(found, other, f"all_reduce as gloo, {what}")
        root = size % self.n
        found = parts[self.me].clone()
        dist.reduce(found, root, OPS[op])
        same(found, combined(op, parts) if self.me == root else parts[self.me], f"reduce, {what}")
        wide = self.all((self.n, size), dtype, salt + 1)
        expected = combined(op, [one[self.me] for one in wide])
        found = torch.empty_like(expected)
        dist.reduce_scatter(found, list(wide[self.me]), OPS[op])
        same(found, expected, f"reduce_scatter, {what}")
        found = torch.empty_like(expected)
        dist.reduce_scatter_tensor(found, wide[self.me].clone(), OPS[op])
        same(found, expected, f"reduce_scatter_tensor, {what}")

    def movements(self) -> None:
        for number, dtype in enumerate([*FLOATS, *INTS, torch.bool, *COMPLEX]):
            for size in [0, *SIZES] if dtype in (torch.float32, torch.int8) else [5, 1001]:
                self.movement(dtype, size, 1000 * number + size)

    def movement(self, dtype: torch.dtype, size: int, salt: int) -> None:
        what = f"{size} {dtype}"
        parts, wide = self.all((size,), dtype, salt), self.all((self.n, size), dtype, salt + 1)
        root = (size + 1) % self.n
        mine = parts[self.me]
        found = mine.clone()
        dist.broadcast(found, root)
        same(found, parts[root], f"broadcast, {what}")
        outputs = [torch.empty_like(mine) for _ in range(self.n)]
        dist.all_gather(outputs, mine)
        for output, part in zip(outputs, parts):
            same(output, part, f"all_gather, {what}")
        if size and known_to_gloo("sum", dtype) and dtype != torch.bfloat16:
            others = [torch.empty_like(mine) for _ in range(self.n)]
            dist.all_gather(others, mine, group=self.gloo)
            for output, other in zip(outputs, others):
                same(output, other, f"all_gather as gloo, {what}")
        whole = torch.empty(self.n * size, dtype=dtype)
        dist.all_gather_into_tensor(whole, mine)
        same(whole, torch.cat(parts), f"all_gather_into_tensor, {what}")
        gathered = [torch.empty_like(mine) for _ in range(self.n)] if self.me == root else None
        dist.gather(mine, gathered, root)
        for output, part in zip(gathered or [], parts):
            same(output, part, f"gather, {what}")
        found = torch.empty_like(mine)
        dist.scatter(found, list(wide[root]) if self.me == root else None, root)
        same(found, wide[root][self.me], f"scatter, {what}")
        outputs = [torch.empty_like(mine) for _ in range(self.n)]
        dist.all_to_all(outputs, list(wide[self.me]))
        for rank, output in enumerate(outputs):
            same(output, wide[rank][self.me], f"all_to_all, {what}")
        whole = torch.empty(self.n * size, dtype=dtype)
        dist.all_to_all_single(whole, wide[self.me].reshape(-1).contiguous())
        same(whole, torch.cat([one[self.me] for one in wide]), f"all_to_all_single, {what}")

    def splits(self) -> None:
        """Parts of any number of rows, of which some are none."""
        for turn in range(4):
            chance = random.Random(self.seed + turn)
            rows = [[chance.randrange(0, 6 + 300 * (turn == 3)) for _ in range(self.n)] for _ in range(self.n)]
            inputs = [data(self.seed + turn, rank, (sum(rows[rank]), 3), torch.float32) for rank in range(self.n)]
            parts = [list(torch.split(inputs[rank], rows[rank])) for rank in range(self.n)]
            expected = torch.cat([parts[rank][self.me] for rank in range(self.n)])
            found, other = torch.empty_like(expected), torch.empty_like(expected)
            sizes = [rows[rank][self.me] for rank in range(self.n)]
            dist.all_to_all_single(found, inputs[self.me], sizes, rows[self.me])
            dist.all_to_all_single(other, inputs[self.me], sizes, rows[self.me], group=self.gloo)
            same(found, expected, "all_to_all_single")
            same(found, other, "all_to_all_single as gloo")
            outputs = [torch.empty(size, 3) for size in sizes]
            dist.all_to_all(outputs, parts[self.me])
            same(torch.cat(outputs), expected, "all_to_all")

    def shapes(self) -> None:
        """Tensors that lie in several pieces, or have no axes."""
        parts = self.all((30, 20), torch.float32)
        for view in [lambda x: x.t(), lambda x: x[::2, 3:11], lambda x: x[4, 5]]:
            found = parts[self.me].clone()
            dist.all_reduce(view(found))
            expected = parts[self.me].clone()
            view(expected).copy_(combined("sum", [view(part) for part in parts]))
            same(found, expected, "all_reduce of a view")
            found = parts[self.me].clone()
            dist.broadcast(view(found), self.n - 1)
            view(expected := parts[self.me].clone()).copy_(view(parts[-1]))
            same(found, expected, "broadcast of a view")
        whole = torch.zeros(20, self.n * 30).t()
        dist.all_gather_into_tensor(whole, parts[self.me])
        same(whole.contiguous(), torch.cat(parts), "all_gather_into_tensor of a view")
        leaf = torch.ones(3, requires_grad=True)
        dist.all_reduce(leaf)
        assert leaf.tolist() == [self.n] * 3 and leaf.requires_grad

    def asynchronous(self) -> None:
        tensors = [part.clone() for part in [data(self.seed + i, self.me, (5000,), torch.float64) for i in range(12)]]
        works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
        for i in reversed(range(12)):
            assert works[i].wait() and works[i].is_completed() and works[i].is_success()
            expected = combined("sum", [data(self.seed + i, rank, (5000,), torch.float64) for rank in range(self.n)])
            same(tensors[i], expected, "all_reduce in any order")
        tensor = torch.full((3,), float(self.me))
        future = dist.all_reduce(tensor, async_op=True).get_future().then(lambda done: done.value()[0] * 2)
        assert future.wait().tolist() == [self.n * (self.n - 1)] * 3
        dist.barrier(async_op=True).wait()

    def messages(self) -> None:
        right, left = (self.me + 1) % self.n, (self.me - 1) % self.n
        for size in [0, 1, 1001, 200_003]:
            mine, got = data(self.seed + size, self.me, (size,), torch.float32), torch.empty(size)
            other = torch.empty(size)
            # Behind a collective that is under way, and in another order than they are waited for.
            begun = dist.all_reduce(torch.ones(10_000), async_op=True) if self.me % 2 else None
            sent = [dist.isend(mine * factor, right, tag=tag) for tag, factor in [(1, 1.0), (2, 3.0)]]
            second = dist.irecv(other, left, tag=2)
            dist.recv(got, left, tag=1)
            second.wait()
            [work.wait() for work in sent]
            begun = begun or dist.all_reduce(torch.ones(10_000), async_op=True)
            begun.wait()
            expected = data(self.seed + size, left, (size,), torch.float32)
            same(got, expected, "recv")
            same(other, expected * 3.0, "recv of a second tag")
        ops = [dist.P2POp(dist.isend, torch.full((4,), self.me), right), dist.P2POp(dist.irecv, got := torch.zeros(4, dtype=torch.int64), left)]
        [work.wait() for work in dist.batch_isend_irecv(ops)]
        assert got.tolist() == [left] * 4
        if self.me == 0:
            seen = set()
            for _ in range(self.n - 1):
                source = dist.recv(value := torch.zeros(1, dtype=torch.int64))
                assert value.item() == source * 11
                seen.add(source)
            assert seen == set(range(1, self.n))
        else:
            dist.send(torch.tensor([self.me * 11]), 0)
        objects: list[Any] = [None] * self.n
        dist.all_gather_object(objects, {"rank": self.me, "text": "x" * self.me})
        assert objects == [{"rank": rank, "text": "x" * rank} for rank in range(self.n)]

    def groups(self) -> None:
        members = list(range(0, self.n, 2))
        some = dist.new_group(members, backend="tandem")
        if self.me in members:
            found = torch.full((100,), float(self.me))
            dist.all_reduce(found, group=some)
            assert found.tolist() == [float(sum(members))] * 100
            dist.broadcast(found, members[-1], group=some)
            assert dist.get_backend(some) == "tandem" and dist.get_world_size(some) == len(members)
        pair = dist.new_group([0, 1], backend="tandem")
        if self.me < 2:
            dist.barrier(group=pair)
        found = torch.ones(1)
        dist.all_reduce(found)
        assert found.item() == self.n

    def refusals(self) -> None:
        cases: list[tuple[type[Exception], str, Callable[[], Any]]] = [
            (TypeError, "no AVG of torch.int32", lambda: dist.all_reduce(torch.ones(3, dtype=torch.int32), dist.ReduceOp.AVG)),
            (TypeError, "no BXOR of torch.float32", lambda: dist.all_reduce(torch.ones(3), dist.ReduceOp.BXOR)),
            (TypeError, "sparse", lambda: dist.all_reduce(torch.ones(3).to_sparse())),
            (ValueError, "expected one type and size", lambda: dist.all_gather([torch.ones(2)] * self.n, torch.ones(3))),
            (ValueError, "among", lambda: dist.all_gather_into_tensor(torch.ones(3 * self.n + 1), torch.ones(3))),
        ]
        import re

        for kind, text, call in cases:
            try:
                call()
            except kind as error:
                assert re.search(text, str(error)), error
            else:
                raise AssertionError(f"nothing was raised: {text}")
        dist.barrier()
        if self.n > 1:
            self.silence()

    def silence(self) -> None:
        """Messages that nobody sends or takes end, and so do those of another size; others pass after them."""
        hasty = dist.new_group(list(range(self.n)), backend="tandem", timeout=datetime.timedelta(seconds=2))
        right, left = (self.me + 1) % self.n, (self.me - 1) % self.n
        begun = time.monotonic()
        waits: list[tuple[Callable[[], Any], str]] = [
            (lambda: dist.irecv(torch.ones(5), left, group=hasty, tag=7), f"tag 7 waited 2.0 s in vain for process {left} (pid "),
            (lambda: dist.isend(torch.ones(9000), right, group=hasty, tag=8), f"tag 8 waited 2.0 s in vain for process {right} (pid "),
            # A part of it has left.
            (lambda: dist.isend(torch.ones(5), right, group=hasty, tag=8), f"tag 8 waited 2.0 s in vain for process {right} (pid "),
        ]
        for call, text in waits:
            try:
                call().wait()
            except RuntimeError as error:
                assert text in str(error), error
            else:
                raise AssertionError(f"nothing was raised: {text}")
            # Nobody waits for the next one.
            dist.barrier()
        assert 3.9 < time.monotonic() - begun < 30
        works = [dist.isend(torch.ones(5), right), dist.irecv(torch.ones(6), left)]
        try:
            works[1].wait()
        except ValueError as error:
            assert f"a message of 20 bytes from process {left} (pid " in str(error), error
        else:
            raise AssertionError("a message of another size was taken")
        works[0].wait()
        dist.send(torch.full((5,), float(self.me)), right)
        dist.recv(got := torch.zeros(5), left)
        assert got.tolist() == [float(left)] * 5

    def training(self) -> None:
        """The weights after some steps are those that gloo comes to."""
        torch.manual_seed(self.seed)
        model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 3))
        weights: list[list[torch.Tensor]] = []
        for group in [None, self.gloo]:
            trained = DistributedDataParallel(copy.deepcopy(model), process_group=group, bucket_cap_mb=0.01)
            optimizer = torch.optim.SGD(trained.parameters(), lr=0.05, momentum=0.9)
            for step in range(8):
                inputs = data(self.seed + step, self.me, (16, 20), torch.float32)
                loss = (trained(inputs) - inputs[:, :3]).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            weights.append([weight.detach().clone() for weight in trained.parameters()])
        for found, expected, begun in zip(*weights, model.parameters()):
            assert not torch.equal(found, begun)
            if self.n == 2:
                assert torch.equal(found, expected)
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)

    def killed(self) -> None:
        """The others' waits end, and name it."""
        pids: list[Any] = [None] * self.n
        dist.all_gather_object(pids, os.getpid())
        # So that what it needs is there.
        dist.all_reduce(torch.ones(5))
        if self.me == VICTIM:
            time.sleep(1)
            os.kill(os.getpid(), signal.SIGKILL)
        begun = time.monotonic()
        waits = [dist.all_reduce(torch.ones(5), async_op=True), dist.irecv(torch.ones(5), VICTIM)]
        for work in waits:
            try:
                work.wait()
            except tandem.FaultError as error:
                assert error.process is not None and error.process.pid == pids[VICTIM] and str(pids[VICTIM]) in str(error)
            else:
                raise AssertionError("the work was done")
        assert time.monotonic() - begun < 30


def main() -> None:
    scene, seed, file, rank, size = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    if scene != "large":
        # Several pieces of small tensors.
        tandem.torch.PIECE, tandem._messages.SLOT = 48 << 10, 4 << 10
    minutes = datetime.timedelta(minutes=3)
    dist.init_process_group("tandem", init_method=f"file://{file}", rank=rank, world_size=size, timeout=minutes)
    play = Scene(seed, size, rank)
    if scene == "large":
        for op, dtype in [("sum", torch.float32), ("product", torch.float64), ("max", torch.bfloat16)]:
            play.reduction(op, dtype, 1_500_007, 5)
        play.movement(torch.float32, 1_500_007, 6)
    else:
        getattr(play, scene)()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
