import torch
from torch import nn


def attend(q, k, v, seen=None):
    """q (T, d), k (S, d), v (S, e), seen (T, S) of booleans."""
    scores = q @ k.T / q.shape[1] ** 0.5
    if seen is not None:
        scores = scores.masked_fill(~seen, torch.finfo(scores.dtype).min)
    return scores.softmax(dim=1) @ v


class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        if d % heads:
            raise ValueError(f"{d} columns, {heads} heads")
        self.size = d // heads
        self.Wq, self.Wk, self.Wv, self.Wo = (nn.Parameter(torch.randn(d, d) / d**0.5) for _ in range(4))

    def forward(self, X):
        past = torch.ones(len(X), len(X), dtype=torch.bool, device=X.device).tril()
        heads = zip(*((X @ W).split(self.size, dim=1) for W in (self.Wq, self.Wk, self.Wv)))
        return torch.cat([attend(q, k, v, past) for q, k, v in heads], dim=1) @ self.Wo


class Rewrite(nn.Module):
    def __init__(self, d, f):
        super().__init__()
        self.A, self.a = nn.Parameter(torch.randn(d, f) / d**0.5), nn.Parameter(torch.zeros(f))
        self.B, self.b = nn.Parameter(torch.randn(f, d) / f**0.5), nn.Parameter(torch.zeros(d))

    def forward(self, X):
        return nn.functional.gelu(X @ self.A + self.a) @ self.B + self.b


class Step(nn.Module):
    def __init__(self, d, heads, f):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attention, self.rewrite = Attention(d, heads), Rewrite(d, f)

    def forward(self, X):
        X = X + self.attention(self.norm1(X))
        return X + self.rewrite(self.norm2(X))


class Text(nn.Module):
    def __init__(self, letters, d, heads, steps, f, longest):
        super().__init__()
        self.longest = longest
        self.letters = nn.Parameter(torch.randn(letters, d) * 0.05)
        self.places = nn.Parameter(torch.randn(longest, d) * 0.05)
        self.steps = nn.Sequential(*(Step(d, heads, f) for _ in range(steps)))
        self.norm = nn.LayerNorm(d)
        self.scores = nn.Linear(d, letters)
        nn.init.normal_(self.scores.weight, std=0.02)

    def forward(self, ids):
        if ids.ndim != 1 or len(ids) > self.longest:
            raise ValueError(f"want at most {self.longest} ids in a row, got {tuple(ids.shape)}")
        return self.scores(self.norm(self.steps(self.letters[ids] + self.places[: len(ids)])))

    @torch.no_grad()
    def generate(self, ids, n, temperature=1.0, top_k=None):
        for _ in range(n):
            z = self(ids[-self.longest :])[-1]
            if temperature:
                z = z / temperature
                if top_k is not None:
                    z = torch.where(z < z.sort(descending=True).values[min(top_k, len(z)) - 1], -torch.inf, z)
                new = torch.multinomial(z.softmax(0), 1)
            else:
                new = z.argmax()[None]
            ids = torch.cat([ids, new])
        return ids
