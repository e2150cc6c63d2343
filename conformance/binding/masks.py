"""Masks in the form an implementation takes: what they hide, polarity, kind and shape; how conform.toml says it.

A call of the contract has masks (B, 1, Tq, Tk) or (B, 1, 1, Tk), True = may attend. An implementation may take
separately, as torch does, what the contract combines: which keys are padding, (B, Tk), and which are later positions,
(Tq, Tq). In `call` these have separate names: `src_padding`, `tgt_padding`, `memory_padding`, `padding`, `causality`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable
from conformkit.conformance.binding.toml_nodes import Node
from conformkit.spec.arrays import Array

__all__ = [
    "FORMS",
    "KNOWN",
    "MASKS",
    "NAMES",
    "SHAPES",
    "TRIED",
    "MaskForm",
    "formed",
    "hiding_nothing",
    "masks_of",
    "never_given",
    "queries_of",
    "read_form",
]

MASKS = ("mask", "src_mask", "tgt_mask", "memory_mask")
"""The masks of the contract's calls."""
_PADDING = {"padding": "mask", "src_padding": "src_mask", "tgt_padding": "tgt_mask", "memory_padding": "memory_mask"}
_LENGTHS = {"lengths": "mask", "src_lengths": "src_mask", "tgt_lengths": "tgt_mask", "memory_lengths": "memory_mask"}
"""How many keys are seen, the first ones, instead of a mask."""
_CAUSALITY = "causality"
NAMES = (*MASKS, *_PADDING, _CAUSALITY, *_LENGTHS)
"""The masks that a call may use."""
SHAPES = ("B 1 T T", "B T T", "B H T T", "B 1 1 T", "B 1 T", "B T", "T T")
"""The last axis counts keys, a T before it queries; 1: one row for all queries, or for all heads."""


@dataclass(frozen=True, slots=True)
class MaskForm:
    """How a mask is passed: bool, float (0 or -inf, added to scores) or int; what True or 1 means; its axes.

    Without a shape: the contract's shape. Of the kind `lengths`: numbers of keys, (B,), or (B, T) for each query.
    """

    kind: str = "bool"
    true: str = "attend"
    shape: str = ""

    @property
    def hides(self) -> bool:
        """Whether True, or 1, means that a key is hidden."""
        return self.true == "hide"

    def passed(self, visible: Array) -> Array:
        """Return a Boolean mask, True = may attend, as it is passed; `visible` reads what that gives."""
        if self.kind == "float":
            return np.where(visible, 0.0, -np.inf)
        mask = np.logical_not(visible) if self.hides else visible
        return mask.astype(np.int64) if self.kind == "int" else mask

    def visible(self, passed: Array) -> Array:
        """Return as True = may attend what is passed; added numbers are what they are under any meaning of True."""
        if passed.dtype.kind == "f":
            return passed
        return np.asarray((passed != 0) ^ self.hides)


TRIED = MaskForm("", "")
"""A form of which nothing is declared: it is found by trying."""


def read_form(node: Node, form: MaskForm, kinds: Iterable[str], shapes: Iterable[str] = ()) -> MaskForm:
    """Read a table that says how a mask is passed; what it leaves open is as in `form`. Raises ConfigError."""
    readers: dict[str, Any] = {"kind": lambda n: n.choice(kinds), "true": lambda n: n.choice(("attend", "hide"))}
    readers |= {"shape": lambda n: n.choice(shapes)} if shapes else {}
    return replace(form, **{key: readers[key](value) for key, value in node.table(readers).items()})


FORMS: Mapping[str, MaskForm] = {
    **{name: MaskForm() for name in MASKS},
    **{name: MaskForm(true="hide", shape="B T") for name in _PADDING},
    _CAUSALITY: MaskForm(true="hide", shape="T T"),
    **{name: MaskForm(kind="lengths") for name in _LENGTHS},
}
"""How each is passed if nothing is declared; separate padding and causality as in torch."""

KNOWN: Mapping[str, str] = {
    "key_padding_mask": "padding", "src_key_padding_mask": "src_padding", "tgt_key_padding_mask": "tgt_padding",
    "memory_key_padding_mask": "memory_padding",
    **{name: name for name in _PADDING if name != "padding"},  # which say what is True: padding, and not what is shown
    **dict.fromkeys(("valid_lens", "valid_len", "valid_lengths"), "lengths"),
    **dict.fromkeys(("src_valid_lens", "src_valid_len", "src_lens", "src_lengths"), "src_lengths"),
    **dict.fromkeys(("tgt_valid_lens", "tgt_valid_len", "dec_valid_lens", "tgt_lens", "tgt_lengths"), "tgt_lengths"),
    **dict.fromkeys(("enc_valid_lens", "enc_valid_len", "memory_valid_lens", "memory_lengths"), "memory_lengths"),
}  # fmt: skip
"""Argument names with torch's meaning, and those of numbers of valid keys."""


def masks_of(inputs: Mapping[str, Array], used: frozenset[str]) -> dict[str, Array]:
    """Return the masks that a call uses, (B, 1, 1 or Tq, Tk), from those of the contract's call.

    The memory's mask is the source's, where only one of them is given. Where there is only one
    mask, each of the names means that one.
    """
    given = {name: inputs[name] for name in MASKS if name in inputs}
    if "mask" in given:
        given |= {name: given["mask"] for name in MASKS if name not in given}
    if "memory_mask" not in given and "src_mask" in given:
        given["memory_mask"] = given["src_mask"]
    elif "src_mask" not in given and "memory_mask" in given:
        given["src_mask"] = given["memory_mask"]  # decoding: the source is the memory
    found = {name: mask for name, mask in given.items() if name in used}
    for name, source in _PADDING.items():
        mask = given.get(source, given.get("mask") if name == "src_padding" else None)
        if name in used and mask is not None:
            found[name] = mask[:, :, -1:, :]  # the last query sees everything that is not padding
    for name, source in _LENGTHS.items():
        mask = given.get(source, given.get("mask") if name in {"src_lengths", "memory_lengths"} else None)
        if name in used and mask is not None:
            found[name] = mask
    causal = given.get("tgt_mask", given.get("mask"))
    if _CAUSALITY in used and causal is not None and causal.shape[-2] > 1:
        found[_CAUSALITY] = np.tri(causal.shape[-2], causal.shape[-1], dtype=np.bool_)[None, None]
    return found


def never_given(names: Iterable[str], inputs: Collection[str]) -> list[str]:
    """Return the masks of these names that no call with these inputs of the contract ever has."""
    given = set(MASKS) if "mask" in inputs else set(MASKS) & set(inputs)
    given |= {"memory_mask", "src_mask"} if {"src_mask", "memory_mask"} & given else set()
    given |= {name for name, source in (_PADDING | _LENGTHS).items() if source in given}
    given |= {_CAUSALITY} if "tgt_mask" in inputs or {"mask", "query"} <= set(inputs) else set()
    return sorted(set(names) & set(NAMES) - given)


def queries_of(name: str, inputs: Mapping[str, Array]) -> int:
    """Return the number of queries of a mask: those of the target, unless it is the source's own mask."""
    order = ("src", "x", "query", "tgt") if name.startswith("src") else ("tgt", "x", "query", "src", "ids")
    return int(next(inputs[side].shape[1] for side in order if side in inputs))


def hiding_nothing(name: str, inputs: Mapping[str, Array]) -> Array:
    """Return the mask that hides nothing, for calls that require one."""
    sides = {
        "src_mask": ("src", "key", "x"), "tgt_mask": ("tgt", "x", "key"), "memory_mask": ("memory", "src", "key", "x"),
        "mask": ("key", "x", "src", "ids"),
    }  # fmt: skip
    keys = next(inputs[side] for side in sides[name] if side in inputs)
    rows = keys.shape[1] if name == "tgt_mask" else 1
    return np.ones((len(keys), 1, rows, keys.shape[1]), np.bool_)


def formed(mask: Array, form: MaskForm, *, queries: int, heads: int) -> Array:
    """Convert a mask (B, 1, 1 or Tq, Tk), True = may attend, to the form that an implementation takes.

    Raises NotApplicable if numbers of keys cannot say what it hides.
    """
    if form.kind == "lengths":
        return _counted(mask)
    return form.passed(_shaped(mask, form.shape, queries, heads))


def _counted(mask: Array) -> Array:
    """Return how many keys each sequence, or each query, sees; at least one, and always the first ones."""
    seen = mask[:, 0].sum(axis=-1)
    if not seen.all() or not np.array_equal(mask[:, 0], np.arange(mask.shape[-1]) < seen[..., None]):
        raise NotApplicable("it takes the number of valid positions, which cannot say what this mask hides")
    return np.ascontiguousarray(seen[:, 0] if (seen == seen[:, :1]).all() else seen, np.int64)


def _shaped(mask: Array, shape: str, queries: int, heads: int) -> Array:
    axes = shape.split()
    if not axes:
        return mask
    batch, keys = mask.shape[0], mask.shape[-1]
    rows = queries if axes[-2:] == ["T", "T"] or mask.shape[-2] > 1 else 1
    full = np.broadcast_to(mask, (batch, heads if "H" in axes else 1, rows, keys))
    if axes == ["B", "T"]:
        return np.ascontiguousarray(full[:, 0, -1, :])
    if axes == ["T", "T"]:
        return np.ascontiguousarray(full.any(axis=(0, 1)))
    return np.ascontiguousarray(full if len(axes) == 4 else full[:, 0])
