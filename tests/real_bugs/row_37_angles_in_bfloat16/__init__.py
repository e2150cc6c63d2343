"""Positions and frequencies are computed in the model's format."""

import torch

import right_code


class MultiHeadAttention(right_code.ModernAttention):
    def angles(self, start, rows):
        times = torch.arange(start, start + rows.shape[2], device=rows.device).to(rows.dtype)
        features = torch.arange(0, self.head_width, 2, device=rows.device).to(rows.dtype)
        return torch.outer(times, self.base ** -(features / self.head_width))
