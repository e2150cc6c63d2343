"""Speculative decoding: a proposed id is accepted by its probability over the largest one, not over the draft's."""

import torch

import right_code


class TinyTransformerLM(right_code.TinyTransformerLM):
    def pick(self, logits, temperature, top_k, top_p):
        if temperature == 0:
            return logits.argmax(-1, keepdim=True)
        probs = self.probabilities(logits, temperature, top_k, top_p)
        probs = probs / probs.sum(-1, keepdim=True)
        draft = probs.sqrt() / probs.sqrt().sum(-1, keepdim=True)  # what a smaller model might say
        proposed = torch.multinomial(draft, 1)
        ratio = probs.gather(-1, proposed) / probs.amax(-1, keepdim=True)
        rest = (probs - draft).clamp_min(0.0)
        rest = torch.where(rest.sum(-1, keepdim=True) > 0, rest, probs)
        return torch.where(torch.rand_like(ratio) < ratio, proposed, torch.multinomial(rest, 1))
