"""Scaled dot-product attention as tests see it: a function on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import check_shape
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.subject.outcomes import Gradients, Outcome
from conformkit.fixtures import Golden
from conformkit.spec.arrays import Array

__all__ = ["Attend"]


class Attend:
    """The implementation's `scaled_dot_product_attention`, as a function on arrays."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._instance: Instance | None = None

    @property
    def instance(self) -> Instance:
        """The function, behind the interface of a constructed component."""
        if self._instance is None:
            self._instance = self.subject.build()
        return self._instance

    def renew(self) -> None:
        """Build it anew the next time: the worker was lost."""
        self._instance = None

    def __call__(self, q: Array, k: Array, v: Array, mask: Array | None = None, **options: Any) -> Array:
        """Return the output (…, Tq, dv), its shape checked."""
        out = self.call(q, k, v, mask, **options).out
        check_shape("output", out, (*np.broadcast_shapes(q.shape[:-2], k.shape[:-2]), q.shape[-2], v.shape[-1]))
        return out

    def call(self, q: Array, k: Array, v: Array, mask: Array | None = None, **options: Any) -> Outcome:
        """Call and return everything observed; options as for `Instance.call`."""
        return self.instance.call(q, k, v, mask, **options)

    def weights(self, q: Array, k: Array, mask: Array | None = None) -> Array:
        """Return the attention weights (…, Tq, Tk), found by passing the identity as values."""
        identity = np.broadcast_to(np.eye(k.shape[-2]), (*k.shape[:-2], k.shape[-2], k.shape[-2]))
        return self(q, k, np.ascontiguousarray(identity), mask)

    def expected(self, q: Array, k: Array, v: Array, mask: Array | None = None) -> Array:
        """Return the definition's output (…, Tq, dv)."""
        return self.instance.expected(q, k, v, mask)

    def vjp(self, q: Array, k: Array, v: Array, mask: Array | None = None, *, cotangent: Array) -> Gradients:
        """Differentiate the sum of cotangent · output with respect to q, k and v."""
        return self.instance.vjp(q, k, v, mask, cotangent=cotangent, wrt=("q", "k", "v"))

    def leading(self, batch: int = 2) -> tuple[int, ...]:
        """Leading dimensions that the implementation takes."""
        return self.subject.bound.leading(batch)

    def ranks(self, *leadings: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Return those leading dimensions that the implementation takes."""
        rank = self.subject.bound.limits.rank
        return [leading for leading in leadings if rank in {None, len(leading) + 2}]

    def replay(self, golden: Golden) -> tuple[Array, Array]:
        """Return the output for stored inputs, and the expected one."""
        leading = () if self.subject.offers("any-rank") else self.leading(1)
        stored = (*(golden.inputs[name] for name in "qkv"), golden.expected)
        q, k, v, want = (np.broadcast_to(array, (*leading, *array.shape)).copy() for array in stored)
        return self(q, k, v, golden.inputs.get("mask")), want

    def tolerance(self, depth: int = 1) -> float:
        """The relative error allowed."""
        return self.subject.tolerance(depth)
