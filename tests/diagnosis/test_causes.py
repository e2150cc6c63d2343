"""The reference that stands in for an implementation is in the variant of the model that the profile judges."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from conformkit.conformance.diagnosis.causes import _whole
from conformkit.spec.clauses import clauses_of
from conformkit.spec.profiles import PROFILES


@pytest.mark.parametrize("profile", PROFILES)
def test_the_whole_is_something_that_the_profile_is_about(profile: str) -> None:
    """Would break for profile paths, where a Transformer took the place of the model."""
    found = _whole(profile, SimpleNamespace(has=lambda _: False))
    about = {clause.component for clause in clauses_of(profile).values()}
    assert found in about or not about & {"TinyTransformerLM", "BertForPreTraining", "VisionTransformer"}
