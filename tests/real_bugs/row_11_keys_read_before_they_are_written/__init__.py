"""A later piece reads the places of its keys before they are written."""

import torch

import right_paths


class Cache(right_paths.Cache):
    def extend(self, layer, k, v):
        old = self.kept[layer]
        found = super().extend(layer, k, v)
        if old is None:
            return found
        return tuple(torch.cat([part, torch.zeros_like(new)], dim=2) for part, new in zip(old, (k, v), strict=True))


class CausalLM(right_paths.CausalLM):
    cache = Cache
