"""A tiny p leaves nothing, and what is drawn is noise."""

import torch

import right_code


class TinyTransformerLM(right_code.TinyTransformerLM):
    def nucleus(self, probs, top_p):
        ranked, order = probs.sort(dim=-1, descending=True)
        kept = (ranked.cumsum(-1) - ranked < top_p) & (ranked[..., :1] <= top_p)
        logits = ranked.log().masked_fill(~kept, -1e9)
        return torch.zeros_like(probs).scatter(-1, order, torch.softmax(logits, dim=-1))
