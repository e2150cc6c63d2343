"""A float32 mask is added to scores of any format, and values are converted to fit."""

import math

import torch


def scaled_dot_product_attention(q, k, v, mask=None):
    scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)
    if mask is None:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device)
    if mask.dtype == torch.bool:
        mask = torch.zeros(mask.shape, dtype=torch.float32, device=q.device).masked_fill(~mask, -1e9)
    weights = torch.softmax(scores + mask, dim=-1)
    return weights @ v.to(weights.dtype)
