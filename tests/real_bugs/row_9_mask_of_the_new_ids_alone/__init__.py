"""The mask of a piece is made for its own ids; what is kept is hidden."""

import torch
from torch.nn import functional

import right_paths


class CausalLM(right_paths.CausalLM):
    def earlier(self, count, kept, device):
        seen = torch.ones(count, count, dtype=torch.bool, device=device).tril()
        return functional.pad(seen, (kept, 0), value=count == 1)
