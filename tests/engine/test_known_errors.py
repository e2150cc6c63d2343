"""Exceptions that say what to change: a machine without a GPU, two number formats, odd widths."""

import pytest
import torch

from conformkit.conformance.diagnosis.similarity import Likeness, likeness
from conformkit.conformance.engine.known_errors import known_error
from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.findings.finding import Finding, Kind
from conformkit.conformance.report.causes import advice, facts
from tests.report.samples import make_report, make_result


def error(message, **changes):
    return make_result(Verdict.ERROR, message=f"it raised {message}", **changes)


def raised(action):
    with pytest.raises((RuntimeError, AssertionError, TypeError)) as found:
        action()
    return f"{type(found.value).__name__}: {found.value}"


WIDE, NARROW = torch.zeros(2, 2, dtype=torch.float64), torch.zeros(2, 2)
WHAT_TORCH_SAYS = {
    "formats": (lambda: WIDE @ NARROW, "dtype=x.dtype"),
    "view": (lambda: torch.zeros(2, 3).t().view(6), "reshape"),
    "numpy": (lambda: torch.zeros(2, requires_grad=True).numpy(), "torch functions"),
}


@pytest.mark.parametrize("case", WHAT_TORCH_SAYS)
def test_what_torch_itself_says_is_recognized(case):
    """Would break if a message of the installed torch no longer had the words that are searched for."""
    action, words = WHAT_TORCH_SAYS[case]
    assert words in known_error(error(raised(action))).fix


def test_a_machine_without_a_gpu_is_named_and_looks_like_no_mistake():
    """Would break if two exceptions were alike because both are exceptions: `.cuda()` looked like a wrong view."""
    ours = error("AssertionError: Torch not compiled with CUDA enabled", details=("with heads = 3",))
    theirs = error("RuntimeError: view size is not compatible", details=("with heads = 3",))
    assert "`.cuda()`" in dict(advice(ours, 3))["fix:"]
    assert likeness(ours, theirs) is Likeness.RED
    others = error("KeyError: 'heads'", details=("with heads = 3",))
    assert likeness(error("IndexError: 3", details=("with heads = 3",)), others) is Likeness.KIND


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("RuntimeError: \"multinomial\" not implemented for 'Half'", "no kernel"),
        ("ValueError: Expected parameter probs of Categorical to satisfy the constraint Simplex()", "`logits=`"),
        ("TypeError: sort() takes from 1 to 0 positional arguments but 1 were given", "signature"),
        ("NameError: name 'maths' is not defined", "signature"),
    ],
    ids=["kernel", "simplex", "arguments", "name"],
)  # fmt: skip
def test_what_says_nothing_about_a_formula_looks_like_no_mistake(message, words):
    """Would break if sampling in float16 were called a wrong softmax where torch's CPU build lacks a kernel."""
    ours, theirs = error(message), error("RuntimeError: probability tensor contains either `inf`, `nan` or element < 0")
    assert words in dict(advice(ours, 3))["fix:"]
    assert likeness(ours, theirs) is Likeness.RED


SIZES = "RuntimeError: The expanded size of the tensor (4) must match the existing size (5)"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"details": ("with d_model = 9, max_len = 24",), "component": "PositionalEncoding"}, True),
        ({"details": ("with d_model = 8, max_len = 25",), "component": "PositionalEncoding"}, False),
        ({"details": ("with d_model = 9",), "component": "TransformerBlock"}, False),
    ],
    ids=["odd-width", "even-width", "another-part"],
)
def test_odd_widths_are_named_only_where_the_width_is_odd(changes, named):
    found = known_error(error(SIZES, **changes))
    assert (found is not None) == named
    assert ("cosines" in dict(advice(error(SIZES, **changes), 3))["fix:"]) == named


FLOAT = torch.zeros(2, 2)
NO_BOOLEAN = {
    "filled": lambda: FLOAT.masked_fill(FLOAT, 0.0),
    "inverted": lambda: ~FLOAT,
    "chosen": lambda: torch.where(FLOAT, FLOAT, FLOAT),
    "numpy": lambda: ~FLOAT.numpy(),
}


@pytest.mark.parametrize("how", NO_BOOLEAN)
def test_a_float_mask_is_named_where_only_a_boolean_one_works(how):
    """Would break if code without float masks were told to keep the caller's mask as it is, or to set a dtype."""
    said = raised(NO_BOOLEAN[how])
    for clause, more in (("MASK-NO-MUTATE", {}), ("DT-FLOAT32", {"details": ("with ScaledDotProductAttention",)})):
        result = make_result(Verdict.ERROR, clause, message=f"it raised {said}", **more)
        assert 'kinds = ["bool"]' in known_error(result).fix
        assert "why:" not in dict(facts(make_report(result), result))
    own = make_result(Verdict.ERROR, "MHA-CAUSAL", message=f"it raised {said}", component="MultiHeadAttention")
    assert "dtype=torch.bool" in known_error(own).fix


def test_only_exceptions_have_such_causes():
    assert known_error(make_result(Verdict.FAIL, message="Torch not compiled with CUDA enabled")) is None


def test_what_takes_too_long_is_told_to_look_for_a_loop():
    late = make_result(Verdict.TIMEOUT, "SDPA-SHAPE", message="it exceeded the time limit: no answer after 5 s")
    assert "loop that never ends" in dict(advice(late, 3))["fix:"]


def test_a_nan_gets_no_advice_about_shapes():
    odd = make_result(Verdict.FAIL, "SDPA-SHAPE", finding=Finding(Kind.NOT_FINITE, "output", at=(0, 0), bad=4, of=8))
    assert "softmax over a row" in dict(advice(odd, 3))["fix:"]
    fine = make_result(Verdict.FAIL, "SDPA-SHAPE", message="output has shape (2, 3), expected (2, 4)")
    assert dict(advice(fine, 3))["fix:"] == fine.clause.fix


@pytest.mark.parametrize(("clause", "named"), [("GEN-TOPP-UNSORT", True), ("GEN-TEMP-ZERO", False)])
def test_drawing_from_nothing_is_top_ps_fault_where_top_p_is_judged(clause, named):
    """Would break if a failed draw were explained by how ranks are mapped back, or by top-p where none was given."""
    nothing = torch.full((1, 4), -torch.inf).softmax(-1)
    told = known_error(error(raised(lambda: torch.multinomial(nothing, 1)), clause_id=clause))
    assert (told is not None and "the id that crosses p" in told.fix) == named
