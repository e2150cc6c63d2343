"""A language model whose positions are numbered on the CPU in each call."""

import torch
from torch import nn


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size):
        super().__init__()
        self.words, self.places = nn.Embedding(vocab_size, d_model), nn.Embedding(block_size, d_model)
        layer = nn.TransformerEncoderLayer(d_model, num_heads, d_ff, 0.0, batch_first=True, norm_first=True)
        self.layers, self.head = nn.TransformerEncoder(layer, num_layers), nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        hidden = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool, device=ids.device).triu(1)
        return self.head(self.layers(x, mask=hidden))
