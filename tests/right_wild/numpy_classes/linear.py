import numpy as np


class Linear:
    """y = x W + b, W of shape (inputs, outputs)."""

    def __init__(self, inputs, outputs, bias=True):
        if inputs < 1 or outputs < 1:
            raise ValueError("sizes must be positive")
        bound = inputs**-0.5
        self.W = np.random.uniform(-bound, bound, (inputs, outputs))
        self.b = np.zeros(outputs) if bias else None

    def __call__(self, x):
        if x.shape[-1] != self.W.shape[0]:
            raise ValueError(f"got width {x.shape[-1]}, expected {self.W.shape[0]}")
        y = x @ self.W
        return y if self.b is None else y + self.b
