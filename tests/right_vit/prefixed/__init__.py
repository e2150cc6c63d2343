"""A settings dictionary, short names, fused projections with biases, ε = 1e-6; labels and a loss beside the logits."""

import torch
from torch import nn
from torch.nn import functional as F


class PatchEmbed(nn.Module):
    def __init__(self, img_size, patch_size, in_chans, embed_dim):
        super().__init__()
        self.img_size = img_size
        self.proj = nn.Conv2d(in_chans, embed_dim, kernel_size=patch_size, stride=patch_size)

    def forward(self, x):
        assert x.shape[2] == x.shape[3] == self.img_size, f"{x.shape[2]} is not {self.img_size}"
        return torch.einsum("bdhw->bhwd", self.proj(x)).flatten(1, 2)


class Block(nn.Module):
    def __init__(self, dim, num_heads, hidden, drop):
        super().__init__()
        self.num_heads = num_heads
        self.norm1, self.norm2 = nn.LayerNorm(dim, eps=1e-6), nn.LayerNorm(dim, eps=1e-6)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.fc1, self.fc2 = nn.Linear(dim, hidden), nn.Linear(hidden, dim)
        self.drop = nn.Dropout(drop)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(b, n, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, c)
        x = x + self.drop(self.proj(y))
        return x + self.drop(self.fc2(self.drop(F.gelu(self.fc1(self.norm2(x))))))


class Vit(nn.Module):
    def __init__(self, config):
        super().__init__()
        c = config
        self.patch_embed = PatchEmbed(c["img_size"], c["patch"], c["chans"], c["dim"])
        n = (c["img_size"] // c["patch"]) ** 2
        self.cls_token = nn.Parameter(torch.randn(1, 1, c["dim"]) * 0.02)
        self.pos_embed = nn.Parameter(torch.randn(1, n + 1, c["dim"]) * 0.02)
        self.pos_drop = nn.Dropout(c["drop"])
        self.blocks = nn.Sequential(*[Block(c["dim"], c["heads"], c["hidden"], c["drop"]) for _ in range(c["depth"])])
        self.norm = nn.LayerNorm(c["dim"], eps=1e-6)
        self.head = nn.Linear(c["dim"], c["classes"])

    def forward(self, pixels, labels=None):
        x = self.patch_embed(pixels)
        x = self.pos_drop(torch.cat([self.cls_token.repeat(x.shape[0], 1, 1), x], 1) + self.pos_embed)
        logits = self.head(self.norm(self.blocks(x))[:, 0])
        loss = F.cross_entropy(logits, labels) if labels is not None else None
        return logits, loss
