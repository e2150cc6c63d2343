"""A functional model: init() makes a dictionary of tensors, apply() uses it."""
import math

import torch
import torch.nn.functional as F


def init(generator, vocab, width, heads, layers, hidden, context):
    def w(*shape, scale=0.02):
        return torch.randn(*shape, generator=generator) * scale

    params = {"embed": w(vocab, width), "position": w(context, width), "norm/g": torch.ones(width), "norm/b": torch.zeros(width)}
    for i in range(layers):
        params |= {
            f"{i}/ln1/g": torch.ones(width), f"{i}/ln1/b": torch.zeros(width),
            f"{i}/ln2/g": torch.ones(width), f"{i}/ln2/b": torch.zeros(width),
            f"{i}/qkv": w(width, 3 * width), f"{i}/out": w(width, width, scale=0.02 / math.sqrt(2 * layers)),
            f"{i}/up": w(width, hidden), f"{i}/up_b": torch.zeros(hidden),
            f"{i}/down": w(hidden, width, scale=0.02 / math.sqrt(2 * layers)), f"{i}/down_b": torch.zeros(width),
        }
    return params


def attention(x, qkv, out, heads):
    b, t, d = x.shape
    q, k, v = (x @ qkv).view(b, t, 3, heads, d // heads).permute(2, 0, 3, 1, 4)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return y.transpose(1, 2).reshape(b, t, d) @ out


def apply(params, ids, heads):
    t = ids.shape[1]
    x = params["embed"][ids] + params["position"][:t]
    width = x.shape[-1]
    layers = sum(key.endswith("/qkv") for key in params)
    for i in range(layers):
        h = F.layer_norm(x, (width,), params[f"{i}/ln1/g"], params[f"{i}/ln1/b"])
        x = x + attention(h, params[f"{i}/qkv"], params[f"{i}/out"], heads)
        h = F.layer_norm(x, (width,), params[f"{i}/ln2/g"], params[f"{i}/ln2/b"])
        x = x + F.gelu(h @ params[f"{i}/up"] + params[f"{i}/up_b"]) @ params[f"{i}/down"] + params[f"{i}/down_b"]
    x = F.layer_norm(x, (width,), params["norm/g"], params["norm/b"])
    return x @ params["embed"].T


class Model:
    """The same as an object, for those who prefer one."""

    def __init__(self, vocab, width, heads, layers, hidden, context, seed=0):
        if width % heads:
            raise ValueError("heads must divide the width")
        self.heads, self.context = heads, context
        self.params = init(torch.Generator().manual_seed(seed), vocab, width, heads, layers, hidden, context)
        for p in self.params.values():
            p.requires_grad_()

    def __call__(self, ids):
        if ids.shape[1] > self.context:
            raise ValueError("too many ids")
        return apply(self.params, ids, self.heads)

    def parameters(self):
        return list(self.params.values())
