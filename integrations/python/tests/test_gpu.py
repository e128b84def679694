"""On a GPU: CuPy, PyTorch, numba and Triton on the memory of several PEs, and streams of the caller's.

Runs where TANDEM_PYTHON_DEVICE=cuda; what is not installed is skipped.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from shared import DTYPES, KIND, devices, fill, random

import tandem

# numba-cuda up to 0.30 names it, and NumPy has it no more from 2.5 on.
if not hasattr(np, "row_stack"):
    setattr(np, "row_stack", np.vstack)

pytestmark = pytest.mark.skipif(KIND != "cuda", reason="needs a GPU: TANDEM_PYTHON_DEVICE=cuda")


@pytest.mark.parametrize("dtype", DTYPES)
def test_cupy_sees_the_memory_itself(world: tandem.World, rng: np.random.Generator, dtype: str) -> None:
    cupy = pytest.importorskip("cupy")
    array = world.zeros((3, 100), dtype)
    data = fill(rng, world, array)
    for pe in range(world.size):
        view, shared = cupy.asarray(array.on(pe)), cupy.from_dlpack(array.on(pe))
        assert view.data.ptr == shared.data.ptr == array.on(pe).ptr and view.dtype == dtype
        np.testing.assert_array_equal(cupy.asnumpy(view), data[pe])
        view[...] = cupy.asarray(data[0])
        cupy.cuda.Device().synchronize()
        np.testing.assert_array_equal(array.read(pe), data[0])


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64", "uint8", "complex64", "bool"])
def test_torch_sees_the_memory_itself(world: tandem.World, rng: np.random.Generator, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    array = world.zeros((3, 100), getattr(torch, dtype))
    data = fill(rng, world, array)
    for pe in range(world.size):
        shared, view = torch.from_dlpack(array.on(pe)), torch.as_tensor(array.on(pe), device="cuda:0")
        assert shared.data_ptr() == view.data_ptr() == array.on(pe).ptr and shared.device.type == "cuda"
        np.testing.assert_array_equal(shared.cpu().numpy(), data[pe])
    del shared, view
    with pytest.raises(BufferError):
        kept = torch.from_dlpack(array.on(0))
        world.close()
    del kept


def test_a_stream_of_the_caller_orders_its_work(four: tandem.World, rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    stream = torch.cuda.Stream()
    source, inbox = four.zeros(1 << 20, "float32"), four.zeros(1 << 20, "float32")
    mine = torch.from_dlpack(source.on(0))
    pe = four[0].on(stream)
    assert pe.stream == stream.cuda_stream
    for number in range(20):
        with torch.cuda.stream(stream):
            torch.cuda._sleep(1_000_000)
            mine.fill_(number)
        pe.put(inbox, source, 3)
        stream.synchronize()
        assert (inbox.read(3) == number).all()
    del mine
    # A world whose queues are the caller's streams.
    streams = [torch.cuda.Stream() for _ in range(2)]
    with tandem.World(devices(2), streams=streams) as world:
        assert [pe.stream for pe in world] == [stream.cuda_stream for stream in streams]
        array = world.zeros(1000, "int64")
        data = fill(rng, world, array)
        world.all_reduce(array)
        for stream in streams:
            stream.synchronize()
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(array.read(1), data[0] + data[1])


@pytest.mark.parametrize("distribution", ["block", "cyclic", 1000])
def test_numba_indexes_all_pes(world: tandem.World, rng: np.random.Generator, distribution: Any) -> None:
    pytest.importorskip("numba.cuda")
    from kernels import number, reverse
    from numba import cuda

    for dtype in ["float32", "float64", "int32", "uint64"]:
        for size in [1, 2, 4097, 100_001]:
            a, b = world.global_array(size, dtype, distribution), world.global_array(size, dtype, "cyclic")
            data = random(rng, size, dtype)
            a[:] = data
            pe = world[size % world.size]
            to, source = b.on(pe.number), a.on(pe.number)
            reverse[(size + 255) // 256, 256, cuda.external_stream(pe.stream)](to, source)
            world.synchronize()
            with np.errstate(over="ignore"):
                np.testing.assert_array_equal(b[:], data[::-1] + data[::-1])
            for each in world:
                number[(size + 255) // 256, 256, cuda.external_stream(each.stream)](a.on(each.number))
            world.synchronize()
            owners = np.array([a.owner(i)[0] for i in range(size)])
            np.testing.assert_array_equal(a[:], (np.arange(size) + 1000 * owners).astype(dtype))


def test_triton_indexes_all_pes(world: tandem.World, rng: np.random.Generator) -> None:
    triton = pytest.importorskip("triton")
    torch = pytest.importorskip("torch")
    import triton_kernels

    for dtype in ["float32", "int32", "float64"]:
        for size in [1, 2, 4097, 100_001]:
            a, b = world.global_array(size, dtype, 1000), world.global_array(size, dtype, "cyclic")
            data = random(rng, size, dtype)
            a[:] = data
            pe = size % world.size
            to, source = b.on(pe), a.on(pe)
            with torch.cuda.stream(torch.cuda.ExternalStream(world[pe].stream)):
                triton_kernels.reverse[(triton.cdiv(size, 256),)](
                    to.rule, source.rule, getattr(triton.language, dtype), N=256
                )
            world.synchronize()
            with np.errstate(over="ignore"):
                np.testing.assert_array_equal(b[:], data[::-1] + data[::-1])


def test_what_a_call_costs(capsys: pytest.CaptureFixture[str]) -> None:
    """Prints microseconds for a queued put of 8 bytes, and GB/s of numba's kernel."""
    with tandem.World(devices(2)) as world:
        array, pe = world.zeros(1, "int64"), world[0]
        for _ in range(3):
            begun = time.perf_counter()
            for _ in range(500):
                pe.put(array, array, 1)
            told = (time.perf_counter() - begun) / 500
            world.synchronize()
        with capsys.disabled():
            print(f"\nqueued put: {told * 1e6:.2f} us")
        numba = pytest.importorskip("numba.cuda")
        from kernels import reverse

        size = 1 << 26
        a, b = world.global_array(size, "float32"), world.global_array(size, "float32")
        to, source = b.on(0), a.on(0)
        stream = numba.external_stream(pe.stream)
        for _ in range(3):
            begun = time.perf_counter()
            for _ in range(10):
                reverse[size // 256, 256, stream](to, source)
            pe.synchronize()
            took = (time.perf_counter() - begun) / 10
        with capsys.disabled():
            print(f"numba's kernel over a global array: {size * 8 / took / 1e9:.0f} GB/s read and written")
        del to, source
