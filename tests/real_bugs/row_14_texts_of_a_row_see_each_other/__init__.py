"""Numbers of texts are taken, and hide nothing."""

import torch

import right_paths


class CausalLM(right_paths.CausalLM):
    def together(self, segment_ids):
        return torch.ones_like(segment_ids, dtype=torch.bool)[:, None, None, :]
