"""Splits, windows and batches over ids that equal their positions."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from conformkit.reference import get_batch, sliding_windows, train_val_split
from conformkit.reference.errors import SizeError


@pytest.mark.parametrize(("count", "first"), [(1000, 900), (1001, 900), (7, 6), (1, 0)])
def test_the_split_is_contiguous_and_loses_nothing(count: int, first: int) -> None:
    train, val = train_val_split(torch.arange(count))
    assert (len(train), len(val)) == (first, count - first)
    assert torch.cat([train, val]).tolist() == list(range(count))
    assert train_val_split(list(range(count))) == (list(range(first)), list(range(first, count)))


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, float("nan")])
def test_a_fraction_that_leaves_a_part_empty_is_refused(fraction: float) -> None:
    with pytest.raises(SizeError, match="fraction"):
        train_val_split(torch.arange(10), fraction)


def test_windows_of_a_batch_are_slices_and_their_successors() -> None:
    torch.manual_seed(0)
    x, y = get_batch(torch.arange(9), 400, 4)
    assert x.shape == y.shape == (400, 4)
    assert x.dtype == y.dtype == torch.int64
    assert torch.equal(y, x + 1)
    assert torch.equal(x.diff(dim=1), torch.ones(400, 3, dtype=torch.int64))
    starts = Counter(x[:, 0].tolist())
    assert set(starts) == {0, 1, 2, 3, 4}  # of N - T = 5 starts, the first and the last too
    assert max(starts.values()) < 2 * min(starts.values())


def test_batches_follow_the_seed_and_copy() -> None:
    ids = torch.arange(50)
    torch.manual_seed(1)
    first = get_batch(ids, 8, 3)
    torch.manual_seed(1)
    again = get_batch(ids.tolist(), 8, 3)
    assert torch.equal(first[0], again[0])
    first[0].fill_(-1)
    sliding_windows(ids, 3)[0].fill_(-1)
    assert torch.equal(ids, torch.arange(50))


def test_sliding_windows_are_all_of_them() -> None:
    x, y = sliding_windows(torch.arange(10), 4)
    assert x.tolist() == [list(range(start, start + 4)) for start in range(6)]
    assert torch.equal(y, x + 1)


@pytest.mark.parametrize("cut", [lambda ids: get_batch(ids, 2, 4), lambda ids: sliding_windows(ids, 4)])
def test_a_text_of_one_window_is_the_shortest(cut: object) -> None:
    x, y = cut(torch.arange(5))  # type: ignore[operator]
    assert x[0].tolist() == [0, 1, 2, 3]
    assert y[0].tolist() == [1, 2, 3, 4]
    with pytest.raises(SizeError, match="the number of ids is 4, expected at least block_size \\+ 1 = 5"):
        cut(torch.arange(4))  # type: ignore[operator]
