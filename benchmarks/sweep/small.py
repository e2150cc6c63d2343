"""Settings of transformers' models made small, by the names of their settings: a few hundred numbers a layer."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from itertools import cycle, islice
from typing import Any

__all__ = ["small"]

_BY_NAME: Mapping[str, Any] = {
    "hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
    "kv_channels": 8, "num_kv_heads": 2, "q_lora_rank": 12, "kv_lora_rank": 16, "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4, "qk_head_dim": 12, "v_head_dim": 8, "num_experts_per_tok": 2, "moe_topk": 2, "top_k": 2,
    "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1, "sliding_window": 4, "attention_chunk_size": 4,
    "n_shared_experts": 1, "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4, "moe_num_experts": 4,
    "n_embed": 32, "d_model": 32, "hidden_dim": 32, "n_heads": 4, "n_layers": 2, "ffn_dim": 48, "state_size": 8,
    "rotary_dim": 4, "mamba_n_heads": 4, "mamba_d_head": 16, "attn_layer_period": 2, "attn_layer_offset": 1,
    "attn_layer_indices": [1],
}  # fmt: skip
"""Settings that fit together."""
_NEEDED = ("num_experts_per_tok", "head_dim", "num_key_value_heads", "attn_layer_indices")
"""Settings that are small even where they have no default."""
_BY_ENDING = {"_attention_heads": 4, "_ffn_dim": 48}
"""Settings of one half of a model: decoder_attention_heads."""
_WIDTHS = ("dim", "size", "rank", "width", "inner")
_LARGE, _SMALL = 64, 16
"""Widths above LARGE become SMALL."""
_KEPT = ("vocab", "position", "window", "chunk", "length", "token")
"""Settings with such names are numbers of ids."""
_IDS = ("bos_token_id", "eos_token_id", "pad_token_id")
_NO_ID = -1
"""An id that no text holds: some models count their positions from that of padding."""


def small(settings: Mapping[str, Any], aliases: Mapping[str, str], **sizes: int) -> dict[str, Any]:
    """Return the settings to construct a small model with; `sizes` are vocab_size, num_layers and block_size.

    `settings` are the model's own, with their defaults; `aliases` the names that this family has for usual ones.
    """
    wanted = {
        **_BY_NAME, "vocab_size": sizes["vocab_size"], "num_hidden_layers": sizes["num_layers"],
        "max_position_embeddings": sizes["block_size"],
    }  # fmt: skip
    own = {aliases.get(name, name): value for name, value in wanted.items()}
    found = {
        name: value
        for name, value in own.items()
        if name in settings and (settings[name] is not None or name in _NEEDED)
    }
    for name, value in settings.items():
        if name in found or isinstance(value, bool) or not isinstance(value, int):
            continue
        if value > _LARGE and any(word in name for word in _WIDTHS) and not any(word in name for word in _KEPT):
            found[name] = _SMALL
    if "qk_rope_head_dim" in found and "head_dim" in found:  # latent attention: the part of a head that is rotated
        found["head_dim"] = found["qk_rope_head_dim"]
    if "kv_lora_rank" in found and "num_key_value_heads" in found:  # its keys are made for every head
        found["num_key_value_heads"] = found["num_attention_heads"]
    layers = settings.get(aliases.get("num_hidden_layers", "num_hidden_layers"))
    for name, value in settings.items():
        if isinstance(value, list) and len(value) == layers:
            found[name] = list(islice(cycle(dict.fromkeys(value)), sizes["num_layers"]))
        elif isinstance(value, int) and not isinstance(value, bool):
            size = _of_a_half(name, sizes, deep=value == layers)
            found |= {} if size is None else {name: size}
        elif isinstance(value, dict) and "model_type" in value:  # a text's settings among those of images
            found[name] = {"model_type": value["model_type"], **small(value, _aliases(value["model_type"]), **sizes)}
    found |= {name: None if settings[name] is None else _NO_ID for name in _IDS if name in settings}
    found |= {name: True for name in ("is_decoder",) if name in settings}  # BERT and its kin look ahead otherwise
    rates = (name for name, value in settings.items() if "dropout" in name or name.endswith("pdrop"))
    return found | {name: 0.0 for name in rates if isinstance(settings[name], float)}


def _of_a_half(name: str, sizes: Mapping[str, int], *, deep: bool) -> int | None:
    """Return a size by the words of its name; `deep`: its default is the number of layers."""
    if "vocab_size" in name:
        return sizes["vocab_size"]
    if deep and name.endswith("_layers"):
        return sizes["num_layers"]
    return next((size for ending, size in _BY_ENDING.items() if name.endswith(ending)), None)


def _aliases(model_type: str) -> Mapping[str, str]:
    mapping = import_module("transformers.models.auto.configuration_auto").CONFIG_MAPPING
    return getattr(mapping[model_type], "attribute_map", {}) if model_type in mapping else {}
