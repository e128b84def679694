"""Worlds of several processes: each test starts members.py once for each process."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Iterator

import numpy as np
import pytest
from shared import KIND

import tandem

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"
pytestmark = pytest.mark.skipif(KIND != "sim", reason="several processes share pretend PEs")


class Cast:
    """The processes of a world, by rank."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, command: list[str], count: int) -> Cast:
        place = tandem.Meeting.unique()
        for rank in range(count):
            env = {**os.environ, "TANDEM_RANK": str(rank), "TANDEM_SIZE": str(count), "TANDEM_MEET": place}
            out = subprocess.PIPE
            self.processes.append(subprocess.Popen(command, env=env, stdout=out, stderr=out, stdin=subprocess.DEVNULL, text=True))
        return self

    def play(self, scene: str, pes: str, count: int | None = None) -> Cast:
        seed = str(np.random.default_rng().integers(2**31))
        return self.start([sys.executable, str(HERE / "members.py"), scene, seed, pes], count or len(pes.split(",")))

    def end(self, expected: dict[int, int] = {}) -> list[str]:
        """What they print, when all have ended as expected: with status 0, unless `expected` says otherwise."""
        ends = [process.communicate(timeout=240) for process in self.processes]
        wrong = [
            f"process {rank}: status {process.returncode}\n{out}{err}"
            for rank, (process, (out, err)) in enumerate(zip(self.processes, ends))
            if process.returncode != expected.get(rank, 0)
        ]
        assert not wrong, "\n".join(wrong)
        return [out for out, _ in ends]


@pytest.fixture
def cast() -> Iterator[Cast]:
    cast = Cast()
    yield cast
    for process in cast.processes:
        process.kill()
        process.wait()


@pytest.mark.parametrize("pes", ["1", "3", "1,1", "2,1", "1,2,1", "1,1,1,1,1,1,1,1"])
def test_a_world_is_that_of_one_process(cast: Cast, pes: str) -> None:
    cast.play("suite", pes).end()


@pytest.mark.parametrize(("scene", "status"), [("killed", -signal.SIGKILL), ("exits", 3), ("fails", 0), ("closes", 0), ("late", 0)])
def test_what_becomes_of_the_others(cast: Cast, scene: str, status: int) -> None:
    cast.play(scene, "1,1,1").end({1: status})


@pytest.mark.parametrize("scene", ["other_call", "other_window"])
def test_processes_that_differ_are_named(cast: Cast, scene: str) -> None:
    cast.play(scene, "1,1").end()


def test_a_process_that_does_not_come_is_named(tmp_path: Path) -> None:
    meeting = tandem.Meeting(str(tmp_path / "place"), 0, 2, within=0.3)
    with pytest.raises(tandem.ProcessError, match="process 0 waited .* in vain for process 1 at .*place; 2 must be started there"):
        tandem.World("sim:1", meeting=meeting)


def test_meetings_that_cannot_be() -> None:
    for place, rank, size in [("/tmp/x", 2, 2), ("/tmp/x", 0, 33), ("here", 0, 1), ("tcp:localhost", 0, 1)]:
        with pytest.raises(tandem.ProcessError):
            tandem.Meeting(place, rank, size)
    with pytest.raises(ValueError, match="within"):
        tandem.Meeting("/tmp/x", 0, 1, within=-1.0)
    meeting = tandem.Meeting(tandem.Meeting.unique(), 0, 1)
    with pytest.raises(tandem.InvalidError, match="several processes share pretend PEs"):
        tandem.World("cuda:0", meeting=meeting)
    with tandem.World("sim:2", meeting=meeting) as world:
        assert world.local == [0, 1] and world.process_of(1) == world.process_of(0) is not None
        assert repr(world.process_of(0)) == f"<tandem.Process 0, pid {os.getpid()}>"


def run(count: int, *command: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "tandem", "run", "-n", str(count), *command]
    return subprocess.run(words, capture_output=True, text=True, timeout=240)


@pytest.mark.parametrize(("name", "count", "line"), [("shift", 3, "3 PEs"), ("stencil", 4, "4 PEs, 50 steps of 130 rows")])
def test_the_examples_run_over_processes(name: str, count: int, line: str) -> None:
    done = run(count, sys.executable, str(EXAMPLES / f"{name}.py"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"[0] sim:1: {line}" in done.stdout
    assert all(text.startswith("[0] ") for text in done.stdout.splitlines())


MPI = {"mpirun.openmpi": ["--allow-run-as-root", "--oversubscribe"], "mpirun.mpich": []}


@pytest.mark.parametrize("name", MPI)
def test_mpi_starts_them(name: str) -> None:
    """By Debian's names of both. Open MPI names its job, so that no place need be named."""
    if shutil.which(name) is None:
        pytest.skip(f"no {name}")
    place = {"TANDEM_MEET": tandem.Meeting.unique()} if name == "mpirun.mpich" else {}
    words = [name, *MPI[name], "-n", "3", sys.executable, str(EXAMPLES / "shift.py")]
    done = subprocess.run(words, env={**os.environ, **place}, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("sim:1: 3 PEs") == 1


def test_run_ends_all_when_one_fails() -> None:
    begun = time.monotonic()
    done = run(3, sys.executable, str(HERE / "members.py"), "one_fails", "0", "1,1,1")
    assert done.returncode == 7, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == [f"[{rank}] process {rank}" for rank in range(3)]
    assert "process 1 (pid " in done.stderr and "the others were ended" in done.stderr
    assert time.monotonic() - begun < 45
    for wrong in [(0, "true"), (33, "true"), (2, "no-such-program-here"), (2,)]:
        failed = run(*wrong)  # type: ignore[arg-type]
        assert failed.returncode == 1 and failed.stderr.startswith("python -m tandem run: "), failed.stderr


def test_a_signal_to_run_ends_all(cast: Cast) -> None:
    words = [sys.executable, "-m", "tandem", "run", "-n", "2", "sh", "-c", "echo there; sleep 200"]
    for number, status in [(signal.SIGINT, 130), (signal.SIGTERM, 130)]:
        # Whoever started the tests may have Ctrl-C ignored.
        heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, preexec_fn=heard)
        cast.processes.append(process)
        assert process.stdout is not None
        lines = {process.stdout.readline() for _ in range(2)}
        assert lines == {"[0] there\n", "[1] there\n"}
        begun = time.monotonic()
        process.send_signal(number)
        assert process.wait(60) == status and time.monotonic() - begun < 20
        process.stdout.close()
