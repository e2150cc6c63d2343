"""Clauses of spec/paths_padding.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from conformkit.conformance.assertions.checks import (
    NotApplicable,
    check,
    check_close,
    check_differs,
    check_equal,
    check_finite,
    check_shape,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.logits import SLIGHT, causal_slack, draw_ids, other_ids
from conformkit.conformance.evidence.padded_prompts import NEW, prompting
from conformkit.conformance.evidence.padded_texts import (
    PaddedTexts,
    batch,
    built,
    check_same_logits,
    masked,
    padded,
    placed,
)
from conformkit.conformance.subject.call_path import Path
from conformkit.conformance.subject.component import Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array

SIDES = ("left", "right")
_ROUND_BATCHES = (32, 16)
"""Batches that many train with, at which a mask was lost unseen: a size for each side."""


@clause("PATH-MASK-ALL")
def test_a_mask_that_hides_nothing_changes_nothing(model: Subject, draw: Draw) -> None:
    path = masked(model, draw)
    for tokens in (1, 6):
        ids = draw_ids(path.instance, draw, 3, tokens)
        under(f"{ids.shape[1]} ids, all of them real")
        got = path(ids, mask=np.ones(ids.shape, np.bool_))
        check_same_logits("the logits with a mask", got, path(ids), path.instance)


@clause("PATH-PAD-RIGHT")
def test_padding_after_a_text_leaves_its_logits_as_they_are(model: Subject, draw: Draw) -> None:
    _check_padded(masked(model, draw), draw, "right")


@clause("PATH-PAD-LEFT")
def test_padding_before_a_text_leaves_its_logits_as_they_are(model: Subject, draw: Draw) -> None:
    _check_padded(masked(model, draw), draw, "left")


@clause("PATH-PAD-LEFT-FINITE")
def test_padding_before_a_text_has_finite_logits(model: Subject, draw: Draw) -> None:
    path = masked(model, draw)
    texts = padded(path, draw, _lengths(path), side="left")
    under("padding on the left")
    check_finite("the logits", _logits(path, texts))


@clause("PATH-PAD-LEFT-UNPLACED")
def test_positions_follow_from_the_mask(model: Subject, draw: Draw) -> None:
    path = masked(model, draw)
    path.requires("positions")
    path = path.without("positions")
    _check_padded(path, draw, "left")
    texts = padded(path, draw, _lengths(path), side="left")
    _check_as_alone(path, texts, _logits(path, texts), "padding on the left")


@clause("PATH-PAD-VALUE")
def test_ids_of_padding_do_not_matter(model: Subject, draw: Draw) -> None:
    path = masked(model, draw)
    for side in SIDES:
        texts = padded(path, draw, _lengths(path), side=side)
        others = other_ids(texts.ids, path.instance.sizes["vocab_size"], draw)
        changed = PaddedTexts(np.where(texts.real, texts.ids, others), texts.real, texts.positions)
        under(f"padding on the {side}, other ids there")
        before, after = _logits(path, texts), _logits(path, changed)
        finite = texts.real & np.isfinite(before).all(axis=-1)  # NaN is for PATH-PAD-LEFT to report
        check_same_logits("the logits of real ids", after[finite], before[finite], path.instance)


@clause("PATH-PAD-CAUSAL")
def test_padded_batches_are_causal_too(model: Subject, draw: Draw) -> None:
    path = masked(model, draw)
    for side in (*SIDES, "neither"):
        count = batch(path, 2)
        texts = padded(path, draw, [7] * count if side == "neither" else [7, 5, *([4] * (count - 2))], side=side)
        before = _logits(path, texts)
        others = other_ids(texts.ids, path.instance.sizes["vocab_size"], draw)
        for place in (3, 5):
            later = np.arange(texts.ids.shape[1])[None] > place
            ids = np.where(later & texts.real, others, texts.ids)
            under(f"padding on the {side} side, ids after place {place} changed")
            after = _logits(path, PaddedTexts(ids, texts.real, texts.positions))
            kept = texts.real & ~later & np.isfinite(before).all(axis=-1)
            check_close("earlier logits", after[kept], before[kept], causal_slack(path.instance))


@clause("PATH-POSITIONS")
def test_positions_from_0_are_the_default(model: Subject, draw: Draw) -> None:
    path = _with_positions(model, draw)
    ids = draw_ids(path.instance, draw, 3, 6)
    under("positions 0, 1, …, T - 1")
    got = path(ids, positions=np.broadcast_to(np.arange(ids.shape[1]), ids.shape))
    check_same_logits("the logits with positions", got, path(ids), path.instance)


@clause("PATH-POSITIONS-READ")
def test_positions_that_are_passed_are_used(model: Subject, draw: Draw) -> None:
    path = _with_positions(model, draw)
    ids = draw_ids(path.instance, draw, 2, 5)
    positions = np.broadcast_to(_with_gap(ids.shape[1], 1), ids.shape)
    under(f"positions {', '.join(map(str, positions[0]))}")
    got = path(ids, positions=positions)
    check_differs("the last logits", got[:, -1], path(ids)[:, -1], at_least=SLIGHT)


@clause("PATH-POSITIONS-ROWS")
def test_each_row_has_positions_of_its_own(model: Subject, draw: Draw) -> None:
    path = _with_positions(model, draw)
    if path.placing != "rows":
        raise NotApplicable("its positions (T,) are those of all rows")
    ids = draw_ids(path.instance, draw, batch(path), 5)
    positions = np.stack([_with_gap(ids.shape[1], row + 1) for row in range(len(ids))])
    together = path(ids, positions=positions)
    for row in range(len(ids)):
        under(f"row {row} of {len(ids)}, positions {', '.join(map(str, positions[row]))}")
        alone = path(ids[row : row + 1], positions=positions[row : row + 1])
        check_same_logits("the logits", together[row], alone[0], path.instance)


@clause("PATH-PAD-UNEQUAL")
def test_texts_of_different_lengths_share_a_batch(model: Subject, draw: Draw) -> None:
    path = masked(model, draw)
    for side in SIDES:
        for lengths in (_lengths(path), _lengths(path)[::-1]):
            texts = padded(path, draw, lengths, side=side)
            _check_as_alone(path, texts, _logits(path, texts), f"padding on the {side}")
    for rows, side in zip(_ROUND_BATCHES, SIDES, strict=True):
        texts = padded(path, draw, [7, *([4] * (batch(path, rows) - 1))], side=side)
        _check_as_alone(path, texts, _logits(path, texts), f"padding on the {side}", rows=(0, -1))


@clause("PATH-PAD-EMPTY")
def test_a_row_of_padding_alone_is_finite(model: Subject, draw: Draw) -> None:
    path = masked(model, draw)
    texts = padded(path, draw, [6] * batch(path), side="left")
    texts.real[-1], texts.positions[-1] = False, 0
    under("no id of the last row is real")
    check_finite("the logits of that row", _logits(path, texts)[-1])


@clause("PATH-PAD-EMPTY-OTHERS")
def test_a_row_of_padding_alone_leaves_other_rows_as_they_are(model: Subject, draw: Draw) -> None:
    path = masked(model, draw)
    for empty in (0, -1):
        texts = padded(path, draw, [6, *([4] * (batch(path) - 1))], side="left")
        texts.real[empty], texts.positions[empty] = False, 0
        _check_as_alone(path, texts, _logits(path, texts), f"no id of row {empty % len(texts.ids)} is real")


@clause("PATH-PAD-PROMPTS")
def test_a_padded_prompt_is_continued_as_it_is_alone(model: Subject, draw: Draw) -> None:
    found = prompting(model, draw)
    refused = 0
    for side in found.sides:
        texts = found.padded(draw, side)
        out, want = found.continued(texts), found.alone(texts)
        if out is None:
            refused += 1
            continue
        lengths = texts.real.sum(axis=1)
        under(f"prompts of {', '.join(map(str, lengths))} ids, padded on the {side}")
        check_shape("prompts and new ids", out, (len(want), texts.ids.shape[1] + NEW))
        behind = np.stack([row[n : n + NEW] for row, n in zip(out, lengths, strict=True)])
        got = behind if side == "right" and (behind == want).all() else out[:, -NEW:]
        read = (got != want).any() and any(found.is_read_behind(texts, new) for new in (got, behind))
        said = "the logits that new ids are drawn from are those of padding, expected those of the last real id"
        check(said, not read)
        check_equal("new ids", got, want)
    if refused == len(found.sides):
        raise NotApplicable("its generate refuses padded prompts")


def _with_gap(length: int, place: int) -> Array:
    """Return positions 0, 1, … of which one is left out."""
    places = np.arange(length)
    return places + (places >= place)


def _lengths(path: Path) -> list[int]:
    """Return different lengths for the rows of a batch."""
    return [4, 7, 1, *([5] * (batch(path) - 3))][: batch(path)]


def _with_positions(model: Subject, draw: Draw) -> Path:
    path = placed(built(model, draw), draw)
    path.requires("positions")
    return path


def _logits(path: Path, texts: PaddedTexts) -> Array:
    """Return the logits (B, T, V) of padded texts. Raises NotApplicable where rows need other positions each."""
    if not _alike(texts):
        path.requires_rows()
    return path(texts.ids, mask=texts.real, positions=texts.positions)


def _alike(texts: PaddedTexts) -> bool:
    return bool((texts.positions == texts.positions[0]).all())


def _check_padded(path: Path, draw: Draw, side: str) -> None:
    """Check texts of one length, with more and more padding on one side."""
    for more in (1, 3):
        count = batch(path, 2)
        texts = padded(path, draw, [5 + more] * count, side=side)
        hidden = slice(None, more) if side == "left" else slice(5, None)
        texts.real[:, hidden] = False
        texts.positions[:] = np.maximum(np.cumsum(texts.real, axis=1) - 1, 0)
        _check_as_alone(path, texts, _logits(path, texts), f"{more} ids of padding on the {side}")


def _check_as_alone(
    path: Path, texts: PaddedTexts, logits: Array, setting: str, rows: Sequence[int] | None = None
) -> None:
    """Check that each text has the logits that it has alone, or those of some rows."""
    chosen = range(len(texts.ids)) if rows is None else [row % len(texts.ids) for row in rows]
    for row, alone in _alone(path, texts, chosen):
        under(f"{setting}, row {row} of {len(texts.ids)} with {alone.shape[1]} of {texts.ids.shape[1]} ids real")
        got = logits[row, texts.real[row]]
        check_finite("the logits of its text", got)
        check_same_logits("the logits of its text", got, alone[0], path.instance)


def _alone(path: Path, texts: PaddedTexts, rows: Sequence[int]) -> Iterator[tuple[int, Array]]:
    """Yield those of some rows that have a text, and the logits (1, n, V) that it has alone."""
    for row in (row for row in rows if texts.real[row].any()):
        yield row, path(texts.text(row))
