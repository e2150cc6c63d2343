"""Where a model's loss is in what it returns."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from conformkit.conformance.assertions.checks import NotApplicable
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence import own_loss

LOGITS = np.zeros((2, 6, 7))


class Losing:
    """A call with targets that returns these results, by place; a place that it has not is no output."""

    def __init__(self, results: dict[Any, Any], declared: Any = None) -> None:
        self.results = results
        self.call_arguments = SimpleNamespace(config=SimpleNamespace(loss_output=declared), targets="labels")
        self.instance = SimpleNamespace(sizes={"vocab_size": 7})

    def requires(self, what: str) -> None:
        assert what == "targets"

    def result(self, ids: np.ndarray, place: Any, *, targets: np.ndarray) -> np.ndarray:
        assert ids.shape == targets.shape
        if place not in self.results:
            raise ImplementationFailure("output", "KeyError", f"nothing at {place}")
        return np.asarray(self.results[place])


class Scored(Losing):
    """A call whose logits are drawn and whose loss is their mean cross-entropy, and what `more` adds."""

    def __init__(self, more: Callable[[np.ndarray, np.ndarray], float]) -> None:
        super().__init__({})
        self.more, self.logits = more, np.random.default_rng(0).normal(size=(2, 6, 7))

    def __call__(self, ids: np.ndarray, *, targets: np.ndarray | None = None) -> np.ndarray:
        return self.logits

    def result(self, ids: np.ndarray, place: Any, *, targets: np.ndarray) -> np.ndarray:
        logits = self.logits[: len(ids)]
        chosen = np.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
        return np.asarray(np.mean(np.log(np.exp(logits).sum(-1)) - chosen) + self.more(logits, targets))


@pytest.mark.parametrize(
    ("more", "rows", "wanted"),
    [
        (lambda logits, _: float((logits.mean((0, 1)) ** 2).sum()), slice(None), True),
        (lambda logits, _: float((logits.mean((0, 1)) ** 2).sum()), slice(0, 1), True),
        (lambda logits, _: -float(np.log(np.exp(logits).sum(-1)).mean()), slice(None), False),
        (lambda _, targets: 0.01 * float((targets**2).mean()), slice(None), False),
        (lambda *_: 0.0, slice(None), False),
    ],
    ids=["balance", "balance of a row", "no normalizer", "by targets", "nothing"],
)
def test_what_is_added_to_the_loss_is_the_same_for_all_targets(
    more: Callable[[np.ndarray, np.ndarray], float], rows: slice, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would break if a normalizer that is missing, or a weight by target, were taken for a term of its own."""
    path = Scored(more)
    losing = found(path, monkeypatch)
    added = losing.added(Draw(1, "loss"), 0, rows)
    assert added == pytest.approx(more(path.logits[rows], losing.targets[rows]) if wanted else 0.0)


def found(path: Losing, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(own_loss, "built", lambda *_: path)
    monkeypatch.setattr(own_loss, "batch", lambda _: 2)
    return own_loss.losing(SimpleNamespace(half=False), Draw(0, "loss"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("results", "declared", "place"),
    [
        ({"loss": 2.0, 0: LOGITS}, None, "loss"),
        ({0: LOGITS, 1: 2.0}, None, 1),
        ({0: [2.0], 1: LOGITS}, None, 0),
        ({0: 2.0, 1: 3.0, "nll": 4.0}, "nll", "nll"),
    ],
    ids=["by-name", "second", "first", "declared"],
)
def test_the_loss_is_the_single_number(
    results: dict[Any, Any], declared: Any, place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would break if a model that returns a loss counted as one that returns none: no clause would judge it."""
    losing = found(Losing(results, declared), monkeypatch)
    assert losing.place == place
    assert losing(losing.targets) == np.asarray(results[place]).item()
    assert (losing.targets >= 0).all()
    assert losing.targets[0, 2] == 0


def test_where_no_number_is_returned_nothing_is_judged_and_the_reason_says_where_to_declare_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(NotApplicable, match=r"its call takes labels, and returns no single number; conform\.toml"):
        found(Losing({0: LOGITS}), monkeypatch)


def test_a_loss_may_come_without_logits() -> None:
    """Would break if a model that returns its loss alone were red for the logits that it does not return."""
    path = SimpleNamespace(result=lambda _ids, _place, **_: np.array(2.5), in_rows=lambda found, _ids: found)
    alone: Any = SimpleNamespace(place=0, ids=np.zeros((3, 6), np.int64), vocab_size=17, path=path)
    with pytest.raises(NotApplicable, match="its loss alone"):
        own_loss.LosingText.logits_beside(alone, alone.ids)
