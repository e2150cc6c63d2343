"""What a test of the suite may request, by argument name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.size_jitter import SizeJitter
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.subject.attention import Attend
from conformkit.conformance.subject.component import Subject
from conformkit.fixtures import Golden, goldens

__all__ = ["PROVIDERS", "components_asked", "provide"]

_ASKED = {
    "attend": "ScaledDotProductAttention", "self_attention": "SelfAttention", "multi_head": "MultiHeadAttention",
    "feed_forward": "FeedForward", "positions": "PositionalEncoding", "block": "TransformerBlock",
    "model": "TinyTransformerLM",
    "cross_attention": "CrossAttention", "token_embedding": "TokenEmbedding", "encoder_layer": "EncoderLayer",
    "decoder_layer": "DecoderLayer", "encoder": "Encoder", "decoder": "Decoder", "transformer": "Transformer",
    "bert_embeddings": "BertEmbeddings", "bert_model": "BertModel", "pretraining": "BertForPreTraining",
    "patch_embedding": "PatchEmbedding", "vision": "VisionTransformer",
}  # fmt: skip


def _component(name: str) -> Callable[[Implementation, Draw], Subject]:
    return lambda implementation, draw: implementation.subject(name).shifted(draw.size_jitter())


def _every(implementation: Implementation, jitter: SizeJitter) -> list[Subject]:
    return [subject.shifted(jitter) for subject in implementation.subjects()]


def _goldens(_implementation: Implementation, _draw: Draw) -> Callable[[str], list[Golden]]:
    return goldens


PROVIDERS: Mapping[str, Callable[[Implementation, Draw], Any]] = {
    "draw": lambda _implementation, draw: draw,
    **{argument: _component(name) for argument, name in _ASKED.items()},
    "attend": lambda implementation, _draw: Attend(implementation.subject("ScaledDotProductAttention")),
    "every": lambda implementation, draw: _every(implementation, draw.size_jitter()),
    "goldens": _goldens,
}
"""`every` is the list of all components that the implementation has, for clauses that concern each of them."""


def components_asked(names: tuple[str, ...]) -> set[str]:
    """Return the components that a test requests by these arguments."""
    return {_ASKED[name] for name in names if name in _ASKED}


def provide(names: tuple[str, ...], implementation: Implementation, draw: Draw) -> dict[str, Any]:
    """Return what a test requests."""
    return {name: _provider(name)(implementation, draw) for name in names}


def _provider(name: str) -> Callable[[Implementation, Draw], Any]:
    if name in PROVIDERS:
        return PROVIDERS[name]
    from conformkit.conformance.engine.tool_providers import TOOL_PROVIDERS  # noqa: PLC0415 - core does without

    return TOOL_PROVIDERS[name]
