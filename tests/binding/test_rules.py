"""Rules for weights: what a line means, what is refused, and how subtrees are expanded."""

from __future__ import annotations

import tomllib

import pytest

from conformkit.conformance.binding.rules import (
    PatternError,
    check_rule,
    components_at,
    describe,
    expand,
    parse_rule,
)

AXES = {"q.weight": "(h d) m", "k.weight": "(h d) m", "out.weight": "m (h d)", "q.bias": "(h d)", "norm1.weight": "m"}
NESTED = {
    "MultiHeadAttention": [parse_rule("c_attn", "q.weight, k.weight, v.weight -> m (s h d)"),
                           parse_rule("o", "out.weight")],
    "FeedForward": [parse_rule("fc1", "up.weight -> m f")],
    "TransformerBlock": [parse_rule("attn.*", "attention.*"), parse_rule("mlp.*", "feed_forward.*"),
                         parse_rule("ln_1.g", "norm1.weight - 1")],
}  # fmt: skip


@pytest.mark.parametrize("source", ["q.weight", "q.weight, k.weight -> (s h d) m", "norm1.weight / d_model ** 0.5 - 1"])
def test_describe_gives_the_line_that_parses_to_the_same_rule(source):
    rule = parse_rule('odd."na\\me"', source)
    [(target, again)] = tomllib.loads(describe(rule)).items()
    assert parse_rule(target, again) == rule


def test_a_subtree_takes_the_rules_of_the_component_that_is_there():
    rules = expand([parse_rule("transformer.h.{i}.*", "blocks.{i}.*")], NESTED)
    fused = ", ".join(f"blocks.{{i}}.attention.{n}.weight" for n in "qkv")
    assert [describe(rule) for rule in rules] == [
        f'"transformer.h.{{i}}.attn.c_attn" = "{fused} -> m (s h d)"',
        '"transformer.h.{i}.attn.o" = "blocks.{i}.attention.out.weight"',
        '"transformer.h.{i}.mlp.fc1" = "blocks.{i}.feed_forward.up.weight -> m f"',
        '"transformer.h.{i}.ln_1.g" = "blocks.{i}.norm1.weight - 1"',
    ]


@pytest.mark.parametrize(
    ("inner", "line"),
    [("*", '"a.x.*" = "attention.*"'), ("attention.*", '"a.x.*" = "attention.attention.*"')],
)
def test_a_component_that_contains_itself_by_mistake_is_expanded_once(inner, line):
    rules = expand([parse_rule("a.*", "attention.*")], {"MultiHeadAttention": [parse_rule("x.*", inner)]})
    assert [describe(rule) for rule in rules] == [line]


@pytest.mark.parametrize(
    ("name", "within", "components"),
    [
        ("blocks.{i}", "", ("TransformerBlock",)),
        ("blocks.3", "", ("TransformerBlock",)),
        ("blocks.{i}.attention", "", ("MultiHeadAttention", "CrossAttention")),
        ("self_attention", "DecoderLayer", ("MultiHeadAttention", "CrossAttention")),
        ("cross_attention", "DecoderLayer", ("CrossAttention", "MultiHeadAttention")),
        ("feed_forward", "", ("FeedForward",)),
        ("decoder.layers.{i}", "Transformer", ("DecoderLayer",)),
        ("layers.{i}", "Encoder", ("EncoderLayer",)),
        ("layers.{i}", "Decoder", ("DecoderLayer",)),
        ("layers.{i}", "", ()),
        ("blocks", "", ()),
        ("myattention", "", ()),
        ("", "", ()),
    ],
)
def test_what_lies_below_a_name_is_known(name, within, components):
    assert components_at(name, within) == components


def test_one_attention_serves_for_both_of_a_decoder_layer_in_its_stack():
    nested = {
        "CrossAttention": [parse_rule("o", "out.weight")],
        "DecoderLayer": [parse_rule("sa.*", "self_attention.*"), parse_rule("ca.*", "cross_attention.*")],
    }
    rules = expand([parse_rule("stack.{i}.*", "layers.{i}.*")], nested, "Decoder")
    assert [describe(rule) for rule in rules] == [
        '"stack.{i}.sa.o" = "layers.{i}.self_attention.out.weight"',
        '"stack.{i}.ca.o" = "layers.{i}.cross_attention.out.weight"',
    ]


@pytest.mark.parametrize(
    ("target", "source", "problem"),
    [
        ("", "q.weight", "1 to 300 printable characters"),
        ("a\n", "q.weight", "printable"),
        ("a.{j}", "q.weight", "{j} counts j: known are i (layers), n (their number), h (heads), t (rows), f"),
        ("a.{", "q.weight", "a brace in a.{ is not closed"),
        ("a.{i*i}", "q.weight", "{i*i} is not affine in a counter"),
        ("a.{3}", "q.weight", "{3} counts nothing"),
        ("a.{}", "q.weight", "{} is not affine"),
        ("a.{2*i", "q.weight", "is not closed"),
        ("{h}.{t}", "q.weight", "{h} and {t} may not both be in a target"),
        ("a", "weight", "it names no part"),
        ("a", "", "it names no part"),
        ("a", "q.weight,", "it names no part"),
        ("a", "q.weight + k.weight", "it names k.weight and q.weight"),
        ("a", "'q.weight'", "q.weight is not used as a value"),
        ("a", "q.weight(1)", "there is no function"),
        ("a", "q.weight ->", "are not axes"),
        ("a", "q.weight -> (h d", "are not axes"),
        ("a", "q.weight -> (h (d)) m", "are not axes"),
        ("a", "q.weight -> hd m", "are not axes"),
        ("a", "q.weight -> h d m -> m", "are not axes"),
        ("a", "q.weight -> 3 m", "are not axes"),
        ("a", "q.weight -> h h m", "an axis occurs twice"),
        ("a", "q.weight, k.weight", "several parts need axes with an s"),
        ("a", "q.weight, k.weight -> (h d) m", "several parts need axes with an s"),
        ("a.{i}", "norm1.weight", "{i} is in the target but not in every part"),
        ("a.*", "norm.weight", 'both sides end in ".*"'),
        ("a", "norm.*", 'both sides end in ".*"'),
        ("a*", "norm.*", 'both sides end in ".*"'),
        ("a.*.b", "norm.*", 'both sides end in ".*"'),
        ("a.*", "norm.* -> m", 'both sides end in ".*"'),
        ("h.{i}.*", "norm.*", "with {i} on both or on none"),
        ("h.{h}.*", "norm.*", "{h}, {t} and {f} are not allowed"),
        ("h.*", "2 - norm.*", "only a canonical name may precede the *"),
    ],
)
def test_a_line_that_is_not_a_rule_is_refused(target, source, problem):
    with pytest.raises(PatternError) as caught:
        parse_rule(target, source)
    assert problem in str(caught.value)
    assert caught.value.target == target


@pytest.mark.parametrize(
    ("target", "source", "problem"),
    [
        ("a", "q.weigth", "there is no canonical part q.weigth; nearest: q.weight"),
        ("a", "blocks.0.q.weight", "there is no canonical part blocks.0.q.weight"),
        ("a", "q.weight -> h d", "the axis m of q.weight ((h d) m) is missing"),
        ("a", "q.weight -> h d m f", "q.weight ((h d) m) has no axis f to place here"),
        ("a", "q.weight -> s h d m", "has no axis s to place here"),
        ("a.{h}", "q.weight -> h d m", "has no axis h to place here"),
        ("a.{h}", "norm1.weight", "norm1.weight has the axes m: no h to count heads by {h}"),
        ("a", "q.weight, norm1.weight -> s h d m", "norm1.weight (m) has no axis d to place here"),
        ("a", "norm1.weight / d_modl", 'unknown name d_modl in "norm1.weight / d_modl"; nearest: d_model'),
        ("a", "q.weight * d_model ** 0.5", "depends on sizes, and could hide a factor that is missing in the code"),
        ("a", "k.weight / head_width ** 0.5", "known ones have a name: t5_scale(…), gemma_offset(…)"),
        ("a", "t5_scale(k.weight)", "depends on sizes"),
        ("a.*", "atention.*", "there are no canonical parts below atention"),
    ],
)  # fmt: skip
def test_a_rule_that_fits_no_canonical_parameter_is_refused(target, source, problem):
    with pytest.raises(PatternError) as caught:
        check_rule(parse_rule(target, source), AXES, ["d_model", "head_width"])
    assert problem in str(caught.value)


def test_a_rule_that_fits_canonical_parameters_is_accepted():
    check_rule(parse_rule("a", "q.weight - 2 -> 1 (h d) m"), AXES, ["d_model"])
    check_rule(parse_rule("a", "t5_scale(q.weight) -> 1 (h d) m"), AXES, ["head_width"])
    check_rule(parse_rule("norms.*", "norm1.*"), AXES, [])
