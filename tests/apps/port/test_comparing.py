"""Two sides compared: whole, with what is behind a part silent, and block by block where a model is too large."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conformkit.conformance.apps.port.comparing import said_in_blocks
from conformkit.conformance.apps.port.definition import Definition
from conformkit.conformance.apps.port.family import families, family
from conformkit.conformance.apps.port.moves import planned
from conformkit.conformance.apps.port.problems import Unportable
from conformkit.conformance.apps.port.proof import Proof, Questions, compared, drawn_weights, said
from conformkit.conformance.apps.port.sides import LANGUAGE_MODEL, parameters_of
from conformkit.conformance.apps.port.sizes import sizes_of
from conformkit.spec.variants import FAMOUS, Variant

SIZES = {"vocab_size": 40, "d_model": 24, "num_heads": 4, "d_ff": 96, "num_layers": 3, "block_size": 12}
GPT2 = Definition(family("gpt2"), family("gpt2").variant({}))
LLAMA = Definition(family("llama"), family("llama").variant({}).but(kv_heads="num_heads // 2"))


def proof(one, other, sizes):
    return Proof(tuple(compared(one, other, 1e-9, probabilities=False)), "float64", sizes, 40)


@pytest.mark.parametrize("way", [said, said_in_blocks], ids=["whole", "blocks"])
@pytest.mark.parametrize("side", [GPT2, LLAMA], ids=["gpt2", "llama"])
@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("embedding.weight", "embedding, positions, final norm and head"),
        ("blocks.1.attention.k.weight", "blocks.1.attention"),
        ("blocks.2.feed_forward.down.weight", "blocks.2.feed_forward"),
        ("blocks.0.norm2.weight", "blocks.0.feed_forward"),
        ("norm.weight", "embedding, positions, final norm and head"),
    ],
)
def test_the_first_part_that_differs_is_the_one_with_other_weights(way, side, name, first):
    sizes = side.sizes(SIZES)
    weights = drawn_weights(parameters_of(side, sizes), 0)
    wrong = {**weights, name: weights[name][::-1].copy()}
    scene = Questions.drawn(sizes, seed=0, dtype="float64", most=20)
    found = proof(way(side, sizes, scene, weights.__getitem__), way(side, sizes, scene, wrong.__getitem__), sizes)
    assert found.first == first
    same = way(side, sizes, scene, weights.__getitem__)
    assert proof(same, same, sizes).holds


def test_another_epsilon_shows_with_small_embeddings():
    sizes = LLAMA.sizes(SIZES)
    other = replace(LLAMA, variant=LLAMA.variant.but(norm_eps=1e-5))
    weights = drawn_weights(parameters_of(LLAMA, sizes), 0)
    scene = Questions.drawn(sizes, seed=0, dtype="float64", most=40)
    one, two = (said(side, sizes, scene, weights.__getitem__) for side in (LLAMA, other))
    errors = {entry.part: entry.error for entry in compared(one, two, 1e-9, probabilities=False)}
    assert errors["the whole model with small embeddings"] > 100 * errors["the whole model"]


def test_ids_of_a_large_vocabulary_are_its_first_its_last_and_others():
    scene = Questions.drawn({**SIZES, "vocab_size": 50257}, seed=0, dtype="float32", most=512)
    assert (scene.rows[0], scene.rows[-1], len(set(scene.rows))) == (0, 50256, 512)
    assert scene.ids.max() == 511
    table = np.arange(50257.0)[:, None]
    np.testing.assert_array_equal(scene.cut("embedding.weight", table)[:, 0], scene.rows)


LAYOUTS = FAMOUS["llama"].but(kv_heads="num_heads // 2", qkv_bias=True)
VARIANTS = {
    "halves-to-pairs": (LAYOUTS, LAYOUTS.but(rotary_layout="pairs"), (2, 2)),
    "pairs-to-halves": (LAYOUTS.but(rotary_layout="pairs"), LAYOUTS, (2, 2)),
    "fewer-heads": (LAYOUTS, LAYOUTS, (2, 4)),
    "fewer-heads-and-pairs": (LAYOUTS, LAYOUTS.but(rotary_layout="pairs"), (1, 4)),
    "tied": (FAMOUS["gpt2"], FAMOUS["gpt2"].but(tied=False), (4, 4)),
    "scaled": (FAMOUS["gemma"], FAMOUS["gemma"].but(embedding_scale=False, tied=False), (2, 2)),
    "unscaled": (LAYOUTS, LAYOUTS.but(embedding_scale=True), (2, 2)),
    "offset": (FAMOUS["gpt2"].but(position_offset=2), FAMOUS["gpt2"], (4, 4)),
    "onset": (FAMOUS["gpt2"], FAMOUS["gpt2"].but(position_offset=2), (4, 4)),
    "biases": (FAMOUS["nanogpt"], FAMOUS["gpt2"].but(activation="gelu"), (4, 4)),
}


@pytest.mark.parametrize("case", VARIANTS)
def test_weights_make_up_for_what_they_can(case):
    theirs, ours, heads = VARIANTS[case]
    sizes, own = ({**SIZES, "head_width": 6, "kv_heads": count} for count in heads)
    plan = planned(theirs, ours, sizes, own)
    assert (plan.obstacles, plan.missing) == ({}, ())
    weights = drawn_weights(LANGUAGE_MODEL.parameters(sizes, theirs), 0)
    moved = {name: plan.array(name, weights.__getitem__) for name in plan.parameters}
    ids = np.arange(24).reshape(2, 12)
    one = LANGUAGE_MODEL.forward(weights, {"ids": ids}, sizes, theirs)
    np.testing.assert_allclose(LANGUAGE_MODEL.forward(moved, {"ids": ids}, own, ours), one, atol=1e-10)


@pytest.mark.parametrize(
    ("theirs", "ours", "choice"),
    [
        (LAYOUTS, LAYOUTS.but(norm_eps=1e-6), "norm_eps"),
        (LAYOUTS, LAYOUTS.but(rotary_base=500000.0), "rotary_base"),
        (LAYOUTS, LAYOUTS.but(tied=True), "tied"),
        (FAMOUS["gpt2"], FAMOUS["gpt2"].but(activation="gelu"), "activation"),
        (FAMOUS["gemma"], FAMOUS["gemma"].but(embedding_scale=False), "embedding_scale"),
        (FAMOUS["gpt2"], FAMOUS["gpt2"].but(placement="post"), "placement"),
    ],
    ids=["epsilon", "base", "tied", "activation", "scale", "placement"],
)
def test_what_no_weights_make_up_for_is_an_obstacle(theirs: Variant, ours: Variant, choice: str):
    sizes = {**SIZES, "head_width": 6, "kv_heads": 2}
    assert list(planned(theirs, ours, sizes, sizes).obstacles) == [choice]


class Shapes:
    """A checkpoint of which only the shapes are known."""

    place = "w.safetensors"

    def __init__(self, side, sizes):
        from conformkit.conformance.apps.port.safetensors_files import TensorEntry
        from conformkit.conformance.apps.port.sides import rules_at
        from conformkit.conformance.apps.port.source import stored_shapes

        shapes = stored_shapes(rules_at(side, sizes), parameters_of(side, sizes))
        self.entries = {name: TensorEntry("float32", shape) for name, shape in shapes.items()}


@pytest.mark.parametrize("name", families())
def test_sizes_are_told_by_shapes_and_the_number_of_heads(name):
    known = family(name)
    variant = known.variant({"partial_rotary_factor": 1.0} if "partial_rotary_factor" in known.tables["only"] else {})
    side = Definition(known, variant)
    sizes = side.at({**SIZES, **({"kv_heads": 2} if "kv_heads" in side.free else {})})
    found = side.at(sizes_of(side, Shapes(side, sizes), {"num_heads": 4}))
    learned = {} if variant.positions == "learned" else {"block_size": 64}
    assert found == {**sizes, **learned}


def test_a_file_of_another_family_is_refused_with_the_family_whose_names_it_has():
    other = Definition(family("llama"), family("llama").variant({}))
    with pytest.raises(Unportable, match="has hardly any of the weights of the definition as gpt2") as problem:
        sizes_of(GPT2, Shapes(other, other.sizes(SIZES)), {"num_heads": 4})
    assert problem.value.advice[0] == "its names are those of llama"


def test_without_the_number_of_heads_the_command_asks_for_it():
    with pytest.raises(Unportable, match="do not tell num_heads"):
        sizes_of(GPT2, Shapes(GPT2, GPT2.sizes(SIZES)), {})


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("llama", {"rope_scaling": {"rope_type": "llama3"}}, "rope_scaling is"),
        ("llama", {"rope_parameters": {"rope_type": "yarn"}}, "rope_parameters.rope_type is 'yarn'"),
        ("llama", {"hidden_act": "relu2"}, "hidden_act is 'relu2'"),
        ("glm", {"hidden_size": 8}, "does not say partial_rotary_factor, which is 0.5 then"),
        ("granite", {"logits_scaling": 8.0}, "logits_scaling is 8.0"),
        ("opt", {"do_layer_norm_before": False}, "do_layer_norm_before is False"),
    ],
)
def test_a_config_json_beyond_the_definition_is_refused_by_its_key(name, settings, said):
    with pytest.raises(Unportable, match=said):
        family(name).variant(settings)


def test_a_config_json_sets_the_variant():
    settings = {"rms_norm_eps": 1e-5, "rope_theta": 500000.0, "attention_bias": True, "tie_word_embeddings": True}
    found = family("llama").variant(settings)
    assert (found.norm_eps, found.rotary_base, found.qkv_bias, found.output_bias, found.tied) == (
        1e-5,
        5e5,
        True,
        True,
        True,
    )
    newer = family("llama").variant({"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}})
    assert newer.rotary_base == 1e6
