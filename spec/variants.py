"""Legitimate choices that clauses depend on, and their canonical values.

A variant is declared in `conform.toml`; what is not declared is canonical. An implementation that differs from its
declared variant is wrong, however common its choice is elsewhere. Only `FREE` choices need no declaration: what is not
declared is what the implementation does.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, get_args, get_type_hints

from conformkit.spec.choices.attention import OfAttention
from conformkit.spec.choices.feed_forward import OfFeedForward
from conformkit.spec.choices.latents import OfLatents
from conformkit.spec.choices.model import OfModel
from conformkit.spec.choices.norms import OfNorms
from conformkit.spec.choices.positions import OfPositions
from conformkit.spec.choices.projections import OfProjections
from conformkit.spec.choices.record import ChoiceRecord
from conformkit.spec.choices.rotary import OfRotary
from conformkit.spec.choices.sampling import OfSampling

__all__ = [
    "BASES", "BERT", "CANONICAL", "FAMOUS", "FREE", "LATENTS", "VIT", "Variant", "alternatives", "choices", "described",
    "records",
]  # fmt: skip


@dataclass(frozen=True)
class Variant(
    OfSampling, OfModel, OfRotary, OfPositions, OfAttention, OfLatents, OfProjections, OfFeedForward, OfNorms
):
    """One value for every choice; the fields stand with their records in `choices/`, those of the last base first.

    Expressions are over the constructor arguments of the contract (`d_model`, `num_heads`, …).
    """

    def but(self, **changes: Any) -> Variant:
        """Return a copy with some choices changed."""
        if unknown := changes.keys() - self.__dict__.keys():
            raise TypeError(f"there is no choice {', '.join(sorted(unknown))}")
        copy = object.__new__(Variant)  # __init__ takes ten times as long, and searches make thousands
        copy.__dict__.update(self.__dict__, **changes)
        return copy

    @property
    def plain_gamma(self) -> float:
        """The weight of a norm with which it multiplies by 1."""
        return 0.0 if self.norm_weight == "offset" else 1.0

    @property
    def shifts(self) -> bool:
        """Whether norms add β."""
        return self.norm == "layernorm" and self.norm_bias and self.norm_weight != "none"

    def of_layer(self, layer: int) -> Variant:
        """Return the variant of one of a model's blocks, counted from 0: some may have a window, others not."""
        sees_all = {"all": False, "even": layer % 2 == 1, "odd": layer % 2 == 0, "5 of 6": layer % 6 == 5}
        return self.but(window=0) if self.window and sees_all[self.window_layers] else self

    @property
    def shares_table(self) -> bool:
        """Whether a model's blocks have one table of relative positions together."""
        return self.positions == "relative" and self.relative_shared

    @property
    def has_latent(self) -> bool:
        """Whether keys and values come from a latent."""
        return self.latent != "0"

    @property
    def turning(self) -> Variant:
        """The variant whose rotary choices hold in this layer: layers with the window may have a base of their own."""
        if not (self.window and self.window_rotary_base):
            return self
        return self.but(rotary_base=self.window_rotary_base, rotary_scaling="none", window_rotary_base=0.0)

    def meets(self, choice: str, wanted: str) -> bool:
        """Whether a choice has one of the values `a | b`, or none of those of `not a | b`, as clauses write them."""
        value = getattr(self, choice)
        said = str(value).lower() if isinstance(value, bool) else str(value)
        listed = [one.strip() for one in wanted.removeprefix("not ").split("|")]
        return (said in listed) != wanted.startswith("not ")

    def differences(self, base: Variant | None = None) -> dict[str, Any]:
        """Return the choices that are not canonical, or not those of a base, by name."""
        canonical = {f.name: f.default if base is None else getattr(base, f.name) for f in fields(self)}
        return {name: getattr(self, name) for name, value in canonical.items() if getattr(self, name) != value}


CANONICAL = Variant()
LATENTS = ("latent", "query_latent", "rotary_width", "value_width")
"""The widths that attention with a latent has besides those of others, expressions over sizes."""


@functools.cache
def records() -> Mapping[str, ChoiceRecord]:
    """Return the record of each choice."""
    return {field.name: field.metadata["choice"] for field in fields(Variant)}


FREE = tuple(name for name, record in records().items() if record.free)
"""Choices of which either is right where nothing is declared: GPT-2's and Llama's heads have no bias, others do."""


@functools.cache
def choices() -> Mapping[str, tuple[Any, ...] | type]:
    """Return, for each choice, the admissible values, or their type if they are open."""
    hints = get_type_hints(Variant)
    return {name: get_args(hint) or hint for name, hint in hints.items()}


def alternatives(choice: str, value: Any) -> tuple[Any, ...]:
    """Return other values of a choice: all values of a closed choice, common values of an open one."""
    kind = choices()[choice]
    default = getattr(CANONICAL, choice)
    known = kind if isinstance(kind, tuple) else (True, False) if kind is bool else (default, *records()[choice].in_use)
    return tuple(other for other in known if other != value)


_LLAMA = Variant(
    norm="rmsnorm", activation="silu", gated=True, ffn_bias=False, kv_heads="num_heads // 4", positions="rotary",
    rotary_layout="halves", head_bias=False,
)  # fmt: skip

FAMOUS: Mapping[str, Variant] = {
    "gpt2": Variant(
        activation="gelu_tanh", qkv_bias=True, output_bias=True, positions="learned", tied=True, head_bias=False
    ),
    "nanogpt": Variant(norm_bias=False, ffn_bias=False, positions="learned", tied=True, head_bias=False),
    "llama": _LLAMA,
    "qwen": _LLAMA.but(norm_eps=1e-6, qkv_bias=True, rotary_base=1e6),
    "gemma": _LLAMA.but(
        norm_eps=1e-6, activation="gelu_tanh", kv_heads="1", head_width="2 * d_model // num_heads",
        embedding_scale=True, tied=True,
    ),
    "bert": Variant(
        norm_eps=1e-12, placement="post", qkv_bias=True, output_bias=True, positions="learned", embedding_norm=True,
        final_norm=False, tied=True,
    ),
    "vaswani": Variant(
        placement="post", activation="relu", qkv_bias=True, output_bias=True, embedding_scale=True, final_norm=False,
        tied=True,
    ),
    "annotated": Variant(
        norm_eps=1e-6, norm_deviation="sample", activation="relu", qkv_bias=True, output_bias=True,
        embedding_scale=True,
    ),
}  # fmt: skip
"""The choices of well-known models, by the usual names of their styles."""

BERT = FAMOUS["bert"]
"""What is canonical in profile encoder. Source: Devlin et al. 2019, and the code published with it."""
VIT = Variant(qkv_bias=True, output_bias=True, positions="learned")
"""What is canonical in profile vit. Source: Dosovitskiy et al. 2021, §3.1, which names no epsilon."""
BASES: Mapping[str, Variant] = {"encoder": BERT, "vit": VIT}
"""The canonical choices of profiles in which they are not CANONICAL."""


def described(choice: str, value: Any) -> str:
    """Return the name of a choice in a sentence: `ReLU`, `post-norm`, `norm_eps = 1e-6`."""
    return records()[choice].words.get(value) or f"{choice} = {_number(value) if isinstance(value, float) else value}"


def _number(value: float) -> str:
    """Write 1e-06 as 1e-6."""
    return re.sub(r"e([-+])0*", lambda e: "e" + e[1].strip("+"), f"{value:g}")
