"""Clauses of spec/paths_modes.md."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import check_close, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.logits import causal_slack, draw_ids, other_ids
from conformkit.conformance.evidence.padded_texts import (
    batch,
    built,
    check_same_logits,
    check_texts_alone,
    kernels,
    masked,
    padded,
)
from conformkit.conformance.subject.call_path import Path
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause


@clause("PATH-WEIGHTS")
def test_returning_weights_changes_nothing(model: Subject, draw: Draw) -> None:
    path = built(model, draw)
    path.requires("weights")
    ids = draw_ids(path.instance, draw, batch(path), 6)
    under("a call that returns weights, compared with one that does not")
    got = path(ids, weights=True)
    check_same_logits("the logits", got, path(ids, weights=False), path.instance)
    check_same_logits("the logits", got, path(ids), path.instance)


@clause("PATH-WEIGHTS-CAUSAL")
def test_a_call_that_returns_weights_is_causal(model: Subject, draw: Draw) -> None:
    path = built(model, draw)
    path.requires("weights")
    _check_causal(path, draw, weights=True)


@clause("PATH-TRAIN")
def test_training_mode_without_dropout_changes_nothing(model: Subject, draw: Draw) -> None:
    path = built(model, draw)
    for tokens in (1, 6):
        ids = draw_ids(path.instance, draw, batch(path), tokens)
        want = path(ids)
        under(f"training mode without dropout, {ids.shape[1]} ids")
        check_same_logits("the logits", path(ids, mode="train"), want, path.instance)


@clause("PATH-TRAIN-CAUSAL")
def test_training_with_dropout_is_causal(model: Subject, draw: Draw) -> None:
    instance: Instance = model.build(num_layers=2, dropout=0.3, block_size=12, vocab_size=17)
    _check_causal(Path(instance.scatter(draw, gain=1.5)), draw, mode="train", seed=1)


@clause("PATH-TRAIN-PADDED")
def test_padding_is_hidden_in_training_too(model: Subject, draw: Draw) -> None:
    path = masked(model, draw)
    path.requires_rows()
    ways: list[tuple[str, dict[str, Any]]] = [("training mode", {"mode": "train"})]
    if path.call_arguments.weights is not None:
        ways.append(("weights returned", {"weights": True}))
    for side in ("left", "right"):
        texts = padded(path, draw, [7, 4, 5][: batch(path)], side=side)
        for name, further in ways:
            logits = path(texts.ids, mask=texts.real, positions=texts.positions, **further)
            check_texts_alone(path, texts, logits, f"{name}, padding on the {side}")


@clause("PATH-KERNELS")
def test_each_kernel_of_attention_gives_the_same_logits(model: Subject, draw: Draw) -> None:
    path = built(model, draw)
    for kernel, other in kernels(path, draw):
        for tokens in (1, 6, 12):
            ids = draw_ids(path.instance, draw, batch(path), tokens)
            under(f"another kernel of attention, {ids.shape[1]} ids")
            check_same_logits(f"the logits with `{kernel}`", other(ids), path(ids), path.instance)


@clause("PATH-KERNELS-CAUSAL")
def test_each_kernel_of_attention_is_causal(model: Subject, draw: Draw) -> None:
    for kernel, other in kernels(built(model, draw), draw):
        _check_causal(other, draw, label=f"earlier logits with `{kernel}`")


@clause("PATH-KERNELS-PADDED")
def test_each_kernel_of_attention_hides_padding(model: Subject, draw: Draw) -> None:
    path = masked(model, draw)
    path.requires_rows()
    for kernel, other in kernels(path, draw):
        for side in ("left", "right"):
            texts = padded(path, draw, [7, 4, 5][: batch(path)], side=side)
            logits = other(texts.ids, mask=texts.real, positions=texts.positions)
            setting = f"another kernel of attention, padding on the {side}"
            check_texts_alone(path, texts, logits, setting, f"the logits of its text with `{kernel}`")


def _check_causal(path: Path, draw: Draw, label: str = "earlier logits", **further: Any) -> None:
    ids = draw_ids(path.instance, draw, batch(path, 2), 7)
    others = other_ids(ids, path.instance.sizes["vocab_size"], draw)
    before = path(ids, **further)
    for place in (0, 3, 5):
        after = path(np.where(np.arange(ids.shape[1]) > place, others, ids), **further)
        under(f"ids after place {place} of {ids.shape[1]} changed")
        check_close(label, after[:, : place + 1], before[:, : place + 1], causal_slack(path.instance))
