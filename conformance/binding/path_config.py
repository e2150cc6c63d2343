"""What `conform.toml` declares about further arguments of a language model's call, as `paths` of the model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from conformkit.conformance.binding.arguments import Arguments, read_argument
from conformkit.conformance.binding.kernels import Kernels, read_kernels
from conformkit.conformance.binding.limits import SIZE_NAMES
from conformkit.conformance.binding.masks import TRIED, MaskForm, read_form
from conformkit.conformance.binding.selectors import read_index
from conformkit.conformance.binding.toml_nodes import Node

__all__ = ["PathsConfig", "read_paths"]


@dataclass(frozen=True, slots=True)
class PathsConfig:
    """Names of arguments, and what they take. None: not declared, found by signature."""

    mask: str | None = None
    """The argument that says which ids (B, T) are padding."""
    mask_form: MaskForm = TRIED
    """How it is passed; what is empty is found by trying."""
    positions: str | None = None
    segments: str | None = None
    restarts: bool = False
    """Positions that begin again at 0 begin another text."""
    cache: str | None = None
    use_cache: str | None = None
    new_cache: Arguments | None = None
    """How an empty cache is made: an object to build. Undeclared: by a method, or the call makes it."""
    cache_output: int | str | None = None
    crop: str | None = None
    reset: str | None = None
    reorder: str | None = None
    """Methods of the cache."""
    targets: str | None = None
    shifts: bool | None = None
    """Whether the model shifts targets itself: they are the ids, not the ids that follow."""
    loss_output: int | str | None = None
    weights: str | None = None
    """The switch that makes it return attention weights."""
    kernels: Kernels = field(default_factory=dict)
    """By argument of the constructor, the values with which it computes attention in other ways."""
    causal: str | None = None
    causal_alignment: str | None = None
    """Of an attention function: the key that the causal flag lets the first (or the last) query see up to."""
    scale: str | None = None
    dropout: str | None = None
    grouped: str | None = None
    """Arguments of an attention function, as torch's `is_causal`, `scale`, `dropout_p`, `enable_gqa`."""


def read_paths(node: Node) -> PathsConfig:
    """Read the table."""
    readers: dict[str, Any] = {
        **dict.fromkeys(("mask", "positions", "segments", "cache", "use_cache", "targets", "weights"), Node.attribute),
        **dict.fromkeys(("crop", "reset", "reorder", "causal", "scale", "dropout", "grouped"), Node.attribute),
        "causal_alignment": lambda n: n.choice(("first", "last")),
        "mask_form": lambda n: read_form(n, TRIED, ("int", "bool", "float")),
        "restarts": Node.flag,
        "new_cache": lambda n: read_argument(n, (*SIZE_NAMES, "B")),
        "cache_output": read_index,
        "shifts": Node.flag,
        "loss_output": read_index,
        "kernels": read_kernels,
    }
    return PathsConfig(**{key: readers[key](value) for key, value in node.table(readers).items()})
