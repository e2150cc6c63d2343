"""Public libraries, bound only by a conform.toml: what passes, and the deviations that docs/found.md describes.

Each list of deviations is exact: a clause that starts to pass, or to fail, must be noticed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance import check
from conformkit.conformance.engine.results import Report
from conformkit.spec.clauses import Level
from tests.needs import optional
from tests.tiers import sampled

HERE = Path(__file__).parent
GENERAL = ("GRAD", "NUM", "DET", "DT", "ERRH", "INIT")
BLOCK = ("BLOCK", *GENERAL)
LM = ("LM", "GEN", *GENERAL)

PRESETS = ("gemma2", "gemma3", "qwen2", "olmo2", "llama3", "gpt_neox", "gpt_oss")
"""Families that are declared by their names; others declare their choices one by one."""
PEERS = {
    "torch_mha": (("MHA", *GENERAL), set()),
    "torch_encoder_layer": (BLOCK, set()),
    "gpt2": (LM, set()),
    "llama": (("FFN", *LM), set()),
    "mistral": (LM, set()),
    "mistral_window": (("LM", "GEN", "WIN"), set()),
    "qwen3": (("LM", "GEN"), set()),
    "deepseek_v2": (("LM", "GEN"), set()),
    **dict.fromkeys(PRESETS, (("LM", "GEN", "WIN", "CAP"), set())),
    "bloom": (("LM", "GEN"), set()),
    "phi3": (LM, set()),
    "gemma": (LM, set()),
    "granite": (LM, set()),
    "helium": (LM, set()),
    "glm": (LM, set()),
    "stablelm": (LM, set()),
    "starcoder2": (LM, set()),
    "gpt_bigcode": (LM, set()),
    "gpt_neo": (LM, set()),
    "openai_gpt": (LM, {"GEN-CROP"}),
    "opt": (LM, set()),
    "biogpt": (LM, set()),
    "xglm": (LM, set()),
    "albert": (BLOCK, set()),
    "beit": (BLOCK, set()),
    "camembert": (BLOCK, set()),
    "clip": (BLOCK, set()),
    "distilbert": (BLOCK, set()),
    "electra": (BLOCK, set()),
    "esm": (BLOCK, set()),
    "mpnet": (BLOCK, set()),
    "roberta": (BLOCK, set()),
    "roberta_prelayernorm": (BLOCK, set()),
    "siglip": (BLOCK, set()),
    "vit": (BLOCK, set()),
    "wav2vec2": (BLOCK, set()),
    "whisper": (BLOCK, set()),
}  # fmt: skip


SEQ2SEQ: dict[str, set[str]] = {
    "torch_transformer": set(),
    "marian": set(),
    "bart": set(),
    "t5": set(),
    "bert": set(),
    "pegasus": set(),
    "blenderbot": set(),
    "blenderbot_small": {"S2S-EMBED-TGT"},
    "mbart": set(),
    "plbart": set(),
    "m2m_100": set(),
}
"""Encoder-decoders and parts of them, judged by the whole of their profile."""


@pytest.mark.parametrize("name", sampled(PEERS, always=["torch_mha"], files=lambda name: [HERE / name], most=1))
def test_a_library_deviates_where_it_is_known_to_and_nowhere_else(name: str) -> None:
    if not name.startswith("torch_"):
        optional("transformers")
    only, deviations = PEERS[name]
    report = check(HERE / name, only=only)
    assert broken(report) == deviations, said(report)
    assert report.ledger()["pass"] > 50


@pytest.mark.full(guard="test_a_library_deviates_where_it_is_known_to_and_nowhere_else")
@pytest.mark.parametrize("name", SEQ2SEQ)
def test_an_encoder_decoder_deviates_where_it_is_known_to_and_nowhere_else(name: str) -> None:
    if name != "torch_transformer":
        optional("transformers")
    report = check(HERE / name, profile="seq2seq")
    assert broken(report) == SEQ2SEQ[name], said(report)
    assert report.ledger()["pass"] >= 19


@pytest.mark.full(guard="test_a_library_deviates_where_it_is_known_to_and_nowhere_else")
@pytest.mark.parametrize(("name", "profile"), [("bert_model", "encoder"), ("vit_model", "vit")])
def test_a_published_encoder_conforms_by_a_declaration_alone(name: str, profile: str) -> None:
    """Would break if weights of transformers' BERT or ViT were no longer found by their names."""
    optional("transformers")
    report = check(HERE / name, profile=profile)
    assert broken(report) == set(), said(report)
    assert report.conforms
    assert report.ledger()["pass"] >= 28


def said(report: Report) -> str:
    return "\n".join(f"{r.clause.id}: {r.message}" for r in report.failures())


def broken(report: Report) -> set[str]:
    return {r.clause.id for r in report.failures() if r.clause.level is Level.MUST}
