"""Sources of text give ids with the surprise that they say: the losses that clauses expect come from there."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from conformkit.spec import training
from conformkit.spec.loss import IGNORED

SOURCES: dict[str, Any] = {
    "uniform": training.UNIFORM, "threads": training.THREADS, "two threads": training.TWO_THREADS,
    "recall": training.RECALL, "alternation": training.ALTERNATION, "copies": training.Copies(3, 4),
    "first again": training.FIRST_AGAIN, "memory": training.Memory(),
    "markov": training.Markov(np.array([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75], [1.0, 0.0, 0.0]])),
}  # fmt: skip


def drawn(name: str, rows: int = 40, length: int = 12) -> training.Texts:
    return SOURCES[name].draw(np.random.default_rng(0), rows, length)


@pytest.mark.parametrize("name", SOURCES)
def test_targets_are_the_next_ids_within_the_vocabulary(name: str) -> None:
    texts = drawn(name)
    assert texts.x.shape == texts.y.shape == texts.surprise.shape
    counted = texts.y != IGNORED
    assert counted[:, :-1].any() or name in {"first again", "copies"}
    assert (texts.x[:, 1:][counted[:, :-1]] == texts.y[:, :-1][counted[:, :-1]]).all()
    assert (texts.x.min(), texts.x.max()) == (0, SOURCES[name].size - 1) or name == "first again"
    assert (texts.surprise >= 0).all()


@pytest.mark.parametrize(("name", "of_one"), [("uniform", math.log(8)), ("alternation", 0.0), ("memory", 0.0)])
def test_the_same_surprise_at_each_target(name: str, of_one: float) -> None:
    assert drawn(name).surprise == pytest.approx(of_one)


def test_uniform_ids_have_no_order_and_alternating_ones_begin_with_either() -> None:
    counts = np.bincount(drawn("uniform", 400).y.reshape(-1), minlength=8)
    assert counts.min() > 500
    texts = drawn("alternation")
    assert (texts.x + texts.y == 1).all()
    assert set(texts.x[:, 0]) == {0, 1}


@pytest.mark.parametrize("name", ["threads", "two threads"])
def test_each_bit_of_a_thread_repeats_that_of_its_lag_but_for_noise(name: str) -> None:
    """Would break if a thread had another lag, if noise were more or less than said, or surprise another's."""
    source, texts = SOURCES[name], drawn(name, 250, 20)
    ids = np.concatenate([texts.x[:, :1], texts.y], axis=1)
    bits = (ids[..., None] >> np.arange(len(source.lags))) & 1
    want = np.zeros(ids.shape)
    for thread, lag in enumerate(source.lags):
        same = bits[:, lag:, thread] == bits[:, :-lag, thread]
        assert same.mean() == pytest.approx(0.95, abs=0.015)
        want[:, :lag] += math.log(2)
        want[:, lag:] -= np.log(np.where(same, 0.95, 0.05))
    assert texts.surprise == pytest.approx(want[:, 1:])


def test_recall_repeats_names_and_counts_what_can_be_known() -> None:
    texts = drawn("recall", 30, 20)
    ids = np.concatenate([texts.x[:, :1], np.where(texts.y == IGNORED, -1, texts.y)], axis=1)
    whole = np.concatenate([texts.x, texts.y[:, -1:]], axis=1)
    for row, seen in zip(whole, ids, strict=True):
        values: dict[int, int] = {}
        for place in range(0, 18, 3):
            name, value, again = row[place : place + 3]
            assert name < 4 <= value < 8
            assert again == name == seen[place + 2]
            assert bool(seen[place + 1] == value) is (name in values)
            assert values.setdefault(name, value) == value
            assert place == 0 or seen[place] == -1


def test_copies_and_the_first_id_are_repeated_and_only_repetitions_count() -> None:
    texts = drawn("copies", length=99)
    whole = np.concatenate([texts.x, texts.y[:, -1:]], axis=1)
    assert (whole[:, :4] == whole[:, 5:]).all()
    assert (whole[:, 4] == 3).all()
    assert (whole[:, :4] < 3).all()
    assert (texts.y[:, :4] == IGNORED).all()
    assert (texts.y[:, 4:] == whole[:, 5:]).all()
    first = drawn("first again")
    assert (first.y[:, -1] == first.x[:, 0]).all()
    assert (first.y[:, :-1] == IGNORED).all()
    assert len(np.unique(first.x)) == 8


def test_memory_is_eight_texts_that_begin_otherwise_and_depend_on_the_seed_alone() -> None:
    texts = drawn("memory", 20)
    assert len(set(texts.x[:8, 0])) == 8
    assert (texts.x[8:16] == texts.x[:8]).all()
    assert (texts.x == training.Memory().draw(np.random.default_rng(5), 20, 12).x).all()
    assert (texts.x != training.Memory(1).draw(np.random.default_rng(0), 20, 12).x).any()


def test_a_chain_goes_on_by_its_chances() -> None:
    texts = drawn("markov", 400)
    chances = SOURCES["markov"].chances
    pairs = np.zeros((3, 3))
    np.add.at(pairs, (texts.x.reshape(-1), texts.y.reshape(-1)), 1)
    assert pairs / pairs.sum(1, keepdims=True) == pytest.approx(chances, abs=0.03)
    assert texts.surprise == pytest.approx(-np.log(chances[texts.x, texts.y]))


def test_lengths_and_rows_are_as_asked() -> None:
    shapes = {name: drawn(name, 5, 7).y.shape for name in SOURCES}
    assert shapes == {name: (5, 8 if name == "copies" else 7) for name in SOURCES}
    assert training.Copies().size == 16
    assert (training.THREADS.size, training.TWO_THREADS.size, training.RECALL.size) == (8, 4, 8)
