"""The implementation's losses of answers, preferences and rewards, by its own conventions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from conformkit.conformance.assertions.checks import ClauseFailure, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case
from conformkit.conformance.assertions.values import close, number, numbers, of_numbers
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.subject.tool import Tool
from conformkit.spec.answers import answer_losses
from conformkit.spec.arrays import Array
from conformkit.spec.loss import IGNORED
from conformkit.spec.policy_gradients import group_advantages, policy_objective

__all__ = [
    "Advantages",
    "ClippedLoss",
    "Conversation",
    "Labeled",
    "PairLoss",
    "answered",
    "conversation",
    "mean_gains",
    "mean_of_answers",
]  # fmt: skip

_T = TypeVar("_T")
_KINDS = (np.int64, np.bool_, np.float32)
"""The kinds of numbers that a mask may have to have."""
_WIDEST = 0.9
"""A ratio that is free beyond this is not clipped."""


class Conversation:
    """Ids (B, T), of which those in the mask (B, T) belong to answers, and the logits (B, T, V) of a model."""

    def __init__(self, logits: Array, ids: Array, mask: Array) -> None:
        self.logits, self.ids, self.mask = logits, ids, mask

    @property
    def labels(self) -> Array:
        """The ids of answers, and -100 elsewhere."""
        return np.where(self.mask, self.ids, IGNORED)

    @property
    def predicts(self) -> Array:
        """Where logits predict an id of an answer (B, T): one place before it."""
        return np.pad(self.mask[:, 1:], ((0, 0), (0, 1)))

    def with_logits(self, logits: Array) -> Conversation:
        """Return the same texts with other logits."""
        return Conversation(logits, self.ids, self.mask)

    def sure(self, places: int) -> Conversation:
        """Return logits that are sure of each id so many places before it."""
        rows = np.eye(self.logits.shape[-1])[np.roll(self.ids, -places, axis=1)]
        return self.with_logits(8.0 * rows)


def conversation(draw: Draw) -> Conversation:
    """Return four texts: two turns, a short one with padding behind it, one with padding before it, one all answer."""
    ids = draw.ids(7, 4, 9) + 7 * (np.arange(9) % 2)  # an id and its neighbor differ
    mask = np.zeros((4, 9), bool)
    mask[0, 3:5] = mask[0, 7:] = mask[1, 2:5] = mask[2, 5:] = mask[3] = True
    return Conversation(draw.values(4, 9, 15), ids, mask)


class Labeled:
    """`answer_loss` or `sequence_log_probs`, with labels of -100 and with a mask, whichever it takes."""

    def __init__(self, tool: Tool, wanted: Callable[[Conversation], Sequence[Any]]) -> None:
        """`wanted` gives the right results for a conversation, of each convention."""
        self.tool, self.wanted = tool, wanted
        self._kinds: tuple[Any, ...] = _KINDS
        zeros = Conversation(np.zeros((4, 3, 5)), np.ones((4, 3), np.int64), np.ones((4, 3), bool))
        self.tool = _first_of_several(tool, lambda: next(self.ways(zeros)), wanted(zeros))
        self._kinds = _KINDS

    def ways(self, told: Conversation) -> Iterator[Any]:
        """Yield the result in each way in which it can be called."""
        masked = self.tool.offers("mask")
        try:
            labeled = self.tool(logits=told.logits, labels=told.labels)
        except ImplementationFailure:
            if not masked:
                raise
        else:
            under("labels of -100 outside of answers")
            yield labeled
        if masked:
            under("a mask of the answers")
            yield self._masked(told)

    def slope(self, told: Conversation) -> Array:
        """Return the derivative of a loss with respect to the logits, with labels of -100 where it takes them."""
        try:
            return self.tool.slope("logits", logits=told.logits, labels=told.labels)[1]
        except ImplementationFailure:
            if not self.tool.offers("mask"):
                raise
        self._masked(told)
        return self.tool.slope("logits", logits=told.logits, labels=told.ids, mask=told.mask.astype(self._kinds[0]))[1]

    def _masked(self, told: Conversation) -> Any:
        """Call it with a mask of the kind with which it is right, or else with the first that it takes."""

        def ask(kind: Any) -> Any:
            return self.tool(logits=told.logits, labels=told.ids, mask=told.mask.astype(kind))

        kind, found = _settled(ask, self._kinds, self.wanted(told))
        self._kinds = (kind,)
        return found


def _first_of_several(tool: Tool, ask: Callable[[], Any], shapes: Sequence[Any]) -> Tool:
    """Return the tool; where it returns several values of which the first has such a shape, one that reads that."""
    try:
        value = ask()
    except (ImplementationFailure, ClauseFailure):
        return tool
    if not isinstance(value, list) or len(value) < 2 or not of_numbers(value) or _shaped(value, shapes):
        return tool
    if not _shaped(value[0], shapes):
        return tool
    calls = {name: replace(call, output=0) for name, call in tool.bound.calls.items()}
    first = tool.like(tool.link)
    first.bound = replace(tool.bound, calls=calls)
    return first


def _shaped(value: Any, shapes: Sequence[Any]) -> bool:
    try:
        return np.shape(value) in {np.shape(shape) for shape in shapes}
    except ValueError:  # of unequal lengths
        return False


def _settled(ask: Callable[[_T], Any], forms: Sequence[_T], wanted: Sequence[Any]) -> tuple[_T, Any]:
    """Return the first form of an argument that gives what is wanted, or else that is taken, and the result."""
    refused: ImplementationFailure | None = None
    taken: list[tuple[_T, Any]] = []
    for form in forms:
        try:
            taken.append((form, ask(form)))
        except ImplementationFailure as failure:
            refused = refused or failure
            continue
        if any(_alike(taken[-1][1], want) for want in wanted):
            return taken[-1]
    if not taken:
        assert refused is not None
        raise refused
    return taken[0]


def _alike(value: Any, want: Any) -> bool:
    found, wished = np.asarray(value), np.asarray(want)
    return found.dtype.kind in "if" and found.shape == wished.shape and bool(np.allclose(found, wished, rtol=1e-3))


def mean_of_answers(told: Conversation) -> tuple[float, ...]:
    """Return the mean loss over all ids of answers; and over rows, those without any left out, or counted as 0."""
    losses, counted = answer_losses(told.logits, told.labels), told.mask[:, 1:].sum(axis=1)
    rows = losses.sum(axis=1) / np.maximum(counted, 1)
    return float(losses.sum() / counted.sum()), float(rows[counted > 0].mean()), float(rows.mean())


def answered(draw: Draw, sizes: Case) -> Conversation:
    """Return texts of such sizes, the second half of each an answer; the last id counts."""
    batch, tokens, vocabulary = sizes["batch"], sizes["tokens"], sizes["vocab_size"]
    ids = draw.ids(vocabulary, batch, tokens)
    ids[-1, -1] = vocabulary - 1
    mask = np.zeros((batch, tokens), bool)
    mask[:, max(tokens // 2, 1) :] = True
    return Conversation(draw.values(batch, tokens, vocabulary), ids, mask)


class PairLoss:
    """A loss of pairs, that gives their mean or the loss of each."""

    def __init__(self, tool: Tool, names: Sequence[str]) -> None:
        self.names, self.tool = names, tool
        self.tool = _first_of_several(tool, lambda: self._ask(np.zeros((len(names), 5))), [0.0, np.zeros(5)])

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
        self.tool = _first_of_several(tool, lambda: self._ask(np.eye(5)), [np.zeros(25 if self.flat else (5, 5))])
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
        return any(_alike(found, want.reshape(rewards.shape)) for want in wanted)

    def _ask(self, rewards: Array) -> Any:
        if self.flat:
            return self.tool(rewards=rewards.reshape(-1), group_size=rewards.shape[1])
        return self.tool(rewards=rewards)


class ClippedLoss:
    """`policy_loss`, whose mean may be over ids or over answers, and whose advantages are of answers or of ids."""

    def __init__(self, tool: Tool) -> None:
        self.tool = tool
        self._forms: Sequence[tuple[bool, Any]] = [(each, kind) for each in (False, True) for kind in _KINDS]
        logs, mask = np.zeros((2, 2, 3)), np.ones((2, 3), bool)
        self.clip = (0.2, 0.2)
        self.tool = _first_of_several(tool, lambda: self._ask(logs, np.ones(2), mask)[1], [0.0])
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

        return _settled(ask, self._forms, mean_gains(logs, gains, mask, clip=self._bounds(options)))

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
