"""A language model called in several ways, padded texts, and how it takes what is found by its signature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check_close, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.kernels import OtherKernel
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.logits import draw_ids, own_tolerance, rows
from conformkit.conformance.subject.call_path import Path
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.spec.arrays import Array

__all__ = [
    "PaddedTexts", "batch", "built", "check_same_logits", "check_texts_alone", "kernels", "masked", "padded",
    "placed",
]  # fmt: skip


_SINGLE = 4
"""How many times as far apart as two results of one way those of two may be in single precision."""


@dataclass(frozen=True, slots=True)
class PaddedTexts:
    """Texts in rows of one length: ids (B, T), which of them are real, and the position of each in its text."""

    ids: Array
    real: Array
    positions: Array

    def text(self, row: int) -> Array:
        """Return the ids (1, n) of one text."""
        return np.asarray(self.ids[row, self.real[row]][None])


def built(model: Subject, draw: Draw, *, block_size: int = 12, gain: float = 1.5, dtype: str | None = None) -> Path:
    """Return a model of two layers with random weights, by default in the number format in which it is judged."""
    instance = model.build(num_layers=2, dropout=0.0, block_size=block_size, vocab_size=17, dtype=dtype)
    return Path(instance.scatter(draw, gain=gain))


def kernels(path: Path, draw: Draw) -> list[tuple[OtherKernel, Path]]:
    """Return the same model with each other kernel of attention that its constructor takes.

    What it refuses is left out, unless it is declared. Raises NotApplicable if nothing is left.
    """
    ids = draw_ids(path.instance, draw, batch(path), 3)
    found, refused = [], ""
    for kernel in path.call_arguments.kernels:
        try:
            other = path.with_kernel(kernel)
            other(ids)
        except ImplementationFailure as failure:
            if kernel.declared:
                raise
            refused = f"{kernel} is refused: {failure.message}"
            continue
        found.append((kernel, other))
    if not found:
        raise NotApplicable(refused or "its constructor chooses no kernel of attention", lacks="kernels")
    return found


def padded(path: Path, draw: Draw, lengths: Sequence[int], *, side: str) -> PaddedTexts:
    """Draw texts of these lengths, and pad them to the longest on one side with ids like any other."""
    longest = max(lengths)
    ids = draw.ids(path.instance.sizes["vocab_size"], len(lengths), longest)
    count, places = np.asarray(lengths)[:, None], np.arange(longest)[None]
    real = places < count if side == "right" else places >= longest - count
    return PaddedTexts(ids, real, np.maximum(np.cumsum(real, axis=1) - 1, 0))


def masked(model: Subject, draw: Draw) -> Path:
    """Return a model whose call takes a mask of padding (B, T), in the form that it takes. Raises NotApplicable.

    One that computes weights in float32 may fill with the least number of its input's format. In float64 that is -inf
    there, and a row without a key is NaN, which no user sees: it is built in float32.
    """
    path = _masked(model, placed(built(model, draw), draw), draw)
    if model.precision == "float32" and model.bound.dtype == "float64" and not _is_finite_after_padding(path):
        return _masked(model, placed(built(model, draw, dtype="float32"), draw), draw)
    return path


def _is_finite_after_padding(path: Path) -> bool:
    ids = draw_ids(path.instance, Draw(0, "padding on the left"), batch(path, 2), 5)
    real = np.broadcast_to(np.arange(5) > 1, ids.shape)  # alike in all rows: some take one row of positions for all
    return bool(np.isfinite(path(ids, mask=real, positions=np.maximum(np.cumsum(real, axis=1) - 1, 0))).all())


def _masked(model: Subject, path: Path, draw: Draw) -> Path:
    path.requires("mask")
    if model.bound.causal == "mask":
        raise NotApplicable(f"its {path.call_arguments.mask} is what makes it causal")
    ids = draw_ids(path.instance, draw, 3, 5)
    first: Path | None = None
    for form in path.call_arguments.mask_forms:
        tried = replace(path, form=form)
        try:
            hides = _hides_nothing(tried, ids) and _hides(tried, ids)
        except ImplementationFailure:
            continue
        if hides:
            return tried
        first = first or tried
    if first is None or not path.call_arguments.mask_is_padding:
        raise NotApplicable(f"its {path.call_arguments.mask} does not say which ids of a batch (B, T) are padding")
    return first


def placed(path: Path, draw: Draw) -> Path:
    """Return the model with positions in the form that it takes: (B, T), (T,), or not at all."""
    if path.call_arguments.positions is None:
        return replace(path, placing="")
    ids = draw_ids(path.instance, draw, 3, 5)
    positions = np.broadcast_to(np.arange(ids.shape[1]), ids.shape)
    for placing in ("rows", "one"):
        tried = replace(path, placing=placing)
        try:
            tried(ids, positions=positions)
        except ImplementationFailure:
            if "positions" in path.call_arguments.declared and placing == "one":
                raise
            continue
        return tried
    return replace(path.without("positions"), placing="")


def _hides_nothing(path: Path, ids: Array) -> bool:
    plain, got = path(ids), path(ids, mask=np.ones(ids.shape, np.bool_))
    return bool(np.abs(got - plain).max() <= 10 * own_tolerance(path.instance) * np.abs(plain).max())


def _hides(path: Path, ids: Array) -> bool:
    """Whether an id that is hidden leaves the last logits as they are."""
    real = np.ones(ids.shape, np.bool_)
    real[:, 0] = False
    other = ids.copy()
    other[:, 0] = (ids[:, 0] + 1) % path.instance.sizes["vocab_size"]
    before, after = path(ids, mask=real)[:, -1], path(other, mask=real)[:, -1]
    return bool(np.abs(after - before).max() <= 10 * own_tolerance(path.instance) * np.abs(before).max())


def check_same_logits(label: str, got: Array, want: Array, instance: Instance) -> None:
    """Check that two ways through one model give the same logits; right code may round in another order.

    In single precision the orders of two ways differ more than those of one: products have other extents.
    """
    ways = _SINGLE if instance.subject.precision == "float32" else 1
    check_close(label, got, want, ways * own_tolerance(instance))


def check_texts_alone(
    path: Path, texts: PaddedTexts, logits: Array, setting: str, label: str = "the logits of its text"
) -> None:
    """Check that each text of a padded batch has the logits that it has alone."""
    for row in range(len(texts.ids)):
        under(f"{setting}, row {row} of {len(texts.ids)}")
        alone = path(texts.text(row))
        check_same_logits(label, logits[row, texts.real[row]], alone[0], path.instance)


def batch(path: Path, wanted: int = 3) -> int:
    """Return a number of rows of which at least two fit into one call."""
    return rows(path.instance.subject, wanted, least=2)
