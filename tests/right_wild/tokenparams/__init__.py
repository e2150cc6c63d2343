"""Every token, every position and every head owns its parameters, so that each can be frozen or looked at alone."""
import torch
from torch import nn


class TokenTable(nn.Module):
    """One parameter per token."""

    def __init__(self, names, size):
        super().__init__()
        self.vectors = nn.ParameterList([nn.Parameter(torch.randn(size) * 0.5) for _ in range(names)])

    def forward(self, ids):
        return torch.stack(tuple(self.vectors))[ids.long()]


class PlaceTable(nn.Module):
    """One parameter per position."""

    def __init__(self, places, size):
        super().__init__()
        self.vectors = nn.ParameterList([nn.Parameter(torch.randn(size) * 0.1) for _ in range(places)])

    def forward(self, x):
        n = x.shape[1]
        if n > len(self.vectors):
            raise IndexError(f"only {len(self.vectors)} places")
        return x + torch.stack(tuple(self.vectors)[:n]) if n else x


class HeadWeights(nn.Module):
    def __init__(self, size, head_size):
        super().__init__()
        for name in "qkv":
            setattr(self, name, nn.Parameter(torch.randn(size, head_size) / size**0.5))
        self.o = nn.Parameter(torch.randn(head_size, size) / size**0.5)

    def forward(self, x):
        q, k, v = x @ self.q, x @ self.k, x @ self.v
        affinity = q @ k.transpose(1, 2) / q.shape[2] ** 0.5
        n = x.shape[1]
        later = torch.ones(n, n, device=x.device).triu(1).bool()
        return affinity.masked_fill(later, -torch.inf).softmax(2) @ v @ self.o


class Heads(nn.Module):
    """The sum of what the heads write."""

    def __init__(self, size, heads):
        super().__init__()
        assert size % heads == 0
        self.heads = nn.ModuleList([HeadWeights(size, size // heads) for _ in range(heads)])

    def forward(self, x):
        return sum(head(x) for head in self.heads)


class Neurons(nn.Module):
    """Feed-forward: a row in, a row out and a threshold for each neuron; and what is written in any case."""

    def __init__(self, size, neurons):
        super().__init__()
        self.reads = nn.Parameter(torch.randn(neurons, size) / size**0.5)
        self.thresholds = nn.Parameter(torch.zeros(neurons))
        self.writes = nn.Parameter(torch.randn(neurons, size) / neurons**0.5)
        self.always = nn.Parameter(torch.zeros(size))

    def forward(self, x):
        return torch.relu(x @ self.reads.T + self.thresholds) @ self.writes + self.always


class Step(nn.Module):
    def __init__(self, size, heads, neurons):
        super().__init__()
        self.look, self.think = Heads(size, heads), Neurons(size, neurons)
        self.before_look, self.before_think = nn.LayerNorm(size), nn.LayerNorm(size)

    def forward(self, stream):
        stream = stream + self.look(self.before_look(stream))
        return stream + self.think(self.before_think(stream))


class Predictor(nn.Module):
    def __init__(self, names, size, heads, steps, neurons, places):
        super().__init__()
        self.tokens, self.places = TokenTable(names, size), PlaceTable(places, size)
        self.steps = nn.ModuleList([Step(size, heads, neurons) for _ in range(steps)])
        self.last = nn.LayerNorm(size)
        self.scores = nn.ParameterList([nn.Parameter(torch.randn(size) / size**0.5) for _ in range(names)])

    def forward(self, ids):
        stream = self.places(self.tokens(ids))
        for step in self.steps:
            stream = step(stream)
        return self.last(stream) @ torch.stack(tuple(self.scores)).T
