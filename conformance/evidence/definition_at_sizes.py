"""A component compared with its definition at every size of a clause's domain."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import check_close, part_of
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import FOLLOWING, Case, Coverage, Domain
from conformkit.conformance.binding.sizes import NoSizeError, within
from conformkit.conformance.driver.client.beside import beside
from conformkit.conformance.evidence.at_sizes import check_at_sizes
from conformkit.conformance.evidence.writers_at_sizes import LAYERS, layers_of
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.spec.arrays import Array

__all__ = ["Built", "Padded", "check_definition_at_sizes", "multiplications", "nearest", "with_last"]

Inputs = tuple[Array, ...]
Padded = Callable[[Instance, Inputs, Draw], tuple[Inputs, Any]]
"""Returns inputs some of whose positions are padding, and the index of the part of the output that is compared."""

_LARGEST_WIDTH = 768
_WIDE_HEAD = 128
"""Without a causal mask no head is wider: the weights of the widest cost most."""
_MOST_NUMBERS = 5_000_000
_SHALLOW = 2
"""Layers in half precision: after a dozen, rounding is as large as the result."""
_NUMBER = 300.0
"""A weight or an input is drawn, sent and stored: as costly as some hundred multiplications."""
_SCORE = 300.0
"""So is an entry of the softmax, in each head."""
_ACTIVATION = 400.0
"""So is a number that an activation function is applied to."""
_DROPOUT = 0.25
_ANGLES = 128
"""Positions up to which an angle in float32 is exact enough: it is off by its position times a rounding."""
_VOCABULARIES = ("vocab_size", "src_vocab_size", "tgt_vocab_size")
_READ = {"ids": "vocab_size", "src": "src_vocab_size", "tgt": "tgt_vocab_size", "segments": "num_segments"}
"""By the name of an input of ids, the size of its vocabulary."""
_INPUTS = frozenset({"tokens", "keys", "batch", "head_width", "patches_per_side"})
"""Sizes of a case that no constructor takes."""


class Built:
    """Constructs a component for each case, once for all cases that differ in their inputs only."""

    def __init__(self, subject: Subject, draw: Draw, **options: Any) -> None:
        self._subject, self._draw, self._options = subject, draw, options
        self._last: tuple[dict[str, int], Instance] | None = None
        self._attempt = draw.attempt

    def __call__(self, sizes: Case) -> Instance:
        """Return it with random weights that depend on the sizes alone."""
        wanted = constructed(sizes)
        if self._last is None or self._last[0] != wanted or self._attempt != self._draw.attempt:
            arguments: dict[str, Any] = {**wanted, **self._options}
            self._check_affordable(arguments)
            instance = self._subject.build(**arguments).randomize(self._draw.at(wanted))
            self._last, self._attempt = (wanted, instance), self._draw.attempt
        return self._last[1]

    def _check_affordable(self, arguments: dict[str, Any]) -> None:
        """Raise NoSizeError if a variant has many more weights at these sizes than usual."""
        bound = self._subject.bound
        found = bound.component.parameters(self._subject.sizes(**arguments), self._subject.variant)
        if sum(math.prod(parameter.shape) for parameter in found.values()) > _MOST_NUMBERS:
            raise NoSizeError("sizes", f"more than {_MOST_NUMBERS:,} weights are not drawn")

    def renew(self) -> None:
        """Construct anew the next time: the worker was lost."""
        self._last = None


def _by_angles(subject: Subject, sizes: Case) -> float:
    """Return how many times as far off angles in float32 are at the last position as elsewhere."""
    if subject.precision != "float32" or subject.variant.positions not in {"sinusoidal", "rotary"}:
        return 1.0
    return max(1.0, max(sizes.get("tokens", 0), sizes.get("keys", 0)) / _ANGLES)


def constructed(sizes: Case) -> dict[str, int]:
    """Return the sizes that a constructor takes."""
    wanted = {name: size for name, size in sizes.items() if name not in _INPUTS}
    if "head_width" in sizes:
        wanted["d_model"] = sizes["head_width"] * sizes["num_heads"]
    if "patches_per_side" in sizes:
        wanted["image_size"] = sizes["patches_per_side"] * sizes["patch_size"]
    return wanted


def nearest(subject: Subject, sizes: Case) -> dict[str, int]:
    """Return the sizes within the component's limits that are nearest to these. Raises NoSizeError."""
    limits, sizes = subject.bound.limits, _fitting(sizes)
    found = subject.sizes(**constructed(sizes))
    allowed = within({name: sizes[name] for name in ("batch", "tokens", "keys") if name in sizes}, limits)
    longest = min((found[length] for length in FOLLOWING if length in found), default=None)
    if longest is not None:
        allowed |= {name: min(allowed[name], longest) for name in ("tokens", "keys") if name in allowed}
    if "head_width" in sizes:
        allowed["head_width"] = found["d_model"] // found["num_heads"]
    if "patches_per_side" in sizes:
        allowed["patches_per_side"] = found["image_size"] // found["patch_size"]
    return {name: allowed[name] if name in allowed else int(found[name]) for name in sizes}


def _fitting(sizes: Case) -> dict[str, int]:
    """Return the same sizes, with room for all positions and no more heads than fit into the largest width."""
    found = dict(sizes)
    for name in FOLLOWING:
        if name in found:
            found[name] = max(found[name], found["tokens"], found.get("keys", 0))
    if "head_width" in found:
        found["num_heads"] = max(1, min(found["num_heads"], _LARGEST_WIDTH // found["head_width"]))
        if "src_vocab_size" in found:  # an odd width is a matter of the positions' own clauses
            found["head_width"] += found["head_width"] * found["num_heads"] % 2
    return found


def check_definition_at_sizes(
    subject: Subject, draw: Draw, *, after: str, depth: int = 1, domain: Domain | None = None,
    coverage: Coverage = "every band", padded: Padded | None = None, plain: bool = True, **options: Any,
) -> None:  # fmt: skip
    """Compare the output with the definition's at sizes all over the clause's domain, for drawn weights and inputs.

    What can be causal or not is both. `after` is the clause that compares small ones; `depth` is the number of
    components that a result passes through, for each layer if there are layers; `padded` makes a second comparison
    if masks are taken, in which some positions are padding, the only one if not `plain`; `options` are further
    constructor arguments.
    """
    domain = domain or draw.domain
    if subject.half:
        domain = _capped(domain, dict.fromkeys(LAYERS, _SHALLOW))
    if subject.offers("dropout"):
        options = {"dropout": _DROPOUT, **options}  # nothing is dropped in eval mode, at no size
    built = Built(subject, draw, **options)
    hides = padded is not None and (subject.offers("masks") or not plain)

    def check(sizes: Case) -> None:
        instance = built(sizes)
        own = draw.at(sizes)
        inputs = drawn_inputs(instance, own, sizes)
        layers = layers_of(sizes)
        tolerance = subject.tolerance(depth * layers) * _by_angles(subject, sizes)
        if plain:
            check_close("output", *_both(instance, inputs), tolerance)
        if hides and padded is not None:
            inputs, real = padded(instance, inputs, own)
            got, want = _both(instance, inputs)
            check_close("output, with padding,", got[real], part_of(want, real), tolerance)

    def cost(sizes: Case) -> float:
        return multiplications(sizes) * (plain + hides)

    check_at_sizes(
        draw, check, cost, lambda sizes: nearest(subject, sizes), after=after, domain=domain,
        coverage=coverage, renew=built.renew,
    )  # fmt: skip
    if options.get("causal", True) and _either_way(subject):
        check_definition_at_sizes(
            subject, draw, after=after, depth=depth, domain=_capped(domain, {"head_width": _WIDE_HEAD}),
            coverage="marks and last bands", padded=padded, plain=plain, **{**options, "causal": False},
        )  # fmt: skip


def _both(instance: Instance, inputs: Inputs) -> tuple[Array, Array]:
    """Return its output and the definition's, which is computed meanwhile."""
    return beside(lambda: instance(*inputs), lambda: instance.expected(*inputs))


def _either_way(subject: Subject) -> bool:
    """Whether it is built causal or not, as the definition is; what has no such argument would be compared twice."""
    chosen = any(argument.name == "causal" for argument in subject.bound.component.arguments)
    return chosen and subject.offers("causal-on") and subject.offers("causal-off")


def _capped(domain: Domain, most: Mapping[str, int]) -> Domain:
    """Return a domain in which these sizes end earlier."""
    return {name: (low, max(low, min(high, most.get(name, high)))) for name, (low, high) in domain.items()}


def drawn_inputs(instance: Instance, draw: Draw, sizes: Case) -> tuple[Array, ...]:
    """Return inputs of a case; ids have the last one of the vocabulary among them."""
    tokens = sizes.get("tokens", 1)
    further = sizes.get("keys", tokens) - tokens
    inputs = instance.example_inputs(draw, batch=sizes["batch"], tokens=tokens, further=further)
    for name, array in zip(instance.subject.bound.component.inputs, inputs, strict=False):
        if np.issubdtype(array.dtype, np.integer):
            pad_id = None if name == "segments" else instance.sizes.get("pad_id")
            with_last(array, instance.sizes[_READ[name]], draw, pad_id)
    return inputs


def with_last(ids: Array, size: int, draw: Draw, pad_id: int | None = None) -> Array:
    """Write the last id of a vocabulary that is no padding to some place of ids (B, T)."""
    last = size - 1 if pad_id != size - 1 else max(size - 2, 0)
    ids[draw.integer(0, ids.shape[0] - 1), draw.integer(0, ids.shape[1] - 1)] = last
    return ids


def multiplications(sizes: Case) -> float:
    """Estimate the cost of building a component of these sizes and calling it, its weights included."""
    width = sizes.get("d_model") or sizes.get("head_width", 8) * sizes.get("num_heads", 1)
    if "d_k" in sizes:
        width = (sizes["d_k"] + sizes["d_v"]) // 2
    layers = layers_of(sizes)
    inner = sizes.get("d_ff", 0)
    rows = sum(sizes.get(name, 0) for name in _VOCABULARIES)
    attention = 4 * width * width if "num_heads" in sizes else 0
    if "d_k" in sizes:
        attention = 2 * width * sizes.get("d_model", 0)
    weights = layers * (attention + 2 * width * inner) + rows * width
    pixels = (
        sizes["batch"] * (sizes.get("patches_per_side", 0) * sizes.get("patch_size", 0)) ** 2 * sizes.get("channels", 0)
    )
    positions = sizes["batch"] * max(_tokens(sizes), sizes.get("keys", 0))
    scores = sizes["batch"] * _scores(sizes) * (2 * width + _SCORE * sizes.get("num_heads", 1))
    return float(
        positions * (weights + _ACTIVATION * layers * inner)
        + scores
        + _NUMBER * (weights + positions * width + pixels)
        + pixels * width
    )


def _tokens(sizes: Case) -> int:
    """Return the number of positions; of an image, its patches and the class token."""
    return sizes["tokens"] if "tokens" in sizes else sizes["patches_per_side"] ** 2 + 1


def _scores(sizes: Case) -> int:
    """Return how many pairs of positions attend to one another in all layers, for one head and one sequence."""
    own, layers = _tokens(sizes) ** 2, sizes.get("num_layers", 1)
    if "keys" not in sizes:
        return layers * own
    across = sizes["tokens"] * sizes["keys"]
    if "num_encoder_layers" in sizes:
        return sizes["num_encoder_layers"] * sizes["keys"] ** 2 + sizes["num_decoder_layers"] * (own + across)
    return layers * (own + across) if "d_ff" in sizes else across
