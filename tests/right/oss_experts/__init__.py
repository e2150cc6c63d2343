"""gpt-oss: the rows of gate and up alternate in one array, and each position gathers the matrices of its experts."""

import torch
from torch import nn


def swiglu(both, alpha=1.702, limit=7.0):
    glu, linear = both[..., 0::2].clamp(max=limit), both[..., 1::2].clamp(-limit, limit)
    return glu * torch.sigmoid(alpha * glu) * (linear + 1)


class MLPBlock(nn.Module):
    def __init__(self, hidden, inner, experts=6, active=4):
        super().__init__()
        if min(hidden, inner) < 1:
            raise ValueError(f"{hidden} features, {inner} hidden units: want at least 1")
        self.active = active
        self.router = nn.Linear(hidden, experts)
        self.gate_up = nn.Parameter(torch.randn(experts, 2 * inner, hidden) * hidden**-0.5)
        self.gate_up_bias = nn.Parameter(torch.zeros(experts, 2 * inner))
        self.down = nn.Parameter(torch.randn(experts, hidden, inner) * inner**-0.5)
        self.down_bias = nn.Parameter(torch.zeros(experts, hidden))

    def forward(self, x):
        best = self.router(x).topk(self.active, dim=-1)
        both = torch.einsum("...kfm,...m->...kf", self.gate_up[best.indices], x) + self.gate_up_bias[best.indices]
        given = (
            torch.einsum("...kmf,...kf->...km", self.down[best.indices], swiglu(both)) + self.down_bias[best.indices]
        )
        return (best.values.softmax(-1)[..., None] * given).sum(-2)
