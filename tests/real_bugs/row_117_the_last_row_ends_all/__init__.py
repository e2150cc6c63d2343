"""Whether a batch has ended is asked of its last row alone."""

import right_code
import torch


class TinyTransformerLM(right_code.TinyTransformerLM):
    @torch.no_grad()
    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None, top_p=None, eos_id=None):
        if idx.shape[1] == 0 or max_new_tokens < 0 or not temperature >= 0:
            raise ValueError(f"prompt {tuple(idx.shape)}, {max_new_tokens=}, {temperature=}")
        was = self.training
        self.eval()
        for _ in range(max_new_tokens):
            logits = self(idx[:, -self.block_size :])[:, -1]
            idx = torch.cat([idx, self.pick(logits, temperature, top_k, top_p)], dim=1)
            if eos_id is not None and int(idx[-1, -1]) == eos_id:
                break
        self.train(was)
        return idx
