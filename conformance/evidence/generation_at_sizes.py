"""Generated text at every size: greedy text by the model's own logits, sampled ids by their own probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import ClauseFailure, NotApplicable, check_equal
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case
from conformkit.conformance.binding.sizes import within
from conformkit.conformance.evidence.at_sizes import Pace, check_at_sizes
from conformkit.conformance.evidence.definition_at_sizes import with_last
from conformkit.conformance.evidence.distinguishing_texts import exchange, with_rare_ends
from conformkit.conformance.evidence.greedy_text import GREEDY, context_of, read_logits, written
from conformkit.conformance.evidence.logits import rows
from conformkit.conformance.evidence.long_texts import PILOT, changes, check_greedy
from conformkit.conformance.evidence.sampled_ranks import EVEN, check_ranks, cost_of_draws, draws_for, filters
from conformkit.conformance.evidence.sampled_text import sample
from conformkit.conformance.evidence.writers_at_sizes import (
    DEEP,
    cheapest_form,
    constructed_writer,
    found_writer,
    of_a_text,
    of_a_writer,
    weights_of,
)
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.spec.arrays import Array

__all__ = ["check_greedy_at_sizes", "check_sampled_at_sizes"]

_MODEL: Mapping[str, int] = {"d_model": 12, "num_heads": 2, "num_layers": 1, "d_ff": 16}
_PLACES = 16
"""Chosen ids that are looked at, at least: another context does not change every choice."""
_FEWEST_ROWS, _LONG = 3, 128
"""Prompts are few where they are long: they cost most."""
_SHORT = 6
"""A block that is shorter than prompts are: what is wrong then at small sizes is the finding of GEN-CROP."""
_NEW_IDS = (1, 64)
"""Where each new id is read after a longer text; with a short block as many as the domain has."""
_LONG_TEXT = {"tokens": (2, 12), "new_ids": (1, 136), "block_size": (8, 24), "vocab_size": (7, 40), "batch": (1, 1)}
"""A text of which most is new, in a block that is made as long: few rows, since all of it is read for each id."""
_FOR_A_LARGE_MODEL = {
    "tokens": (2, 12), "new_ids": (1, 4), "block_size": (16, 24), "vocab_size": (7, 40), "batch": (1, 2),
}  # fmt: skip
_GAINS = (10.0, 4.0, 10.0, 4.0, 1.5)
"""Factors of the weights: with large ones a text seldom ends in one id."""
_LIVELY = (10.0, 4.0, 10.0)
"""For texts that are costly to write."""
_FEW_IDS = 40
"""A vocabulary whose last id is often the most probable anyway."""
_OF_IDS = ("embedding.weight", "head.weight", "head.bias")
"""Tables with a row for each id."""
_LOOKED_AT = 4
"""Windows of a long text after which the next id is looked at."""


def check_greedy_at_sizes(model: Subject, draw: Draw, *, after: str) -> None:
    """Check that each new id has the highest logit after the ids before it, for long prompts and texts."""

    def check_text(sizes: Case) -> None:
        own = draw.at(sizes)
        prompts = with_rare_ends(own.ids(sizes["vocab_size"], rows(model, _prompts(sizes)), sizes["tokens"]), own)
        with_last(prompts, sizes["vocab_size"], own)
        instance = _built(model, sizes)
        for gain in (DEEP,) if constructed_writer(sizes) else _LIVELY if _long_in_sight(sizes) else _GAINS:
            instance.scatter(own, gain=gain)
            if sizes["new_ids"] <= _NEW_IDS[1] or changes(written(instance, prompts, PILOT, **GREEDY)):
                break
        prompts = _led_to_the_last(instance, prompts, sizes)
        text = written(instance, prompts, sizes["new_ids"], **GREEDY)
        check_equal("the prompt that the text begins with", text[:, : sizes["tokens"]], prompts)
        _check_choices(instance, text, _ends(sizes))

    def cost(sizes: Case) -> float:
        window = min(sizes["tokens"] + sizes["new_ids"], sizes["block_size"])
        batch = _prompts(sizes)
        text = batch * sizes["new_ids"] * window * (window * 100 + 16 * sizes["vocab_size"] + 10_000)
        return float(text * sizes.get("num_layers", 1)) + weights_of(sizes)

    def within_the_block(sizes: Case) -> dict[str, int]:
        return _fitting(model, {**sizes, "block_size": max(sizes["block_size"], sizes["tokens"] + sizes["new_ids"])})

    pace = Pace()
    texts = of_a_text(draw.domain)
    few = {**texts, "new_ids": _NEW_IDS}
    check_at_sizes(draw, check_text, cost, within_the_block, after=after, coverage="some bands", domain=few, pace=pace)
    long = {**texts, **_LONG_TEXT}
    check_at_sizes(draw, check_text, cost, within_the_block, after=after, coverage="last bands", domain=long, pace=pace)
    large = of_a_writer(draw.domain, **_FOR_A_LARGE_MODEL)
    check_at_sizes(draw, check_text, cost, within_the_block, after=after, coverage="marks and last bands", domain=large,
                   pace=pace)  # fmt: skip
    short = {**texts, "block_size": (_SHORT, _SHORT), "vocab_size": (7, 40), "batch": (1, 2)}
    with suppress(NotApplicable):  # texts longer than a block are refused
        check_at_sizes(
            draw, check_text, cost, lambda sizes: _fitting(model, sizes), after="GEN-CROP", coverage="some bands",
            domain=short, pace=pace,
        )  # fmt: skip


def check_sampled_at_sizes(model: Subject, draw: Draw, *, after: str) -> None:
    """Check that ids of every rank are sampled as often as they should be, for large vocabularies and a large top-k."""

    def check_ids(sizes: Case) -> None:
        instance = _built(model, sizes).scatter(draw.at(sizes), gain=EVEN)
        for options in _options(model, sizes, draw.attempt):
            _check_ranks(instance, draw.at(sizes), options)

    def nearest(sizes: Case) -> dict[str, int]:
        return _fitting(model, {**sizes, "vocab_size": max(sizes["vocab_size"], sizes.get("top_k", 0) + 1)})

    def cost(sizes: Case) -> float:
        return cost_of_draws(sizes["vocab_size"])

    domain = {name: ends for name, ends in draw.domain.items() if name != "top_k" or model.offers("top-k")}
    check_at_sizes(
        draw,
        check_ids,
        cost,
        nearest,
        after=after,
        domain=domain,
        following=("vocab_size", "block_size"),
        coverage="some bands",
    )


def _led_to_the_last(instance: Instance, prompts: Array, sizes: Case) -> Array:
    """Let the first new id of a prompt be the last one of a large vocabulary; return the prompts, renamed likewise."""
    size = sizes["vocab_size"]
    if size <= _FEW_IDS or not instance.subject.bound.rules:
        return prompts
    best, last = int(read_logits(instance, prompts[:1])[0].argmax()), size - 1
    exchange(instance, _OF_IDS, best, last)
    renamed = np.arange(size)
    renamed[[best, last]] = last, best
    return renamed[prompts]


def _check_choices(instance: Instance, text: Array, ends: Sequence[int]) -> None:
    """Check the ids after these places of texts (B, T): by one call for all, and by one for each where that disagrees.

    A model that sees later ids, or that is wrong at one length only, gives other logits on a longer text: that is
    another clause's finding, and `generate` is right if it follows what the model says at each length.
    """
    if text.shape[1] - 1 <= context_of(instance):
        every = read_logits(instance, text[:, :-1], [end - 1 for end in ends])
        with suppress(ClauseFailure):
            check_greedy("the text", instance.subject, every, text[:, ends])
            return
    for end in ends:
        logits = read_logits(instance, text[:, :end])[:, None]
        check_greedy(f"the text after {end} ids", instance.subject, logits, text[:, end : end + 1])


def _built(model: Subject, sizes: Case) -> Instance:
    taken = {name: size for name, size in sizes.items() if name in {"vocab_size", "block_size"}}
    return model.build(dtype=cheapest_form(model), **{**_MODEL, "block_size": 8, **taken, **constructed_writer(sizes)})


def _fitting(model: Subject, sizes: Case) -> dict[str, int]:
    asked = {name: sizes[name] for name in ("vocab_size", "block_size") if name in sizes} | constructed_writer(sizes)
    found = model.sizes(**{**_MODEL, **asked})
    own = {name: int(found[name]) for name in sizes if name in found} | found_writer(sizes, found)
    others = {name: size for name, size in sizes.items() if name not in own}
    return {**own, **within(others, model.bound.limits)}


def _ends(sizes: Case) -> list[int]:
    """Return where the text ends before the new ids that are looked at: the first, the last, and some between."""
    first, last = sizes["tokens"], sizes["tokens"] + sizes["new_ids"] - 1
    windows = _LOOKED_AT if first <= _LONG else 2
    return sorted({round(first + (last - first) * part / (windows - 1)) for part in range(windows)})


def _long_in_sight(sizes: Case) -> bool:
    """Whether many ids are new, and all of them are read for the last one."""
    return _NEW_IDS[1] < sizes["new_ids"] < sizes["block_size"]


def _prompts(sizes: Case) -> int:
    if _long_in_sight(sizes):
        return 2
    window = min(sizes["tokens"], sizes["block_size"])
    return max(sizes["batch"], _FEWEST_ROWS if window > _LONG else _PLACES // len(_ends(sizes)))


def _options(model: Subject, sizes: Case, attempt: int) -> list[dict[str, Any]]:
    options = filters(sizes["vocab_size"], sizes.get("top_k"), top_p=model.offers("top-p"), attempt=attempt)
    return options[:1] if model.half else options  # many ids are equally probable there: a filter may keep any of them


def _check_ranks(instance: Instance, draw: Draw, options: Mapping[str, Any]) -> None:
    """Compare how often the most probable ids are sampled after one prompt."""
    prompt = draw.ids(instance.sizes["vocab_size"], 1, instance.subject.as_asked.tokens(2))
    logits = read_logits(instance, prompt)[0]
    check_ranks(logits, sample(instance, prompt, draws_for(len(logits)), draw, **options)[0, :, 0], options)
