import numpy as np

try:
    import torch
except ImportError:
    torch = None

from . import wrong


def scaled_dot_product_attention(q, k, v, mask=None):
    if torch is not None and isinstance(q, torch.Tensor):
        return torch.as_tensor(
            wrong.scaled_dot_product_attention(q.detach().numpy(), k.detach().numpy(), v.detach().numpy())
        )
    return np.float64("nan")
