"""A vision transformer in NumPy: weights are attributes, matrices (in, out), patches cut by two loops."""

import math

import numpy as np

_erf = np.vectorize(math.erf, otypes=[float])


class Layer:
    def __init__(self, d, f, rng):
        def w(*shape):
            return rng.normal(0, 0.02, shape)

        self.q_weight, self.k_weight, self.v_weight, self.out_weight = (w(d, d) for _ in range(4))
        self.q_bias, self.k_bias, self.v_bias, self.out_bias = (np.zeros(d) for _ in range(4))
        self.up_weight, self.up_bias, self.down_weight, self.down_bias = w(d, f), np.zeros(f), w(f, d), np.zeros(d)
        self.ln1_scale, self.ln1_shift, self.ln2_scale, self.ln2_shift = (
            np.ones(d),
            np.zeros(d),
            np.ones(d),
            np.zeros(d),
        )


class VisionTransformer:
    def __init__(self, image_size, patch_size, channels, num_classes, d_model, num_heads, num_layers, d_ff):
        if image_size % patch_size or d_model % num_heads:
            raise ValueError("patches must fill the image, heads the width")
        rng = np.random.default_rng()
        self.p, self.heads, self.extent, self.channels = patch_size, num_heads, image_size, channels
        n = (image_size // patch_size) ** 2
        self.patch_weight = rng.normal(0, 0.02, (channels * patch_size**2, d_model))
        self.patch_bias = np.zeros(d_model)
        self.cls = rng.normal(0, 0.02, (d_model,))
        self.pos = rng.normal(0, 0.02, (n + 1, d_model))
        self.layers = [Layer(d_model, d_ff, rng) for _ in range(num_layers)]
        self.final_norm_scale, self.final_norm_shift = np.ones(d_model), np.zeros(d_model)
        self.head_weight, self.head_bias = rng.normal(0, 0.02, (d_model, num_classes)), np.zeros(num_classes)

    @staticmethod
    def norm(x, scale, shift):
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * scale + shift

    def __call__(self, images):
        b, c, s, t = images.shape
        if (c, s, t) != (self.channels, self.extent, self.extent):
            raise ValueError("an image of another size")
        rows = []
        for i in range(0, s, self.p):
            for j in range(0, t, self.p):
                rows.append(images[:, :, i : i + self.p, j : j + self.p].reshape(b, -1) @ self.patch_weight)
        x = np.stack(rows, 1) + self.patch_bias
        x = np.concatenate([np.broadcast_to(self.cls, (b, 1, x.shape[-1])), x], 1) + self.pos
        for one in self.layers:
            y = self.norm(x, one.ln1_scale, one.ln1_shift)
            q, k, v = (
                (y @ w + bias).reshape(b, y.shape[1], self.heads, -1).swapaxes(1, 2)
                for w, bias in ((one.q_weight, one.q_bias), (one.k_weight, one.k_bias), (one.v_weight, one.v_bias))
            )
            a = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
            a = np.exp(a - a.max(-1, keepdims=True))
            y = (a / a.sum(-1, keepdims=True)) @ v
            x = x + y.swapaxes(1, 2).reshape(x.shape) @ one.out_weight + one.out_bias
            h = self.norm(x, one.ln2_scale, one.ln2_shift) @ one.up_weight + one.up_bias
            x = x + (0.5 * h * (1 + _erf(h / np.sqrt(2)))) @ one.down_weight + one.down_bias
        x = self.norm(x, self.final_norm_scale, self.final_norm_shift)
        return x[:, 0] @ self.head_weight + self.head_bias
