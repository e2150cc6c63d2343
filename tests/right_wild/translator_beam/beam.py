from dataclasses import dataclass, field

import torch
from torch import Tensor

from .model import Transformer


@dataclass(order=True)
class Hypothesis:
    log_prob: float
    ids: list[int] = field(compare=False)

    def normalized(self, alpha: float) -> float:
        return self.log_prob / max(len(self.ids) - 1, 1) ** alpha


class Translator:
    """Search apart from the model; hypotheses begin with bos, which is not counted in their length."""

    def __init__(self, model: Transformer, bos_id: int, eos_id: int, max_new_tokens: int) -> None:
        self.model, self.bos_id, self.eos_id, self.max_new_tokens = model.eval(), bos_id, eos_id, max_new_tokens

    @torch.no_grad()
    def greedy(self, src: Tensor) -> list[list[int]]:
        return [self.beam(row[None], width=1)[0].ids[1:] for row in src]

    @torch.no_grad()
    def beam(self, src: Tensor, width: int = 4, alpha: float = 0.6) -> list[Hypothesis]:
        """src (1, S) -> up to `width` hypotheses, the best first."""
        memory = self.model.encode(src)
        memory_mask = self.model.source_mask(src)
        live, done = [Hypothesis(0.0, [self.bos_id])], []
        for _ in range(self.max_new_tokens):
            tgt = torch.tensor([h.ids for h in live], device=src.device)
            n = len(live)
            logits = self.model.decode(
                tgt, memory.expand(n, -1, -1), memory_mask=memory_mask.expand(n, -1, -1, -1)
            )
            log_p = logits[:, -1].log_softmax(dim=-1)
            k = min(width, log_p.shape[-1])
            values, ids = log_p.topk(k, dim=-1)
            children = [
                Hypothesis(h.log_prob + v, [*h.ids, i])
                for h, vs, js in zip(live, values.tolist(), ids.tolist(), strict=True)
                for v, i in zip(vs, js, strict=True)
            ]
            best = sorted(children, reverse=True)[:width]
            done += [h for h in best if h.ids[-1] == self.eos_id]
            live = [h for h in best if h.ids[-1] != self.eos_id]
            if not live:
                break
        return sorted(done + live, key=lambda h: h.normalized(alpha), reverse=True)[:width]
