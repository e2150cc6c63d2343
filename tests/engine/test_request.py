"""Requests that are made from arguments."""

import pytest

from conformkit.conformance.engine.request import requested


@pytest.mark.parametrize("given", ["SDPA, MASK-BOOL", ["SDPA", "MASK-BOOL"], ("SDPA", "MASK-BOOL")])
def test_clauses_may_be_one_text_as_on_the_command_line(given):
    """Would break if a text were taken apart into letters: "no clause is called S"."""
    found = requested("check", "mypkg", only=given, without=given)
    assert found.only == found.without == ("SDPA", "MASK-BOOL")
