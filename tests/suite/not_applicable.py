"""Clauses that do not apply to the reference, with the reason that a run gives; all others apply, and pass."""

from __future__ import annotations

__all__ = ["NOT_APPLICABLE", "NOT_IN_HALF"]

_IDS = {
    "ScaledDotProductAttention has no weights": "SDPA-RETURNS SDPA-WEIGHTS-CONSISTENT",
    "MultiHeadAttention has no weights": "MHA-WEIGHTS-SHAPE",
    "it has as many key/value heads as heads": "GQA-DIVISIBLE GQA-PARAM-COUNT GQA-EXPAND",
    "positions is sinusoidal": (
        "RPART-REST RPART-FIRST RPART-ANGLES RSCALE-ANGLES RSCALE-MAGNITUDE RSCALE-ORACLE ROPE-NORM "
        "ROPE-RELATIVE ROPE-QK-ONLY ROPE-PAIRING ROPE-PRECISION WIN-BASE WIN-BASES ALIBI-SLOPES "
        "ALIBI-SLOPES-ODD ALIBI-ORACLE ALIBI-ALONE REL-NEAR REL-FAR REL-ORACLE REL-ALONE REL-SHARED "
        "LPE-TRAINABLE LPE-ROWS LPE-ADD LPE-OVERLONG SREL-BOTH-NEAR SREL-BOTH-FAR SREL-EARLIER-NEAR "
        "SREL-EARLIER-FAR SREL-ALONE SREL-SHARED"
    ),
    "window is 0": "WIN-HIDES WIN-REACH WIN-ORACLE WIN-LAYERS",
    "qk_norm is none": "QKN-LENGTH QKN-PER-HEAD QKN-OWN-WEIGHTS QKN-ORACLE",
    "score_cap is 0.0": "CAP-SCORES CAP-MASKED",
    "logit_cap is 0.0": "CAP-LOGITS-BOUND CAP-LOGITS",
    "sinks is false": "SINK-SHARE SINK-NOTHING SINK-ORACLE",
    "output_gate is none": "OGATE-SHARE OGATE-BEFORE-OUT OGATE-ORACLE",
    "latent is 0": "MLA-NORM MLA-VALUES MLA-QUERY-NORM MLA-ROTARY-PLAIN MLA-CONTENT MLA-SHARED MLA-SCALE MLA-ORACLE",
    "activation is gelu": "FFN-RELU-ZERO FFN-SQUARED",
    "gated is false": "FFN-GATED GLIM-GATE GLIM-UP GLIM-OFFSET",
    "experts is 0": "MOE-NETWORKS MOE-CHOICE MOE-SHARES MOE-BIAS MOE-SHARED MOE-NONE-DROPPED MOE-ROUTER-LEARNS",
    "placement is pre": (
        "BLOCK-POSTLN-ORDER BLOCK-POSTLN-NORMED PLACE-STREAM PLACE-PARALLEL PLACE-READS PLACE-ADDED "
        "PLACE-NORMS PLACE-ORACLE DEEP-NORMED DEEP-ALPHA DEEP-ORACLE DEEP-DEPTH"
    ),
    "norm is layernorm": "RMS-NO-CENTER RMS-SCALE-INV RMS-FORMULA",
    "norm_weight is scale": "NORM-OFFSET NORM-OFFSET-INIT NORM-NO-WEIGHTS NORM-EVERYWHERE",
    "tied is false": "TIE-PARAM-COUNT TIE-SHARED TIE-LOGITS TIE-GRAD-SUM TIE-STAYS TIE-COPY S2S-TIE",
    "its call takes no targets": "S2S-LOSS-SHIFT S2S-LOSS-MEAN BPRE-LOSS-PLACE BPRE-LOSS-MEAN",
    "its targets are shifted by the caller": "PATH-LOSS-ROW-ENDS",
    "it returns no mask for the memory: the source's serves": "PAD-MASKS-MEMORY",
    "shared_embeddings is false": "S2S-SHARED",
    "pooling is class": "VIT-MEAN",
}
NOT_APPLICABLE = {name: reason for reason, names in _IDS.items() for name in names.split()}
NOT_IN_HALF = {"LN-LARGE": "TransformerBlock has no float32", "NUM-HALF-PRODUCT": "float16 is not accepted"}
"""Those that do not apply in bfloat16 besides."""
