"""The tasks are as described; a right model learns them in the given updates, one without positions does not."""

from __future__ import annotations

import pytest
import torch

from conformkit.reference.errors import SizeError
from conformkit.reference.seq2seq.tasks import (
    BOS,
    COPY,
    EOS,
    PAD,
    REVERSE,
    Task,
    learn,
    small_model,
    token_accuracy,
    written_accuracy,
)
from conformkit.spec.variants import CANONICAL, Variant

TASKS = pytest.mark.parametrize("task", [COPY, REVERSE], ids=["copy", "reverse"])
LEARNED = pytest.mark.parametrize(
    "task", [pytest.param(COPY, id="copy"), pytest.param(REVERSE, id="reverse", marks=pytest.mark.full)]
)


@pytest.fixture(autouse=True)
def _one_thread() -> object:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def held_out(task: Task) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return task.batch(256, torch.Generator().manual_seed(999))


@TASKS
def test_targets_are_the_source_in_order_or_reversed_between_a_begin_and_an_end(task: Task) -> None:
    lengths = set()
    for source, read, wanted in zip(*(part.tolist() for part in held_out(task)), strict=True):
        ids = [number for number in source if number != PAD]
        target = ids[::-1] if task is REVERSE else ids
        padding = [PAD] * (task.longest - len(ids))
        assert source == ids + padding
        assert read == [BOS, *target, *padding]
        assert wanted == [*target, EOS, *padding]
        assert all(EOS < number < task.vocab_size for number in ids)
        lengths.add(len(ids))
    assert lengths == set(range(task.shortest, task.longest + 1))


@LEARNED
@pytest.mark.parametrize(
    "variant",
    [
        pytest.param(CANONICAL, id="pre"),
        pytest.param(Variant(placement="post", activation="relu"), id="post", marks=pytest.mark.full),
    ],
)
def test_a_right_model_learns_a_task_and_writes_it_when_left_alone(task: Task, variant: Variant) -> None:
    torch.manual_seed(0)
    model, batch = small_model(task, variant), held_out(task)
    before = token_accuracy(model, batch)
    losses = learn(model, task, task.updates)
    assert before < 0.3
    assert len(losses) == task.updates
    assert losses[0] > 2.2
    assert losses[-1] < 0.1
    assert token_accuracy(model, batch) > 0.97  # 0.98 to 1 over seeds and variants
    assert written_accuracy(model, batch) > 0.95


@pytest.mark.full(guard="test_a_right_model_learns_a_task_and_writes_it_when_left_alone")
@TASKS
def test_a_model_without_positions_learns_no_order(task: Task) -> None:
    torch.manual_seed(0)
    model = small_model(task, Variant(positions="none"))
    learn(model, task, task.updates)
    assert token_accuracy(model, held_out(task)) < 0.7  # 0.48 to 0.55


def test_training_is_repeatable_and_refuses_what_cannot_be_learned() -> None:
    losses = []
    for _ in range(2):
        torch.manual_seed(3)
        losses.append(learn(small_model(COPY), COPY, 5, seed=4))
    assert losses[0] == losses[1]
    assert losses[0] != learn(small_model(COPY), COPY, 5, seed=5)
    with pytest.raises(SizeError, match="batch_size is 0"):
        learn(small_model(COPY), COPY, 5, batch_size=0)
