"""The causal mask of a later piece begins at the first key, which is of an earlier piece."""

import torch

import right_paths


class CausalLM(right_paths.CausalLM):
    def earlier(self, count, kept, device):
        seen = torch.ones(count, kept + count, dtype=torch.bool, device=device)
        return seen.tril() if count > 1 else seen
