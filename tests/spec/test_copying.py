"""The tasks of an encoder-decoder are as described."""

from __future__ import annotations

import numpy as np
import pytest

from conformkit.spec.copying import BEGIN, COPY, END, PAD, REVERSE, Task
from conformkit.spec.loss import IGNORED


@pytest.mark.parametrize("task", [COPY, REVERSE], ids=["copy", "reverse"])
def test_targets_are_the_source_in_order_or_reversed_between_a_begin_and_an_end(task: Task) -> None:
    found = task.draw(np.random.default_rng(1), 200)
    lengths = set()
    for source, read, wanted in zip(found.src.tolist(), found.tgt.tolist(), found.wanted.tolist(), strict=True):
        ids = [number for number in source if number != PAD]
        text = ids[::-1] if task.reverse else ids
        rest = task.longest - len(ids)
        assert source == ids + [PAD] * rest
        assert read == [BEGIN, *text, *[PAD] * rest]
        assert wanted == [*text, END, *[IGNORED] * rest]
        assert all(END < number < task.size for number in ids)
        lengths.add(len(ids))
    assert lengths == set(range(task.shortest, task.longest + 1))
