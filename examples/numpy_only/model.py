import numpy as np

from .attention import random_matrix, softmax
from .layers import LayerNorm, PositionalEncoding, TransformerBlock


class TinyTransformerLM:
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        if vocab_size < 1 or num_layers < 0:
            raise ValueError(f"vocab_size = {vocab_size} or num_layers = {num_layers} is too small")
        self.vocab_size, self.block_size = vocab_size, block_size
        self.embedding = np.random.standard_normal((vocab_size, d_model))
        self.positions = PositionalEncoding(d_model, block_size)
        self.blocks = [TransformerBlock(d_model, num_heads, d_ff, dropout) for _ in range(num_layers)]
        self.norm = LayerNorm(d_model)
        self.W_head = random_matrix(d_model, vocab_size)
        self.b_head = np.zeros(vocab_size)

    def __call__(self, ids):
        ids = np.asarray(ids)
        if ids.ndim != 2 or not np.issubdtype(ids.dtype, np.integer):
            raise TypeError(f"ids are {ids.dtype} of shape {ids.shape}, expected integers (batch, positions)")
        if ids.size and (ids.min() < 0 or ids.max() >= self.vocab_size):
            raise IndexError(f"ids lie in {ids.min()} … {ids.max()}, expected 0 … {self.vocab_size - 1}")
        x = self.positions(self.embedding[ids])  # (B, T, D)
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.W_head + self.b_head  # (B, T, V)

    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None, top_p=None):
        if idx.shape[1] == 0 or max_new_tokens < 0:
            raise ValueError(f"cannot add {max_new_tokens} ids to a prompt of {idx.shape[1]}")
        if not temperature >= 0 or (top_k is not None and top_k < 1) or not (top_p is None or 0 < top_p <= 1):
            raise ValueError(f"bad options: temperature {temperature}, top_k {top_k}, top_p {top_p}")
        for _ in range(max_new_tokens):
            logits = self(idx[:, -self.block_size :])[:, -1]
            new = np.array([pick(row, temperature, top_k, top_p) for row in logits], dtype=idx.dtype)
            idx = np.concatenate([idx, new[:, None]], axis=1)
        return idx


def pick(logits, temperature, top_k, top_p):
    """Draw one id from one row of logits."""
    if temperature == 0:
        return logits.argmax()
    order = np.argsort(-logits, kind="stable")[:top_k]
    probabilities = softmax((logits[order] - logits.max()).astype(float) / temperature)
    if top_p is not None:
        count = np.searchsorted(probabilities.cumsum(), top_p) + 1  # up to and including the id that reaches p
        order, probabilities = order[:count], probabilities[:count]
    return np.random.choice(order, p=probabilities / probabilities.sum())
