"""Checks: each one passes when it must, and fails when it must."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from conformkit.conformance import suite
from conformkit.conformance.assertions.checks import (
    ClauseFailure,
    check,
    check_close,
    check_differs,
    check_dtype,
    check_equal,
    check_finite,
    check_hidden,
    check_refuses,
    check_repeated,
    check_shape,
    check_zero,
    each_of,
    gathering,
    refusing,
    under,
)
from conformkit.conformance.driver.errors import ImplementationFailure, WorkerLost

ONE = np.array([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]])
NAN = np.where(ONE == 3.0, np.nan, ONE)
INFINITE = np.where(ONE == 3.0, np.inf, ONE)
FINITE = arrays.arrays(np.float64, arrays.array_shapes(max_dims=3, max_side=4), elements=st.floats(-1e6, 1e6))


def refuse(kind: str = "exception") -> Callable[[], None]:
    def action() -> None:
        raise ImplementationFailure(kind, "ValueError", "d_model is 13, expected a multiple of 3")  # type: ignore[arg-type]

    return action


HOLD = {
    "a-condition": lambda: check("never said", True),
    "shape": lambda: check_shape("output", ONE, (2, 3)),
    "shape-of-a-number": lambda: check_shape("output", np.array(1.0), ()),
    "dtype": lambda: check_dtype("output", "float32", "float32"),
    "finite": lambda: check_finite("output", ONE),
    "finite-integers": lambda: check_finite("ids", np.array([1, 2])),
    "nothing-is-finite": lambda: check_finite("output", np.empty((0, 3))),
    "equal": lambda: check_equal("output", ONE, ONE.copy()),
    "equal-nothing": lambda: check_equal("output", np.empty((0, 3)), np.empty((0, 3))),
    "equal-zeros-of-either-sign": lambda: check_equal("output", np.array([0.0]), np.array([-0.0])),
    "equal-ids": lambda: check_equal("ids", np.array([1, 2]), np.array([1, 2])),
    "repeated-with-sums-in-another-order": lambda: check_repeated("output", ONE, np.nextafter(ONE, 9.0)),
    "close": lambda: check_close("output", ONE * (1 + 1e-10), ONE, 1e-9),
    "close-relative-to-the-largest": lambda: check_close("output", ONE + 2e-9, ONE, 1e-9),
    "close-to-zero-but-for-nothing": lambda: check_close("output", np.zeros(3), np.zeros(3), 1e-9),
    "close-by-another-scale": lambda: check_close("output", ONE + 1e-7, ONE, 1e-9, scale=1e3),
    "close-nothing": lambda: check_close("output", np.empty((0, 3)), np.empty((0, 3)), 1e-9),
    "zero": lambda: check_zero("gradient", np.zeros((2, 3))),
    "hidden": lambda: check_hidden("weight", np.array([[1.0, 0.0], [np.nan, 2.0]]), np.tri(2) > 0),
    "hidden-within-a-bound": lambda: check_hidden(
        "weight", np.array([[1.0, 1e-7]]), np.array([1, 0]) > 0, at_most=1e-6
    ),
    "zero-within-a-bound": lambda: check_zero("gradient", np.array([1e-7, -1e-7]), at_most=1e-6),
    "differs": lambda: check_differs("output", ONE, ONE + np.eye(2, 3)),
    "differs-by-more-than-asked": lambda: check_differs("output", ONE, ONE + 1e-3, at_least=1e-4),
    "refusal": lambda: check_refuses("d_model = 13", refuse()),
}

FAIL = {
    "a-condition": (lambda: check("the sky is green", False), "the sky is green"),
    "shape": (lambda: check_shape("output", ONE, (3, 2)), "output has shape (2, 3), expected (3, 2)"),
    "shape-of-one-axis": (lambda: check_shape("output", ONE[0], (2,)), "output has shape (3,), expected (2,)"),
    "shape-with-an-axis-of-one": (lambda: check_shape("output", ONE[None], (2, 3)), "has shape (1, 2, 3)"),
    "dtype": (lambda: check_dtype("output", "float64", "float32"), "output is float64, expected float32"),
    "finite-nan": (lambda: check_finite("output", NAN), "output[0, 2] is nan, expected a finite number; 1 of 6"),
    "finite-infinite": (lambda: check_finite("output", INFINITE), "output[0, 2] is inf"),
    "equal-by-one-bit": (lambda: check_equal("output", ONE, np.nextafter(ONE, 9.0)), "output["),
    "repeated-with-noise": (lambda: check_repeated("output", ONE, ONE + 1e-13), "output["),
    "repeated-nan": (lambda: check_repeated("output", NAN, NAN), "output[0, 2] is nan, expected nan"),
    "equal-nan": (lambda: check_equal("output", NAN, NAN), "output[0, 2] is nan, expected nan"),
    "equal-broadcast": (lambda: check_equal("output", np.ones(3), np.ones((2, 3))), "has shape (3,), expected (2, 3)"),
    "equal-ids": (lambda: check_equal("ids", np.array([1, 2]), np.array([1, 3])), "ids[1] is 2, expected 3"),
    "close": (lambda: check_close("output", ONE * 1.1, ONE, 1e-2), "output[0, 2] is 3.3, expected 3"),
    "close-nan": (lambda: check_close("output", NAN, ONE, 1e9), "output[0, 2] is nan"),
    "close-under-a-condition": (
        lambda: check_close("output, with a mask,", ONE * 1.1, ONE, 1e-2),
        "output[0, 2], with a mask, is 3.3, expected 3",
    ),
    "close-with-a-comma-inside": (
        lambda: check_close("decode(tgt, encode(src))", ONE * 1.1, ONE, 1e-2),
        "decode(tgt, encode(src))[0, 2] is 3.3, expected 3",
    ),
    "close-under-a-list": (
        lambda: check_close("the score of [3, 1]", ONE * 1.1, ONE, 1e-2),
        "the score of [3, 1][0, 2] is 3.3, expected 3",
    ),
    "close-nan-to-nan": (lambda: check_close("output", NAN, NAN, 1e9), "output[0, 2] is nan"),
    "close-infinite": (lambda: check_close("output", INFINITE, INFINITE, 1e9), "output[0, 2] is inf"),
    "close-to-zero": (lambda: check_close("output", np.full(3, 1e-9), np.zeros(3), 1e-9), "expected 0"),
    "close-broadcast": (lambda: check_close("output", ONE[:1], ONE, 1e9), "has shape (1, 3), expected (2, 3)"),
    "zero": (lambda: check_zero("gradient", np.array([0.0, 1e-300])), "gradient[1] is 1e-300, expected exactly 0"),
    "zero-names-the-worst": (lambda: check_zero("gradient", np.array([1.0, -3.0])), "gradient[1] is -3"),
    "hidden-is-seen": (
        lambda: check_hidden("weight", np.array([[1.0, 0.25], [3.0, 2.0]]), np.tri(2) > 0),
        "weight[0, 1] is 0.25, expected exactly 0; 1 of 4 entries are too large",
    ),
    "hidden-nan": (lambda: check_hidden("weight", np.array([1.0, np.nan]), np.array([1, 0]) > 0), "weight[1] is nan"),
    "zero-nan": (lambda: check_zero("gradient", np.array([np.nan]), at_most=1e9), "gradient[0] is nan"),
    "differs": (lambda: check_differs("output", ONE, ONE + 1e-9), "output is unchanged, expected a difference"),
    "differs-nan": (lambda: check_differs("output", NAN, ONE), "output[0, 2] is nan"),
    "differs-from-nan": (lambda: check_differs("output", ONE[:, :1], np.full((2, 1), np.nan)), "output is unchanged"),
    "differs-in-shape": (lambda: check_differs("output", ONE, ONE.T), "has shape (2, 3), expected (3, 2)"),
    "refusal": (lambda: check_refuses("d_model = 13", lambda: 7), "d_model = 13 was accepted, expected an exception"),
}  # fmt: skip


@pytest.mark.parametrize("action", HOLD.values(), ids=HOLD)
def test_a_check_holds_and_is_counted(action: Callable[[], object]) -> None:
    with gathering() as evidence:
        action()
    assert evidence.checks >= 1


@pytest.mark.parametrize(("action", "sentence"), FAIL.values(), ids=FAIL)
def test_a_check_fails_and_says_where(action: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ClauseFailure) as caught:
        action()
    assert sentence in caught.value.message


@pytest.mark.parametrize("compare", [check_equal, lambda *a: check_close(*a, 1e9), check_differs])
def test_shapes_are_compared_before_numbers(compare: Callable[..., None]) -> None:
    with pytest.raises(ClauseFailure, match="has shape"):
        compare("output", np.full((2, 3), np.nan), np.ones(3))


@given(FINITE)
def test_every_array_equals_itself_and_nothing_else(array: Any) -> None:
    check_equal("output", array, array.copy())
    check_close("output", array, array, 1e-12)
    other = array.copy()
    other.flat[-1] += 1.0 + abs(other.flat[-1])
    with pytest.raises(ClauseFailure):
        check_equal("output", array, other)
    check_differs("output", array, other)


@given(FINITE, st.floats(1e-9, 1e-2))
def test_closeness_ends_at_the_tolerance(array: Any, tolerance: float) -> None:
    allowed = tolerance * max(np.abs(array).max(), 1.0)
    with gathering() as evidence:
        check_close("output", array + 0.9 * allowed, array, tolerance, scale=allowed / tolerance)
    assert evidence.distance == pytest.approx(0.9, rel=1e-3)
    with pytest.raises(ClauseFailure):
        check_close("output", array + 1.1 * allowed, array, tolerance, scale=allowed / tolerance)


@given(FINITE, st.sampled_from([np.nan, np.inf, -np.inf]))
def test_one_number_that_is_none_spoils_every_comparison(array: Any, bad: float) -> None:
    spoilt = array.copy()
    spoilt.flat[0] = bad
    for action in (
        lambda: check_close("output", spoilt, spoilt, 1e9),
        lambda: check_close("output", spoilt, array, 1e9),
        lambda: check_zero("output", spoilt, at_most=1e300),
        lambda: check_finite("output", spoilt),
        lambda: check_differs("output", spoilt, array),
    ):
        with pytest.raises(ClauseFailure):
            action()


def test_the_distance_is_that_of_the_worst_comparison() -> None:
    with gathering() as evidence:
        check_close("output", np.array([1.0 + 5e-3]), np.array([1.0]), 1e-2)
        check_close("output", np.array([1.0 + 1e-3]), np.array([1.0]), 1e-2)
    assert evidence.distance == pytest.approx(0.5)


def test_a_failed_comparison_leaves_its_distance_too() -> None:
    with gathering() as evidence, pytest.raises(ClauseFailure, match="is 2, expected 1") as caught:
        check_close("output", np.array([2.0]), np.array([1.0]), 1e-2)
    assert evidence.distance == pytest.approx(100.0)
    assert caught.value.details == ("off by 1, 100 times the tolerance (float64, relative tolerance 1e-02)",)


def test_float32_results_are_compared_in_float64() -> None:
    want = np.array([1.0, 1.0 + 1e-9])
    check_close("output", want.astype(np.float32), want, 1e-6)


def test_the_message_of_a_refusal_comes_back() -> None:
    assert check_refuses("d_model = 13", refuse()) == "d_model is 13, expected a multiple of 3"


@pytest.mark.parametrize("kind", ["exit", "memory", "output", "unsupported", "request"])
def test_only_exceptions_of_the_implementation_are_refusals(kind: str) -> None:
    with pytest.raises(ImplementationFailure):
        check_refuses("d_model = 13", refuse(kind))


def test_what_is_refused_ends_there_and_nothing_else_does() -> None:
    reached = []
    with refusing():
        reached.append("before")
        refuse()()
        reached.append("after")
    assert reached == ["before"]
    with pytest.raises(ImplementationFailure), refusing():
        refuse("memory")()


def test_a_crash_is_not_a_refusal() -> None:
    def crash() -> None:
        raise WorkerLost("signal", "killed by SIGSEGV")

    with pytest.raises(WorkerLost):
        check_refuses("d_model = 13", crash)


def test_a_failure_says_under_which_setting() -> None:
    def look_at_each() -> None:
        for size in each_of("size", [2, 3]):
            check("three is too many", size < 3)

    with gathering(), pytest.raises(ClauseFailure) as caught:
        look_at_each()
    assert caught.value.details == ("with size = 3",)


@pytest.mark.parametrize(
    ("settings", "said"),
    [([(3, 7)], "with queries = 3, keys = 7"), ([{"d_k": 3}], "with d_k = 3"), ([(1, 2, 3)], "with (1, 2, 3)")],
    ids=["pair", "table", "other-number"],
)
def test_a_setting_is_shown_with_its_names(settings: list[Any], said: str) -> None:
    """Would break if a message said `with (3, 7)`, which nobody understands."""

    def look_at_each() -> None:
        for setting in each_of("queries, keys", settings):
            check("there is none", setting is None)

    with gathering(), pytest.raises(ClauseFailure) as caught:
        look_at_each()
    assert caught.value.details == (said,)


def _loops(path: Path) -> Iterator[tuple[str, str]]:
    """Yield, for each loop over settings in a file, the names in messages and those of the loop."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and ast.unparse(node.iter.func) == "each_of":
            yield ast.literal_eval(node.iter.args[0]), ast.unparse(node.target).strip("()")


SUITE = sorted(Path(suite.__path__[0]).glob("test_*.py"))
LOOPING = [path for path in SUITE if " in each_of(" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", LOOPING, ids=lambda path: path.stem)
def test_settings_of_the_suite_have_the_names_of_their_loop(path: Path) -> None:
    """Would break if a failure showed a size under another one's name, after an edit of the loop only."""
    text = path.read_text(encoding="utf-8")
    loops = list(_loops(path))
    assert len(loops) == text.count(" in each_of(")
    assert [told for told, _ in loops] == [names for _, names in loops]


def test_a_setting_ends_with_its_clause() -> None:
    with gathering():
        under("T = 5")
    with gathering(), pytest.raises(ClauseFailure) as caught:
        check("no", False)
    assert caught.value.details == ()


def test_checks_work_outside_a_clause() -> None:
    under("nothing")
    check("never said", True)
    with pytest.raises(ClauseFailure):
        check("no", False)


def test_the_reader_gets_the_whole_map_with_the_hidden_entries() -> None:
    weights, allowed = np.array([[[0.5, 0.5], [0.25, 0.75]]]), np.tri(2) > 0
    with pytest.raises(ClauseFailure) as caught:
        check_hidden("weight", weights, allowed)
    compared = caught.value.compared
    assert compared is not None
    assert compared.hidden is not None
    assert compared.got.tolist() == weights.tolist()
    assert compared.want.tolist() == [[[0.5, 0.0], [0.25, 0.75]]]
    assert compared.hidden.tolist() == [[[False, True], [False, False]]]


def test_rows_that_are_not_finite_as_a_whole_are_told():
    """Would break if the row that sees no key, the likely cause, had to be found among all numbers."""
    rows = np.zeros((2, 4, 3))
    rows[:, 0] = np.nan
    with pytest.raises(ClauseFailure) as caught:
        check_finite("output", rows)
    assert any("only row 0 is not finite" in line for line in caught.value.details)
    for other in (np.full((2, 4, 3), np.nan), np.where(np.arange(3) == 1, np.nan, rows * 0.0)):
        with pytest.raises(ClauseFailure) as caught:
            check_finite("output", np.where(np.isnan(other), np.nan, 0.0))
        assert not any("only row" in line for line in caught.value.details)
