"""Positions begin again with each text of a row, and hide nothing."""

import right_paths
import torch


class CausalLM(right_paths.CausalLM):
    def together(self, segment_ids):
        return torch.ones_like(segment_ids, dtype=torch.bool)[:, None, None, :]
