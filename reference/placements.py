"""Where a block has its norms, beyond before and after the sublayers.

    deepnorm:            x' = N₁(α x + A(x))           y = N₂(α x' + F(x'))        α = (2L)^(1/4), L the model's layers
    sandwich:            x' = x + N₁'(A(N₁(x)))        y = x' + N₂'(F(N₂(x')))
    output:              x' = x + N₁(A(x))             y = x' + N₂(F(x'))
    parallel:            y = x + A(N₁(x)) + F(N₁(x))
    parallel_two_norms:  y = x + A(N₁(x)) + F(N₂(x))

Wang et al. 2022, §3; Gemma 2; OLMo 2; GPT-J; GPT-NeoX. In all but the first the stream x itself is never normalized.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast

from conformkit.reference.norms import norm_for

if TYPE_CHECKING:
    from torch import Tensor, nn

    from conformkit.spec.variants import Variant

__all__ = ["Arranged", "arrange_norms", "arranged"]


class Arranged(Protocol):
    """What such a block has: a feed-forward network, a norm, and more norms, by the names that the definition uses."""

    placement: str
    layers: int

    @property
    def feed_forward(self) -> nn.Module:
        """Its feed-forward network."""
        ...

    @property
    def norm1(self) -> nn.Module:
        """Its first norm."""
        ...

    def get_submodule(self, target: str) -> nn.Module:
        """Return a part by its name."""
        ...


def arrange_norms(block: nn.Module, d_model: int, variant: Variant) -> None:
    """Give a block the norms that its placement has besides the first two, or take the second one away."""
    if variant.placement == "sandwich":
        block.norm1_after = norm_for(d_model, variant)
        block.norm2_after = norm_for(d_model, variant)
    elif variant.placement == "parallel":
        del block.norm2


def arranged(block: Arranged, x: Tensor, attend: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the output of such a block, whose attention is handed in: (B, T, D) → (B, T, D)."""
    norm1, feed = block.norm1, block.feed_forward
    if block.placement == "parallel":
        read = norm1(x)  # (B, T, D)
        return cast("Tensor", x + attend(read) + feed(read))
    norm2 = block.get_submodule("norm2")
    if block.placement == "deepnorm":
        alpha = (2 * block.layers) ** 0.25
        x = norm1(alpha * x + attend(x))
        return cast("Tensor", norm2(alpha * x + feed(x)))
    if block.placement == "parallel_two_norms":
        return cast("Tensor", x + attend(norm1(x)) + feed(norm2(x)))
    if block.placement == "output":
        x = x + norm1(attend(x))
        return cast("Tensor", x + norm2(feed(x)))
    after1, after2 = block.get_submodule("norm1_after"), block.get_submodule("norm2_after")
    x = x + after1(attend(norm1(x)))
    return cast("Tensor", x + after2(feed(norm2(x))))
