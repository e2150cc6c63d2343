"""The first OLMo: norms without weights by `F.layer_norm`, gate and up in one matrix, rotation by tables of the model."""

import torch
import torch.nn.functional as F
from torch import nn


class RotaryTables(nn.Module):
    def __init__(self, width, length):
        super().__init__()
        frequencies = 1.0 / 10000.0 ** (torch.arange(0, width, 2).double() / width)
        angles = torch.outer(torch.arange(length).double(), frequencies).repeat(1, 2)
        self.register_buffer("sines", angles.sin(), persistent=False)
        self.register_buffer("cosines", angles.cos(), persistent=False)

    def forward(self, heads):  # (B, H, T, d)
        length = heads.shape[-2]
        left, right = heads.chunk(2, dim=-1)
        turned = torch.cat((-right, left), dim=-1)
        return (heads * self.cosines[:length] + turned * self.sines[:length]).type_as(heads)


class OlmoLayer(nn.Module):
    def __init__(self, width, heads, hidden, rotary):
        super().__init__()
        self.heads, self.rotary, self.width = heads, rotary, width
        self.att_proj = nn.Linear(width, 3 * width, bias=False)
        self.attn_out = nn.Linear(width, width, bias=False)
        self.ff_proj = nn.Linear(width, 2 * hidden, bias=False)
        self.ff_out = nn.Linear(hidden, width, bias=False)

    def norm(self, x):
        return F.layer_norm(x, (self.width,), eps=1e-5)

    def attend(self, x):
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.att_proj(x).split(self.width, dim=-1)
        )
        mixed = F.scaled_dot_product_attention(self.rotary(q), self.rotary(k), v, is_causal=True)
        return self.attn_out(mixed.transpose(1, 2).flatten(-2))

    def forward(self, x):
        x = x + self.attend(self.norm(x))
        up, gate = self.ff_proj(self.norm(x)).chunk(2, dim=-1)
        return x + self.ff_out(F.silu(gate) * up)


class Olmo(nn.Module):
    def __init__(self, vocab, width, heads, layers, hidden, context):
        super().__init__()
        if min(vocab, width, heads, layers, hidden, context) < 1:
            raise ValueError("no size may be zero")
        if width % (2 * heads):
            raise ValueError(f"{heads} heads of even width do not make {width} features")
        self.width, self.context = width, context
        rotary = RotaryTables(width // heads, context)
        self.wte = nn.Embedding(vocab, width)
        self.blocks = nn.ModuleList(OlmoLayer(width, heads, hidden, rotary) for _ in range(layers))
        self.head = nn.Linear(width, vocab, bias=False)
        self.apply(self.reset)

    @staticmethod
    def reset(module):
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)

    def forward(self, ids):
        if ids.shape[1] > self.context:
            raise ValueError(f"{ids.shape[1]} ids are more than the {self.context} of a context")
        x = self.wte(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(F.layer_norm(x, (self.width,), eps=1e-5))
