import torch
import torch.nn.functional as F
from torch import nn


def vectors(count, width):
    return nn.ParameterList(nn.Parameter(torch.randn(width) * 0.02) for _ in range(count))


class Glance(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        if width % heads:
            raise ValueError(f"a width of {width} cannot be cut into {heads} heads")
        size = width // heads
        self.maps = nn.ParameterDict()
        for head in range(1, heads + 1):
            for name in ("ask", "tell", "give"):
                self.maps[f"{name}{head}"] = nn.Parameter(torch.randn(width, size) / width**0.5)
        self.heads = heads
        self.join = nn.Linear(width, width, bias=False)

    def forward(self, x):
        t = x.shape[1]
        later = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        found = []
        for head in range(1, self.heads + 1):
            ask, tell, give = (x @ self.maps[f"{name}{head}"] for name in ("ask", "tell", "give"))
            scores = ask @ tell.mT / ask.shape[-1] ** 0.5
            found.append(scores.masked_fill(later, -torch.inf).softmax(-1) @ give)
        return self.join(torch.cat(found, -1))


class Round(nn.Module):
    def __init__(self, width, heads, units):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.glance = Glance(width, heads)
        self.into, self.out = nn.Linear(width, units), nn.Linear(units, width)

    def forward(self, x):
        x = x + self.glance(self.first(x))
        return x + self.out(F.gelu(self.into(self.second(x))))


class Reader(nn.Module):
    def __init__(self, words, width, heads, rounds, units, places):
        super().__init__()
        self.words, self.places = vectors(words, width), vectors(places, width)
        self.rounds = nn.ModuleDict({f"round_{n + 1}": Round(width, heads, units) for n in range(rounds)})
        self.end = nn.LayerNorm(width)

    def forward(self, ids):
        t = ids.shape[1]
        if t > len(self.places):
            raise ValueError(f"{t} words in a row, at most {len(self.places)} have a place")
        table = torch.stack(list(self.words))
        x = table[ids] + torch.stack(list(self.places)[:t]) if t else table[ids]
        for one in self.rounds.values():
            x = one(x)
        return self.end(x) @ table.T

    @torch.no_grad()
    def generate(self, ids, count, pick="best"):
        for _ in range(count):
            scores = self(ids[:, -len(self.places) :])[:, -1]
            new = scores.argmax(-1) if pick == "best" else torch.multinomial(scores.softmax(-1), 1)[:, 0]
            ids = torch.cat([ids, new[:, None]], 1)
        return ids
