"""Runs the kernels on pretend PEs, in numba's simulator."""

from __future__ import annotations

import warnings

import numpy as np
from kernels import number, reverse

import tandem

warnings.simplefilter("ignore")

for pes in [1, 2, 3, 8]:
    for distribution in ["block", "cyclic", 5]:
        for size in [1, 2, 7, 50]:
            with tandem.World(f"sim:{pes}") as world:
                a = world.global_array(size, "float32", distribution)  # type: ignore[arg-type]
                b = world.global_array(size, "float32", "cyclic")
                data = np.random.default_rng().standard_normal(size).astype("float32")
                a[:] = data
                pe = size % pes
                reverse[(size + 15) // 16, 16](b.on(pe), a.on(pe))
                np.testing.assert_array_equal(b[:], 2 * data[::-1])
                for me in range(pes):
                    number[size // 16 + 1, 16](a.on(me))
                owners = np.array([a.owner(i)[0] for i in range(size)])
                np.testing.assert_array_equal(a[:], np.arange(size) + 1000 * owners)
with tandem.World("sim:2") as world:
    view = world.global_array(4, "float32").on(1)
    for index in [-1, 4]:
        try:
            view[index]
        except IndexError as error:
            assert "PE 1" in str(error)
        else:
            raise AssertionError("read past the end")
    del view
print("ok")
