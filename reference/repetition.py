"""The repetition penalty: ids that stand in the text already become less probable.

    z_v ← z_v / θ if z_v > 0, else z_v · θ        for every v among the ids so far; θ ≥ 1, 1 changes nothing

Keskar et al. 2019, §4.1. Differs: its formula divides every logit, which would make an id with a negative one more
probable; multiplying there lowers both.
"""

from __future__ import annotations

from torch import Tensor

from conformkit.reference.errors import SizeError

__all__ = ["penalized"]


def penalized(logits: Tensor, ids: Tensor, penalty: float) -> Tensor:
    """Lower the logits of the ids that a row holds.

    Shapes: logits (B, V), ids (B, T) → (B, V)
    Raises: SizeError for a penalty below 1, or that is not finite.
    Source: Keskar et al. 2019, §4.1.
    """
    if not 1.0 <= penalty < float("inf"):
        raise SizeError("repetition_penalty", penalty, "at least 1 and finite")
    own = logits.gather(-1, ids.long())  # (B, T)
    lowered = own.where(own < 0, own / penalty).where(own > 0, own * penalty)  # (B, T)
    return logits.scatter(-1, ids.long(), lowered)
