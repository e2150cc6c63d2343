"""Families of models by name: one table for conform.toml, adapt and port."""

from __future__ import annotations

import pytest

from conformkit.conformance.apps.port.family import families, family
from conformkit.conformance.apps.port.problems import Unportable
from conformkit.conformance.binding.config import parse_config
from conformkit.conformance.binding.toml_nodes import ConfigError
from conformkit.spec.presets import LACKING, PRESETS, preset_of
from conformkit.spec.variants import CANONICAL


@pytest.mark.parametrize("name", PRESETS)
def test_like_stands_for_the_choices_of_a_family(name):
    """Would break if a choice of the preset were lost on the way, or could not be declared."""
    assert parse_config(f'[variant]\nlike = "{name}"\n').variant_for("TinyTransformerLM") == PRESETS[name]


def test_keys_next_to_like_override_it_whatever_their_order():
    text = '[variant]\nwindow = 0\nlike = "gemma2"\nscore_cap = 0\nkv_heads = 1\n'
    found = parse_config(text).variant_for("MultiHeadAttention")
    assert found == PRESETS["gemma2"].but(window=0, score_cap=0.0, kv_heads="1")


def test_a_component_may_have_a_family_of_its_own():
    text = '[variant]\nlike = "gpt2"\n[components.FeedForward.variant]\nlike = "llama"\n'
    config = parse_config(text)
    assert config.variant_for("FeedForward").activation == "silu"
    assert config.variant_for("MultiHeadAttention") == PRESETS["gpt2"]


@pytest.mark.parametrize("name", LACKING)
def test_a_family_whose_part_is_lacking_is_refused_with_the_part(name):
    with pytest.raises(ConfigError) as refused:
        parse_config(f'[variant]\nlike = "{name}"\n')
    assert LACKING[name] in str(refused.value)
    with pytest.raises(Unportable, match=LACKING[name]):
        family(name)


def test_a_misspelt_family_is_refused_with_the_nearest():
    with pytest.raises(ConfigError) as refused:
        parse_config('[variant]\nlike = "llama33"\n')
    assert "llama3" in str(refused.value)


def test_no_family_is_there_and_lacking():
    assert not PRESETS.keys() & LACKING.keys()


@pytest.mark.parametrize("name", families())
def test_port_has_the_choices_of_the_preset(name):
    """Would break if a file of port declared a choice that is another one in the table."""
    sizes = {"kv_heads", "head_width", "window", "window_layers"}
    settings = {"partial_rotary_factor": 1.0} if "partial_rotary_factor" in family(name).tables["only"] else {}
    assert family(name).variant(settings).differences(PRESETS[name]).keys() <= sizes


@pytest.mark.parametrize("name", PRESETS)
def test_a_family_is_recognized_by_its_choices(name):
    found = preset_of(PRESETS[name])
    assert found is not None
    assert PRESETS[found[0]].but(**found[1]) == PRESETS[name]


def test_what_differs_within_a_family_is_left_to_declare():
    assert preset_of(PRESETS["llama3"].but(kv_heads="2")) == ("llama3", {"kv_heads": "2"})
    assert preset_of(PRESETS["mistral"].but(window=0))[0] in {"mistral", "llama", "llama3", "phi3"}
    assert preset_of(CANONICAL) is None
    assert preset_of(PRESETS["llama"].but(activation="relu")) is None
