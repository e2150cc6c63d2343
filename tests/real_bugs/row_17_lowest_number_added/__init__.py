"""A function that adds the lowest number of the format, twice where two masks meet."""

import math

import torch


def scaled_dot_product_attention(q, k, v, mask=None):
    scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)
    if mask is not None:
        lowest = torch.finfo(scores.dtype).min
        if mask.dtype == torch.bool:
            mask = scores.new_zeros(mask.shape).masked_fill(~mask, lowest)
            scores = scores + mask
        scores = scores + mask
    return torch.softmax(scores, dim=-1) @ v
