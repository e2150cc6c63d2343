"""Models that are too large to be built as a whole: compared block by block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from conformkit.conformance.apps.port.proof import EMBEDDING, Questions, Read, said
from conformkit.conformance.apps.port.sides import Side
from conformkit.spec.arrays import Array

__all__ = ["BLOCKWISE", "said_in_blocks"]

BLOCKWISE = 600_000_000
"""Numbers from which a model is not built as a whole."""


def said_in_blocks(side: Side, sizes: Mapping[str, Any], scene: Questions, read: Read) -> dict[str, Array]:
    """Return what one side says with each of its blocks alone, in a model of one layer; see `said`."""
    found: dict[str, Array] = {}
    alone = {**sizes, "num_layers": 1}
    for layer in reversed(range(sizes["num_layers"])):

        def shifted(name: str, layer: int = layer) -> Array | None:
            return read(name.replace("blocks.0.", f"blocks.{layer}."))

        each = said(side, alone, replace(scene, quiet=False), shifted)
        parts = {part: array for part, array in each.items() if part.startswith("blocks.0.")}
        found |= {part.replace("blocks.0.", f"blocks.{layer}."): array for part, array in parts.items()}
        if layer == 0:
            found[EMBEDDING] = each[EMBEDDING]
    return found
