"""What is wrong is said in Python's own exceptions, with the PE's name."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from shared import KIND

import tandem
from tandem import _fabric

pytestmark = pytest.mark.skipif(KIND != "sim", reason="pretend PEs")


def test_dtypes_come_in_many_forms(four: tandem.World) -> None:
    for dtype in ["float32", np.float32, np.dtype("float32"), np.dtype("<f4")]:
        assert four.zeros(1, dtype).dtype == "float32"
    for dtype, name in [(float, "float64"), (int, "int64"), (bool, "bool"), (complex, "complex128")]:
        assert four.zeros(1, dtype).dtype == name
    assert four.zeros(1).dtype == "float64"

    class Torch:
        def __str__(self) -> str:
            return "torch.float16"

    assert four.zeros(1, Torch()).dtype == "float16"
    for wrong in ["float8", "str", object, np.dtype("O"), None.__class__, 3]:
        with pytest.raises(TypeError, match="expected one of bool, int8"):
            four.zeros(1, wrong)


def test_wrong_types_are_named(four: tandem.World) -> None:
    a, b, flags = four.zeros(4, "float32"), four.zeros(4, "int32"), four.zeros(4, "uint64")
    with pytest.raises(TypeError, match=r"put of PE 1 \(sim:1\) with PE 2 \(sim:2\): from an array int32 .* to one float32"):
        four[1].put(a, b, 2)
    with pytest.raises(TypeError, match=r"get of PE 0 \(sim:0\)"):
        four[0].get(a, b, 3)
    with pytest.raises(TypeError, match="all_reduce: from an array int32"):
        four.all_reduce(b, a)
    for dtype in ["float16", "bool", "complex64", "uint8"]:
        c = four.zeros(4, dtype)
        with pytest.raises(TypeError, match=f"all_reduce: numbers of the type {dtype}"):
            four.all_reduce(c)
    with pytest.raises(TypeError, match="a signal word int32"):
        four[0].signal(b[0], 1)
    with pytest.raises(TypeError, match="a word of the type float32"):
        four[0].wait(a, "==", 1)
    with pytest.raises(TypeError, match=r"write to PE 1 \(sim:1\) of an array float32.*: data of the type float64"):
        a.write(1, np.zeros(4))
    with pytest.raises(TypeError, match="from a word uint64"):
        four[0].atomic(flags[0], "add", 1, 1, into=b[0])
    with pytest.raises(ValueError, match="outside the words' range"):
        four[0].wait(flags, "==", -1)
    with pytest.raises(ValueError, match="outside the words' range"):
        four[0].wait(b, "==", 2**31)


def test_wrong_shapes_and_strides_are_named(four: tandem.World) -> None:
    a, b = four.zeros((4, 5), "float32"), four.zeros((5, 4), "float32")
    with pytest.raises(ValueError, match=r"put of PE 1 \(sim:1\) .* shape \(5, 4\) to one float32 of shape \(4, 5\)"):
        four[1].put(a, b, 2)
    with pytest.raises(ValueError, match=r"write to PE 3 \(sim:3\).*: data of shape \[5, 4\]"):
        a.write(3, np.zeros((5, 4), "float32"))
    indices: list[Any] = [(slice(None), 1), slice(None, None, 2), slice(None, None, -1), (slice(0, 2), slice(0, 2)), (0, slice(0, 4, 2))]
    for index in indices:
        with pytest.raises(ValueError, match="follow each other"):
            a[index]
    with pytest.raises(ValueError, match="in the shape"):
        a.reshape(3, 7)
    with pytest.raises(ValueError, match="too many bytes"):
        four.zeros((2**40, 2**40))
    for shape in [-1, (2, -3), (1.5,), "3", None]:
        with pytest.raises((ValueError, TypeError)):
            four.zeros(shape)  # type: ignore[arg-type]
    with pytest.raises(tandem.InvalidError, match="all-gather: 20 elements in and 20 out"):
        four.all_gather(a, b)
    with pytest.raises(tandem.InvalidError, match="overlap"):
        four.all_gather(a[0, 0:1], a[0, 0:4])
    # Strides of what is written are those of NumPy: elements arrive where they belong.
    data = np.arange(40, dtype="float32").reshape(4, 10)[:, ::2]
    a.write(0, data)
    np.testing.assert_array_equal(a.read(0), data)


def test_what_is_out_of_range_is_named(four: tandem.World) -> None:
    a, flags = four.zeros(4, "float32"), four.zeros(4, "uint64")
    for use in [lambda: four[4], lambda: four[-5], lambda: a[4], lambda: a[-5], lambda: a[0, 0], lambda: a.on(4)]:
        with pytest.raises(IndexError):
            use()
    for use in [
        lambda: four[0].put(a, a, 4), lambda: four[0].get(a, a, 99), lambda: a.read(4), lambda: four[0].signal(flags[0], 4),
        lambda: four[0].wait(flags, "==", 0, source=4), lambda: four.wait_until(4, flags, "==", 0),
        lambda: four.split([0, 4]), lambda: four.all_reduce(a, pes=[0, 4]), lambda: four.broadcast(a, 4),
    ]:  # fmt: skip
        with pytest.raises(tandem.InvalidError, match="PE 4|PE 99"):
            use()
    with pytest.raises(tandem.InvalidError, match=r"told to PE 2 \(sim:2\)"):
        four[2].signal(flags, 0)
    with pytest.raises(tandem.InvalidError, match="named twice"):
        four.split([1, 1])
    with pytest.raises(ValueError, match="expected ==, !=, >"):
        four[0].wait(flags, "=", 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match='expected "sum", "min" or "max"'):
        four.all_reduce(a, op="mean")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match='expected "set", "add"'):
        four[0].atomic(flags[0], "nand", 1, 1)  # type: ignore[arg-type]
    # After all that the world works.
    four.all_reduce(a, wait=True)


def test_devices_that_do_not_exist_are_named() -> None:
    for devices in ["", "sim", "sim:", "sim:x", "sim:-1", "cpu", "cuda:", "cuda:x", "cudas", "cuda:0,,1"]:
        with pytest.raises(tandem.InvalidError, match="expected .sim:4."):
            tandem.World(devices)
    for devices in ["sim:0", "sim:33"]:
        with pytest.raises(tandem.InvalidError, match="a team has 1 to 32"):
            tandem.World(devices)
    with pytest.raises(tandem.InvalidError, match="pretend PEs have no streams"):
        tandem.World("sim:2", streams=[1, 2])
    for timeout in [-1.0, float("nan"), float("inf")]:
        with pytest.raises(ValueError, match="expected seconds"):
            tandem.World("sim:1", timeout=timeout)
    with pytest.raises(tandem.InvalidError, match="the topology has 4 GPUs, the team 5 PEs"):
        world = tandem.World("sim:5", topology=tandem.Topology.preset("dgx1-v100-4"))
        world.all_reduce(world.zeros(1, "int64"))
    if tandem.built_with()["nvcc"] is None:
        with pytest.raises(tandem.DeviceError, match="built without CUDA"):
            tandem.World("cuda:0")


def test_pretend_pes_have_no_streams(four: tandem.World) -> None:
    with pytest.raises(tandem.InvalidError, match=r"PE 2 \(sim:2\) is a pretend PE"):
        four[2].on(0)
    with pytest.raises(TypeError, match="str is no stream"):
        four[2].on("fast")
    part = four.zeros(1).on(2)
    with pytest.raises(AttributeError, match=r"PE 2 \(sim:2\)"):
        part.__cuda_array_interface__
    for wrong in [{"copy": True}, {"dl_device": (2, 0)}, {"stream": 1}]:
        with pytest.raises(BufferError, match=r"PE 2 \(sim:2\)"):
            part.__dlpack__(**wrong)  # type: ignore[arg-type]
    assert not hasattr(part, "__cuda_array_interface__") and hasattr(part, "__array_interface__")


def test_one_pe_without_memory_is_named() -> None:
    with tandem.World("sim:3", memory={1: 1 << 20}) as world:
        kept = world.zeros(1000)
        with pytest.raises(tandem.OutOfMemoryError, match=r"PE 1 \(sim:1\)") as caught:
            world.zeros(4 << 20, "uint8")
        assert (caught.value.pe, caught.value.device) == (1, "sim:1")
        assert isinstance(caught.value, MemoryError) and isinstance(caught.value, tandem.Error)
        # No PE keeps anything, and the world goes on.
        assert world.heap_bytes[1] < 1 << 20
        world.all_reduce(kept, wait=True)
    with pytest.raises(tandem.OutOfMemoryError, match=r"PE 1 \(sim:1\)"):
        tandem.World("sim:3", memory={1: 1 << 20}, initial=4 << 20)
    with tandem.World("sim:1", window=1 << 20) as world:
        with pytest.raises(tandem.InvalidError, match="Options::window"):
            world.zeros(4 << 20, "uint8")


@pytest.mark.parametrize("how", ["queue", "host", "barrier"])
def test_a_wait_in_vain_names_both_pes(how: str) -> None:
    world = tandem.World("sim:3", timeout=0.3)
    word = world.zeros((), "uint64")
    begun = time.monotonic()
    with pytest.raises(tandem.FaultError, match="waited in vain") as caught:
        if how == "queue":
            world[1].wait(word, "==", 5, source=2)
        elif how == "host":
            world.wait_until(1, word, "==", 5, source=2)
        else:
            world[0].barrier()
            world[1].barrier()
        world.synchronize()
    assert time.monotonic() - begun < 5
    fault = caught.value
    assert fault.kind == ("barrier" if how == "barrier" else "wait") and fault.peer == 2
    assert "sim:2" in str(fault) and f"sim:{fault.pe}" in str(fault) and fault.place
    # The team is unusable, and says so each time; another world works, and this one can be closed.
    for use in [lambda: world.zeros(1), lambda: word.read(0), lambda: world.check(), lambda: world[0].put(word, word, 1)]:
        with pytest.raises(tandem.FaultError):
            use()
    world.close()
    with tandem.World("sim:3") as other:
        other.barrier()


def test_arrays_of_another_world_are_refused(four: tandem.World) -> None:
    with tandem.World("sim:4") as other:
        mine, theirs = four.zeros(3), other.zeros(3)
        with pytest.raises(tandem.InvalidError, match="another world"):
            four[0].put(mine, theirs, 1)
        with pytest.raises(tandem.InvalidError, match="another world"):
            four.all_reduce(theirs)


def test_a_panic_is_an_exception(four: tandem.World) -> None:
    """What is a mistake of the library's does not end the process: Python sees an exception, and goes on."""
    panic = getattr(_fabric, "_panic", None)
    if panic is None:
        pytest.skip("a release build")
    with pytest.raises(BaseException, match="asked to") as caught:
        panic()
    assert caught.type.__name__ == "PanicException"
    four.all_reduce(four.zeros(5, "int64"), wait=True)


def test_the_texts_show_no_elements(four: tandem.World) -> None:
    secret = 123456789
    array = four.zeros(4, "int64")
    array.write(0, np.full(4, secret))
    texts = [repr(four), repr(four[0]), repr(array), repr(array.on(0)), repr(four.global_array(3)), repr(four.global_array(3).on(0))]
    assert not any(str(secret) in text for text in texts)


def test_everything_public_says_what_it_is() -> None:
    """Classes and functions have a text for `help`; special methods have Python's."""
    for name in tandem.__all__:
        thing = getattr(tandem, name)
        assert (thing.__doc__ or "").strip(), name
        for member, value in vars(thing).items() if isinstance(thing, type) else []:
            if not member.startswith("_") and (callable(value) or type(value).__name__ in ["getset_descriptor", "property"]):
                assert (getattr(value, "__doc__", None) or "").strip(), f"{name}.{member}"
