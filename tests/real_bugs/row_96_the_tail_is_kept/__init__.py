"""Top-k keeps the least probable ids."""

import torch

import right_code


class TinyTransformerLM(right_code.TinyTransformerLM):
    def best(self, probs, top_k):
        kept = probs.topk(min(top_k, probs.shape[-1]), dim=-1, largest=False)
        return torch.zeros_like(probs).scatter(-1, kept.indices, kept.values)
