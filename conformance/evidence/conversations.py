"""Texts of which answers are a part, and losses of these answers, by the conventions of the implementation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.conventions import MASK_KINDS, first_of_several, settled
from conformkit.conformance.subject.tool import Tool
from conformkit.spec.answers import answer_losses
from conformkit.spec.arrays import Array
from conformkit.spec.loss import IGNORED

__all__ = ["Conversation", "Labeled", "answered", "conversation", "mean_of_answers"]


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
        self._kinds: tuple[Any, ...] = MASK_KINDS
        zeros = Conversation(np.zeros((4, 3, 5)), np.ones((4, 3), np.int64), np.ones((4, 3), bool))
        self.tool = first_of_several(tool, lambda: next(self.ways(zeros)), wanted(zeros))
        self._kinds = MASK_KINDS

    def ways(self, text: Conversation) -> Iterator[Any]:
        """Yield the result in each way in which it can be called."""
        masked = self.tool.offers("mask")
        try:
            labeled = self.tool(logits=text.logits, labels=text.labels)
        except ImplementationFailure:
            if not masked:
                raise
        else:
            under("labels of -100 outside of answers")
            yield labeled
        if masked:
            under("a mask of the answers")
            yield self._masked(text)

    def slope(self, text: Conversation) -> Array:
        """Return the derivative of a loss with respect to the logits, with labels of -100 where it takes them."""
        try:
            return self.tool.slope("logits", logits=text.logits, labels=text.labels)[1]
        except ImplementationFailure:
            if not self.tool.offers("mask"):
                raise
        self._masked(text)
        return self.tool.slope("logits", logits=text.logits, labels=text.ids, mask=text.mask.astype(self._kinds[0]))[1]

    def _masked(self, text: Conversation) -> Any:
        """Call it with a mask of the kind with which it is right, or else with the first that it takes."""

        def ask(kind: Any) -> Any:
            return self.tool(logits=text.logits, labels=text.ids, mask=text.mask.astype(kind))

        kind, found = settled(ask, self._kinds, self.wanted(text))
        self._kinds = (kind,)
        return found


def mean_of_answers(text: Conversation) -> tuple[float, ...]:
    """Return the mean loss over all ids of answers; and over rows, those without any left out, or counted as 0."""
    losses, counted = answer_losses(text.logits, text.labels), text.mask[:, 1:].sum(axis=1)
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
