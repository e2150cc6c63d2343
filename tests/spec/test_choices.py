"""Each choice has one record, which says all that is said of it: words, values in use, when it plays no part."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from functools import cache
from pathlib import Path

import pytest

from conformkit.spec.choices.reach import beside_rare, reached
from conformkit.spec.components import COMPONENTS, SEVERAL_NAMES
from conformkit.spec.variants import CANONICAL, Variant, choices, described, records

CLOSED = {
    name: kind if isinstance(kind, tuple) else (True, False)
    for name, kind in choices().items()
    if isinstance(kind, tuple) or kind is bool
}
ROOT = Path(__file__).parents[2]
OF_TOOLS = {"temperature_last", "repetition_counts", "penalty_counts"}
"""Choices of sampling, which no component's definition shows; the reference samples in one way."""
BY_VARIANT = {"window_layers", "relative_shared"}
"""Read by a method of Variant, which the reference calls."""
WITHOUT_PROSE = {"norm_bias", "shared_positions"}
"""Said in docs/conform-toml.md alone: with or without a vector, the same clauses hold."""
WITHOUT_MISTAKES = OF_TOOLS | {
    "norm_bias", "experts_active", "key_bias", "output_projection", "output_bias", "rotary_width", "value_width",
    "alibi_slopes", "relative_buckets", "relative_distance", "relative_shared", "sinusoid_frequencies",
    "position_offset", "positions_scale", "rotary_factor", "rotary_low", "rotary_whole_pairs", "rotary_magnitude",
    "log_probabilities", "segments", "pooler", "head_transform", "next_sentence_head",
}  # fmt: skip
"""No known mistake needs them: they are parts left out, or numbers of a part that has mistakes of its own."""


def test_choices_stand_in_the_order_of_their_files() -> None:
    """Would break if a base of Variant moved: drafts write choices in this order, norms first, sampling last."""
    names = [field.name for field in fields(Variant)]
    assert names == list(choices()) == list(records())
    assert (names[0], names[-1]) == ("norm", "penalty_counts")


@pytest.mark.parametrize("name", CLOSED)
def test_every_value_of_a_closed_choice_has_words(name: str) -> None:
    """Would break if a record forgot a value: a report would say `norm_bias = True`."""
    said = [described(name, value) for value in CLOSED[name]]
    assert [text for text in said if " = " in text or len(text) < 4] == []
    assert len(set(said)) == len(said)


@pytest.mark.parametrize("name", sorted(choices().keys() - CLOSED.keys()))
def test_an_open_choice_names_values_in_use(name: str) -> None:
    """Would break if a number had none: no search would find it, and nothing would vary it."""
    in_use = records()[name].in_use
    assert in_use
    assert getattr(CANONICAL, name) not in in_use
    assert len(set(in_use)) == len(in_use)


@pytest.mark.parametrize("name", [name for name, record in records().items() if record.needs])
def test_what_a_choice_needs_is_a_choice_that_is_off_by_default(name: str) -> None:
    """Would break if `needs` named no choice, or one that every variant has: its message would never come."""
    needs = records()[name].needs
    assert needs is not None
    assert not getattr(CANONICAL, needs[0])


def test_values_that_only_newer_models_have_are_values() -> None:
    assert {
        value for name, record in records().items() for value in record.rare if value not in choices()[name]
    } == set()


@pytest.mark.parametrize("name", choices())
def test_a_choice_has_its_six_places(name: str) -> None:
    """Would break if a choice were added to some of them alone; CONTRIBUTING names them."""
    shown = {one for part in (*COMPONENTS, *SEVERAL_NAMES) for one in (*reached(part), *beside_rare(part))}
    places = {
        "record": bool(records()[name].words or records()[name].in_use),
        "oracle": name in shown or name in OF_TOOLS,
        "reference": _named(name, "reference", "**/*.py") or name in BY_VARIANT | OF_TOOLS,
        "prose": _named(name, "spec", "*.md") or name in WITHOUT_PROSE,
        "docs/conform-toml.md": _named(name, "docs", "conform-toml.md"),
        "known mistakes": name in _needed_by_mistakes() | WITHOUT_MISTAKES,
    }
    assert [place for place, has in places.items() if not has] == []


def test_lists_of_what_lacks_a_place_name_nothing_that_has_it() -> None:
    """Would break if a choice got known mistakes or prose and stayed excused: losing them again would not show."""
    assert _needed_by_mistakes() & WITHOUT_MISTAKES == set()
    assert [name for name in WITHOUT_PROSE if _named(name, "spec", "*.md")] == []


@cache
def _needed_by_mistakes() -> set[str]:
    lines = re.findall(r"^variant = (.*)$", _text("conformance/defects", "*/*.toml"), flags=re.MULTILINE)
    return {name for line in lines for name in re.findall(r"(\w+) =", line)}


def _named(name: str, folder: str, pattern: str) -> bool:
    return re.search(rf"\b{name}\b", _text(folder, pattern)) is not None


@cache
def _text(folder: str, pattern: str) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / folder).glob(pattern)))


def test_a_copy_with_other_choices_is_as_if_it_had_been_made_so() -> None:
    """Would break if a copy shared anything with what it was copied from, or took a name that is no choice."""
    changed = CANONICAL.but(norm="rmsnorm", window=3)
    assert changed == replace(CANONICAL, norm="rmsnorm", window=3) == Variant(norm="rmsnorm", window=3)
    assert hash(changed) == hash(Variant(norm="rmsnorm", window=3))
    assert Variant() == CANONICAL != changed
    with pytest.raises(TypeError, match="there is no choice normalization"):
        CANONICAL.but(normalization="rmsnorm")
