from .activations import gelu
from .linear import Linear


class FeedForward:
    def __init__(self, d_model, d_ff, dropout=0.0):
        self.up, self.down = Linear(d_model, d_ff), Linear(d_ff, d_model)

    def __call__(self, x):
        return self.down(gelu(self.up(x)))
