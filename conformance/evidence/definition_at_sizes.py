"""A component compared with its definition at every size of a clause's domain."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import check_close
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import FOLLOWING, Domain, Sizes
from conformkit.conformance.binding.sizes import within
from conformkit.conformance.evidence.at_sizes import check_at_sizes
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.spec.arrays import Array

__all__ = ["Built", "check_definition_at_sizes", "multiplications"]

_LARGEST_WIDTH = 768
_NUMBER = 300.0
"""A weight is drawn, sent and stored: as costly as some hundred multiplications."""
_SCORE = 300.0
"""So is an entry of the softmax, in each head."""
_ACTIVATION = 400.0
"""So is a number that an activation function is applied to."""
_LAYERS = ("num_layers", "num_encoder_layers", "num_decoder_layers")
_INPUTS = frozenset({"tokens", "keys", "batch", "head_width"})
"""Sizes of a case that no constructor takes."""


class Built:
    """Constructs a component for each case, once for all cases that differ in their inputs only."""

    def __init__(self, subject: Subject, draw: Draw, **options: Any) -> None:
        self._subject, self._draw, self._options = subject, draw, options
        self._last: tuple[dict[str, int], Instance] | None = None

    def __call__(self, sizes: Sizes) -> Instance:
        """Return it with random weights that depend on the sizes alone."""
        wanted = constructed(sizes)
        if self._last is None or self._last[0] != wanted:
            arguments: dict[str, Any] = {**wanted, **self._options}
            instance = self._subject.build(**arguments).randomize(self._draw.at(wanted))
            self._last = wanted, instance
        return self._last[1]


def constructed(sizes: Sizes) -> dict[str, int]:
    """Return the sizes that a constructor takes."""
    wanted = {name: size for name, size in sizes.items() if name not in _INPUTS}
    if "head_width" in sizes:
        wanted["d_model"] = sizes["head_width"] * sizes["num_heads"]
    return wanted


def nearest(subject: Subject, sizes: Sizes) -> dict[str, int]:
    """Return the sizes within the component's limits that are nearest to these. Raises NoSizeError."""
    limits, sizes = subject.bound.limits, _fitting(sizes)
    found = subject.sizes(**constructed(sizes))
    allowed = within({name: sizes[name] for name in ("batch", "tokens", "keys") if name in sizes}, limits)
    longest = min((found[length] for length in FOLLOWING if length in found), default=None)
    if longest is not None:
        allowed |= {name: min(allowed[name], longest) for name in ("tokens", "keys") if name in allowed}
    if "head_width" in sizes:
        allowed["head_width"] = found["d_model"] // found["num_heads"]
    return {name: allowed[name] if name in allowed else int(found[name]) for name in sizes}


def _fitting(sizes: Sizes) -> dict[str, int]:
    """Return the same sizes, with room for all positions and no more heads than fit into the largest width."""
    found = dict(sizes)
    for name in FOLLOWING:
        if name in found:
            found[name] = max(found[name], found["tokens"])
    if "head_width" in found:
        found["num_heads"] = max(1, min(found["num_heads"], _LARGEST_WIDTH // found["head_width"]))
    return found


def check_definition_at_sizes(
    subject: Subject, draw: Draw, *, after: str, depth: int = 1, domain: Domain | None = None, coarse: bool = False,
    **options: Any,
) -> None:  # fmt: skip
    """Compare the output with the definition's at sizes all over the clause's domain, for drawn weights and inputs.

    `after` is the clause that compares small ones; `depth` is the number of components that a result passes through,
    for each layer if there are layers; `options` are further constructor arguments.
    """
    built = Built(subject, draw, **options)

    def check(sizes: Sizes) -> None:
        instance = built(sizes)
        inputs = drawn_inputs(instance, draw.at(sizes), sizes)
        layers = sum(sizes.get(name, 0) for name in _LAYERS) or 1
        check_close("output", instance(*inputs), instance.expected(*inputs), subject.tolerance(depth * layers))

    check_at_sizes(
        draw, check, multiplications, lambda sizes: nearest(subject, sizes), after=after, domain=domain or draw.domain,
        coarse=coarse,
    )  # fmt: skip


def drawn_inputs(instance: Instance, draw: Draw, sizes: Sizes) -> tuple[Array, ...]:
    """Return inputs of a case; ids have the last one of the vocabulary among them."""
    further = sizes.get("keys", sizes["tokens"]) - sizes["tokens"]
    inputs = instance.example_inputs(draw, batch=sizes["batch"], tokens=sizes["tokens"], further=further)
    for ids in (array for array in inputs if np.issubdtype(array.dtype, np.integer)):
        ids[draw.integer(0, ids.shape[0] - 1), draw.integer(0, ids.shape[1] - 1)] = ids.max(initial=0)
    if "vocab_size" in sizes:
        ids = inputs[0]
        ids[draw.integer(0, ids.shape[0] - 1), draw.integer(0, ids.shape[1] - 1)] = sizes["vocab_size"] - 1
    return inputs


def multiplications(sizes: Sizes) -> float:
    """Estimate the cost of building a component of these sizes and calling it, its weights included."""
    width = sizes.get("d_model") or sizes.get("head_width", 8) * sizes.get("num_heads", 1)
    if "d_k" in sizes:
        width = (sizes["d_k"] + sizes["d_v"]) // 2
    layers = sum(sizes.get(name, 0) for name in _LAYERS) or 1
    inner = sizes.get("d_ff", 0)
    rows = sum(sizes.get(name, 0) for name in ("vocab_size", "src_vocab_size", "tgt_vocab_size"))
    attention = 4 * width * width if "num_heads" in sizes or "d_ff" not in sizes else 0
    weights = layers * (attention + 2 * width * inner) + rows * width
    positions = sizes["batch"] * sizes["tokens"]
    scores = layers * positions * sizes.get("keys", sizes["tokens"]) * (2 * width + _SCORE * sizes.get("num_heads", 1))
    return float(positions * (weights + _ACTIVATION * layers * inner) + scores + _NUMBER * weights)
