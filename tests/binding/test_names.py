"""How names are read: the usual names of parameters tell most of what they are."""

from __future__ import annotations

import pytest

from conformkit.conformance.binding.names import fit, template

ATTENTION = [f"{part}.{kind}" for part in ("q", "k", "v", "out") for kind in ("weight", "bias")]
FEED_FORWARD = [f"{part}.{kind}" for part in ("up", "gate", "down") for kind in ("weight", "bias")]
MODEL = ["embedding.weight", "positions.weight", "head.weight", "head.bias", "norm.weight", "norm.bias"]
BLOCK = [
    *(f"attention.{name}" for name in ATTENTION), *(f"feed_forward.{name}" for name in FEED_FORWARD),
    "norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias",
]  # fmt: skip


def likeliest(theirs, canonical):
    """Return the canonical names that fit best, including ties."""
    scores = {name: fit(theirs, (name,)) for name in canonical}
    return {name for name, score in scores.items() if score == max(scores.values())}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("q.weight", "q.weight"),
        ("w_q.weight", "q.weight"),
        ("q_proj.weight", "q.weight"),
        ("to_q.weight", "q.weight"),
        ("query.bias", "q.bias"),
        ("b_q", "q.bias"),
        ("bo", "out.bias"),
        ("linear_keys.weight", "k.weight"),
        ("attn.value.weight", "v.weight"),
        ("o_proj.weight", "out.weight"),
        ("c_proj.weight", "out.weight"),
        ("unify_heads.weight", "out.weight"),
        ("qProj.kernel", "q.weight"),
        ("values.weight", "v.weight"),
    ],
)
def test_projections_of_attention_are_read_off_their_names(theirs, ours):
    assert likeliest(theirs, ATTENTION) == {ours}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("fc1.weight", "up.weight"),
        ("w2.bias", "down.bias"),
        ("up_proj.weight", "up.weight"),
        ("gate_proj.weight", "gate.weight"),
        ("c_fc.weight", "up.weight"),
        ("c_proj.weight", "down.weight"),
        ("linear_1.bias", "up.bias"),
        ("w_out.weight", "down.weight"),
        ("net.0.weight", "up.weight"),
    ],
)
def test_layers_of_a_feed_forward_network_are_read_off_their_names(theirs, ours):
    # `fc1` may also be the gate if there is one, but never the down projection
    found = likeliest(theirs, FEED_FORWARD)
    assert ours in found
    assert any("down" in name for name in found) == ("down" in ours)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("transformer.wte.weight", "embedding.weight"),
        ("tok_emb", "embedding.weight"),
        ("transformer.wpe.weight", "positions.weight"),
        ("pos_emb", "positions.weight"),
        ("lm_head.weight", "head.weight"),
        ("unembed.bias", "head.bias"),
        ("ln_f.weight", "norm.weight"),
        ("final_norm.bias", "norm.bias"),
    ],
)
def test_parts_of_a_model_are_read_off_their_names(theirs, ours):
    assert likeliest(theirs, MODEL) == {ours}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("h.0.attn.c_proj.weight", "attention.out.weight"),
        ("h.0.mlp.c_proj.weight", "feed_forward.down.weight"),
        ("self_attn.out.bias", "attention.out.bias"),
        ("ffn.out.bias", "feed_forward.down.bias"),
        ("feed_forward_block.out.bias", "feed_forward.down.bias"),
        ("self_attention_layer.out.bias", "attention.out.bias"),
    ],
)
def test_the_container_distinguishes_names_that_both_sublayers_use(theirs, ours):
    # c_proj is the last layer of both; judged by its last word only, the two were exchanged
    assert likeliest(theirs, BLOCK) == {ours}


@pytest.mark.parametrize("word", ["", "_block", "_sublayer"])
@pytest.mark.parametrize("own", ["self_attention", "cross_attention"])
def test_two_attentions_are_told_apart_also_by_names_of_blocks(own, word):
    # code that fits nowhere was left unbound: no name said which attention is which
    layer = [f"{attention}.q.weight" for attention in ("self_attention", "cross_attention")]
    assert likeliest(f"{own}{word}.w_q.weight", layer) == {f"{own}.q.weight"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("ln_1", "ln_2"),
        ("norm1", "norm2"),
        ("ln1", "ln2"),
        ("attn_norm", "ffn_norm"),
        ("input_layernorm", "post_attention_layernorm"),
        ("norm_a", "norm_b"),
        ("sa_layer_norm", "output_layer_norm"),
        ("pre_norm", "post_norm"),
    ],
)
def test_two_norms_are_distinguished(first, second):
    assert likeliest(f"{first}.weight", BLOCK) == {"norm1.weight"}
    assert likeliest(f"{second}.bias", BLOCK) == {"norm2.bias"}


@pytest.mark.parametrize(("theirs", "part"), [("Wk", "k"), ("params.Wv", "v"), ("w_o", "out"), ("heads.0.q", "q")])
def test_a_bare_array_leaves_weight_or_bias_to_its_shape(theirs, part):
    assert likeliest(theirs, ATTENTION) == {f"{part}.weight", f"{part}.bias"}


@pytest.mark.parametrize(
    ("first", "second"),
    [("norms.0", "norms.1"), ("norms.1", "norms.2"), ("ln_0", "ln_1"), ("0.norm", "1.norm"), ("sub.0.ln", "sub.1.ln")],
)
def test_two_norms_of_a_list_come_in_its_order_from_whichever_number_it_counts(first, second):
    def together(*pairs):
        return sum(fit(f"{theirs}.weight", (f"{ours}.weight",)) for theirs, ours in pairs)

    assert together((first, "norm1"), (second, "norm2")) > together((first, "norm2"), (second, "norm1"))


def test_a_norm_without_a_number_leaves_both_open():
    assert likeliest("norm.weight", BLOCK) == {"norm1.weight", "norm2.weight"}


@pytest.mark.parametrize(("name", "kind"), [("gamma", "weight"), ("beta", "bias"), ("g", "weight"), ("b", "bias")])
def test_gain_and_shift_of_a_norm_have_other_names_too(name, kind):
    assert likeliest(f"ln.{name}", ["norm.weight", "norm.bias"]) == {f"norm.{kind}"}


@pytest.mark.parametrize(("gain", "shift"), [("gain", "offset"), ("gamma", "beta"), ("scale", "shift")])
def test_numbered_gains_and_shifts_of_norms_without_a_module_have_their_place(gain, shift):
    for number in (1, 2):
        assert likeliest(f"{gain}{number}", BLOCK) == {f"norm{number}.weight"}
        assert likeliest(f"{shift}_{number}", BLOCK) == {f"norm{number}.bias"}


def test_a_fused_name_fits_the_fused_parts_better_than_one_of_them():
    fused, alone = ("q.weight", "k.weight", "v.weight"), ("q.weight",)
    for name in ("c_attn.weight", "qkv.weight", "in_proj_weight", "Wqkv"):
        assert fit(name, fused) > fit(name, alone)
    assert fit("kv_proj.weight", ("k.weight", "v.weight")) > fit("kv_proj.weight", fused)
    assert fit("q_proj.weight", alone) > fit("q_proj.weight", fused)


def test_the_order_of_fused_parts_does_not_change_their_role():
    # v, q, k together are as fused as q, k, v
    assert fit("qkv.weight", ("v.weight", "q.weight", "k.weight")) == fit(
        "qkv.weight", ("q.weight", "k.weight", "v.weight")
    )


def test_a_name_that_says_nothing_fits_nothing():
    assert {fit("theta.17", (name,)) for name in ATTENTION} == {0.0}


def test_a_bias_is_not_a_weight():
    assert fit("q.bias", ("q.weight",)) < fit("q.bias", ("q.bias",))


def test_a_nearer_word_counts_more_than_a_farther_one():
    # `out.query` is a query
    assert fit("out.query.weight", ("q.weight",)) > fit("out.query.weight", ("out.weight",))


def test_a_template_folds_case_and_separators_and_keeps_numbers():
    assert template("h.0.c_attn") == "h.0.cattn"
    assert template("layerNorm.Weight-x") == "layernorm.weightx"


def test_a_layer_in_a_flat_name_is_a_layer():
    q, k = ("blocks.{i}.attention.q.weight",), ("blocks.{i}.attention.k.weight",)
    scale, shift = ("blocks.{i}.norm1.weight",), ("blocks.{i}.norm1.bias",)
    for name, right, wrong in (
        ("params.layer{i}_wq", q, k), ("params.layer0_wk", k, q), ("params.layer0_ln1_scale", scale, shift),
        ("params.layer0_ln1_shift", shift, scale),
    ):  # fmt: skip
        assert fit(name, right) > fit(name, wrong), name


def test_a_counter_of_layers_beside_a_name_is_no_part_of_it():
    q, k = ("blocks.{i}.attention.q.weight",), ("blocks.{i}.attention.k.weight",)
    one, two = ("blocks.{i}.norm1.weight",), ("blocks.{i}.norm2.weight",)
    for name, right, wrong in (
        ("b{i}_wq", q, k), ("wk{i}", k, q), ("Q_{i}", q, k), ("tf{i}_wk", k, q), ("b{i}_n2", two, one),
        ("ln1_{i}", one, two),
    ):  # fmt: skip
        assert fit(name, right) > fit(name, wrong), name
    assert template("norm{i}_weight") == "normweight"  # what the counter stands behind says a part


def test_a_kind_at_the_end_of_a_flat_name_and_slashes_are_read():
    """Would break if `0/ln1/g` or `up_b`, in a dictionary of arrays, said nothing of what they are."""
    up, down = ("blocks.{i}.feed_forward.up.bias",), ("blocks.{i}.feed_forward.down.bias",)
    scale, shift = ("blocks.{i}.norm1.weight",), ("blocks.{i}.norm1.bias",)
    for name, right, wrong in (
        ("params.0/up_b", up, down), ("params.0/down_b", down, up), ("params.0/ln1/g", scale, down),
        ("params.0/ln1/b", shift, down), ("params.0.ln1_g", scale, shift),
    ):  # fmt: skip
        assert fit(name, right) > fit(name, wrong), name
    assert template("w_g") == "wg"  # a gate
