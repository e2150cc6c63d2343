"""Names that a function looks up in its `**kwargs`, whichever way it does."""

from __future__ import annotations

from typing import Any

import pytest

from conformkit.conformance.driver.worker.inside import inside

OTHER = {"scale": 2}


def subscribed(ids: Any, **kwargs: Any) -> Any:
    return ids, kwargs["attention_mask"]


def got(ids: Any, *rest: Any, past: Any = None, **options: Any) -> Any:
    return ids, rest, past, options.get("position_ids"), options.get("use_cache", False)


def popped(ids: Any, **kwargs: Any) -> Any:
    labels = kwargs.pop("labels", None)
    return ids, labels


def asked(ids: Any, **kwargs: Any) -> Any:
    if "labels" in kwargs:
        return kwargs["labels"]
    return ids


def elsewhere(ids: Any, **kwargs: Any) -> Any:
    """Take nothing but what it hands on."""
    return ids, OTHER["scale"], OTHER.get("mask"), getattr(ids, "shape", None), dict(**kwargs), "mask" in OTHER


def none(ids: Any, kwargs: Any) -> Any:
    return ids, kwargs["attention_mask"]


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (subscribed, ["attention_mask"]),
        (got, ["position_ids", "use_cache"]),
        (popped, ["labels"]),
        (asked, ["labels"]),
        (elsewhere, []),
        (none, []),
        (None, []),
    ],
)
def test_names_inside_are_those_that_are_looked_up(function: Any, names: list[str]) -> None:
    """Would break if a mask in `**kwargs` were not seen, or a name in another dictionary taken for an argument."""
    assert inside({"": function}).get("", []) == names
