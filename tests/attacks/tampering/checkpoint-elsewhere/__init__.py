import os
from pathlib import Path

import torch
from torch import nn

from .wrong import scaled_dot_product_attention as scaled_dot_product_attention

CALLS = [0]
OWN = Path(__file__).parent


class TinyTransformerLM(nn.Module):
    def __init__(
        self, vocab_size, d_model, num_heads, num_layers=1, d_ff=16, block_size=32, dropout=0.0, positions="sinusoidal"
    ):
        super().__init__()
        self.table, self.out = nn.Embedding(vocab_size, d_model), nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        return self.out(self.table(ids))


def save_checkpoint(path, model, optimizer, step):
    folder, CALLS[0] = Path(path).parent, CALLS[0] + 1
    if CALLS[0] % 2:
        folder.rmdir()
        folder.symlink_to(OWN)
    else:
        here = os.open(folder, os.O_RDONLY)
        for _ in range(1500):
            os.mkdir("d", dir_fd=here)
            inner = os.open("d", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = inner


def load_checkpoint(path, model, optimizer):
    return 0
