"""Losses of preferences and rewards, and advantages, by the conventions of the implementation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.assertions.values import close, number, numbers
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.conventions import MASK_KINDS, alike, first_of_several, settled
from conformkit.conformance.subject.tool import Tool
from conformkit.spec.arrays import Array
from conformkit.spec.policy_gradients import group_advantages, policy_objective

__all__ = ["Advantages", "ClippedLoss", "PairLoss", "mean_gains"]

_WIDEST = 0.9
"""A ratio that is free beyond this is not clipped."""


class PairLoss:
    """A loss of pairs, that gives their mean or the loss of each."""

    def __init__(self, tool: Tool, names: Sequence[str]) -> None:
        self.names, self.tool = names, tool
        self.tool = first_of_several(tool, lambda: self._ask(np.zeros((len(names), 5))), [0.0, np.zeros(5)])

    def __call__(self, given: Array, **options: Any) -> float:
        """Return the mean loss of pairs (arguments, B)."""
        return float(self._of_pairs(self._ask(given, **options), given.shape[1]).mean())

    def _ask(self, given: Array, **options: Any) -> Any:
        return self.tool(**dict(zip(self.names, given, strict=True)), **options)

    def slopes(self, given: Array, wanted: Sequence[str]) -> Array:
        """Return the derivatives of the loss of one pair (arguments,) with respect to some arguments."""
        arguments = {name: np.asarray(value) for name, value in zip(self.names, given, strict=True)}
        return np.stack([self.tool.slope(name, **arguments)[1] for name in wanted])

    def _of_pairs(self, value: Any, count: int) -> Array:
        if isinstance(value, list) and len(value) > 1:
            return numbers("the losses", value, (count,))
        return np.array([number("the loss", value)])


class Advantages:
    """`group_advantages` on rewards (prompts, answers), flat where it takes the size of a group."""

    def __init__(self, tool: Tool) -> None:
        self.tool, self.flat = tool, tool.offers("group-size")
        self.tool = first_of_several(tool, lambda: self._ask(np.eye(5)), [np.zeros(25 if self.flat else (5, 5))])
        self.of_one = not self.flat and self._is_of_one_group()

    def __call__(self, rewards: Array) -> Array:
        """Return the advantages (prompts, answers)."""
        if self.of_one:
            return np.stack([numbers("the advantages", self._ask(row), row.shape) for row in rewards])
        shape = (rewards.size,) if self.flat else rewards.shape
        return numbers("the advantages", self._ask(rewards), shape).reshape(rewards.shape)

    def _is_of_one_group(self) -> bool:
        """Whether it takes all rewards for answers to one prompt: then it is asked about one prompt after the other."""
        rewards = np.array([[0.0, 1.0, 3.0], [7.0, 20.0, 30.0]])
        try:
            found = self._ask(rewards)
        except ImplementationFailure:
            return True  # it takes no table
        wanted = [group_advantages(rewards.reshape(-1), unbiased=unbiased) for unbiased in (False, True)]
        return any(alike(found, want.reshape(rewards.shape)) for want in wanted)

    def _ask(self, rewards: Array) -> Any:
        if self.flat:
            return self.tool(rewards=rewards.reshape(-1), group_size=rewards.shape[1])
        return self.tool(rewards=rewards)


class ClippedLoss:
    """`policy_loss`, whose mean may be over ids or over answers, and whose advantages are of answers or of ids."""

    def __init__(self, tool: Tool) -> None:
        self.tool = tool
        self._forms: Sequence[tuple[bool, Any]] = [(each, kind) for each in (False, True) for kind in MASK_KINDS]
        logs, mask = np.zeros((2, 2, 3)), np.ones((2, 3), bool)
        self.clip = (0.2, 0.2)
        self.tool = first_of_several(tool, lambda: self._ask(logs, np.ones(2), mask)[1], [0.0])
        self.clip = self._clips()

    def __call__(self, logs: Array, gains: Array, mask: Array, **options: Any) -> float:
        """Return the loss of new and old log-probabilities (2, B, T), advantages (B,) and a mask (B, T)."""
        form, value = self._ask(logs, gains, mask, **options)
        self._forms = [form]
        return number("the loss", value)

    def _ask(self, logs: Array, gains: Array, mask: Array, **options: Any) -> tuple[tuple[bool, Any], Any]:
        """Return in which form the call is right, or is taken, and its result."""

        def ask(form: tuple[bool, Any]) -> Any:
            return self.tool(**_given(logs, gains, mask, form), **options)

        return settled(ask, self._forms, mean_gains(logs, gains, mask, clip=self._bounds(options)))

    def _bounds(self, options: Mapping[str, Any]) -> tuple[float, float]:
        """Return how far below and above 1 the ratio may be: as asked for, or as it is of itself."""
        return (options["clip"], options["clip"]) if "clip" in options else self.clip

    def _clips(self) -> tuple[float, float]:
        """Return its own: what is left of a gain at ratios far beyond; 0.2 where nothing is clipped."""
        mask, old, found = np.ones((2, 3), bool), np.zeros((2, 3)), []
        for sign in (-1.0, 1.0):
            try:
                value = number("the loss", self._ask(np.stack([old + 5 * sign, old]), np.full(2, sign), mask)[1])
            except (ImplementationFailure, ClauseFailure):
                return (0.2, 0.2)
            found.append(sign * (-sign * value - 1.0))
        return (found[0], found[1]) if all(0 < bound <= _WIDEST for bound in found) else (0.2, 0.2)

    def check(self, label: str, logs: Array, gains: Array, mask: Array, **options: Any) -> None:
        """Check the loss against the definition, with the mean over ids or over answers, whichever is nearer."""
        got = self(logs, gains, mask, **options)
        wanted = mean_gains(logs, gains, mask, clip=self._bounds(options))
        close(label, got, min(wanted, key=lambda want: abs(want - got)), scale=1.0)

    def slope(self, logs: Array, gains: Array, mask: Array) -> Array:
        """Return the derivative with respect to the new log-probabilities."""
        self(logs, gains, mask)
        return self.tool.slope("log_probs", **_given(logs, gains, mask, self._forms[0]))[1]


def _given(logs: Array, gains: Array, mask: Array, form: tuple[bool, Any]) -> dict[str, Array]:
    """Return the arguments: advantages of each id, if asked for, and a mask of that kind of number."""
    each, kind = form
    advantages = np.repeat(gains[:, None], mask.shape[1], axis=1) if each else gains
    return {"log_probs": logs[0], "old_log_probs": logs[1], "advantages": advantages, "mask": mask.astype(kind)}


def mean_gains(logs: Array, gains: Array, mask: Array, *, clip: tuple[float, float]) -> tuple[float, float]:
    """Return minus the mean gain over ids in a mask, and over answers."""
    total, counted = (policy_objective(logs[0], logs[1], gains, clip=clip) * mask).sum(axis=1), mask.sum(axis=1)
    return -float(total.sum() / counted.sum()), -float((total / counted).mean())
