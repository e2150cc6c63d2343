"""What a user of the reference's losses for fine-tuning is told when numbers do not go together, and cases by hand."""

import math

import pytest
import torch

from conformkit.reference import answer_loss, collate_answers, dpo_loss, group_advantages, kl_estimate, policy_loss
from conformkit.reference.errors import ShapeError, SizeError


def test_an_answer_of_two_ids_depends_on_three_places() -> None:
    ids, labels = collate_answers([([5, 3, 8], [6, 2])], pad_id=9, eos_id=0)
    assert (ids.tolist(), labels.tolist()) == ([[5, 3, 8, 6, 2, 0]], [[-100, -100, -100, 6, 2, 0]])
    logits = torch.zeros(1, 6, 10, requires_grad=True)
    loss = answer_loss(logits, labels)
    loss.backward()
    assert loss.item() == pytest.approx(math.log(10))
    assert logits.grad is not None
    assert logits.grad.abs().sum(dim=-1).ne(0).tolist() == [[False, False, True, True, True, False]]


def test_an_empty_batch_costs_nothing_and_is_not_collated() -> None:
    assert answer_loss(torch.zeros(1, 3, 4), torch.full((1, 3), -100)).item() == 0
    with pytest.raises(SizeError, match="number of pairs"):
        collate_answers([], 0, 1)


@pytest.mark.parametrize("mask", [None, torch.ones(2, 2)])
def test_labels_and_masks_are_shaped_like_positions(mask: torch.Tensor | None) -> None:
    labels = torch.zeros(2, 3 if mask is not None else 4, dtype=torch.long)
    with pytest.raises(ShapeError, match=r"\(2, 3\) as the logits"):
        answer_loss(torch.zeros(2, 3, 5), labels, mask)


def test_a_margin_of_ln_3_with_beta_1_is_three_to_one() -> None:
    logs = (torch.tensor([math.log(3.0)]), torch.zeros(1), torch.zeros(1), torch.zeros(1))
    assert dpo_loss(*logs, beta=1.0).item() == pytest.approx(-math.log(0.75))


@pytest.mark.parametrize("size", [0, 4])
def test_groups_are_whole(size: int) -> None:
    with pytest.raises(SizeError, match="a divisor of the number of rewards, 6"):
        group_advantages(torch.zeros(6), size)


def test_advantages_of_answers_and_of_their_ids_give_the_same_loss() -> None:
    logs, mask = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0)), torch.ones(3, 4)
    gains = torch.tensor([1.0, -2.0, 0.5])
    assert torch.equal(policy_loss(*logs, gains, mask), policy_loss(*logs, gains[:, None].expand(3, 4), mask))


def test_an_estimator_has_one_of_three_names() -> None:
    with pytest.raises(SizeError, match="k1, k2 or k3"):
        kl_estimate(torch.zeros(1, 2), torch.zeros(1, 2), "k4")


def test_rewards_of_a_table_are_grouped_by_row() -> None:
    rewards = torch.tensor([[1.0, 0.0, 0.0], [2.0, 2.0, 2.0]])
    assert torch.equal(group_advantages(rewards), group_advantages(rewards.flatten(), 3).view(2, 3))
