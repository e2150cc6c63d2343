"""The number of parameters, and which of them have no counterpart."""

import re
from types import SimpleNamespace

import pytest

from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.evidence.counting import check_count, unmatched

OURS = [("q.weight", (12, 12)), ("up.weight", (20, 12)), ("norm.weight", (12,)), ("norm.bias", (12,))]


@pytest.mark.parametrize(
    ("theirs", "left"),
    [
        ([("wq", (12, 12)), ("fc", (12, 20)), ("g", (1, 12)), ("b", (12,))], ([], [])),
        ([("wq", (12, 12)), ("fc", (12, 20))], ([], ["norm.weight", "norm.bias"])),
        ([("wq", (12, 12)), ("fc", (12, 20)), ("g", (12,)), ("b", (12,)), ("pe", (9, 12))], (["pe"], [])),
        ([("qkv", (12, 36)), ("fc", (12, 20)), ("g", (12,)), ("b", (12,))], (["qkv"], ["q.weight"])),
    ],
    ids=["transposed", "no-norm", "a-table", "fused"],
)
def test_arrays_of_the_same_extents_are_paired(theirs, left):
    """Would break if layouts counted, or if all arrays were listed where one is too many."""
    assert tuple([name for name, _ in side] for side in unmatched(theirs, OURS)) == left


def test_what_is_missing_is_named_with_its_shape():
    ours = {name: SimpleNamespace(shape=shape) for name, shape in OURS}
    theirs = [{"name": "wq", "shape": [12, 12]}, {"name": "fc", "shape": [12, 20]}]
    subject = SimpleNamespace(bound=SimpleNamespace(adapters=()))
    instance = SimpleNamespace(subject=subject, canonical=ours, counted=theirs, count=lambda: 384)
    with pytest.raises(ClauseFailure, match=re.escape("it has 384 trainable numbers, expected 408: -24")) as failure:
        check_count(instance)
    told = " ".join(map(str, failure.value.details))
    assert "counterpart of its shape: none" in told
    assert "counterpart of its shape: norm.weight (12,), norm.bias (12,)" in told
    assert "wq" not in told
