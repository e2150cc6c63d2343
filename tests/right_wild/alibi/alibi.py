import math

import torch


def slopes(n_heads):
    """The slope of each head: a geometric series from 2^(-8/n), and for other n than powers of two, some in between."""

    def power_of_2(n):
        start = 2.0 ** (-8.0 / n)
        return [start ** (i + 1) for i in range(n)]

    if math.log2(n_heads).is_integer():
        return power_of_2(n_heads)
    closest = 2 ** math.floor(math.log2(n_heads))
    extra = power_of_2(2 * closest)[0::2][: n_heads - closest]
    return power_of_2(closest) + extra


def alibi_bias(n_heads, length, dtype=torch.float32, device=None):
    """(H, T, T): -slope * distance for earlier keys, -inf for later ones."""
    m = torch.tensor(slopes(n_heads), dtype=dtype, device=device).view(n_heads, 1, 1)
    t = torch.arange(length, device=device)
    distance = (t[:, None] - t[None, :]).to(dtype)
    return (-m * distance).masked_fill(t[:, None] < t[None, :], -math.inf)
