"""Clauses of spec/decoding.md.

Expected results come from the model's own logits, or from its own text without the option.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import (
    NotApplicable,
    check,
    check_close,
    check_equal,
    each_of,
    refusing,
    supposing,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case
from conformkit.conformance.binding.sizes import NoSizeError
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.at_sizes import check_at_sizes
from conformkit.conformance.evidence.beams import (
    SCORES,
    Beams,
    check_penalized,
    check_scores,
    clear,
    every_text,
    reader,
    searched,
    searcher,
    undecided,
)
from conformkit.conformance.evidence.distinguishing_texts import with_rare_ends
from conformkit.conformance.evidence.ended_texts import check_ended, leaves_end_out
from conformkit.conformance.evidence.greedy_text import GREEDY, Story, author, newest, story
from conformkit.conformance.evidence.logits import takes_block_size
from conformkit.conformance.evidence.long_texts import (
    SCORE,
    check_greedy,
    cost_of_text,
    logits_along,
    total_log_probability,
)
from conformkit.conformance.evidence.text_slips import of_text
from conformkit.conformance.evidence.trainable_fixtures import modes, nearest_trainee
from conformkit.conformance.evidence.writers_at_sizes import (
    DEEP,
    cheapest_form,
    check_writer_at_sizes,
    constructed_writer,
    rows_of,
)
from conformkit.conformance.probing.refusals import is_refusal
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.subject.tool import Tool
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array
from conformkit.spec.decoding import Model, log_probability, until_end
from conformkit.spec.decoding import beam_search as definition
from conformkit.spec.generation import continue_greedily

CACHED = {"use_cache": True, **GREEDY}
UNCACHED = {"use_cache": False, **GREEDY}
_SHORT = {"prompt": (2, 12), "tokens": (12, 16), "batch": (1, 2)}
"""Texts that a large model writes."""
_STEPS = 4
"""New ids of a search whose other sizes are large."""
_DRAWN, _MOST_DRAWN = 12, 60
"""Prompts that are looked at for clear ones, and where there is none among them."""
_MODELS = 3
"""Models that are tried for a text with the id 0."""


# --- the end of a text ------------------------------------------------------------------------------------------------


@clause("GEN-EOS-STOP")
def test_a_text_ends_at_its_end_id(model: Subject, draw: Draw) -> None:
    example = story(author(model, block_size=12), draw, tokens=2, steps=8, keep=6)
    without: bool | None = None
    for row in each_of("row", range(len(example.prompts))):
        without = _check_ended(example, row, int(example.text[row, example.prompts.shape[1] + 3]), without)
    for _ in range(_MODELS):
        example = story(author(model, block_size=12, vocab_size=7), draw, tokens=2, steps=8, keep=6)
        found = np.flatnonzero((example.text[:, example.prompts.shape[1] :] == 0).any(axis=1))
        for row in found[:1]:  # 0 is an id like any other
            _check_ended(example, int(row), 0, without)
        if found.size:
            break


@clause("GEN-EOS-ROWS")
def test_rows_end_one_by_one(model: Subject, draw: Draw) -> None:
    example = story(author(model, block_size=12), draw, tokens=2, steps=8, keep=8)
    texts = example.text[:, example.prompts.shape[1] :].tolist()
    if len(texts) < 2:
        raise NotApplicable.from_sizes("its limits allow one sequence at a time")
    for end in each_of("end", sorted({text[2] for text in texts})[:4]):
        with refusing(is_refusal):
            got = _after(example.instance, example.prompts, 8, end)
            _check_rows(got, texts, end, without=_ends_without(example, got, texts, end))


@clause("GEN-EOS-FIRST")
def test_an_end_id_in_the_prompt_ends_nothing(model: Subject, draw: Draw) -> None:
    example = story(author(model, block_size=12), draw, tokens=3, steps=6, keep=8)
    length = example.prompts.shape[1]
    texts = [(prompt, new) for prompt, new in zip(example.prompts, example.text[:, length:].tolist(), strict=True)]
    wanted = [(prompt, new, end) for prompt, new in texts for end in prompt.tolist() if end not in new]
    if not wanted:
        raise NotApplicable("its greedy texts repeat all ids of their prompts")
    for prompt, new, end in each_of("prompt, new, end", wanted[:4]):
        check_equal(f"the text after a prompt with the end id {end}", _after(example.instance, prompt[None], 6, end)[0],
                    np.array(new))  # fmt: skip


# --- keys and values, kept --------------------------------------------------------------------------------------------


@clause("KV-POSITIONS")
def test_a_cached_text_counts_its_positions_on(model: Subject, draw: Draw) -> None:
    for tokens in each_of("tokens", [4, 1, 7]):
        example = story(author(model, block_size=12), draw, tokens=tokens, steps=4, keep=12)
        for prompt in example.prompts:  # one at a time: KV-BATCH judges rows of a batch
            _same(example.instance, prompt[None], 4)


@clause("KV-EQUIV")
def test_a_cache_changes_no_text(model: Subject, draw: Draw) -> None:
    for tokens, steps in each_of("tokens, steps", [(1, 15), (4, 12), (8, 8)]):
        example = story(author(model, block_size=16), draw, tokens=tokens, steps=steps, keep=8)
        for prompt in example.prompts:
            _same(example.instance, prompt[None], steps)


@clause("KV-RESET")
def test_a_new_text_begins_with_an_empty_cache(model: Subject, draw: Draw) -> None:
    example = story(author(model, block_size=12), draw, tokens=4, steps=5, keep=8)
    half = max(1, len(example.prompts) // 2)
    first, second = example.prompts[:half], example.prompts[-half:]
    want = newest(example.instance, second, 5, **UNCACHED)
    for before in each_of("before", [first, first[:1], second]):
        newest(example.instance, before, 5, **CACHED)
        check_equal(
            "the new ids, after another text was generated,", newest(example.instance, second, 5, **CACHED), want
        )


@clause("KV-BATCH")
def test_each_row_has_keys_and_values_of_its_own(model: Subject, draw: Draw) -> None:
    example = story(author(model, block_size=12), draw, tokens=3, steps=6, keep=6)
    together = newest(example.instance, example.prompts, 6, **CACHED)
    for row in each_of("row", range(len(example.prompts))):
        alone = newest(example.instance, example.prompts[row : row + 1], 6, **UNCACHED)
        check_equal("the new ids of a row in a batch", together[row : row + 1], alone)


@clause("KV-CROP")
def test_beyond_the_block_the_text_is_still_that_without_a_cache(model: Subject, draw: Draw) -> None:
    takes_block_size(model)
    for tokens, steps in each_of("tokens, steps", [(3, 9), (6, 5), (9, 4)]):
        example = story(author(model, block_size=6), draw, tokens=tokens, steps=steps, keep=8)
        want = newest(example.instance, example.prompts, steps, **UNCACHED)
        try:
            got = newest(example.instance, example.prompts, steps, **CACHED)
        except ImplementationFailure as refusal:
            check(f"it ended with {refusal.kind}", refusal.kind == "exception")
            continue
        check_equal("the new ids", got, want)


@clause("KV-SAMPLED")
def test_a_cache_changes_no_sample(model: Subject, draw: Draw) -> None:
    instance = author(model, block_size=12).scatter(draw, gain=0.7)
    prompts = draw.ids(instance.sizes["vocab_size"], 4, model.tokens(3))
    for seed in each_of("seed", [1, 2, 3]):
        options = {"temperature": 1.3, "seed": seed}
        want = newest(instance, prompts, 8, use_cache=False, **options)
        check_equal("the sampled ids", newest(instance, prompts, 8, use_cache=True, **options), want)


@clause("KV-SIZES")
def test_a_cached_text_of_any_length_follows_the_logits(model: Subject, draw: Draw) -> None:
    def check_sizes(sizes: Case) -> None:
        own, count, gain = draw.at(sizes), sizes["tokens"], DEEP if constructed_writer(sizes) else 2.5
        wanted = {"block_size": sizes["prompt"] + count, **constructed_writer(sizes)}
        instance = author(model, dtype=cheapest_form(model), **wanted).scatter(own, gain=gain)
        rows = rows_of(sizes, "prompt", "tokens")
        prompts = with_rare_ends(own.ids(instance.sizes["vocab_size"], rows, sizes["prompt"]), own)
        new = newest(instance, prompts, count, **CACHED)
        check_greedy("the text with a cache", model, logits_along(instance, prompts, new), new)

    def cost(sizes: Case) -> float:
        whole = sizes["prompt"] + sizes["tokens"]
        return cost_of_text(sizes, whole * (whole + sizes["tokens"]), "prompt", "tokens")

    nearest = partial(nearest_trainee, model)
    check_writer_at_sizes(draw, check_sizes, cost, nearest, after="KV-EQUIV", short=_SHORT, limit=2e8)


# --- beams ------------------------------------------------------------------------------------------------------------


@clause("BEAM-SHAPE")
def test_a_beam_search_returns_continuations_and_scores(beam_search: Tool, model: Subject, draw: Draw) -> None:
    instance = searcher(model, draw)
    for rows, length, steps, width in each_of("rows, length, steps, width", [(2, 3, 4, 3), (1, 1, 1, 2), (3, 2, 2, 1)]):
        searched(beam_search, instance, draw.ids(5, rows, length), steps, width)


@clause("BEAM-ONE")
def test_one_beam_is_greedy_text(beam_search: Tool, model: Subject, draw: Draw) -> None:
    instance = searcher(model, draw, vocab_size=11)
    logits = reader(instance)
    for length, steps in each_of("length, steps", [(1, 6), (4, 5)]):
        prompts = _clear(draw, logits, 11, length, steps, 1, rows=4)
        want = continue_greedily(lambda ids: logits(ids)[:, None], prompts, steps, 12)[:, length:]
        supposing(of_text(logits, prompts, want, 12))
        found = [searched(beam_search, instance, prompt[None], steps, 1).new[0, 0] for prompt in prompts]
        check_equal("the single beam", np.stack(found), want)


@clause("BEAM-SCORE")
def test_a_score_is_the_sum_of_log_probabilities(beam_search: Tool, model: Subject, draw: Draw) -> None:
    instance = searcher(model, draw)
    logits = reader(instance)
    for steps, width in each_of("steps, width", [(1, 3), (4, 2), (3, 4)]):
        prompt = draw.ids(5, 1, 3)
        check_scores(searched(beam_search, instance, prompt, steps, width), partial(log_probability, logits, prompt[0]))


@clause("BEAM-SORTED")
def test_beams_are_distinct_the_best_first(beam_search: Tool, model: Subject, draw: Draw) -> None:
    instance = searcher(model, draw)
    for steps, width in each_of("steps, width", [(3, 4), (1, 5), (4, 3)]):
        beams = searched(beam_search, instance, draw.ids(5, 1, 3), steps, width)
        texts = [tuple(new) for _, new in beams.row(0)]
        check(f"{len(texts)} beams contain {len(set(texts))} distinct texts", len(set(texts)) == len(texts))
        rises = np.diff([score for score, _ in beams.row(0)])
        check(f"the scores are {np.round(beams.scores[0], 4).tolist()}", bool((rises <= SCORES).all()))


@clause("BEAM-TOY")
def test_beams_compete_with_one_another(beam_search: Tool, model: Subject, draw: Draw) -> None:
    instance = searcher(model, draw)
    logits = reader(instance)
    for steps, width in each_of("steps, width", [(4, 2), (5, 3), (3, 4)]):
        for prompt in _clear(draw, logits, 5, 3, steps, width, rows=4):
            beams = searched(beam_search, instance, prompt[None], steps, width)
            _compare(beams, 0, definition(logits, prompt, steps, width))


@clause("BEAM-FULL")
def test_a_beam_that_is_wide_enough_finds_the_best_text_of_all(beam_search: Tool, model: Subject, draw: Draw) -> None:
    instance = searcher(model.as_asked, draw, vocab_size=3)
    logits = reader(instance)
    prompt = _clear(draw, logits, 3, 2, 3, 27, rows=1)
    every = [list(new) for new in itertools.product(range(3), repeat=3)]
    totals = [log_probability(logits, prompt[0], new) for new in every]
    score, best = searched(beam_search, instance, prompt, 3, 27).row(0)[0]
    want = every[int(np.argmax(totals))]
    check(f"the first of 27 beams is {best} with {score:.4f}, {want} has {max(totals):.4f}", best == want)


@clause("BEAM-BATCH")
def test_beams_of_different_prompts_dont_mix(beam_search: Tool, model: Subject, draw: Draw) -> None:
    instance = searcher(model, draw)
    logits = reader(instance)
    prompts = _clear(draw, logits, 5, 3, 4, 3, rows=3)
    together = searched(beam_search, instance, prompts, 4, 3)
    for row in each_of("row", range(len(prompts))):
        alone = searched(beam_search, instance, prompts[row : row + 1], 4, 3)
        check_equal("the beams of a row in a batch", together.new[row], alone.new[0])
        check_close("their scores", together.scores[row], alone.scores[0], SCORES)


@clause("BEAM-EOS")
def test_a_beam_that_has_ended_is_kept_and_not_extended(beam_search: Tool, model: Subject, draw: Draw) -> None:
    instance = searcher(model, draw, vocab_size=3)
    logits = reader(instance)
    for end, wide, steps in each_of("end, wide, steps", [
        (1, True, 3), (2, True, 3), (0, True, 3), (1, False, 3), (0, True, 1), (1, True, 1), (2, True, 1),
    ]):  # fmt: skip
        prompt = draw.ids(3, 1, 2)
        every = [(log_probability(logits, prompt[0], new), new) for new in every_text(3, steps, end)]
        width = len(every) if wide else 4  # with more beams than texts, the content of the others is undefined
        beams = searched(beam_search, instance, prompt, steps, width, eos_id=end)
        for _, new in beams.row(0):
            rest = new[len(until_end(new, end)) :]
            check(f"a beam goes on after the end id {end}: {new}", len(set(rest)) < 2)
        for score, new in beams.row(0):
            own = until_end(new, end)
            want = log_probability(logits, prompt[0], own)
            check_close(f"the score of {own}", np.array([score]), np.array([want]), SCORES, scale=max(1.0, -want))
        best, text = max(every)
        label = f"the first of {width} beams scores {beams.scores[0, 0]:.4f}, {text} has {best:.4f}"
        check(label, not wide or beams.scores[0, 0] > best - SCORES)


@clause("BEAM-MODE-KEPT")
def test_a_search_leaves_the_model_in_eval_mode(beam_search: Tool, model: Subject, draw: Draw) -> None:
    model.requires("modes")
    instance, prompt = searcher(model, draw), draw.ids(5, 1, 3)
    before = instance.call(prompt, watch=True).modes
    searched(beam_search, instance, prompt, 2, 2)
    after = modes(instance, prompt)
    check(f"training is {after} in its parts after a search, {before} before it", after == before)


@clause("BEAM-LENPEN")
def test_the_length_penalty_divides_by_a_power_of_the_length(beam_search: Tool, model: Subject, draw: Draw) -> None:
    few, five = (searcher(model.as_asked, draw, vocab_size=size) for size in (3, 5))
    ended = beam_search.offers("eos-id")  # each id ends other texts, at other lengths
    for penalty, end in each_of("penalty, end", itertools.product((0.6, 1.0), [None, *(range(5) if ended else ())])):
        _check_penalized(beam_search, five, draw.ids(5, 1, 3), 4, 3, penalty, end)
    for penalty, end in each_of("penalty, end", itertools.product((0.6, 2.0), range(3) if ended else ())):
        _check_penalized(beam_search, few, draw.ids(3, 1, 2), 3, len(every_text(3, 3, end)), penalty, end)


@clause("BEAM-SIZES")
def test_beams_of_any_number_are_those_of_the_definition(beam_search: Tool, model: Subject, draw: Draw) -> None:
    def check_sizes(sizes: Case) -> None:
        own, width, size, length = (draw.at(sizes), *(sizes[n] for n in ("beams", "vocab_size", "prompt")))
        instance = searcher(model, own, vocab_size=size, block_size=length + _STEPS)
        logits = reader(instance)
        prompts = own.ids(size, sizes["batch"], length)
        for steps in (_STEPS, 1):  # after one step, all beams are children of one
            beams = searched(beam_search, instance, prompts, steps, width)
            used = beams.used(instance.sizes["vocab_size"], steps)
            texts, asked = used.new.reshape(-1, steps), np.repeat(prompts, used.new.shape[1], axis=0)
            want = total_log_probability(logits_along(instance, asked, texts), texts)
            check_close("the scores", used.scores.ravel(), want, SCORES)
            if clear(logits, prompts[-1], steps, width):
                _compare(beams, len(prompts) - 1, definition(logits, prompts[-1], steps, width))

    def cost(sizes: Case) -> float:
        rows, whole = sizes["batch"] * sizes["beams"] + sizes["beams"] + 2, sizes["prompt"] + _STEPS
        return SCORE * rows * _STEPS * whole * (whole + sizes["vocab_size"])

    check_at_sizes(
        draw, check_sizes, cost, partial(_nearest_search, model),
        after="BEAM-TOY", coverage="some bands",
    )  # fmt: skip


# --- parts ------------------------------------------------------------------------------------------------------------


def _nearest_search(model: Subject, sizes: Case) -> dict[str, int]:
    found = nearest_trainee(model, {**sizes, "tokens": _STEPS})
    if found.pop("tokens") < _STEPS:
        raise NoSizeError(f"its limits leave no room for a prompt and {_STEPS} new ids")
    return found


def _check_ended(told: Story, row: int, end: int, without: bool | None) -> bool:
    """Check greedy text of one prompt that ends with its first `end`; return whether that is left out of it.

    `without`: what was returned for the text before; what the first one does, all do.
    """
    new = told.text[row, told.prompts.shape[1] :].tolist()
    got = _after(told.instance, told.prompts[row : row + 1], told.count, end)[0].tolist()
    without = leaves_end_out(got, new, end) if without is None else without
    check_ended(got, new, end, without=without)
    return without


def _ends_without(told: Story, got: Array, texts: Sequence[Sequence[int]], end: int) -> bool:
    """Whether rows of a batch lack their end id as a text alone does; that is asked for only where one lacks it."""
    row = next(row for row, text in enumerate(texts) if end in text)
    own = until_end(list(texts[row]), end)
    if got[row, : len(own)].tolist() == own:
        return False
    alone = _after(told.instance, told.prompts[row : row + 1], told.count, end)[0].tolist()
    return leaves_end_out(alone, texts[row], end)


def _check_rows(got: Array, texts: Sequence[Sequence[int]], end: int, *, without: bool = False) -> None:
    """Check the new ids of a batch: each row up to its own end, which is left out `without` it, and one id after it."""
    whole = [until_end(list(text), end) for text in texts]
    wanted = [text[:-1] if without and text[-1] == end else text for text in whole]
    longest = max(map(len, wanted))
    check(f"the batch has {got.shape[1]} new ids, the longest row {longest}", got.shape[1] >= longest)
    for row, own in zip(got.tolist(), wanted, strict=True):
        check_equal(f"a row up to its end id {end}", np.array(row[: len(own)]), np.array(own))
        rest = set(row[len(own) :])
        check(f"a row that has ended goes on with {row[len(own) :]}", len(rest) < 2)


def _after(instance: Instance, prompts: Array, count: int, end: int) -> Array:
    """Return the new ids (B, n) of greedy text that may end."""
    out = instance.generate(prompts, count, seed=1, eos_id=end, **GREEDY).out
    length = prompts.shape[1]
    fits = out.ndim == 2 and len(out) == len(prompts) and length <= out.shape[1] <= length + count
    check(f"prompts {prompts.shape} and at most {count} ids are returned in an array {out.shape}", fits)
    return np.asarray(out[:, length:])


def _same(instance: Instance, prompts: Array, steps: int) -> None:
    """Compare greedy text with a cache and without one; with the cache of a model that has not generated before."""
    want = newest(instance, prompts, steps, **UNCACHED)
    check_equal("the new ids with a cache", newest(instance.copy(), prompts, steps, **CACHED), want)


def _clear(
    draw: Draw, logits: Model, size: int, length: int, steps: int, width: int, *, rows: int, **options: Any
) -> Array:
    """Draw prompts for which no comparison in the search is near a tie."""
    found: list[Array] = []
    for number in range(_MOST_DRAWN):
        prompt = draw.ids(size, length)
        if clear(logits, prompt, steps, width, **options):
            found.append(prompt)
        if len(found) == rows or (found and number >= _DRAWN):
            break
    return np.stack(found or undecided())


def _check_penalized(
    tool: Tool, instance: Instance, prompt: Array, steps: int, width: int, penalty: float, end: int | None
) -> None:
    """Search with a length penalty; where there is room for every text, the best of all must be first."""
    options = {} if end is None else {"eos_id": end}
    beams = searched(tool, instance, prompt, steps, width, length_penalty=penalty, **options)
    every = every_text(instance.sizes["vocab_size"], steps, end) if end is not None else []
    total = partial(log_probability, reader(instance), prompt[0])
    check_penalized(beams, total, penalty, end, every if len(every) <= width else (), before=prompt.shape[1])


def _compare(beams: Beams, row: int, want: list[tuple[float, list[int]]]) -> None:
    got = beams.row(row)
    under(f"wanted {[(round(score, 4), new) for score, new in want]}")
    check(f"there are {len(got)} beams, expected {len(want)}", len(got) >= len(want))
    for (score, new), (wanted, own) in zip(got, want, strict=False):
        check(f"a beam is {new} with {score:.4f}, expected {own} with {wanted:.4f}", new == own)
        check_close(f"the score of {new}", np.array([score]), np.array([wanted]), SCORES, scale=1.0)
