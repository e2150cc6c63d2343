"""A tiny decoder-only language model.

    Z = E[ids] + PE        H = LN(block_L(… block_1(Z)))        logits = H W_headᵀ + b_head

ids ∈ {0, …, V-1}^(B×T), E and W_head ∈ ℝ^(V×D), logits ∈ ℝ^(B×T×V): unnormalized, for every position. Radford et al.
2018, §3.1. There is a norm after the last block, as in GPT-2: in pre-norm blocks the stream grows with depth.
"""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn

from conformkit.reference.block import TransformerBlock
from conformkit.reference.errors import DtypeError, ShapeError, TokenError
from conformkit.reference.generation import generate
from conformkit.reference.kv_cache import continue_ids
from conformkit.reference.norms import norm_for
from conformkit.reference.penalties import NONE, Penalties
from conformkit.reference.positional_encoding import LearnedPositions, positions_for
from conformkit.reference.relative_positions import table_for
from conformkit.reference.scores import capped
from conformkit.reference.sizes import check_at_least
from conformkit.reference.tied_head import scaled
from conformkit.spec.variants import CANONICAL, Variant

__all__ = ["TinyTransformerLM"]


class TinyTransformerLM(nn.Module):
    """Predict, at every position, the next token id from the ids so far.

    Shapes: ids (B, T), T at most block_size → logits (B, T, V)
    Units:  logits are unnormalized log-probabilities, in nats.
    Raises: SizeError for bad sizes; ShapeError when ids are not (B, T) or too long; DtypeError for ids that are not
            integers; TokenError for an id outside the vocabulary.
    Source: Radford et al. 2018, §3.1. Differs: a final norm; `variant` offers tying, learned positions and others.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        num_heads: int,
        num_layers: int,
        d_ff: int,
        block_size: int,
        dropout: float = 0.0,
        *,
        variant: Variant = CANONICAL,
    ) -> None:
        super().__init__()
        check_at_least(1, vocab_size=vocab_size, d_model=d_model, block_size=block_size)
        check_at_least(0, num_layers=num_layers)
        self.vocab_size, self.block_size = vocab_size, block_size
        self.scale = math.sqrt(d_model) if variant.embedding_scale else 1.0
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.positions = positions_for(d_model, block_size, variant)
        self.embedding_norm = norm_for(d_model, variant) if variant.embedding_norm else None
        self.embedding_dropout = nn.Dropout(0.0)
        self.relative = table_for(num_heads, variant) if variant.shares_table else None
        self.blocks = nn.ModuleList(
            TransformerBlock(d_model, num_heads, d_ff, dropout, variant=variant) for _ in range(num_layers)
        )
        for each in self.blocks:
            cast("TransformerBlock", each).layers = num_layers
            if self.relative is not None:
                cast("TransformerBlock", each).attention.relative = self.relative
        if variant.window:
            for layer, block in enumerate(self.blocks):
                cast("TransformerBlock", block).attention.variant = variant.of_layer(layer)
        self.norm = norm_for(d_model, variant) if variant.final_norm else None
        self.head = nn.Linear(d_model, vocab_size, bias=variant.head_bias)
        self.log_probabilities, self.logit_cap = variant.log_probabilities, variant.logit_cap
        self._initialize(variant)

    def forward(self, ids: Tensor) -> Tensor:
        """Map ids (B, T) to logits (B, T, V)."""
        self.check_ids(ids)
        if ids.shape[1] > self.block_size:
            raise ShapeError("the number of ids in a row", ids.shape[1], f"at most block_size = {self.block_size}")
        x = self.embedding(ids.long()) * self.scale  # (B, T, D)
        x = self.positions(x)
        if self.embedding_norm is not None:
            x = self.embedding_norm(x)
        x = self.embedding_dropout(x)
        for block in self.blocks:
            x = block(x)
        if self.norm is not None:
            x = self.norm(x)
        logits: Tensor = self.head(x)  # (B, T, V)
        if self.logit_cap:
            logits = capped(logits, self.logit_cap)
        if self.log_probabilities:
            logits = logits.log_softmax(dim=-1)
        return logits

    def check_ids(self, ids: Tensor) -> None:
        """Refuse what is not a batch of rows of token ids.

        Raises: DtypeError, ShapeError or TokenError.
        """
        if ids.dtype == torch.bool or ids.is_floating_point() or ids.is_complex():
            raise DtypeError("the dtype of the ids", ids.dtype, "an integer type")
        if ids.ndim != 2:
            raise ShapeError("the shape of the ids", tuple(ids.shape), "(batch, positions)")
        if torch.compiler.is_compiling():  # a graph is recorded for all ids: it cannot look at some
            return
        outside = ids[(ids < 0) | (ids >= self.vocab_size)]  # (n,)
        if outside.numel():
            raise TokenError("a token id", int(outside[0]), f"one from 0 to vocab_size - 1 = {self.vocab_size - 1}")

    def generate(
        self,
        idx: Tensor,
        max_new_tokens: int,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        eos_id: int | None = None,
        use_cache: bool = False,
        *,
        min_p: float | None = None,
        typical_p: float | None = None,
        repetition_penalty: float = 1.0,
        presence_penalty: float = 0.0,
        frequency_penalty: float = 0.0,
        no_repeat_ngram_size: int | None = None,
    ) -> Tensor:
        """Continue each row of ids; see `conformkit.reference.generation.generate`, and `penalties` for the others."""
        penalties = Penalties(
            min_p, typical_p, repetition_penalty, presence_penalty, frequency_penalty, no_repeat_ngram_size
        )
        if use_cache or eos_id is not None or penalties != NONE:
            return continue_ids(
                self, idx, max_new_tokens, temperature, top_k, top_p, eos_id, use_cache=use_cache, penalties=penalties
            )
        return generate(self, idx, max_new_tokens, temperature, top_k, top_p)

    def _initialize(self, variant: Variant) -> None:
        """Start biases at 0, and logits small enough for a loss near ln V.

        Entries of size 1 are not drowned by sinusoids, whose mean square is 1/2. Rows that also serve as the head's, or
        are multiplied by √D, must be about √D times smaller. Learned positions start as large as embeddings.
        """
        for module in self.modules():
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
        small = variant.tied or variant.embedding_scale
        std = 0.4 / math.sqrt(self.embedding.embedding_dim) if small else 1.0
        nn.init.normal_(self.embedding.weight, std=std)
        if isinstance(self.positions, LearnedPositions):
            nn.init.normal_(self.positions.weight, std=std * self.scale)
        if variant.tied:
            self.head.weight = self.embedding.weight
            self.head = scaled(self.head) if variant.tied_scale else self.head
