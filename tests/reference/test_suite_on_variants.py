"""The whole suite on the reference in variants: no clause fails, and those for the variant were judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance.diagnosis.patching import write_reference
from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Result, Verdict
from conformkit.conformance.suite import registry
from conformkit.spec.clauses import clauses_of
from conformkit.spec.variants import CANONICAL, Variant
from tests.shares import left_out

from .variants import few_variants

NEVER_TOUCHED = "ScaledDotProductAttention"
"""No choice concerns it."""

EVERYWHERE = {"MHA-PARAM-COUNT", "MHA-ORACLE", "FFN-PARAM-COUNT", "FFN-ORACLE", "BLOCK-PARAM-COUNT", "BLOCK-ORACLE",
              "LM-PARAM-COUNT", "LM-ORACLE", "GRAD-ORACLE", "GEN-GREEDY-ARGMAX", "BLOCK-NORM-KIND"}  # fmt: skip
MEANT = {
    "norm": {
        "layernorm": {"LN-MEAN", "LN-VAR", "LN-EPS", "LN-AFFINE", "LN-CONST", "LN-SHIFT-INV"},
        "rmsnorm": {"RMS-FORMULA", "RMS-NO-CENTER", "RMS-SCALE-INV"},
    },
    "norm_weight": {
        "offset": {"NORM-OFFSET", "NORM-OFFSET-INIT", "NORM-EVERYWHERE"},
        "none": {"NORM-NO-WEIGHTS", "NORM-EVERYWHERE"},
    },
    "placement": {
        "pre": {"BLOCK-PRELN-ORDER", "BLOCK-ZERO-IDENTITY", "BLOCK-SEQUENTIAL"},
        "post": {"BLOCK-POSTLN-ORDER", "BLOCK-POSTLN-NORMED"},
        "deepnorm": {"DEEP-NORMED", "DEEP-ALPHA", "DEEP-ORACLE", "DEEP-DEPTH"},
        "sandwich": {"PLACE-STREAM", "PLACE-READS", "PLACE-ADDED", "PLACE-NORMS", "PLACE-ORACLE"},
        "output": {"PLACE-STREAM", "PLACE-READS", "PLACE-ADDED", "PLACE-NORMS", "PLACE-ORACLE"},
        "parallel": {"PLACE-STREAM", "PLACE-PARALLEL", "PLACE-READS", "PLACE-ORACLE", "BLOCK-ZERO-IDENTITY"},
        "parallel_two_norms": {"PLACE-STREAM", "PLACE-PARALLEL", "PLACE-READS", "PLACE-NORMS", "PLACE-ORACLE"},
    },
    "activation": {
        "relu": {"FFN-RELU-ZERO", "FFN-NONLINEAR"},
        "relu2": {"FFN-RELU-ZERO", "FFN-NONLINEAR", "FFN-SQUARED"},
    },
    "gate_limit": {str(limit): {"GLIM-GATE", "GLIM-UP"} for limit in (7.0, 10.0)},
    "gate_offset": {"True": {"GLIM-OFFSET"}},
    "router_bias": {"True": {"MOE-BIAS"}},
    "gated": {"True": {"FFN-GATED"}, "False": {"FFN-NONLINEAR"}},
    "experts": {
        str(number): {"MOE-NETWORKS", "MOE-CHOICE", "MOE-SHARES", "MOE-NONE-DROPPED", "MOE-ROUTER-LEARNS"}
        for number in (8, 4)
    },
    "shared_expert": {"True": {"MOE-SHARED"}},
    "qkv_bias": {"True": {"SA-PARAM-COUNT", "SA-ORACLE"}, "False": {"SA-NO-BIAS"}},
    "output_projection": {"True": {"MHA-OUT-PROJ"}, "False": {"MHA-HEADS-INDEPENDENT"}},
    "ffn_bias": {"True": {"FFN-BIAS"}, "False": {"FFN-BIAS"}},
    "positions": {
        "sinusoidal": {"PE-EVEN-SIN", "PE-ODD-COS", "PE-EXPONENT", "LM-POSITIONS-ADDED", "LM-ORDER"},
        "learned": {"LPE-TRAINABLE", "LPE-ROWS", "LPE-ADD", "LM-POSITIONS-ADDED", "LM-ORDER"},
        "rotary": {"ROPE-NORM", "ROPE-RELATIVE", "ROPE-QK-ONLY", "ROPE-PAIRING", "LM-ORDER"},
        "none": {"MHA-PERM-EQUIV"},
        "alibi": {"ALIBI-SLOPES", "ALIBI-SLOPES-ODD", "ALIBI-ORACLE", "ALIBI-ALONE"},
        "relative": {"REL-NEAR", "REL-FAR", "REL-ORACLE", "REL-ALONE", "REL-SHARED"},
    },
    "rotary_fraction": {str(share): {"RPART-REST", "RPART-FIRST", "RPART-ANGLES"} for share in (0.5, 0.25)},
    "rotary_scaling": {
        kind: {"RSCALE-ANGLES", "RSCALE-MAGNITUDE", "RSCALE-ORACLE"} for kind in ("linear", "ntk", "llama3", "yarn")
    },
    "sinks": {"True": {"SINK-SHARE", "SINK-NOTHING", "SINK-ORACLE"}},
    "output_gate": {kind: {"OGATE-SHARE", "OGATE-BEFORE-OUT", "OGATE-ORACLE"} for kind in ("features", "heads")},
    "qk_norm": {kind: {"QKN-LENGTH", "QKN-PER-HEAD", "QKN-OWN-WEIGHTS", "QKN-ORACLE"} for kind in ("heads", "all")},
    "score_cap": {str(cap): {"CAP-SCORES", "CAP-MASKED"} for cap in (50.0, 30.0)},
    "logit_cap": {str(cap): {"CAP-LOGITS", "CAP-LOGITS-BOUND"} for cap in (30.0, 15.0)},
    "window": {
        str(width): {"WIN-HIDES", "WIN-REACH", "WIN-ORACLE", "WIN-LAYERS", "MHA-CAUSAL-REACH"} for width in (2, 3)
    },
    "window_rotary_base": {str(base): {"WIN-BASE", "WIN-BASES"} for base in (10000.0, 1000.0)},
    "latent": {str(width): {"MLA-NORM", "MLA-SCALE", "MLA-ORACLE"} for width in ("d_model // 2", "d_model // 4", "8")},
    "query_latent": {width: {"MLA-QUERY-NORM"} for width in ("d_model // 2", "d_model // 4")},
    "embedding_scale": {"True": {"LM-EMB-SCALE"}},
    "final_norm": {"True": {"LM-FINAL-NORM"}},
    "head_bias": {"True": {"LM-HEAD-BIAS"}},
}
"""By choice and value, the clauses about it."""
ANY_HEAD_WIDTH = {"MHA-HEADS-INDEPENDENT"}


def judged(folder: Path, name: str, warm: LentFactory) -> list[Result]:
    """Judge a variant of this name by all that its choices can concern; of clauses about every size, by its share."""
    without = left_out(name, "core")
    with opened(RunRequest(impl=str(folder)), warm) as (implementation, _):
        judge = Judge(implementation, registry.tests("core"))
        wanted = [c for c in clauses_of("core").values() if c.component != NEVER_TOUCHED and c.id not in without]
        return [judge.alone(clause.id) if clause.sizes else judge.result(clause.id) for clause in wanted]


def meant(variant: Variant) -> set[str]:
    found = set(EVERYWHERE)
    for choice, by_value in MEANT.items():
        if choice == "positions" or not (choice == "embedding_scale" and variant.positions in {"rotary", "none"}):
            found |= by_value.get(str(getattr(variant, choice)), set())
    if variant.kv_heads != "num_heads":
        found |= {"GQA-PARAM-COUNT", "GQA-EXPAND"}
    if variant.norm == "layernorm" and variant.norm_deviation == "biased":
        found |= {"LN-BIASED"}
    found -= {"LN-AFFINE"} if variant.norm_weight == "none" else set()
    found -= {"LM-ORDER"} if variant.window else set()
    found -= {"FFN-SQUARED"} if variant.gate_limit or variant.gate_offset else set()
    if variant.has_latent and variant.placement not in {"post", "deepnorm"}:
        found -= {"BLOCK-NORM-KIND", "PLACE-NORMS"} | {c for c in found if c.startswith(("LN-", "RMS-", "NORM-"))}
    if variant.has_latent and variant.positions == "rotary":
        found |= {"MLA-ROTARY-PLAIN", "MLA-CONTENT", "MLA-SHARED"}
    found -= {"LM-FINAL-NORM", "LM-HEAD-BIAS"} if variant.logit_cap else set()
    return found - (ANY_HEAD_WIDTH if variant.head_width != CANONICAL.head_width else set())


VARIANTS = few_variants()
"""The canonical one has a separate test, in tests/suite."""


@pytest.mark.full(
    guard="test_parameters_and_results_are_those_of_the_registry",
    near=["reference", "spec/variants.py", "spec/choices"],
)
@pytest.mark.parametrize("name", VARIANTS)
def test_the_suite_finds_nothing_wrong_with_the_reference(name: str, warm: LentFactory, tmp_path: Path) -> None:
    variant = VARIANTS[name]
    folder = write_reference(tmp_path / "reference_in_variant", variant=variant)
    results = judged(folder, name, warm)
    quiet = {Verdict.PASS, Verdict.NOT_APPLICABLE}
    alarms = [f"{r.clause.id} {r.verdict}: {r.message or r.reason}" for r in results if r.verdict not in quiet]
    assert not alarms, "\n".join(alarms)
    passed = {result.clause.id for result in results if result.verdict is Verdict.PASS}
    assert sorted(meant(variant) - passed) == []


def test_twice_the_input_chooses_no_other_experts(warm: LentFactory, tmp_path: Path) -> None:
    """Would break if FFN-SQUARED doubled the router's logits too: right code was red in this variant."""
    folder = write_reference(tmp_path / "experts", variant=CANONICAL.but(activation="relu2", experts=4))
    with opened(RunRequest(impl=str(folder)), warm, components=("FeedForward",)) as (implementation, _):
        result = Judge(implementation, registry.tests("core")).alone("FFN-SQUARED")
    assert result.verdict is Verdict.PASS, result.message
