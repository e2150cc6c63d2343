"""Where rules put parameters is worked out once for each size, and anew for other sizes and other rules."""

import numpy as np
import pytest

from conformkit.conformance.binding import patterns
from conformkit.conformance.binding.patterns import to_canonical, to_implementation
from conformkit.conformance.binding.rules import PatternError, parse_rule
from conformkit.spec.parameters import matrix


@pytest.fixture
def searched(monkeypatch):
    """Count how often places are searched for."""
    patterns._remembered.cache_clear()
    found = []
    search = patterns._places
    monkeypatch.setattr(patterns, "_places", lambda rules, given: found.append(1) or search(rules, given))
    yield found
    patterns._remembered.cache_clear()


def weights(height: int, width: int):
    return {"up.weight": np.arange(height * width, dtype=float).reshape(height, width)}


def test_places_of_the_same_sizes_are_searched_for_once(searched):
    rules = (parse_rule("w", "up.weight -> m f"),)
    for height in (3, 3, 5):
        given = {"up.weight": matrix("f", "m", f=height, m=2)}
        theirs = to_implementation(rules, weights(height, 2), given, {})
        assert theirs["w"].shape == (2, height)
        assert np.array_equal(to_canonical(rules, theirs, given, {})["up.weight"], weights(height, 2)["up.weight"])
    assert len(searched) == 2
    plain = to_implementation(
        (parse_rule("w", "up.weight"),), weights(3, 2), {"up.weight": matrix("f", "m", f=3, m=2)}, {}
    )
    assert plain["w"].shape == (3, 2)
    assert len(searched) == 3


def test_what_does_not_fit_is_an_error_each_time(searched):
    for _ in range(2):
        with pytest.raises(PatternError, match=r"no down\.weight"):
            to_implementation(
                (parse_rule("w", "down.weight"),), weights(3, 2), {"up.weight": matrix("f", "m", f=3, m=2)}, {}
            )
    assert len(searched) == 2


def test_weights_that_are_stored_as_they_are_take_no_memory_twice():
    # the widest models have forty megabytes of them
    given = {"up.weight": matrix("f", "m", f=3, m=2)}
    own = weights(3, 2)
    stored = to_implementation((parse_rule("w", "up.weight"),), own, given, {})
    assert np.shares_memory(stored["w"], own["up.weight"])
    turned = to_implementation((parse_rule("w", "up.weight -> m f"),), own, given, {})
    assert turned["w"].flags.c_contiguous
