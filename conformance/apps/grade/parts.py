"""The parts of an assignment that a student would name: scores, softmax, mask, heads, residual paths.

A clause belongs to the part whose word its id begins with, the longest such word; one that no word fits, to the part
that its document is about. What compares a component as a whole is a part of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformkit.spec.clauses import Clause

__all__ = ["SIDE", "part_of", "parts_of"]

_WHOLE = ("the whole", "SIZES ORACLE GOLDEN GRAD-ALL")
_PARTS: Mapping[str, str] = {
    "shapes": "SDPA-OUT SDPA-TQ SDPA-2D SDPA-LEADING SDPA-RETURNS SDPA-BATCH MHA-SHAPE MHA-T1 MHA-BATCH "
    "MHA-VARLEN MHA-DIVISIBLE SA-SHAPE SA-BATCH FFN-SHAPE PE-SHAPE PE-DTYPE BLOCK-SHAPE BLOCK-BATCH LM-LOGITS LM-SHORT "
    "LM-OVERLONG LM-OOB LM-DIVISIBLE LM-BATCH",
    "scores": "SDPA-SCALE SDPA-FORMULA SDPA-GOLDEN SDPA-K SDPA-ZERO SDPA-SHARP SDPA-QUERY MHA-SCALE SA-SCALE SA-ZERO",
    "softmax and sum of values": "SDPA-WEIGHTS SDPA-SOFTMAX SDPA-V SDPA-CONVEX SDPA-SINGLE GRAD-SOFTMAX NUM-SOFTMAX "
    "NUM-ALL SDPA-GRAD",
    "mask": "MASK NUM-MASKED",
    "float masks": "MASK-FLOAT MASK-SOFT",
    "shapes of masks": "MASK-BCAST",
    "refusals": "ERRH",
    "causal mask": "MASK-CAUSAL MASK-DIAG MHA-CAUSAL MHA-PREFIX SA-CAUSAL SA-PREFIX SA-FIRST BLOCK-CAUSAL BLOCK-PREFIX "
    "LM-CAUSAL LM-PREFIX",
    "dropout and modes": "SDPA-DROPOUT SDPA-NO MHA-DROPOUT FFN-DROPOUT PE-DROPOUT PE-NO-MUTATE BLOCK-DROPOUT "
    "LM-EVAL LM-TRAIN LM-DROPOUT LM-MODE LM-INPUT DET",
    "heads": "MHA-SPLIT MHA-HEAD MHA-CONCAT MHA-IDENTICAL MHA-H1 LM-HEADS",
    "projections": "MHA-PARAM MHA-NO MHA-OUT MHA-QKV MHA-LINEAR MHA-PERM SA-PARAM SA-NO SA-IDENT SA-PERM",
    "residual paths": "BLOCK-RESIDUAL BLOCK-ZERO BLOCK-GRAD PLACE DEEP",
    "norms": "LN RMS NORM BLOCK-NORM NUM-NORM LM-FINAL LM-NORM",
    "order of the block": "BLOCK-PRELN BLOCK-POSTLN BLOCK-SEQUENTIAL BLOCK-STACK",
    "embedding": "EMB TIE UNTIED LM-EMB LM-POSITIONS LM-ORDER LM-TOKEN LM-VOCAB",
    "text": "GEN",
    "gradients and start": "GRAD INIT LM-INIT LM-GRAD LM-STATE",
}
SIDE = frozenset({"float masks", "shapes of masks", "refusals"})
"""Parts without which the main thing works: they count like others, and what fails in them caps nothing."""
_WORDS = sorted(
    ((word, part) for part, words in _PARTS.items() for word in words.split()), key=lambda pair: -len(pair[0])
)


def part_of(clause: Clause) -> str:
    """Return the part that a clause is about."""
    rest = clause.id.partition("-")[2]
    if any(rest.startswith(word) for word in _WHOLE[1].split()) and clause.prefix not in {"GEN", "GRAD"}:
        return _WHOLE[0]
    return next((part for word, part in _WORDS if f"{clause.id}-".startswith(word)), clause.document.replace("_", " "))


def parts_of(counted: Sequence[Clause]) -> dict[str, list[str]]:
    """Return the ids of clauses by part, in the order of the law."""
    found: dict[str, list[str]] = {}
    for clause in counted:
        found.setdefault(part_of(clause), []).append(clause.id)
    return found
