"""Clauses of spec/generation.md.

Expected continuations come from the implementation's own logits, called without `generate`: model.md judges the model
itself. Prompts are chosen so that mistakes show: greedy text that varies, arg maxes that rounding can't
flip.
"""

from __future__ import annotations

from conformkit.conformance.assertions.checks import (
    NotApplicable,
    check,
    check_equal,
    check_shape,
    each_of,
    quoted,
    refusing,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.generation_at_sizes import check_greedy_at_sizes
from conformkit.conformance.evidence.greedy_text import (
    GREEDY,
    author,
    check_text,
    continued,
    generated,
    is_cut_short,
    newest,
    plain,
    prompt_ids,
    story,
    written,
)
from conformkit.conformance.evidence.logits import logits_of, rows, takes_block_size
from conformkit.conformance.probing.refusals import is_refusal
from conformkit.conformance.subject.component import Subject
from conformkit.conformance.subject.outcomes import Outcome
from conformkit.conformance.suite.registry import clause

_ONE_TOO_MANY = "there is no room for another run of the model after the last new id, which nothing needs"
"""What an error at a prompt that fills the context may come from."""


@clause("GEN-LENGTH")
def test_as_many_ids_are_added_as_asked_for(model: Subject, draw: Draw) -> None:
    instance = model.build(block_size=11).scatter(draw)
    # fewer new ids than the prompt has: results without one id, without the prompt, or counting it differ in length
    for batch, tokens, count in each_of("batch, tokens, count", [(1, 4, 3), (2, 3, 5), (1, 1, 1)]):
        prompts = prompt_ids(instance, draw, batch, tokens)
        out = instance.generate(prompts, count, seed=1, **plain(model)).out
        check_shape(f"{count} new ids after {prompts.shape[1]}", out, (len(prompts), prompts.shape[1] + count))
    few = model.build(vocab_size=2, num_layers=1, block_size=11).scatter(draw, gain=0.05)
    under("a vocabulary of 2, where each id occurs soon: none of them ends the text")
    prompts = prompt_ids(few, draw, 1, 1)
    out = few.generate(prompts, 9, seed=1, **plain(model)).out
    check_shape("9 new ids", out, (len(prompts), prompts.shape[1] + 9))


@clause("GEN-ZERO")
def test_no_new_ids_leave_the_prompt(model: Subject, draw: Draw) -> None:
    instance = model.build().scatter(draw)
    for batch, tokens in each_of("batch, tokens", [(2, 4), (1, 1)]):
        prompts = prompt_ids(instance, draw, batch, tokens)
        with refusing(is_refusal):
            check_equal("the result of 0 new ids", instance.generate(prompts, 0, seed=1, **plain(model)).out, prompts)


@clause("GEN-PREFIX")
def test_the_prompt_comes_back_in_front(model: Subject, draw: Draw) -> None:
    instance = model.build(block_size=5).scatter(draw)
    long = instance.sizes["block_size"] + 4
    for tokens, options in each_of(
        "tokens, options", [(1, GREEDY), (3, plain(model)), (long, GREEDY), (long, plain(model))]
    ):
        prompts = prompt_ids(instance, draw, 3, tokens)
        try:
            out = generated(instance, prompts, 2, **options).out
        except NotApplicable:  # a text longer than a block is refused
            continue
        check_shape("prompt and 2 new ids", out, (len(prompts), prompts.shape[1] + 2))
        check_equal("the prompt in front", out[:, : prompts.shape[1]], prompts)


@clause("GEN-RANGE")
def test_new_ids_are_ids_of_the_vocabulary(model: Subject, draw: Draw) -> None:
    instance = model.build(vocab_size=7).scatter(draw, gain=0.3)
    vocab_size = instance.sizes["vocab_size"]
    for batch, count in each_of("batch, count", [(200, 1), (3, 3)]):
        outcome = instance.generate(prompt_ids(instance, draw, batch, 2), count, seed=1, **plain(model))
        check(f"the ids are {outcome.dtype}, expected integers", "int" in outcome.dtype)
        outside = outcome.out[(outcome.out < 0) | (outcome.out >= vocab_size)]
        check(f"{outside[:1]} is not in 0 … {vocab_size - 1}", not outside.size)


@clause("GEN-DTYPE-KEPT")
def test_ids_keep_the_type_of_the_prompt(model: Subject, draw: Draw) -> None:
    instance = model.build().scatter(draw)
    for options in each_of("options", [GREEDY, plain(model)]):
        outcome = instance.generate(prompt_ids(instance, draw), 2, seed=1, **options)
        check(f"the ids are {outcome.dtype}, the prompt is int64", outcome.dtype == "int64")


@clause("GEN-GREEDY-DET")
def test_greedy_text_does_not_depend_on_the_seed(model: Subject, draw: Draw) -> None:
    instance = model.build(vocab_size=17, block_size=12).scatter(draw, gain=0.5)
    prompts = prompt_ids(instance, draw, 16, 3)
    first = written(instance, prompts, 3, greedy=True)
    check_equal("greedy text after another seed", written(instance, prompts, 3, greedy=True, seed=2), first)


@clause("GEN-GREEDY-ARGMAX")
def test_greedy_text_takes_the_most_probable_id(model: Subject, draw: Draw) -> None:
    example = story(author(model), draw, tokens=1, steps=1, keep=12)
    check_text("the id after a prompt of one id", example, continued(example))


@clause("GEN-LAST-POS")
def test_the_last_position_decides(model: Subject, draw: Draw) -> None:
    instance = author(model)
    for tokens in each_of("tokens", [3, instance.sizes["block_size"], 2]):
        example = story(instance, draw, tokens=min(tokens, instance.sizes["block_size"]), steps=1, keep=12)
        length = example.prompts.shape[1]
        try:
            got = continued(example)
        except NotApplicable:  # a text longer than a block is refused
            continue
        except ImplementationFailure:
            if length == instance.sizes["block_size"]:
                under(f"tokens = block_size = {length}: {_ONE_TOO_MANY}")
            raise
        check_text(f"the id after {length} ids", example, got)


@clause("GEN-AUTOREGRESSIVE")
def test_each_new_id_is_read_before_the_next(model: Subject, draw: Draw) -> None:
    instance = author(model, block_size=8, num_layers=3)  # what two layers share need not be shared by all
    example = story(instance, draw, tokens=1, steps=7, keep=12)
    check_text("the new ids", example, continued(example))


@clause("GEN-CROP")
def test_the_last_block_size_ids_are_the_context(model: Subject, draw: Draw) -> None:
    takes_block_size(model)
    instance = author(model, block_size=5)
    block_size = instance.sizes["block_size"]
    for tokens, steps in ((block_size + 3, 2), (max(block_size - 1, 1), 4)):
        example = story(instance, draw, tokens=tokens, steps=steps, keep=12)
        under(f"{example.prompts.shape[1]} ids before, block_size = {block_size}")
        check_text("the new ids", example, continued(example))


@clause("GEN-CUT-SHORT")
def test_a_text_longer_than_the_context_is_not_cut_short(model: Subject, draw: Draw) -> None:
    takes_block_size(model)
    instance = model.build(block_size=5).scatter(draw)
    prompts = prompt_ids(instance, draw, 2, 3)
    under("3 ids before, 4 new ones asked for, block_size = 5")
    try:
        out = instance.generate(prompts, 4, seed=1, **plain(model)).out
    except ImplementationFailure as failure:
        raise NotApplicable("a longer text is no text: GEN-CROP judges how it is refused") from failure
    cut = is_cut_short(instance, prompts, 4, out)
    check(f"the text {'ends at 5 ids' if cut else 'goes on'}, expected one that goes on or is refused", not cut)


@clause("GEN-NO-STATE")
def test_a_text_does_not_depend_on_the_texts_before_it(model: Subject, draw: Draw) -> None:
    instance = author(model)
    example = story(instance, draw, tokens=3, steps=2, keep=6, alike=1)
    half = len(example.prompts) // 2
    first, second = example.part(slice(None, half)), example.part(slice(half, None))
    if not half:
        raise NotApplicable("too few prompts have a certain greedy text")
    author(model).scatter(draw).generate(first.prompts, 2, seed=1, **GREEDY)
    under("after another model wrote")
    check_text("the text", first, continued(first))
    under("after a text that began with the same id")
    check_text("the text", second, continued(second))
    logits_of(instance, example.text[:half, -instance.sizes["block_size"] :])
    under("after a call of the model with a longer row")
    check_text("the text", first, continued(first))


@clause("GEN-BATCH")
def test_a_prompt_is_continued_as_it_is_alone(model: Subject, draw: Draw) -> None:
    example = story(author(model), draw, tokens=3, steps=2)
    together = continued(example)
    if len(together) < 2:
        raise NotApplicable.from_sizes("its limits allow one prompt at a time")
    for row in (0, 1, len(together) - 1):
        under(f"row {row} of {len(together)}")
        alone = newest(example.instance, example.prompts[row : row + 1], example.count, greedy=True)
        check_equal("the text of the prompt alone", alone[0], together[row])


# -- what generation leaves behind -------------------------------------------------------------------------------------


@clause("GEN-SIZES")
def test_long_texts_continue_as_short_ones_do(model: Subject, draw: Draw) -> None:
    check_greedy_at_sizes(model, draw, after="GEN-AUTOREGRESSIVE")


@clause("GEN-EVAL-MODE")
def test_generation_runs_without_dropout(model: Subject, draw: Draw) -> None:
    example = story(author(model, dropout=0.5), draw, tokens=3, steps=3)
    for seed in each_of("seed", [1, 2]):
        check_text("greedy text from training mode, dropout 0.5", example, continued(example, mode="train", seed=seed))


@clause("GEN-MODE-RESTORE")
def test_the_mode_afterwards_is_the_mode_before(model: Subject, draw: Draw) -> None:
    instance = model.build(dropout=0.1).scatter(draw)
    prompts = prompt_ids(instance, draw)
    for mode, flag in (("train", True), ("eval", False)):
        for options in each_of("options", [GREEDY, plain(model)]):
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
        f"afterwards the modules are in {found} mode, expected {'training' if training else 'eval'}",
        outcome.modes == (training,),
    )


@clause("GEN-PURE")
def test_parameters_and_prompt_are_left_as_they_were(model: Subject, draw: Draw) -> None:
    instance = model.build(block_size=11).scatter(draw, gain=2.0)
    names = [p["name"] for p in instance.trainable]
    before = instance.read_raw()
    for tokens, options in each_of("tokens, options", [(3, GREEDY), (5, plain(model))]):
        prompts = prompt_ids(instance, draw, 3, tokens)
        outcome = instance.generate(prompts.copy(), 4, mode="train", seed=1, **options)
        check_equal("the prompt after the call", outcome.arguments["ids"], model.bound.to_theirs(prompts))
        after = instance.read_raw()
        for name in names:
            check_equal(f"{name} after the call", after[name], before[name])


@clause("GEN-NO-GRAD")
def test_generation_keeps_nothing_for_derivatives(model: Subject, draw: Draw) -> None:
    instance = model.build().scatter(draw)
    prompts = prompt_ids(instance, draw)
    for mode, options in each_of("mode, options", [("eval", GREEDY), ("train", plain(model))]):
        outcome = instance.generate(prompts, 2, mode=mode, seed=1, **options)
        check("while it generates, tensors are saved for a backward pass that is never run", not outcome.graph)


@clause("GEN-GRAD-AFTER")
def test_gradients_flow_after_generation(model: Subject, draw: Draw) -> None:
    instance = model.build().scatter(draw)
    prompts = prompt_ids(instance, draw)
    cotangent = draw.values(*prompts.shape, instance.sizes["vocab_size"])
    before = instance.vjp(prompts, cotangent=cotangent, wrt=(), parameters=True).parameters
    instance.generate(prompts, 2, seed=1, **plain(model))
    after = instance.vjp(prompts, cotangent=cotangent, wrt=(), parameters=True).parameters
    lost = [name for name, gradient in after.items() if gradient is None and before[name] is not None]
    check(f"{quoted(lost)} no longer gets a gradient", not lost)


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
        f"3 ids after empty prompts have shape {out.shape}, expected ({batch}, 3), or ({batch}, 4) with a first id",
        out.shape in {(batch, 3), (batch, 4)},
    )
    check("an id is outside the vocabulary", bool(((out >= 0) & (out < size)).all()))
