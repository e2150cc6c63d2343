"""Clauses of spec/paths_cache.md."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check_close, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.cached_text import begun, cached, in_pieces, pieces_of
from conformkit.conformance.evidence.logits import causal_slack, draw_ids, other_ids
from conformkit.conformance.evidence.padded_texts import batch, check_same_logits, masked, padded
from conformkit.conformance.subject.component import Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array

_SIZES = ((3, 2), (1, 4), (2, 1, 3), (4, 3), (5, 1, 1))
"""Sizes of pieces; what they leave of a text comes last."""


@clause("PATH-CACHE-WHOLE")
def test_an_empty_cache_changes_nothing(model: Subject, draw: Draw) -> None:
    path = cached(model, draw)
    texts = [draw_ids(path.instance, draw, batch(path), tokens) for tokens in (1, 7)]
    for ids, want in [(ids, path(ids)) for ids in texts]:
        under(f"{ids.shape[1]} ids and an empty cache")
        check_same_logits("the logits", in_pieces(path, ids, [ids.shape[1]]), want, path.instance)


@clause("PATH-CACHE-ONE")
def test_one_id_after_the_other_gives_the_whole(model: Subject, draw: Draw) -> None:
    path = cached(model, draw)
    ids = draw_ids(path.instance, draw, batch(path), 6)
    whole = path(ids)
    for first in (1, 3):
        sizes = [first, *([1] * (ids.shape[1] - first))]
        under(f"{ids.shape[1]} ids in pieces of {', '.join(map(str, sizes))}")
        check_same_logits("the logits", in_pieces(path, ids, sizes), whole, path.instance)


@clause("PATH-CACHE-CHUNKS")
def test_pieces_of_any_sizes_give_the_whole(model: Subject, draw: Draw) -> None:
    path = cached(model, draw)
    ids = draw_ids(path.instance, draw, batch(path), 8)
    whole = path(ids)
    for sizes in _SIZES:
        pieces = pieces_of(ids, sizes)
        under(f"{ids.shape[1]} ids in pieces of {', '.join(str(piece.shape[1]) for piece in pieces)}")
        check_same_logits("the logits", in_pieces(path, ids, sizes), whole, path.instance)


@clause("PATH-CACHE-CAUSAL")
def test_a_piece_is_causal(model: Subject, draw: Draw) -> None:
    path = cached(model, draw)
    ids = draw_ids(path.instance, draw, batch(path, 2), 7)
    others = other_ids(ids, path.instance.sizes["vocab_size"], draw)
    for sizes in ((7,), (2, 5), (3, 2)):
        for place in (3, 5):
            changed = np.where(np.arange(ids.shape[1]) > place, others, ids)
            under(f"pieces of {', '.join(map(str, sizes))}, ids after place {place} changed")
            before, after = (in_pieces(path, each, sizes)[:, : place + 1] for each in (ids, changed))
            check_close("earlier logits", after, before, causal_slack(path.instance))


@clause("PATH-CACHE-ROWS")
def test_a_row_is_continued_in_a_batch_as_alone(model: Subject, draw: Draw) -> None:
    path = cached(model, draw)
    ids = draw_ids(path.instance, draw, batch(path), 6)
    together = in_pieces(path, ids, (3, 1))
    for row in range(len(ids)):
        under(f"row {row} of {len(ids)}, pieces of 3, 1, {ids.shape[1] - 4}")
        alone = in_pieces(path, ids[row : row + 1], (3, 1))
        check_same_logits("the logits", together[row], alone[0], path.instance)


@clause("PATH-CACHE-APART")
def test_texts_with_caches_of_their_own_do_not_meet(model: Subject, draw: Draw) -> None:
    path = cached(model, draw)
    first, second = (draw_ids(path.instance, draw, batch(path, 2), 6) for _ in range(2))
    texts = [begun(path, len(ids)) for ids in (first, second)]
    given: list[list[Array]] = [[], []]
    for one, other in zip(pieces_of(first, (3, 2)), pieces_of(second, (2, 3)), strict=True):
        for got, text, piece in zip(given, texts, (one, other), strict=True):
            got.append(text.read(piece))
    for name, got, ids in zip(("first", "second"), given, (first, second), strict=True):
        under(f"two texts in turn, pieces of the {name}")
        check_same_logits("the logits", np.concatenate(got, axis=1), path(ids), path.instance)


@clause("PATH-CACHE-WITHOUT")
def test_calls_without_a_cache_begin_a_new_text(model: Subject, draw: Draw) -> None:
    path = cached(model, draw)
    ids = draw_ids(path.instance, draw, batch(path, 2), 5)
    before = path(ids)
    text = begun(path, len(ids))
    text.read(ids[:, :3])
    under("a call without a cache, after one with a cache")
    check_same_logits("the logits", path(ids), before, path.instance)
    under("the next piece with the cache, after a call without it")
    check_same_logits("the logits", text.read(ids[:, 3:]), before[:, 3:], path.instance)


@clause("PATH-CACHE-PADDED")
def test_padded_texts_are_continued_as_alone(model: Subject, draw: Draw) -> None:
    path = cached(model, draw)
    known = masked(model, draw)
    path = replace(path, form=known.form, placing=known.placing)
    texts = padded(path, draw, [8, 6, 7][: batch(path)], side="left")
    whole = path(texts.ids, mask=texts.real, positions=texts.positions)
    path.requires_rows()
    text, done = begun(path, len(texts.ids)), 0
    for piece in pieces_of(texts.ids, (4, 1)):
        until = done + piece.shape[1]
        try:
            got = text.read(piece, mask=texts.real[:, :until], positions=texts.positions[:, done:until])
        except ImplementationFailure:
            if done == 0:
                raise
            raise NotApplicable("with a cache, it takes no mask of all ids, kept and new ones") from None
        real = texts.real[:, done:until]
        under(f"places {done} to {until - 1} of rows padded on the left, with a mask of all ids so far")
        check_same_logits("the logits of real ids", got[real], whole[:, done:until][real], path.instance)
        done = until


@clause("PATH-CACHE-CROP")
def test_what_is_cropped_is_forgotten(model: Subject, draw: Draw) -> None:
    path = cached(model, draw)
    ids = draw_ids(path.instance, draw, batch(path, 2), 8)
    others = other_ids(ids, path.instance.sizes["vocab_size"], draw)
    for kept, sizes in ((3, (6,)), (2, (2, 3)), (4, (1, 4))):
        text = begun(path, len(ids))
        for piece in pieces_of(np.concatenate([ids[:, :kept], others[:, kept:6]], axis=1), sizes):
            text.read(piece)
        text.change("crop", kept)
        under(f"6 ids read, cropped to {kept}, then other ids")
        check_same_logits("the logits", text.read(ids[:, kept:]), path(ids)[:, kept:], path.instance)


@clause("PATH-CACHE-RESET")
def test_after_a_reset_another_text_begins(model: Subject, draw: Draw) -> None:
    path = cached(model, draw)
    first, second = (draw_ids(path.instance, draw, batch(path, 2), 5) for _ in range(2))
    text = begun(path, len(first))
    text.read(first)
    text.change("reset")
    under("a text after another one, with the cache reset between them")
    got = np.concatenate([text.read(piece) for piece in pieces_of(second, (2,))], axis=1)
    check_same_logits("the logits", got, path(second), path.instance)


@clause("PATH-CACHE-REORDER")
def test_rows_are_reordered_with_their_texts(model: Subject, draw: Draw) -> None:
    path = cached(model, draw)
    ids = draw_ids(path.instance, draw, batch(path), 6)
    for order in ([1, 0, *range(2, len(ids))], [len(ids) - 1] * len(ids)):
        text = begun(path, len(ids))
        text.read(ids[:, :3])
        text.change("reorder", rows=np.asarray(order, np.int64))
        now = np.concatenate([ids[order, :3], ids[:, 3:]], axis=1)
        under(f"after 3 ids, rows continue rows {', '.join(map(str, order))}")
        got = np.concatenate([text.read(piece) for piece in pieces_of(ids[:, 3:], (1,))], axis=1)
        check_same_logits("the logits", got, path(now)[:, 3:], path.instance)
