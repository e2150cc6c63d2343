"""Generated texts of any length, judged by the logits that the model itself gives on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import check
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case
from conformkit.conformance.evidence.distinguishing_texts import exchange
from conformkit.conformance.evidence.seq2seq_generation import (
    begin,
    build_generator,
    greedy,
    logits_after,
    ragged,
    sources,
    unwatched,
)
from conformkit.conformance.evidence.writers_at_sizes import (
    DEEP,
    cheapest_form,
    constructed_writer,
    layers_of,
    rows_of,
    weights_of,
)
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.spec.arrays import Array
from conformkit.spec.loss import log_softmax
from conformkit.spec.padding import padding_mask, target_mask

__all__ = [
    "PILOT", "SCORE", "changes", "check_greedy", "check_written", "cost_of_text", "logits_along", "target_logits",
    "total_log_probability", "without_pads",
]  # fmt: skip

_CALL = 1e6
"""A step of generation, however small the model: as costly as a million multiplications."""
SCORE = 200.0
"""A score or a logit: as costly as some hundred multiplications."""
_GAINS = (10.0, 4.0, 10.0, 2.5)
"""Factors of the weights: with large ones a text seldom ends in one id, and a key that is lost is missed."""
PILOT = 24
"""New ids after which it shows whether a text goes on changing."""
_CHANGES = 0.5
"""Rows of a long text whose end still changes: where one id is repeated for ever, little can go wrong."""
_FIRST = 12
"""New ids of a text that is ended early."""
_FEW_IDS = 40
"""A vocabulary whose last id is often the most probable anyway."""
_OF_IDS = ("tgt_embedding.weight", "head.weight", "head.bias")
"""Tables with a row for each id of the target."""
_MARGIN = 3e-3
"""How far below the best logit a chosen one may be, relative to the spread of all: more than any rounding."""


def logits_along(instance: Instance, prompts: Array, new: Array) -> Array:
    """Return a language model's logits (B, n, V) before each new id (B, n), read after prompts (B, T)."""
    whole = np.concatenate([prompts, new[:, :-1]], axis=1)
    return np.asarray(instance(whole)[:, prompts.shape[1] - 1 :], np.float64)


def target_logits(instance: Instance, src: Array, new: Array) -> Array:
    """Return an encoder-decoder's logits (B, n, V) before each new id (B, n) of a target."""
    pad, first = instance.sizes["pad_id"], np.full((len(new), 1), begin(instance))
    tgt = np.concatenate([first, new[:, :-1]], axis=1)
    out = instance(src, tgt, padding_mask(src, pad), target_mask(tgt, pad))
    return np.asarray(out, np.float64)


def check_greedy(
    label: str, subject: Subject, logits: Array, new: Array, pad: int | None = None, *, ended: Array | None = None
) -> None:
    """Check that each new id (B, n) is the most probable one by the logits (B, n, V) before it.

    What follows a generated pad is not judged: right models differ in whether they read it. Nor is what has `ended`.
    """
    chosen = np.take_along_axis(logits, new[..., None], axis=-1)[..., 0]
    best, worst = logits.max(axis=-1), logits.min(axis=-1)
    behind = (best - chosen) / np.maximum(best - worst, 1e-30)
    judged = np.ones(new.shape, np.bool_) if pad is None else np.cumsum(new == pad, axis=1) <= (new == pad)
    if ended is not None:
        judged &= ~ended
    wrong = np.argwhere(judged & (behind > 1.5 * subject.no_finer(_MARGIN / 1.5)))
    row, place = wrong[np.argmin(wrong[:, 1])] if len(wrong) else (0, 0)
    wanted = int(logits[row, place].argmax())
    check(
        f"{label}: id {place} of row {row} is {new[row, place]}, expected {wanted}, the most probable", not len(wrong)
    )


def changes(text: Array) -> bool:
    """Whether the end of a text (B, n) still changes, in enough of its rows."""
    return bool((text[:, -1] != text[:, -2]).mean() >= _CHANGES)


def total_log_probability(logits: Array, new: Array) -> Array:
    """Return the log-probabilities (N,) of texts (N, n) by the logits (N, n, V) before each id."""
    return np.asarray(np.take_along_axis(log_softmax(logits), new[..., None], axis=-1)[..., 0].sum(axis=-1))


def cost_of_text(sizes: Case, scores: float, *lengths: str) -> float:
    """Estimate the cost of writing texts: a step for each id, so many scores for each text, in each of the layers.

    The more texts the shorter they are, whose `lengths` have these names among the sizes.
    """
    text = _CALL * (1 + sizes["tokens"]) + SCORE * rows_of(sizes, *lengths) * scores
    return text * layers_of(sizes) + weights_of(sizes)


def without_pads(instance: Instance) -> Instance:
    """Give the pad id a logit that is hardly ever the best: far down where there is a bias, else 0."""
    if not instance.subject.bound.rules:
        return instance
    own, pad = instance.read(), instance.sizes["pad_id"]
    levels = {"head.bias": -100.0, "head.weight": 0.0, "tgt_embedding.weight": 0.0, "src_embedding.weight": 0.0}
    changed = {name: own[name].copy() for name in levels.keys() & own.keys()}
    for name, array in changed.items():
        array[pad] = levels[name]
    return instance.write(changed)


def check_written(transformer: Subject, draw: Draw, sizes: Case, **options: Any) -> None:
    """Let a model write greedily about sources of these sizes, and check each id by the model's own logits.

    What it writes is then ended, row by row, at one of the first ids.
    """
    vocabulary = {name: sizes[name] for name in ("tgt_vocab_size",) if name in sizes}
    longest = max(sizes["keys"], sizes["tokens"] + 1)
    model = constructed_writer(sizes) or {"num_decoder_layers": 1}
    instance = build_generator(transformer, dtype=cheapest_form(transformer), max_len=longest, **vocabulary, **model)
    src = sources(instance, draw, rows_of(sizes, "keys", "tokens"), sizes["keys"])
    for gain in (DEEP,) if constructed_writer(sizes) else _GAINS:
        without_pads(instance.scatter(draw, gain=gain))
        if sizes["tokens"] <= PILOT or changes(greedy(instance, src, PILOT)):
            break
    if not transformer.variant.shared_embeddings:
        _lead_to_the_last(instance, src)
    new = greedy(instance, src, sizes["tokens"], **options)
    check_greedy("the target", transformer, target_logits(instance, src, new), new, instance.sizes["pad_id"])
    shorter = ragged(instance, src, draw)  # rows share no mask
    few = greedy(instance, shorter, min(sizes["tokens"], _FIRST), **options)
    logits = target_logits(instance, shorter, few)
    check_greedy("the target of padded sources", transformer, logits, few, instance.sizes["pad_id"])
    if transformer.offers("eos-id"):
        _check_ended(instance, src, new[:, :_FIRST], **options)


def _lead_to_the_last(instance: Instance, src: Array) -> None:
    """Let the first id of a target in a large vocabulary be the last one."""
    last, reserved = instance.sizes["tgt_vocab_size"] - 1, {instance.sizes["pad_id"], begin(instance)}
    if last < _FEW_IDS or last in reserved:
        return
    best = int(logits_after(instance, src[:1], np.full((1, 1), begin(instance)))[0].argmax())
    if best not in reserved:
        exchange(instance, _OF_IDS, best, last)


def _check_ended(instance: Instance, src: Array, whole: Array, **options: Any) -> None:
    """Check that each row ends at an end id, is filled afterwards, and that the others go on."""
    pad = instance.sizes["pad_id"]
    end = _most_scattered(whole, {pad, begin(instance)})
    if end is None:
        return
    ids_left = (np.cumsum(whole == end, axis=1) > 0).sum(axis=1)
    src = src[np.argsort(-ids_left, kind="stable")]  # the first rows end first: they must not end the others
    new = unwatched(instance, src, whole.shape[1], eos_id=end, **options)
    ended = np.cumsum(new == end, axis=1) > (new == end)
    check(
        f"{new.shape[1]} ids are returned, though not every row has ended",
        new.shape[1] == whole.shape[1] or bool((new == end).any(axis=1).all()),
    )
    logits = target_logits(instance, src, new)
    check_greedy(f"the target, ended at id {end}", instance.subject, logits, new, pad, ended=ended)
    for row, filling in enumerate(ended):
        found = np.unique(new[row, filling]).tolist()
        check(f"row {row} ends at id {end}, and goes on with {found[:4]}", len(found) < 2)


def _most_scattered(whole: Array, others: set[int]) -> int | None:
    """Return the id, none of some others, that first occurs at most different places of texts (B, n)."""
    places = {
        candidate: len({tuple(np.flatnonzero(row == candidate)[:1]) for row in whole})
        for candidate in np.unique(whole).tolist()
        if candidate not in others
    }
    return max(places, key=places.__getitem__, default=None)
