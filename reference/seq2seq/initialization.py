"""Where weights start.

    W ~ U(-a, a), a = √(6 / (fan_in + fan_out))        b = 0        E ~ N(0, σ²)

fan_in and fan_out are the extents of the matrix itself. Glorot & Bengio 2010, eq. 16. Norms start as the identity on
their own.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from conformkit.reference.positional_encoding import LearnedPositions

if TYPE_CHECKING:
    from conformkit.reference.seq2seq.encoder_decoder import EncoderDecoder
    from conformkit.spec.variants import Variant

__all__ = ["initialize", "xavier_uniform"]


@torch.no_grad()
def xavier_uniform(weight: Tensor) -> None:
    """Draw a matrix so that a layer keeps the size of what passes through it, forward and backward.

    Shapes: weight (out, in), written in place
    Source: Glorot & Bengio 2010, eq. 16.
    """
    fan_out, fan_in = weight.shape
    bound = math.sqrt(6.0 / (fan_in + fan_out))
    weight.uniform_(-bound, bound)


def initialize(model: EncoderDecoder, variant: Variant) -> None:
    """Start matrices by Xavier's rule, biases at 0, and embeddings and learned positions equally large.

    The first loss should be near ln V: an unshared head is drawn from ±1/√D, and rows that it shares, or that are
    multiplied by √D, start about √D times smaller. Rows of the pad id are 0 afterwards.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear):
            xavier_uniform(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    width = model.head.in_features
    nn.init.uniform_(model.head.weight, -1.0 / math.sqrt(width), 1.0 / math.sqrt(width))
    small = variant.tied or variant.embedding_scale
    std = 0.4 / math.sqrt(width) if small else 1.0
    scale = math.sqrt(width) if variant.embedding_scale else 1.0
    for embedding, positions in (
        (model.src_embedding, model.src_positions),
        (model.tgt_embedding, model.tgt_positions),
    ):
        embedding.initialize(std)
        if isinstance(positions, LearnedPositions):
            nn.init.normal_(positions.weight, std=std * scale)
