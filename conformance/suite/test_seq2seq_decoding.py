"""Clauses of spec/seq2seq_decoding.md: caches are compared with the text without one, beams with the model's logits.

Right models differ in whether they read a generated pad: beams may do either.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check, check_close, check_equal, each_of, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case
from conformkit.conformance.assertions.statistics import check_frequencies
from conformkit.conformance.binding.sizes import NoSizeError
from conformkit.conformance.evidence.at_sizes import check_at_sizes
from conformkit.conformance.evidence.beams import (
    SCORES,
    Beams,
    check_penalized,
    check_scores,
    clear,
    every_text,
    undecided,
)
from conformkit.conformance.evidence.logits import parts, rows
from conformkit.conformance.evidence.long_texts import (
    SCORE,
    check_written,
    cost_of_text,
    target_logits,
    total_log_probability,
)
from conformkit.conformance.evidence.seq2seq_generation import (
    EVERY,
    authored,
    begin,
    build_generator,
    by_either,
    greedy,
    logits_after,
    nearest_writer,
    padded,
    ragged,
    readers,
    sampled,
    searched,
    sources,
    unwatched,
    write,
)  # fmt: skip
from conformkit.conformance.evidence.writers_at_sizes import (
    SHORT_PAIRS,
    check_writer_at_sizes,
)
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array
from conformkit.spec.attention import softmax
from conformkit.spec.decoding import Model, beam_search, log_probability, until_end

_STEPS = 4
"""New ids of a search whose other sizes are large."""
_DRAWN, _MOST_DRAWN = 10, 60
"""Sources that are looked at for clear ones, and where there is none among them."""
_EVERY_TEXT = 27
"""Beams for every target of 3 ids, of a vocabulary of 3."""
_MODELS = 7
"""Models whose vocabulary has 3 ids: in all of them the best single id is the end id once in 3^7 times."""


# --- keys and values, kept --------------------------------------------------------------------------------------------


@clause("S2SKV-POSITIONS")
def test_a_cached_target_counts_its_positions_on(transformer: Subject, draw: Draw) -> None:
    for length in each_of("length", [1, 4]):
        example = authored(build_generator(transformer), draw, steps=2, keep=8, length=length)
        for src, text in zip(example.src, example.text, strict=True):
            check_equal("the new ids with a cache", _cached(example.instance.copy(), src[None], 2)[0], text)


@clause("KV-MEMORY-CROSS")
def test_cached_keys_of_the_memory_are_those_of_the_source(transformer: Subject, draw: Draw) -> None:
    example = authored(build_generator(transformer), draw, steps=3, length=4)
    for longer in each_of("longer", [6, 9]):
        for row, text in zip(padded(example.instance, example.src, longer), example.text, strict=True):
            got = _cached(example.instance.copy(), row[None], 3)
            check_equal("the new ids of a padded source with a cache", got[0], text)


@clause("S2SKV-GREEDY-EQUIV")
def test_a_cache_changes_no_text(transformer: Subject, draw: Draw) -> None:
    for length, steps in each_of("length, steps", [(5, EVERY), (1, 6)]):
        example = authored(build_generator(transformer, num_decoder_layers=3), draw, steps=steps, length=length)
        for src, text in zip(example.src, example.text, strict=True):
            check_equal("the new ids with a cache", _cached(example.instance.copy(), src[None], steps)[0], text)


@clause("S2SKV-EQUIV")
def test_a_cache_changes_no_probability(transformer: Subject, draw: Draw) -> None:
    instance = build_generator(transformer, tgt_vocab_size=7).scatter(draw, gain=1.0)
    src = sources(instance, draw, 1, 4)
    batch = np.tile(src, (4000, 1))
    got = np.concatenate([_drawn(instance, piece, draw) for piece in np.array_split(batch, parts(transformer, 4000))])
    firsts, counts = np.unique(got[:, 0], return_counts=True)
    judged = [int(i) for i, n in zip(firsts, counts, strict=True) if n >= 300 and i != instance.sizes["pad_id"]]
    if not judged:
        raise NotApplicable("its first id is the pad's, or any")
    for first in each_of("first", judged):
        logits = logits_after(instance, src, np.array([[begin(instance), first]]))[0]
        second = got[got[:, 0] == first, 1]
        check_frequencies(f"the id after {first}", second, softmax(logits), distributions=len(judged))


@clause("S2SKV-RESET")
def test_a_new_text_begins_with_an_empty_cache(transformer: Subject, draw: Draw) -> None:
    example = authored(build_generator(transformer), draw, steps=4)
    for src, text in zip(example.src, example.text, strict=True):  # one after the other, by one model
        check_equal("the new ids with a cache, after another text,", _cached(example.instance, src[None], 4)[0], text)


@clause("S2SKV-BATCH")
def test_each_row_has_keys_and_values_of_its_own(transformer: Subject, draw: Draw) -> None:
    example = authored(build_generator(transformer), draw, steps=5)
    check_equal("the texts of a batch with a cache", _cached(example.instance, example.src, 5), example.text)


@clause("S2SKV-EOS")
def test_rows_that_have_ended_disturb_no_cache(transformer: Subject, draw: Draw) -> None:
    instance = build_generator(transformer)
    example = authored(instance, draw, steps=6, avoid=(begin(instance),))
    texts = example.text.tolist()
    for end in each_of("end", sorted({text[1] for text in texts})[:4]):
        got = unwatched(example.instance, example.src, 6, use_cache=True, eos_id=end)
        for row, text in zip(got.tolist(), texts, strict=True):
            own = until_end(text, end)
            check_equal(f"a row up to its end id {end}", np.array(row[: len(own)]), np.array(own))


@clause("S2SKV-SIZES")
def test_cached_targets_of_any_length_follow_the_logits(transformer: Subject, draw: Draw) -> None:
    def check_sizes(sizes: Case) -> None:
        check_written(transformer, draw.at(sizes), sizes, use_cache=True)

    def cost(sizes: Case) -> float:
        written, read = sizes["tokens"], sizes["keys"]
        scores = read**2 + written * (written + read)
        return cost_of_text(sizes, scores, "keys", "tokens")

    nearest = partial(nearest_writer, transformer)
    check_writer_at_sizes(draw, check_sizes, cost, nearest, after="S2SKV-GREEDY-EQUIV", short=SHORT_PAIRS, limit=2e8)


# --- beams ------------------------------------------------------------------------------------------------------------


@clause("S2SBEAM-SHAPE")
def test_a_beam_search_returns_targets_and_scores(transformer: Subject, draw: Draw) -> None:
    instance = _searcher(transformer, draw)
    for batch, length, steps, width in each_of(
        "batch, length, steps, width", [(2, 3, 4, 3), (1, 1, 1, 2), (3, 2, 2, 1)]
    ):
        beams = searched(instance, sources(instance, draw, batch, length), steps, width)
        check(f"{steps} new ids come as {beams.new.shape[-1]}", beams.new.shape[-1] == steps)
        check("a score is NaN", not np.isnan(beams.scores).any())


@clause("S2SBEAM-ONE")
def test_one_beam_is_greedy_text(transformer: Subject, draw: Draw) -> None:
    for length, steps in each_of("length, steps", [(1, 4), (4, 6)]):
        example = authored(build_generator(transformer), draw, steps=steps, length=length)
        for src, text in zip(example.src, example.text, strict=True):
            check_equal("the single beam", searched(example.instance, src[None], steps, 1).new[0, 0], text)


@clause("S2SBEAM-SCORE")
def test_a_score_is_the_sum_of_log_probabilities(transformer: Subject, draw: Draw) -> None:
    instance = _searcher(transformer, draw)
    for steps, width in each_of("steps, width", [(1, 3), (4, 2), (3, 4)]):
        src = sources(instance, draw, 1, 3)
        beams = searched(instance, src, steps, width)
        by_either(readers(instance, src[0]), _check_scores, instance, beams)


@clause("S2SBEAM-SORTED")
def test_beams_are_distinct_the_best_first(transformer: Subject, draw: Draw) -> None:
    instance = _searcher(transformer, draw)
    for steps, width in each_of("steps, width", [(3, 4), (1, 5), (4, 3)]):
        beams = searched(instance, sources(instance, draw, 1, 3), steps, width)
        texts = [tuple(new) for _, new in beams.row(0)]
        check(f"{len(texts)} beams contain {len(set(texts))} distinct texts", len(set(texts)) == len(texts))
        rises = np.diff([score for score, _ in beams.row(0)])
        check(f"the scores are {np.round(beams.scores[0], 4).tolist()}", bool((rises <= SCORES).all()))


@clause("S2SBEAM-TOY")
def test_beams_compete_with_one_another(transformer: Subject, draw: Draw) -> None:
    instance = _searcher(transformer, draw)
    for steps, width in each_of("steps, width", [(4, 2), (5, 3), (3, 4)]):
        for src in _clear(instance, draw, steps, width, keep=3):
            beams = searched(instance, src[None], steps, width)
            by_either(readers(instance, src), _compare, instance, beams, steps, width)


@clause("S2SBEAM-FULL")
def test_a_beam_that_is_wide_enough_finds_the_best_target_of_all(transformer: Subject, draw: Draw) -> None:
    instance = _searcher(transformer.as_asked, draw, size=3)
    src = _misleading(instance, draw)
    score, best = searched(instance, src[None], 3, _EVERY_TEXT).row(0)[0]
    every = [list(new) for new in itertools.product(range(3), repeat=3)]

    def judge(reader: Model) -> None:
        totals = [log_probability(reader, _prompt(instance), new) for new in every]
        want = every[int(np.argmax(totals))]
        check(f"the first beam is {best} with {score:.4f}, {want} has {max(totals):.4f}", best == want)

    by_either(readers(instance, src), judge)


@clause("S2SBEAM-SRC-PAD")
def test_padding_of_the_source_changes_no_beam(transformer: Subject, draw: Draw) -> None:
    instance = _searcher(transformer, draw)
    for src in _clear(instance, draw, 3, 3, keep=3):
        alone = searched(instance, src[None], 3, 3)
        hidden = searched(instance, padded(instance, src[None], 8), 3, 3)
        check_close("the scores of a padded source", hidden.scores, alone.scores, SCORES)
        check_equal("the beams of a padded source", hidden.new, alone.new)


@clause("S2SBEAM-BATCH")
def test_beams_of_different_sources_dont_mix(transformer: Subject, draw: Draw) -> None:
    instance = _searcher(transformer, draw)
    drawn = _clear(instance, draw, 4, 3, keep=8)
    unlike = {(one := searched(instance, src[None], 4, 3)).new.tobytes(): (src, one) for src in drawn}
    chosen = [*unlike.values()][: rows(transformer, 4)]
    together = searched(instance, np.stack([src for src, _ in chosen]), 4, 3)
    for row in each_of("row", range(len(chosen))):
        alone = chosen[row][1]
        check_equal("the beams of a source in a batch", together.new[row], alone.new[0])
        check_close("their scores", together.scores[row], alone.scores[0], SCORES)


@clause("S2SBEAM-EOS")
def test_a_beam_that_has_ended_is_kept_and_not_extended(transformer: Subject, draw: Draw) -> None:
    pads = [{}, {"pad_id": 2}] if transformer.offers("pad-id") else [{}]  # then the end id is 0, like any other
    for pad in pads:
        instance = _searcher(transformer.as_asked, draw, size=3, **pad)
        first = _ends(instance)[0]
        for end, width in each_of("end, width", [(first, _EVERY_TEXT), (first, _EVERY_TEXT), (first, 4)]):
            src = sources(instance, draw, 1, 2)
            beams = searched(instance, src, 3, width, eos_id=end)
            by_either(readers(instance, src[0]), _check_ended, instance, beams, end, width, 3)
    for _ in range(_MODELS):
        instance = _searcher(transformer.as_asked, draw, size=3)
        src, end = sources(instance, draw, 1, 2), _ends(instance)[0]
        beams = searched(instance, src, 1, 3, eos_id=end)
        by_either(readers(instance, src[0]), _check_ended, instance, beams, end, 3, 1)


@clause("S2SBEAM-LENPEN")
def test_the_length_penalty_divides_by_a_power_of_the_length(transformer: Subject, draw: Draw) -> None:
    few, five = (_searcher(transformer.as_asked, draw, size=size) for size in (3, 5))
    ended = transformer.offers("beam-eos-id")
    for penalty, end in each_of("penalty, end", itertools.product((0.6, 1.0), [None, *(_ends(five) if ended else ())])):
        _check_penalized(five, sources(five, draw, 1, 3), 4, 3, penalty, end)
    for penalty, end in each_of("penalty, end", itertools.product((0.6, 2.0), _ends(few)[:1] if ended else ())):
        _check_penalized(few, sources(few, draw, 1, 2), 3, _EVERY_TEXT, penalty, end)


@clause("S2SBEAM-EVAL-MODE")
def test_beams_are_searched_without_dropout(transformer: Subject, draw: Draw) -> None:
    instance = _searcher(transformer, draw, dropout=0.5)
    (src,) = _clear(instance, draw, 3, 2, keep=1)
    want = searched(instance, src[None], 3, 2)
    got = searched(instance, src[None], 3, 2, mode="train")
    check_close("the scores from training mode, dropout 0.5,", got.scores, want.scores, SCORES)
    modes = write(instance, src[None], 3, method="beam_search", beam_width=2, mode="train", watch=True).modes
    check(f"afterwards the training flags are {modes}, expected True alone", modes == (True,))


@clause("S2SBEAM-MODE-KEPT")
def test_a_search_leaves_the_model_in_eval_mode(transformer: Subject, draw: Draw) -> None:
    instance = _searcher(transformer, draw, dropout=0.1)
    src = sources(instance, draw, 1, 3)
    modes = write(instance, src, 2, method="beam_search", beam_width=2, watch=True).modes
    check(f"afterwards the training flags are {modes}, expected False alone", modes == (False,))


@clause("S2SBEAM-SIZES")
def test_beams_of_any_number_are_those_of_the_definition(transformer: Subject, draw: Draw) -> None:
    def check_sizes(sizes: Case) -> None:
        own, width, size, length = (draw.at(sizes), *(sizes[n] for n in ("beams", "tgt_vocab_size", "keys")))
        instance = _searcher(transformer, own, size=size, max_len=max(length, _STEPS + 1))
        src = ragged(instance, sources(instance, own, sizes["batch"], length), own)
        for steps in (_STEPS, 1):  # after one step, all beams are children of one
            beams = searched(instance, src, steps, width)
            by_either(readers(instance, src[-1]), _compare_if_clear, instance, beams, steps, width, len(src) - 1)
            used = beams.used(instance.sizes["tgt_vocab_size"], steps)
            texts, asked = used.new.reshape(-1, steps), np.repeat(src, used.new.shape[1], axis=0)
            want = total_log_probability(target_logits(instance, asked, texts), texts)
            judged = (texts != instance.sizes["pad_id"]).all(axis=1)
            check_close("the scores", used.scores.ravel()[judged], want[judged], SCORES)

    def cost(sizes: Case) -> float:
        judged = sizes["batch"] * sizes["beams"] + _STEPS * (sizes["beams"] + 2)
        return SCORE * judged * (sizes["keys"] ** 2 + _STEPS * (sizes["keys"] + sizes["tgt_vocab_size"]))

    check_at_sizes(
        draw, check_sizes, cost, partial(_nearest_search, transformer), after="S2SBEAM-TOY", coverage="some bands"
    )


# --- parts ------------------------------------------------------------------------------------------------------------


def _cached(instance: Instance, src: Array, steps: int) -> Array:
    return greedy(instance, src, steps, use_cache=True)


def _drawn(instance: Instance, src: Array, draw: Draw) -> Array:
    return sampled(instance, src, 2, seed=draw.integer(0, 1 << 30), use_cache=True)


def _nearest_search(transformer: Subject, sizes: Case) -> dict[str, int]:
    found = nearest_writer(transformer, {**sizes, "tokens": _STEPS})
    if found.pop("tokens") < _STEPS:
        raise NoSizeError(f"its limits leave no room for {_STEPS} new ids")
    return found | {"tgt_vocab_size": transformer.sizes(tgt_vocab_size=sizes["tgt_vocab_size"])["tgt_vocab_size"]}


def _searcher(transformer: Subject, draw: Draw, *, size: int = 5, **wanted: Any) -> Instance:
    """Build a model whose probabilities are neither even nor certain."""
    sizes = {"tgt_vocab_size": size, "num_decoder_layers": 1, **wanted}
    return build_generator(transformer, **sizes).scatter(draw, gain=1.2)


def _ends(instance: Instance) -> list[int]:
    """Return ids that may end a text: neither the begin id nor the pad."""
    return [i for i in range(instance.sizes["tgt_vocab_size"]) if i not in {begin(instance), instance.sizes["pad_id"]}]


def _prompt(instance: Instance) -> Array:
    return np.array([begin(instance)])


def _clear(instance: Instance, draw: Draw, steps: int, width: int, *, keep: int) -> list[Array]:
    """Draw sources (S,) for which no comparison in the search is near a tie: as many as are found soon, or one."""
    found: list[Array] = []
    for number in range(_MOST_DRAWN):
        src = sources(instance, draw, 1, 3)[0]
        if all(clear(reader, _prompt(instance), steps, width) for reader in readers(instance, src)):
            found.append(src)
        if len(found) == keep or (found and number >= _DRAWN):
            break
    return found or undecided()


def _misleading(instance: Instance, draw: Draw) -> Array:
    """Draw weights and a source (S,) whose best target of 3 ids is not the greedy one, if one is found soon."""
    for gain in (2.0, 3.0, 1.2, 2.5, 1.6, 3.5):
        instance.scatter(draw, gain=gain)
        drawn = _clear(instance, draw, 3, _EVERY_TEXT, keep=4)
        for src in drawn:
            reader, prompt = readers(instance, src)[0], _prompt(instance)
            if beam_search(reader, prompt, 3, 1)[0][1] != beam_search(reader, prompt, 3, _EVERY_TEXT)[0][1]:
                return src
    return drawn[0]


def _check_scores(reader: Model, instance: Instance, beams: Beams, end: int | None = None) -> None:
    check(f"the scores are {beams.scores[0].tolist()}, none that of a text", bool(beams.row(0)))
    check_scores(beams, partial(log_probability, reader, _prompt(instance)), end)


def _check_penalized(instance: Instance, src: Array, steps: int, width: int, penalty: float, end: int | None) -> None:
    """Search with a length penalty; where there is room for every text, the best of all must be first."""
    beams = searched(instance, src, steps, width, length_penalty=penalty, eos_id=end)
    every = every_text(instance.sizes["tgt_vocab_size"], steps, end) if end is not None and width == _EVERY_TEXT else []

    def judge(reader: Model) -> None:
        prompt = _prompt(instance)
        check_penalized(beams, partial(log_probability, reader, prompt), penalty, end, every, before=len(prompt))

    by_either(readers(instance, src[0]), judge)


def _compare(reader: Model, instance: Instance, beams: Beams, steps: int, width: int, row: int = 0) -> None:
    got, want = beams.row(row), beam_search(reader, _prompt(instance), steps, width)
    under(f"wanted {[(round(score, 4), new) for score, new in want]}")
    check(f"there are {len(got)} beams, expected {len(want)}", len(got) >= len(want))
    for (score, new), (wanted, own) in zip(got, want, strict=False):
        check(f"a beam is {new} with {score:.4f}, expected {own} with {wanted:.4f}", new == own)


def _compare_if_clear(reader: Model, instance: Instance, beams: Beams, steps: int, width: int, row: int) -> None:
    if clear(reader, _prompt(instance), steps, width):
        _compare(reader, instance, beams, steps, width, row)


def _check_ended(reader: Model, instance: Instance, beams: Beams, end: int, width: int, steps: int) -> None:
    for _, new in beams.row(0):
        rest = new[len(until_end(new, end)) :]
        check(f"a beam goes on after the end id {end}: {new}", len(set(rest)) < 2)
    _check_scores(reader, instance, beams, end)
    every = every_text(instance.sizes["tgt_vocab_size"], steps, end)
    best, text = max((log_probability(reader, _prompt(instance), new), new) for new in every)
    label = f"the first of {width} beams scores {beams.scores[0, 0]:.4f}, {text} has {best:.4f}"
    check(label, width < instance.sizes["tgt_vocab_size"] ** steps or bool(beams.scores[0, 0] > best - SCORES))
