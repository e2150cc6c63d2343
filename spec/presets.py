"""Families of models by name: the choices that `like = "…"` stands for, and families for which a choice is lacking.

A family's models differ in sizes: numbers of key/value heads, widths of heads, windows and bases of rotation are those
of one that is well known, and are declared next to `like` where another has others.
"""

from __future__ import annotations

from collections.abc import Mapping

from conformkit.spec.variants import FAMOUS, LATENTS, VIT, Variant

__all__ = ["LACKING", "PRESETS", "preset_of"]

_GPT2 = FAMOUS["gpt2"]
_LLAMA = FAMOUS["llama"].but(norm_eps=1e-6, kv_heads="num_heads")
_GEMMA = _LLAMA.but(
    norm_weight="offset", activation="gelu_tanh", embedding_scale=True, tied=True, kv_heads="1",
)  # fmt: skip
_GEMMA3 = _GEMMA.but(
    placement="sandwich", qk_norm="heads", kv_heads="num_heads // 2", rotary_base=1e6, window=1024,
    window_layers="5 of 6", window_rotary_base=10000.0,
)  # fmt: skip
_OSS = _LLAMA.but(
    norm_eps=1e-5, qkv_bias=True, output_bias=True, kv_heads="num_heads // 8", head_width="64", sinks=True,
    window=128, window_layers="even", rotary_base=150000.0, rotary_scaling="yarn", rotary_factor=32.0,
    rotary_length=4096, rotary_whole_pairs=False, activation="quick_gelu", gate_limit=7.0, gate_offset=True,
    ffn_bias=True, experts=32, experts_active=4, router_bias=True,
)  # fmt: skip
_DEEPSEEK = _LLAMA.but(
    rotary_layout="pairs", latent="512", query_latent="1536", head_width="128", rotary_width="64",
    experts=64, experts_active=6, expert_weights="all", shared_expert=True,
)  # fmt: skip
_NEOX = Variant(
    placement="parallel_two_norms", qkv_bias=True, output_bias=True, positions="rotary", rotary_layout="halves",
    rotary_fraction=0.25, head_bias=False,
)  # fmt: skip
_GPTJ = Variant(placement="parallel", activation="gelu_tanh", positions="rotary", rotary_fraction=0.25)
_BIASED = Variant(qkv_bias=True, output_bias=True, positions="learned", tied=True, head_bias=False)
_T5 = Variant(
    norm="rmsnorm", norm_eps=1e-6, activation="relu", ffn_bias=False, positions="relative", score_scale=False,
    tied=True, tied_scale=True, shared_embeddings=True, head_bias=False,
)  # fmt: skip

PRESETS: Mapping[str, Variant] = {
    "gpt2": _GPT2,
    "nanogpt": _BIASED,
    "gpt_bigcode": _GPT2.but(kv_heads="1"),
    "gpt_neo": _GPT2.but(qkv_bias=False),
    "openai_gpt": _GPT2.but(placement="post", final_norm=False),
    "opt": _BIASED.but(activation="relu", position_offset=2),
    "biogpt": _BIASED.but(position_offset=2, embedding_scale=True),
    "xglm": _BIASED.but(
        positions="sinusoidal", sinusoid_layout="halves", sinusoid_frequencies="tensor2tensor", position_offset=2,
        embedding_scale=True,
    ),
    "bloom": _GPT2.but(positions="alibi", embedding_norm=True),
    "mpt": Variant(norm_bias=False, ffn_bias=False, positions="alibi", tied=True, head_bias=False),
    "falcon": Variant(
        placement="parallel", ffn_bias=False, kv_heads="1", positions="rotary", rotary_layout="halves", tied=True,
        head_bias=False,
    ),
    "neox": _NEOX,
    "gpt_neox": _NEOX,
    "gptj": _GPTJ,
    "gpt_j": _GPTJ,
    "codegen": _GPTJ.but(rotary_fraction=0.5),
    "phi": _GPTJ.but(qkv_bias=True, output_bias=True, rotary_layout="halves", rotary_fraction=0.4),
    "nemotron": Variant(
        norm_weight="offset", activation="relu2", ffn_bias=False, kv_heads="num_heads // 3", positions="rotary",
        rotary_layout="halves", rotary_fraction=0.5, head_bias=False,
    ),
    "llama": _LLAMA,
    "llama3": _LLAMA.but(norm_eps=1e-5, kv_heads="num_heads // 4", rotary_base=500000.0),
    "mistral": _LLAMA.but(norm_eps=1e-5, kv_heads="num_heads // 4", window=4096),
    "mixtral": _LLAMA.but(
        norm_eps=1e-5, kv_heads="num_heads // 4", rotary_base=1e6, experts=8, experts_active=2,
    ),
    "phi3": _LLAMA.but(norm_eps=1e-5),
    "qwen2": _LLAMA.but(qkv_bias=True, rotary_base=1e6),
    "qwen3": _LLAMA.but(qk_norm="heads", kv_heads="num_heads // 2", rotary_base=1e6),
    "qwen3_moe": _LLAMA.but(
        qk_norm="heads", kv_heads="num_heads // 4", rotary_base=1e6, experts=128, experts_active=8,
    ),
    "granite": _LLAMA,
    "helium": _LLAMA.but(rotary_layout="pairs", rotary_base=100000.0),
    "glm": _LLAMA.but(rotary_layout="pairs", qkv_bias=True),
    "stablelm": _LLAMA.but(norm="layernorm", norm_eps=1e-5),
    "starcoder2": _LLAMA.but(
        norm="layernorm", norm_eps=1e-5, activation="gelu_tanh", gated=False, ffn_bias=True, qkv_bias=True,
        output_bias=True, tied=True,
    ),
    "olmo": _LLAMA.but(norm="layernorm", norm_weight="none", norm_eps=1e-5),
    "olmo2": _LLAMA.but(placement="output", qk_norm="all", rotary_base=500000.0),
    "gemma": _GEMMA,
    "gemma2": _GEMMA.but(
        placement="sandwich", kv_heads="num_heads // 2", score_cap=50.0, logit_cap=30.0, window=4096,
        window_layers="even",
    ),
    "gemma3": _GEMMA3,
    "gemma3_text": _GEMMA3,
    "gpt_oss": _OSS,
    "gpt-oss": _OSS,
    "deepseek_v2": _DEEPSEEK,
    "deepseek-v2": _DEEPSEEK,
    "deepseek_v2_lite": _DEEPSEEK.but(query_latent="0"),
    "deepseek-v2-lite": _DEEPSEEK.but(query_latent="0"),
    "t5": _T5,
    "t5_v1_1": _T5.but(activation="gelu_tanh", gated=True, tied=False, tied_scale=False),
    "vaswani": FAMOUS["vaswani"],
    "annotated": FAMOUS["annotated"],
    "bert": FAMOUS["bert"],
    "vit": VIT,
}  # fmt: skip

LACKING: Mapping[str, str] = {
    "bart": "it is an encoder-decoder",
    "cohere": "its logits are multiplied by a factor",
    "deepseek_v3": "its experts are weighted by sigmoids, and chosen with a bias that is not trained",
}
"""Families that no variant expresses, and the part that the definition lacks. Names as in model_type."""

_OPEN = (
    "kv_heads", "head_width", "window", "window_layers", "rotary_base", "window_rotary_base",
    "rotary_scaling", "rotary_factor", "rotary_fraction", "norm_eps", "tied", "shared_embeddings", "experts",
    "experts_active", *LATENTS,
)  # fmt: skip
"""Choices in which models of one family differ."""


def preset_of(variant: Variant) -> tuple[str, dict[str, object]] | None:
    """Return the family by which a variant is declared in the fewest lines, and what differs from it.

    None where no family has its choices up to those in which the models of one differ, or where that saves nothing.
    """
    best: tuple[str, dict[str, object]] | None = None
    for name, family in PRESETS.items():
        near = family.but(window_layers=variant.window_layers) if not variant.window else family
        rest = variant.differences(near)
        saves = len(rest) + 1 < len(variant.differences())
        if set(rest) <= set(_OPEN) and saves and (best is None or len(rest) < len(best[1])):
            best = name, rest
    return best
