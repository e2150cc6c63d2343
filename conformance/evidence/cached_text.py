"""A text that goes through a language model in pieces, with a cache that the caller holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, supposing
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.logits import draw_ids
from conformkit.conformance.evidence.padded_texts import built
from conformkit.conformance.evidence.text_slips import of_pieces
from conformkit.conformance.subject.call_path import Path
from conformkit.conformance.subject.component import Subject
from conformkit.spec.arrays import Array

__all__ = ["Text", "begun", "cached", "in_pieces", "pieces_of"]


@dataclass
class Text:
    """A text so far: the model, and the cache that the next call gets."""

    path: Path
    cache: int | None

    def read(self, ids: Array, **further: Any) -> Array:
        """Return the logits (B, t, V) of the next ids, and keep what the call returned as the cache."""
        answer = self.path.answer(ids, cache=self.cache, caching=True, **further)
        if answer.cache is not None:
            self.cache = answer.cache
        return answer.logits

    def change(self, what: str, *arguments: Any, **arrays: Array) -> None:
        """Crop, reset or reorder the cache. Raises NotApplicable where it has no such method."""
        assert self.cache is not None
        for name in self.path.call_arguments.methods(what):
            declared = name == getattr(self.path.call_arguments.config, what)
            try:
                self.path.change(self.cache, name, *arguments, own=not declared, **arrays)
            except ImplementationFailure as failure:
                if declared or f"has no method {name}" not in failure.message:
                    raise
                continue
            return
        raise NotApplicable(f"its cache has no {what}", lacks=what)


def cached(model: Subject, draw: Draw) -> Path:
    """Return a model whose call takes a cache. Raises NotApplicable where none can be made or is returned."""
    path = built(model, draw)
    path.requires("cache")
    if "cache" in path.call_arguments.declared:
        return path
    ids = draw_ids(path.instance, draw, 2, 3)
    try:
        text = begun(built(model, draw), ids.shape[0])  # another object: this one has read nothing yet
        text.read(ids)
    except ImplementationFailure as failure:
        raise NotApplicable(
            f"a call with its {path.call_arguments.cache} raises {failure.type}; "
            "say in conform.toml how a cache is made"
        ) from None
    if text.cache is None:
        raise NotApplicable(
            f"its call takes {path.call_arguments.cache}, and returns no cache; conform.toml can say how one is made"
        )
    return path


def begun(path: Path, rows: int) -> Text:
    """Return a text without ids, of this many rows."""
    return Text(path, path.new_cache(rows))


def in_pieces(path: Path, ids: Array, sizes: Sequence[int]) -> Array:
    """Return the logits (B, T, V) of ids that come in pieces of these sizes."""
    text, pieces = begun(path, ids.shape[0]), pieces_of(ids, sizes)
    placed = path if path.placing or path.call_arguments.positions is None else replace(path, placing="rows")
    supposing(of_pieces(placed, ids, pieces))
    return np.concatenate([text.read(piece) for piece in pieces], axis=1)


def pieces_of(ids: Array, sizes: Sequence[int]) -> list[Array]:
    """Cut ids (B, T) into pieces of these sizes; what is left is the last one."""
    places = [place for place in np.cumsum(sizes).tolist() if place < ids.shape[1]]
    return np.split(ids, places, axis=1)
