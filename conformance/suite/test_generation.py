"""Clauses of spec/generation.md.

Expected continuations and probabilities come from the implementation's own logits, called without `generate`: a wrong
model is the business of model.md. Prompts are chosen so that mistakes show: greedy text that varies, arg maxes that
rounding can't flip, probabilities that are far enough apart to tell which id belongs to a set.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.checks import (
    NotApplicable,
    check,
    check_equal,
    check_refuses,
    check_shape,
    each_of,
    under,
)
from conformkit.conformance.evidence.draws import Draw
from conformkit.conformance.evidence.greedy_text import (
    author,
    check_text,
    continued,
    newest,
    prompt_ids,
    read_logits,
    rows,
    story,
    written,
)
from conformkit.conformance.evidence.sampled_text import (
    DRAWS,
    FEW,
    chances,
    check_set,
    even,
    halfway,
    p_between,
    sample,
    unlike,
    with_p,
)
from conformkit.conformance.evidence.statistics import check_frequencies, check_independent
from conformkit.conformance.registry import clause
from conformkit.conformance.subject import Outcome, Subject
from conformkit.spec.generation import next_token_probabilities

GREEDY = {"greedy": True}
SAMPLED = {"temperature": 1.0}


def plain(model: Subject) -> dict[str, Any]:
    """Return the options of the simplest text: sampled where temperature is offered, greedy where it is not."""
    return SAMPLED if model.offers("temperature") else GREEDY


def needs_block_size(model: Subject) -> None:
    """Raise NotApplicable unless the constructor knows a block size."""
    if "block_size" not in model.bound.construct.names():
        raise NotApplicable("its constructor takes no block_size")


@clause("GEN-LENGTH")
def test_as_many_ids_are_added_as_asked_for(model: Subject, draw: Draw) -> None:
    instance = model.build(block_size=11).scatter(draw)
    for batch, tokens, count in each_of([(1, 1, 1), (2, 3, 5), (3, 4, 2)]):
        prompts = prompt_ids(instance, draw, batch, tokens)
        out = instance.generate(prompts, count, seed=1, **plain(model)).out
        check_shape(f"{count} new ids after {prompts.shape[1]}", out, (len(prompts), prompts.shape[1] + count))


@clause("GEN-ZERO")
def test_no_new_ids_leave_the_prompt(model: Subject, draw: Draw) -> None:
    instance = model.build().scatter(draw)
    for batch, tokens in each_of([(2, 4), (1, 1)]):
        prompts = prompt_ids(instance, draw, batch, tokens)
        check_equal("the result of 0 new ids", instance.generate(prompts, 0, seed=1, **plain(model)).out, prompts)


@clause("GEN-PREFIX")
def test_the_prompt_comes_back_in_front(model: Subject, draw: Draw) -> None:
    instance = model.build(block_size=5).scatter(draw)
    long = instance.sizes["block_size"] + 4
    for tokens, options in each_of([(1, GREEDY), (3, plain(model)), (long, GREEDY), (long, plain(model))]):
        prompts = prompt_ids(instance, draw, 3, tokens)
        out = instance.generate(prompts, 3, seed=1, **options).out
        check_shape("prompt and 3 new ids", out, (len(prompts), prompts.shape[1] + 3))
        check_equal("the prompt in front", out[:, : prompts.shape[1]], prompts)


@clause("GEN-RANGE")
def test_new_ids_are_ids_of_the_vocabulary(model: Subject, draw: Draw) -> None:
    instance = model.build(vocab_size=7).scatter(draw, gain=0.3)
    vocab_size = instance.sizes["vocab_size"]
    for batch, count in each_of([(200, 1), (3, 4)]):
        outcome = instance.generate(prompt_ids(instance, draw, batch, 2), count, seed=1, **plain(model))
        check(f"the ids are {outcome.dtype}, want integers", "int" in outcome.dtype)
        outside = outcome.out[(outcome.out < 0) | (outcome.out >= vocab_size)]
        check(f"{outside[:1]} is none of 0 … {vocab_size - 1}", not outside.size)


@clause("GEN-DTYPE-KEPT")
def test_ids_keep_the_type_of_the_prompt(model: Subject, draw: Draw) -> None:
    instance = model.build().scatter(draw)
    for options in each_of([GREEDY, plain(model)]):
        outcome = instance.generate(prompt_ids(instance, draw), 2, seed=1, **options)
        check(f"the ids are {outcome.dtype}, the prompt is int64", outcome.dtype == "int64")


@clause("GEN-GREEDY-DET")
def test_greedy_text_does_not_depend_on_the_seed(model: Subject, draw: Draw) -> None:
    instance = model.build(vocab_size=17, block_size=12).scatter(draw, gain=0.5)
    prompts = prompt_ids(instance, draw, 6, 3)
    first = written(instance, prompts, 4, greedy=True)
    for seed in each_of([2, 3]):
        check_equal("greedy text after another seed", written(instance, prompts, 4, greedy=True, seed=seed), first)


@clause("GEN-GREEDY-ARGMAX")
def test_greedy_text_takes_the_most_probable_id(model: Subject, draw: Draw) -> None:
    told = story(author(model), draw, tokens=1, steps=1, keep=12)
    check_text("the id after a prompt of one id", told, continued(told))


@clause("GEN-LAST-POS")
def test_the_last_position_decides(model: Subject, draw: Draw) -> None:
    instance = author(model)
    for tokens in each_of([3, instance.sizes["block_size"], 2]):
        told = story(instance, draw, tokens=min(tokens, instance.sizes["block_size"]), steps=1, keep=12)
        check_text(f"the id after {told.prompts.shape[1]} ids", told, continued(told))


@clause("GEN-AUTOREGRESSIVE")
def test_each_new_id_is_read_before_the_next(model: Subject, draw: Draw) -> None:
    instance = author(model, block_size=8)
    for tokens, steps in each_of([(2, 6), (1, 3)]):
        told = story(instance, draw, tokens=tokens, steps=steps)
        check_text("the new ids", told, continued(told))


@clause("GEN-CROP")
def test_the_last_block_size_ids_are_the_context(model: Subject, draw: Draw) -> None:
    needs_block_size(model)
    instance = author(model, block_size=5)
    block_size = instance.sizes["block_size"]
    for tokens, steps in ((block_size + 3, 2), (max(block_size - 2, 1), 5), (block_size, 2)):
        told = story(instance, draw, tokens=tokens, steps=steps, keep=12)
        under(f"{told.prompts.shape[1]} ids before, block_size = {block_size}")
        check_text("the new ids", told, continued(told))


@clause("GEN-BATCH")
def test_a_prompt_is_continued_as_it_is_alone(model: Subject, draw: Draw) -> None:
    told = story(author(model), draw, tokens=3, steps=3, keep=4)
    together = continued(told)
    if len(together) < 2:
        raise NotApplicable("its limits allow one prompt at a time")
    for row in range(len(together)):
        under(f"row {row} of {len(together)}")
        alone = newest(told.instance, told.prompts[row : row + 1], told.count, greedy=True)
        check_equal("the text of the prompt alone", alone[0], together[row])


# -- sampling ----------------------------------------------------------------------------------------------------------


@clause("GEN-SAMPLES")
def test_sampling_draws(model: Subject, draw: Draw) -> None:
    instance = model.build(vocab_size=5, num_layers=1, block_size=24).scatter(draw, gain=0.05)
    prompts = prompt_ids(instance, draw, 8, 2)
    texts = [written(instance, prompts, 20, seed=seed, temperature=1.0)[:, prompts.shape[1] :] for seed in (1, 2)]
    probabilities = next_token_probabilities(read_logits(instance, prompts)).mean(axis=0)
    seen = np.unique(np.concatenate(texts))
    draws = sum(text.size for text in texts)
    check(f"one id only came in {draws} draws from nearly even probabilities", seen.size > 1)
    missing = [i for i in range(len(probabilities)) if probabilities[i] > 0.1 and i not in seen]
    check(
        f"id {missing[0] if missing else ''} never came in {draws} draws from nearly even probabilities",
        not missing,
        f"probabilities after the prompts: {' '.join(f'{p:.3f}' for p in probabilities)}",
    )


@clause("GEN-ROWS-INDEP")
def test_each_row_is_drawn_on_its_own(model: Subject, draw: Draw) -> None:
    law = chances(model, draw, even, gain=0.2)
    if rows(model, DRAWS) < 2:
        raise NotApplicable("its limits allow one prompt at a time")
    drawn = law.drawn(draw)
    check(f"all {DRAWS} rows have id {drawn[0]}", len(set(drawn.tolist())) > 1)
    check_independent("neighboring rows", drawn[0::2], drawn[1::2], tests=2)
    check_independent(f"rows {DRAWS // 2} apart", drawn[: DRAWS // 2], drawn[DRAWS // 2 :], tests=2)


@clause("GEN-TEMP")
def test_ids_are_drawn_from_the_softmax_over_temperature(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    for temperature in each_of([1.0, 0.5, 2.0]):
        drawn = law.drawn(draw, temperature=temperature)
        check_frequencies(
            f"ids at temperature {temperature}", drawn, law.expected(temperature=temperature), distributions=3
        )


@clause("GEN-TEMP-EACH")
def test_each_new_id_is_drawn_after_those_before_it(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    size = len(law.logits)
    pairs = sample(law.instance, law.prompt[None], DRAWS, draw, count=2, temperature=0.5)[0]
    after = np.concatenate([np.tile(law.prompt, (size, 1)), np.arange(size)[:, None]], axis=1)
    second = next_token_probabilities(read_logits(law.instance, after), temperature=0.5)
    joint = law.expected(temperature=0.5)[:, None] * second
    check_frequencies("two ids i, j, counted as i V + j", pairs[:, 0] * size + pairs[:, 1], joint.ravel())


@clause("GEN-TEMP-ZERO")
def test_temperature_zero_is_greedy(model: Subject, draw: Draw) -> None:
    instance = model.build(vocab_size=17, block_size=12).scatter(draw, gain=0.5)
    prompts = prompt_ids(instance, draw, 6, 3)
    try:
        got = written(instance, prompts, 3, temperature=0.0)
    except ImplementationFailure:
        declared = model.bound.config.generate
        if declared is None or declared.greedy is None:
            raise
        check("greedy text is asked for in another way, which conform.toml declares", holds=True)
        return
    check_equal("the text at temperature 0", got, written(instance, prompts, 3, greedy=True))


@clause("GEN-TEMP-NEGATIVE")
def test_a_negative_temperature_is_refused(model: Subject, draw: Draw) -> None:
    instance = model.build().scatter(draw)
    prompts = prompt_ids(instance, draw)
    for temperature in (-1.0, -0.01):
        check_refuses(
            f"temperature {temperature}", partial(instance.generate, prompts, 2, seed=1, temperature=temperature)
        )
    not_a_number = {"$name": "math:nan"}
    check_refuses("temperature NaN", partial(instance.generate, prompts, 2, seed=1, temperature=not_a_number))


@clause("GEN-TEMP-EXTREMES")
def test_extreme_temperatures_are_greedy_and_even(model: Subject, draw: Draw) -> None:
    told = story(author(model), draw, tokens=3, steps=3)
    under("temperature 1e-4")
    check_equal("the text", continued(told, greedy=False, temperature=1e-4), continued(told))
    under("temperature 1e4")
    law = chances(model, draw, gain=2.0)
    drawn = law.drawn(draw, temperature=1e4)
    check_frequencies("ids", drawn, law.expected(temperature=1e4))


@clause("GEN-SEED")
def test_the_seed_decides_the_sample(model: Subject, draw: Draw) -> None:
    instance = model.build(block_size=12).scatter(draw, gain=0.2)
    prompts = prompt_ids(instance, draw, 8, 2)
    one, again, other = (written(instance, prompts, 4, seed=seed, temperature=1.0) for seed in (5, 5, 6))
    check_equal("the text after the same seed", again, one)
    check("two seeds give the same text of 32 nearly evenly drawn ids", bool((one != other).any()))


@clause("GEN-FRESH")
def test_a_second_call_draws_anew(model: Subject, draw: Draw) -> None:
    if model.bound.generation is not None and "seed" in model.bound.generation.call.names():
        raise NotApplicable("its draws come from a key that the caller passes")
    instance = model.build(block_size=12).scatter(draw, gain=0.2)
    prompts = prompt_ids(instance, draw, 8, 2)
    one, other = (written(instance, prompts, 4, seed=seed, temperature=1.0) for seed in (5, None))
    check("two calls in succession give the same text of 32 nearly evenly drawn ids", bool((one != other).any()))


# -- top-k and top-p ---------------------------------------------------------------------------------------------------


@clause("GEN-TOPK-SUPPORT")
def test_only_the_k_most_probable_ids_come(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    for k in each_of([2, 3, 5]):
        drawn = law.drawn(draw, FEW, top_k=k)
        check_set(f"top-k of {k}", drawn, law.ranked()[:k], law.expected(top_k=k))


@clause("GEN-TOPK-RENORM")
def test_the_k_ids_keep_their_ratios(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    for k in each_of([2, 4]):
        drawn = law.drawn(draw, top_k=k)
        check_frequencies(f"ids with top-k of {k}", drawn, law.expected(top_k=k), distributions=2)


@clause("GEN-TOPK-ONE")
def test_top_k_of_one_is_greedy(model: Subject, draw: Draw) -> None:
    told = story(author(model), draw, tokens=3, steps=3)
    for seed in each_of([1, 2]):
        check_equal(
            "the text with top-k of 1",
            continued(told, greedy=False, temperature=1.0, top_k=1, seed=seed),
            continued(told),
        )


@clause("GEN-TOPK-LARGE")
def test_k_beyond_the_vocabulary_is_plain_sampling(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    for more in (0, 5):
        k = len(law.logits) + more
        under(f"k = {k}, V = {len(law.logits)}")
        drawn = law.drawn(draw, top_k=k)
        check_frequencies("ids", drawn, law.expected(), distributions=2)


@clause("GEN-TOPK-INVALID")
def test_k_below_one_is_refused(model: Subject, draw: Draw) -> None:
    instance = model.build().scatter(draw)
    prompts = prompt_ids(instance, draw)
    for k in (0, -1):
        check_refuses(f"top-k of {k}", partial(instance.generate, prompts, 2, seed=1, temperature=1.0, top_k=k))


@clause("GEN-TOPK-ROWS")
def test_each_row_has_its_own_k_ids(model: Subject, draw: Draw) -> None:
    instance, prompts, logits = unlike(model, draw)
    for order in ([0, 1], [1, 0]):
        drawn = sample(instance, prompts[order], FEW, draw, top_k=3)
        for row, which in enumerate(order):
            under(f"row {row} of two kinds of prompts, top-k of 3")
            wanted = np.argsort(-logits[which], kind="stable")[:3]
            check_set("ids", drawn[row, :, 0], wanted.tolist(), next_token_probabilities(logits[which], top_k=3))


@clause("GEN-TOPP-UNSORT")
def test_kept_ranks_become_ids_of_the_vocabulary(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    for count, p in with_p(law, (2, 3)):
        del count
        best, drawn = int(law.ranked()[0]), law.drawn(draw, draws=500, top_p=p)
        check(
            f"id {best}, the most probable, never came in 500 draws",
            bool((drawn == best).any()),
            f"drawn: {sorted(set(drawn.tolist()))}",
        )


@clause("GEN-TOPP-SUPPORT")
def test_the_smallest_set_that_reaches_p_comes(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    for count, p in with_p(law, (1, 2, 3, 4)):
        drawn = law.drawn(draw, FEW, top_p=p)
        check_set(f"top-p of {p:.4g}", drawn, law.ranked()[:count], law.expected(top_p=p))


@clause("GEN-TOPP-RENORM")
def test_the_ids_that_reach_p_keep_their_ratios(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    for _, p in with_p(law, (2, 4)):
        drawn = law.drawn(draw, top_p=p)
        check_frequencies(f"ids with top-p of {p:.4g}", drawn, law.expected(top_p=p), distributions=2)


@clause("GEN-TOPP-KEEP-ONE")
def test_a_tiny_p_leaves_the_most_probable_id(model: Subject, draw: Draw) -> None:
    told = story(author(model), draw, tokens=3, steps=3)
    for p in each_of([1e-9, 1e-3]):
        check_equal("the text", continued(told, greedy=False, temperature=1.0, top_p=p), continued(told))


@clause("GEN-TOPP-ONE")
def test_p_of_one_is_plain_sampling(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    check_frequencies("ids with top-p of 1", law.drawn(draw, top_p=1.0), law.expected())


@clause("GEN-TOPP-ROWS")
def test_each_row_has_its_own_set(model: Subject, draw: Draw) -> None:
    instance, prompts, logits = unlike(model, draw)
    p = p_between(logits)
    for order in ([0, 1], [1, 0]):
        drawn = sample(instance, prompts[order], FEW, draw, top_p=p)
        for row, which in enumerate(order):
            law = next_token_probabilities(logits[which], top_p=p)
            under(f"row {row} of two kinds of prompts, top-p of {p:.4g}")
            check_set("ids", drawn[row, :, 0], np.flatnonzero(law).tolist(), law)


@clause("GEN-FILTER-ORDER")
def test_temperature_comes_before_top_p(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    for temperature in (0.5, 2.0):
        for count, p in with_p(law, (2, 3), temperature=temperature):
            drawn = law.drawn(draw, FEW, temperature=temperature, top_p=p)
            wanted = law.ranked()[:count]
            check_set(
                f"temperature {temperature}, top-p of {p:.4g}",
                drawn,
                wanted,
                law.expected(temperature=temperature, top_p=p),
            )


@clause("GEN-FILTER-BOTH")
def test_top_k_comes_before_top_p(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    for k, count in each_of([(2, 4), (4, 2), (3, 2), (5, 3)]):
        p = halfway(law.expected(top_k=k), count) if count < k else 0.99
        drawn = law.drawn(draw, FEW, top_k=k, top_p=p)
        expected = law.expected(top_k=k, top_p=p)
        check_set(f"top-k of {k}, top-p of {p:.4g}", drawn, law.ranked()[: int((expected > 0).sum())], expected)


# -- what generation leaves behind -------------------------------------------------------------------------------------


@clause("GEN-EVAL-MODE")
def test_generation_runs_without_dropout(model: Subject, draw: Draw) -> None:
    told = story(author(model, dropout=0.5), draw, tokens=3, steps=3)
    want = continued(told, mode="eval")
    for seed in each_of([1, 2]):
        check_equal("greedy text from training mode, dropout 0.5", continued(told, mode="train", seed=seed), want)


@clause("GEN-MODE-RESTORE")
def test_the_mode_afterwards_is_the_mode_before(model: Subject, draw: Draw) -> None:
    instance = model.build(dropout=0.1).scatter(draw)
    prompts = prompt_ids(instance, draw)
    for mode, flag in (("train", True), ("eval", False)):
        for options in each_of([GREEDY, plain(model)]):
            check_modes(instance.generate(prompts, 2, mode=mode, seed=1, **options), mode, training=flag)


@clause("GEN-MODE-RESTORE-ERROR")
def test_the_mode_is_restored_after_an_error(model: Subject, draw: Draw) -> None:
    instance = model.build().scatter(draw)
    prompts = prompt_ids(instance, draw)
    wrong = prompts.copy()
    wrong[-1, -1] = instance.sizes["vocab_size"] + 3
    for mode, flag in (("train", True), ("eval", False)):
        try:
            instance.generate(wrong, 2, mode=mode, seed=1, **plain(model))
        except ImplementationFailure as refused:
            if refused.kind != "exception":
                raise
            check_modes(
                instance.call(prompts, mode=None, watch=True),
                f"{mode}, an id outside the vocabulary refused",
                training=flag,
            )
            continue
        raise NotApplicable("it raises nothing for an id outside the vocabulary")


def check_modes(outcome: Outcome, mode: str, *, training: bool) -> None:
    """Check the training flags of all modules after a call."""
    under(f"mode before: {mode}")
    found = " and ".join("training" if flag else "eval" for flag in outcome.modes)
    check(
        f"afterwards the modules are in {found} mode, want {'training' if training else 'eval'}",
        outcome.modes == (training,),
    )


@clause("GEN-PURE")
def test_parameters_and_prompt_are_left_as_they_were(model: Subject, draw: Draw) -> None:
    instance = model.build(block_size=11).scatter(draw, gain=2.0)
    names = [p["name"] for p in instance.trainable]
    before = instance.read_raw()
    for tokens, options in each_of([(3, GREEDY), (5, plain(model))]):
        prompts = prompt_ids(instance, draw, 3, tokens)
        outcome = instance.generate(prompts.copy(), 4, mode="train", seed=1, **options)
        check_equal("the prompt after the call", outcome.arguments["ids"], model.bound.to_theirs(prompts))
        after = instance.read_raw()
        for name in names:
            check_equal(f"{name} after the call", after[name], before[name])


@clause("GEN-GRAD-AFTER")
def test_gradients_flow_after_generation(model: Subject, draw: Draw) -> None:
    instance = model.build().scatter(draw)
    prompts = prompt_ids(instance, draw)
    instance.generate(prompts, 2, seed=1, **plain(model))
    cotangent = draw.values(*prompts.shape, instance.sizes["vocab_size"])
    found = instance.vjp(prompts, cotangent=cotangent, wrt=(), parameters=True).parameters
    lost = [name for name, gradient in found.items() if gradient is None]
    check(f"{', '.join(lost)} gets no gradient any more", not lost)


@clause("GEN-EMPTY-PROMPT")
def test_an_empty_prompt_is_refused_or_continued(model: Subject, draw: Draw) -> None:
    instance = model.build().scatter(draw)
    size, batch = instance.sizes["vocab_size"], rows(model, 2)
    try:
        out = instance.generate(draw.ids(size, batch, 0), 3, seed=1, **plain(model)).out
    except ImplementationFailure as refused:
        if refused.kind != "exception":
            raise
        check("an empty prompt is refused", holds=True)
        return
    check(
        f"3 ids after empty prompts have shape {out.shape}, want ({batch}, 3), or ({batch}, 4) with a first id",
        out.shape in {(batch, 3), (batch, 4)},
    )
    check("an id is outside the vocabulary", bool(((out >= 0) & (out < size)).all()))
