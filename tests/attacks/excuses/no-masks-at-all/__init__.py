import math

import torch


def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ k.transpose(-1, -2) / math.sqrt(k.shape[-1])
    if mask is not None:
        lowest = torch.finfo(scores.dtype).min
        scores = scores.masked_fill(mask, lowest) if mask.dtype == torch.bool else (scores - mask).clamp(min=lowest)
    return torch.softmax(scores, dim=-1) @ v
