"""Global arrays in kernels of numba-cuda: run in its simulator on pretend PEs, and compiled to PTX as for a GPU."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from shared import KIND

pytestmark = pytest.mark.skipif(find_spec("numba") is None or KIND != "sim", reason="no numba, or no pretend PEs")
HERE = Path(__file__).parent


def run(script: str, simulated: bool) -> str:
    """numba reads its variable when it is imported, so each way has a process of its own."""
    env = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1" if simulated else "0"}
    done = subprocess.run([sys.executable, str(HERE / script)], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_kernels_in_the_simulator() -> None:
    assert run("numba_kernels.py", simulated=True).strip().endswith("ok")


def test_addresses_of_large_arrays() -> None:
    assert run("numba_address.py", simulated=False).strip() == "ok"


def test_kernels_compile_to_arithmetic_alone() -> None:
    ptx = run("numba_ptx.py", simulated=False)
    assert ptx.count(".visible .entry") == 2
    # Numbers in, loads and stores out: no call, no table, no division.
    for instruction in ["call", "div.u64", "div.s64", "rem.u64", "rem.s64"]:
        assert not re.search(rf"\t{re.escape(instruction)}", ptx), instruction
    assert "mul.hi.u64" in ptx and re.search(r"ld(\.global)?\.\w*32", ptx) and re.search(r"st(\.global)?\.\w*32", ptx)
    assert ptx.count(".param .u64") == 2 * 8 + 8
