"""What tests of errata share: the comparison of a printed number with a recomputed one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from conformkit.spec.errata import Value, errata

Printed = Callable[[Mapping[str, Any]], None]


def differences(name: str, printed: Value, found: Any) -> Iterator[str]:
    """Say where a result differs from the printed value in the printed digits; whole numbers are exact."""
    if isinstance(printed, tuple):
        rows = list(found)
        if len(rows) != len(printed):
            yield f"{name} has {len(rows)} entries, {len(printed)} are printed"
            return
        for n, (want, row) in enumerate(zip(printed, rows, strict=True)):
            yield from differences(f"{name}[{n}]", want, row)
    elif isinstance(printed, str) or isinstance(found, str):
        if printed != found:
            yield f"{name} is {found}, printed {printed}"
    elif not same_number(printed, found):
        yield f"{name} is {found}, printed {printed}"


def same_number(printed: Decimal, found: Any) -> bool:
    number = found if isinstance(found, Decimal) else Decimal(repr(np.asarray(found).item()))
    if printed.is_nan() or number.is_nan():
        return printed.is_nan() and number.is_nan()
    exponent = printed.as_tuple().exponent
    assert isinstance(exponent, int)
    half_a_digit = Decimal(5).scaleb(exponent - 1) * Decimal("1.000001")
    return abs(number - printed) <= (half_a_digit if exponent else Decimal("1e-9"))


@pytest.fixture
def printed(request: pytest.FixtureRequest) -> Iterator[Printed]:
    """Compare results by name with what the erratum prints; the test's name contains its number."""
    match = re.match(r"test_err_(\d+)_", request.node.name)
    assert match, "a test that recomputes an erratum is called test_err_07_…"
    point = errata()[f"ERR-{match[1]}"]
    compared = []

    def compare(results: Mapping[str, Any]) -> None:
        compared.append(point.id)
        assert set(results) == set(point.recomputed), f"{point.id} prints other names"
        wrong = [text for name, value in point.recomputed.items() for text in differences(name, value, results[name])]
        assert wrong == []

    yield compare
    assert compared == [point.id], "the test compares once"


@pytest.fixture
def off() -> Callable[[Value, Any], list[str]]:
    """Say where a result is off a printed value, for the test of this comparison."""
    return lambda value, found: list(differences("x", value, found))


@pytest.fixture
def outcome() -> Callable[[Callable[[], Any]], str]:
    """Name the exception that a call raises, or say that it returns."""

    def name(call: Callable[[], Any]) -> str:
        try:
            call()
        except Exception as error:  # noqa: BLE001 — which one is the question
            return type(error).__name__
        return "returns"

    return name


@pytest.fixture
def differ() -> Callable[..., None]:
    """Check that a claim is wrong: somewhere it is off by more than a margin."""

    def check(found: Any, claimed: Any, by: float = 1e-3) -> None:
        assert np.abs(np.asarray(found, np.float64) - np.asarray(claimed, np.float64)).max() > by

    return check
