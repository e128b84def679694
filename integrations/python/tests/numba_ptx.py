"""Prints the PTX of the kernels, as numba compiles them for an H100."""

from __future__ import annotations

import kernels
from numba import cuda
from numba.cuda import types

from tandem.numba import GlobalArrayType

array = GlobalArrayType(types.float32)
for kernel, arguments in [(kernels.reverse, (array, array)), (kernels.number, (array,))]:
    print(cuda.compile_ptx(kernel.py_func, arguments, cc=(9, 0))[0])
