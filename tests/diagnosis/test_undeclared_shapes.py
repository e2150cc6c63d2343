"""What the search for undeclared choices takes for granted, so that it need not compute it again."""

from __future__ import annotations

import pytest

from conformkit.conformance.binding.sizes import derived
from conformkit.conformance.diagnosis.inactive_choices import distinct, without_effect
from conformkit.conformance.diagnosis.looked_for import SHAPELESS
from conformkit.conformance.diagnosis.search_rare import changed
from conformkit.spec.components import component
from conformkit.spec.variants import CANONICAL, FAMOUS, Variant, alternatives

SIZES = {
    "d_model": 48, "num_heads": 12, "d_ff": 28, "vocab_size": 11, "block_size": 9, "num_layers": 2, "max_len": 9,
    "num_encoder_layers": 2, "num_decoder_layers": 2, "src_vocab_size": 7, "tgt_vocab_size": 11, "pad_id": 0,
}  # fmt: skip
BASES = {"canonical": CANONICAL, **FAMOUS, "windows": CANONICAL.but(window=3, qk_norm="heads", gated=True)}
NAMES = ("MultiHeadAttention", "FeedForward", "TransformerBlock", "TinyTransformerLM", "CrossAttention", "Transformer")


def shapes(name: str, variant: Variant) -> dict[str, tuple[int, ...]] | None:
    found = derived(SIZES, variant)
    if found is None:
        return None
    return {key: one.shape for key, one in component(name).parameters({**SIZES, **found}, variant).items()}


@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
@pytest.mark.parametrize("name", NAMES)
def test_choices_without_a_shape_change_no_parameter(name: str, base: Variant) -> None:
    """Would break if a new choice that adds a parameter were listed: its variants would get others' parameters."""
    for choice in sorted(SHAPELESS):
        for value in alternatives(choice, getattr(base, choice)):
            assert shapes(name, base.but(**{choice: value})) == shapes(name, base), (choice, value)


@pytest.mark.parametrize("name", ["MultiHeadAttention", "TinyTransformerLM"])
def test_leaving_out_changes_without_effect_loses_no_variant(name: str) -> None:
    """Would break if a change that wakes another one were left out with it: no such pair would be searched for."""
    choices = ("positions", "rotary_base", "rotary_layout", "qkv_bias", "key_bias", "window", "window_layers", "tied")
    every, left = (
        set(distinct(changed(CANONICAL, choices, 2, **given), name))
        for given in ({}, {"idle": lambda variant: without_effect(variant, name)})
    )
    assert left == every
