import torch

from . import model


class TinyTransformerLM(model.TinyTransformerLM):
    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None, top_p=None):
        for _ in range(max_new_tokens):
            idx = torch.cat([idx, self(idx[:, -self.block_size :])[:, -1].argmin(-1, keepdim=True)], dim=1)
        return idx

    def sample(self, *arguments, **options):
        return super().generate(*arguments, **options)
