"""Requests that are made from arguments."""

import pytest

from conformkit.conformance.engine.request import requested
from conformkit.spec.clauses import OutsideProfileError


@pytest.mark.parametrize("given", ["SDPA, MASK-BOOL", ["SDPA", "MASK-BOOL"], ("SDPA", "MASK-BOOL")])
def test_clauses_may_be_one_text_as_on_the_command_line(given):
    """Would break if a text were taken apart into letters: "no clause is called S"."""
    found = requested("check", "mypkg", only=given, without=given)
    assert found.only == found.without == ("SDPA", "MASK-BOOL")


def test_what_is_asked_for_is_in_the_profile():
    """Would break if another profile's clause were left out in silence: a run of the others would pass for both."""
    with pytest.raises(OutsideProfileError, match="SDPA-SCALE is not in profile lm,paths, but in core"):
        requested("check", "mypkg", only="TRAIN,SDPA-SCALE", profile="lm,paths")
    assert requested("check", "mypkg", only="TRAIN,PATH", profile="lm,paths").only == ("TRAIN", "PATH")
    with pytest.raises(ValueError, match="profile 'cor' is not one of core, lm"):
        requested("check", "mypkg", profile="lm,cor")
