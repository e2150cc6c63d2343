"""Rules by which code refuses sizes are found by trial; a crash, or a rule that nothing confirms, is none."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from conformkit.conformance.binding.config import load_config
from conformkit.conformance.binding.limits import Range, SizeLimits
from conformkit.conformance.driver.client.session import InProcess, locate
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.limit_notes import limit_notes
from conformkit.conformance.probing.refusals import found_limits

SOURCE = """
import numpy as np

class SizeError(ValueError):
    pass

class OwnError(Exception):
    pass

class MultiHeadAttention:
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        {attention}
        self.wq, self.wk, self.wv, self.wo = (np.ones((d_model, d_model)) for _ in range(4))

    def forward(self, x):
        {call}
        return x @ self.wq @ self.wo

class FeedForward:
    def __init__(self, d_model, d_ff, dropout=0.0):
        {feed_forward}
        self.up, self.down = np.ones((d_model, d_ff)), np.ones((d_ff, d_model))

    def forward(self, x):
        return x @ self.up @ self.down
"""
Load = Callable[..., Implementation]


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """Return a function that writes a module with these statements (and its conform.toml), and binds it."""
    opened = []

    def load_module(toml: str = "", **statements: str) -> Implementation:
        said = {"attention": "pass", "call": "pass", "feed_forward": "pass", **statements}
        (tmp_path / "refusing.py").write_text(textwrap.dedent(SOURCE).format(**said), encoding="utf-8")
        if toml:
            (tmp_path / "conform.toml").write_text(toml, encoding="utf-8")
        config = load_config([tmp_path])
        implementation = Implementation(InProcess(locate(str(tmp_path / "refusing.py")), config.framework), config)
        opened.append(implementation)
        implementation.load()
        return implementation

    yield load_module
    for implementation in opened:
        implementation.close()


def found(implementation: Implementation, name: str = "MultiHeadAttention") -> Mapping[str, Range]:
    return implementation.subject(name).bound.found


@pytest.mark.parametrize(
    ("refusal", "rule"),
    [
        ("assert d_model % 2 == 0", {"d_model": Range(multiple_of=2)}),
        ("assert d_model % 8 == 0", {"d_model": Range(multiple_of=8)}),
        ("assert d_model % (2 * num_heads) == 0", {"head_width": Range(multiple_of=2)}),
        ("assert d_model // num_heads >= 8", {"head_width": Range(min=8)}),
        ("assert num_heads % 2 == 0", {"num_heads": Range(multiple_of=2)}),
        ("assert num_heads > 1 and d_model % 4 == 0", {"num_heads": Range(min=2), "d_model": Range(multiple_of=4)}),
        ("if d_model % 2: raise SizeError('want an even width')", {"d_model": Range(multiple_of=2)}),
        ("if d_model % 2: raise OwnError('want an even width')", {"d_model": Range(multiple_of=2)}),
    ],
    ids=[
        "even",
        "eights",
        "even heads",
        "wide heads",
        "pairs of heads",
        "two rules",
        "an own ValueError",
        "an own error",
    ],
)
def test_a_rule_about_widths_is_found(load: Load, refusal: str, rule: dict[str, Range]) -> None:
    assert found(load(attention=refusal)) == rule


@pytest.mark.parametrize(
    ("refusal", "rule"),
    [
        ("assert d_ff == 4 * d_model", Range(equals="4 * d_model")),
        ("assert d_ff >= d_model", Range(least="d_model")),
        ("if d_ff % 2: raise ValueError('want an even number of hidden units')", Range(multiple_of=2)),
    ],
    ids=["four times", "no narrower", "even"],
)
def test_a_rule_about_the_hidden_width_is_found(load: Load, refusal: str, rule: Range) -> None:
    implementation = load(feed_forward=refusal)
    assert found(implementation, "FeedForward") == {"d_ff": rule}
    for wanted in (1, 5, 20, 77):
        sizes = implementation.subject("FeedForward").sizes(d_model=24, d_ff=wanted)
        assert sizes["d_ff"] >= 24 or rule.least is None
        assert rule.allows(sizes["d_ff"])


def test_sizes_are_drawn_by_the_rule_everywhere(load: Load) -> None:
    subject = load(attention="assert d_model % (2 * num_heads) == 0").subject("MultiHeadAttention")
    for width in (1, 7, 9, 15, 21, 64):
        sizes = subject.sizes(d_model=width, num_heads=3)
        assert sizes["d_model"] % (2 * sizes["num_heads"]) == 0


def test_a_refusal_at_the_call_counts(load: Load) -> None:
    assert found(load(call="assert x.shape[-1] % 2 == 0")) == {"d_model": Range(multiple_of=2)}


@pytest.mark.parametrize(
    "statement",
    [
        "pass",
        "if d_model % 2: raise IndexError('list index out of range')",
        "if d_model % 2: raise RuntimeError('mat1 and mat2 shapes cannot be multiplied')",
        "if d_model % 2: raise ValueError('could not broadcast input array from shape (4,) into shape (5,)')",
        "assert d_model in (12, 64)",
        "assert d_model < 100 and d_model % 7 == 1",
    ],
    ids=["nothing", "index", "shapes", "library", "two sizes", "strange"],
)
def test_what_is_no_plain_refusal_excuses_nothing(load: Load, statement: str) -> None:
    """Would break if a crash at odd widths made the suite draw even ones."""
    assert not found(load(attention=statement))


def test_a_crash_among_refusals_excuses_nothing(load: Load) -> None:
    statement = "assert d_model % 2 == 0; assert d_model > 8 or [][d_model]"
    assert not found(load(attention=statement))


def test_what_is_declared_is_not_searched_for(load: Load) -> None:
    implementation = load("[limits]\nd_model = { multiple_of = 2 }\n", attention="assert d_model % 2 == 0")
    assert not found(implementation)
    assert limit_notes(implementation.bounds()) == []


def test_a_rule_of_the_parts_is_tried_first(load: Load) -> None:
    subject = load(attention="assert d_model % 2 == 0").subject("MultiHeadAttention")
    bare = subject.with_bound(replace(subject.bound, limits=SizeLimits(), found={}))
    assert found_limits(bare, ("float64",), [{"d_model": Range(multiple_of=4)}]) == {"d_model": Range(multiple_of=4)}
    assert found_limits(bare, ("float64",), [{"d_model": Range(min=2)}]) == {"d_model": Range(multiple_of=2)}


def test_the_note_names_components_sizes_and_the_line(load: Load) -> None:
    implementation = load(attention="assert d_model % 2 == 0", feed_forward="assert d_model % 2 == 0")
    (note,) = limit_notes(implementation.bounds())
    assert note == (
        "MultiHeadAttention, FeedForward refuse some sizes: d_model is drawn only as multiples of 2 (found by trial); "
        "`d_model = { multiple_of = 2 }` under [limits] in conform.toml declares it"
    )
