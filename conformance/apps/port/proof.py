"""Do two models with the same weights say the same? Logits on drawn ids, of the whole and of each part.

A part is compared by what the model says when everything behind it is silent: with zeros in the last matrix of a
sublayer, its block only passes on what it gets. So no part needs to be reachable from outside, in any framework.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformkit.conformance.apps.port.sides import Model, Side, parameters_of, rules_at
from conformkit.conformance.apps.port.source import canonical_names, within
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.patterns import to_implementation
from conformkit.conformance.binding.rules import Rule
from conformkit.spec.arrays import Array
from conformkit.spec.components import Parameter
from conformkit.spec.loss import log_softmax
from conformkit.spec.tolerances import tolerance
from conformkit.spec.variants import Variant

__all__ = [
    "EMBEDDING",
    "QUIET",
    "SMALLNESS",
    "WHOLE",
    "PartComparison",
    "Proof",
    "Questions",
    "Read",
    "allowed_error",
    "behind",
    "compared",
    "drawn_weights",
    "parts_of",
    "said",
]  # fmt: skip

Read = Callable[[str], Array | None]
WHOLE = "the whole model"
QUIET = "the whole model with small embeddings"
EMBEDDING = "embedding, positions, final norm and head"
SMALLNESS = 0.02
"""With embeddings so small, the ε of a norm counts."""
_TABLES = ("embedding.weight", "positions.weight")
_BY_ID = ("embedding.weight", "head.weight", "head.bias")


@dataclass(frozen=True, slots=True)
class PartComparison:
    """One comparison: what, how far apart in relation to the largest logit, and what is allowed."""

    part: str
    error: float
    allowed: float

    @property
    def same(self) -> bool:
        """Whether rounding explains the difference."""
        return self.error <= self.allowed


@dataclass(frozen=True, slots=True)
class Proof:
    """All comparisons, and how they were made: number format, sizes, how many of the vocabulary's ids."""

    compared: tuple[PartComparison, ...]
    dtype: str
    sizes: Mapping[str, Any]
    ids: int

    @property
    def holds(self) -> bool:
        """Whether nothing differs."""
        return all(one.same for one in self.compared)

    @property
    def worst(self) -> float:
        """The largest difference."""
        return max((one.error for one in self.compared), default=0.0)

    @property
    def first(self) -> str:
        """The first part that differs, in the order of computation; nothing if there is none."""
        parts = [one.part for one in self.compared if not one.same]
        return next((p for p in parts if p not in {WHOLE, QUIET}), parts[0] if parts else "")


@dataclass(frozen=True, slots=True)
class Questions:
    """What both sides are asked: ids, rows of the vocabulary that exist, and the number format."""

    ids: Array
    rows: Array
    dtype: str
    quiet: bool = True
    small: tuple[str, ...] = _TABLES
    """The tables that are made small where ε of norms has to count."""

    @staticmethod
    def drawn(
        sizes: Mapping[str, Any], *, seed: int, dtype: str, most: int, variants: Sequence[Variant] = ()
    ) -> Questions:
        """Draw a scene for these sizes: with all ids if there are at most so many, else the first, the last, others.

        Where one of the variants ties the head, what is made small in the embedding is made small in every head.
        """
        draw = np.random.default_rng([seed, 20261123])
        vocabulary, count = sizes["vocab_size"], min(sizes["vocab_size"], most)
        rows = np.arange(vocabulary)
        if count < vocabulary:
            middle = draw.choice(np.arange(1, vocabulary - 1), size=count - 2, replace=False)
            rows = np.sort(np.concatenate([[0, vocabulary - 1], middle]))
        length = max(1, min(sizes["block_size"], 24))
        ids = draw.integers(0, count, size=(2, length))
        ids[0, : min(2, length)] = [0, count - 1][:length]
        small = (*_TABLES, "head.weight") if any(variant.tied for variant in variants) else _TABLES
        return Questions(ids.astype(np.int64), rows, dtype, small=small)

    def within(self, sizes: Mapping[str, Any]) -> dict[str, Any]:
        """Return sizes with the vocabulary of this scene."""
        return {**sizes, "vocab_size": len(self.rows)}

    def cut(self, name: str, array: Array) -> Array:
        """Return a canonical parameter with the rows of this scene's ids only."""
        return array[self.rows] if name in _BY_ID and len(self.rows) < len(array) else array


def parts_of(layers: int) -> list[str]:
    """Return the parts in the order of computation."""
    inner = [f"blocks.{i}.{half}" for i in range(layers) for half in ("attention", "feed_forward")]
    return [EMBEDDING, *inner]


def behind(part: str, layers: int) -> list[str]:
    """Return the parts that are silent where this one is compared; none where the whole is."""
    parts = parts_of(layers)
    return parts[parts.index(part) + 1 :] if part in parts else []


def said(side: Side, sizes: Mapping[str, Any], scene: Questions, read: Read) -> dict[str, Array]:
    """Return what one side says: the logits of the whole, with small embeddings, and after each part.

    `read` gives canonical weights of that side; None leaves what the model was built with.
    """
    speaker = _Speaker(side, scene.within(sizes), scene, read)
    speaker.fill()
    found = {WHOLE: speaker.logits()}
    if scene.quiet:
        speaker.fill(quiet=True)
        found[QUIET] = speaker.logits()
        speaker.fill(quiet=False)
    parts = parts_of(sizes["num_layers"])
    found[parts[-1]] = found[WHOLE]
    for part, behind in zip(parts[-2::-1], parts[:0:-1], strict=True):
        speaker.silence(behind)
        found[part] = speaker.logits()
    speaker.close()
    return found


class _Speaker:
    """A model of one side, filled tensor by tensor."""

    def __init__(self, side: Side, sizes: Mapping[str, Any], scene: Questions, read: Read) -> None:
        self._sizes, self._scene, self._read = sizes, scene, read
        self._variant = side.variant
        self._parameters = parameters_of(side, sizes)
        self._rules = rules_at(side, sizes)
        self._model: Model = side.model(sizes, scene.dtype)
        self._silent: set[str] = set()
        self._scale: dict[str, float] = {}

    def fill(self, *, quiet: bool | None = None) -> None:
        """Write all weights; or only the tables, made small or as they are."""
        if quiet is None:
            self._write(self._rules)
            return
        self._scale = dict.fromkeys(self._scene.small, SMALLNESS) if quiet else {}
        self._write(self._with(self._scene.small))

    def silence(self, part: str) -> None:
        """Write zeros into the last matrix of a sublayer."""
        last = "down" if part.endswith("feed_forward") else "out" if self._variant.output_projection else "v"
        self._silent |= {n for n in self._parameters if n.startswith(f"{part}.{last}.")}
        self._write(self._with(self._silent, part))

    def logits(self) -> Array:
        """Return logits in float64."""
        return self._model.logits(self._scene.ids).astype(np.float64)

    def close(self) -> None:
        """Release the model."""
        self._model.close()

    def _with(self, names: Iterable[str], prefix: str = "") -> list[Rule]:
        wanted = {name for name in names if name.startswith(prefix)}
        return [rule for rule in self._rules if wanted & set(canonical_names(rule, self._parameters))]

    def _write(self, rules: Iterable[Rule]) -> None:
        for rule in rules:
            names = canonical_names(rule, self._parameters)
            arrays = {name: self._array(name) for name in names}
            if all(array is not None for array in arrays.values()):
                known = within(self._parameters, rule)
                self._model.write(to_implementation([rule], arrays, known, self._sizes))  # type: ignore[arg-type]

    def _array(self, name: str) -> Array | None:
        if name in self._silent:
            return np.zeros(self._parameters[name].shape, np.float32)
        array = self._read(name)
        if array is None:
            return None
        array = self._scene.cut(name, array)
        return array * self._scale[name] if name in self._scale else array


def compared(
    theirs: Mapping[str, Array], ours: Mapping[str, Array], allowed: float, *, probabilities: bool
) -> Iterator[PartComparison]:
    """Compare what both said, in the order of computation, the whole at the end.

    With `probabilities`, one side returns log-probabilities: both are compared as such.
    """
    last = [name for name in (QUIET, WHOLE) if name in theirs]
    for part in [*(p for p in reversed(list(theirs)) if p not in last), *last]:
        one, other = (log_softmax(a) if probabilities else a for a in (theirs[part], ours[part]))
        scale = max(float(np.abs(one).max(initial=0.0)), 1e-30)
        error = float(np.abs(one - other).max(initial=0.0)) / scale if one.shape == other.shape else np.inf
        yield PartComparison(part, error if np.isfinite(error) else np.inf, allowed)


def allowed_error(sides: Sequence[Side], dtype: str) -> float:
    """Return what rounding may do: little in float64, if both sides compute in it throughout."""
    if dtype == "float64":
        return tolerance("float64", 5) if all(side.exact for side in sides) else tolerance("float32", 2)
    return tolerance("float32", 5)


def drawn_weights(parameters: Mapping[str, Parameter], seed: int) -> dict[str, Array]:
    """Draw canonical weights: norms around one, nothing else special."""
    draw = Draw(seed, "port")
    weights = draw.weights(parameters)
    return {name: np.asarray(array, np.float64) for name, array in weights.items()}
