"""Cross-entropy against PyTorch's own, and the numbers derived from it compared with numbers computed by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from conformkit.reference import bits_per_character, cross_entropy, perplexity
from conformkit.reference.errors import ShapeError, SizeError, TokenError


def drawn(*positions: int, vocabulary: int = 7) -> tuple[torch.Tensor, torch.Tensor]:
    source = torch.Generator().manual_seed(3)
    logits = torch.randn(*positions, vocabulary, generator=source, dtype=torch.float64) * 3
    return logits, torch.randint(vocabulary, positions, generator=source)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("ignored", [-100, 0, 6])
def test_it_equals_pytorchs_result(smoothing: float, ignored: int) -> None:
    logits, targets = drawn(3, 5)
    targets[1, 2:] = ignored
    ours, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    got = cross_entropy(ours, targets, ignored, smoothing)
    want = F.cross_entropy(theirs.flatten(0, 1), targets.flatten(), ignore_index=ignored, label_smoothing=smoothing)
    torch.testing.assert_close(got, want, rtol=1e-12, atol=0)
    got.backward()
    want.backward()
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-12, atol=1e-15)


def test_positions_may_be_flat() -> None:
    logits, targets = drawn(3, 5)
    torch.testing.assert_close(cross_entropy(logits.flatten(0, 1), targets.flatten()), cross_entropy(logits, targets))


def test_no_counted_targets_give_zero_and_gradients_of_zero() -> None:
    logits, targets = drawn(2, 3)
    logits.requires_grad_()
    loss = cross_entropy(logits, torch.full_like(targets, -100))
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(logits.grad, torch.zeros_like(logits))


def test_half_precision_is_summed_in_single() -> None:
    logits, targets = drawn(50, 40)
    got = cross_entropy(logits.half(), targets)
    assert got.dtype == torch.float32
    torch.testing.assert_close(got, cross_entropy(logits.half().float(), targets), rtol=0, atol=0)


def test_extreme_logits_stay_finite() -> None:
    logits = torch.tensor([[1e4, -1e4]])
    assert cross_entropy(logits, torch.tensor([1])).item() == pytest.approx(2e4)
    assert cross_entropy(logits, torch.tensor([0])).item() == 0


@pytest.mark.parametrize(
    ("logits", "targets", "options", "error", "says"),
    [
        ((2, 3, 5), (2, 4), {}, ShapeError, r"\(2, 4\), expected \(2, 3\)"),
        ((2, 3, 5), (3, 2), {}, ShapeError, r"\(3, 2\), expected \(2, 3\)"),
        ((2, 5), (2,), {"label_smoothing": 1.5}, SizeError, "label_smoothing is 1.5"),
        ((2, 5), (2,), {"label_smoothing": math.nan}, SizeError, "label_smoothing is nan"),
    ],
    ids=["lengths", "transposed", "smoothing", "nan"],
)
def test_a_bad_argument_is_refused(
    logits: tuple[int, ...], targets: tuple[int, ...], options: dict[str, float], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        cross_entropy(torch.zeros(logits), torch.zeros(targets, dtype=torch.int64), **options)


@pytest.mark.parametrize("target", [5, -1])
def test_a_target_outside_the_vocabulary_is_refused(target: int) -> None:
    with pytest.raises(TokenError, match=f"a target is {target}, expected one from 0 to V - 1 = 4, or -100"):
        cross_entropy(torch.zeros(2, 5), torch.tensor([0, target]))


def test_perplexity_and_bits_of_a_loss() -> None:
    assert perplexity(math.log(50)).item() == pytest.approx(50, rel=1e-14)
    assert bits_per_character(math.log(2)).item() == pytest.approx(1, rel=1e-14)
    assert bits_per_character(torch.tensor(math.log(2)), 0.5).item() == pytest.approx(0.5)
