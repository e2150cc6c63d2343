import pytest

from conformkit.conformance.apps.grade.assess import _reason
from conformkit.conformance.apps.grade.other_names import other_names, renamed, told_names
from conformkit.conformance.binding.config import Config
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.request import RunRequest
from tests.engine.conftest import ATTENTION


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


HEADS = """
class MultiHeadAttention:
    def __init__(self, d_model, num_heads):
        self.weight = np.ones((d_model, d_model))

    def forward(self, x):
        return x @ self.weight
"""


@pytest.mark.parametrize("beside", ["", HEADS], ids=["alone", "beside heads that do without it"])
def test_what_has_another_name_is_told_by_its_own_and_can_be_judged(tmp_path, beside):
    """It was 0 points without a hint."""
    (tmp_path / "work.py").write_text(ATTENTION.replace("scaled_dot_product_attention", "attention") + beside)
    request = RunRequest(str(tmp_path / "work.py"), only=("SDPA-SCALE",), forbid_kit_imports=True)
    found = other_names(request, ["ScaledDotProductAttention"])
    (told,) = told_names(found, judged=False)
    assert told.startswith("`attention` looks like scaled_dot_product_attention: the assignment asks for")
    config = renamed(Config(), found)
    assert config.components["ScaledDotProductAttention"].path.endswith(":attention")
    assert other_names(request, []) == {}
