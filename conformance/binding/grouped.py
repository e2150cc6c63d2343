"""Fused projections in groups, one for each key/value head: its queries, its key, its value.

`(h s d) m` with as many heads of queries as of keys is q, k, v of head 0, then of head 1. With fewer keys, `h` counts
the groups, and a part has as many heads in each as there are for one key: q, q, k, v of group 0, then of group 1.
Parts may be of different widths: a head's keys, then its wider values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from einops import rearrange

from conformkit.conformance.binding.axes import Groups, axes_of, groups_of, letters_of
from conformkit.spec.arrays import Array
from conformkit.spec.components import Parameter

__all__ = ["Grouping", "grouping"]


@dataclass(frozen=True, slots=True)
class Grouping:
    """How parts with different numbers of heads are laid out in one array.

    `apart` are the axes of one part, with `g` for its heads within a group; parts are joined along dimension `joint`,
    which is then merged with the one before it if `merged`.
    """

    parameters: tuple[Parameter, ...]
    apart: Groups
    joint: int
    merged: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the fused array."""
        rows = [self._extents(p) for p in self.parameters]
        whole = [*rows[0]]
        whole[self.joint] = sum(row[self.joint] for row in rows)
        return self._merge(whole)

    def fuse(self, arrays: Sequence[Array]) -> Array:
        """Join canonical parts into the fused array."""
        moved = [
            np.asarray(rearrange(a, f"{self._axes(p)} -> {axes_of(self.apart)}", **self._sizes(p)))
            for a, p in zip(arrays, self.parameters, strict=True)
        ]
        return np.concatenate(moved, axis=self.joint).reshape(self.shape)

    def unfuse(self, whole: Array) -> list[Array]:
        """Split the fused array into canonical parts."""
        rows = [self._extents(p) for p in self.parameters]
        ends = np.cumsum([row[self.joint] for row in rows])
        unmerged = whole.reshape([*rows[0][: self.joint], ends[-1], *rows[0][self.joint + 1 :]])
        slices = np.split(unmerged, ends[:-1], axis=self.joint)
        return [
            np.asarray(rearrange(a, f"{axes_of(self.apart)} -> {self._axes(p)}", **self._sizes(p)))
            for a, p in zip(slices, self.parameters, strict=True)
        ]

    def _sizes(self, parameter: Parameter) -> dict[str, int]:
        """Return the extents of a part's axes: h counts groups, g its heads in each."""
        groups = min(p.sizes["h"] for p in self.parameters)
        own = {a: parameter.sizes[a] for a in letters_of(groups_of(parameter.axes))}
        return own | {"h": groups, "g": parameter.sizes["h"] // groups}

    def _extents(self, parameter: Parameter) -> list[int]:
        sizes = self._sizes(parameter)
        return [math.prod(sizes[a] for a in group) for group in self.apart]

    def _merge(self, extents: Sequence[int]) -> tuple[int, ...]:
        if not self.merged:
            return tuple(extents)
        at = self.joint
        return (*extents[: at - 1], extents[at - 1] * extents[at], *extents[at + 1 :])

    @staticmethod
    def _axes(parameter: Parameter) -> str:
        """Return the canonical axes with heads counted by group and within it."""
        own = groups_of(parameter.axes)
        return axes_of(tuple(b for a in group for b in (("h", "g") if a == "h" else (a,))) for group in own)


def grouping(groups: Groups, parameters: Sequence[Parameter]) -> Grouping | None:
    """Return how parts with different numbers or widths of heads are laid out; None unless `h` precedes `s`."""
    heads = {p.sizes.get("h", 0) for p in parameters}
    at = next((n for n, group in enumerate(groups) if "s" in group), None)
    if at is None or any(h == 0 or h % min(heads) for h in heads):
        return None
    cut = groups[at].index("s")
    before, after = groups[at][:cut], groups[at][cut + 1 :]
    if len(heads) < 2 and not _differ_only(after, groups, parameters):
        return None
    if "h" not in (*letters_of(groups[:at]), *before):
        return None
    apart = (*groups[:at], *([before] if before else []), ("g", *after), *groups[at + 1 :])
    return Grouping(tuple(parameters), apart, at + bool(before), merged=bool(before))


def _differ_only(letters: Sequence[str], groups: Groups, parameters: Sequence[Parameter]) -> bool:
    """Whether parts have different extents along some of these axes, and equal ones along all others."""
    unequal = {a for a in letters_of(groups) if a != "s" and len({p.sizes.get(a) for p in parameters}) > 1}
    return bool(unequal) and unequal <= {*letters}
