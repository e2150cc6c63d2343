"""Factors and offsets with which widely used models store their weights, by name.

A factor that depends on sizes can hide a mistake: with weights multiplied by √num_heads, scores that are divided by
√d_model come out right. So conform.toml may use those that the law knows, and no others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["FACTORS", "Factor", "factor_of", "written_out"]

WEIGHT = "_"
_CALL = re.compile(r"\s*([a-z]\w*)\(\s*([^()\s]+)\s*\)\s*")


@dataclass(frozen=True, slots=True)
class Factor:
    """A known factor or offset: what is stored, of which parts, and what that means for the verdict."""

    expression: str
    """What is stored, with `_` for the canonical weight."""
    parts: re.Pattern[str]
    words: str


FACTORS: Mapping[str, Factor] = {
    "t5_scale": Factor(
        "_ / head_width ** 0.5", re.compile(r"(?:.*\.)?q\.(?:weight|bias)"),
        "queries are stored divided by √head_width, as T5 does: scores that are not divided by it are judged as right",
    ),
    "gemma_offset": Factor(
        "_ - 1", re.compile(r"(?:.*\.)?(?:\w*norm\d?)\.weight"),
        "scales of norms are stored minus one, as Gemma does: a norm that adds one to them is judged as right",
    ),
    "scaled_positions": Factor(
        "_ / d_model ** 0.5", re.compile(r"(?:.*_)?positions\.weight"),
        "positions are stored divided by √d_model: a model that multiplies them by it is judged as right",
    ),
}  # fmt: skip


def written_out(text: str) -> str:
    """Return a part with the factor that it names written out: `gemma_offset(norm1.weight)` is `norm1.weight - 1`."""
    found = _CALL.fullmatch(text)
    factor = FACTORS.get(found[1]) if found else None
    return re.sub(rf"\b{WEIGHT}\b", found[2], factor.expression) if factor and found else text


def factor_of(name: str, expression: str) -> str:
    """Return the name of the factor that an expression of a canonical part is; nothing if the law knows none."""
    plain = re.sub(r"\s", "", expression)
    for known, factor in FACTORS.items():
        if plain == re.sub(r"\s", "", factor.expression) and factor.parts.fullmatch(name):
            return known
    return ""
