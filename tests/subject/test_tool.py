"""What tools do to arrays of the kit's own is seen, and what they do not offer is not judged."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from conformkit.conformance.assertions.checks import ClauseFailure, NotApplicable
from conformkit.conformance.subject.tool import Held, Tool


class Worker:
    """Replies with arrays that a test chooses, and keeps what it was asked."""

    def __init__(self, *, is_torch=True, **arrays):
        self.is_torch, self.arrays, self.asked = is_torch, arrays, []

    def request(self, header, tensors):
        self.asked.append((header["op"], dict(tensors)))
        return SimpleNamespace(header={"handle": 7}, tensors=self.arrays)


def held(**arrays):
    worker = Worker(**arrays)
    return Held(worker, {"weight": np.zeros((2, 3)), "bias": np.zeros(3)}), worker


def test_arrays_are_read_in_float64_by_their_names():
    arrays, worker = held(weight=np.ones((2, 3), np.float32), bias=np.zeros(3, np.float32), other=np.zeros(1))
    found = arrays.values()
    assert {name: (a.dtype, a.shape) for name, a in found.items()} == {
        "weight": (np.float64, (2, 3)), "bias": (np.float64, (3,)),
    }  # fmt: skip
    assert [op for op, _ in worker.asked] == ["hold", "read"]


def test_arrays_that_are_gone_or_have_another_shape_fail():
    with pytest.raises(ClauseFailure, match="1 of 2 arrays no longer exist"):
        held(weight=np.ones((2, 3)))[0].values()
    with pytest.raises(ClauseFailure, match=r"an array of shape \(3,\) now has shape \(4,\)"):
        held(weight=np.ones((2, 3)), bias=np.ones(4))[0].values()


def test_a_gradient_that_is_not_there_is_none():
    arrays, worker = held(bias=np.ones(3))
    found = arrays.gradients()
    assert found["weight"] is None
    assert found["bias"].tolist() == [1.0, 1.0, 1.0]
    arrays.put(bias=np.full(3, 2.0))
    op, sent = worker.asked[-1]
    assert (op, sent["bias"].tolist()) == ("gradients", [2.0, 2.0, 2.0])


def tool(worker, **offers):
    bound = SimpleNamespace(tool=SimpleNamespace(name="LabelSmoothingLoss"), arrays="tensor", offers=offers)
    return Tool(bound, worker)


def test_what_it_offers_is_what_is_bound_and_gradients_are_the_framework_s():
    smooth = tool(Worker(is_torch=False), **{"label-smoothing": True, "gradients": True})
    assert smooth.offers("label-smoothing")
    assert not smooth.offers("gradients")
    assert tool(Worker()).offers("gradients")
    smooth.requires("label-smoothing")
    with pytest.raises(NotApplicable, match="LabelSmoothingLoss has no ignored ids"):
        smooth.requires("ignored ids")


def test_a_tool_in_another_worker_keeps_what_is_known_of_its_calls():
    first = tool(Worker())
    first.form, first.settled[None] = "list", "arguments"
    other = first.like(Worker())
    assert (other.form, other.settled) == ("list", {None: "arguments"})
    other.settled.clear()
    assert first.settled
