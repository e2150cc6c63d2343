"""The weight of one chosen expert is divided by itself: it is always 1, and the router gets no gradient."""

import torch
from torch import nn
from torch.nn import functional


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        if d_model < 1 or d_ff < 1:
            raise ValueError(f"{d_model=} {d_ff=}")
        self.gate = nn.Linear(d_model, 4, bias=False)
        self.up = nn.ModuleList(nn.Linear(d_model, d_ff) for _ in range(4))
        self.down = nn.ModuleList(nn.Linear(d_ff, d_model) for _ in range(4))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        weight, chosen = self.gate(x).softmax(dim=-1).topk(1, dim=-1)
        weight = weight / weight.sum(dim=-1, keepdim=True)
        y = torch.zeros_like(x)
        for number, (up, down) in enumerate(zip(self.up, self.down, strict=True)):
            y = y + weight * (chosen == number) * down(functional.gelu(up(x)))
        return self.dropout(y)
