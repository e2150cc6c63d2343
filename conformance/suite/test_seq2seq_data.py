"""Clauses of spec/seq2seq_data.md. Ids of texts begin at 10; pads, begins and ends are below."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from conformkit.conformance.assertions.checks import check, check_equal, each_of, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case
from conformkit.conformance.assertions.values import ids, several
from conformkit.conformance.evidence.at_sizes import check_at_sizes
from conformkit.conformance.subject.tool import Tool
from conformkit.conformance.suite.registry import clause
from conformkit.fixtures import facts
from conformkit.spec.arrays import Array
from conformkit.spec.seq2seq_data import collate as definition
from conformkit.spec.seq2seq_data import shift_right as shifted

Pairs = Sequence[tuple[Array, Array]]

MARKS = ((0, 1, 2), (7, 3, 0), (2, 0, 1))
"""Pad, begin and end ids; each of them is 0 once."""
LENGTHS = ((3, 2), (1, 4), (5, 1), (2, 2))
"""Lengths of sources and targets: neither sorted nor equal."""
NAMES = ("src", "tgt_in", "tgt_out")
_ID = 500.0
"""An id is sent and read as text: as costly as some hundred multiplications."""


@clause("S2SDATA-SHIFT-SHAPE")
def test_what_is_read_is_as_long_as_the_target(shift_right: Tool) -> None:
    for rows, length in each_of("rows, length", [(3, 5), (1, 4), (2, 1)]):
        _read(shift_right, _counting(rows, length), 1)


@clause("S2SDATA-SHIFT-BEGIN")
def test_reading_begins_with_the_begin_id_that_is_given(shift_right: Tool) -> None:
    for begin in each_of("begin", [1, 0, 7]):
        check_equal("the first ids", _read(shift_right, _counting(3, 4), begin)[:, 0], np.full(3, begin))


@clause("S2S-SHIFT-RIGHT")
def test_after_the_begin_id_comes_the_target_without_its_last_id(shift_right: Tool) -> None:
    for rows, length in each_of("rows, length", [(3, 5), (1, 4), (2, 1)]):  # several rows tell the axes apart
        target = _counting(rows, length)
        check_equal("what is read", _read(shift_right, target, 3), shifted(target, 3))
    stored = facts("S2S-SHIFT-RIGHT")[0]
    under(f"golden {stored.number}, {stored.title}")
    target = np.array([stored.inputs["target"]])
    check_equal("what is read", _read(shift_right, target, stored.inputs["start"])[0], np.array(stored.value["input"]))


@clause("S2SDATA-SHIFT-PURE")
def test_the_target_stays_as_it_is(shift_right: Tool) -> None:
    target = _counting(3, 4)
    for name, after in shift_right.leaves(tgt=target, bos_id=1).items():
        check_equal(f"{name} afterwards", after, target)


@clause("S2SDATA-SHAPE")
def test_a_batch_is_three_arrays_of_ids(collate: Tool, draw: Draw) -> None:
    for lengths in each_of("lengths", [LENGTHS, LENGTHS[:1], LENGTHS[1:3]]):
        _batch(collate, _pairs(draw, lengths))


@clause("S2SDATA-SOURCE")
def test_each_source_is_in_its_row_in_order_and_whole(collate: Tool, draw: Draw) -> None:
    for marks in each_of("marks", MARKS):
        pairs = _pairs(draw)
        src = _batch(collate, pairs, marks)[0]
        lead = _lead(src, marks)
        for row, (source, _) in enumerate(pairs):
            check_equal(f"the ids of source {row}", src[row, lead : lead + len(source)], source)


@clause("S2SDATA-BEGIN")
def test_what_is_read_begins_with_the_begin_id(collate: Tool, draw: Draw) -> None:
    for marks in each_of("marks", MARKS):
        read = _batch(collate, _pairs(draw), marks)[1]
        check_equal("the first ids that are read", read[:, 0], np.full(len(read), marks[1]))


@clause("S2SDATA-TARGET")
def test_what_is_predicted_is_the_target_in_order_and_whole(collate: Tool, draw: Draw) -> None:
    for marks in each_of("marks", MARKS):
        pairs = _pairs(draw)
        predicted = _batch(collate, pairs, marks)[2]
        for row, (_, target) in enumerate(pairs):
            first = predicted[row, : len(target)]
            check_equal(f"what is predicted first in row {row}, {first.tolist()},", first, target)


@clause("S2SDATA-END")
def test_after_the_last_word_the_end_id_is_predicted(collate: Tool, draw: Draw) -> None:
    for marks in each_of("marks", MARKS):
        pairs = _pairs(draw)
        _, read, predicted = _batch(collate, pairs, marks)
        for row, (_, target) in enumerate(pairs):
            after = predicted[row, len(target) : len(target) + 1].tolist()
            label = f"in row {row}, {after or 'nothing'} follows the last id, expected [{marks[2]}]"
            elsewhere = ", but tgt_in has one" if marks[2] in read[row] and marks[2] not in predicted[row] else ""
            check(f"{label}; {_where(predicted[row], len(target), marks[2])}{elsewhere}", after == [marks[2]])


@clause("S2SDATA-ALIGN")
def test_what_is_predicted_at_a_place_is_read_at_the_next(collate: Tool, draw: Draw) -> None:
    for marks in each_of("marks", MARKS):
        pairs = _pairs(draw)
        _, read, predicted = _batch(collate, pairs, marks)
        for row, (_, target) in enumerate(pairs):
            end = len(target)
            check_equal(f"what is read after the begin of row {row}", read[row, 1 : end + 1], predicted[row, :end])


@clause("S2SDATA-PAD")
def test_behind_the_end_of_each_row_stands_the_pad_that_is_given(collate: Tool, draw: Draw) -> None:
    for marks in each_of("marks", MARKS):
        pad, _, end = marks
        pairs = _pairs(draw)
        src, read, predicted = _batch(collate, pairs, marks)
        for row, (source, target) in enumerate(pairs):
            behind = (
                ("the source", src[row, _lead(src, marks) + len(source) + _tail(src, pairs, marks) :], {pad}),
                ("what is read", read[row, len(target) + 1 :], {pad, end}),
                ("what is predicted", predicted[row, len(target) + 1 :], {pad}),
            )
            for label, found, allowed in behind:
                check(
                    f"after {label} in row {row} comes {found.tolist()}, expected the pad {pad}",
                    allowed.issuperset(found),
                )


@clause("S2SDATA-LONGEST")
def test_a_batch_is_as_long_as_its_longest_sequence(collate: Tool, draw: Draw) -> None:
    for lengths in each_of("lengths", [LENGTHS, LENGTHS[:2], LENGTHS[3:]]):
        pairs = _pairs(draw, lengths)
        src, read, _ = _batch(collate, pairs)
        around = _lead(src, MARKS[0]) + _tail(src, pairs, MARKS[0])
        longest = max(len(source) for source, _ in pairs) + around, max(len(target) for _, target in pairs) + 1
        got = src.shape[1], read.shape[1]
        check(
            f"sources and targets are {got[0]} and {got[1]} long, expected {longest[0]} and {longest[1]}",
            got == longest,
        )


@clause("S2SDATA-EMPTY")
def test_an_empty_source_or_target_is_a_row_of_its_own(collate: Tool, draw: Draw) -> None:
    pad, begin, end = MARKS[0]
    pairs = _pairs(draw, ((3, 2), (0, 3), (2, 0), (1, 1)))
    src, read, predicted = _batch(collate, pairs)
    text = src[1][src[1] >= 10]
    check(f"the row of an empty source holds {text.tolist()}", not text.size)
    check_equal("what is read first of an empty target", read[2, 0], np.array(begin))
    want = np.array([end, *[pad] * (predicted.shape[1] - 1)])
    check_equal("what is predicted of an empty target", predicted[2], want)
    check_equal("what is predicted in the row after it", predicted[3, :1], pairs[3][1])


@clause("S2S-COLLATE")
def test_a_batch_holds_every_pair_padded_and_aligned(collate: Tool, draw: Draw) -> None:
    for marks in each_of("marks", MARKS):
        _check_batch(collate, _pairs(draw, [(draw.integer(1, 6), draw.integer(1, 6)) for _ in range(7)]), marks)
    stored = facts("S2S-COLLATE")[0]
    under(f"golden {stored.number}, {stored.title}")
    codes = {"START": 1, "END": 2} | {word: 10 + n for n, word in enumerate(stored.inputs["words"])}
    words = np.array([codes[word] for word in stored.inputs["words"]])
    _, read, predicted = _batch(collate, [(words, words), (words, words)])
    check_equal("the inputs", read[0], np.array([codes[word] for word in stored.value["inputs"]]))
    check_equal("the targets", predicted[0], np.array([codes[word] for word in stored.value["targets"]]))


@clause("S2SDATA-SHIFT-SIZES")
def test_targets_of_any_size_are_shifted(shift_right: Tool, draw: Draw) -> None:
    def check_sizes(sizes: Case) -> None:
        target = 10 + draw.at(sizes).ids(2000, sizes["batch"], sizes["tokens"])
        check_equal("what is read", _read(shift_right, target, 3), shifted(target, 3))

    check_at_sizes(draw, check_sizes, lambda sizes: _ID * sizes["batch"] * sizes["tokens"], dict,
                   after="S2S-SHIFT-RIGHT")  # fmt: skip


@clause("S2SDATA-SIZES")
def test_a_batch_of_any_size_holds_every_pair(collate: Tool, draw: Draw) -> None:
    def check_sizes(sizes: Case) -> None:
        own, batch = draw.at(sizes), sizes["batch"]
        longest = own.integer(0, batch - 1)
        pairs = []
        for row in range(batch):
            source, target = (sizes[n] if row == longest else own.integer(1, sizes[n]) for n in ("keys", "tokens"))
            pairs.append((10 + own.ids(2000, source), 10 + own.ids(2000, target)))
        _check_batch(collate, pairs, MARKS[0])

    def cost(sizes: Case) -> float:
        return _ID * sizes["batch"] * (sizes["keys"] + 2 * sizes["tokens"])

    check_at_sizes(draw, check_sizes, cost, dict, after="S2S-COLLATE")


def _check_batch(collate: Tool, pairs: Pairs, marks: tuple[int, int, int]) -> None:
    src, read, predicted = _batch(collate, pairs, marks)
    want = definition(pairs, *marks)
    lead, width = _lead(src, marks), want[0].shape[1]
    text = [src[row, lead : lead + len(source)] for row, (source, _) in enumerate(pairs)]
    found = np.array([[*own, *[marks[0]] * (width - len(own))] for own in text])
    check_equal("the sources", found, want[0])
    longest = want[2].shape[1]
    check(f"targets are {read.shape[1]} long, expected {longest}", read.shape[1] >= longest)
    counted = np.arange(longest) < np.array([[len(target) + 1] for _, target in pairs])
    check_equal("what is read, up to each end", read[:, :longest] * counted, want[1] * counted)
    check_equal("what is predicted", predicted[:, :longest], want[2])


def _counting(rows: int, length: int) -> Array:
    """Return ids (rows, length) that all differ."""
    return 10 + np.arange(rows * length).reshape(rows, length)


def _read(shift_right: Tool, target: Array, begin: int) -> Array:
    return ids("what is read", shift_right(tgt=target, bos_id=begin), target.shape)


def _pairs(draw: Draw, lengths: Sequence[tuple[int, int]] = LENGTHS) -> list[tuple[Array, Array]]:
    """Return pairs of these lengths, all of whose ids differ."""
    every = 10 + draw.permutation(90)
    cuts = np.split(every, np.cumsum([length for pair in lengths for length in pair]))[:-1]
    return list(zip(cuts[::2], cuts[1::2], strict=True))


def _batch(collate: Tool, pairs: Pairs, marks: tuple[int, int, int] = MARKS[0]) -> list[Array]:
    """Return src, tgt_in and tgt_out, one row for each pair, the latter two of one shape."""
    pad, begin, end = marks
    value = collate(pairs=pairs, pad_id=pad, bos_id=begin, eos_id=end)
    if isinstance(value, dict) and set(NAMES) <= set(value):
        value = [value[name] for name in NAMES]
    parts = [ids(name, part) for name, part in zip(NAMES, several("collate", value, 3), strict=True)]
    for name, part in zip(NAMES, parts, strict=True):
        check(f"{name} has shape {part.shape}, expected {len(pairs)} rows", part.ndim == 2 and len(part) == len(pairs))
    check(f"tgt_in has shape {parts[1].shape}, tgt_out {parts[2].shape}", parts[1].shape == parts[2].shape)
    return parts


def _where(row: Array, length: int, end: int) -> str:
    """Say where the end id of a row is, its target having this many ids."""
    found = np.flatnonzero(row == end) - length
    behind = found[found >= 0]
    if not behind.size:
        return f"the end id is at position {found[0] + length} of the row" if found.size else "the row has no end id"
    last = ", in the last column" if behind[0] + length == len(row) - 1 else ""
    return f"the end id follows {behind[0]} ids later{last}"


def _lead(src: Array, marks: tuple[int, int, int]) -> int:
    """Return how many begin ids stand before each source: none, or one."""
    return int(src.shape[1] > 0 and bool((src[:, 0] == marks[1]).all()))


def _tail(src: Array, pairs: Pairs, marks: tuple[int, int, int]) -> int:
    """Return how many end ids follow each source: none, or one."""
    places = [_lead(src, marks) + len(source) for source, _ in pairs]
    return int(all(place < src.shape[1] and src[row, place] == marks[2] for row, place in enumerate(places)))
