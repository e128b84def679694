"""Topologies and plans, and their pictures."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

import tandem


def test_every_preset_is_drawn_and_comes_back_from_json() -> None:
    assert len(tandem.Topology.presets()) > 5
    for name, what in tandem.Topology.presets():
        topology = tandem.Topology.preset(name)
        assert topology.name == name and what and topology.gpus and topology.links
        assert tandem.Topology.read(topology.to_json()) == topology
        assert ElementTree.fromstring(topology._repr_svg_()).tag.endswith("svg")
        assert topology.gpus[0] in str(topology) and repr(len(topology.gpus)) in repr(topology)


def test_a_plan_is_the_one_of_the_guide() -> None:
    dgx = tandem.Topology.preset("dgx1-v100")
    plan = dgx.plan("broadcast", [0, 1], [2, 3])
    assert (plan.rate, plan.bound, plan.without_helpers, plan.is_best) == (80.0, 80.0, 20.0, True)
    assert dgx.plan("broadcast", [0, 1], [2, 3, 4, 5, 6, 7]).rate == 120.0
    assert dgx.plan("broadcast", [0, 1]).without_helpers is None
    assert len(json.loads(plan.to_json())) > 3 and "4 trees from their roots" in str(plan)
    svg = ElementTree.fromstring(plan._repr_svg_())
    assert svg.tag.endswith("svg") and len(list(svg.iter())) > 50
    # What goes out of a GPU comes in from no more than all its links.
    operations: list[Any] = ["all-reduce", "all-gather", "reduce-scatter", "all-to-all"]
    for operation in operations:
        plan = dgx.plan(operation, list(range(8)))
        assert 0 < plan.rate <= plan.bound


def test_a_ring_is_planned_by_hand() -> None:
    """Against what can be counted: five GPUs in a ring of NVLinks, which data passes one way round or both."""
    ring = tandem.Topology.preset("ring5")
    rates = {link[3] for link in ring.links if link[2] == "nvlink"}
    assert len(rates) == 1
    rate = rates.pop()
    assert ring.plan("send", [0, 1]).rate == pytest.approx(rate)
    assert ring.plan("send", [0, 1], [2, 3, 4]).rate == pytest.approx(2 * rate)


def test_what_is_wrong_is_named() -> None:
    dgx = tandem.Topology.preset("dgx1-v100")
    cases: list[tuple[Any, str]] = [
        (lambda: tandem.Topology.preset("dgx9"), "dgx9"),
        (lambda: tandem.Topology.read("{"), "line 1"),
        (lambda: tandem.Topology.read("nothing"), "expected our JSON"),
        (lambda: dgx.plan("scan", [0, 1]), "expected one of broadcast"),  # type: ignore[arg-type]
        (lambda: dgx.plan("broadcast", [0]), "at least 2 GPUs"),
        (lambda: dgx.plan("broadcast", [0, 8]), "no GPU 8"),
        (lambda: dgx.plan("broadcast", [0, 1], [1]), "in the job"),
        (lambda: dgx.plan("broadcast", [0, 1], root=2), "not in the job"),
        (lambda: dgx.plan("broadcast", [0, 1], max_seconds=-1), "max_seconds"),
    ]
    for use, text in cases:
        with pytest.raises(tandem.InvalidError, match=text):
            use()
    if tandem.built_with()["nvcc"] is None:
        with pytest.raises(tandem.DeviceError, match="built without CUDA"):
            tandem.Topology.here()
