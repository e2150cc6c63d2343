"""Half precision: representable numbers, draws rounded to it, and tolerances for results."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from conformkit.conformance.assertions.checks import ClauseFailure, check_close, gathering
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.formats import HALF, narrowest, rounded
from conformkit.spec.components import COMPONENTS
from conformkit.spec.tolerances import tolerance
from conformkit.spec.variants import CANONICAL

TORCH = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
FORMATS = pytest.mark.parametrize("form", TORCH)


@FORMATS
@given(values=arrays(np.float32, (7,), elements=st.floats(width=32)))
def test_numbers_are_rounded_as_torch_rounds_them(form: str, values: np.ndarray) -> None:
    want = torch.from_numpy(values.copy()).to(TORCH[form]).to(torch.float64).numpy()
    assert np.array_equal(rounded(values, form), want, equal_nan=True)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)], ids=str)
def test_no_extent_is_lost(shape: tuple[int, ...]) -> None:
    assert rounded(np.ones(shape), "float32", "bfloat16").shape == shape


def test_ids_and_masks_stay_what_they_are() -> None:
    assert rounded(np.arange(1000), "bfloat16").tolist() == list(range(1000))
    assert rounded(np.array([True, False]), "float16").dtype == np.bool_


def test_numbers_are_rounded_to_every_narrow_format_that_is_judged() -> None:
    assert narrowest({"float64", "float32"}) == ("float32",)
    assert narrowest({"float64", "bfloat16"}) == ("float32", "bfloat16")
    assert narrowest({"float16", "bfloat16"}) == ("float32", "float16", "bfloat16")


@pytest.mark.parametrize("form", HALF)
def test_whatever_is_drawn_is_held_by_the_format(form: str) -> None:
    draw = Draw(3, "X-Y", narrowest({form}))
    sizes = {"d_model": 12, "num_heads": 3, "kv_heads": 3, "head_width": 4, "d_ff": 20, "causal": True}
    weights = draw.weights(COMPONENTS["TransformerBlock"].parameters(sizes, CANONICAL))
    for drawn in (draw.values(50), draw.uniform(50), *draw.qkv((2,)), *weights.values()):
        assert np.array_equal(rounded(drawn, form), drawn)


@pytest.mark.parametrize("form", HALF)
def test_half_precision_draws_what_the_others_do_but_for_rounding(form: str) -> None:
    wide, half = Draw(3, "X-Y"), Draw(3, "X-Y", narrowest({form}))
    for _ in range(2):
        assert np.array_equal(rounded(wide.values(20), form), half.values(20))
    assert wide.ids(1000, 5).tolist() == half.ids(1000, 5).tolist()


def test_scores_are_moderate_in_half_precision() -> None:
    wide, half = (Draw(3, "X-Y", forms).qkv((2,), scale=1.5) for forms in (("float32",), ("float32", "bfloat16")))
    assert np.allclose(half[0] * 1.5, wide[0], rtol=0.02)
    assert np.allclose(half[2], wide[2], rtol=0.02)


def test_no_result_is_compared_more_closely_than_its_format_allows() -> None:
    want, got = np.array([1.0, 2.0]), np.array([1.0, 2.0 + tolerance("bfloat16")])
    check_close("output", got, want, 1.0)
    with pytest.raises(ClauseFailure) as caught:
        check_close("output", got, want, 1e-6)
    assert (caught.value.finding.form, caught.value.finding.tolerance) == ("float64", 1e-6)
    with gathering("bfloat16", tolerance("bfloat16")) as evidence:
        check_close("output", got, want, 1e-6)
        assert evidence.distance == pytest.approx(0.5)
        with pytest.raises(ClauseFailure) as caught:
            check_close("output", got + 0.1, want, 1e-6)
    assert (caught.value.finding.form, caught.value.finding.tolerance) == ("bfloat16", tolerance("bfloat16"))


def test_errors_of_half_precision_add_up_to_a_bound() -> None:
    assert tolerance("bfloat16", 2) == 2 * tolerance("bfloat16")
    assert tolerance("bfloat16", 4) == tolerance("bfloat16", 20) == 4 * tolerance("bfloat16")
    assert tolerance("float32", 4) == 4 * tolerance("float32")
