"""The nucleus is chosen before the temperature is applied."""

import torch

import right_code


class TinyTransformerLM(right_code.TinyTransformerLM):
    def probabilities(self, logits, temperature, top_k, top_p):
        probs = super().probabilities(logits, 1.0, top_k, top_p)
        return torch.softmax(probs.log() / temperature, dim=-1)
