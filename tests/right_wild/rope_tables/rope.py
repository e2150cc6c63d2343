import torch


def rope_tables(length: int, head_dim: int, base: float = 10_000.0, *, device=None, dtype=torch.float32):
    """cos and sin, (length, head_dim) each, the two halves alike."""
    inv_freq = base ** (-torch.arange(0, head_dim, 2, dtype=torch.float64, device=device) / head_dim)
    angle = torch.arange(length, dtype=torch.float64, device=device)[:, None] * inv_freq[None, :]
    angle = torch.cat((angle, angle), dim=-1)
    return angle.cos().to(dtype), angle.sin().to(dtype)


def rotate_half(x):
    x1, x2 = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


def apply_rope(x, cos, sin):
    """x (B, H, T, dh)"""
    return x * cos + rotate_half(x) * sin
