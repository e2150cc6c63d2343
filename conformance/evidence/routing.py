"""Logits of a router, and the implementation's loss of them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import Compared, check
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case
from conformkit.conformance.assertions.values import TOLERANCE, number
from conformkit.conformance.subject.tool import Tool
from conformkit.spec.arrays import Array
from conformkit.spec.balance import balance_loss

__all__ = ["Balance", "even_logits", "routed", "uneven_logits"]


class Balance:
    """`balance_loss` on logits (N, E); `positions` says that it is k times the definition's."""

    def __init__(self, tool: Tool) -> None:
        self.tool = tool

    def __call__(self, logits: Array, active: int) -> float:
        """Return the loss, one finite number."""
        return number("the loss", self.tool(logits=logits, experts_active=active, **self._experts(logits)))

    def gradient(self, logits: Array, active: int) -> Array:
        """Return the derivative with respect to the logits."""
        given = {"logits": logits, "experts_active": active, **self._experts(logits)}
        return self.tool.slope("logits", **given)[1]

    @cached_property
    def positions(self) -> bool:
        """Whether shares add up to k; fail where even use costs neither 1 nor k."""
        got = self(even_logits(5), 3)
        once, often = (abs(got - want) <= TOLERANCE * want for want in (1.0, 3.0))
        both = Compared(np.asarray(got), np.asarray(1.0))
        sentence = f"5 experts in equal use, 3 for each position, cost {got:.7g}, expected 1 (or 3)"
        check(sentence, once or often, compared=both)
        return often

    def want(self, logits: Array, active: int) -> float:
        """Return the definition's loss, by the implementation's own way to count."""
        return balance_loss(logits, active) * (active if self.positions else 1)

    def _experts(self, logits: Array) -> dict[str, Any]:
        return {"num_experts": logits.shape[-1]} if self.tool.offers("num-experts") else {}


def even_logits(experts: int) -> Array:
    """Return logits (E, E) that favor each expert once most, once second, and so on."""
    row = np.linspace(2.0, -2.0, experts)
    return np.stack([np.roll(row, shift) for shift in range(experts)])


def uneven_logits(draw: Draw, count: int, experts: int) -> Array:
    """Return logits (N, E) without ties, whose first experts are favored."""
    return draw.values(count, experts) + np.linspace(1.5, -1.5, experts)


def routed(sizes: Case) -> float:
    """Estimate the cost of a loss of these sizes."""
    return 300.0 * sizes["count"] * sizes["experts"]
