"""Masks, batches, the smoothed loss, hidden ids and first weights, compared with numbers by hand or by PyTorch."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from conformkit.reference import (
    LabelSmoothingLoss,
    collate,
    create_causal_mask,
    create_masks,
    create_padding_mask,
    mask_tokens,
    shift_right,
)
from conformkit.reference.errors import ShapeError, SizeError, TokenError
from conformkit.reference.seq2seq.initialization import xavier_uniform

T, F_ = True, False


def test_masks_hide_padding_and_what_is_to_come() -> None:
    assert create_padding_mask(torch.tensor([[1, 2, 0], [4, 0, 0]])).tolist() == [[[[T, T, F_]]], [[[T, F_, F_]]]]
    assert create_causal_mask(3).tolist() == [[T, F_, F_], [T, T, F_], [T, T, T]]
    src_mask, tgt_mask = create_masks(torch.tensor([[5, 9, 9]]), torch.tensor([[1, 5, 9]]), pad_id=9)
    assert src_mask.tolist() == [[[[T, F_, F_]]]]
    assert tgt_mask.tolist() == [[[[T, F_, F_], [T, T, F_], [T, T, F_]]]]


def test_the_mask_of_a_shifted_target_keeps_its_last_real_id() -> None:
    shifted = shift_right(torch.tensor([[5, 6, 7, 0, 0]]), bos_id=1)
    assert shifted.tolist() == [[1, 5, 6, 7, 0]]
    assert create_padding_mask(shifted)[0, 0, 0].tolist() == [T, T, T, T, F_]
    with pytest.raises(ShapeError, match="the shape of the target"):
        shift_right(torch.tensor([5, 6]), 1)


def test_a_batch_holds_every_id_a_begin_and_an_end() -> None:
    src, tgt_in, tgt_out = collate([([5, 6, 7], [8, 9]), (torch.tensor([4]), [3, 3, 3])], 0, 1, 2)
    assert src.tolist() == [[5, 6, 7], [4, 0, 0]]
    assert tgt_in.tolist() == [[1, 8, 9, 0], [1, 3, 3, 3]]
    assert tgt_out.tolist() == [[8, 9, 2, 0], [3, 3, 3, 2]]
    with pytest.raises(SizeError, match="the number of pairs is 0"):
        collate([], 0, 1, 2)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("ignored", [-100, 2])
def test_the_smoothed_loss_is_torchs(smoothing: float, ignored: int) -> None:
    torch.manual_seed(1)
    logits = (3 * torch.randn(4, 5, 7, dtype=torch.float64)).requires_grad_()
    targets = torch.randint(7, (4, 5))
    targets[0, :2] = ignored
    ours = LabelSmoothingLoss(7, smoothing, ignored)(logits, targets)
    theirs = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=ignored, label_smoothing=smoothing)
    assert_close(ours, theirs)
    assert_close(torch.autograd.grad(ours, logits), torch.autograd.grad(theirs, logits))


def test_the_smoothed_loss_is_zero_where_nothing_counts_and_finite_where_an_id_is_impossible() -> None:
    logits = torch.tensor([[0.0, -math.inf, 1.0]])
    assert LabelSmoothingLoss(3)(logits, torch.tensor([-100])) == 0
    assert_close(LabelSmoothingLoss(3, 0.0)(logits, torch.tensor([2])), torch.tensor(math.log1p(math.exp(-1))))
    with pytest.raises(TokenError, match="a target is 3"):
        LabelSmoothingLoss(3)(logits, torch.tensor([3]))
    with pytest.raises(SizeError, match="the width of the logits is 3, expected vocab_size = 4"):
        LabelSmoothingLoss(4)(logits, torch.tensor([1]))
    with pytest.raises(SizeError, match=r"smoothing is 1\.5"):
        LabelSmoothingLoss(3, 1.5)


def test_hidden_ids_are_a_share_of_those_that_may_be_and_labels_are_what_was_there() -> None:
    torch.manual_seed(4)
    ids = torch.randint(50, (400, 500))
    inputs, labels = mask_tokens(ids, mask_id=4, vocab_size=50, special_ids=[0, 1, 2], probability=0.15)
    eligible = ids >= 5
    eligible |= ids == 3
    chosen = labels != -100
    assert not (chosen & ~eligible).any()
    assert torch.equal(labels[chosen], ids[chosen])
    assert torch.equal(inputs[~chosen], ids[~chosen])
    assert_close(chosen.sum() / eligible.sum(), torch.tensor(0.15), rtol=0, atol=0.005)  # five deviations
    kept, masked = (inputs == ids)[chosen].double().mean(), (inputs == 4)[chosen].double().mean()
    assert_close(masked.item(), 0.8 + 0.1 / 50, rtol=0, atol=0.012)
    assert_close(kept.item(), 0.1 + 0.1 / 50, rtol=0, atol=0.009)
    assert set(inputs[chosen].tolist()) == set(range(50))


def test_nothing_or_everything_is_hidden_where_that_is_asked_and_the_text_stays() -> None:
    ids = torch.arange(12).reshape(2, 6)
    inputs, labels = mask_tokens(ids, 4, 12, [], probability=0.0)
    assert torch.equal(inputs, ids)
    assert (labels == -100).all()
    _, labels = mask_tokens(ids, 4, 12, [0], probability=1.0)
    assert (labels == -100).nonzero().tolist() == [[0, 0], [0, 4]]
    assert torch.equal(ids, torch.arange(12).reshape(2, 6))
    with pytest.raises(SizeError, match=r"probability is 1\.5"):
        mask_tokens(ids, 4, 12, [], 1.5)


@pytest.mark.parametrize(("out", "into", "bound"), [(512, 512, 0.076547), (2048, 512, 0.048412), (64, 512, 0.102062)])
def test_xavier_draws_from_the_extents_of_the_matrix(out: int, into: int, bound: float) -> None:
    torch.manual_seed(0)
    weight = torch.empty(out, into)
    xavier_uniform(weight)
    assert weight.abs().max() <= bound + 1e-6
    assert_close(weight.abs().max().item(), bound, rtol=1e-3, atol=0)
    assert_close(weight.std().item(), bound / math.sqrt(3), rtol=0.02, atol=0)
