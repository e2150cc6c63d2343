"""Clauses of spec/generation.md.

Expected continuations and probabilities come from the implementation's own logits, called without `generate`: a wrong
model is the business of model.md. Prompts are chosen so that mistakes show: greedy text that varies, arg maxes that
rounding can't flip, probabilities that are far enough apart to tell which id belongs to a set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from conformkit.conformance.binding.sizes import nearest_allowed
from conformkit.conformance.checks import NotApplicable, check, check_equal, check_refuses, check_shape, each_of, under
from conformkit.conformance.draws import Draw
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.registry import clause
from conformkit.conformance.statistics import check_frequencies, hits_needed
from conformkit.conformance.subject import Instance, Outcome, Subject
from conformkit.spec.generation import continue_greedily, next_token_probabilities

Array = npt.NDArray[Any]

DRAWS = 2000
"""Ids drawn for one distribution: an id of probability 0.02 is sure to come, a share of 0.3 is known to 0.07."""
FEW = 1000
"""Ids drawn to see which ones come at all: one of probability 0.02 misses all of them less than once in 1e8."""
RARE = 0.02
MARGIN = 3e-3
"""How far the best logit is ahead, relative to all logits' spread: hundreds of times float32's rounding."""


def rows(subject: Subject, wanted: int) -> int:
    """Return how many prompts may be passed at once, near the wanted number."""
    return nearest_allowed("batch", wanted, subject.bound.limits)


def prompt_ids(instance: Instance, draw: Draw, batch: int = 2, tokens: int = 3) -> Array:
    """Draw prompts (B, T)."""
    subject = instance.subject
    return draw.ids(instance.sizes["vocab_size"], rows(subject, batch), subject.tokens(tokens))


# -- greedy text that varies -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Story:
    """Prompts (B, T) whose greedy continuation varies, and that continuation (B, T + n) by the model's own logits."""

    instance: Instance
    prompts: Array
    text: Array


def tell(instance: Instance, prompts: Array, steps: int) -> tuple[Array, Array]:
    """Continue greedily by the model's own logits; return ids (B, T + n) and how narrow each row's choices were (B,)."""
    block_size, narrowest = instance.sizes["block_size"], np.full(len(prompts), np.inf)

    def logits(context: Array) -> Array:
        out = np.concatenate([instance(part) for part in np.array_split(context, parts(instance.subject, len(context)))])
        top = np.sort(out[:, -1].astype(np.float64), axis=-1)
        margin = (top[:, -1] - top[:, -2]) / np.maximum(top[:, -1] - top[:, 0], 1e-30)
        np.minimum(narrowest, margin, out=narrowest)
        return np.asarray(out)

    return continue_greedily(logits, prompts, steps, block_size), narrowest


def parts(subject: Subject, batch: int) -> int:
    """Return in how many calls this many rows are passed."""
    return -(-batch // rows(subject, batch))


def author(model: Subject, **wanted: Any) -> Instance:
    """Build a model to tell stories with."""
    return model.build(**{"vocab_size": 23, "num_layers": 2, "block_size": 6, **wanted})


def story(instance: Instance, draw: Draw, *, tokens: int, steps: int, keep: int = 8) -> Story:
    """Draw weights and prompts until greedy text varies, and keep the rows that vary most and have no narrow choice."""
    length = instance.subject.tokens(tokens)
    keep = rows(instance.subject, keep)
    for gain in (2.5, 1.5, 4.0, 2.0):
        instance.scatter(draw, gain=gain)
        prompts = draw.ids(instance.sizes["vocab_size"], 32, length)
        text, narrowest = tell(instance, prompts, steps)
        new = text[:, length:]
        variety = np.array([len(set(row)) for row in new.tolist()])
        chosen = np.lexsort((-variety, narrowest <= MARGIN))[:keep]
        chosen = chosen[narrowest[chosen] > MARGIN]
        if len(chosen) == keep and (keep < 4 or len(set(new[chosen].ravel().tolist())) >= 4):
            break
    if not len(chosen):
        raise NotApplicable("its logits are too even for any greedy text to be certain")
    return Story(instance, prompts[chosen], text[chosen])


def continued(told: Story, **options: Any) -> Array:
    """Let the implementation continue the prompts of a story greedily."""
    count = told.text.shape[1] - told.prompts.shape[1]
    return told.instance.generate(told.prompts, count, **{"greedy": True, "seed": 1, **options}).out


def check_text(label: str, told: Story, got: Array) -> None:
    """Check the new ids, the last ones of each row."""
    count = told.text.shape[1] - told.prompts.shape[1]
    check_equal(label, got[:, -count:], told.text[:, -count:])


def needs_block_size(model: Subject) -> None:
    """Raise NotApplicable unless the constructor knows a block size."""
    if "block_size" not in model.bound.construct.names():
        raise NotApplicable("its constructor takes no block_size")


@clause("GEN-LENGTH")
def test_as_many_ids_are_added_as_asked_for(model: Subject, draw: Draw) -> None:
    instance = model.build(block_size=11).scatter(draw)
    greedy, sampled = {"greedy": True}, {"temperature": 1.0}
    for batch, tokens, count, options in each_of([(1, 1, 1, sampled), (2, 3, 5, greedy), (2, 3, 5, sampled), (3, 4, 2, greedy)]):
        prompts = prompt_ids(instance, draw, batch, tokens)
        out = instance.generate(prompts, count, seed=1, **options).out
        check_shape(f"{count} new ids after {prompts.shape[1]}", out, (len(prompts), prompts.shape[1] + count))


@clause("GEN-ZERO")
def test_no_new_ids_leave_the_prompt(model: Subject, draw: Draw) -> None:
    instance = model.build().scatter(draw)
    for batch, tokens in each_of([(2, 4), (1, 1)]):
        prompts = prompt_ids(instance, draw, batch, tokens)
        check_equal("the result of 0 new ids", instance.generate(prompts, 0, greedy=True, seed=1).out, prompts)


@clause("GEN-PREFIX")
def test_the_prompt_comes_back_in_front(model: Subject, draw: Draw) -> None:
    instance = model.build(block_size=5).scatter(draw)
    greedy, sampled, long = {"greedy": True}, {"temperature": 1.0}, instance.sizes["block_size"] + 4
    for tokens, options in each_of([(1, greedy), (3, sampled), (long, greedy), (long, sampled)]):
        prompts = prompt_ids(instance, draw, 3, tokens)
        out = instance.generate(prompts, 3, seed=1, **options).out
        check_shape("prompt and 3 new ids", out, (len(prompts), prompts.shape[1] + 3))
        check_equal("the prompt in front", out[:, : prompts.shape[1]], prompts)


@clause("GEN-RANGE")
def test_new_ids_are_ids_of_the_vocabulary(model: Subject, draw: Draw) -> None:
    instance = model.build(vocab_size=7).scatter(draw, gain=0.3)
    vocab_size = instance.sizes["vocab_size"]
    for options in each_of([{"temperature": 1.0}, {"greedy": True}]):
        outcome = instance.generate(prompt_ids(instance, draw, 200, 2), 1, seed=1, **options)
        check(f"the ids are {outcome.dtype}, want integers", "int" in outcome.dtype)
        outside = outcome.out[(outcome.out < 0) | (outcome.out >= vocab_size)]
        check(f"{outside[:1]} is none of 0 … {vocab_size - 1}", not outside.size)


@clause("GEN-DTYPE-KEPT")
def test_ids_keep_the_type_of_the_prompt(model: Subject, draw: Draw) -> None:
    instance = model.build().scatter(draw)
    outcome = instance.generate(prompt_ids(instance, draw), 2, greedy=True, seed=1)
    check(f"the ids are {outcome.dtype}, the prompt is int64", outcome.dtype == "int64")


@clause("GEN-GREEDY-DET")
def test_greedy_text_does_not_depend_on_the_seed(model: Subject, draw: Draw) -> None:
    instance = model.build(vocab_size=17, block_size=12).scatter(draw, gain=0.5)
    prompts = prompt_ids(instance, draw, 6, 3)
    first = instance.generate(prompts, 4, greedy=True, seed=1).out
    for seed in each_of([2, 3]):
        check_equal("greedy text after another seed", instance.generate(prompts, 4, greedy=True, seed=seed).out, first)


@clause("GEN-GREEDY-ARGMAX")
def test_greedy_text_takes_the_most_probable_id(model: Subject, draw: Draw) -> None:
    for layers in each_of([1, 2]):
        told = story(author(model, num_layers=layers), draw, tokens=1, steps=1, keep=12)
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
        count = told.text.shape[1] - told.prompts.shape[1]
        alone = told.instance.generate(told.prompts[row : row + 1], count, greedy=True, seed=1).out
        check_equal("the text of the prompt alone", alone[0], together[row])


# -- sampling ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chances:
    """One prompt (T,) and the logits (V,) of the id after it."""

    instance: Instance
    prompt: Array
    logits: Array

    def expected(self, **options: Any) -> Array:
        """Return the probabilities of the definition."""
        return next_token_probabilities(self.logits, **options)

    def ranked(self, **options: Any) -> Array:
        """Return the ids from the most to the least probable."""
        return np.argsort(-self.expected(**options), kind="stable")

    def drawn(self, draw: Draw, draws: int = DRAWS, **options: Any) -> Array:
        """Let the implementation draw the next id many times."""
        return sample(self.instance, self.prompt[None], draws, draw.integer(0, 1 << 30), **options)[0]


def sample(instance: Instance, prompts: Array, draws: int, seed: int, count: int = 1, **options: Any) -> Array:
    """Return (R, draws) new ids after each of the prompts (R, T), or (R, draws, count); one call where limits allow it.

    The prompts take turns in the batch, so that neighbors differ.
    """
    batch = np.tile(prompts, (draws, 1))
    pieces = np.array_split(batch, parts(instance.subject, len(batch)))
    asked = {"temperature": 1.0, **options}
    outs = [instance.generate(piece, count, seed=seed + i, **asked).out[:, -count:] for i, piece in enumerate(pieces)]
    new = np.concatenate(outs).reshape(draws, len(prompts), count).swapaxes(0, 1)
    return np.asarray(new if count > 1 else new[..., 0])


def candidates(model: Subject, draw: Draw, gain: float) -> tuple[Instance, Array, Array]:
    """Return a model, prompts as short as may be, and the logits after each of them."""
    instance = model.build(vocab_size=19, num_layers=1, block_size=6).scatter(draw, gain=gain)
    size, length = instance.sizes["vocab_size"], model.tokens(1)
    prompts = draw.ids(size, 60, length) if length > 1 else np.arange(size)[:, None]
    pieces = np.array_split(prompts, parts(model, len(prompts)))
    logits = np.concatenate([instance(piece[:, -instance.sizes["block_size"] :])[:, -1] for piece in pieces])
    return instance, prompts, logits.astype(np.float64)


def separated(logits: Array, ranks: int = 5) -> Array:
    """Score logits (…, V): how far the first probabilities are apart, if none is overwhelming and none is rare.

    The most probable ids are wanted late in the vocabulary, where ranks and ids are different things.
    """
    order = np.argsort(-logits, axis=-1, kind="stable")
    ranked = -np.sort(-next_token_probabilities(logits), axis=-1)[..., : ranks + 1]
    gaps = np.log(np.maximum(ranked[..., :-1], 1e-30) / np.maximum(ranked[..., 1:], 1e-30)).min(axis=-1)
    even = (ranked[..., 0] < 0.6) & (ranked[..., min(ranks, ranked.shape[-1]) - 1] > 1.5 * RARE)
    late = (order[..., :2] >= min(3, logits.shape[-1] - 2)).all(axis=-1)
    return np.asarray(gaps + 10.0 * even + 5.0 * late)


def chances(model: Subject, draw: Draw, score: Callable[[Array], Array] = separated, gain: float = 1.4) -> Chances:
    """Choose, of many prompts, the one whose next id suits the clause best."""
    instance, prompts, logits = candidates(model, draw, gain)
    best = int(np.argmax(score(logits)))
    return Chances(instance, prompts[best], logits[best])


def flat(logits: Array) -> Array:
    """Score logits by how even they are."""
    return -np.asarray(next_token_probabilities(logits).max(axis=-1))


def check_set(label: str, drawn: Array, wanted: Sequence[int], probabilities: Array) -> None:
    """Check that exactly the wanted ids were drawn; one too rare to be sure of may be missing."""
    counts = np.bincount(drawn, minlength=len(probabilities))
    outside = [int(i) for i in np.flatnonzero(counts) if i not in wanted]
    missing = [int(i) for i in wanted if not counts[i] and drawn.size >= hits_needed(float(probabilities[i]) or 1e-9)]
    details = (f"drawn: {_names(np.flatnonzero(counts))}; wanted: {_names(wanted)}, the most probable first",)
    check(f"{label}: id {outside[0] if outside else ''} came {counts[outside[:1]].sum()} times, want never", not outside, *details)
    check(f"{label}: id {missing[0] if missing else ''} never came in {drawn.size} draws", not missing, *details)


def _names(ids: Sequence[int] | Array) -> str:
    return ", ".join(str(int(i)) for i in ids) or "none"


@clause("GEN-SAMPLES")
def test_sampling_draws(model: Subject, draw: Draw) -> None:
    instance = model.build(vocab_size=5, num_layers=1, block_size=24).scatter(draw, gain=0.05)
    prompts = prompt_ids(instance, draw, 8, 2)
    texts = [instance.generate(prompts, 20, seed=seed, temperature=1.0).out[:, prompts.shape[1] :] for seed in (1, 2)]
    probabilities = next_token_probabilities(instance(prompts)[:, -1].astype(np.float64)).mean(axis=0)
    seen = np.unique(np.concatenate(texts))
    check(f"one id only came in {sum(t.size for t in texts)} draws from nearly even probabilities", seen.size > 1)
    missing = [i for i in range(len(probabilities)) if probabilities[i] > 0.1 and i not in seen]
    check(
        f"id {missing[0] if missing else ''} never came in {sum(t.size for t in texts)} draws from nearly even probabilities",
        not missing,
        f"probabilities after the prompts: {' '.join(f'{p:.3f}' for p in probabilities)}",
    )


@clause("GEN-ROWS-INDEP")
def test_each_row_is_drawn_on_its_own(model: Subject, draw: Draw) -> None:
    even = chances(model, draw, flat, gain=0.2)
    if rows(model, DRAWS) < 2:
        raise NotApplicable("its limits allow one prompt at a time")
    drawn, probabilities = even.drawn(draw), even.expected()
    size, joint = len(probabilities), np.outer(probabilities, probabilities).ravel()
    outside = (drawn < 0) | (drawn >= size)
    check("an id is outside the vocabulary", not outside.any())
    for apart in each_of([1, DRAWS // 2]):
        first = np.arange(0, DRAWS, 2) if apart == 1 else np.arange(DRAWS // 2)
        pairs = drawn[first] * size + drawn[first + apart]
        equal = np.array([1.0 - (probabilities**2).sum(), (probabilities**2).sum()])
        same = (drawn[first] == drawn[first + apart]).astype(np.int64)
        check_frequencies(f"pairs of rows {apart} apart, 1 for equal ids", same, equal, distributions=4)
        check_frequencies(f"pairs (i, j) of rows {apart} apart, as i V + j", pairs, joint, distributions=4)


@clause("GEN-TEMP")
def test_ids_are_drawn_from_the_softmax_over_temperature(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    for temperature in each_of([1.0, 0.5, 2.0]):
        drawn = law.drawn(draw, temperature=temperature)
        check_frequencies(f"ids at temperature {temperature}", drawn, law.expected(temperature=temperature), distributions=4)
    under("two new ids at temperature 0.8")
    instance, size, context = law.instance, len(law.logits), law.prompt[-law.instance.sizes["block_size"] + 1 :]
    pairs = sample(instance, law.prompt[None], DRAWS, draw.integer(0, 1 << 30), count=2, temperature=0.8)[0]
    after = np.concatenate([np.tile(context, (size, 1)), np.arange(size)[:, None]], axis=1)
    second = np.concatenate([instance(piece)[:, -1] for piece in np.array_split(after, parts(model, size))])
    joint = law.expected(temperature=0.8)[:, None] * next_token_probabilities(second, temperature=0.8)
    check_frequencies("ids i, then j, as i V + j", pairs[:, 0] * size + pairs[:, 1], joint.ravel(), distributions=4)


@clause("GEN-TEMP-ZERO")
def test_temperature_zero_is_greedy(model: Subject, draw: Draw) -> None:
    told = story(author(model), draw, tokens=3, steps=3)
    count = told.text.shape[1] - told.prompts.shape[1]
    try:
        got = told.instance.generate(told.prompts, count, seed=1, temperature=0.0).out
    except ImplementationFailure:
        declared = model.bound.config.generate
        if declared is None or declared.greedy is None:
            raise
        check("greedy text is asked for in another way, which conform.toml declares", holds=True)
        return
    check_equal("the text at temperature 0", got, continued(told))


@clause("GEN-TEMP-NEGATIVE")
def test_a_negative_temperature_is_refused(model: Subject, draw: Draw) -> None:
    instance = model.build().scatter(draw)
    prompts = prompt_ids(instance, draw)
    for temperature in (-1.0, -0.01):
        check_refuses(f"temperature {temperature}", partial(instance.generate, prompts, 2, seed=1, temperature=temperature))
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
    one, again, other = (instance.generate(prompts, 4, seed=seed, temperature=1.0).out for seed in (5, 5, 6))
    check_equal("the text after the same seed", again, one)
    check("two seeds give the same text of 32 nearly evenly drawn ids", bool((one != other).any()))


# -- top-k and top-p ---------------------------------------------------------------------------------------------------


@clause("GEN-TOPK-SUPPORT")
def test_only_the_k_most_probable_ids_come(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    for k in each_of([2, 3, 5]):
        drawn = law.drawn(draw, FEW, top_k=k)
        check_set(f"top-k of {k}", drawn, law.ranked()[:k].tolist(), law.expected(top_k=k))


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
        check_equal("the text with top-k of 1", continued(told, greedy=False, temperature=1.0, top_k=1, seed=seed), continued(told))


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


def unlike(model: Subject, draw: Draw) -> tuple[Instance, Array, Array]:
    """Return a model and two prompts, after one of which the next id is much surer than after the other, with logits."""
    instance, prompts, logits = candidates(model, draw, gain=2.0)
    top = next_token_probabilities(logits).max(axis=-1)
    surest = int(np.argmin(np.abs(top - 0.75)))
    others = np.argsort(logits[surest])[::-1][:4]
    overlap = np.isin(np.argsort(-logits, axis=-1)[:, :4], others).sum(axis=-1)
    evenest = int(np.argmin(top + 0.1 * overlap))
    chosen = [surest, evenest]
    return instance, prompts[chosen], logits[chosen]


@clause("GEN-TOPK-ROWS")
def test_each_row_has_its_own_k_ids(model: Subject, draw: Draw) -> None:
    instance, prompts, logits = unlike(model, draw)
    for order in ([0, 1], [1, 0]):
        drawn = sample(instance, prompts[order], FEW, draw.integer(0, 1 << 30), top_k=3)
        for row, which in enumerate(order):
            under(f"row {row} of two kinds of prompts, top-k of 3")
            wanted = np.argsort(-logits[which], kind="stable")[:3]
            check_set("ids", drawn[row], wanted.tolist(), next_token_probabilities(logits[which], top_k=3))


def halfway(ranked: Array, count: int) -> float:
    """Return a p between what count - 1 and what count ids have together: no rounding decides which set is meant."""
    together = np.cumsum(ranked)
    return float((together[count - 1] + (together[count - 2] if count > 1 else 0.0)) / 2.0)


def with_top_p(law: Chances, counts: Sequence[int], **options: Any) -> Iterator[tuple[int, float]]:
    """Yield numbers of ids and the p that keeps as many."""
    ranked = -np.sort(-law.expected(**options))
    for count in counts:
        p = halfway(ranked, count)
        under(f"p = {p:.4g}, reached by the {count} most probable ids: {' '.join(f'{x:.3f}' for x in ranked[:6])}")
        yield count, p


@clause("GEN-TOPP-UNSORT")
def test_kept_ranks_become_ids_of_the_vocabulary(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    for count, p in with_top_p(law, (2, 3)):
        del count
        best, drawn = int(law.ranked()[0]), law.drawn(draw, draws=500, top_p=p)
        check(f"id {best}, the most probable, never came in 500 draws", bool((drawn == best).any()), f"drawn: {_names(np.unique(drawn))}")


@clause("GEN-TOPP-SUPPORT")
def test_the_smallest_set_that_reaches_p_comes(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    for count, p in with_top_p(law, (1, 2, 3, 4)):
        drawn = law.drawn(draw, FEW, top_p=p)
        check_set(f"top-p of {p:.4g}", drawn, law.ranked()[:count].tolist(), law.expected(top_p=p))


@clause("GEN-TOPP-RENORM")
def test_the_ids_that_reach_p_keep_their_ratios(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    for _, p in with_top_p(law, (2, 4)):
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
    p = apart(logits)
    for order in ([0, 1], [1, 0]):
        drawn = sample(instance, prompts[order], FEW, draw.integer(0, 1 << 30), top_p=p)
        for row, which in enumerate(order):
            law = next_token_probabilities(logits[which], top_p=p)
            under(f"row {row} of two kinds of prompts, top-p of {p:.4g}")
            check_set("ids", drawn[row], np.flatnonzero(law).tolist(), law)


def apart(logits: Array) -> float:
    """Return a p that no row reaches within rounding, and that leaves sets as different as may be."""
    ranked = -np.sort(-next_token_probabilities(logits), axis=-1)
    together = np.cumsum(ranked, axis=-1)
    best, found = -1.0, 0.5
    for p in np.linspace(0.3, 0.95, 131):
        clear = float(np.abs(together - p).min())
        sizes = (together < p).sum(axis=-1) + 1
        score = float(np.ptp(sizes)) + min(clear, 0.01) * 50.0
        if clear > 1e-3 and score > best:
            best, found = score, float(p)
    return found


@clause("GEN-FILTER-ORDER")
def test_temperature_comes_before_top_p(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    for temperature in (0.5, 2.0):
        for count, p in with_top_p(law, (2, 3), temperature=temperature):
            drawn = law.drawn(draw, FEW, temperature=temperature, top_p=p)
            wanted = law.ranked()[:count].tolist()
            check_set(f"temperature {temperature}, top-p of {p:.4g}", drawn, wanted, law.expected(temperature=temperature, top_p=p))


@clause("GEN-FILTER-BOTH")
def test_top_k_comes_before_top_p(model: Subject, draw: Draw) -> None:
    law = chances(model, draw)
    for k, count in each_of([(2, 4), (4, 2), (3, 2), (5, 3)]):
        ranked = -np.sort(-law.expected(top_k=k))
        p = halfway(ranked, count) if count < k else 0.99
        drawn = law.drawn(draw, FEW, top_k=k, top_p=p)
        expected = law.expected(top_k=k, top_p=p)
        check_set(f"top-k of {k}, top-p of {p:.4g}", drawn, law.ranked()[: int((expected > 0).sum())].tolist(), expected)


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
        for options in each_of([{"greedy": True}, {"temperature": 1.0}]):
            check_modes(instance.generate(prompts, 2, mode=mode, seed=1, **options), mode, training=flag)


@clause("GEN-MODE-RESTORE-ERROR")
def test_the_mode_is_restored_after_an_error(model: Subject, draw: Draw) -> None:
    instance = model.build().scatter(draw)
    prompts = prompt_ids(instance, draw)
    wrong = prompts.copy()
    wrong[-1, -1] = instance.sizes["vocab_size"] + 3
    for mode, flag in (("train", True), ("eval", False)):
        try:
            instance.generate(wrong, 2, mode=mode, greedy=True, seed=1)
        except ImplementationFailure as refused:
            if refused.kind != "exception":
                raise
            check_modes(instance.call(prompts, mode=None), f"{mode}, an id outside the vocabulary refused", training=flag)
            continue
        raise NotApplicable("it raises nothing for an id outside the vocabulary")


def check_modes(outcome: Outcome, mode: str, *, training: bool) -> None:
    """Check the training flags of all modules after a call."""
    under(f"mode before: {mode}")
    found = " and ".join("training" if flag else "eval" for flag in outcome.modes)
    check(f"afterwards the modules are in {found} mode, want {'training' if training else 'eval'}", outcome.modes == (training,))


@clause("GEN-PURE")
def test_parameters_and_prompt_are_left_as_they_were(model: Subject, draw: Draw) -> None:
    instance = model.build(block_size=11).scatter(draw, gain=2.0)
    names = [p["name"] for p in instance.trainable]
    before = instance.read_raw()
    for tokens, options in each_of([(3, {"greedy": True}), (5, {"temperature": 1.0})]):
        prompts = prompt_ids(instance, draw, 3, tokens)
        outcome = instance.generate(prompts.copy(), 4, mode="train", seed=1, **options)
        check_equal("the prompt after the call", outcome.arguments["ids"], model.bound.to_theirs(prompts))
        after = instance.read_raw()
        for name in names:
            check_equal(f"{name} after the call", after[name], before[name])


@clause("GEN-EMPTY-PROMPT")
def test_an_empty_prompt_is_refused_or_continued(model: Subject, draw: Draw) -> None:
    instance = model.build().scatter(draw)
    size = instance.sizes["vocab_size"]
    try:
        out = instance.generate(draw.ids(size, 2, 0), 3, greedy=True, seed=1).out
    except ImplementationFailure as refused:
        if refused.kind != "exception":
            raise
        check("an empty prompt is refused", holds=True)
        return
    check(f"3 ids after an empty prompt have shape {out.shape}, want (2, 3), or (2, 4) with a first id", out.shape in {(2, 3), (2, 4)})
    check("an id is outside the vocabulary", bool(((out >= 0) & (out < size)).all()))
