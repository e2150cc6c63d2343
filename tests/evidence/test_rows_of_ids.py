"""Which parameters are rows of ids that a text does not have."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from conformkit.conformance.evidence import rows_of_ids

ROWS = {"embedding.weight": ["w.0", "w.1", "w.2"], "tgt_embedding.weight": ["t"], "src_embedding.weight": []}


@pytest.mark.parametrize(
    ("inputs", "found"),
    [
        ({"ids": [[0, 2], [0, 0]]}, {"w.1"}),
        ({"src": [[0]], "tgt": [[2]]}, {"w.1"}),  # one table for both
        ({"src": None, "tgt": [[2]]}, {"w.0", "w.1"}),
        ({"x": [[0.0]]}, set()),
        ({"ids": [[0, 1, 2]]}, set()),
    ],
    ids=["text", "shared", "none", "vectors", "all"],
)
def test_rows_of_ids_that_no_input_has_are_not_read(
    inputs: dict[str, list[list[int]] | None], found: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would break if a row that is read were excused: its missing gradient would pass."""
    monkeypatch.setattr(rows_of_ids, "parameters_of", lambda _, table: ROWS[table])
    table = SimpleNamespace(shape=(3, 5))
    instance = SimpleNamespace(
        subject=SimpleNamespace(bound=SimpleNamespace(component=SimpleNamespace(inputs=tuple(inputs)))),
        canonical={"embedding.weight": table, "tgt_embedding.weight": table},
    )
    arrays = [None if rows is None else np.array(rows) for rows in inputs.values()]
    assert rows_of_ids.unread_rows(instance, arrays) == found
