"""Clauses of spec/penalties.md.

What is expected follows from the implementation's own logits, called without `generate`, after each text that it wrote.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check, check_refuses, each_of, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.statistics import check_frequencies
from conformkit.conformance.evidence.greedy_text import prompt_ids
from conformkit.conformance.evidence.min_p_and_typical_p import (
    atypical,
    halfway_share,
    shares_of_best,
    typical,
    unequal,
)
from conformkit.conformance.evidence.penalized_text import PenalizedTexts, loud, written_texts
from conformkit.conformance.evidence.sampled_text import DRAWS, FEW, chances, check_rows, check_set, unlike
from conformkit.conformance.subject.component import Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array
from conformkit.spec.penalties import Penalties, repeating

_THETA = 2.0
_ALPHA = 1.5


# -- repetition --------------------------------------------------------------------------------------------------------


@clause("PEN-REP-LOGITS")
def test_a_repetition_penalty_divides_or_multiplies_by_the_sign(model: Subject, draw: Draw) -> None:
    count = 1 if model.variant.repetition_counts == "all" else 2
    texts = _penalized(model, draw, "abc", count)
    texts.check(f"repetition penalty {_THETA}", Penalties(repetition_penalty=_THETA))


@clause("PEN-REP-ONCE")
def test_an_id_that_occurs_often_is_penalized_once(model: Subject, draw: Draw) -> None:
    count = 1 if model.variant.repetition_counts == "all" else 4
    texts = _penalized(model, draw, "abaab", count)
    texts.check(f"repetition penalty {_THETA}", Penalties(repetition_penalty=_THETA))


@clause("PEN-REP-NEW")
def test_new_ids_are_penalized_from_the_next_step_on(model: Subject, draw: Draw) -> None:
    texts = _penalized(model, draw, "a", 4)
    texts.check(f"repetition penalty {_THETA}, the fourth new id", Penalties(repetition_penalty=_THETA), others=True)


def _penalized(model: Subject, draw: Draw, pattern: str, count: int) -> PenalizedTexts:
    instance, prompt = loud(model, draw, pattern)
    return written_texts(instance, prompt, draw, count, repetition_penalty=_THETA)


@clause("PEN-REP-REFUSED")
def test_a_repetition_penalty_of_zero_is_refused(model: Subject, draw: Draw) -> None:
    instance = model.build().scatter(draw)
    prompts = prompt_ids(instance, draw)
    for penalty in (0.0, -1.0):
        wanted = partial(instance.generate, prompts, 2, seed=1, temperature=1.0, repetition_penalty=penalty)
        check_refuses(f"repetition penalty {penalty}", wanted)


# -- presence and frequency --------------------------------------------------------------------------------------------


@clause("PEN-PRESENCE")
def test_the_presence_penalty_lowers_drawn_ids_once(model: Subject, draw: Draw) -> None:
    _check_counted(model, draw, "presence")


@clause("PEN-PRESENCE-PROMPT")
def test_the_presence_penalty_counts_the_prompt_where_declared(model: Subject, draw: Draw) -> None:
    _check_prompt(model, draw, "presence")


@clause("PEN-PRESENCE-TEMP")
def test_penalties_come_before_the_temperature(model: Subject, draw: Draw) -> None:
    for temperature in each_of("temperature", [2.0, 0.5]):
        texts = _counted(model, draw, "presence_penalty", temperature)
        wanted = Penalties(presence_penalty=_ALPHA)
        texts.check("the fifth new id", wanted, temperature=temperature, others=True, distributions=2)


@clause("PEN-FREQUENCY")
def test_the_frequency_penalty_lowers_ids_by_their_count(model: Subject, draw: Draw) -> None:
    _check_counted(model, draw, "frequency")


@clause("PEN-FREQUENCY-PROMPT")
def test_the_frequency_penalty_counts_the_prompt_where_declared(model: Subject, draw: Draw) -> None:
    _check_prompt(model, draw, "frequency")


def _check_counted(model: Subject, draw: Draw, kind: str) -> None:
    asked: dict[str, Any] = {f"{kind}_penalty": _ALPHA}
    texts = _counted(model, draw, f"{kind}_penalty")
    texts.check(f"{kind} penalty {_ALPHA}, the fifth new id", Penalties(**asked), others=True)


def _check_prompt(model: Subject, draw: Draw, kind: str) -> None:
    instance, prompt = loud(model, draw, "abaa", vocab_size=5)
    asked: dict[str, Any] = {f"{kind}_penalty": _ALPHA}
    texts = written_texts(instance, prompt, draw, 1, **asked)
    texts.check(f"{kind} penalty {_ALPHA}, the first new id", Penalties(**asked))


def _counted(model: Subject, draw: Draw, option: str, temperature: float = 1.0) -> PenalizedTexts:
    """Return texts of few ids, in which many occur more than once."""
    instance, prompt = loud(model, draw, "a", vocab_size=5, gain=0.7)
    asked: dict[str, Any] = {option: _ALPHA}
    return written_texts(instance, prompt, draw, 5, temperature=temperature, **asked)


# -- n-grams -----------------------------------------------------------------------------------------------------------


@clause("NGRAM-NEVER")
def test_no_n_gram_is_written_twice(model: Subject, draw: Draw) -> None:
    for n in each_of("n", [2, 3]):
        texts = _ngrams(model, draw, n, FEW)
        for length in range(1, texts.new.shape[1]):
            _check_new(texts, texts.new[:, : length + 1], n)


@clause("NGRAM-OTHERS")
def test_ids_that_repeat_no_n_gram_keep_their_ratios(model: Subject, draw: Draw) -> None:
    for n in each_of("n", [3, 2]):
        texts = _ngrams(model, draw, n)
        alone = _repeats(texts, texts.new[:, :-1], n)
        same = (alone == _repeats(texts, texts.before, n)).all(axis=1)  # whether the prompt counts makes no difference
        allowed = same & ~alone[np.arange(len(alone)), texts.texts[:, -1]]
        texts.only(allowed).check("the last new id", Penalties(no_repeat_ngram_size=n), distributions=2)


@clause("NGRAM-PROMPT")
def test_an_n_gram_of_the_prompt_is_not_repeated(model: Subject, draw: Draw) -> None:
    instance, prompt = loud(model, draw, "abcab")
    texts = written_texts(instance, prompt, draw, 1, draws=FEW, no_repeat_ngram_size=3)
    _check_new(texts, texts.texts, 3)


def _ngrams(model: Subject, draw: Draw, size: int, draws: int = DRAWS) -> PenalizedTexts:
    """Return texts so short that for n = 2 or more some id is always left, whatever was drawn."""
    instance, prompt = loud(model, draw, "ab", vocab_size=5, gain=0.7)
    return written_texts(instance, prompt, draw, 6, draws=draws, no_repeat_ngram_size=size)


def _repeats(told: PenalizedTexts, texts: Array, size: int) -> Array:
    return repeating(texts, told.logits.shape[1], size)


def _check_new(told: PenalizedTexts, texts: Array, size: int) -> None:
    """Check that the last id of each text (N, T) ends no sequence that it holds already."""
    again = _repeats(told, texts[:, :-1], size)[np.arange(len(texts)), texts[:, -1]]
    first = texts[int(np.argmax(again))].tolist()
    check(f"{int(again.sum())} of {len(texts)} texts repeat {size} ids: {first[-size:]} in {first}", not again.any())


# -- min-p -------------------------------------------------------------------------------------------------------------


@clause("MINP-SUPPORT")
def test_ids_with_a_share_of_the_highest_probability_come(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    for count in (2, 4):
        share = halfway_share(law.expected(), count)
        drawn = law.drawn(draw, FEW, min_p=share)
        check_set(f"min-p of {share:.4g}", drawn, law.ranked()[:count], law.expected(min_p=share))


@clause("MINP-RENORM")
def test_the_ids_that_min_p_keeps_keep_their_ratios(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    share = halfway_share(law.expected(), 3)
    check_frequencies(f"ids with min-p of {share:.4g}", law.drawn(draw, min_p=share), law.expected(min_p=share))


@clause("MINP-ROWS")
def test_each_row_has_its_own_threshold(model: Subject, draw: Draw) -> None:
    rows = unlike(model, draw)
    share = shares_of_best(rows[-1])
    check_rows(rows, draw, f"min-p of {share:.4g}", min_p=share)


@clause("MINP-TEMP")
def test_temperature_comes_before_min_p(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    for temperature in (0.5, 2.0):
        share = halfway_share(law.expected(temperature=1.0 if model.variant.temperature_last else temperature), 3)
        under(f"temperature {temperature}, min-p of {share:.4g}")
        drawn = law.drawn(draw, FEW, temperature=temperature, min_p=share)
        check_set("ids", drawn, law.ranked()[:3], law.expected(temperature=temperature, min_p=share))


@clause("MINP-REFUSED")
def test_a_min_p_that_is_no_share_is_refused(model: Subject, draw: Draw) -> None:
    instance = model.build().scatter(draw)
    prompts = prompt_ids(instance, draw)
    for share in (-0.1, 1.5):
        check_refuses(f"min_p = {share}", partial(instance.generate, prompts, 2, seed=1, temperature=1.0, min_p=share))


# -- typical p ---------------------------------------------------------------------------------------------------------


@clause("TYP-SUPPORT")
def test_the_most_typical_ids_that_reach_p_come(model: Subject, draw: Draw) -> None:
    for count in (1, 2, 3):
        law = chances(model, draw, partial(atypical, count=count), enough=2.5)
        wanted, share = typical(law.expected(), count)
        if model.half and atypical(law.logits[None], count=count)[0] < 1.0:
            raise NotApplicable.from_formats(f"in {model.precision} two ids are too nearly as typical as each other")
        drawn = law.drawn(draw, FEW, typical_p=share)
        check_set(f"typical p of {share:.4g}", drawn, wanted, law.expected(typical_p=share))


@clause("TYP-RENORM")
def test_the_typical_ids_keep_their_ratios(model: Subject, draw: Draw) -> None:
    law = chances(model, draw, partial(unequal, count=3), enough=2.5)
    _, share = typical(law.expected(), 3)
    drawn = law.drawn(draw, typical_p=share)
    check_frequencies(f"ids with typical p of {share:.4g}", drawn, law.expected(typical_p=share))
