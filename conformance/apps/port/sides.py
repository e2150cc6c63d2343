"""The two sides of a conversion, whatever they are: a variant, rules for weights, models of any size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from conformkit.conformance.binding.expressions import evaluate
from conformkit.conformance.binding.patterns import single_rules
from conformkit.conformance.binding.rules import Rule
from conformkit.conformance.binding.sizes import derived_names
from conformkit.spec.arrays import Array
from conformkit.spec.components import COMPONENTS, Parameter
from conformkit.spec.variants import Variant

__all__ = ["ARGUMENTS", "HEADS", "LANGUAGE_MODEL", "Model", "Side", "head_sizes", "parameters_of", "rules_at"]

LANGUAGE_MODEL = COMPONENTS["TinyTransformerLM"]
ARGUMENTS = tuple(a.name for a in LANGUAGE_MODEL.arguments if a.name != "dropout")
"""The sizes of a model."""
HEADS = ("kv_heads", "head_width")
"""Sizes that follow from others by the variant, unless a constructor takes them."""


def head_sizes(variant: Variant, sizes: Mapping[str, Any]) -> dict[str, int]:
    """Return the sizes of heads at these sizes, and those of latents where there are any. Raises ExpressionError."""
    own = {name: int(evaluate(getattr(variant, name), sizes)) for name in HEADS}
    if variant.has_latent:
        beside = sorted(derived_names(variant) - {*HEADS})
        own |= {name: int(evaluate(getattr(variant, name), {**sizes, **own})) for name in beside}
    return own


class Model(Protocol):
    """A model of some sizes, whose weights can be set by their own names."""

    def write(self, arrays: Mapping[str, Array]) -> None:
        """Set some of its weights. Raises Unportable."""

    def logits(self, ids: Array) -> Array:
        """Return (B, T, V) for ids (B, T). Raises Unportable."""

    def close(self) -> None:
        """Release its memory."""


class Side(Protocol):
    """One side: its variant, and where canonical weights are in its own."""

    @property
    def title(self) -> str:
        """What it is called in messages."""

    @property
    def variant(self) -> Variant:
        """The choices with which it computes."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Where canonical weights are in its own."""

    @property
    def exact(self) -> bool:
        """Whether it computes in float64 throughout."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know about it."""

    @property
    def free(self) -> frozenset[str]:
        """Which of kv_heads and head_width can be any number."""

    def sizes(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Return sizes that it takes, near those wanted. Raises Unportable."""

    def at(self, sizes: Mapping[str, Any]) -> dict[str, Any]:
        """Return exactly these sizes, with its own heads where they are not free. Raises Unportable."""

    def ignored(self, name: str) -> bool:
        """Whether a tensor of its checkpoints is no parameter."""

    def others(self, sizes: Mapping[str, Any]) -> Mapping[str, str]:
        """Return further names in its checkpoints: of buffers, and of tied weights with the name of the same tensor."""

    def model(self, sizes: Mapping[str, Any], dtype: str) -> Model:
        """Build a model of these sizes. Raises Unportable."""


def parameters_of(side: Side, sizes: Mapping[str, Any]) -> dict[str, Parameter]:
    """Return the canonical parameters of a side at these sizes."""
    return LANGUAGE_MODEL.parameters(sizes, side.variant)


def rules_at(side: Side, sizes: Mapping[str, Any]) -> list[Rule]:
    """Return the rules of a side, one for each layer, without those about parameters that its variant lacks."""
    known = parameters_of(side, sizes)
    kept = [
        rule for rule in side.rules
        if rule.subtree or all(part.name.replace("{i}", "0") in known for part in rule.parts)
    ]  # fmt: skip
    return list(single_rules(kept, known))
