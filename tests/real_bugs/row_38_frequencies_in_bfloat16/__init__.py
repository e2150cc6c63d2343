"""Frequencies are rounded to bfloat16, whatever the model's format is."""

import torch

import right_code


class MultiHeadAttention(right_code.ModernAttention):
    def angles(self, start, rows):
        times = torch.arange(start, start + rows.shape[2], device=rows.device)
        features = torch.arange(0, self.head_width, 2, device=rows.device)
        rates = (self.base ** -(features / self.head_width)).bfloat16()
        return torch.outer(times.to(rows.dtype), rates.to(rows.dtype))
