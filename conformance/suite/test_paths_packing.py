"""Clauses of spec/paths_packing.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check_close, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.logits import causal_slack, draw_ids, other_ids
from conformkit.conformance.evidence.padded_texts import batch, built, check_same_logits, placed
from conformkit.conformance.subject.call_path import Path
from conformkit.conformance.subject.component import Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array

_UNDECLARED = (
    "its call takes no segment_ids; if positions that begin again at 0 begin another text, declare restarts = true "
    "under [components.TinyTransformerLM.paths]"
)


@dataclass(frozen=True, slots=True)
class Packed:
    """Rows of texts: ids (B, T), the number of its text and its position there for each."""

    ids: Array
    segments: Array
    positions: Array


@clause("PATH-PACK-ONE")
def test_a_row_of_one_text_is_as_without_segments(model: Subject, draw: Draw) -> None:
    path = _packing(model, draw)
    ids = draw_ids(path.instance, draw, batch(path), 6)
    for number in (0, 1):
        under(f"{ids.shape[1]} ids of text {number}")
        segments = np.full(ids.shape, number)
        got = _logits(path, Packed(ids, segments, np.broadcast_to(np.arange(ids.shape[1]), ids.shape)))
        check_same_logits("the logits", got, path(ids), path.instance)


@clause("PATH-PACK-APART")
def test_texts_of_one_row_do_not_see_each_other(model: Subject, draw: Draw) -> None:
    path = _packing(model, draw)
    for lengths in ((2, 1, 4), (3, 4)):
        rows = _packed(path, draw, [lengths] * batch(path, 2))
        others = other_ids(rows.ids, path.instance.sizes["vocab_size"], draw)
        before = _logits(path, rows)
        for text in range(len(lengths) - 1):
            there = rows.segments == text
            after = _logits(path, Packed(np.where(there, others, rows.ids), rows.segments, rows.positions))
            under(f"texts of {_listed(lengths)} ids in a row, other ids in text {text}")
            check_close("the logits of other texts", after[~there], before[~there], causal_slack(path.instance))


@clause("PATH-PACK-ALONE")
def test_a_text_in_a_row_is_as_it_is_alone(model: Subject, draw: Draw) -> None:
    path = _packing(model, draw)
    for lengths in ((3, 4), (2, 1, 4)):
        _check_alone(path, draw, [lengths] * batch(path, 2))


@clause("PATH-PACK-UNPLACED")
def test_positions_follow_from_segments(model: Subject, draw: Draw) -> None:
    path = _packing(model, draw)
    path.requires("segments", "positions")
    _check_alone(path.without("positions"), draw, [(3, 4)] * batch(path, 2))


@clause("PATH-PACK-ROWS")
def test_each_row_is_packed_in_its_own_way(model: Subject, draw: Draw) -> None:
    path = _packing(model, draw)
    path.requires_rows()
    _check_alone(path, draw, [(3, 4), (2, 1, 4), (6, 1)][: batch(path)])


@clause("PATH-PACK-CAUSAL")
def test_packed_rows_are_causal(model: Subject, draw: Draw) -> None:
    path = _packing(model, draw)
    rows = _packed(path, draw, [(3, 4)] * batch(path, 2))
    others = other_ids(rows.ids, path.instance.sizes["vocab_size"], draw)
    before = _logits(path, rows)
    for place in (1, 4):
        later = np.arange(rows.ids.shape[1])[None] > place
        same = rows.segments == rows.segments[0, place]
        after = _logits(path, Packed(np.where(later & same, others, rows.ids), rows.segments, rows.positions))
        under(f"texts of 3, 4 ids in a row, ids of a text after place {place} changed")
        kept = ~later[0]
        check_close("earlier logits", after[:, kept], before[:, kept], causal_slack(path.instance))


@clause("PATH-PACK-NUMBERS")
def test_numbers_of_texts_are_names(model: Subject, draw: Draw) -> None:
    path = _packing(model, draw)
    path.requires("segments")
    rows = _packed(path, draw, [(3, 4)] * batch(path, 2))
    before = _logits(path, rows)
    for numbers in ((1, 2), (5, 3)):
        under(f"texts {_listed(numbers)} in place of 0, 1")
        renamed = np.where(rows.segments == 0, *numbers)
        check_same_logits("the logits", _logits(path, Packed(rows.ids, renamed, rows.positions)), before, path.instance)


def _packing(model: Subject, draw: Draw) -> Path:
    """Return a model that is told which ids belong together. Raises NotApplicable."""
    path = placed(built(model, draw), draw)
    if path.call_arguments.config.restarts and path.call_arguments.positions is not None and path.placing:
        return path
    if path.call_arguments.positions is not None and path.call_arguments.segments is None:
        raise NotApplicable(_UNDECLARED, lacks="segments")
    path.requires("segments")
    return path


def _packed(path: Path, draw: Draw, rows: Sequence[Sequence[int]]) -> Packed:
    """Draw rows of texts of these lengths; all rows are equally long."""
    segments = np.stack([np.repeat(np.arange(len(lengths)), lengths) for lengths in rows])
    positions = np.stack([np.concatenate([np.arange(length) for length in lengths]) for lengths in rows])
    return Packed(draw.ids(path.instance.sizes["vocab_size"], *segments.shape), segments, positions)


def _logits(path: Path, rows: Packed) -> Array:
    return path(rows.ids, segments=rows.segments, positions=rows.positions)


def _check_alone(path: Path, draw: Draw, lengths: Sequence[Sequence[int]]) -> None:
    """Check each text of each row with what it is alone."""
    rows = _packed(path, draw, lengths)
    together = _logits(path, rows)
    for row, own in enumerate(lengths):
        for text in range(len(own)):
            here = rows.segments[row] == text
            under(f"text {text} of {len(own)} in row {row}, with {_listed(own)} ids")
            alone = path(rows.ids[row, here][None])
            check_same_logits("its logits", together[row, here], alone[0], path.instance)


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
