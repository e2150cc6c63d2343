"""Options of x-transformers that are choices of the law: its decoder conforms in each, by a conform.toml alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance import check
from tests.needs import optional
from tests.peers.test_peers import broken, said

HEAD = """[implementation]
framework = "torch"

[variant]
norm_bias = false
norm_weight = "offset"
head_bias = false
"""
SIZES = 'd_ff = "4 * d_model"\nnum_heads = { min = 2 }\n'
WHOLE = """
[components.TinyTransformerLM]
path = "x_transformers:TransformerWrapper"
call = ["ids"]

[components.TinyTransformerLM.construct]
num_tokens = "vocab_size"
max_seq_len = "block_size"
use_abs_pos_emb = false

[components.TinyTransformerLM.construct.attn_layers]
object = "x_transformers:Decoder"

[components.TinyTransformerLM.construct.attn_layers.arguments]
dim = "d_model"
depth = "num_layers"
heads = "num_heads"
attn_dim_head = "d_model // num_heads"
OPTIONS

[components.MultiHeadAttention]
skip = true
"""
EVEN = "head_width = { min = 4, multiple_of = 2 }\n"
OPTIONS = {
    "ff_mult = 4": ('positions = "none"', ""),
    "alibi_pos_bias = true": ('positions = "alibi"', ""),
    'rotary_pos_emb = true\nrotary_emb_dim = "d_model // num_heads"': ('positions = "rotary"', EVEN),
    "ff_glu = true\nff_swish = true": ('positions = "none"\ngated = true\nactivation = "silu"', ""),
    "ff_relu_squared = true": ('positions = "none"\nactivation = "relu2"', ""),
    "sandwich_norm = true": ('positions = "none"\nplacement = "sandwich"', ""),
    "pre_norm = false": ('positions = "none"\nplacement = "post"\nfinal_norm = false', ""),
    "attn_softclamp_logits = true": ('positions = "none"\nscore_cap = 50', ""),
    "attn_one_kv_head = true": ('positions = "none"\nkv_heads = 1', ""),
    "attn_gate_values = true": ('positions = "none"\noutput_gate = "features"', ""),
    "attn_head_learned_sink = true": ('positions = "none"\nsinks = true', ""),
}
"""By its options, the choices that they are, and further limits."""


@pytest.mark.full(guard="test_a_library_deviates_where_it_is_known_to_and_nowhere_else")
@pytest.mark.parametrize("options", OPTIONS)
def test_a_decoder_of_x_transformers_conforms(options: str, tmp_path: Path) -> None:
    """Would break if such a part were judged by another definition than the published one."""
    optional("x_transformers")
    choices, limits = OPTIONS[options]
    package = tmp_path / "decoder"
    package.mkdir()
    declared = f"{HEAD}{choices}\n\n[limits]\n{SIZES}{limits}{WHOLE.replace('OPTIONS', options)}"
    (package / "conform.toml").write_text(declared, encoding="utf-8")
    report = check(package, only=("LM", "EMB"))
    assert broken(report) == set(), said(report)
    assert report.ledger()["pass"] >= 29
