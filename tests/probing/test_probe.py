"""Where weights are, found by trial: small NumPy implementations with misleading names, or without some part."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.config import load_config
from conformkit.conformance.binding.exports import ExportMismatch
from conformkit.conformance.binding.rules import describe
from conformkit.conformance.binding.solve import Unassignable
from conformkit.conformance.driver.client.session import InProcess, locate
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.probing.probe import probe
from conformkit.conformance.probing.rounding import _is_rounded, computes_in_float32

HEAD = '''
import numpy as np


def softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def attend(q, k, v, heads, causal):
    """q, k, v (B, T, D), mixed head by head."""
    def split(a):
        return a.reshape(*a.shape[:-1], heads, -1).swapaxes(-2, -3)
    q, k, v = split(q), split(k), split(v)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(scores.shape[-1], dtype=bool), scores, -np.inf)
    mixed = (softmax(scores) @ v).swapaxes(-2, -3)
    return mixed.reshape(*mixed.shape[:-2], -1)
'''

SEPARATE = """
class MultiHeadAttention:
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        rng = np.random.default_rng(0)
        self.heads, self.causal = num_heads, causal
        self.wq, self.wk, self.wv, self.wo = (rng.normal(size=(d_model, d_model)) / d_model for _ in range(4))

    def forward(self, x):
        mixed = attend(x @ self.wq, x @ self.wk, x @ self.wv, self.heads, self.causal)
        return mixed @ self.wo
"""


@pytest.fixture
def load(tmp_path):
    """Return a function that writes a module (and its conform.toml), loads it here, and binds what it exports."""
    opened = []

    def load_module(source, text="", *, head=HEAD):
        path = tmp_path / "probed.py"
        path.write_text(head + textwrap.dedent(source), encoding="utf-8")
        if text:
            (tmp_path / "conform.toml").write_text(text, encoding="utf-8")
        config = load_config([tmp_path])
        implementation = Implementation(InProcess(locate(str(path)), config.framework), config)
        opened.append(implementation)
        implementation.load()
        return implementation

    yield load_module
    for implementation in opened:
        implementation.close()


@pytest.fixture
def attention(load):
    """Return a function that loads a module and returns its multi-head attention."""
    return lambda source, text="", **options: load(source, text, **options).subject("MultiHeadAttention")


def lines(subject):
    return sorted(describe(rule) for rule in subject.bound.rules)


def agrees(subject, **wanted):
    """Whether an instance with weights written through the binding reproduces the definition's output."""
    instance = subject.build(**wanted).randomize(Draw(1, "test"))
    x = Draw(2, "test").values(2, 5, instance.sizes["d_model"])
    return np.allclose(instance(x), instance.expected(x), rtol=1e-5, atol=1e-7)


# --- names that say it, and names that do not ------------------------------------------------------------------------


def test_the_usual_names_are_bound_without_a_note(attention):
    subject = attention(SEPARATE)
    assert lines(subject) == [
        'wk = "k.weight -> m (h d)"', 'wo = "out.weight -> (h d) m"', 'wq = "q.weight -> m (h d)"',
        'wv = "v.weight -> m (h d)"',
    ]  # fmt: skip
    assert (subject.bound.notes, subject.bound.unbound, subject.bound.failure) == ((), (), None)
    assert (subject.bound.dtype, subject.bound.precision) == ("float64", "float64")
    assert agrees(subject, d_model=20, num_heads=5)


def test_misleading_names_are_bound_by_function_and_reported(attention):
    # bound by name alone, keys were written where queries are read, and a right implementation failed
    relabelled = SEPARATE.replace("x @ self.wq, x @ self.wk, x @ self.wv", "x @ self.wv, x @ self.wq, x @ self.wk")
    subject = attention(relabelled)
    assert lines(subject) == [
        'wk = "v.weight -> m (h d)"', 'wo = "out.weight -> (h d) m"', 'wq = "k.weight -> m (h d)"',
        'wv = "q.weight -> m (h d)"',
    ]  # fmt: skip
    assert sorted(subject.bound.notes) == [
        "your wk is used as v.weight", "your wq is used as k.weight", "your wv is used as q.weight",
    ]  # fmt: skip
    assert agrees(subject)


def test_names_that_say_nothing_are_bound_by_trying(attention):
    source = SEPARATE
    for name, other in {"wq": "alpha1", "wk": "alpha2", "wv": "alpha3", "wo": "alpha0"}.items():
        source = source.replace(f"self.{name}", f"self.{other}")
    subject = attention(source)
    assert 'alpha0 = "out.weight -> (h d) m"' in lines(subject)
    assert agrees(subject)


def test_the_unusual_orientation_is_found(attention):
    # square matrices fit both ways: only a trial can tell
    source = SEPARATE.replace("x @ self.wq, x @ self.wk, x @ self.wv", "x @ self.wq.T, x @ self.wk.T, x @ self.wv.T")
    subject = attention(source.replace("mixed @ self.wo", "mixed @ self.wo.T"))
    assert 'wq = "q.weight -> (h d) m"' in lines(subject)
    assert 'wo = "out.weight -> m (h d)"' in lines(subject)
    assert agrees(subject)


def test_one_array_a_head_is_one_rule(attention):
    source = """
        class MultiHeadAttention:
            def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
                rng = np.random.default_rng(0)
                self.heads, self.causal, width = num_heads, causal, d_model // num_heads
                self.query, self.key, self.value = (
                    [rng.normal(size=(d_model, width)) / d_model for _ in range(num_heads)] for _ in range(3)
                )
                self.out = rng.normal(size=(d_model, d_model)) / d_model

            def forward(self, x):
                q, k, v = (np.concatenate([x @ w for w in each], -1) for each in (self.query, self.key, self.value))
                return attend(q, k, v, self.heads, self.causal) @ self.out
    """
    subject = attention(source)
    assert '"query.{h}" = "q.weight -> m d"' in lines(subject)
    assert agrees(subject, num_heads=4, d_model=12)


def test_three_arrays_in_a_list_are_not_heads_although_there_are_three(attention):
    # folded into one array per head, projections.0 to .2 were not matched at all
    source = SEPARATE.replace("self.wq, self.wk, self.wv, self.wo = (", "*self.projections, self.wo = (")
    for number, name in enumerate(("wq", "wk", "wv")):
        source = source.replace(f"self.{name}", f"self.projections[{number}]")
    subject = attention(source)
    assert '"projections.1" = "k.weight -> m (h d)"' in lines(subject)
    assert agrees(subject)


FUSED = """
class MultiHeadAttention:
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        rng = np.random.default_rng(0)
        self.heads, self.causal = num_heads, causal
        self.qkv = rng.normal(size=(3 * d_model, d_model)) / d_model
        self.proj = rng.normal(size=(d_model, d_model)) / d_model

    def forward(self, x):
        {split}
        return attend(q, k, v, self.heads, self.causal) @ self.proj.T
"""
INTERLEAVED = """rows = (x @ self.qkv.T).reshape(*x.shape[:-1], self.heads, 3, -1)
        q, k, v = (rows[..., n, :].reshape(x.shape) for n in range(3))"""


@pytest.mark.parametrize(
    ("split", "axes"),
    [
        ("q, k, v = np.split(x @ self.qkv.T, 3, axis=-1)", "q.weight, k.weight, v.weight -> (s h d) m"),
        ("k, v, q = np.split(x @ self.qkv.T, 3, axis=-1)", "k.weight, v.weight, q.weight -> (s h d) m"),
        (INTERLEAVED, "q.weight, k.weight, v.weight -> (h s d) m"),
    ],
    ids=["blocks", "blocks-in-another-order", "interleaved"],
)
def test_the_layout_of_a_fused_projection_is_found(attention, split, axes):
    # all of these have the shape (3 D, D): assuming the usual one gives wrong queries
    subject = attention(FUSED.format(split=split))
    assert f'qkv = "{axes}"' in lines(subject)
    assert agrees(subject, num_heads=2)


def holding(statement):
    return SEPARATE.replace("self.heads, self.causal =", f"{statement}\n        self.heads, self.causal =")


@pytest.mark.parametrize(
    "statement",
    [
        "self.table = np.tril(np.ones((7, 7)))",
        "self.inverse = 10.0 ** -np.arange(5)",
        "self.dwq, self.grads = np.zeros((d_model, d_model)), {'wk': np.zeros((d_model, d_model))}",
    ],
    ids=["mask", "frequencies", "gradients"],
)
def test_arrays_that_are_not_weights_are_recognized_by_content_and_name(attention, statement):
    # NumPy has no buffers: every table in an attribute was taken for a parameter
    assert agrees(attention(holding(statement)))


def test_cached_arrays_are_not_weights(attention):
    source = SEPARATE.replace("def forward(self, x):", "def forward(self, x):\n        self.cache = x + 0")
    assert source != SEPARATE
    assert agrees(attention(source))


def test_a_bias_too_many_is_a_parameter_although_it_has_no_place(attention):
    # taken for a constant, a bias that the definition does not have would go unnoticed
    bound = attention(holding("self.bo = np.zeros(d_model)")).bound
    assert bound.rules is None
    assert not bound.constants


def test_a_wrong_implementation_is_bound_by_its_names(attention):
    # nothing reproduces the output: the clauses, not the binding, must report the mistake
    # bound by the smallest error, queries and keys could end up anywhere
    subject = attention(SEPARATE, head=HEAD.replace("softmax(scores) @ v", "softmax(scores) @ v[..., ::-1, :]"))
    assert 'wq = "q.weight -> m (h d)"' in lines(subject)
    assert 'wk = "k.weight -> m (h d)"' in lines(subject)
    assert subject.bound.notes == ()
    assert not agrees(subject)


# --- number formats ---------------------------------------------------------------------------------------------------


def test_float32_inside_is_noticed_and_judged_as_float32(attention):
    # in float64 it is off by 1e-7, which is a mistake in float64 but not in float32
    subject = attention(
        SEPARATE, head=HEAD.replace("(softmax(scores) @ v)", "(softmax(scores).astype(np.float32) @ v)")
    )
    assert (subject.bound.dtype, subject.bound.precision) == ("float64", "float32")
    (note,) = subject.bound.notes
    assert note.startswith("MultiHeadAttention is off by ")
    assert note.endswith("judged as float32")
    assert lines(subject)[2] == 'wq = "q.weight -> m (h d)"'


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (np.sin(np.arange(40, dtype=np.float32)).astype(np.float64), True),
        (np.sin(np.arange(40.0)), False),
        (np.array([0.5, 3.0, -1e9]), False),
        (np.array([1.0, -np.inf]), False),
        (np.arange(40), False),
    ],
    ids=["made-in-float32", "made-in-float64", "few-digits", "added-mask", "counts"],
)
def test_a_table_made_in_float32_shows_although_something_else_is_wrong(array, wanted):
    assert _is_rounded(array) == wanted


@pytest.mark.parametrize(("trainable", "wanted"), [(False, True), (True, False)], ids=["constant", "weight"])
def test_constants_that_are_told_are_looked_at_and_weights_are_not(trainable, wanted):
    """Would break if a constant that the listing names and nobody sent ended the probe, or hid the others."""

    def read():
        raise ImplementationFailure("exception", "RuntimeError", "nothing else shows it")

    listing = [{"name": name, "trainable": trainable} for name in ("table", "not sent")]
    table = np.sin(np.arange(40, dtype=np.float32)).astype(np.float64)
    instance = SimpleNamespace(listing=listing, read_raw=lambda: {"table": table}, read=read)
    assert computes_in_float32(instance) == wanted


def test_an_implementation_that_refuses_float64_is_probed_in_float32(attention):
    check = "def forward(self, x):\n        if x.dtype == np.float64:\n            raise TypeError('float32 only')"
    subject = attention(SEPARATE.replace("def forward(self, x):", check))
    assert (subject.bound.dtype, subject.bound.precision) == ("float32", "float32")
    assert not subject.offers("float64")
    assert lines(subject)[2] == 'wq = "q.weight -> m (h d)"'


def test_float64_is_not_an_ability_of_code_that_answers_in_float32(attention):
    subject = attention(SEPARATE.replace("return mixed @ self.wo", "return (mixed @ self.wo).astype(np.float32)"))
    assert not subject.offers("float64")


# --- what has no place ------------------------------------------------------------------------------------------------


def test_a_missing_output_projection_is_named_on_the_side_that_has_it(attention):
    source = SEPARATE.replace("return mixed @ self.wo", "return mixed").replace("self.wv, self.wo =", "self.wv =")
    bound = attention(source.replace("range(4)", "range(3)")).bound
    assert bound.rules is None
    assert bound.unbound == (
        "all of yours are matched, and the definition has more", "the definition's: out.weight [12, 12]",
    )  # fmt: skip
    assert not bound.same_count


def test_where_each_alone_has_a_place_both_lists_are_told(attention, monkeypatch):
    def none(*_args, **_options):
        raise Unassignable([], [])
        yield

    monkeypatch.setattr("conformkit.conformance.probing.probe.placements", none)
    why, theirs, ours = attention(SEPARATE).bound.unbound
    assert "each of your weights has a place" in why
    assert theirs.startswith("yours: wq [12, 12]")
    assert ours.startswith("the definition's: q.weight [")


def test_a_parameter_too_many_is_named_on_the_other_side(attention):
    source = SEPARATE.replace("self.heads, self.causal =", "self.scale = np.ones(5)\n        self.heads, self.causal =")
    subject = attention(source)
    assert subject.bound.unbound == (
        "yours, not matched: scale [5]", "the definition's: all of its own are matched",
    )  # fmt: skip
    with pytest.raises(ClauseFailure) as caught:
        subject.build().randomize(Draw(0, "test"))
    assert caught.value.details == subject.bound.unbound


def test_the_right_number_of_weights_in_unknown_places_is_not_a_mistake(attention):
    # one array of everything: unknown whether right or wrong until conform.toml declares the parts
    source = """
        class MultiHeadAttention:
            def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
                self.heads, self.causal = num_heads, causal
                self.all = np.random.default_rng(0).normal(size=4 * d_model * d_model) / d_model

            def forward(self, x):
                q, k, v, o = self.all.reshape(4, x.shape[-1], x.shape[-1])
                return attend(x @ q, x @ k, x @ v, self.heads, self.causal) @ o
    """
    bound = attention(source).bound
    assert bound.rules is None
    assert bound.same_count


# --- what the file says about weights ---------------------------------------------------------------------------------

TABLE = "[components.MultiHeadAttention.weights]\n"
RIGHT = {name: f"{part}.weight -> m (h d)" for name, part in zip(("wq", "wk", "wv"), "qkv", strict=True)}
RIGHT |= {"wo": "out.weight -> (h d) m"}


def file(**changes):
    rules = {name: source for name, source in {**RIGHT, **changes}.items() if source}
    return TABLE + "\n".join(f'"{name}" = "{source}"' for name, source in rules.items())


def test_declared_weights_are_taken_as_they_are(attention):
    assert agrees(attention(SEPARATE, file()))


def test_declared_weights_are_taken_even_where_others_would_fit_better(attention):
    # conform.toml is a claim: clauses find out if it is wrong
    subject = attention(SEPARATE, file(wq="k.weight -> m (h d)", wk="q.weight -> m (h d)"))
    assert 'wq = "k.weight -> m (h d)"' in lines(subject)
    assert not agrees(subject)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"wq": "q.weight -> h m d"}, "wq has shape (12, 12), conform.toml says (3, 12, 4)"),
        ({"wq": None, "w_query": "q.weight -> m (h d)"}, "w_query is in conform.toml, not in the implementation"),
        ({"wo": "v.weight -> m (h d)"}, "out.weight is not placed"),
    ],
    ids=["wrong-shape", "absent", "placed-nowhere"],
)
def test_declared_weights_that_do_not_fit_are_reported_line_by_line(attention, changes, said):
    bound = attention(SEPARATE, file(**changes)).bound
    assert bound.rules is None
    assert said in bound.unbound
    assert bound.same_count  # conform.toml is wrong; the implementation may be right


def test_what_the_file_leaves_open_on_both_sides_is_found(attention):
    subject = attention(SEPARATE, file(wo=None, wq=None))
    assert lines(subject) == lines(attention(SEPARATE, file()))
    assert agrees(subject)


def test_a_part_of_which_only_the_prefix_is_declared_is_found(load):
    block = """
class Attention:
    def __init__(self, width, heads):
        rng = np.random.default_rng(1)
        self.heads = heads
        self.wa, self.wb, self.wc, self.wd = (rng.normal(size=(width, width)) / width for _ in range(4))

    def forward(self, x):
        return attend(x @ self.wa, x @ self.wb, x @ self.wc, self.heads, True) @ self.wd


def normed(x, scale, shift):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * scale + shift


class TransformerBlock:
    def __init__(self, d_model, num_heads, d_ff):
        rng = np.random.default_rng(2)
        self.mixing = Attention(d_model, num_heads)
        self.up, self.down = rng.normal(size=(d_ff, d_model)) / 4, rng.normal(size=(d_model, d_ff)) / 4
        self.n1, self.n2, self.up_bias = np.ones(d_model), np.ones(d_model), np.zeros(d_ff)
        self.b1, self.b2, self.down_bias = np.zeros(d_model), np.zeros(d_model), np.zeros(d_model)

    def forward(self, x):
        x = x + self.mixing.forward(normed(x, self.n1, self.b1))
        return x + np.maximum(normed(x, self.n2, self.b2) @ self.up.T + self.up_bias, 0) @ self.down.T + self.down_bias
"""
    rest = "up = 'feed_forward.up.weight'\nup_bias = 'feed_forward.up.bias'\ndown = 'feed_forward.down.weight'\n"
    rest += "down_bias = 'feed_forward.down.bias'\nn1 = 'norm1.weight'\nb1 = 'norm1.bias'\nn2 = 'norm2.weight'\n"
    text = f"[variant]\nactivation = 'relu'\n[components.TransformerBlock.weights]\n'mixing.*' = 'attention.*'\n{rest}"
    alone = load(block, text + "b2 = 'norm2.bias'\n").subject("TransformerBlock")
    assert '"mixing.wa" = "attention.q.weight -> m (h d)"' in lines(alone)
    assert alone.bound.fits
    exported = block + "\n\nclass MultiHeadAttention(Attention):\n    pass\n"
    construct = "[components.MultiHeadAttention]\nconstruct = ['d_model', 'num_heads']\n"
    both = load(exported, construct + text + "b2 = 'norm2.bias'\n").subject("TransformerBlock")
    assert lines(both) == lines(alone)


def test_a_parameter_that_the_file_omits_is_reported_even_if_all_others_are_placed(attention):
    source = SEPARATE.replace("self.heads, self.causal =", "self.scale = np.ones(5)\n        self.heads, self.causal =")
    bound = attention(source, file()).bound
    assert bound.unbound == ("scale (5,) is not in conform.toml",)
    assert not bound.same_count


def test_a_missing_name_and_the_existing_one_are_both_reported(attention):
    bound = attention(SEPARATE, file(wq=None, w_query="q.weight -> m (h d)")).bound
    assert bound.unbound == (
        "w_query is in conform.toml, not in the implementation", "wq (12, 12) is not in conform.toml",
    )  # fmt: skip


def test_a_declared_part_that_this_variant_lacks_is_reported_with_its_line(attention):
    bound = attention(SEPARATE, file(bq="q.bias")).bound
    assert bound.rules is None
    assert '"bq" = "q.bias": this variant has no q.bias' in bound.unbound[0]


def test_float32_inside_is_noticed_with_declared_weights_too(attention):
    head = HEAD.replace("(softmax(scores) @ v)", "(softmax(scores).astype(np.float32) @ v)")
    assert attention(SEPARATE, file(), head=head).bound.precision == "float32"


@pytest.mark.parametrize(("step", "precision"), [("", "float64"), (".astype(np.float32)", "float32")])
def test_float32_inside_is_noticed_beside_a_mistake(attention, step, precision):
    """Would break if every clause about numbers failed by 1e-7 beside the mistake, and stood above it."""
    wrong = HEAD.replace("/ np.sqrt(q.shape[-1])", "").replace("(softmax(scores) @ v)", f"(softmax(scores){step} @ v)")
    bound = attention(SEPARATE, file(), head=wrong).bound
    assert not bound.fits
    assert bound.precision == precision


# --- what one draw shows and another does not -------------------------------------------------------------------------


def test_weights_that_fit_one_draw_only_are_not_found(attention):
    """Would break if a binding were believed after a single call."""
    first = attention(SEPARATE).build().example_inputs(Draw(0, "weights"), further=0)[0].flat[0]
    twofold = SEPARATE.replace("return mixed @ self.wo", "return mixed @ self.wo * (1 + (x.flat[0] != FIRST))")
    bound = attention(twofold.replace("FIRST", repr(float(first)))).bound
    assert not bound.fits
    assert len(bound.rules) == 4


def test_queries_and_keys_fused_beside_a_value_fit(attention):
    source = (
        SEPARATE.replace("self.wq, self.wk, self.wv", "wq, wk, self.wv")
        .replace("range(4))", "range(4))\n        self.qk = np.concatenate([wq, wk], axis=1)")
        .replace("x @ self.wq, x @ self.wk", "*np.split(x @ self.qk, 2, -1)")
    )
    assert attention(source).bound.fits


# --- what cannot be tried ---------------------------------------------------------------------------------------------


def test_a_failed_construction_keeps_its_error(attention):
    subject = attention(SEPARATE.replace("rng = np", "raise ValueError('no')\n        rng = np"))
    assert isinstance(subject.bound.failure, ImplementationFailure)
    with pytest.raises(ImplementationFailure, match="no"):
        subject.build()


def test_a_failed_construction_is_repeated_only_on_request(attention):
    """Would break if a failure were forgotten permanently, or repeated although the worker must be called."""
    refusing = "if d_model == 12:\n            raise ValueError('no')\n        rng = np"
    subject = attention(SEPARATE.replace("rng = np", refusing))
    again = subject.retried()
    assert again.build(d_model=20, num_heads=5).sizes["d_model"] == 20
    with pytest.raises(ImplementationFailure, match="no"):
        subject.build(d_model=20, num_heads=5)


def test_a_probe_leaves_the_component_as_it_was_and_returns_what_it_found(attention):
    subject = attention(SEPARATE)
    blank = subject.with_bound(replace(subject.bound, rules=(), offers={}, fits=False))
    found = probe(blank, ("float64",), gradients=False, known={})
    assert (blank.bound.rules, blank.bound.offers, blank.bound.fits) == ((), {}, False)
    assert (found.rules, found.offers["float64"], found.fits) == (subject.bound.rules, True, True)


def test_the_first_refusal_is_kept_not_that_of_the_last_number_format(attention):
    source = SEPARATE.replace("def forward(self, x):", "def forward(self, x):\n        raise ValueError(x.dtype)")
    assert "float64" in attention(source).bound.failure.message


def test_limits_that_allow_no_sizes_do_not_crash_the_kit(attention):
    limits = "[components.MultiHeadAttention.limits]\nd_model = 7\nnum_heads = { min = 2, max = 3 }"
    bound = attention(SEPARATE, limits).bound
    assert bound.rules is None
    assert "no sizes near" in bound.unbound[0]


def test_a_call_with_unknown_names_is_refused_before_it_is_tried(load):
    with pytest.raises(ExportMismatch, match="is called with q, which MultiHeadAttention does not have"):
        load(SEPARATE, "[components.MultiHeadAttention]\ncall = ['q', 'x']")


# --- attention itself, and wholes of parts ----------------------------------------------------------------------------

SDPA = """
    def scaled_dot_product_attention(q, k, v, mask=None):
        scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
        if mask is not None:
            scores = np.where(mask, scores, -np.inf)
        weights = softmax(scores)
        return {returned}
"""


@pytest.mark.parametrize(
    ("returned", "text", "weights"),
    [
        ("weights @ v", "", None),
        ("weights @ v, weights", "", 1),
        ("{'out': weights @ v, 'attn': weights}", "output = 'out'\nweights_output = 'attn'", "attn"),
        ("weights @ v, weights", "output = 0", None),
        ("weights @ v, (q, k, weights)", "", None),
    ],
    ids=["alone", "pair", "declared", "declared-without", "kept-for-derivatives"],
)
def test_attention_weights_are_found_where_they_are_returned(load, returned, text, weights):
    table = f"[components.ScaledDotProductAttention]\n{text}" if text else ""
    subject = load(SDPA.replace("{returned}", returned), table).subject("ScaledDotProductAttention")
    assert subject.bound.weights_output == weights
    assert subject.offers("weights") == (weights is not None)
    assert subject.bound.rules == ()


BLOCK = """
class TransformerBlock:
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        rng = np.random.default_rng(0)
        self.attn = MultiHeadAttention(d_model, num_heads, dropout, causal)
        self.up, self.down = rng.normal(size=(d_model, d_ff)) / d_model, rng.normal(size=(d_ff, d_model)) / d_ff
        self.bias_up, self.bias_down = np.zeros(d_ff), np.zeros(d_model)
        self.g1, self.b1, self.g2, self.b2 = np.ones(d_model), np.zeros(d_model), np.ones(d_model), np.zeros(d_model)

    def norm(self, x, g, b):
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * g + b

    def forward(self, x):
        x = x + self.attn.forward(self.norm(x, self.g1, self.b1))
        h = np.maximum(self.norm(x, self.g2, self.b2) @ self.up + self.bias_up, 0.0)
        return x + h @ self.down + self.bias_down
"""


@pytest.fixture
def block(load):
    """Return a function that loads a module with attention and a block, and returns the block."""
    return lambda source: load(source, "[variant]\nactivation = 'relu'").subject("TransformerBlock")


def sources(subject):
    return {rule.target: rule.source for rule in subject.bound.rules}


INTERLEAVED_BELOW = "attention.q.weight, attention.k.weight, attention.v.weight -> (h s d) m"


def test_the_weights_of_a_whole_are_found(block):
    subject = block(FUSED.format(split=INTERLEAVED) + BLOCK)
    assert sources(subject)["attn.qkv"] == INTERLEAVED_BELOW
    assert sources(subject)["g1"] == "norm1.weight -> m"
    assert agrees(subject)


def test_the_layout_of_a_part_is_tried_first_in_the_whole(block):
    # the block is wrong, so trials there find nothing: its attention is bound as the separate attention was
    wrong = BLOCK.replace("return x + h", "return x - h")
    assert sources(block(FUSED.format(split=INTERLEAVED) + wrong))["attn.qkv"] == INTERLEAVED_BELOW


def test_a_wrong_whole_with_a_list_of_three_is_a_guess_that_reads_no_heads(block):
    wrong = BLOCK.replace("return x + h", "return x - h").replace(
        "self.g1, self.b1, self.g2, self.b2 =", "*self.n, self.b2 ="
    )
    for number, name in enumerate(("g1", "b1", "g2")):
        wrong = wrong.replace(f"self.{name}", f"self.n[{number}]")
    bound = block(SEPARATE + wrong).bound
    assert (bound.rules, bound.same_count) == (None, True)
    assert {rule.target for rule in bound.guess} >= {"n.0", "n.1", "n.2", "b2", "attn.wq"}


MASKED = """
class Inner:
    def __init__(self, width):
        rng = np.random.default_rng(0)
        self.w = rng.normal(size=(width, width)) / width

    def forward(self, x, mask):
        scores = x @ self.w @ x.swapaxes(-1, -2)
        return softmax(scores if mask is None else np.where(mask, scores, -np.inf)) @ x


class TinyTransformerLM:
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size):
        rng = np.random.default_rng(1)
        self.table, self.inner = rng.normal(size=(vocab_size, d_model)), Inner(d_model)

    def forward(self, ids, attn_mask=None):
        return self.inner.forward(self.table[ids], MASK) @ self.table.T
"""


@pytest.mark.parametrize(
    ("mask", "causal"),
    [("attn_mask", "mask"), ("np.tri(ids.shape[1], dtype=bool)", "construct"), ("None", "construct")],
    ids=["by-its-mask", "by-itself", "never"],
)
def test_a_model_that_is_causal_only_by_its_mask_gets_one(load, mask, causal):
    model = load(MASKED.replace("MASK)", f"{mask})")).subject("TinyTransformerLM")
    assert model.bound.causal == causal
    noted = any("hides later ids only if its call has a mask" in note for note in model.bound.notes)
    assert noted is (causal == "mask")
