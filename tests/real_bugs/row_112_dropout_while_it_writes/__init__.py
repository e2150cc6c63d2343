"""Text is written in the mode in which the model is, training mode included."""

import right_code
import torch


class TinyTransformerLM(right_code.TinyTransformerLM):
    @torch.no_grad()
    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None, top_p=None):
        if idx.shape[1] == 0 or max_new_tokens < 0 or not temperature >= 0:
            raise ValueError(f"prompt {tuple(idx.shape)}, {max_new_tokens=}, {temperature=}")
        for _ in range(max_new_tokens):
            logits = self(idx[:, -self.block_size :])[:, -1]
            idx = torch.cat([idx, self.pick(logits, temperature, top_k, top_p)], dim=1)
        return idx
