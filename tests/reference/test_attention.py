"""Attention where the formula is undefined or number formats overflow."""

from __future__ import annotations

import pytest
import torch

from conformkit.reference import MultiHeadAttention, causal_mask, padding_mask, scaled_dot_product_attention
from conformkit.reference.errors import DtypeError, RefusalError, ShapeError
from conformkit.reference.masks import combine_masks

HALVES = [torch.float16, torch.bfloat16]


def qkv(*leading: int, queries: int = 3, keys: int = 5, d_k: int = 4, d_v: int = 6) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(7)
    shapes = (queries, d_k), (keys, d_k), (keys, d_v)
    return tuple(torch.randn(*leading, *s, dtype=torch.float64, generator=generator) for s in shapes)


@pytest.mark.parametrize("kind", ["boolean", "float"])
def test_a_query_that_sees_no_key_gives_zero_and_finite_gradients(kind: str) -> None:
    q, k, v = (t.requires_grad_() for t in qkv(2))
    may = torch.tensor([[True] * 5, [False] * 5, [True, False, True, False, True]])
    mask = may if kind == "boolean" else torch.zeros(3, 5).masked_fill(~may, float("-inf"))
    y = scaled_dot_product_attention(q, k, v, mask)
    y.sum().backward()
    assert (y[:, 1] == 0).all()
    for tensor in (q, k, v):
        assert tensor.grad is not None
        assert tensor.grad.isfinite().all()
    assert q.grad is not None
    assert (q.grad[:, 1] == 0).all()
    assert (q.grad[:, 0] != 0).any()


def test_no_keys_at_all_give_zeros() -> None:
    q, k, v = qkv(2, keys=0)
    assert torch.equal(scaled_dot_product_attention(q, k, v), torch.zeros(2, 3, 6, dtype=torch.float64))


@pytest.mark.parametrize("dtype", HALVES, ids=["float16", "bfloat16"])
def test_half_precision_stays_finite_over_2048_positions(dtype: torch.dtype) -> None:
    q, k, v = (30 * t.to(dtype) for t in qkv(1, queries=2048, keys=2048, d_k=16))
    y = scaled_dot_product_attention(q, k, v, causal_mask(2048))
    assert y.dtype == dtype
    assert y.isfinite().all()


def test_a_mask_may_have_another_float_type() -> None:
    q, k, v = (t.float() for t in qkv(2))
    bias = torch.randn(3, 5, dtype=torch.float64)
    y = scaled_dot_product_attention(q, k, v, bias)
    assert y.dtype == torch.float32
    torch.testing.assert_close(y, scaled_dot_product_attention(q, k, v, bias.float()))


def test_leading_axes_broadcast() -> None:
    q, k, v = qkv(2, 3)
    y = scaled_dot_product_attention(q, k[:, :1], v[:, :1])
    want = scaled_dot_product_attention(q, k[:, :1].expand_as(k), v[:, :1].expand_as(v))
    torch.testing.assert_close(y, want)


@pytest.mark.parametrize(
    ("changed", "error", "numbers"),
    [
        ({"k": torch.zeros(2, 5, 7)}, ShapeError, ("4", "7")),
        ({"v": torch.zeros(2, 8, 6)}, ShapeError, ("5", "8")),
        ({"mask": torch.ones(3, 4, dtype=torch.bool)}, ShapeError, ("(3, 4)", "(2, 3, 5)")),
        ({"mask": torch.ones(2, 1, 3, 5, dtype=torch.bool)}, ShapeError, ("(2, 1, 3, 5)", "(2, 3, 5)")),
        ({"mask": torch.ones(3, 5, dtype=torch.int64)}, DtypeError, ("int64",)),
        ({"q": torch.zeros(4)}, ShapeError, ("(4,)",)),
    ],
    ids=["widths", "lengths", "mask-too-small", "mask-enlarges", "mask-of-integers", "one-axis"],
)
def test_what_does_not_fit_is_refused_with_its_numbers(
    changed: dict[str, torch.Tensor], error: type[RefusalError], numbers: tuple[str, ...]
) -> None:
    arguments = dict(zip("qkv", (t.float() for t in qkv(2)), strict=True)) | changed
    with pytest.raises(error) as caught:
        scaled_dot_product_attention(**arguments)
    assert all(number in str(caught.value) for number in numbers)


def test_the_causal_mask_puts_fewer_queries_last() -> None:
    assert torch.equal(causal_mask(2, 5), causal_mask(5)[3:])
    assert causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]


def test_combined_masks_hide_what_either_hides() -> None:
    may = causal_mask(3)
    bias = torch.tensor([0.5, float("-inf"), 0.0])
    assert combine_masks(None, None) is None
    assert torch.equal(combine_masks(may, bias).isneginf(), ~may | bias.isneginf())  # type: ignore[union-attr]
    assert torch.equal(combine_masks(may, ~may), torch.zeros(3, 3, dtype=torch.bool))  # type: ignore[arg-type]


def test_padding_is_invisible_to_every_head() -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(6, 3, causal=False).double()
    ids = torch.tensor([[4, 5, 0, 0], [3, 2, 6, 0]])
    x = torch.randn(2, 4, 6, dtype=torch.float64)
    padded = attention(x, padding_mask(ids))
    torch.testing.assert_close(padded[0, :2], attention(x[:1, :2])[0])
    torch.testing.assert_close(padded[1, :3], attention(x[1:, :3])[0])


def test_a_mask_that_could_be_a_batch_or_heads_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"\(3, 4, 4\)"):
        MultiHeadAttention(6, 3)(torch.zeros(3, 4, 6), torch.ones(3, 4, 4, dtype=torch.bool))
