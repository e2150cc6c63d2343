"""What happens inside one call: a few numbers about the output of each part, the entropy of each row of attention.

The numbers of parts and heads are bounded here, so that the reply is bounded whatever the implementation does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from conformkit.conformance.driver.wire.arrays import Array

__all__ = ["Notes"]

_MAX_PARTS = 600
_MOST_HEADS = 16_000
_NAME = 200
_SILENT = 1e-6
"""A unit whose activations are all this small passes nothing on."""
_SUM = 1e-3


@dataclass
class Notes:
    """What is seen while a component is called; `rows` positions in all, `keys` positions to look at."""

    rows: int
    keys: int
    parts: dict[str, dict[str, Any]] = field(default_factory=dict)
    attention: list[dict[str, Any]] = field(default_factory=list)
    inside: list[str] = field(default_factory=list)
    """The names of the parts being called, the innermost last; the name of the whole is empty."""
    _heads: int = 0
    _seen: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    """By part, sizes and means seen: the same weights with permuted axes, as inside einsum, are noted once."""

    @property
    def place(self) -> str:
        """The part being called."""
        return self.inside[-1][:_NAME] if self.inside else ""

    @contextmanager
    def entered(self, name: str) -> Iterator[None]:
        """In this context, everything noted belongs to that part."""
        self.inside.append(name)
        try:
            yield
        finally:
            self.inside.pop()

    def part(self, name: str, kind: str, output: Array) -> None:
        """Note what a part returned; the last call counts."""
        name = name[:_NAME]
        if name not in self.parts and len(self.parts) >= _MAX_PARTS:
            return
        known = self.parts.pop(name, {"calls": 0, "dead": 0, "units": 0})  # parts are ordered by their last call
        self.parts[name] = known | _described(output) | {"kind": kind[:_NAME], "calls": known["calls"] + 1}

    def activation(self, output: Array) -> None:
        """Note how many units, the entries of the last axis, are silent at all positions."""
        if output.ndim < 2 or math.prod(output.shape[:-1]) != self.rows or output.shape[-1] < 2:
            return
        silent = np.abs(output.reshape(self.rows, -1)).max(axis=0) < _SILENT  # (units,)
        name = self.place
        if name not in self.parts and len(self.parts) < _MAX_PARTS:
            self.parts[name] = {"calls": 0, "dead": 0, "units": 0, "kind": "", **_described(output)}
        if name in self.parts and int(silent.sum()) >= self.parts[name]["dead"]:
            self.parts[name] |= {"dead": int(silent.sum()), "units": output.shape[-1]}

    def value(self, array: Array) -> None:
        """Note the entropies of what may be weights of attention: rows over keys that are not negative and sum to 1."""
        if array.ndim < 3 or array.shape[-1] != self.keys or array.size == 0 or len(self.attention) >= _MAX_PARTS:
            return
        heads = math.prod(array.shape[:-2])
        if self._heads + heads > _MOST_HEADS or not _is_distribution(array):
            return
        entropy, most = _entropies(array)
        mean = float(np.mean(entropy))
        if not any(size == array.size and math.isclose(mean, known) for size, known in self._seen.get(self.place, [])):
            self._seen.setdefault(self.place, []).append((array.size, mean))
            distance, future = _reach(array)
            self.attention.append({
                "part": self.place, "shape": list(array.shape), "entropy": entropy, "most": most,
                "distance": distance, "future": future,
            })  # fmt: skip
            self._heads += heads

    def header(self) -> dict[str, Any]:
        """Return the form that is sent over the wire."""
        parts = [{"name": name, **facts} for name, facts in self.parts.items() if facts["calls"]]
        return {"parts": parts, "attention": self.attention}


def _described(output: Array) -> dict[str, Any]:
    """Return shape, root mean square and largest entry of the finite values, and the number of others."""
    values = output.astype(np.float64)
    finite = np.isfinite(values)
    sound = values[finite]
    rms = math.sqrt(float(np.mean(np.square(sound)))) if sound.size else 0.0
    largest = float(np.abs(sound).max()) if sound.size else 0.0
    limit = np.finfo(np.float64).max
    return {
        "shape": list(output.shape), "rms": min(rms, limit), "largest": largest, "broken": int((~finite).sum()),
    }  # fmt: skip


def _is_distribution(array: Array) -> bool:
    if not np.issubdtype(array.dtype, np.floating) or not bool((array >= 0.0).all()):
        return False
    total = array.sum(axis=-1)
    one = np.abs(total - 1.0) < _SUM
    return bool((one | (total == 0.0)).all() and one.any())


def _reach(array: Array) -> tuple[list[float], list[float]]:
    """Return by leading index how far queries look, in positions, and the mean of their weight on later keys.

    Of rows over another number of positions, such as a memory's, neither means anything: then both are empty.
    """
    queries, keys = array.shape[-2:]
    if queries != keys:
        return [], []
    weights = array.astype(np.float64).reshape(-1, queries, keys)
    away = np.abs(np.arange(queries)[:, None] - np.arange(keys))  # (Tq, Tk)
    later = np.triu(np.ones((queries, keys)), 1)
    distance, future = ((weights * by).sum(axis=-1).mean(axis=-1) for by in (away, later))
    return [float(value) for value in distance], [float(value) for value in future]


def _entropies(array: Array) -> tuple[list[float], float]:
    """Return the mean entropy over queries by leading index, and the mean of what is possible.

    A key counts if any head uses it: a head that is certain underflows to 0 at all other keys.
    """
    weights = array.astype(np.float64)
    entropy = -(weights * np.log(np.where(weights > 0.0, weights, 1.0))).sum(axis=-1).mean(axis=-1)
    used = (weights > 0.0).sum(axis=-1).reshape(-1, weights.shape[-2]).max(axis=0)  # (Tq,)
    most = np.log(np.maximum(used, 1)).mean()
    return [float(value) for value in entropy.reshape(-1)], float(most)
