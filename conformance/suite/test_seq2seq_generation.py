"""Clauses of spec/seq2seq_generation.md.

Expected results come from the model's own logits, called without `generate`. Sources are chosen so that mistakes show:
greedy text that varies, arg maxes that rounding can't flip, no id of the pad.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import (
    NotApplicable,
    check,
    check_equal,
    check_shape,
    each_of,
    refusing,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case
from conformkit.conformance.assertions.statistics import check_frequencies, check_independent
from conformkit.conformance.evidence.at_sizes import check_at_sizes
from conformkit.conformance.evidence.ended_texts import check_ended
from conformkit.conformance.evidence.logits import rows
from conformkit.conformance.evidence.long_texts import check_written, cost_of_text, without_pads
from conformkit.conformance.evidence.sampled_ranks import EVEN, check_ranks, cost_of_draws, draws_for, filters
from conformkit.conformance.evidence.sampled_text import DRAWS, FEW, Chances, check_set, separated, with_p
from conformkit.conformance.evidence.seq2seq_generation import (
    EVERY,
    Pairs,
    authored,
    begin,
    build_generator,
    drawn,
    greedy,
    logits_after,
    nearest_vocabulary,
    nearest_writer,
    new_ids,
    padded,
    plain,
    sampled,
    sources,
    unwatched,
    write,
)  # fmt: skip
from conformkit.conformance.evidence.writers_at_sizes import (
    SHORT_PAIRS,
    check_writer_at_sizes,
)
from conformkit.conformance.probing.refusals import is_refusal
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.decoding import until_end

_MODELS = 3
"""Models that are tried for a text with the id 0."""


# --- what comes back --------------------------------------------------------------------------------------------------


@clause("S2SGEN-LENGTH")
def test_a_target_has_as_many_ids_as_asked_for(transformer: Subject, draw: Draw) -> None:
    instance = build_generator(transformer).scatter(draw)
    for batch, length, count in each_of("batch, length, count", [(2, 5, 3), (1, 2, 6), (3, 4, 1), (1, 1, 9)]):
        src = sources(instance, draw, batch, length)
        got = new_ids(instance, write(instance, src, count, **plain(transformer)).out, count, len(src))
        check_shape(f"{count} new ids", got, (len(src), count))


@clause("S2SGEN-ZERO")
def test_no_new_ids_are_an_empty_target(transformer: Subject, draw: Draw) -> None:
    instance = build_generator(transformer).scatter(draw)
    for batch, length in each_of("batch, length", [(2, 4), (1, 1)]):
        src = sources(instance, draw, batch, length)
        with refusing(is_refusal):
            got = new_ids(instance, write(instance, src, 0, **plain(transformer)).out, 0, len(src))
            check_shape("0 new ids", got, (len(src), 0))


@clause("S2SGEN-RANGE")
def test_new_ids_are_ids_of_the_targets_vocabulary(transformer: Subject, draw: Draw) -> None:
    for source, target in each_of("source, target", [(29, 7), (5, 23)]):
        instance = build_generator(transformer, src_vocab_size=source, tgt_vocab_size=target).scatter(draw, gain=0.5)
        size = instance.sizes["tgt_vocab_size"]
        for batch, count in [(120, 1), (3, 4)]:
            outcome = write(instance, sources(instance, draw, batch, 3), count, **plain(transformer))
            check(f"the ids are {outcome.dtype}, expected integers", "int" in outcome.dtype)
            outside = outcome.out[(outcome.out < 0) | (outcome.out >= size)]
            check(f"{outside[:1]} is none of 0 … {size - 1}", not outside.size)


@clause("S2SGEN-DTYPE-KEPT")
def test_ids_keep_the_type_of_the_source(transformer: Subject, draw: Draw) -> None:
    instance = build_generator(transformer).scatter(draw)
    dtype = write(instance, sources(instance, draw, 2, 4), 2, **plain(transformer)).dtype
    check(f"the ids are {dtype}, the source is int64", dtype == "int64")


# --- greedy text ------------------------------------------------------------------------------------------------------


@clause("S2SGEN-TEMP-ZERO")
def test_temperature_0_asks_for_greedy_text(transformer: Subject, draw: Draw) -> None:
    _same_for_all_seeds(transformer, draw, steps=1)


@clause("S2SGEN-GREEDY-DET")
def test_greedy_text_does_not_depend_on_the_seed(transformer: Subject, draw: Draw) -> None:
    _same_for_all_seeds(transformer, draw, steps=4)


@clause("S2SGEN-START")
def test_the_first_id_is_the_most_probable_one_after_the_begin_id(transformer: Subject, draw: Draw) -> None:
    for length in each_of("length", [1, 4, 7]):
        example = authored(build_generator(transformer), draw, steps=1, keep=12, length=length)
        for src, text in zip(
            example.src, example.text, strict=True
        ):  # alone: the clause on batches judges rows together
            check_equal("the first id", greedy(example.instance.copy(), src[None], 1)[0], text)


@clause("S2SGEN-AUTOREGRESSIVE")
def test_each_new_id_is_read_before_the_next(transformer: Subject, draw: Draw) -> None:
    for length, steps in each_of("length, steps", [(5, EVERY), (2, 5)]):
        _check_alone("the new ids", authored(build_generator(transformer), draw, steps=steps, length=length))


@clause("S2SGEN-SRC-PAD")
def test_padding_of_the_source_changes_no_text(transformer: Subject, draw: Draw) -> None:
    example = authored(build_generator(transformer), draw, steps=5, length=4)
    length = example.src.shape[1]
    for longer in each_of("longer", [length + 1, length + 5]):
        for row, text in zip(padded(example.instance, example.src, longer), example.text, strict=True):
            got = greedy(example.instance.copy(), row[None], example.count)
            check_equal("the text of a padded source", got[0], text)


@clause("S2SGEN-PAD-BUILT")
def test_without_a_mask_padding_is_found_by_its_id(transformer: Subject, draw: Draw) -> None:
    example = authored(build_generator(transformer), draw, steps=4, length=4)
    for row, text in zip(padded(example.instance, example.src, 9), example.text, strict=True):
        got = greedy(example.instance, row[None], example.count, masked=False)
        check_equal("the text of a padded source", got[0], text)


@clause("S2SGEN-BATCH")
def test_a_source_is_written_about_as_it_is_alone(transformer: Subject, draw: Draw) -> None:
    instance = build_generator(transformer)
    short = authored(instance, draw, steps=5, length=4)
    if len(short.src) < 2:
        raise NotApplicable.from_sizes("its limits allow one source at a time")
    check_equal("the texts of a batch", greedy(instance, short.src, 5), short.text)
    cut = short.src.copy()
    cut[1::2, 2:] = instance.sizes["pad_id"]  # every other source is shorter, and padded to the same length
    alone = [greedy(instance, row[row != instance.sizes["pad_id"]][None], 5)[0] for row in cut]
    check_equal("the texts of a batch of two lengths", greedy(instance, cut, 5), np.stack(alone))


@clause("S2SGEN-NO-STATE")
def test_a_text_does_not_depend_on_the_texts_before_it(transformer: Subject, draw: Draw) -> None:
    example = authored(build_generator(transformer), draw, steps=3)
    for src, text in zip(example.src, example.text, strict=True):  # one after the other, by one model
        check_equal("the text, after another one", greedy(example.instance, src[None], 3)[0], text)
    logits_after(example.instance, example.src, example.text)
    check_equal("the text, after a call of the model", greedy(example.instance, src[None], 3)[0], text)


@clause("S2SGEN-SIZES")
def test_targets_of_any_length_follow_the_logits(transformer: Subject, draw: Draw) -> None:
    def check_sizes(sizes: Case) -> None:
        check_written(transformer, draw.at(sizes), sizes)

    def cost(sizes: Case) -> float:
        written, read = sizes["tokens"], sizes["keys"]
        scores = read**2 + written * (written**2 / 3 + read + sizes.get("tgt_vocab_size", 0))
        return cost_of_text(sizes, scores, "keys", "tokens")

    nearest = partial(nearest_writer, transformer)
    check_writer_at_sizes(
        draw, check_sizes, cost, nearest, after="S2SGEN-AUTOREGRESSIVE", short=SHORT_PAIRS, limit=1.2e8
    )


# --- the end of a text ------------------------------------------------------------------------------------------------


@clause("S2SGEN-EOS-STOP")
def test_a_text_ends_at_its_end_id(transformer: Subject, draw: Draw) -> None:
    example = _ending(transformer, draw)
    for src, text in zip(example.src, example.text.tolist(), strict=True):
        for end in each_of("end", [text[0], text[3], text[6]]):
            check_ended(unwatched(example.instance, src[None], 7, eos_id=end)[0].tolist(), text, end)
    if not transformer.offers("pad-id"):
        return
    for _ in range(_MODELS):  # 0 is an id like any other where it is not the padding
        example = _ending(transformer, draw, tgt_vocab_size=12, pad_id=2)
        found = np.flatnonzero((example.text == 0).any(axis=1))
        for row in found[:1]:
            check_ended(
                unwatched(example.instance, example.src[row][None], 7, eos_id=0)[0].tolist(),
                example.text[row].tolist(),
                0,
            )
        if found.size:
            break


@clause("S2SGEN-EOS-ROWS")
def test_rows_end_one_by_one(transformer: Subject, draw: Draw) -> None:
    example = _ending(transformer, draw, keep=8)
    texts = example.text.tolist()
    if len(texts) < 2:
        raise NotApplicable.from_sizes("its limits allow one source at a time")
    for end in each_of("end", _ends(texts)):
        got = unwatched(example.instance, example.src, 7, eos_id=end)
        longest = max(len(until_end(text, end)) for text in texts)
        check(f"the batch has {got.shape[1]} new ids, the longest row {longest}", got.shape[1] >= longest)
        for row, text in zip(got.tolist(), texts, strict=True):
            check_ended(row, text, end)


@clause("S2SGEN-EOS-ENDS")
def test_writing_stops_when_all_rows_have_ended(transformer: Subject, draw: Draw) -> None:
    example = _ending(transformer, draw)
    for src, text in zip(example.src, example.text.tolist(), strict=True):
        want = len(until_end(text, text[2]))
        got = unwatched(example.instance, src[None], 7, eos_id=text[2]).shape[1]
        check(f"{got} ids are returned for a text that ends after {want}", got == want)


@clause("S2SGEN-EOS-START")
def test_a_begin_id_that_is_the_end_id_ends_nothing(transformer: Subject, draw: Draw) -> None:
    instance = build_generator(transformer)
    example = authored(instance, draw, steps=5, avoid=(begin(instance),))
    for src, text in zip(example.src, example.text, strict=True):
        got = unwatched(instance, src[None], 5, eos_id=begin(instance))
        check_equal("the text", got[0], text)


# --- sampled text -----------------------------------------------------------------------------------------------------


@clause("S2SGEN-TEMP")
def test_ids_are_drawn_from_the_softmax_of_the_logits_over_the_temperature(transformer: Subject, draw: Draw) -> None:
    law = _chances(transformer, draw)
    for tau in each_of("tau", [1.0, 0.5, 2.0]):
        got = drawn(law.instance, law.prompt[None], DRAWS, draw, temperature=tau)[0]
        check_frequencies(f"temperature {tau}", got, law.expected(temperature=tau), distributions=3)


@clause("S2SGEN-ROWS-INDEP")
def test_rows_are_drawn_independently(transformer: Subject, draw: Draw) -> None:
    if rows(transformer, 2) < 2:
        raise NotApplicable.from_sizes("its limits allow one source at a time")
    law = _chances(transformer, draw)
    got = drawn(law.instance, law.prompt[None], 2000, draw)[0]
    check_independent("ids of neighbours in a batch", got[0::2], got[1::2])


@clause("S2SGEN-TOPK")
def test_top_k_draws_from_the_k_most_probable_ids(transformer: Subject, draw: Draw) -> None:
    laws = _chances(transformer, draw), _chances(transformer, draw)
    size = laws[0].instance.sizes["tgt_vocab_size"]
    for k in each_of("k", [3, 1, size + 5]):
        for law in laws:
            got = drawn(law.instance, law.prompt[None], DRAWS, draw, top_k=k)[0]
            chances = law.expected(top_k=k)
            check_set(f"top_k = {k}", got, law.ranked()[:k], chances)
            check_frequencies(f"top_k = {k}", got, chances, distributions=6)


@clause("S2SGEN-TOPK-ROWS")
def test_the_ids_of_each_source_are_cut_by_its_own_probabilities(transformer: Subject, draw: Draw) -> None:
    laws = _unlike(transformer, draw)
    for order in each_of("order", [(0, 1), (1, 0)]):
        first, second = (laws[which] for which in order)
        got = drawn(first.instance, np.stack([first.prompt, second.prompt]), FEW, draw, top_k=2)
        for row, law in enumerate((first, second)):
            check_set(f"top_k = 2, row {row} of two sources", got[row], law.ranked()[:2], law.expected(top_k=2))


@clause("S2SGEN-TOPP")
def test_top_p_draws_from_the_smallest_set_of_probability_p(transformer: Subject, draw: Draw) -> None:
    law = _chances(transformer, draw)
    for count, p in with_p(law, (1, 2, 4)):
        got = drawn(law.instance, law.prompt[None], DRAWS, draw, top_p=p)[0]
        chances = law.expected(top_p=p)
        check_set(f"top_p = {p:.4g}", got, law.ranked()[:count], chances)
        check_frequencies(f"top_p = {p:.4g}", got, chances, distributions=3)


@clause("S2SGEN-SAMPLE-SIZES")
def test_ids_of_every_rank_are_drawn_for_a_target(transformer: Subject, draw: Draw) -> None:
    domain = {name: ends for name, ends in draw.domain.items() if name != "top_k" or transformer.offers("top-k")}

    def check_ids(sizes: Case) -> None:
        instance = build_generator(transformer, tgt_vocab_size=sizes["tgt_vocab_size"])
        src = sources(without_pads(instance.scatter(draw.at(sizes), gain=EVEN)), draw.at(sizes), 1, 3)
        logits = logits_after(instance, src, np.full((1, 1), begin(instance)))[0]
        top_p = transformer.offers("top-p")
        for options in filters(len(logits), sizes.get("top_k"), top_p=top_p, attempt=draw.attempt):
            check_ranks(logits, drawn(instance, src, draws_for(len(logits)), draw, **options)[0], options)

    def cost(sizes: Case) -> float:
        return cost_of_draws(sizes["tgt_vocab_size"])

    check_at_sizes(draw, check_ids, cost, partial(nearest_vocabulary, transformer), after="S2SGEN-TEMP", domain=domain,
                   following=("tgt_vocab_size",), coverage="some bands")  # fmt: skip


@clause("S2SGEN-SEED")
def test_the_same_seed_gives_the_same_sample(transformer: Subject, draw: Draw) -> None:
    instance = build_generator(transformer).scatter(draw, gain=0.5)
    src = sources(instance, draw, 6, 3)
    first = sampled(instance, src, EVERY, seed=5)
    check_equal("the text drawn again from the same state", sampled(instance, src, EVERY, seed=5), first)
    check("another seed gives the same text", bool((sampled(instance, src, EVERY, seed=6) != first).any()))


# --- what writing leaves behind ---------------------------------------------------------------------------------------


@clause("S2SGEN-EVAL-MODE")
def test_writing_happens_without_dropout(transformer: Subject, draw: Draw) -> None:
    example = authored(build_generator(transformer, dropout=0.5), draw, steps=4)
    for seed in each_of("seed", [1, 2]):
        for src, text in zip(example.src, example.text, strict=True):
            got = greedy(example.instance, src[None], 4, mode="train", seed=seed)
            check_equal("greedy text from training mode, dropout 0.5,", got[0], text)


@clause("S2SGEN-MODE-RESTORE")
def test_the_mode_afterwards_is_the_mode_before(transformer: Subject, draw: Draw) -> None:
    instance = build_generator(transformer, dropout=0.1).scatter(draw)
    src = sources(instance, draw, 2, 4)
    for mode, flag in each_of("mode, flag", [("train", True), ("eval", False)]):
        modes = write(instance, src, 2, mode=mode, watch=True, **plain(transformer)).modes
        check(f"afterwards the training flags are {modes}, expected {flag} alone", modes == (flag,))


@clause("S2SGEN-PURE")
def test_parameters_and_source_are_left_as_they_were(transformer: Subject, draw: Draw) -> None:
    instance = build_generator(transformer).scatter(draw, gain=2.0)
    names = [p["name"] for p in instance.trainable]
    before, src = instance.read_raw(), padded(instance, sources(instance, draw, 2, 4), 6)
    arguments = write(instance, src.copy(), 4, mode="train", echo=True, **plain(transformer)).arguments
    check_equal("the source after the call", arguments["src"], transformer.bound.to_theirs(src))
    after = instance.read_raw()
    for name in names:
        check_equal(f"{name} after the call", after[name], before[name])


@clause("S2SGEN-RNG")
def test_greedy_text_leaves_the_random_state_alone(transformer: Subject, draw: Draw) -> None:
    instance = build_generator(transformer, dropout=0.1).scatter(draw)
    asked: dict[str, Any] = {"temperature": 0.0} if transformer.offers("temperature") else {}
    outcome = write(instance, sources(instance, draw, 2, 4), 3, mode="train", watch=True, **asked)
    check("greedy text draws random numbers", not outcome.used_random_state)


@clause("S2SGEN-NO-GRAD")
def test_writing_keeps_nothing_for_derivatives(transformer: Subject, draw: Draw) -> None:
    instance = build_generator(transformer).scatter(draw)
    outcome = write(instance, sources(instance, draw, 2, 4), 2, mode="train", watch=True, **plain(transformer))
    check("while it generates, tensors are saved for a backward pass that is never run", not outcome.graph)


@clause("S2SGEN-GRAD-AFTER")
def test_gradients_flow_after_writing(transformer: Subject, draw: Draw) -> None:
    instance = build_generator(transformer).scatter(draw)
    before = _reached(instance, draw)
    write(instance, sources(instance, draw, 2, 4), 2, **plain(transformer))
    lost = sorted(before - _reached(instance, draw))
    check("no gradient reaches any parameter", bool(before))
    check(f"{', '.join(lost)} gets no gradient any more", not lost)


# --- parts ------------------------------------------------------------------------------------------------------------


def _same_for_all_seeds(transformer: Subject, draw: Draw, steps: int) -> None:
    instance = build_generator(transformer).scatter(draw, gain=0.5)
    src = sources(instance, draw, 12, 4)
    first = greedy(instance, src, steps)
    for seed in each_of("seed", [2, 3]):
        check_equal("greedy text after another seed", greedy(instance, src, steps, seed=seed), first)


def _check_alone(label: str, told: Pairs) -> None:
    for src, text in zip(told.src, told.text, strict=True):
        check_equal(label, greedy(told.instance.copy(), src[None], told.count)[0], text)


def _ending(transformer: Subject, draw: Draw, keep: int = 4, **wanted: int) -> Pairs:
    """Return texts of 7 ids to be ended at one of them, which is not the begin id."""
    instance = build_generator(transformer, **wanted)
    return authored(instance, draw, steps=7, keep=keep, avoid=(begin(instance),))


def _ends(texts: list[list[int]]) -> list[int]:
    """Return ids at which some of the texts end, and not all of them at once."""
    candidates = sorted({token for text in texts for token in text[:5]})
    spread = {token: len({len(until_end(text, token)) for text in texts}) for token in candidates}
    return sorted(candidates, key=lambda token: -spread[token])[:4]


def _chances(transformer: Subject, draw: Draw) -> Chances:
    """Choose, of many sources, the one whose first id has the best separated probabilities."""
    best: tuple[float, Chances] | None = None
    for gain in (1.4, 1.0, 2.0):
        instance = build_generator(transformer, num_decoder_layers=1).scatter(draw, gain=gain)
        src = sources(instance, draw, 60, 3)
        logits = logits_after(instance, src, np.full((len(src), 1), begin(instance)))
        scores = separated(logits)
        chosen = int(np.argmax(scores))
        if best is None or scores[chosen] > best[0]:
            best = float(scores[chosen]), Chances(instance, src[chosen], logits[chosen])
        if best[0] > 2.0:
            break
    assert best is not None
    under(f"the source {best[1].prompt.tolist()}")
    return best[1]


def _unlike(transformer: Subject, draw: Draw) -> tuple[Chances, Chances]:
    """Choose, of many sources, two whose second largest logits are far apart, each clearly above its third."""
    for gain in (2.0, 1.4, 3.0):
        instance = build_generator(transformer, num_decoder_layers=1).scatter(draw, gain=gain)
        src = sources(instance, draw, 60, 3)
        logits = logits_after(instance, src, np.full((len(src), 1), begin(instance)))
        ordered = np.sort(logits, axis=1)[:, ::-1]
        clear = np.flatnonzero((ordered[:, 1] - ordered[:, 2] > 0.1) & (ordered[:, 0] - ordered[:, 1] < 2.5))
        if len(clear) < 2:
            continue
        low, high = (int(clear[pick(ordered[clear, 1])]) for pick in (np.argmin, np.argmax))
        if ordered[low, 1] < ordered[high, 2] or ordered[low, 0] < ordered[high, 1]:
            return Chances(instance, src[low], logits[low]), Chances(instance, src[high], logits[high])
    raise NotApplicable("no two sources have probabilities that differ enough")


def _reached(instance: Instance, draw: Draw) -> set[str]:
    src, tgt = sources(instance, draw, 2, 4), np.full((2, 3), begin(instance))
    cotangent = draw.values(2, 3, instance.sizes["tgt_vocab_size"])
    found = instance.vjp(src, tgt, cotangent=cotangent, wrt=(), parameters=True).parameters
    return {name for name, gradient in found.items() if gradient is not None}
