"""Scores that fall with distance: ALiBi as published is read off, other slopes are a mistake, learned ones are open."""

from __future__ import annotations

import pytest

from .test_reading import choices, read, told

__all__ = ["read"]

NOWHERE = (
    ("self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))", "self.wte(idx)"),
    (", nn.Embedding(block_size, d_model)", ""),
    ("self.wte, self.wpe =", "self.wte ="),
)
SLOPES = "2.0 ** (-8.0 * torch.arange(FIRST, self.heads + FIRST) / self.heads)"
BIAS = """hidden = torch.ones(T, T, dtype=torch.bool).triu(1)
        apart = (torch.arange(T)[:, None] - torch.arange(T)).clamp(min=0)
        scores = scores - (SLOPES)[:, None, None].to(x.dtype) * apart"""
WRITTEN_OUT = ("hidden = torch.ones(T, T, dtype=torch.bool).triu(1)", BIAS)
FUSED = (
    ("scores = scores - (", "bias = -("),
    ("weights = scores.masked_fill(hidden, -math.inf).softmax(dim=-1)\n        y = (weights @ v)",
     "y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.masked_fill(hidden, -math.inf))"),
)  # fmt: skip
LEARNED = (
    ("self.heads = num_heads", "self.heads = num_heads; self.slopes = nn.Parameter(torch.ones(num_heads))"),
    WRITTEN_OUT,
    ("SLOPES", "self.slopes"),
)


def alibi(first, *further):
    return *NOWHERE, WRITTEN_OUT, ("SLOPES", SLOPES.replace("FIRST", str(first))), *further


@pytest.mark.parametrize("form", [(), FUSED], ids=["written-out", "fused"])
def test_published_slopes_are_read_off(read, form):
    """Catches slopes that are not seen, so that all variants are searched for them."""
    reading = read(*alibi(1, *form))
    assert told(reading) == reading.open == []
    assert choices(reading).items() >= {"positions": "alibi"}.items()


@pytest.mark.parametrize("form", [(), FUSED], ids=["written-out", "fused"])
def test_other_slopes_are_a_mistake_and_the_rest_stays_explained(read, form):
    """Catches slopes that begin one too early and leave the whole of attention unexplained."""
    reading = read(*alibi(0, *form))
    says = "scores fall by 1, 0.25, 0.0625, 0.0156 a position of distance; expected 0.25, 0.0625, 0.0156, 0.00391"
    assert [text.partition(": ")[2] for text in told(reading)] == [f"{says}, ALiBi's slopes"] * 2
    assert reading.conclusive
    assert choices(reading).items() >= {"positions": "alibi"}.items()


def test_learned_slopes_are_left_open(read):
    """Catches a choice of its author's that is called a mistake since its numbers are not the published ones."""
    reading = read(*NOWHERE, *LEARNED)
    assert reading.findings == []
    assert any("no softmax of the scores" in text for text in reading.open)


@pytest.mark.parametrize(
    ("mask", "says"), [("hidden.T", "earlier positions hidden"), ("hidden | hidden.T.roll(-2, 1).tril(-3)", None)]
)
def test_a_mask_of_numbers_that_falls_with_nothing_is_no_alibi(read, mask, says):
    """Catches ALiBi with slopes of 0 where a fused kernel gets a mask of another form, such as a window."""
    fused = (
        "weights = scores.masked_fill(hidden, -math.inf).softmax(dim=-1)\n        y = (weights @ v)",
        f"y = F.scaled_dot_product_attention(q, k, v, attn_mask=~({mask}))",
    )
    reading = read(fused)
    assert "alibi" not in reading.choices["positions"]
    assert [text for text in told(reading) if "scores fall" in text] == []
    assert says is None or any(says in text for text in told(reading))
