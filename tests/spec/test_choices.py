"""Each choice has one record, which says all that is said of it: words, values in use, when it plays no part."""

from __future__ import annotations

from dataclasses import fields

import pytest

from conformkit.spec.variants import CANONICAL, Variant, choices, described, records

CLOSED = {
    name: kind if isinstance(kind, tuple) else (True, False)
    for name, kind in choices().items()
    if isinstance(kind, tuple) or kind is bool
}


def test_choices_stand_in_the_order_of_their_files() -> None:
    """Would break if a base of Variant moved: drafts write choices in this order, norms first, sampling last."""
    names = [field.name for field in fields(Variant)]
    assert names == list(choices()) == list(records())
    assert (names[0], names[-1]) == ("norm", "penalty_counts")


@pytest.mark.parametrize("name", CLOSED)
def test_every_value_of_a_closed_choice_has_words(name: str) -> None:
    """Would break if a record forgot a value: a report would say `norm_bias = True`."""
    said = [described(name, value) for value in CLOSED[name]]
    assert [text for text in said if " = " in text] == []
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
