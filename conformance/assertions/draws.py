"""Inputs and weights for clauses: the same for everybody, unless a seed is given.

Values are drawn, then rounded to float32, so that float64 and float32 see the same numbers; an implementation judged in
half precision, and then the oracle too, sees them rounded once more. Sizes differ from one another on purpose: equal
ones hide transposes.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from conformkit.conformance.assertions.formats import HALF, rounded
from conformkit.conformance.assertions.size_jitter import AS_ASKED, SizeJitter, size_jitter
from conformkit.conformance.assertions.sizes import Case, Cost, Coverage, Domain, covering
from conformkit.spec.arrays import Array
from conformkit.spec.parameters import Parameter

__all__ = ["Draw"]


class Draw:
    """Random draws of one clause, from the run's seed and the clause's id, representable in all of `forms`.

    `domain` are the sizes of which the clause speaks. `exact` is for tests that need just the sizes that they ask for.
    `clock` tells the seconds by which something is slow. `attempt` is the number of the attempt, see `attempting`.
    """

    shrinks = False
    """Whether what draws looks for the smallest failing sizes by itself."""

    def __init__(
        self, seed: int, clause_id: str, forms: tuple[str, ...] = ("float32",), domain: Domain | None = None,
        *, exact: bool = False, clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.seed = seed
        self.clause_id = clause_id
        self.domain: Domain = domain or {}
        self.clock = clock
        self._exact = exact or bool(domain)
        self._forms = forms
        self._half = bool(set(forms) & set(HALF))
        self.attempt = 0
        self._random = np.random.default_rng([seed, zlib.crc32(clause_id.encode())])

    def size_jitter(self) -> SizeJitter:
        """How much larger than asked for small sizes are; not at all with seed 0, which is for checking by hand."""
        return AS_ASKED if self._exact or self.seed == 0 else size_jitter(self._apart("shift"))

    def _apart(self, what: str) -> Draw:
        """Return draws that leave the others as they are."""
        return Draw(self.seed, f"{self.clause_id} {what}", self._forms, self.domain, clock=self.clock)

    @contextmanager
    def attempting(self, number: int) -> Iterator[None]:
        """Let `at` return other draws meanwhile: what fails by chance may fail in another attempt. The first is 0."""
        before, self.attempt = self.attempt, number
        try:
            yield
        finally:
            self.attempt = before

    def at(self, sizes: Case) -> Draw:
        """Return draws of their own for these sizes, the same whatever was drawn before; see `attempting`."""
        named = ", ".join(f"{name} {sizes[name]}" for name in sorted(sizes))
        named += f", attempt {self.attempt}" if self.attempt else ""
        return Draw(self.seed, f"{self.clause_id} at {named}", self._forms, self.domain, clock=self.clock)

    def cases(
        self, domain: Domain, cost: Cost, limit: float, coverage: Coverage = "every band"
    ) -> Iterator[dict[str, int]]:
        """Yield few cases that together have sizes all over a domain, each at most as costly as the limit."""
        return covering(domain, self, cost, limit, coverage)

    def values(self, *shape: int, scale: float = 1.0) -> Array:
        """Normal numbers of the given standard deviation."""
        return self._rounded(self._random.normal(0.0, scale, shape))

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> Array:
        """Numbers between low and high."""
        return self._rounded(self._random.uniform(low, high, shape))

    def ids(self, vocab_size: int, *shape: int) -> Array:
        """Token ids, int64."""
        return self._random.integers(0, vocab_size, shape)

    def qkv(
        self, leading: tuple[int, ...], *, queries: int = 3, keys: int = 5, dk: int = 4, dv: int = 6, scale: float = 1.0
    ) -> tuple[Array, Array, Array]:
        """Inputs of attention: q (…, queries, dk), k (…, keys, dk), v (…, keys, dv); queries and keys of that scale.

        The scale is at most 1 in half precision: one rounding of a score of 10 changes its weight by 4 % in bfloat16.
        """
        scale = min(scale, 1.0) if self._half else scale
        q, k = (self.values(*leading, rows, dk, scale=scale) for rows in (queries, keys))
        return q, k, self.values(*leading, keys, dv)

    def permutation(self, count: int) -> Array:
        """An order of 0 … count-1 in which nothing stays in place, if possible."""
        while True:
            order = self._random.permutation(count)
            if count < 2 or not (order == np.arange(count)).any():
                return order

    def integer(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return int(self._random.integers(low, high + 1))

    def mask(self, *shape: int, allowed: float = 0.6) -> Array:
        """A boolean mask (…, Tq, Tk); every query may attend to something, and at least one entry is hidden."""
        mask = self._random.uniform(size=shape) < allowed
        lucky = self._random.integers(0, shape[-1], shape[:-1])
        np.put_along_axis(mask, lucky[..., None], values=True, axis=-1)
        if mask.all() and shape[-1] > 1:
            mask[..., 0, (int(lucky.flat[0]) + 1) % shape[-1]] = False
        return mask

    def weights(self, parameters: Mapping[str, Parameter], *, gain: float = 1.0) -> dict[str, Array]:
        """Weights for an oracle and an implementation: large enough that attention is far from uniform."""
        return {name: self._weight(name, parameter, gain) for name, parameter in parameters.items()}

    def _weight(self, name: str, parameter: Parameter, gain: float) -> Array:
        *_, role, kind = name.split(".")
        if "norm" in role:
            return self._rounded(float(kind == "weight") + self._random.normal(0.0, 0.3, parameter.shape))
        if kind == "bias":
            return self.values(*parameter.shape, scale=0.5)
        if role in {"embedding", "positions", "segments", "class_token"}:
            return self.values(*parameter.shape)
        sharp = 1.6 if role in {"q", "k"} and not self._half else 1.0
        return self.values(*parameter.shape, scale=gain * sharp / math.sqrt(math.prod(parameter.shape[1:])))

    def _rounded(self, values: Array) -> Array:
        return rounded(values, *self._forms)
