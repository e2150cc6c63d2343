"""One function: a mask of all positions is cut to those that there are, keys are read in a loop, `view` refuses strided inputs."""

import math

import torch


def scaled_dot_product_attention(q, k, v, mask=None):
    q = q.view(-1, *q.shape[-2:]).view(q.shape)
    total, top = q.new_zeros(*q.shape[:-1], v.size(-1)), torch.full((*q.shape[:-1], 1), -math.inf).to(q)
    weight = torch.zeros_like(top)
    if mask is not None:
        mask = mask[..., : q.size(-2), : k.size(-2)]
        mask = q.new_zeros(mask.shape).masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else mask
        mask = mask.expand(*q.shape[:-1], k.size(-2)).to(q)
    for j in range(k.size(-2)):
        score = (q * k[..., j : j + 1, :]).sum(-1, keepdim=True) / math.sqrt(q.size(-1))
        if mask is not None:
            score = score + mask[..., j : j + 1]
        new = torch.maximum(top, score)
        safe = torch.where(torch.isneginf(new), torch.zeros_like(new), new)
        old, one = torch.exp(top - safe), torch.exp(score - safe)
        total, weight = total * old + one * v[..., j : j + 1, :], weight * old + one
        top = new
    return total / torch.where(weight > 0, weight, torch.ones_like(weight))
