"""Clauses of spec/data.md. Ids count up, so that each tells its place in the sequence."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import check, check_equal, check_refuses, check_shape, each_of, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case
from conformkit.conformance.assertions.statistics import check_frequencies, hits_needed
from conformkit.conformance.assertions.values import ids, several
from conformkit.conformance.evidence.at_sizes import Pace, check_at_sizes
from conformkit.conformance.subject.tool import Tool
from conformkit.conformance.suite.registry import clause
from conformkit.fixtures import facts
from conformkit.spec.arrays import Array
from conformkit.spec.data import sliding_windows as definition

FIRST = 100
"""Where counting begins, so that no id equals its place."""
_ROWS = 100
_RARELY = 0.75
"""So few of the places that are usual are drawn once in a million batches, at any number of windows."""
"""Rows that all start in the first four fifths of the sequence once in five thousand million times."""
_SHORT, _FEW_WINDOWS = (1, 2), (2, 40)
"""Lengths of windows that are cut from long sequences, and of sequences that are cut into a few windows, at least."""
_ID = 1500.0
"""An id is sent and read as text: as costly as some hundred multiplications."""


@clause("DATA-NO-LEAK")
def test_no_id_is_in_both_parts(train_val_split: Tool) -> None:
    for count in each_of("count", [1000, 1001, 10]):  # of 10, one is a tenth: all cuts that overlap look alike
        train, val = _split(train_val_split, count)
        shared = np.intersect1d(train, val) - FIRST
        parts = f"the parts of {count} ids have {len(train)} and {len(val)} ids"
        check(f"{parts}, {len(shared)} of them in both, from number {shared[:1]} on", not len(shared))


@clause("DATA-SPLIT-CONTIGUOUS")
def test_both_parts_are_in_order_the_training_part_in_front(train_val_split: Tool) -> None:
    for count in each_of("count", [10, 1001]):
        train, val = _split(train_val_split, count)
        for name, part in (("training", train), ("validation", val)):
            steps = np.flatnonzero(np.diff(part) != 1)
            at = f"ids number {part[steps[0]] - FIRST} and {part[steps[0] + 1] - FIRST}" if len(steps) else ""
            check(f"in the {name} part, {at} are adjacent", not len(steps))
        begins = len(train) and train[0] == FIRST
        check(f"of {count} ids, the training part begins with number {train[:1] - FIRST}", bool(begins))


@clause("DATA-SPLIT-SIZE")
def test_the_parts_have_the_sizes_asked_for(train_val_split: Tool) -> None:
    fractions = [0.9, 0.8, 0.5] if train_val_split.offers("fraction") else [0.9]
    for count, fraction in each_of(
        "count, fraction", [(count, fraction) for count in (10, 1000, 1001, 1009) for fraction in fractions]
    ):
        train, val = _split(train_val_split, count, fraction)
        together = f"the parts of {count} ids have {len(train)} and {len(val)} ids"
        check(f"{together}: {count - len(train) - len(val)} are lost", len(train) + len(val) == count)
        check(
            f"{together}, expected {fraction:g} for the training part", abs(len(train) - fraction * count) < 1.0 + 1e-9
        )


@clause("DATA-SHAPE")
def test_a_batch_is_two_arrays_of_ids(get_batch: Tool) -> None:
    for rows, length in each_of("rows, length", [(3, 5), (1, 1), (7, 2)]):
        _draw(get_batch, 40, rows, length)


@clause("DATA-VAL-FROM-VAL")
def test_a_batch_comes_from_the_ids_that_are_given(get_batch: Tool) -> None:
    for first in each_of("first", [100, 500, 100]):
        for part in _draw(get_batch, 40, 8, 5, first=first):
            foreign = part[(part < first) | (part >= first + 40)]
            check(f"id {foreign[:1]} is not among {first} … {first + 39}, the given ids", not foreign.size)


@clause("DATA-CONTIGUOUS")
def test_a_row_is_a_piece_of_the_sequence(get_batch: Tool) -> None:
    for count, length in each_of("count, length", [(40, 5), (9, 7), (12, 4)]):
        for _ in range(4):
            x, _targets = _draw(get_batch, count, 16, length)
            check_equal("the distance of one input to the next", np.diff(x), np.ones((16, length - 1), np.int64))


@clause("DATA-SHIFT")
def test_the_target_of_each_position_is_the_next_id(get_batch: Tool) -> None:
    for count, length in each_of("count, length", [(40, 5), (12, 1), (9, 7)]):
        x, y = _draw(get_batch, count, 16, length)
        check_equal("the targets of inputs that count up", y, x + 1)


@clause("DATA-MIN")
def test_the_shortest_sequence_has_one_window(get_batch: Tool) -> None:
    for length in each_of("length", [1, 5]):
        x, y = _draw(get_batch, length + 1, 4, length)
        want = np.tile(np.arange(FIRST, FIRST + length), (4, 1))
        check_equal(f"the inputs, of {length + 1} ids", x, want)
        check_equal(f"the targets, of {length + 1} ids", y, want + 1)


@clause("DATA-SHORT")
def test_a_sequence_without_a_window_is_refused(get_batch: Tool) -> None:
    _draw(get_batch, 40, 3, 5)
    for count in each_of("count", [5, 4, 1]):
        check_refuses(f"a block_size of 5, of {count} ids,", partial(_ask, get_batch, count, 3, 5))


@clause("DATA-FIRST-WINDOW")
def test_the_first_window_is_drawn(get_batch: Tool) -> None:
    starts = _starts(get_batch, 10, 4, hits_needed(1 / 6))
    check(f"none of {len(starts)} rows starts at id number 0; the smallest start is {starts.min()}", starts.min() == 0)


@clause("DATA-LAST-WINDOW")
def test_the_last_window_is_drawn(get_batch: Tool) -> None:
    starts = _starts(get_batch, 10, 4, hits_needed(1 / 6))
    label = f"none of {len(starts)} rows ends with the last of 10 ids; the largest start is {starts.max()}, expected 5"
    check(label, starts.max() == 5)


@clause("DATA-UNIFORM")
def test_every_start_is_as_probable_as_any_other(get_batch: Tool) -> None:
    starts = _starts(get_batch, 13, 4, 2000)
    check_frequencies("the starts of 4 in 13 ids", starts, np.full(9, 1 / 9))


@clause("DATA-ROWS-INDEP")
def test_each_row_has_a_start_of_its_own(get_batch: Tool) -> None:
    starts = _starts(get_batch, 500, 4, 24)
    check(f"all 24 rows start at id number {starts[0]}", len(np.unique(starts)) > 1)
    distances = np.diff(starts)
    check(f"each row starts {distances[0]} after the one before", len(np.unique(distances)) > 1)


@clause("DATA-FRESH")
def test_each_call_draws_new_windows(get_batch: Tool) -> None:
    drawn = [_draw(get_batch, 500, 16, 3)[0] for _ in range(3)]
    again = all((other == drawn[0]).all() for other in drawn[1:])
    check("three consecutive calls gave the same 16 windows of 500 ids", not again)


@clause("DATA-SEED")
def test_the_same_seed_draws_the_same_batch(get_batch: Tool) -> None:
    first, again, other = (_draw(get_batch, 500, 16, 3, seed=seed)[0] for seed in (1, 1, 2))
    check_equal("the inputs, drawn again with the same seed", again, first)
    check("two seeds draw the same 16 windows of 500 ids", bool((first != other).any()))


@clause("DATA-WINDOW-COUNT")
def test_there_is_one_window_for_each_start(sliding_windows: Tool) -> None:
    for count, length in each_of("count, length", [(10, 4), (12, 1), (6, 5), (30, 7)]):
        _windows(sliding_windows, count, length)


@clause("DATA-WINDOWS")
def test_windows_follow_one_another_targets_one_id_ahead(sliding_windows: Tool) -> None:
    for count, length in each_of("count, length", [(10, 4), (12, 1), (6, 5)]):
        x, y = _windows(sliding_windows, count, length)
        want = _defined(sliding_windows, count, length)
        check_equal("the inputs", x, want[0])
        check_equal("the targets", y, want[1])
    stored = facts("DATA-WINDOWS")[0]
    under(f"golden {stored.number}, {stored.title}")
    given = np.array(stored.inputs["ids"])
    parts = several("sliding_windows", sliding_windows(ids=given, block_size=stored.inputs["T"]), 2)
    got = np.stack([ids("the windows", part) for part in parts], axis=1)
    ends = np.array([stored.value["first"], stored.value["last"]])
    if sliding_windows.stride(block_size=stored.inputs["T"]) == 1:
        check_equal("the first and the last window", got[[0, -1]], ends)
    else:
        check_equal("the first window", got[0], ends[0])


@clause("DATA-SPLIT-SIZES")
def test_the_parts_together_are_a_sequence_of_any_length(train_val_split: Tool, draw: Draw) -> None:
    def check_sizes(sizes: Case) -> None:
        count = sizes["count"]
        train, val = _split(train_val_split, count)
        check_equal("both parts together", np.concatenate([train, val]), np.arange(FIRST, FIRST + count))
        together = f"the parts of {count} ids have {len(train)} and {len(val)} ids"
        check(f"{together}, expected 0.9 for the training part", abs(len(train) - 0.9 * count) < 1.0 + 1e-9)

    check_at_sizes(draw, check_sizes, lambda sizes: _ID * sizes["count"], dict, after="DATA-SPLIT-SIZE")


@clause("DATA-SIZES")
def test_batches_of_any_size_are_pieces_from_all_over_the_sequence(get_batch: Tool, draw: Draw) -> None:
    def check_sizes(sizes: Case) -> None:
        count, rows, length = sizes["count"], sizes["batch"], sizes["block_size"]
        x, y = _draw(get_batch, count, rows, length)
        check_equal("the distance of one input to the next", np.diff(x), np.ones((rows, length - 1), np.int64))
        check_equal("the targets of inputs that count up", y, x + 1)
        short = min(length, 8)
        starts, last = _starts(get_batch, count, short, _ROWS), count - short - 1
        label = f"none of {_ROWS} rows starts after id number {starts.max()}, the last window at {last}"
        check(label, int(starts.max()) >= int(0.8 * last))
        different, windows = len(set(starts.tolist())), last + 1
        usual = windows * (1.0 - (1.0 - 1.0 / windows) ** _ROWS)
        check(f"{_ROWS} rows of one batch start at {different} places of {windows}, usual are {usual:.0f}",
              different >= _RARELY * usual)  # fmt: skip

    def cost(sizes: Case) -> float:
        every = sizes["count"] * sizes["block_size"]  # some cut all windows, and choose among them
        return _ID * (8 * _ROWS + sizes["batch"] * sizes["block_size"]) + 20 * every

    check_at_sizes(draw, check_sizes, cost, _with_a_window, after="DATA-SHIFT", following=("count",))


@clause("DATA-WINDOWS-SIZES")
def test_all_windows_are_cut_at_every_size(sliding_windows: Tool, draw: Draw) -> None:
    def check_sizes(sizes: Case) -> None:
        count, length = sizes["count"], sizes["block_size"]
        x, y = _windows(sliding_windows, count, length)
        want = _defined(sliding_windows, count, length)
        check_equal("the inputs", x, want[0])
        check_equal("the targets", y, want[1])

    def cost(sizes: Case) -> float:
        return _ID * sizes["block_size"] * (sizes["count"] - sizes["block_size"])

    pace = Pace()
    for one in ({"block_size": _SHORT}, {"count": _FEW_WINDOWS}):  # windows that are many and long are too much to read
        check_at_sizes(
            draw, check_sizes, cost, _with_a_window, after="DATA-WINDOWS", following=("count",),
            domain={**draw.domain, **one}, pace=pace,
        )  # fmt: skip


def _with_a_window(sizes: Case) -> dict[str, int]:
    """Return the same sizes with at least one window."""
    return {**sizes, "count": max(sizes["count"], sizes["block_size"] + 1)}


def _split(train_val_split: Tool, count: int, fraction: float = 0.9) -> tuple[Array, Array]:
    given = {"fraction": fraction} if train_val_split.offers("fraction") else {}
    parts = train_val_split(ids=np.arange(FIRST, FIRST + count), **given)
    train, val = (ids("a part of the split", part) for part in several("train_val_split", parts, 2))
    check_shape("the training part", train, (len(train),))
    check_shape("the validation part", val, (len(val),))
    return train, val


def _ask(get_batch: Tool, count: int, rows: int, length: int, *, first: int = FIRST, seed: int | None = None) -> Any:
    given = {"ids": np.arange(first, first + count), "batch_size": rows, "block_size": length}
    return get_batch(**given) if seed is None else get_batch.seeded(seed, **given)


def _draw(get_batch: Tool, count: int, rows: int, length: int, **options: Any) -> tuple[Array, Array]:
    parts = several("get_batch", _ask(get_batch, count, rows, length, **options), 2)
    x, y = (ids(name, part, (rows, length)) for name, part in zip(("the inputs", "the targets"), parts, strict=True))
    return x, y


def _starts(get_batch: Tool, count: int, length: int, rows: int) -> Array:
    """Draw these rows at once, with a fixed seed; return the place of each row's first id."""
    starts = _draw(get_batch, count, rows, length, seed=1)[0][:, 0] - FIRST
    outside = starts[(starts < 0) | (starts > count - length - 1)]
    check(f"a row starts at id number {outside[:1]} of {count}, the last window starts at {count - length - 1}",
          not outside.size)  # fmt: skip
    return np.asarray(starts)


def _windows(sliding_windows: Tool, count: int, length: int) -> tuple[Array, Array]:
    given = np.arange(FIRST, FIRST + count)
    parts = several("sliding_windows", sliding_windows(ids=given, block_size=length), 2)
    rows = (len(range(0, count - length, sliding_windows.stride(block_size=length))), length)
    return ids("the inputs", parts[0], rows), ids("the targets", parts[1], rows)


def _defined(sliding_windows: Tool, count: int, length: int) -> tuple[Array, Array]:
    """Return the windows of the definition, those that begin at multiples of the declared stride."""
    x, y = definition(np.arange(FIRST, FIRST + count), length)
    stride = sliding_windows.stride(block_size=length)
    return x[::stride], y[::stride]
