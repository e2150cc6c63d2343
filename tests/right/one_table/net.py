import torch
import torch.nn.functional as F
from torch import nn


class Look(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        if width % heads:
            raise ValueError(f"{heads} heads do not divide a width of {width}")
        self.heads = heads
        self.three = nn.Linear(width, 3 * width)
        self.back = nn.Linear(width, width)

    def forward(self, x, past=None):
        q, k, v = (p.unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in self.three(x).chunk(3, -1))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        before = k.shape[2] - q.shape[2]
        seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=x.device).tril(before)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return self.back(y.transpose(1, 2).flatten(2)), (k, v)


class Floor(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.look, self.after_look = Look(width, heads), nn.LayerNorm(width)
        self.wide, self.narrow, self.after_think = nn.Linear(width, inner), nn.Linear(inner, width), nn.LayerNorm(width)

    def forward(self, x, past=None):
        y, kept = self.look(x, past)
        x = self.after_look(x + y)
        return self.after_think(x + self.narrow(F.gelu(self.wide(x)))), kept


class Decoder(nn.Module):
    def __init__(self, words, places, width, heads, inner, floors):
        super().__init__()
        self.words = words
        self.rows = nn.Embedding(words + places, width)
        nn.init.normal_(self.rows.weight, std=0.02)
        self.floors = nn.ModuleList(Floor(width, heads, inner) for _ in range(floors))

    def forward(self, ids, past=None):
        if ((ids < 0) | (ids >= self.words)).any():
            raise IndexError(f"ids are 0 to {self.words - 1}")
        begin = 0 if past is None else past[0][0].shape[2]
        places = torch.arange(self.words + begin, self.words + begin + ids.shape[1], device=ids.device)
        x, kept = self.rows(ids) + self.rows(places), []
        for floor, own in zip(self.floors, past or [None] * len(self.floors), strict=True):
            x, pair = floor(x, own)
            kept.append(pair)
        return x @ self.rows.weight[: self.words].T, kept
