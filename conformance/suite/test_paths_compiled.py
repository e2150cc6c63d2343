"""Clauses of spec/paths_compiled.md."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import check_close, remark, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.logits import causal_slack, draw_ids, other_ids
from conformkit.conformance.evidence.padded_texts import batch, built, masked
from conformkit.conformance.evidence.recorded import check_padded, check_same, recorded
from conformkit.conformance.subject.call_path import Path
from conformkit.conformance.subject.component import Subject
from conformkit.conformance.suite.registry import clause
from conformkit.conformance.text import one_line

COMPILED, EXPORTED = "compiled", "exported"
LENGTHS = (6, 7, 5, 9)
"""The first is recorded for its length, the second for any; the others change nothing."""


@clause("PATH-COMPILED-CAUSAL")
def test_a_compiled_model_is_causal(model: Subject, draw: Draw) -> None:
    _check_causal(built(model, draw), draw, COMPILED)


@clause("PATH-COMPILED")
def test_a_compiled_model_gives_the_same_logits(model: Subject, draw: Draw) -> None:
    path = built(model, draw)
    made = recorded(path, COMPILED, draw_ids(path.instance, draw, batch(path), LENGTHS[0]))
    check_same(made, draw, LENGTHS[0])
    first = made.graphs()
    for tokens in LENGTHS[1:]:
        check_same(made, draw, tokens)
    again = made.graphs() - first
    whole = "one graph (fullgraph)" if first == 1 else f"{first} graphs, so not with fullgraph=True"
    remark(f"{model.name}, compiled: {whole}; {again} more for {len(LENGTHS) - 1} other lengths; reported, not judged")


@clause("PATH-COMPILED-PADDED")
def test_padding_is_hidden_in_a_compiled_model(model: Subject, draw: Draw) -> None:
    check_padded(_padding(model, draw), draw, COMPILED)


@clause("PATH-EXPORTED-CAUSAL")
def test_an_exported_model_is_causal(model: Subject, draw: Draw) -> None:
    _check_causal(built(model, draw), draw, EXPORTED)


@clause("PATH-EXPORTED")
def test_an_exported_model_gives_the_same_logits(model: Subject, draw: Draw) -> None:
    path = built(model, draw)
    made = recorded(path, EXPORTED, draw_ids(path.instance, draw, batch(path), LENGTHS[0]))
    if made.closed:
        remark(f"{model.name}, exported for one length only; reported, not judged: {one_line(made.closed, 200)}")
    for tokens in LENGTHS[:1] if made.closed else LENGTHS:
        check_same(made, draw, tokens)


@clause("PATH-EXPORTED-PADDED")
def test_padding_is_hidden_in_an_exported_model(model: Subject, draw: Draw) -> None:
    check_padded(_padding(model, draw), draw, EXPORTED)


def _padding(model: Subject, draw: Draw) -> Path:
    path = masked(model, draw)
    path.requires_rows()
    return path


def _check_causal(path: Path, draw: Draw, way: str) -> None:
    ids = draw_ids(path.instance, draw, batch(path, 2), 7)
    others = other_ids(ids, path.instance.sizes["vocab_size"], draw)
    made = recorded(path, way, ids)
    before = made(ids)
    for place in (0, 3, 5):
        after = made(np.where(np.arange(ids.shape[1]) > place, others, ids))
        under(f"{way}, ids after place {place} of {ids.shape[1]} changed")
        check_close("earlier logits", after[:, : place + 1], before[:, : place + 1], causal_slack(path.instance))
