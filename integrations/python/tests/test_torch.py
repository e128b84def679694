"""PyTorch's process groups, with gloo as the oracle: each test starts torch_members.py once for each process."""

from __future__ import annotations

import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from shared import KIND

pytestmark = [
    pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch: sh scripts/pytorch.sh"),
    pytest.mark.skipif(KIND != "sim", reason="several processes share pretend PEs"),
]
MEMBERS = Path(__file__).parent / "torch_members.py"


def play(scene: str, size: int, file: Path, statuses: dict[int, int] = {}) -> None:
    """Sees that all processes end as expected: with status 0, unless `statuses` says otherwise."""
    seed = str(np.random.default_rng().integers(2**31))
    out = subprocess.PIPE
    words = [sys.executable, str(MEMBERS), scene, seed, str(file)]
    processes = [
        subprocess.Popen([*words, str(rank), str(size)], stdout=out, stderr=subprocess.STDOUT, text=True) for rank in range(size)
    ]
    try:
        ends = [process.communicate(timeout=400)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    wrong = [
        f"process {rank}, seed {seed}: status {process.returncode}\n{text}"
        for rank, (process, text) in enumerate(zip(processes, ends))
        if process.returncode != statuses.get(rank, 0)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("scene", ["reductions", "movements"])
def test_calls_do_what_gloo_does(scene: str, size: int, tmp_path: Path) -> None:
    play(scene, size, tmp_path / "store")


@pytest.mark.parametrize("scene", ["splits", "shapes", "asynchronous", "messages", "groups", "refusals", "large", "training"])
def test_scenes(scene: str, tmp_path: Path) -> None:
    play(scene, 3, tmp_path / "store")


def test_two_train_to_the_very_weights_of_gloo(tmp_path: Path) -> None:
    play("training", 2, tmp_path / "store")


def test_a_killed_process_is_named(tmp_path: Path) -> None:
    play("killed", 3, tmp_path / "store", {1: -signal.SIGKILL})
