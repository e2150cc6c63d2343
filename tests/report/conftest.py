from collections.abc import Callable

import pytest

from conformkit.conformance.engine.results import Report, Result
from tests.report import samples

MakeResult = Callable[..., Result]
MakeReport = Callable[..., Report]


@pytest.fixture
def result() -> MakeResult:
    return samples.make_result


@pytest.fixture
def report() -> MakeReport:
    return samples.make_report


@pytest.fixture
def hostile() -> Report:
    """A report in which everything that an implementation controls is hostile."""
    return samples.hostile()


@pytest.fixture
def told() -> Report:
    """A report in which every kind of entry occurs."""
    return samples.telling()
