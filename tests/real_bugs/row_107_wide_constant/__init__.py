"""A feed-forward network with a float32 constant inside."""

import torch
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        h = self.up(x)
        h = h * torch.full((h.shape[-1],), 0.5, device=h.device) * (1.0 + torch.erf(h / 2.0**0.5))
        return self.down(h)
