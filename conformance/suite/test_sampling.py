"""Clauses of spec/sampling.md.

Expected probabilities come from the implementation's own logits, called without `generate`. Prompts are chosen so that
mistakes show: probabilities that are far enough apart to tell which id belongs to a set, and close enough for a low
temperature to leave a choice.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import (
    NotApplicable,
    check,
    check_equal,
    check_refuses,
    each_of,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.statistics import (
    check_frequencies,
    check_independent,
    check_likelihood,
    shares,
)
from conformkit.conformance.binding.arguments import Expression
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.generation_at_sizes import check_sampled_at_sizes
from conformkit.conformance.evidence.greedy_text import author, check_text, continued, prompt_ids, story, written
from conformkit.conformance.evidence.logits import logits_of_rows, rows
from conformkit.conformance.evidence.sampled_text import (
    DRAWS,
    FEW,
    Chances,
    chances,
    check_rows,
    check_set,
    close,
    even,
    halfway,
    many,
    p_between,
    sample,
    unlike,
    with_p,
)
from conformkit.conformance.subject.component import Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array
from conformkit.spec.generation import next_token_probabilities


@clause("GEN-SAMPLES")
def test_sampling_draws(model: Subject, draw: Draw) -> None:
    instance = model.build(vocab_size=5, num_layers=1, block_size=24).scatter(draw, gain=0.05)
    prompts = prompt_ids(instance, draw, 150, 2)
    count = -(-300 // len(prompts))
    text = written(instance, prompts, count, temperature=1.0)[:, prompts.shape[1] :]
    probabilities = next_token_probabilities(logits_of_rows(instance, prompts)[:, -1]).mean(axis=0)
    other = written(instance, prompts, count, temperature=1.0, seed=2)[:, prompts.shape[1] :]
    seen, draws = np.unique(text), text.size
    rows = "all rows get the same ids" if (text == text[0]).all() else "rows get different ids"
    calls = "another seed gives the same ids" if np.array_equal(text, other) else "another seed gives other ids"
    sentence = f"{rows}, and {calls}"
    check(f"one id only came in {draws} draws from nearly even probabilities", seen.size > 1, sentence, sampled=True)
    missing = [i for i in range(len(probabilities)) if probabilities[i] > 0.1 and i not in seen]
    check(
        f"id {missing[0] if missing else ''} was never sampled in {draws} draws from nearly even probabilities",
        not missing,
        f"probabilities after the prompts: {' '.join(f'{p:.3f}' for p in probabilities)}",
        sentence,
        sampled=True,
    )


@clause("GEN-ROWS-INDEP")
def test_each_row_is_drawn_on_its_own(model: Subject, draw: Draw) -> None:
    law = chances(model, draw, even, gain=0.2, enough=-1.0)
    if rows(model, DRAWS) < 2:
        raise NotApplicable.from_sizes("its limits allow one prompt at a time")
    drawn = law.drawn(draw)
    check(f"all {DRAWS} rows have id {drawn[0]}", len(set(drawn.tolist())) > 1)
    check_independent("neighboring rows", drawn[0::2], drawn[1::2], tests=2)
    check_independent(f"rows {DRAWS // 2} apart", drawn[: DRAWS // 2], drawn[DRAWS // 2 :], tests=2)


@clause("GEN-TEMP")
def test_ids_are_drawn_from_the_softmax_over_temperature(model: Subject, draw: Draw) -> None:
    apart, near = chances(model, draw), chances(model, draw, close, enough=-0.1)
    scaled = ((apart, 0.5), (apart, 5.0), (near, 0.25), (near, 0.1), (near, 0.05))
    for law, temperature in ((apart, 1.0), *(scaled if model.offers("temperature") else ())):
        under(f"temperature {temperature}")
        drawn = law.drawn(draw, temperature=temperature)
        check_frequencies("ids", drawn, law.expected(temperature=temperature), distributions=6)


@clause("GEN-TEMP-DEFAULT")
def test_the_temperature_is_one_unless_said_otherwise(model: Subject, draw: Draw) -> None:
    generation, declared = model.bound.generation, model.bound.config.generate
    if declared is not None and declared.call is not None:
        raise NotApplicable("conform.toml says how it is called, temperature and all")
    if generation is None or Expression("temperature") in generation.call.positional:
        raise NotApplicable("its temperature is passed by position")
    law = chances(model, draw)
    check_frequencies("ids without a temperature", law.drawn(draw, temperature=None), law.expected())


@clause("GEN-TEMP-EACH")
def test_each_new_id_is_drawn_after_those_before_it(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    size, temperature = len(law.logits), 0.5 if model.offers("temperature") else 1.0
    new = sample(law.instance, law.prompt[None], DRAWS, draw, count=3, temperature=temperature)[0]  # (N, 3)
    second = _after(law, np.arange(size)[:, None], temperature)
    joint = law.expected(temperature=temperature)[:, None] * second
    check_frequencies("two ids i, j, counted as i V + j", new[:, 0] * size + new[:, 1], joint.ravel())
    known, which = np.unique(new[:, :2], axis=0, return_inverse=True)
    third = _after(law, known, temperature)[which.ravel()]
    check_likelihood("the second and the third id", np.concatenate([second[new[:, 0]], third]), new[:, 1:].T.ravel())


def _after(law: Chances, new: Array, temperature: float) -> Array:
    """Return the probabilities (N, V) of the id after each continuation (N, n) of the prompt."""
    texts = np.concatenate([np.tile(law.prompt, (len(new), 1)), new], axis=1)
    texts = texts[:, -int(law.instance.sizes["block_size"]) :]
    return next_token_probabilities(logits_of_rows(law.instance, texts)[:, -1], temperature=temperature)


@clause("GEN-TEMP-ZERO")
def test_temperature_zero_is_greedy(model: Subject, draw: Draw) -> None:
    instance = model.build(vocab_size=17, block_size=12).scatter(draw, gain=0.5)
    prompts = prompt_ids(instance, draw, 6, 3)
    try:
        got = written(instance, prompts, 3, temperature=0.0)
    except ImplementationFailure:
        generation = model.bound.generation
        if generation is None or not generation.own_greedy:
            raise
        check("greedy text is asked for in another way", holds=True)
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
    example = story(author(model), draw, tokens=3, steps=2)
    under("temperature 1e-4")
    check_text("the text", example, continued(example, greedy=False, temperature=1e-4))
    under("temperature 1e4")
    law = chances(model, draw, gain=2.0)
    drawn = law.drawn(draw, temperature=1e4)
    check_frequencies("ids", drawn, law.expected(temperature=1e4))


@clause("GEN-STEPS-INDEP")
def test_each_step_draws_on_its_own(model: Subject, draw: Draw) -> None:
    instance = model.build(vocab_size=7, num_layers=1, block_size=24).scatter(draw, gain=0.05)
    prompts = prompt_ids(instance, draw, 24, 2)
    text = written(instance, prompts, 20, temperature=1.0)[:, prompts.shape[1] :]
    again = int((text[:, 1:] == text[:, :-1]).sum())
    pairs = text[:, 1:].size
    label = f"{again} of {pairs} ids repeat the one before, drawn nearly evenly from {instance.sizes['vocab_size']}"
    check(label, again < 0.7 * pairs)


@clause("GEN-SEED")
def test_the_seed_decides_the_sample(model: Subject, draw: Draw) -> None:
    instance = model.build(block_size=12).scatter(draw, gain=0.2)
    prompts = prompt_ids(instance, draw, 8, 2)
    one, again, other = (written(instance, prompts, 2, seed=seed, temperature=1.0) for seed in (5, 5, 6))
    check_equal("the text after the same seed", again, one)
    check(f"two seeds give the same text of {one.size} ids drawn nearly evenly", bool((one != other).any()))


@clause("GEN-FRESH")
def test_a_second_call_draws_anew(model: Subject, draw: Draw) -> None:
    if model.bound.generation is not None and "seed" in model.bound.generation.call.names():
        raise NotApplicable("its draws come from a key that the caller passes")
    instance = model.build(block_size=12).scatter(draw, gain=0.2)
    prompts = prompt_ids(instance, draw, 8, 2)
    one, other = (written(instance, prompts, 2, seed=seed, temperature=1.0) for seed in (5, None))
    check(
        f"two calls in succession give the same text of {one.size} ids drawn nearly evenly", bool((one != other).any())
    )


# -- top-k and top-p ---------------------------------------------------------------------------------------------------


@clause("GEN-TOPK-SUPPORT")
def test_only_the_k_most_probable_ids_come(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    for k in each_of("k", [5, 2]):
        drawn = law.drawn(draw, FEW, top_k=k)
        check_set(f"top-k of {k}", drawn, law.ranked()[:k], law.expected(top_k=k))


def _heat(model: Subject, temperature: float) -> float:
    """Return a temperature, or 1 where none can be asked for."""
    return temperature if model.offers("temperature") else 1.0


@clause("GEN-TOPK-RENORM")
def test_the_k_ids_keep_their_ratios(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    for k, temperature in ((3, 1.0), (4, _heat(model, 2.0))):
        under(f"temperature {temperature}, top-k of {k}")
        options: dict[str, Any] = {"temperature": temperature, "top_k": k}
        check_frequencies("ids", law.drawn(draw, **options), law.expected(**options), distributions=2)


@clause("GEN-TOPK-ONE")
def test_top_k_of_one_is_greedy(model: Subject, draw: Draw) -> None:
    example = story(author(model), draw, tokens=3, steps=2)
    for temperature in each_of("temperature", [1.0, 3.0]):
        check_text(
            "the text with top-k of 1", example, continued(example, greedy=False, temperature=temperature, top_k=1)
        )


@clause("GEN-TOPK-LARGE")
def test_k_beyond_the_vocabulary_is_plain_sampling(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    for more in (0, 5):
        k = len(law.logits) + more
        under(f"k = {k}, V = {len(law.logits)}")
        try:
            drawn = law.drawn(draw, top_k=k)
        except ImplementationFailure as refusal:
            if not more or refusal.kind != "exception":
                raise
            continue  # which GEN-TOPK-CLAMP mentions
        check_frequencies("ids", drawn, law.expected(), distributions=2)


@clause("GEN-TOPK-CLAMP")
def test_k_beyond_the_vocabulary_is_accepted(model: Subject, draw: Draw) -> None:
    instance = model.build(vocab_size=11).scatter(draw)
    k = instance.sizes["vocab_size"] + 39
    written(instance, prompt_ids(instance, draw), 2, temperature=1.0, top_k=k)


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
    for _, p in with_p(law, (3, 2, 1)):
        best, drawn = int(law.ranked()[0]), law.drawn(draw, draws=500, top_p=p)
        came, times = np.unique(drawn, return_counts=True)
        check(
            f"id {best}, the most probable, was never sampled in 500 draws",
            bool((drawn == best).any()),
            f"drawn: {came.tolist()}, by their shares {shares(times / times.sum())}",
            sampled=True,
        )


@clause("GEN-TOPP-SUPPORT")
def test_the_smallest_set_that_reaches_p_comes(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    for count, p in with_p(law, (1, 2, 4, many(law.expected()))):
        drawn = law.drawn(draw, FEW, top_p=p)
        check_set(f"top-p of {p:.4g}", drawn, law.ranked()[:count], law.expected(top_p=p))


@clause("GEN-TOPP-RENORM")
def test_the_ids_that_reach_p_keep_their_ratios(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    for _, p in with_p(law, (3,)):
        drawn = law.drawn(draw, top_p=p)
        check_frequencies(f"ids with top-p of {p:.4g}", drawn, law.expected(top_p=p), distributions=2)
    heat = _heat(model, 0.5)
    best, p = law.ranked()[:2], halfway(law.expected(temperature=heat), 2)
    under(f"temperature {heat}, top-p of {p:.4g}, of the two most probable ids, which are kept in any order of the two")
    drawn, both = law.drawn(draw, temperature=heat, top_p=p), law.expected(temperature=heat)[best]
    places = np.array([best.index(i) for i in drawn.tolist() if i in best])
    check_frequencies("ranks", places, both / both.sum(), distributions=2)


@clause("GEN-TOPP-KEEP-ONE")
def test_a_tiny_p_leaves_the_most_probable_id(model: Subject, draw: Draw) -> None:
    example = story(author(model), draw, tokens=3, steps=2)
    for p in each_of("p", [1e-4 if model.precision == "float16" else 1e-9, 1e-3]):  # 1e-9 is 0 there
        check_text("the text", example, continued(example, greedy=False, temperature=1.0, top_p=p))


@clause("GEN-TOPP-ONE")
def test_p_of_one_is_plain_sampling(model: Subject, draw: Draw) -> None:
    for law in (chances(model, draw), chances(model, draw, even, gain=0.2, enough=-1.0)):
        under(f"probabilities from {law.expected().min():.2g} to {law.expected().max():.2g}")
        check_frequencies("ids with top-p of 1", law.drawn(draw, top_p=1.0), law.expected(), distributions=2)


@clause("GEN-TOPP-ROWS")
def test_each_row_has_its_own_set(model: Subject, draw: Draw) -> None:
    rows = unlike(model, draw)
    p = p_between(rows[-1], model.tolerance() / 2 if model.half else 1e-3)
    check_rows(rows, draw, f"top-p of {p:.4g}", top_p=p)


@clause("GEN-FILTER-ORDER")
def test_temperature_comes_before_top_p(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    for temperature in (0.5, 2.0):
        filtered = 1.0 if model.variant.temperature_last else temperature
        for count, p in with_p(law, (3,), temperature=filtered):
            drawn = law.drawn(draw, FEW, temperature=temperature, top_p=p)
            wanted = law.ranked()[:count]
            check_set(
                f"temperature {temperature}, top-p of {p:.4g}",
                drawn,
                wanted,
                law.expected(temperature=temperature, top_p=p),
            )


@clause("GEN-FILTER-EITHER")
def test_given_both_each_filter_holds(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    for k, count in ((2, 4), (4, 2)):
        p = halfway(law.expected(), count)
        under(f"top-k of {k}, top-p of {p:.4g}, which the {count} most probable ids reach")
        drawn, wanted = law.drawn(draw, FEW, top_k=k, top_p=p), law.ranked()[: min(k, count)]
        outside = sorted(set(drawn.tolist()) - set(wanted))
        check(f"ids {outside} were sampled, which one of the two excludes", not outside, f"expected none but {wanted}")
        check(
            f"id {wanted[0]}, the most probable, was never sampled in {FEW} draws",
            bool((drawn == wanted[0]).any()),
            sampled=True,
        )


@clause("GEN-FILTER-BOTH")
def test_top_k_comes_before_top_p(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    for k, count in each_of("k, count", [(2, 4), (4, 2), (5, 3)]):
        p = halfway(law.expected(top_k=k), count) if count < k else 0.99
        drawn = law.drawn(draw, FEW, top_k=k, top_p=p)
        expected = law.expected(top_k=k, top_p=p)
        check_set(f"top-k of {k}, top-p of {p:.4g}", drawn, law.ranked()[: int((expected > 0).sum())], expected)


@clause("GEN-SAMPLE-SIZES")
def test_ids_of_every_rank_are_sampled_with_their_probabilities(model: Subject, draw: Draw) -> None:
    check_sampled_at_sizes(model, draw, after="GEN-TEMP")
