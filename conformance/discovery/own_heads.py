"""A head that belongs to a model and stands outside of its call: the part of it whose matrix has a row for each id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

from conformkit.conformance.discovery.bench import TROUBLE, Bench
from conformkit.conformance.driver.errors import WorkerLost

__all__ = ["HEADED", "own_head"]

HEADED = {"Transformer": "tgt_vocab_size"}
"""Models whose heads are looked for, and the size of which a head's matrix has rows."""
_MATRIX = 2


def own_head(name: str, table: Mapping[str, Any], bench: Bench) -> str:
    """Return the part of a model that makes logits of what it returns; nothing if there is none.

    Found by shape, and by a call that gives logits: whatever it is called.
    """
    if name not in HEADED or "head" in table:
        return ""
    for part in _parts(name, table, bench):
        try:
            bench.answers(name, {**table, "head": part})
        except WorkerLost:
            raise
        except TROUBLE:
            continue
        return part
    return ""


def _parts(name: str, table: Mapping[str, Any], bench: Bench) -> Iterator[str]:
    """Yield the parts that hold such a matrix, the outermost first."""
    try:
        instance = bench.subject(name, table).build(**bench.sizes)
    except WorkerLost:
        raise
    except TROUBLE:
        return
    rows = instance.sizes[HEADED[name]]
    for parameter in instance.trainable:
        if len(parameter["shape"]) == _MATRIX and rows in parameter["shape"]:
            words = parameter["name"].split(".")[:-1]
            yield from accumulate(words, "{}.{}".format)
