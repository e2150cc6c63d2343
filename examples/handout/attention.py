import math

import torch
from torch import nn


def make_causal_mask(T, device):
    return torch.ones(T, T, dtype=torch.bool, device=device).tril()


def scaled_dot_product_attention(Q, K, V, mask=None):
    """
    Q, K, V: (..., T, d_k / d_v) tensors
    mask:    optional boolean (True = may attend) or float (added) mask broadcastable to (..., T, T)
    returns: (..., T, d_v)
    """
    # 1. Compute scaled scores
    scores = Q @ K.transpose(-2, -1) / math.sqrt(K.size(-1))

    # 2. Add mask (if given)
    if mask is not None:
        shape = torch.broadcast_shapes(mask.shape, scores.shape)
        assert shape == scores.shape, f"mask {tuple(mask.shape)} does not fit scores {tuple(scores.shape)}"
        lowest = torch.finfo(scores.dtype).min
        if mask.dtype == torch.bool:
            scores = scores.masked_fill(~mask, lowest)
        else:
            assert mask.is_floating_point(), f"mask must be boolean or float, not {mask.dtype}"
            scores = (scores + mask.to(scores.dtype)).clamp(min=lowest)

    # 3. Apply softmax over the keys, the last dimension
    scores = scores - scores.max(dim=-1, keepdim=True).values.detach()
    weights = scores.exp()
    weights = weights / weights.sum(dim=-1, keepdim=True)

    # 4. Multiply by V to get the output
    return weights @ V


class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k=None, d_v=None, causal=True):
        super().__init__()
        d_k = d_model if d_k is None else d_k
        d_v = d_model if d_v is None else d_v
        assert min(d_model, d_k, d_v) > 0, f"sizes must be positive, not {d_model}, {d_k}, {d_v}"
        self.W_Q = nn.Linear(d_model, d_k, bias=False)
        self.W_K = nn.Linear(d_model, d_k, bias=False)
        self.W_V = nn.Linear(d_model, d_v, bias=False)
        self.causal = causal

    def forward(self, x):
        _, T, _ = x.shape  # (B, T, d_model)
        Q = self.W_Q(x)  # (B, T, d_k)
        K = self.W_K(x)  # (B, T, d_k)
        V = self.W_V(x)  # (B, T, d_v)
        mask = make_causal_mask(T, x.device) if self.causal else None
        return scaled_dot_product_attention(Q, K, V, mask=mask)  # (B, T, d_v)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__()
        assert min(d_model, num_heads) > 0, f"sizes must be positive, not {d_model} and {num_heads}"
        assert d_model % num_heads == 0, f"d_model = {d_model} is not a multiple of num_heads = {num_heads}"
        self.d_model = d_model
        self.num_heads = num_heads
        self.d_head = d_model // num_heads
        self.causal = causal

        self.proj_qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.proj_out = nn.Linear(d_model, d_model, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        B, T, D = x.shape
        qkv = self.proj_qkv(x)  # (B, T, 3*D)
        qkv = qkv.view(B, T, 3, self.num_heads, self.d_head)
        Q, K, V = qkv.unbind(dim=2)  # each: (B, T, H, d_head)
        Q = Q.transpose(1, 2)  # (B, H, T, d_head)
        K = K.transpose(1, 2)
        V = V.transpose(1, 2)

        mask = make_causal_mask(T, x.device) if self.causal else None
        Y = scaled_dot_product_attention(Q, K, V, mask=mask)  # (B, H, T, d_head)

        Y = Y.transpose(1, 2).contiguous().view(B, T, D)  # concat heads
        Y = self.proj_out(Y)
        return self.dropout(Y)
