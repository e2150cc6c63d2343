"""Cross-entropy against targets that are never quite certain.

    q = (1 - ε) · onehot(y) + ε/V        ℓ = -Σ_v q_v log softmax(z)_v = (1 - ε) · (-log p_y) + ε · mean_v(-log p_v)

Szegedy et al. 2016, §7; Vaswani et al. 2017, §5.4 (ε = 0.1). Some spread ε over the V - 1 other ids; both papers spread
it over all V.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from conformkit.reference.errors import SizeError
from conformkit.reference.loss import _check
from conformkit.reference.sizes import check_at_least

__all__ = ["LabelSmoothingLoss"]


class LabelSmoothingLoss(nn.Module):
    """Average the smoothed surprise at each target over the targets that count.

    Shapes: logits (…, V), targets (…) → ()
    Units:  nats a token; 0 where no target counts.
    Raises: SizeError for a vocabulary below 1, logits of another size, or a smoothing that is no probability;
            ShapeError when targets are not shaped like the logits' positions; TokenError for a target outside the
            vocabulary.
    Source: Vaswani et al. 2017, §5.4; Szegedy et al. 2016, §7. Differs: cross-entropy, not the divergence
            from q; the two differ by the entropy of q, a constant.
    """

    def __init__(self, vocab_size: int, smoothing: float = 0.1, ignore_index: int = -100) -> None:
        super().__init__()
        check_at_least(1, vocab_size=vocab_size)
        if not 0.0 <= smoothing <= 1.0:
            raise SizeError("smoothing", smoothing, "between 0 and 1")
        self.vocab_size, self.smoothing, self.ignore_index = vocab_size, smoothing, ignore_index

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Map logits (…, V) and targets (…) to their mean loss, ()."""
        if logits.shape[-1] != self.vocab_size:
            raise SizeError("the width of the logits", logits.shape[-1], f"vocab_size = {self.vocab_size}")
        _check(logits, targets, self.ignore_index, self.smoothing)
        counted = targets != self.ignore_index  # (…)
        wanted = targets.long().masked_fill(~counted, 0)  # (…), any id will do where it does not count
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        surprises = -torch.log_softmax(wide, dim=-1)  # (…, V)
        loss = surprises.gather(-1, wanted[..., None])[..., 0]  # (…)
        if self.smoothing > 0:
            loss = (1.0 - self.smoothing) * loss + self.smoothing * surprises.mean(dim=-1)  # (…)
        total = loss.masked_fill(~counted, 0.0).sum()
        return total / counted.sum().clamp(min=1)
