"""Prompts of different lengths in one batch, whose `generate` is told which ids are real."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.call_arguments import ArgumentNames
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.greedy_text import story
from conformkit.conformance.evidence.padded_texts import PaddedTexts, batch, built, masked, padded
from conformkit.conformance.probing.refusals import is_refusal
from conformkit.conformance.subject.call_path import Path
from conformkit.conformance.subject.component import Subject
from conformkit.spec.arrays import Array

__all__ = ["NEW", "Prompts", "prompting"]

NEW = 3
"""How many ids are added."""
_SHORTEST = 2
_SAYS_NOTHING = "its generate takes neither a mask nor lengths of its prompts"


@dataclass(frozen=True, slots=True)
class Prompts:
    """A model that continues padded prompts, and texts (B, T) that vary, of which the prompts are parts."""

    path: Path
    texts: Array

    def padded(self, draw: Draw, side: str) -> PaddedTexts:
        """Return the first ids of each text, some more of each row, padded on one side."""
        lengths = [_SHORTEST + row for row in range(len(self.texts))]
        found = padded(self.path, draw, lengths[::-1], side=side)
        found.ids[found.real] = np.concatenate([t[:n] for t, n in zip(self.texts, lengths[::-1], strict=True)])
        return found

    @property
    def sides(self) -> tuple[str, ...]:
        """Where padding may be: lengths speak of padding on the right only."""
        generation = self.path.instance.subject.bound.generation
        return ("left", "right") if generation is not None and generation.mask else ("right",)

    def alone(self, texts: PaddedTexts) -> Array:
        """Return what each prompt is continued by without the others: (B, NEW)."""
        each = [self.path.continued(texts.text(row), NEW, {}) for row in range(len(texts.ids))]
        return np.concatenate([out[:, -NEW:] for out in each])

    def is_read_behind(self, texts: PaddedTexts, new: Array) -> bool:
        """Whether the first new ids (B, NEW) are the best ones at the last place of the batch, padding in some rows."""
        if texts.real[:, -1].all():
            return False
        ways: tuple[dict[str, Array], ...] = (
            {"mask": texts.real, "positions": texts.positions},
            {"mask": texts.real},
            {},
        )
        best = (self.path(texts.ids, **further)[:, -1].argmax(axis=-1) for further in ways)
        return any((ids == new[:, 0]).all() for ids in best)

    def continued(self, texts: PaddedTexts) -> Array | None:
        """Return the batch and what it is continued by, (B, T + NEW); None if it is refused in words."""
        generation = self.path.instance.subject.bound.generation
        assert generation is not None
        if generation.mask:
            said = {generation.mask: self.path.as_mask(texts.real)}
        else:
            said = {str(generation.lengths): texts.real.sum(axis=1)}
        try:
            return self.path.continued(texts.ids, NEW, said)
        except ImplementationFailure as failure:
            if is_refusal(failure):
                return None
            raise


def prompting(model: Subject, draw: Draw) -> Prompts:
    """Return a model whose `generate` is told which ids are real. Raises NotApplicable."""
    generation = model.bound.generation
    if generation is None or not (generation.mask or generation.lengths):
        raise NotApplicable(_SAYS_NOTHING)
    path = built(model, draw)
    if path.call_arguments.mask is not None:
        path = masked(model, draw) if generation.mask else path.without("mask")
    count = batch(path, 4)
    example = story(path.instance, draw, tokens=_SHORTEST, steps=count - 1 + NEW, keep=count)
    if len(example.text) < 2:
        raise NotApplicable("its logits are too even for a certain greedy text")
    found = Prompts(path, example.text)
    return found if path.call_arguments.mask is not None or not generation.mask else _in_its_form(found)


def _in_its_form(found: Prompts) -> Prompts:
    """Return the first form of a mask with which one that hides nothing changes nothing."""
    generation = found.path.instance.subject.bound.generation
    named = ArgumentNames(mask=generation.mask if generation is not None else None)
    whole = PaddedTexts(found.texts[:, :4], np.ones((len(found.texts), 4), np.bool_), np.arange(4)[None])
    want = found.alone(whole)
    for form in named.mask_forms:
        tried = replace(found, path=replace(found.path, form=form))
        try:
            out = tried.continued(whole)
        except ImplementationFailure:
            continue
        if out is not None and out.shape[1] == 4 + NEW and (out[:, -NEW:] == want).all():
            return tried
    if not named.mask_is_padding:
        raise NotApplicable(f"{named.mask} of its generate does not say which ids of a batch (B, T) are padding")
    return found
