"""A model that returns states; whoever wants logits multiplies them by the rows of its table."""

import torch
from torch import nn
from torch.nn import functional as F


class States(nn.Module):
    def __init__(self, symbols, width, heads, layers, inner, longest):
        super().__init__()
        self.longest = longest
        self.table = nn.Parameter(torch.randn(symbols, width) * 0.02)
        self.places = nn.Parameter(torch.randn(longest, width) * 0.02)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, heads, inner, 0.0, F.gelu, batch_first=True, norm_first=True)
            for _ in range(layers)
        )
        self.last = nn.LayerNorm(width)

    def forward(self, ids):
        length = ids.shape[1]
        if length > self.longest:
            raise ValueError(f"{length} symbols, of which at most {self.longest} are read")
        hidden = torch.ones(length, length, dtype=torch.bool, device=ids.device).triu(1)
        x = F.embedding(ids, self.table) + self.places[:length]
        for layer in self.layers:
            x = layer(x, src_mask=hidden)
        return self.last(x)
