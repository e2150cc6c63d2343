"""Low-rank adapters: small matrices that are trained beside those of the definition, whose product is added to one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["adapters"]

_SAYS = re.compile(r"(?:^|[._])lora|adapter", re.IGNORECASE)


def adapters(listing: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the names of adapters among parameters, in their order: called so, or a narrow pair beside a matrix."""
    arrays = {str(p["name"]): tuple(p["shape"]) for p in listing if len(p["shape"]) == 2}
    return tuple(name for name in arrays if _SAYS.search(name) or _one_of_a_pair(name, arrays))


def _one_of_a_pair(name: str, arrays: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether it and another one in its module make, by their product, the shape of a third through fewer numbers."""
    owner, _, last = name.removesuffix(".weight").rpartition(".")
    if not owner or last.lower() not in {"a", "b"}:
        return False
    tail = ".weight" if name.endswith(".weight") else ""
    first, second = (arrays.get(f"{owner}.{other}{tail}") for other in (("a", "b") if last.islower() else ("A", "B")))
    if first is None or second is None:
        return False
    (rank, width), (rows, other_rank) = first, second
    beside = (shape for key, shape in arrays.items() if key.startswith(f"{owner}.") and shape not in {first, second})
    return rank == other_rank and any(rank < min(shape) and shape == (rows, width) for shape in beside)
