"""A component's list of parameters is bounded before the harness draws, names or compares anything with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.subject.parameters import check_parameters, check_same_extent, readable


def parameter(name: str = "w", shape: tuple[int, ...] | None = (2, 3), *, trainable: bool = True) -> dict[str, Any]:
    return {"name": name, "shape": None if shape is None else list(shape), "trainable": trainable}


@pytest.mark.parametrize(
    "listing",
    [
        [parameter(shape=(10**5, 10**6))],
        [parameter(shape=(10**30,))],
        [parameter(f"w{n}", (4096, 4096)) for n in range(2)],
        [parameter("1a" * 200)],
        [parameter(f"w{n}") for n in range(5000)],
    ],
    ids=["expanded", "beyond-int64", "together", "long-name", "many"],
)
def test_a_listing_that_no_component_of_these_sizes_has_is_a_failure(listing: list[dict[str, Any]]) -> None:
    with pytest.raises(ClauseFailure):
        check_parameters(listing)


def test_large_untrained_tables_and_unknown_shapes_are_accepted() -> None:
    check_parameters([parameter("mask", (1 << 13, 1 << 13), trainable=False), parameter("lazy", None), parameter()])


def test_a_parameter_that_was_listed_and_not_read_is_named() -> None:
    readable([parameter("a")], {"a": np.zeros(2)})
    with pytest.raises(ClauseFailure, match="its parameter b cannot be read"):
        readable([parameter("a"), parameter("b")], {"a": np.zeros(2)})


def test_a_gradient_has_the_extents_of_what_it_belongs_to() -> None:
    check_same_extent("the gradient of x", np.zeros((2, 3)), [2, 3])
    with pytest.raises(ClauseFailure, match=r"the gradient of x has shape \(3, 2\), expected \(2, 3\)"):
        check_same_extent("the gradient of x", np.zeros((3, 2)), (2, 3))
