import pytest

from conformkit.conformance.apps.grade.assess import _reason
from conformkit.conformance.engine.finding import LoadFailure


@pytest.mark.parametrize(
    ("problem", "where", "told"),
    [
        ("importing it raised SyntaxError: expected ':' (a.py, line 7)", "a.py:7", "expected ':' (a.py, line 7)"),
        ("importing it raised KeyError: 'x'", "a.py:7 in <module>", "KeyError: 'x' (a.py:7 in <module>)"),
        ("it exports nothing", "", "it exports nothing"),
    ],
    ids=["said-already", "not-said", "nowhere"],
)
def test_the_place_of_an_error_is_told_once(problem, where, told):
    assert _reason(LoadFailure(problem, where=where)).endswith(told)
