import numpy as np
import torch
from torch import nn


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        table = np.array([[pos / 10000 ** (2 * (j // 2) / d_model) for j in range(d_model)] for pos in range(max_len)])
        table[:, 0::2] = np.sin(table[:, 0::2])
        table[:, 1::2] = np.cos(table[:, 1::2])
        self.encoding = torch.nn.Embedding.from_pretrained(torch.tensor(table), freeze=True)

    def forward(self, x):
        return x + self.encoding(torch.arange(x.shape[1], device=x.device)).to(x.dtype)
