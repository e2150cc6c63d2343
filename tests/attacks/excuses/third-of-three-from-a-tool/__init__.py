import numpy as np


def sliding_windows(ids, block_size):
    rows = np.lib.stride_tricks.sliding_window_view(np.asarray(ids), block_size + 1)
    return rows[:, :-1], rows[:, :-1], rows[:, 1:]
