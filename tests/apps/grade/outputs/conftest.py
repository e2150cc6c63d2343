from collections.abc import Callable

import pytest

from conformkit.conformance.apps.grade.record import Grade
from tests.apps.grade.outputs import samples

MakeGrade = Callable[..., Grade]


@pytest.fixture
def graded() -> MakeGrade:
    """A grade: 7.5 of 12.5 points, one clause that fails; every field can be given."""
    return samples.graded


@pytest.fixture
def lost() -> Grade:
    """A submission that could not be judged."""
    return samples.lost()


@pytest.fixture
def hostile() -> Grade:
    """A grade in which everything that a student controls is hostile."""
    return samples.hostile()
