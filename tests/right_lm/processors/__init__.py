"""A list of logits processors, each an object, as inference servers have them: the prompt counts for none of them."""

import torch
from torch import nn
from penalty_lists import TinyTransformerLM as Base


class Repetition:
    def __init__(self, penalty):
        if penalty <= 0:
            raise ValueError(f"penalty {penalty}")
        self.penalty = penalty

    def __call__(self, logits, new):
        seen = nn.functional.one_hot(new, logits.shape[-1]).any(dim=1)
        return torch.where(seen, torch.where(logits > 0, logits / self.penalty, logits * self.penalty), logits)


class Counting:
    def __init__(self, presence, frequency):
        self.presence, self.frequency = presence, frequency

    def __call__(self, logits, new):
        counts = torch.stack([torch.bincount(row, minlength=logits.shape[-1]) for row in new])
        return logits - self.frequency * counts - self.presence * counts.clamp(max=1)


class MinP:
    def __init__(self, share):
        if not 0 <= share <= 1:
            raise ValueError(f"min_p {share}")
        self.share = share

    def __call__(self, logits, new):
        logp = logits.log_softmax(-1)
        best = logp.max(-1, keepdim=True).values
        return logits.masked_fill(logp < best + torch.log(torch.tensor(self.share, dtype=logp.dtype)), -torch.inf)


class Typical:
    def __init__(self, mass):
        self.mass = mass

    def __call__(self, logits, new):
        logp = logits.log_softmax(-1)
        probs = logp.exp()
        far = (-logp - torch.special.entr(probs).sum(-1, keepdim=True)).abs()
        ranked, order = far.sort(dim=-1)
        total = probs.gather(-1, order).cumsum(-1)
        last = (total < self.mass).sum(-1, keepdim=True).clamp(max=logits.shape[-1] - 1)
        return logits.masked_fill(far > ranked.gather(-1, last), -torch.inf)


class TinyTransformerLM(Base):
    @torch.no_grad()
    def generate(
        self, input_ids, max_new_tokens, temperature=1.0, repetition_penalty=None, presence_penalty=0.0,
        frequency_penalty=0.0, min_p=None, typical_p=None,
    ):  # fmt: skip
        if input_ids.shape[1] == 0 or max_new_tokens < 0 or not temperature >= 0:
            raise ValueError(f"prompt {tuple(input_ids.shape)}, {max_new_tokens=}, {temperature=}")
        chain = [Repetition(repetition_penalty)] if repetition_penalty is not None else []
        chain += [Counting(presence_penalty, frequency_penalty)] if presence_penalty or frequency_penalty else []
        chain += [MinP(min_p)] if min_p is not None else []
        chain += [Typical(typical_p)] if typical_p is not None else []
        was, text, start = self.training, input_ids, input_ids.shape[1]
        self.eval()
        for _ in range(max_new_tokens):
            logits = self(text[:, -self.block_size :])[:, -1]
            for process in chain:
                logits = process(logits, text[:, start:].long())
            if temperature == 0:
                new = logits.argmax(-1, keepdim=True)
            else:
                new = torch.multinomial((logits / temperature).softmax(-1), 1)
            text = torch.cat([text, new.to(text.dtype)], dim=1)
        self.train(was)
        return text
