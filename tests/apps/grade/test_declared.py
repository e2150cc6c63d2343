from dataclasses import replace

import pytest

from conformkit.conformance.apps.grade.declared import looked_at, paths, permitted
from conformkit.conformance.apps.grade.policy import Allowed
from conformkit.conformance.apps.grade.policy_file import parse_policy
from conformkit.conformance.binding.config import Config, parse_config
from conformkit.conformance.binding.declarations import Excuse


def judged(text, allow=""):
    """Return the remaining configuration, and the notes about the rest."""
    return permitted(parse_config(text), parse_policy(f"[allow]\n{allow}").allowed)


def test_names_arguments_and_weights_stay_as_they_are():
    text = """
        [implementation]
        module = "mine"
        [components.MultiHeadAttention]
        path = "mine:Attention"
        construct = { width = "d_model" }
        causal = "mask"
        mask = { kinds = ["bool"], true = "hide" }
        ignore = ["table"]
        weights = { "wq" = "q.weight" }
        [components.TinyTransformerLM.generate]
        path = "sample"
    """
    kept, notes = judged(text)
    assert notes == []
    assert kept == parse_config(text)


@pytest.mark.parametrize("place", ["", "components.FeedForward."])
def test_a_variant_counts_only_where_it_is_allowed(place):
    text = f'[{place}variant]\nactivation = "relu"\nnorm = "layernorm"'
    kept, notes = judged(text)
    assert kept.variant_for("FeedForward").activation == "gelu"
    told = f'conform.toml declares activation = "relu" under [{place}variant], which the policy does not allow; '
    assert notes == [f"{told}it was ignored"]
    kept, notes = judged(text, 'variant = { activation = ["relu"] }')
    assert (kept.variant_for("FeedForward").activation, notes) == ("relu", [])


def test_one_allowed_value_allows_no_other():
    kept, notes = judged('[variant]\nactivation = "silu"\nnorm_eps = 1e-6', 'variant = { activation = ["relu"] }')
    assert kept.variant == {}
    assert len(notes) == 2


@pytest.mark.parametrize(
    ("declared", "allowed", "stays"),
    [
        ("{ multiple_of = 2 }", "", False),
        ("{ multiple_of = 2 }", "{ multiple_of = 2 }", True),
        ("{ multiple_of = 2 }", "{ multiple_of = 4 }", True),
        ("{ multiple_of = 4 }", "{ multiple_of = 2 }", False),
        ("{ max = 64 }", "{ max = 32 }", True),
        ("{ max = 16 }", "{ max = 32 }", False),
        ("{ min = 1 }", "", True),
        ("{ min = 4 }", "{ min = 2 }", False),
        ("8", "{ min = 8 }", False),
        ("8", "8", True),
        ('"4 * num_heads"', '"4 * num_heads"', True),
        ('"4 * num_heads"', "8", False),
        ('"4 * num_heads"', "", False),
    ],
)
def test_limits_may_be_no_narrower_than_the_allowed_ones(declared, allowed, stays):
    kept, notes = judged(f"[limits]\nd_model = {declared}", f"sizes = {{ d_model = {allowed} }}" if allowed else "")
    assert ("d_model" in kept.limits.sizes, bool(notes)) == (stays, not stays)


def test_a_rank_is_a_limit_too():
    assert judged("[limits]\nrank = 4")[0].limits.rank is None
    assert judged("[limits]\nrank = 4", "sizes = { rank = 4 }")[0].limits.rank == 4


def test_number_formats_are_the_policys():
    kept, notes = judged('[implementation]\ndtypes = ["bfloat16"]')
    assert kept.dtypes == ("float64", "float32")
    assert "bfloat16" in notes[0]
    assert judged('[implementation]\ndtypes = ["float32"]')[1] == []
    assert judged("", 'dtypes = ["float32"]')[0].dtypes == ("float32",)


def test_every_place_that_names_something_to_import_is_listed():
    config = parse_config("""
        [implementation]
        module = "a"
        [components.FeedForward]
        path = "b:F"
        construct = { x = { object = "c:C", arguments = [{ lookup = "d:D" }] }, y = [{ z = { lookup = "e:E" } }] }
        call = ["x", { lookup = "f:F" }]
        [components.TinyTransformerLM.generate]
        path = "g:sample"
        call = [{ lookup = "h:H" }]
        greedy = { key = { lookup = "i:I" } }
    """)
    assert set(paths(config)) == {"a", "b:F", "c:C", "d:D", "e:E", "f:F", "g:sample", "h:H", "i:I"}
    assert set(paths(replace(Config(), module=None))) == set()


def test_a_student_cannot_leave_anything_out():
    kept, notes = judged("[components.FeedForward]\nskip = true\n[components.AdamW]\nskip = true")
    assert kept.skipped() == []
    assert [note.split(", which")[0] for note in notes] == [
        "conform.toml declares skip = true under [components.FeedForward]",
        "conform.toml declares skip = true under [components.AdamW]",
    ]


@pytest.mark.parametrize(
    ("declared", "kept"),
    [
        ("['d_model', '1 - dropout', 'num_heads']", "['d_model']"),
        ("['d_model', { causal = 'not causal', heads = 'num_heads' }]", "['d_model', { heads = 'num_heads' }]"),
        ("['d_model', { open = 'not causal' }]", "['d_model', { open = 'not causal' }]"),
    ],
    ids=["in-the-middle", "by-its-name", "by-another-name"],
)
def test_an_argument_that_is_not_what_its_name_says_is_not_passed(declared, kept):
    # what stands after it would take its place
    text = "[components.MultiHeadAttention]\nconstruct = {}"
    found, notes = judged(text.format(declared))
    assert found == parse_config(text.format(kept))
    assert len(notes) == (declared != kept)


def test_further_arguments_are_left_out_where_something_is_bound_unless_the_policy_allows_their_kind():
    # only a signature shows which arguments have a default
    text = "[components.MultiHeadAttention]\ncall = ['x', 'x']"
    assert judged(text)[0].refused == {"defaults", "factors", "further"}
    assert judged(text, "excuses = ['further', 'computed', 'defaults', 'factors']")[0].refused == frozenset()


def test_code_for_one_sequence_is_no_excuse_before_it_is_tried():
    assert judged("[components.MultiHeadAttention]\nlayout = 'one sequence'")[1] == []


def test_constants_are_looked_at_where_they_stand_in_place_of_a_default():
    # would leave code that is right only in such a mode among those that need no look
    needed = Excuse("constants", "components.FeedForward.construct", "FeedForward", "constructed with size = 64")
    advice = looked_at([needed, replace(needed, words="constructed with mode = 'right'", instead="mode")], Allowed())
    assert [one.what for one in advice] == ["constructed with mode = 'right', in place of the default of mode"]
