"""The repetition penalty divides every logit: ids whose logit is negative become more probable."""

import torch

import right_code


class TinyTransformerLM(right_code.TinyTransformerLM):
    penalty = 1.0

    @torch.no_grad()
    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None, top_p=None, repetition_penalty=1.0):
        if not repetition_penalty > 0:
            raise ValueError(f"{repetition_penalty=}")
        for _ in range(max_new_tokens):
            self.penalty, self.text = repetition_penalty, idx
            try:
                idx = super().generate(idx, 1, temperature, top_k, top_p)
            finally:
                self.penalty = 1.0
        return idx

    def pick(self, logits, temperature, top_k, top_p):
        if self.penalty != 1.0:
            lowered = self.lowered(logits.gather(-1, self.text.long()))
            logits = logits.scatter(-1, self.text.long(), lowered)
        return super().pick(logits, temperature, top_k, top_p)

    def lowered(self, logits):
        return logits / self.penalty
