"""Which parameter is which: found by name if names tell, else offered in order of plausibility."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pytest

from conformkit.conformance.binding.layouts import layouts
from conformkit.conformance.binding.names import fit
from conformkit.conformance.binding.solve import Unassignable, assignments, clearest, families
from conformkit.conformance.probing.placements import named_clearly, placements
from conformkit.spec.components import COMPONENTS, Parameter, component
from conformkit.spec.variants import BERT, CANONICAL

SIZES: Mapping[str, Any] = {
    "d_model": 12, "num_heads": 3, "kv_heads": 3, "head_width": 4, "d_ff": 20, "vocab_size": 11, "num_layers": 2,
    "block_size": 9, "max_len": 9, "d_k": 5, "d_v": 7,
}  # fmt: skip
BERT_SIZES: Mapping[str, Any] = {**SIZES, "num_segments": 4, "pad_id": 0}


def best(
    component: str, theirs: Mapping[str, tuple[int, ...]], *, bare: bool = False, **variant: Any
) -> dict[str, str]:
    """Return the most plausible assignment as lines of conform.toml."""
    return {t.name: layout.source for t, layout in next(every(component, theirs, bare=bare, **variant))}


def every(component: str, theirs: Mapping[str, tuple[int, ...]], *, bare: bool = False, **variant: Any) -> Any:
    sizes = {**SIZES, "kv_heads": 1 if variant.pop("one_kv_head", False) else 3}
    ours = COMPONENTS[component].parameters(sizes, CANONICAL.but(**variant))
    layered = {n.replace("blocks.0.", "blocks.{i}."): p for n, p in ours.items() if not n.startswith("blocks.1.")}
    layers = 2 if component == "TinyTransformerLM" else 0
    return assignments(families(theirs, layers={layers} - {0}, heads={3}, bare=bare), layered)


def test_fused_projections_are_read_as_query_key_value_by_default() -> None:
    found = best("MultiHeadAttention", {"c_attn.weight": (36, 12), "c_proj.weight": (12, 12)})
    assert found == {
        "c_attn.weight": "q.weight, k.weight, v.weight -> (s h d) m",
        "c_proj.weight": "out.weight -> m (h d)",
    }


def test_a_bare_matrix_is_read_as_input_by_output_and_a_linear_as_output_by_input() -> None:
    assert best("MultiHeadAttention", {"wqkv": (12, 36), "wo": (12, 12)}, bare=True) == {
        "wqkv": "q.weight, k.weight, v.weight -> m (s h d)",
        "wo": "out.weight -> (h d) m",
    }
    linears = {f"{n}.weight": (width, 12) for n, width in zip("qkv", (5, 5, 7), strict=True)}
    assert best("SelfAttention", linears) == {
        "q.weight": "q.weight -> d m", "k.weight": "k.weight -> d m", "v.weight": "v.weight -> d m",
    }  # fmt: skip


def test_one_linear_a_head_is_folded_into_one_rule() -> None:
    theirs = {f"heads.{h}.{n}.weight": (4, 12) for h in range(3) for n in ("query", "key", "value")}
    assert best("MultiHeadAttention", {**theirs, "proj.weight": (12, 12)}) == {
        "heads.{h}.query.weight": "q.weight -> d m",
        "heads.{h}.key.weight": "k.weight -> d m",
        "heads.{h}.value.weight": "v.weight -> d m",
        "proj.weight": "out.weight -> m (h d)",
    }


def test_fewer_key_value_heads_are_distinguished_by_shape() -> None:
    theirs = {"a.weight": (12, 12), "b.weight": (8, 12), "c.weight": (12, 12)}
    found = best("MultiHeadAttention", theirs, one_kv_head=True)
    assert found["b.weight"] == "k.weight, v.weight -> (s h d) m"


def test_a_number_that_counts_neither_layers_nor_heads_stays() -> None:
    theirs = {"net.0.weight": (20, 12), "net.0.bias": (20,), "net.2.weight": (12, 20), "net.2.bias": (12,)}
    assert best("FeedForward", theirs)["net.2.weight"] == "down.weight -> m f"


def test_norms_are_distinguished_by_number_or_by_what_they_precede() -> None:
    for first, second in (("ln_1", "ln_2"), ("attn_norm", "ffn_norm"), ("input_layernorm", "post_attention_layernorm")):
        assert fit(f"{first}.weight", ("norm1.weight",)) > fit(f"{first}.weight", ("norm2.weight",))
        assert fit(f"{second}.weight", ("norm2.weight",)) > fit(f"{second}.weight", ("norm1.weight",))


def test_every_order_of_names_that_say_nothing_is_offered() -> None:
    theirs = {f"{n}.weight": (12, 12) for n in "abcd"}
    orders = {tuple(layout.parts[0] for _, layout in found) for found in every("MultiHeadAttention", theirs)}
    assert orders >= set(itertools.permutations(("q.weight", "k.weight", "v.weight", "out.weight")))


def test_what_is_left_over_is_named_on_both_sides() -> None:
    with pytest.raises(Unassignable) as caught:
        next(every("MultiHeadAttention", {"wq": (12, 12), "wk": (12, 12), "wv": (12, 12), "extra": (5, 5)}))
    assert caught.value.theirs == ("extra [5, 5]",)
    assert caught.value.ours == ("out.weight [12, 12]",)


def test_parts_of_different_size_are_fused_only_where_they_can_be_told_apart() -> None:
    sizes: Any = {"d": 4, "m": 12}
    canonical = {
        "q.weight": Parameter("(h d) m", {**sizes, "h": 3}),
        "k.weight": Parameter("(h d) m", {**sizes, "h": 1}),
        "v.weight": Parameter("(h d) m", {**sizes, "h": 1}),
    }
    found = [
        found.axes
        for found in layouts((20, 12), canonical, heads=None, matrices_out_first=True)
        if len(found.parts) == 3
    ]
    assert set(found) == {"(s h d) m"}


def test_axes_of_one_entry_are_kept_in_the_pattern() -> None:
    canonical = {"positions.weight": Parameter("t m", {"t": 9, "m": 12})}
    (found,) = (f for f in layouts((1, 9, 12), canonical, heads=None, matrices_out_first=True))
    assert found.axes == "1 t m"


def test_what_is_known_of_a_part_comes_first() -> None:
    # the interleaved layout of a fused projection is unusual, but it was already found in the attention
    theirs = families({"attn.qkv": (36, 12), "attn.proj": (12, 12)}, layers=set(), heads={3}, bare=True)
    ours = {f"attention.{n}": p for n, p in COMPONENTS["MultiHeadAttention"].parameters(SIZES, CANONICAL).items()}
    known = {"qkv": "q.weight, k.weight, v.weight -> (h s d) m"}
    first = {t.name: layout.axes for t, layout in next(assignments(theirs, ours, known))}
    assert first["attn.qkv"] == "(h s d) m"
    assert {t.name: layout.axes for t, layout in next(assignments(theirs, ours))}["attn.qkv"] != "(h s d) m"


def test_what_may_be_where_is_kept_to():
    """Catches a search by names through all layouts where the numbers have said which parameter is which."""
    theirs = families({"q.weight": (12, 12), "k.weight": (12, 12)}, layers=set(), heads={3}, bare=False)
    every = COMPONENTS["MultiHeadAttention"].parameters(SIZES, CANONICAL)
    ours = {name: every[name] for name in ("q.weight", "k.weight")}
    other = {"q.weight": ("k.weight",), "k.weight": ("q.weight",)}
    found = list(assignments(theirs, ours, keep=lambda t, layout: layout.parts == other[t.name]))
    assert found
    assert all(layout.parts == other[t.name] for assignment in found for t, layout in assignment)


def test_heads_lie_the_same_way_in_all_arrays_or_in_none() -> None:
    # four square matrices have 6144 assignments: the few that people write must come early
    theirs = families(dict.fromkeys(("wq", "wk", "wv", "wo"), (12, 12)), layers=set(), heads={3}, bare=True)
    ours = COMPONENTS["MultiHeadAttention"].parameters(SIZES, CANONICAL)
    found = [[layout for _, layout in a] for a in itertools.islice(assignments(theirs, ours, limit=1000), 1000)]
    consistent = {
        tuple(layout.parts[0] for layout in chosen)
        for chosen in found
        if len({"d h" in layout.axes for layout in chosen}) == 1
    }
    assert len(consistent) == 24


def folded(*names: str, shifted: bool = False) -> list[str]:
    return [t.name for t in families(dict.fromkeys(names, (12,)), layers={2}, heads=set(), bare=False, shifted=shifted)]


def test_what_follows_the_layers_in_their_list_is_named_by_their_number() -> None:
    # regression: the final norm of nn.Sequential(*blocks, norm) was named blocks.2 for any depth
    assert folded("blocks.0.g", "blocks.1.g", "blocks.2.weight", "blocks.3.bias") == [
        "blocks.{i}.g", "blocks.{n}.weight", "blocks.{n+1}.bias",
    ]  # fmt: skip


def test_layers_may_be_counted_from_another_number_than_0() -> None:
    names = ("body.0.e", "body.2.0.g", "body.3.0.g", "body.4.weight")
    assert folded(*names) == list(names)
    assert folded(*names, shifted=True) == ["body.0.e", "body.{i+2}.0.g", "body.{n+2}.weight"]


def test_parts_that_take_turns_in_one_list_are_counted_by_turn() -> None:
    """Would break if a list [attention, feed-forward, attention, …] could not be read as layers."""
    shapes = {
        f"parts.{k}.{name}": shape
        for k in range(6)
        for name, shape in (("n.weight", (6,)), (f"w{k % 2}", (6, k % 2 + 1)))
    }
    folded = families(shapes, layers={3}, heads=set(), bare=False, shifted=True)
    marks = {"parts.{2*i}.n.weight", "parts.{2*i}.w0", "parts.{2*i+1}.n.weight", "parts.{2*i+1}.w1"}
    assert {(theirs.name, theirs.layered, theirs.layers) for theirs in folded} == {(mark, True, 3) for mark in marks}
    assert not any(theirs.layered for theirs in families(shapes, layers={4}, heads=set(), bare=False, shifted=True))


def test_queries_and_keys_may_be_fused_beside_a_separate_value() -> None:
    theirs = {"qk.weight": (24, 12), "v.weight": (12, 12), "out.weight": (12, 12)}
    assert best("MultiHeadAttention", theirs)["qk.weight"] == "q.weight, k.weight -> (s h d) m"


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (("wq", "wk", "wv", "wo"), True),
        (("query", "key", "value", "fc"), True),
        (("maps.0", "maps.1", "maps.2", "maps.3"), True),
        (("a", "b", "wv", "wo"), False),
    ],
    ids=["named", "one-by-elimination", "numbered", "two-unnamed"],
)
def test_names_tell_which_is_which_or_they_do_not(names: tuple[str, ...], told: bool) -> None:
    ours = COMPONENTS["MultiHeadAttention"].parameters(SIZES, CANONICAL)
    theirs = families({f"{n}.weight": (12, 12) for n in names}, layers=set(), heads={3}, bare=False)
    assert clearest(theirs, ours, {}, {})[2] is told


@pytest.mark.parametrize(
    ("names", "told"),
    [(("ask", "key", "value", "join"), True), (("join", "key", "value", "ask"), True), (("a", "b", "wv", "wo"), False)],
    ids=["first-and-last", "exchanged", "queries-and-keys"],
)
def test_modules_beside_each_other_come_in_the_order_of_their_use(names: tuple[str, ...], told: bool) -> None:
    """Would break if two unnamed modules kept code from being judged, or if queries and keys were told by order."""
    ours = COMPONENTS["MultiHeadAttention"].parameters(SIZES, CANONICAL)
    theirs = {f"{n}.weight": (12, 12) for n in names}
    assert clearest(families(theirs, layers=set(), heads={3}, bare=False), ours, {}, {}, in_order=True)[2] is told
    if told:
        assert not clearest(families(theirs, layers=set(), heads={3}, bare=False), ours, {}, {})[2]
        found = best("MultiHeadAttention", theirs)
        assert found[f"{names[0]}.weight"].startswith("q.weight")
        assert found[f"{names[3]}.weight"].startswith("out.weight")


@pytest.mark.parametrize("names", [("ln_look", "ln_think"), ("ln_think", "ln_look")], ids="-".join)
def test_norms_whose_names_say_no_number_are_numbered_by_their_order(names: tuple[str, str]) -> None:
    ours = COMPONENTS["TransformerBlock"].parameters(SIZES, CANONICAL)
    theirs = {
        "attn.qkv.weight": (36, 12), "attn.proj.weight": (12, 12),
        "up.weight": (SIZES["d_ff"], 12), "up.bias": (SIZES["d_ff"],),
        "down.weight": (12, SIZES["d_ff"]), "down.bias": (12,),
        **{f"{name}.{kind}": (12,) for name in names for kind in ("weight", "bias")},
    }  # fmt: skip
    folded_ = families(theirs, layers=set(), heads={3}, bare=False)
    assert clearest(folded_, ours, {}, {}, in_order=True)[2]
    assert not clearest(folded_, ours, {}, {})[2]
    found = best("TransformerBlock", theirs)
    assert [found[f"{name}.weight"] for name in names] == ["norm1.weight -> m", "norm2.weight -> m"]


@pytest.mark.parametrize("maps", [("query", "key", "value"), ("maps.0", "maps.1", "maps.2")], ids=["named", "numbered"])
def test_norms_anywhere_in_a_layer_are_numbered_by_their_order(maps: tuple[str, ...]) -> None:
    """Would break if a norm within attention, as BERT's code has it, kept wrong code from being judged."""
    ours = component("BertModel").parameters(BERT_SIZES, BERT)
    width = BERT_SIZES["d_model"]
    layer = {
        **{f"{name}.{kind}": shape for name in (*(f"attention.{m}" for m in maps), "attention.output.dense")
           for kind, shape in (("weight", (width, width)), ("bias", (width,)))},
        **{f"attention.output.LayerNorm.{kind}": (width,) for kind in ("weight", "bias")},
        "intermediate.dense.weight": (20, width), "intermediate.dense.bias": (20,),
        "output.dense.weight": (width, 20), "output.dense.bias": (width,),
        **{f"output.LayerNorm.{kind}": (width,) for kind in ("weight", "bias")},
    }  # fmt: skip
    theirs = {
        "embeddings.word_embeddings.weight": (11, width), "embeddings.position_embeddings.weight": (9, width),
        "embeddings.token_type_embeddings.weight": (4, width),
        **{f"embeddings.LayerNorm.{kind}": (width,) for kind in ("weight", "bias")},
        **{f"encoder.layer.{i}.{name}": shape for i in range(2) for name, shape in layer.items()},
        "pooler.dense.weight": (width, width), "pooler.dense.bias": (width,),
    }  # fmt: skip
    rules = named_clearly(theirs, ours, BERT_SIZES, {}, bare=False)
    assert rules is not None
    found = {rule.target: rule.parts[0].name for rule in rules}
    assert found["encoder.layer.{i}.attention.output.LayerNorm.weight"] == "layers.{i}.norm1.weight"
    assert found[f"encoder.layer.{{i}}.attention.{maps[1]}.weight"] == "layers.{i}.attention.k.weight"


def test_the_order_of_fused_parts_is_custom_and_no_doubt() -> None:
    ours = COMPONENTS["MultiHeadAttention"].parameters(SIZES, CANONICAL)
    theirs = {"qkv.weight": (36, 12), "proj.weight": (12, 12)}
    assert clearest(families(theirs, layers=set(), heads={3}, bare=False), ours, {}, {})[2]


@pytest.mark.parametrize("fused", [False, True], ids=["separate", "fused"])
@pytest.mark.parametrize("meant", [(1, 3, 2), (2, 1, 3), (3, 2, 1), (2, 3, 1)], ids=str)
def test_exchanged_norms_of_a_decoder_layer_are_tried_soon(meant: tuple[int, ...], fused: bool) -> None:
    """Would break if all layouts of eight square matrices came before another meaning of a name."""
    ours = component("DecoderLayer").parameters(SIZES, CANONICAL)
    theirs = {name: p.shape for name, p in ours.items() if not (fused and name.split(".")[-2] in "qkv")}
    if fused:
        theirs |= {f"{side}_attention.qkv.weight": (36, 12) for side in ("self", "cross")}
    wanted = {f"norm{n}.{kind}": [f"norm{m}.{kind}"] for n, m in enumerate(meant, 1) for kind in ("weight", "bias")}
    tried = (
        {r.target: [p.name for p in r.parts] for r in rules}
        for rules in placements(theirs, ours, SIZES, {}, bare=False)
    )
    assert any(found.items() >= wanted.items() for found in tried)


def test_a_bias_goes_where_the_kernel_of_its_module_goes() -> None:
    names = {"query": (12, 12), "key": (12, 12), "value": (12, 12), "out": (12, 12), "wi": (12, 20), "wo": (20, 12)}
    theirs = {f"{n}.kernel": shape for n, shape in names.items()} | {f"{n}.bias": (s[1],) for n, s in names.items()}
    norms = {f"{n}.{kind}": (12,) for n in ("ln_attn", "ln_mlp") for kind in ("weight", "bias")}
    variant = {"placement": "parallel_two_norms", "qkv_bias": True, "output_bias": True}
    found = best("TransformerBlock", theirs | norms, **variant)
    kept = [found[name].partition(" ")[0] for name in ("out.bias", "wo.bias")]
    assert kept == ["attention.out.bias", "feed_forward.down.bias"]


def test_a_square_array_is_stored_as_those_are_that_are_not_square() -> None:
    """Would break if a pooler of arrays (out, in), which the hidden rows do not show, were read transposed."""
    ours = component("BertModel").parameters(BERT_SIZES | {"num_layers": 1}, BERT)
    theirs = {
        name.replace("layers.0", "layer.0"): parameter.shape for name, parameter in ours.items()
    }  # fmt: skip
    rules = next(placements(theirs, ours, BERT_SIZES | {"num_layers": 1}, {}, bare=True))
    assert {rule.target: rule.source for rule in rules}["pooler.weight"] == "pooler.weight -> o m"
    turned = {**theirs, "layer.0.feed_forward.up.weight": (12, 20), "layer.0.feed_forward.down.weight": (20, 12)}
    rules = next(placements(turned, ours, BERT_SIZES | {"num_layers": 1}, {}, bare=True))
    assert {rule.target: rule.source for rule in rules}["pooler.weight"] == "pooler.weight -> m o"
