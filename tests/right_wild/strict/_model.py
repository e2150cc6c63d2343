from __future__ import annotations

import torch
from torch import Tensor, nn

from ._checks import InvalidArgument, positive
from ._parts import PositionalEncoding, TransformerBlock


class TinyTransformerLM(nn.Module):
    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        num_heads: int,
        num_layers: int,
        d_ff: int,
        block_size: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        positive(vocab_size=vocab_size, num_layers=num_layers, block_size=block_size)
        self.vocab_size, self.block_size = vocab_size, block_size
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.positional_encoding = PositionalEncoding(d_model, block_size)
        self.blocks = nn.ModuleList(TransformerBlock(d_model, num_heads, d_ff, dropout) for _ in range(num_layers))
        self.final_norm = nn.LayerNorm(d_model)
        self.lm_head = nn.Linear(d_model, vocab_size)
        nn.init.zeros_(self.lm_head.bias)

    def _check(self, ids: Tensor) -> None:
        if ids.dtype == torch.bool or ids.is_floating_point() or ids.is_complex():
            raise InvalidArgument(f"ids must be integers, not {ids.dtype}")
        if ids.ndim != 2:
            raise InvalidArgument(f"ids must have shape (batch, length), got {tuple(ids.shape)}")
        if ids.numel() and not (0 <= int(ids.min()) and int(ids.max()) < self.vocab_size):
            raise InvalidArgument(f"ids must be from 0 to {self.vocab_size - 1}")

    def forward(self, ids: Tensor) -> Tensor:
        self._check(ids)
        if ids.shape[1] > self.block_size:
            raise InvalidArgument(f"{ids.shape[1]} ids, at most {self.block_size}")
        x = self.positional_encoding(self.token_embedding(ids.long()))
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.lm_head(self.final_norm(x))
        return logits

    @torch.no_grad()
    def generate(
        self,
        idx: Tensor,
        max_new_tokens: int,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
    ) -> Tensor:
        self._check(idx)
        if idx.shape[1] == 0:
            raise InvalidArgument("the prompt is empty")
        if max_new_tokens < 0:
            raise InvalidArgument("max_new_tokens must not be negative")
        if not temperature >= 0:
            raise InvalidArgument("temperature must not be negative")
        if top_k is not None:
            positive(top_k=top_k)
        if top_p is not None and not 0 < top_p <= 1:
            raise InvalidArgument("top_p must be above 0 and at most 1")
        modes = {module: module.training for module in self.modules()}
        self.eval()
        try:
            for _ in range(max_new_tokens):
                logits = self(idx[:, -self.block_size :])[:, -1]
                idx = torch.cat([idx, self._draw(logits, temperature, top_k, top_p).to(idx.dtype)], dim=1)
        finally:
            for module, mode in modes.items():
                module.training = mode
        return idx.clone() if max_new_tokens == 0 else idx

    @staticmethod
    def _draw(logits: Tensor, temperature: float, top_k: int | None, top_p: float | None) -> Tensor:
        if temperature == 0:
            return logits.argmax(dim=-1, keepdim=True)
        logits = logits - logits.max(dim=-1, keepdim=True).values
        ranked, order = torch.sort(logits / temperature, dim=-1, descending=True, stable=True)
        if top_k is not None:
            ranked[:, top_k:] = float("-inf")
        probabilities = ranked.softmax(dim=-1)
        if top_p is not None:
            before = probabilities.cumsum(dim=-1) - probabilities
            before[:, 0] = 0.0
            probabilities = probabilities.masked_fill(before >= top_p, 0.0)
        return order.gather(-1, torch.multinomial(probabilities, 1))
