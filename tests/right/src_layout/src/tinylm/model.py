import torch
from torch import nn

from .block import TransformerBlock
from .layers.positions import PositionalEncoding
from .sampling import choose


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        super().__init__()
        self.block_size = block_size
        self.body = nn.Sequential(
            nn.Embedding(vocab_size, d_model),
            PositionalEncoding(d_model, block_size),
            *(TransformerBlock(d_model, num_heads, d_ff, dropout) for _ in range(num_layers)),
            nn.LayerNorm(d_model),
            nn.Linear(d_model, vocab_size),
        )

    def forward(self, idx):
        return self.body(idx)

    @torch.no_grad()
    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None, top_p=None):
        flags = [m.training for m in self.modules()]
        self.eval()
        for _ in range(max_new_tokens):
            logits = self(idx[:, -self.block_size :])[:, -1]
            idx = torch.cat([idx, choose(logits, temperature, top_k, top_p)], 1)
        for m, f in zip(self.modules(), flags):
            m.training = f
        return idx
