"""Clauses of core that call components and hold where noise comes back: they are about something else.

They are grouped by what they look at; what the law says of values is said by other clauses, which fail under noise.
"""

from __future__ import annotations

__all__ = ["DIFFERENT", "WITHOUT_VALUES"]

_BY_WHAT_COUNTS = {
    "shapes, lengths and number formats": (
        "BLOCK-SHAPE FFN-SHAPE LM-LOGITS-SHAPE MHA-SHAPE PE-SHAPE SA-SHAPE SDPA-EMPTY SDPA-OUT-SHAPE SDPA-TQ-NE-TK "
        "DT-FLOAT64 DT-HALF DT-INT-IDS PE-DTYPE PE-MAXLEN"
    ),
    "numbers that are finite": "DET-DROPOUT-ALL INIT-FINITE NUM-HALF NUM-LARGE-INPUT NUM-NORM-ZERO",
    "what is refused": (
        "ERRH-BROADCAST ERRH-EMPTY-SEQ ERRH-FEATURE-DIM ERRH-FLOAT-IDS ERRH-KV-LEN ERRH-MASK-CUT ERRH-MASK-GROW "
        "ERRH-MASK-SHAPE ERRH-MESSAGE ERRH-OVERLONG ERRH-QK-DIM ERRH-VALUES-LEFT GEN-MODE-RESTORE-ERROR LM-OOB "
        "LM-OOB-NEGATIVE LM-OVERLONG LM-OVERLONG-ONE MASK-INT PE-OVERLONG PE-OVERLONG-ONE PE-OVERLONG-REFUSED"
    ),
    "gradients": (
        "BLOCK-CAUSAL-DEFAULT BLOCK-GRAD-ALL FFN-GRAD-ALL GRAD-DROPOUT GRAD-TRAIN MHA-CAUSAL MHA-CAUSAL-ALL-HEADS "
        "MHA-CAUSAL-DEFAULT MHA-CAUSAL-OFF MHA-CAUSAL-REACH MHA-GRAD-ALL SA-CAUSAL-DEFAULT SA-CAUSAL-OFF "
        "SA-CAUSAL-REACH SA-GRAD-ALL"
    ),
    "what a call leaves behind, and what it costs": (
        "COST-MASK-NOT-HUGE COST-NO-LEAK COST-STATE-SIZE DET-NO-MUTATE LM-INPUT-UNCHANGED LM-MODE-KEPT MASK-NO-MUTATE "
        "PE-NO-MUTATE SDPA-NO-MUTATE"
    ),
    "devices": "DEV-LIFT DEV-MOVES DEV-MOVES-USED DEV-STATE DEV-SYNC DEV-WRITTEN",
    "texts, whose ids come from another call": "GEN-BATCH GEN-ROWS-INDEP GEN-SAMPLES",
    "numbers that are not those of one mistake": "EMB-SCALE-BEFORE-PE LM-EMB-SCALE LM-INIT-CERTAIN LN-BIASED",
    "numbers that do not change, which noise does": "LN-TRAIN-EVAL-SAME",
    "the order of two numbers": "DET-DROPOUT-RATE",
}
_DIFFERENT = (
    "BLOCK-CAUSAL-OFF BLOCK-RESIDUAL-ATTN BLOCK-RESIDUAL-FFN BLOCK-SEQUENTIAL DET-DROPOUT-DRAWS DET-DROPOUT-USED "
    "DET-SEED-LOCAL DET-TRAIN-AGAIN FFN-BIAS FFN-NONLINEAR INIT-SCALE LM-DEPTH LM-DROPOUT-ACTIVE LM-HEADS "
    "LM-LOGITS-RAW LM-ORDER LM-POSITIONS-ADDED LM-TOKEN-DEP LM-USES-PAST MHA-DROPOUT-TRAIN MHA-QKV-DISTINCT MHA-T1 "
    "PE-NO-SCALE PE-UNIQUE"
)
DIFFERENT = frozenset(_DIFFERENT.split())
"""Those about numbers that must differ from others, as noise does: they fail where all numbers are 0."""
WITHOUT_VALUES = DIFFERENT.union(*(ids.split() for ids in _BY_WHAT_COUNTS.values()))
