"""What constructors and calls refuse, always naming what they got and what they wanted."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from conformkit.reference import (
    FeedForward,
    MultiHeadAttention,
    PositionalEncoding,
    SelfAttention,
    TinyTransformerLM,
    TransformerBlock,
)
from conformkit.reference.errors import RefusalError, SizeError
from conformkit.reference.sizes import evaluate
from conformkit.spec.variants import Variant

CONSTRUCTIONS: dict[str, tuple[Callable[[], object], tuple[str, ...]]] = {
    "heads-do-not-divide": (lambda: MultiHeadAttention(10, 3), ("d_model is 10", "num_heads = 3")),
    "heads-do-not-divide-in-a-block": (lambda: TransformerBlock(7, 8, 4), ("d_model is 7", "num_heads = 8")),
    "heads-do-not-divide-in-a-model": (lambda: TinyTransformerLM(9, 511, 8, 1, 4, 4), ("511", "8")),
    "no-heads": (lambda: MultiHeadAttention(8, 0), ("num_heads is 0", "at least 1")),
    "negative-heads": (lambda: MultiHeadAttention(8, -2), ("num_heads is -2",)),
    "no-width": (lambda: SelfAttention(0), ("d_model is 0",)),
    "no-key-width": (lambda: SelfAttention(4, d_k=0), ("d_k is 0",)),
    "no-hidden-width": (lambda: FeedForward(4, 0), ("d_ff is 0",)),
    "no-positions": (lambda: PositionalEncoding(4, 0), ("max_len is 0",)),
    "no-vocabulary": (lambda: TinyTransformerLM(0, 8, 2, 1, 4, 4), ("vocab_size is 0",)),
    "no-context": (lambda: TinyTransformerLM(9, 8, 2, 1, 4, 0), ("block_size is 0",)),
    "negative-depth": (lambda: TinyTransformerLM(9, 8, 2, -1, 4, 4), ("num_layers is -1",)),
    "dropout-below": (lambda: FeedForward(4, 8, -0.1), ("dropout is -0.1",)),
    "dropout-above": (lambda: MultiHeadAttention(4, 2, 1.1), ("dropout is 1.1",)),
    "dropout-nan": (lambda: FeedForward(4, 8, float("nan")), ("dropout is nan",)),
    "groups": (lambda: MultiHeadAttention(8, 4, variant=Variant(kv_heads="3")), ("num_heads is 4", "kv_heads = 3")),
    "odd-rotary": (lambda: MultiHeadAttention(6, 2, variant=Variant(positions="rotary")), ("3", "even")),
    "unprojected": (
        lambda: MultiHeadAttention(8, 2, variant=Variant(output_projection=False, head_width="3")),
        ("d_model is 8", "6"),
    ),
}

X = torch.zeros(2, 5, 6)
CALLS: dict[str, tuple[Callable[[], object], tuple[str, ...]]] = {
    "wide-attention": (lambda: MultiHeadAttention(8, 2)(X), ("(2, 5, 6)", "8")),
    "flat-attention": (lambda: MultiHeadAttention(6, 2)(X[0]), ("(5, 6)", "batch")),
    "wide-self-attention": (lambda: SelfAttention(8)(X), ("(2, 5, 6)", "8")),
    "wide-feed-forward": (lambda: FeedForward(8, 9)(X), ("(2, 5, 6)", "8")),
    "wide-encoding": (lambda: PositionalEncoding(8, 9)(X), ("(2, 5, 6)", "8")),
    "narrow-encoding": (lambda: PositionalEncoding(8, 9)(X[..., :1]), ("(2, 5, 1)", "8")),
    "wide-block": (lambda: TransformerBlock(8, 2, 9)(X), ("(2, 5, 6)", "8")),
    "long-encoding": (lambda: PositionalEncoding(6, 4)(X), ("5", "max_len = 4")),
    "long-encoding-of-one": (lambda: PositionalEncoding(6, 1)(X), ("5", "max_len = 1")),
    "long-learned": (lambda: PositionalEncoding(6, 1, variant=Variant(positions="learned"))(X), ("max_len = 1",)),
    "long-rotary": (lambda: PositionalEncoding(6, 4, variant=Variant(positions="rotary"))(X), ("max_len = 4",)),
    "wide-rotary": (lambda: PositionalEncoding(8, 9, variant=Variant(positions="none"))(X), ("(2, 5, 6)", "8")),
    "long-row": (lambda: model()(torch.zeros(1, 5, dtype=torch.int64)), ("5", "block_size = 4")),
    "long-rotary-row": (
        lambda: model(Variant(positions="rotary"))(torch.zeros(1, 5, dtype=torch.int64)),
        ("block_size = 4",),
    ),
    "unknown-id": (lambda: model()(torch.tensor([[0, 9]])), ("is 9", "8")),
    "negative-id": (lambda: model()(torch.tensor([[0, -1]])), ("is -1", "8")),
    "float-ids": (lambda: model()(torch.zeros(1, 2)), ("float32", "integer")),
    "boolean-ids": (lambda: model()(torch.ones(1, 2, dtype=torch.bool)), ("bool", "integer")),
    "flat-ids": (lambda: model()(torch.tensor([0, 1])), ("(2,)", "batch")),
}


def model(variant: Variant = Variant()) -> TinyTransformerLM:  # noqa: B008 - frozen
    return TinyTransformerLM(9, 8, 2, 1, 16, 4, variant=variant)


@pytest.mark.parametrize("case", CONSTRUCTIONS)
def test_a_bad_size_is_refused_at_construction(case: str) -> None:
    construct, words = CONSTRUCTIONS[case]
    with pytest.raises(SizeError) as caught:
        construct()
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize("case", CALLS)
def test_a_bad_input_is_refused_at_the_call(case: str) -> None:
    call, words = CALLS[case]
    with pytest.raises(RefusalError) as caught:
        call()
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_model_without_blocks_is_allowed() -> None:
    assert TinyTransformerLM(9, 8, 2, 0, 16, 4)(torch.tensor([[1, 2]])).shape == (1, 2, 9)


def test_a_refusal_keeps_its_facts() -> None:
    with pytest.raises(SizeError) as caught:
        FeedForward(4, 0)
    assert (caught.value.name, caught.value.got, caught.value.want) == ("d_ff", 0, "at least 1")


@pytest.mark.parametrize(
    ("expression", "want"),
    [("num_heads", 6), ("2", 2), ("num_heads // 3", 2), ("d_model // num_heads", 4), ("2 * d_model // num_heads", 8)],
)
def test_expressions_are_read_from_left_to_right(expression: str, want: int) -> None:
    assert evaluate(expression, d_model=24, num_heads=6) == want


def test_an_unknown_name_in_an_expression_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SizeError, match="'heads', expected one of d_model, num_heads"):
        evaluate("heads", d_model=24, num_heads=6)
