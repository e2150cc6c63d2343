"""A function whose masked scores are thrown away."""

import math

import torch


def scaled_dot_product_attention(q, k, v, mask=None):
    scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)
    if mask is not None:
        scores.masked_fill(~mask, -math.inf)
    return torch.softmax(scores, dim=-1) @ v
