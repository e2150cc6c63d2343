"""What looks like a mistake in right code, and is none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from conformkit.conformance.assertions.checks import NotApplicable
from conformkit.conformance.suite import test_behaviour, test_devices


@pytest.mark.parametrize(
    ("noise", "varies"), [(0.0, False), (1e-15, False), (0.5, True)], ids=["same", "rounded-otherwise", "dropped"]
)
def test_sums_made_elsewhere_in_memory_are_no_dropout(noise: float, varies: bool) -> None:
    """Would break if a last digit, which depends on where an array lies, counted as a number that was dropped."""

    def call(x: np.ndarray, *, mode: str, seed: int) -> np.ndarray:
        assert mode == "train"
        return x + noise * seed

    assert test_behaviour._varies(call, (np.ones(3),)) is varies  # type: ignore[arg-type]


def test_a_function_that_is_given_its_weights_is_not_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Would break if functions over dictionaries, of which nothing can be moved, were red for where they make masks."""
    made: Any = [SimpleNamespace(bound=SimpleNamespace(config=SimpleNamespace(parameters=p))) for p in (None, "params")]
    monkeypatch.setattr(test_devices, "movable", iter)
    assert list(test_devices._of_objects(made)) == made[:1]
    with pytest.raises(NotApplicable, match="given their weights"):
        list(test_devices._of_objects(made[1:]))
