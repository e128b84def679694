"""Worlds for the tests."""

from __future__ import annotations

from typing import Iterator

import numpy as np
import pytest
from shared import devices

import tandem


@pytest.fixture(params=[1, 2, 3, 5, 8])
def world(request: pytest.FixtureRequest) -> Iterator[tandem.World]:
    """A world."""
    world = tandem.World(devices(request.param))
    yield world
    if not world.closed:
        world.close()


@pytest.fixture
def four() -> Iterator[tandem.World]:
    """A world of four PEs."""
    world = tandem.World(devices(4))
    yield world
    if not world.closed:
        world.close()


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers; the seed is in the message of a test that fails."""
    seed = np.random.SeedSequence().entropy
    print(f"seed {seed}")
    return np.random.default_rng(seed)
