"""No position embedding: a head's scores fall linearly with distance."""
import math

import torch
from torch import nn


def get_slopes(n):
    def power_of_2(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if math.log2(n).is_integer():
        return power_of_2(n)
    closest = 2 ** math.floor(math.log2(n))
    return power_of_2(closest) + get_slopes(2 * closest)[0::2][: n - closest]


class ALiBiAttention(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.n_head = n_head
        self.qkv_proj = nn.Linear(n_embd, 3 * n_embd)
        self.out_proj = nn.Linear(n_embd, n_embd)
        self.register_buffer("slopes", torch.tensor(get_slopes(n_head)))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv_proj(x).reshape(B, T, 3, self.n_head, -1).permute(2, 0, 3, 1, 4).unbind(0)
        pos = torch.arange(T, device=x.device)
        distance = (pos[None, :] - pos[:, None]).to(x.dtype)  # 0 on the diagonal, negative for the past
        bias = self.slopes.to(x.dtype)[:, None, None] * distance
        att = q @ k.transpose(-1, -2) / math.sqrt(C // self.n_head) + bias
        att = att.masked_fill(pos[None, :] > pos[:, None], float("-inf"))
        out = att.softmax(-1) @ v
        return self.out_proj(out.transpose(1, 2).reshape(B, T, C))
