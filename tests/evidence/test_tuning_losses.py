"""Losses of preferences and policies are asked in the form in which the implementation takes and gives them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.tuning_losses import Advantages, ClippedLoss, PairLoss, mean_gains
from conformkit.spec.policy_gradients import group_advantages, policy_objective

REWARDS = np.array([[1.0, 4.0, 2.5], [0.0, 0.5, 3.0]])
RANDOM = np.random.default_rng(0)
LOGS, GAINS = RANDOM.normal(size=(2, 3, 5)), np.array([1.0, -0.5, 2.0])
MASK = np.arange(5) < np.array([[5], [2], [3]])


class Asked:
    """A tool of this function, which gets what it is asked; arrays come back as lists, as from a worker."""

    def __init__(self, function: Callable[..., Any], *offered: str) -> None:
        self.bound = SimpleNamespace(calls={})
        self.function, self.offered, self.sloped = function, offered, dict[str, Any]()

    def offers(self, name: str) -> bool:
        return name in self.offered

    def __call__(self, **given: Any) -> Any:
        found = self.function(**given)
        return found.tolist() if isinstance(found, np.ndarray) else found

    def slope(self, name: str, **given: Any) -> tuple[float, np.ndarray]:
        self.sloped = given
        return 0.0, np.full(np.shape(given[name]), 1.0 + len(self.sloped))


def refused(text: str) -> ImplementationFailure:
    return ImplementationFailure("call", "ValueError", text)


def pairs_apart(a: Any, b: Any, beta: float = 0.1) -> Any:
    return np.asarray(beta * (a - b))


@pytest.mark.parametrize("mean", [False, True])
def test_a_loss_of_pairs_is_their_mean_however_it_comes_back(mean: bool) -> None:
    """Would break if the losses of pairs were taken for the mean of one, or the other way round."""
    tool = Asked(lambda **given: float(pairs_apart(**given).mean()) if mean else pairs_apart(**given))
    given = RANDOM.normal(size=(2, 4))
    loss = PairLoss(tool, ["a", "b"])
    assert loss(given, beta=0.5) == pytest.approx(0.5 * (given[0] - given[1]).mean())
    assert loss.slopes(given[:, 0], ["b", "a"]).tolist() == [3.0, 3.0]
    assert tool.sloped["a"].shape == ()


def test_losses_of_pairs_are_as_many_as_there_are_pairs() -> None:
    with pytest.raises(ClauseFailure, match="the losses"):
        PairLoss(Asked(lambda **_: np.zeros((3, 2))), ["a", "b"])(np.zeros((2, 4)))


def of_table(rewards: np.ndarray) -> np.ndarray:
    return group_advantages(rewards)


def of_one_group(rewards: np.ndarray) -> np.ndarray:
    """Take the mean of everything that it is given."""
    return group_advantages(rewards.reshape(-1), unbiased=True).reshape(rewards.shape)


def of_one_row(rewards: np.ndarray) -> np.ndarray:
    if rewards.ndim != 1:
        raise refused("one row")
    return group_advantages(rewards)


def of_flat_ones(rewards: np.ndarray, group_size: int) -> np.ndarray:
    return group_advantages(rewards.reshape(-1, group_size)).reshape(-1)


@pytest.mark.parametrize(
    ("function", "offered", "unbiased"),
    [
        (of_table, (), False), (of_one_group, (), True), (of_one_row, (), False),
        (of_flat_ones, ("group-size",), False),
        (lambda rewards: group_advantages(rewards.reshape(-1)).reshape(rewards.shape), (), False),
    ],
    ids=["a-table", "one-group-unbiased", "one-row-only", "flat", "one-group"],
)  # fmt: skip
def test_advantages_are_asked_for_as_they_are_taken(function: Any, offered: Any, unbiased: bool) -> None:
    """Would break if one form of right code were asked in another's: each prompt has a group of its own."""
    got = Advantages(Asked(function, *offered))(REWARDS)
    assert got == pytest.approx(group_advantages(REWARDS, unbiased=unbiased))


def policy(
    *, over_answers: bool = False, each: bool = False, kind: str = "", clip: tuple[float, float] = (0.2, 0.2)
) -> Callable[..., float]:
    """Return a loss that takes advantages of ids or answers, and a mask of this kind of number alone."""

    def loss(log_probs: Any, old_log_probs: Any, advantages: Any, mask: Any, **options: Any) -> float:
        if (advantages.ndim == 2) is not each or (kind and mask.dtype.kind != kind):
            raise refused("another form")
        own = (options["clip"],) * 2 if "clip" in options else clip
        gains = advantages[:, 0] if each else advantages
        total = (policy_objective(log_probs, old_log_probs, gains, clip=own) * mask).sum(1)
        return -float((total / mask.sum(1)).mean() if over_answers else total.sum() / mask.sum())

    return loss


@pytest.mark.parametrize("over_answers", [False, True])
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("kind", ["i", "b", "f"])
def test_a_policy_loss_is_right_in_each_form(over_answers: bool, each: bool, kind: str) -> None:
    """Would break if the kind of mask, the mean or the shape of advantages of right code were not found."""
    tool = Asked(policy(over_answers=over_answers, each=each, kind=kind))
    loss = ClippedLoss(tool)
    loss.check("the loss", LOGS, GAINS, MASK)
    loss.check("the loss", LOGS, GAINS, MASK, clip=0.4)
    assert loss.slope(LOGS, GAINS, MASK).shape == (3, 5)
    assert tool.sloped["mask"].dtype.kind == kind
    assert tool.sloped["log_probs"] is LOGS[0] or (tool.sloped["log_probs"] == LOGS[0]).all()


@pytest.mark.parametrize("clip", [(0.2, 0.2), (0.1, 0.3), (0.5, 0.5)])
def test_its_own_clip_is_measured(clip: tuple[float, float]) -> None:
    """Would break if another clip than 0.2 by default were an error: the definition leaves it open."""
    loss = ClippedLoss(Asked(policy(clip=clip)))
    assert loss.clip == pytest.approx(clip)
    loss.check("the loss", LOGS, GAINS, MASK)


@pytest.mark.parametrize(("clip", "sign"), [((0.95, 0.2), -1.0), ((0.2, 1e3), 1.0)])
def test_a_loss_that_clips_next_to_nothing_is_held_to_the_usual_clip(clip: tuple[float, float], sign: float) -> None:
    """Would break if what hardly limits a ratio were taken for the author's choice of a clip."""
    loss = ClippedLoss(Asked(policy(clip=clip)))
    assert loss.clip == (0.2, 0.2)
    logs = np.stack([np.full((3, 5), 8.0 * sign), np.zeros((3, 5))])
    with pytest.raises(ClauseFailure):
        loss.check("the loss", logs, np.full(3, sign), MASK)


def test_a_loss_that_refuses_far_ratios_is_held_to_the_usual_clip() -> None:
    def near(log_probs: Any, **given: Any) -> float:
        if np.abs(log_probs).max() > 4:
            raise refused("too far")
        return policy()(log_probs=log_probs, **given)

    assert ClippedLoss(Asked(near)).clip == (0.2, 0.2)


def test_the_mean_is_over_ids_or_over_answers() -> None:
    """Would break if padding counted, or if the sign were lost."""
    logs, gains, mask = np.zeros((2, 2, 3)), np.array([1.0, 4.0]), np.array([[1, 1, 1], [1, 0, 0]])
    assert mean_gains(logs, gains, mask, clip=(0.2, 0.2)) == pytest.approx((-(3 + 4) / 4, -(1 + 4) / 2))
