"""What a test of the suite may ask for, by argument name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from conformkit.conformance.evidence.checks import check_shape
from conformkit.conformance.evidence.draws import Draw
from conformkit.conformance.implementation import Implementation
from conformkit.conformance.subject import Gradients, Instance, Outcome, Subject
from conformkit.fixtures import Golden, goldens

__all__ = ["PROVIDERS", "Attend", "components_asked", "provide"]

Array = npt.NDArray[Any]


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

    def __call__(self, q: Array, k: Array, v: Array, mask: Array | None = None, **options: Any) -> Array:
        """Return the output (…, Tq, dv), its shape checked."""
        out = self.call(q, k, v, mask, **options).out
        check_shape("output", out, (*np.broadcast_shapes(q.shape[:-2], k.shape[:-2]), q.shape[-2], v.shape[-1]))
        return out

    def call(self, q: Array, k: Array, v: Array, mask: Array | None = None, **options: Any) -> Outcome:
        """Call and return everything observed; options as for `Instance.call`."""
        return self.instance.call(q, k, v, mask, **options)

    def weights(self, q: Array, k: Array, mask: Array | None = None) -> Array:
        """Return the attention weights (…, Tq, Tk), made visible by passing the identity as values."""
        identity = np.broadcast_to(np.eye(k.shape[-2]), (*k.shape[:-2], k.shape[-2], k.shape[-2]))
        return self(q, k, np.ascontiguousarray(identity), mask)

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
        """Return the output for stored inputs, and the one that is wanted."""
        leading = () if self.subject.offers("any-rank") else self.leading(1)
        stored = (*(golden.inputs[name] for name in "qkv"), golden.expected)
        q, k, v, want = (np.broadcast_to(array, (*leading, *array.shape)).copy() for array in stored)
        return self(q, k, v, golden.inputs.get("mask")), want

    def tolerance(self, depth: int = 1) -> float:
        """The relative error allowed."""
        return self.subject.tolerance(depth)


_ASKED = {
    "attend": "ScaledDotProductAttention", "self_attention": "SelfAttention", "multi_head": "MultiHeadAttention",
    "feed_forward": "FeedForward", "positions": "PositionalEncoding", "block": "TransformerBlock",
    "model": "TinyTransformerLM",
    "cross_attention": "CrossAttention", "token_embedding": "TokenEmbedding", "encoder_layer": "EncoderLayer",
    "decoder_layer": "DecoderLayer", "encoder": "Encoder", "decoder": "Decoder", "transformer": "Transformer",
}  # fmt: skip


def _component(name: str) -> Callable[[Implementation, Draw], Subject]:
    return lambda implementation, _draw: implementation.subject(name)


def _goldens(_implementation: Implementation, _draw: Draw) -> Callable[[str], list[Golden]]:
    return goldens


PROVIDERS: Mapping[str, Callable[[Implementation, Draw], Any]] = {
    "draw": lambda _implementation, draw: draw,
    **{argument: _component(name) for argument, name in _ASKED.items()},
    "attend": lambda implementation, _draw: Attend(implementation.subject("ScaledDotProductAttention")),
    "every": lambda implementation, _draw: implementation.subjects(),
    "goldens": _goldens,
}
"""`every` is the list of all components that the implementation has, for clauses that concern each of them."""


def components_asked(names: tuple[str, ...]) -> set[str]:
    """Return the components that a test asks for by these arguments."""
    return {_ASKED[name] for name in names if name in _ASKED}


def provide(names: tuple[str, ...], implementation: Implementation, draw: Draw) -> dict[str, Any]:
    """Return what a test asked for."""
    return {name: _provider(name)(implementation, draw) for name in names}


def _provider(name: str) -> Callable[[Implementation, Draw], Any]:
    if name in PROVIDERS:
        return PROVIDERS[name]
    from conformkit.conformance.tool_providers import TOOL_PROVIDERS  # noqa: PLC0415 - core does without

    return TOOL_PROVIDERS[name]
