"""Two pieces for a class: a position-wise net and a post-norm encoder block with the norm as a function."""
import torch
import torch.nn.functional as F
from torch import nn


class PositionWiseFFN(nn.Module):
    def __init__(self, *, width, inner, p_drop=0.0):
        super().__init__()
        self.expand = nn.Linear(width, inner)
        self.contract = nn.Linear(inner, width)
        self.p_drop = p_drop

    def forward(self, x):
        h = F.dropout(F.relu(self.expand(x)), self.p_drop, self.training)
        return self.contract(h)


class EncoderBlock(nn.Module):
    def __init__(self, *, width, heads, inner, p_drop=0.0):
        super().__init__()
        self.width, self.heads = width, heads
        self.attention = nn.MultiheadAttention(width, heads, dropout=p_drop, batch_first=True)
        self.ffn = PositionWiseFFN(width=width, inner=inner, p_drop=p_drop)
        self.gain1 = nn.Parameter(torch.ones(width))
        self.offset1 = nn.Parameter(torch.zeros(width))
        self.gain2 = nn.Parameter(torch.ones(width))
        self.offset2 = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        a, _ = self.attention(x, x, x, need_weights=False)
        x = F.layer_norm(x + a, (self.width,), self.gain1, self.offset1)
        return F.layer_norm(x + self.ffn(x), (self.width,), self.gain2, self.offset2)
