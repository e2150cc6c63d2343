"""The worker's `observe`: every operation of a call with its numbers, in a form that the harness checks."""

import copy

import numpy as np
import pytest

from conformkit.conformance.driver.client.interface import Reply
from conformkit.conformance.driver.client.replies import check_reply
from conformkit.conformance.driver.errors import ImplementationFailure, ProtocolError
from conformkit.conformance.driver.worker import steps
from conformkit.conformance.driver.worker.steps import CallSteps

MODULES = """
    import torch
    from torch import nn

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.map = nn.Linear(3, 2)
            self.register_buffer("shift", torch.ones(2))
        def forward(self, x):
            return self.map(x) + self.shift

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()
        def forward(self, x):
            y = self.inner(x)
            y.mul_(2.0)
            half = y[:, :1]
            half.fill_(7.0)
            return y - 1.0

    class Endless(nn.Module):
        def forward(self, x):
            for _ in range(5000):
                x = x + 1.0
            return x
"""
X = np.arange(6.0).reshape(2, 3)


def observed(session, path):
    handle = session.request({"op": "build", "path": f"mypkg:{path}", "dtype": "float64"}).header["handle"]
    header = {"op": "observe", "handle": handle, "args": [{"$tensor": "x"}]}
    return session.request(header, {"x": X})


def test_a_call_is_followed_from_its_input_and_parameters_to_the_result(inside):
    """Catches operations, names or parts that are lost on the way."""
    reply = observed(inside(MODULES), "Outer")
    values = reply.header["values"]
    assert [v["name"] for v in values if v["op"] == "input"] == ["x"]
    assert {"inner.map.weight", "inner.map.bias"} <= {v["name"] for v in values if v["op"] == "parameter"}
    assert [v["name"] for v in values if v["op"] == "buffer"] == ["inner.shift"]
    assert next(v for v in values if v["op"] == "addmm")["part"] == "inner.map"
    assert not reply.header["cut"]


def test_numbers_are_those_of_each_value_and_the_place_is_that_of_the_result(inside):
    """Catches numbers in another order than the values, and what was written in place or through a view."""
    reply = observed(inside(MODULES), "Outer")
    values, numbers = reply.header["values"], reply.tensors["numbers"]
    ends = np.cumsum([int(np.prod(v["shape"])) for v in values])
    place = reply.header["place"]
    own = numbers[ends[place] - reply.tensors["out"].size : ends[place]].reshape(reply.tensors["out"].shape)
    assert len(numbers) == ends[-1]
    assert np.array_equal(own, reply.tensors["out"])
    written = next(v for v in values if v["op"] == "written")  # y, of which a view was filled
    assert any(values[g]["op"] == "fill" for g in written["given"])


def test_a_long_call_is_cut_not_sent_whole(inside):
    """Catches a record without a bound: a reply that grows with what the implementation does."""
    reply = observed(inside(MODULES), "Endless")
    assert reply.header["cut"]
    assert reply.header["place"] is None
    assert len(reply.header["values"]) <= 4000


def test_numbers_are_bounded(monkeypatch):
    """Catches one value that is larger than everything that may be sent."""
    monkeypatch.setattr(steps, "_MOST_NUMBERS", 10)
    record = CallSteps()
    assert record.add("relu", [], np.zeros(8)) == 0
    assert record.add("relu", [0], np.zeros(8)) is None
    assert record.cut
    assert record.numbers().size == 8


def test_arrays_of_numpy_cannot_be_followed(inside):
    """Catches an empty record where there is none at all."""
    with pytest.raises(ImplementationFailure, match="can't be followed"):
        observed(inside("class Outer:\n    def __call__(self, x):\n        return x\n", "numpy"), "Outer")


VALUE = {"op": "add", "given": [], "shape": [2], "part": "", "name": "", "scalars": [1.0]}
HEADER = {"seq": 1, "ok": True, "values": [VALUE, VALUE | {"given": [0]}], "place": 1, "cut": False}
ARRAYS = {"out": None, "numbers": None}


def test_the_form_of_a_record_is_accepted():
    check_reply({"op": "observe"}, 1, Reply(HEADER, ARRAYS))


@pytest.mark.parametrize(
    "spoil",
    [
        {"given": [1]}, {"given": [2]}, {"given": [-1]}, {"given": [True]}, {"given": [0] * 65}, {"given": None},
        {"shape": [-1]}, {"shape": [1 << 40]}, {"shape": [1 << 11, 1 << 11]}, {"shape": [1] * 13}, {"shape": "22"},
        {"op": 3}, {"name": "x" * 500}, {"scalars": ["1"]}, {"scalars": [10**40]}, {"scalars": [0] * 9},
    ],
    ids=[
        "of-itself", "of-a-later-one", "before-the-first", "a-flag", "many-operands", "no-operands",
        "negative-extent", "long", "many-numbers", "many-axes", "shape-of-text",
        "operation-is-a-number", "long-name", "scalar-of-text", "large-scalar", "many-scalars",
    ],
)  # fmt: skip
def test_a_record_that_is_no_record_ends_its_worker(spoil):
    """Catches circles, places outside the record, and extents that would fill the memory."""
    header = copy.deepcopy(HEADER)
    header["values"][1] |= spoil
    with pytest.raises(ProtocolError, match="no proper values"):
        check_reply({"op": "observe"}, 1, Reply(header, ARRAYS))


@pytest.mark.parametrize(
    ("spoil", "arrays", "told"),
    [
        ({"values": [VALUE] * 4001}, ARRAYS, "no proper values"),
        ({"values": {}}, ARRAYS, "no proper values"),
        ({"place": -1}, ARRAYS, "no proper place"),
        ({"place": 1.0}, ARRAYS, "no proper place"),
        ({"cut": None}, ARRAYS, "no proper cut"),
        ({}, {"out": None}, "no arrays"),
        ({}, {"numbers": None}, "no arrays"),
    ],
    ids=["many", "no-list", "place-below", "place-between", "cut", "no-numbers", "no-result"],
)
def test_a_reply_without_its_parts_ends_its_worker(spoil, arrays, told):
    with pytest.raises(ProtocolError, match=told):
        check_reply({"op": "observe"}, 1, Reply({**HEADER, **spoil}, arrays))
