import torch
from torch import Tensor


class Cache:
    """Keys and values of one layer, in memory that is reserved once."""

    def __init__(self, batch: int, heads: int, capacity: int, head_dim: int, like: Tensor):
        self.k = like.new_empty(batch, heads, capacity, head_dim)
        self.v = like.new_empty(batch, heads, capacity, head_dim)
        self.used = 0

    def extend(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        end = self.used + k.shape[2]
        if end > self.k.shape[2]:
            raise ValueError(f"the cache holds {self.k.shape[2]} positions, {end} are needed")
        self.k[:, :, self.used : end] = k
        self.v[:, :, self.used : end] = v
        self.used = end
        return self.k[:, :, :end], self.v[:, :, :end]


def allowed(queries: int, keys: int, device: torch.device) -> Tensor:
    """Boolean (queries, keys): the queries are the last positions."""
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)
