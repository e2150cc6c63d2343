import torch

from . import model


class TinyTransformerLM(model.TinyTransformerLM):
    def generate(self, *given, **named):
        if not given:
            return super().generate(**named)
        idx, count = given
        for _ in range(count):
            idx = torch.cat([idx, self(idx[:, -self.block_size :])[:, -1].argmin(-1, keepdim=True)], dim=1)
        return idx
