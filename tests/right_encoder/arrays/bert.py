import math

import numpy as np

_erf = np.vectorize(math.erf, otypes=[float])


class BertModel:
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, max_len, num_segments=2):
        if d_model % num_heads:
            raise ValueError(f"d_model = {d_model} is no multiple of num_heads = {num_heads}")
        self.heads, self.layers = num_heads, num_layers
        rng = np.random.default_rng()
        self.params = {
            "token_embedding": rng.normal(0, 0.02, (vocab_size, d_model)),
            "segment_embedding": rng.normal(0, 0.02, (num_segments, d_model)),
            "position_embedding": rng.normal(0, 0.02, (max_len, d_model)),
            "embedding_norm_gamma": np.ones(d_model),
            "embedding_norm_beta": np.zeros(d_model),
            "pooler_w": rng.normal(0, 0.02, (d_model, d_model)),
            "pooler_b": np.zeros(d_model),
        }
        for i in range(num_layers):
            shapes = {
                "q": (d_model, d_model),
                "k": (d_model, d_model),
                "v": (d_model, d_model),
                "out": (d_model, d_model),
                "up": (d_model, d_ff),
                "down": (d_ff, d_model),
            }
            for name, shape in shapes.items():
                self.params[f"layer{i}_w{name}"] = rng.normal(0, 0.02, shape)
                self.params[f"layer{i}_b{name}"] = np.zeros(shape[1])
            for name in ("ln1", "ln2"):
                self.params[f"layer{i}_{name}_gamma"] = np.ones(d_model)
                self.params[f"layer{i}_{name}_beta"] = np.zeros(d_model)

    def norm(self, x, name):
        centered = x - x.mean(-1, keepdims=True)
        unit = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-12)
        return unit * self.params[f"{name}_gamma"] + self.params[f"{name}_beta"]

    def linear(self, x, name, i):
        return x @ self.params[f"layer{i}_w{name}"] + self.params[f"layer{i}_b{name}"]

    def split(self, x):
        b, t, d = x.shape
        return x.reshape(b, t, self.heads, d // self.heads).transpose(0, 2, 1, 3)

    def __call__(self, ids, segments=None, mask=None):
        ids = np.asarray(ids)
        if (ids < 0).any() or (ids >= len(self.params["token_embedding"])).any():
            raise IndexError("an id is not in the vocabulary")
        segments = np.zeros_like(ids) if segments is None else np.asarray(segments)
        b, t = ids.shape
        x = self.params["token_embedding"][ids] + self.params["segment_embedding"][segments]
        x = self.norm(x + self.params["position_embedding"][:t], "embedding_norm")
        for i in range(self.layers):
            q, k, v = (self.split(self.linear(x, name, i)) for name in "qkv")
            scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
            if mask is not None:
                scores = np.where(mask, scores, -1e30)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            weights /= weights.sum(-1, keepdims=True)
            y = (weights @ v).transpose(0, 2, 1, 3).reshape(b, t, -1)
            x = self.norm(x + self.linear(y, "out", i), f"layer{i}_ln1")
            h = self.linear(x, "up", i)
            h = 0.5 * h * (1 + _erf(h / np.sqrt(2)))
            x = self.norm(x + self.linear(h, "down", i), f"layer{i}_ln2")
        return x, np.tanh(x[:, 0] @ self.params["pooler_w"] + self.params["pooler_b"])
