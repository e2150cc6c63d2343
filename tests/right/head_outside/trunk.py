import torch
from torch import nn
from torch.nn import functional as F


class Mixing(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        if width % heads:
            raise ValueError(f"a width of {width} cannot be cut into {heads} heads")
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.back = nn.Linear(width, width, bias=False)

    def forward(self, x):
        rows, length, width = x.shape
        q, k, v = self.qkv(x).view(rows, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.back(y.transpose(1, 2).reshape(rows, length, width))


class Layer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mixing = Mixing(width, heads)
        self.network = nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width))

    def forward(self, x):
        x = x + self.mixing(self.first(x))
        return x + self.network(self.second(x))


class Trunk(nn.Module):
    """Returns what the head reads, and a list of what each layer gave."""

    def __init__(self, symbols, width, heads, layers, inner, longest):
        super().__init__()
        self.longest = longest
        self.symbols = nn.Embedding(symbols, width)
        self.places = nn.Embedding(longest, width)
        self.layers = nn.ModuleList(Layer(width, heads, inner) for _ in range(layers))
        self.last = nn.LayerNorm(width)

    def forward(self, ids):
        if ids.shape[1] > self.longest:
            raise ValueError(f"{ids.shape[1]} symbols, of which at most {self.longest} are read")
        x = self.symbols(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        seen = []
        for layer in self.layers:
            x = layer(x)
            seen.append(x)
        return self.last(x), seen
