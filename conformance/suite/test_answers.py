"""Clauses of spec/answers.md. Where a function takes a mask as well as labels, it is judged with both."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import check, check_close, check_equal, each_of, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case
from conformkit.conformance.assertions.values import TOLERANCE, close, ids, number, numbers, several
from conformkit.conformance.evidence.at_sizes import check_at_sizes
from conformkit.conformance.evidence.conversations import Conversation, Labeled, answered, conversation, mean_of_answers
from conformkit.conformance.evidence.loss_inputs import scored
from conformkit.conformance.subject.tool import Tool
from conformkit.conformance.suite.registry import clause
from conformkit.spec.answers import answer_gradient, answer_row
from conformkit.spec.answers import sequence_log_probs as definition
from conformkit.spec.arrays import Array
from conformkit.spec.loss import IGNORED

MARKS = ((0, 1), (3, 3), (9, 0))
"""Pad and end ids: once the same."""
LENGTHS = ((3, 2), (1, 4), (4, 3), (2, 1))
"""Lengths of prompts and answers: rows of unequal lengths."""


@clause("ADATA-IDS")
def test_a_row_is_prompt_answer_and_end(collate_answers: Tool, draw: Draw) -> None:
    for marks in each_of("marks", MARKS):
        for prompt, answer, row, _ in _rows(collate_answers, draw, marks):
            check_equal("a row of ids, its padding left out,", row, answer_row(prompt, answer, marks[1])[0])


@clause("ADATA-ANSWER")
def test_each_id_of_an_answer_has_itself_as_its_label(collate_answers: Tool, draw: Draw) -> None:
    for marks in each_of("marks", MARKS):
        for prompt, answer, _, labels in _rows(collate_answers, draw, marks):
            start = len(prompt)
            check_equal("the labels of an answer", labels[start : start + len(answer)], answer)


@clause("ADATA-PROMPT")
def test_labels_in_the_prompt_are_ignored(collate_answers: Tool, draw: Draw) -> None:
    for marks in each_of("marks", MARKS):
        for prompt, _, _, labels in _rows(collate_answers, draw, marks):
            check_equal("the labels of a prompt", labels[: len(prompt)], np.full(len(prompt), IGNORED))


@clause("ADATA-END")
def test_the_end_of_an_answer_is_learned(collate_answers: Tool, draw: Draw) -> None:
    for marks in each_of("marks", MARKS):
        for _, _, _, labels in _rows(collate_answers, draw, marks):
            check_equal("the label of the end id", labels[-1:], np.array([marks[1]]))


@clause("ADATA-PAD")
def test_padding_is_not_learned(collate_answers: Tool, draw: Draw) -> None:
    for marks in each_of("marks", MARKS):
        pairs = _pairs(draw)
        texts, labels = _batch(collate_answers, pairs, marks)
        for place, pair in enumerate(pairs):
            padded = ~_own(texts[place], pair, marks)
            check_equal(f"the padded ids of row {place}", texts[place][padded], np.full(padded.sum(), marks[0]))
            check_equal(f"the padded labels of row {place}", labels[place][padded], np.full(padded.sum(), IGNORED))


@clause("ANS-SHIFT")
def test_each_id_of_an_answer_is_predicted_by_the_logits_before_it(answer_loss: Tool, draw: Draw) -> None:
    texts, loss = conversation(draw), _loss(answer_loss)
    costs = [[number("the loss", value) for value in loss.ways(texts.sure(places))] for places in (1, 0, 2)]
    for before, own, two in zip(*costs, strict=True):
        label = f"logits that are sure of each id one place before it cost {before:.4f}"
        check(f"{label}, at its own place {own:.4f}, two places before {two:.4f}", before < min(own, two))


@clause("ANS-ONLY")
def test_what_is_no_answer_counts_nothing(answer_loss: Tool, draw: Draw) -> None:
    texts, loss = conversation(draw), _loss(answer_loss)
    other = np.where(texts.predicts[..., None], texts.logits, draw.values(*texts.logits.shape, scale=3.0))
    for before, after in zip(loss.ways(texts), loss.ways(texts.with_logits(other)), strict=True):
        close("the loss after logits that predict no answer changed", after, number("the loss", before))


@clause("ANS-FIRST")
def test_the_first_id_of_each_answer_counts(answer_loss: Tool, draw: Draw) -> None:
    texts, loss = conversation(draw), _loss(answer_loss)
    for row, place in each_of("row, place", [(0, 2), (0, 6), (1, 1), (2, 4)]):
        _counts(loss, texts, row, place)


@clause("ANS-LAST")
def test_the_last_id_of_each_answer_counts(answer_loss: Tool, draw: Draw) -> None:
    texts, loss = conversation(draw), _loss(answer_loss)
    for row, place in each_of("row, place", [(0, 3), (0, 7), (1, 3), (2, 7)]):
        _counts(loss, texts, row, place)


@clause("ANS-ORACLE")
def test_the_loss_is_the_mean_surprise_at_the_answers(answer_loss: Tool, draw: Draw) -> None:
    texts, loss = conversation(draw), _loss(answer_loss)
    for part in each_of("part", [(0, 4), (0, 2), (1, 3)]):
        of = Conversation(texts.logits[slice(*part)], texts.ids[slice(*part)], texts.mask[slice(*part)])
        for value in loss.ways(of):
            _nearest(value, mean_of_answers(of))


@clause("ANS-TOKENS")
def test_each_id_of_an_answer_counts_alike(answer_loss: Tool, draw: Draw) -> None:
    texts, loss = conversation(draw), _loss(answer_loss)
    for value in loss.ways(texts):
        close("the loss", value, mean_of_answers(texts)[0])


@clause("ANS-STABLE")
def test_large_logits_give_the_exact_loss_of_answers(answer_loss: Tool) -> None:
    loss = _loss(answer_loss)
    for low, high in each_of("low, high", [(-1e4, 1e4), (0.0, 2e4)]):
        for answer, want in ((2, 0.0), (1, 2e4)):
            for value in loss.ways(_certain(low, high, answer)):
                close(f"the loss of id {answer}", value, want, scale=1.0)


@clause("ANS-NONE")
def test_a_row_without_an_answer_adds_nothing(answer_loss: Tool, draw: Draw) -> None:
    texts, loss = conversation(draw), _loss(answer_loss)
    texts.mask[1] = False
    for value in loss.ways(texts):
        _nearest(value, mean_of_answers(texts))


@clause("ANS-GRAD")
def test_the_gradient_is_that_of_the_answers(answer_loss: Tool, draw: Draw) -> None:
    loss, whole = _loss(answer_loss), conversation(draw)
    for row in each_of("row", range(4)):  # of one row both means are the same
        texts = Conversation(whole.logits[row : row + 1], whole.ids[row : row + 1], whole.mask[row : row + 1])
        want = answer_gradient(texts.logits, texts.labels) / texts.mask[:, 1:].sum()
        check_close("the gradient", loss.slope(texts), want, TOLERANCE)


@clause("ANS-SIZES")
def test_the_loss_of_answers_equals_the_definition_at_every_size(answer_loss: Tool, draw: Draw) -> None:
    loss = _loss(answer_loss)

    def check_sizes(sizes: Case) -> None:
        texts = answered(draw.at(sizes), sizes)
        for value in loss.ways(texts):
            _nearest(value, mean_of_answers(texts))

    check_at_sizes(draw, check_sizes, scored, dict, after="ANS-ORACLE")


@clause("SLOGP-SHAPE")
def test_each_row_has_one_log_probability(sequence_log_probs: Tool, draw: Draw) -> None:
    texts = conversation(draw)
    for value in _logs(sequence_log_probs).ways(texts):
        numbers("the log-probabilities", value, (4,))


@clause("SLOGP-SHIFT")
def test_log_probabilities_are_those_of_the_logits_before(sequence_log_probs: Tool, draw: Draw) -> None:
    texts, logs = conversation(draw), _logs(sequence_log_probs)
    sums = [[float(numbers("it", value, (4,)).sum()) for value in logs.ways(texts.sure(n))] for n in (1, 0, 2)]
    for before, own, two in zip(*sums, strict=True):
        label = f"logits that are sure of each id one place before it give {before:.4f}"
        check(f"{label}, at its own place {own:.4f}, two places before {two:.4f}", before > max(own, two))


@clause("SLOGP-ONLY")
def test_prompt_and_padding_have_no_part_in_a_log_probability(sequence_log_probs: Tool, draw: Draw) -> None:
    texts, logs = conversation(draw), _logs(sequence_log_probs)
    other = np.where(texts.predicts[..., None], texts.logits, draw.values(*texts.logits.shape, scale=3.0))
    for before, after in zip(logs.ways(texts), logs.ways(texts.with_logits(other)), strict=True):
        label = "the log-probabilities after logits that predict no answer changed"
        check_close(label, numbers(label, after, (4,)), numbers(label, before, (4,)), TOLERANCE)


@clause("SLOGP-ENDS")
def test_the_first_and_the_last_id_count_in_a_log_probability(sequence_log_probs: Tool, draw: Draw) -> None:
    texts, logs = conversation(draw), _logs(sequence_log_probs)
    for row, place in each_of("row, place", [(0, 2), (0, 7), (1, 1), (1, 3), (2, 4), (2, 7)]):
        for before, after in zip(logs.ways(texts), logs.ways(_likelier(texts, row, place)), strict=True):
            first, second = (float(numbers("it", value, (4,))[row]) for value in (before, after))
            label = f"the log-probability is {second:.6g} when the id at place {place + 1} becomes more probable"
            check(f"{label}, and was {first:.6g}", second > first + 1e-4)


@clause("SLOGP-SUM")
def test_log_probabilities_of_ids_are_added(sequence_log_probs: Tool, draw: Draw) -> None:
    logs = _logs(sequence_log_probs)
    for length in each_of("length", [1, 3]):
        logits, texts = draw.values(2, 1, 5), np.full((2, 1 + 2 * length), 2)
        once, twice = (_alike(logits, texts, count) for count in (length, 2 * length))
        for one, both in zip(logs.ways(once), logs.ways(twice), strict=True):
            want = 2 * numbers("it", one, (2,))
            label = "the log-probabilities of an answer that is twice as long"
            check_close(label, numbers(label, both, (2,)), want, TOLERANCE)


@clause("SLOGP-ORACLE")
def test_log_probabilities_are_those_of_the_definition(sequence_log_probs: Tool, draw: Draw) -> None:
    texts, logs = conversation(draw), _logs(sequence_log_probs)
    for scale in each_of("scale", [1.0, 4.0]):
        of = texts.with_logits(scale * texts.logits)
        for value in logs.ways(of):
            check_close(
                "the log-probabilities", numbers("it", value, (4,)), definition(of.logits, of.labels), TOLERANCE
            )


@clause("SLOGP-STABLE")
def test_large_logits_give_the_exact_log_probability(sequence_log_probs: Tool) -> None:
    logs = _logs(sequence_log_probs)
    for low, high in each_of("low, high", [(-1e4, 1e4), (0.0, 2e4)]):
        for answer, want in ((2, 0.0), (1, -2e4)):
            for value in logs.ways(_certain(low, high, answer)):
                close(f"the log-probability of id {answer}", value, want, scale=1.0)


@clause("SLOGP-SIZES")
def test_log_probabilities_equal_the_definition_at_every_size(sequence_log_probs: Tool, draw: Draw) -> None:
    logs = _logs(sequence_log_probs)

    def check_sizes(sizes: Case) -> None:
        texts = answered(draw.at(sizes), sizes)
        for value in logs.ways(texts):
            want = definition(texts.logits, texts.labels)
            check_close("the log-probabilities", numbers("it", value, want.shape), want, TOLERANCE)

    check_at_sizes(draw, check_sizes, scored, dict, after="SLOGP-ORACLE")


def _loss(tool: Tool) -> Labeled:
    return Labeled(tool, mean_of_answers)


def _logs(tool: Tool) -> Labeled:
    return Labeled(tool, lambda told: [definition(told.logits, told.labels)])


def _nearest(value: object, wanted: tuple[float, ...]) -> None:
    """Check a loss against the nearest of those that conventions give."""
    got = number("the loss", value)
    close("the loss", got, min(wanted, key=lambda want: abs(want - got)))


def _counts(loss: Labeled, told: Conversation, row: int, place: int) -> None:
    """Check that the logits there change the loss."""
    for before, after in zip(loss.ways(told), loss.ways(_likelier(told, row, place)), strict=True):
        first, second = number("the loss", before), number("the loss", after)
        label = f"the loss is {second:.6g} when the id at place {place + 1} of row {row} becomes more probable"
        check(f"{label}, and was {first:.6g}", second < first - 1e-4)


def _likelier(told: Conversation, row: int, place: int) -> Conversation:
    """Return logits that find the id behind a place more probable."""
    logits = told.logits.copy()
    logits[row, place, told.ids[row, place + 1]] += 6.0
    return told.with_logits(logits)


def _certain(low: float, high: float, answer: int) -> Conversation:
    """Return a prompt of one id and an answer of one, and logits that are sure of id 2."""
    logits = np.full((1, 2, 5), low)
    logits[..., 2] = high
    return Conversation(logits, np.array([[0, answer]]), np.array([[False, True]]))


def _alike(logits: Array, texts: Array, count: int) -> Conversation:
    """Return answers of so many ids behind a prompt of one, with the same logits everywhere."""
    mask = np.zeros(texts.shape, bool)
    mask[:, 1 : 1 + count] = True
    return Conversation(np.repeat(logits, texts.shape[1], axis=1), texts, mask)


def _pairs(draw: Draw) -> list[tuple[Array, Array]]:
    return [(10 + draw.ids(50, asked), 10 + draw.ids(50, answered)) for asked, answered in LENGTHS]


def _batch(tool: Tool, pairs: list[tuple[Array, Array]], marks: tuple[int, int]) -> tuple[Array, Array]:
    """Return ids and labels (B, T) of the pairs."""
    found = several("collate_answers", tool(pairs=pairs, pad_id=marks[0], eos_id=marks[1]), 2)
    texts = ids("the ids", found[0])
    check(f"the ids have shape {texts.shape}, expected ({len(pairs)}, T)", texts.ndim == 2 and len(texts) == len(pairs))
    return texts, ids("the labels", found[1], texts.shape)


def _rows(tool: Tool, draw: Draw, marks: tuple[int, int]) -> list[tuple[Array, Array, Array, Array]]:
    """Return prompt, answer, ids and labels of each row, without its padding."""
    pairs = _pairs(draw)
    texts, labels = _batch(tool, pairs, marks)
    found = []
    for place, pair in enumerate(pairs):
        under(f"row {place}")
        own = _own(texts[place], pair, marks)
        found.append((*pair, texts[place][own], labels[place][own]))
    return found


def _own(row: Array, pair: tuple[Array, Array], marks: tuple[int, int]) -> Array:
    """Return which places of a row are no padding: as many as the text has, from its first id on."""
    length = len(pair[0]) + len(pair[1]) + 1
    begins = np.flatnonzero(row != marks[0])
    first = int(begins[0]) if len(begins) else 0
    return (np.arange(len(row)) >= first) & (np.arange(len(row)) < first + length)
