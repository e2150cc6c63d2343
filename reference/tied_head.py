"""A head that shares the embedding matrix, and divides what it reads by √D.

    logits = (H / √D) Eᵀ

T5 1.0 starts embeddings with entries of size 1, so that unscaled logits would have a deviation of √D. Raffel et al.
2020, code (`shared_embedding_and_softmax_weights`).
"""

from __future__ import annotations

import math

from torch import Tensor, nn

__all__ = ["ScaledHead", "scaled"]


class ScaledHead(nn.Linear):
    """A linear map of what it reads, divided by the square root of its width.

    Shapes: (…, D) → (…, V)
    """

    def forward(self, x: Tensor) -> Tensor:
        """Map (…, D) to (…, V)."""
        return super().forward(x / math.sqrt(self.in_features))


def scaled(head: nn.Linear) -> ScaledHead:
    """Return such a head with the parameters of another one."""
    found = ScaledHead(head.in_features, head.out_features, bias=head.bias is not None)
    found.weight, found.bias = head.weight, head.bias
    return found
