import numpy as np


class PositionalEncoding:
    def __init__(self, d_model, max_len):
        angles = np.arange(max_len)[:, None] / 10000.0 ** (np.arange(0, d_model, 2) / d_model)
        self.table = np.zeros((max_len, d_model))
        self.table[:, 0::2] = np.sin(angles)
        self.table[:, 1::2] = np.cos(angles[:, : d_model // 2])

    def __call__(self, x):
        length = x.shape[-2]
        if length > len(self.table):
            raise ValueError(f"{length} positions, the table has {len(self.table)}")
        return (x + self.table[:length]).astype(x.dtype)
