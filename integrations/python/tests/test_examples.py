"""The examples and the guide are run."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from shared import KIND, devices

import tandem

HERE = Path(__file__).parent
GUIDE = HERE.parents[2] / "docs" / "guides" / "python.md"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, HERE.parent / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("pes", [1, 2, 4, 7])
def test_shift(pes: int) -> None:
    with tandem.World(devices(pes)) as world:
        assert example("shift").shift(world, 1001, 3) > 0
        if pes > 1:
            assert example("shift").ping_pong(world, 20) > 0


@pytest.mark.parametrize("pes", [1, 2, 3, 8])
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_stencil(pes: int, rows: int, rng: np.random.Generator) -> None:
    stencil = example("stencil")
    with tandem.World(devices(pes)) as world:
        for steps in [0, 1, 7]:
            field = rng.standard_normal((2 + pes * rows, 9)).astype("float32")
            whole = [field.copy(), field.copy()]
            for number in range(1, steps + 1):
                stencil.step(whole[number % 2], whole[(number - 1) % 2])
            found = stencil.stencil(world, field, steps)
            np.testing.assert_allclose(found, whole[steps % 2], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["shift", "stencil"])
def test_programs_run(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", [name, devices(3)])
    example(name).main()
    assert "3 PEs" in capsys.readouterr().out


@pytest.mark.skipif(KIND != "sim", reason="the guide opens pretend PEs")
@pytest.mark.skipif(find_spec("numba") is None or find_spec("triton") is None, reason="needs numba and Triton")
def test_every_snippet_of_the_guide_runs(tmp_path: Path) -> None:
    """In order, as one program, in the simulators of numba and Triton; it prints what it says."""
    text = GUIDE.read_text()
    blocks = re.findall(r"^```(\w+)[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert text.count("```") == 2 * len(blocks)
    assert {kind for kind, _ in blocks} <= {"python", "sh", "text"}
    programs = [code for kind, code in blocks if kind == "python"]
    assert len(programs) > 6
    program = tmp_path / "guide.py"
    program.write_text("\n".join(programs))
    env = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, str(program)], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == re.findall(r"^ *print\(.*#: (.*)$", program.read_text(), re.MULTILINE)
