"""The oracle of positions compared with loops over plain numbers, and with values computed by hand."""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformkit.spec.components import component
from conformkit.spec.positional_encoding import first_position, positional_encoding, rotate, sinusoids
from conformkit.spec.variants import CANONICAL

LAYOUTS = st.sampled_from(["interleaved", "halves"])


def code(position: int, width: int, layout: str) -> list[float]:
    """The features of one position, one after another."""
    found = []
    for feature in range(width):
        if layout == "interleaved":
            pair, is_sine = feature // 2, feature % 2 == 0
        else:
            sines = (width + 1) // 2
            pair, is_sine = (feature, True) if feature < sines else (feature - sines, False)
        angle = position / 10000 ** (2 * pair / width)
        found.append(math.sin(angle) if is_sine else math.cos(angle))
    return found


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 20), st.integers(1, 13), LAYOUTS)
def test_the_table_equals_a_loop_over_positions_and_features(length: int, width: int, layout: Any) -> None:
    want = [code(position, width, layout) for position in range(length)]
    found = sinusoids(length, width, CANONICAL.but(sinusoid_layout=layout))
    np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("width", "position", "want"),
    [
        (8, 0, [0, 1, 0, 1, 0, 1, 0, 1]),
        (8, 1, [0.841471, 0.540302, 0.099833, 0.995004, 0.010000, 0.999950, 0.001000, 1.000000]),
        (8, 9, [0.412118, -0.911130, 0.783327, 0.621610, 0.089879, 0.995953, 0.009000, 0.999960]),
        (4, 1, [0.841471, 0.540302, 0.010000, 0.999950]),
        (4, 2, [0.909297, -0.416147, 0.019999, 0.999800]),
        (4, 3, [0.141120, -0.989992, 0.029996, 0.999550]),
    ],
)
def test_hand_values_of_whole_rows(width: int, position: int, want: list[float]) -> None:
    np.testing.assert_allclose(sinusoids(10, width, CANONICAL)[position], want, rtol=0, atol=6e-7)


@pytest.mark.parametrize(
    ("position", "feature", "want"),
    [
        (5, 64, 0.999947),
        (1, 2, 0.821856),
        (1, 5, 0.597375),
        (100, 0, -0.506366),
        (100, 256, 0.841471),
        (100, 510, 0.010366),
    ],
)
def test_hand_values_at_width_512(position: int, feature: int, want: float) -> None:
    assert sinusoids(101, 512, CANONICAL)[position, feature] == pytest.approx(want, abs=6e-7)


def test_halves_hold_the_same_numbers_in_another_order() -> None:
    row = sinusoids(2, 8, CANONICAL.but(sinusoid_layout="halves"))[1]
    want = [0.841471, 0.099833, 0.010000, 0.001000, 0.540302, 0.995004, 0.999950, 1.000000]
    np.testing.assert_allclose(row, want, rtol=0, atol=6e-7)


FAIRSEQ = CANONICAL.but(sinusoid_layout="halves", sinusoid_frequencies="tensor2tensor", position_offset=2)


@pytest.mark.parametrize("width", [2, 3, 6, 7])
def test_the_frequencies_of_tensor2tensor_end_at_a_ten_thousandth(width: int) -> None:
    """As fairseq writes it: exp(-i · ln 10000 / (half - 1)), sines, cosines, and a 0 for an odd width."""
    half = width // 2
    angles = [2 * math.exp(-i * math.log(10000) / max(half - 1, 1)) for i in range(half)]
    want = [*map(math.sin, angles), *map(math.cos, angles), *[0.0] * (width % 2)]
    np.testing.assert_allclose(sinusoids(3, width, FAIRSEQ)[2], want, rtol=1e-12, atol=1e-12)


def test_interleaved_frequencies_of_tensor2tensor_lie_in_pairs() -> None:
    row = sinusoids(2, 5, CANONICAL.but(sinusoid_frequencies="tensor2tensor"))[1]
    np.testing.assert_allclose(row, [math.sin(1), math.cos(1), math.sin(1e-4), math.cos(1e-4), 0.0], rtol=1e-12)


@pytest.mark.parametrize(("offset", "first"), [(0, 0), (2, 2), ("pad_id + 1", 4)])
def test_positions_count_from_the_offset(offset: Any, first: int) -> None:
    variant = CANONICAL.but(position_offset=offset)
    assert first_position(variant, {"pad_id": 3}) == first
    x, rows = np.zeros((1, 3, 4)), np.arange(28.0).reshape(7, 4)
    fixed = positional_encoding({}, x, variant=variant, first=first)
    learned = positional_encoding({"positions.weight": rows}, x, variant=variant.but(positions="learned"), first=first)
    np.testing.assert_allclose(fixed[0, 0], code(first, 4, "interleaved"), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(learned[0], rows[first : first + 3])


@pytest.mark.parametrize("sizes", [{}, {"pad_id": None}], ids=["absent", "none"])
def test_without_an_id_of_padding_the_first_position_is_as_with_0(sizes: dict[str, Any]) -> None:
    """Would break if a model without one counted from the second position after it."""
    assert first_position(CANONICAL.but(position_offset="pad_id + 1"), sizes) == 1


def test_a_table_has_the_rows_before_the_first_position_too() -> None:
    variant = CANONICAL.but(positions="learned", position_offset=2)
    parameters = component("PositionalEncoding").parameters({"max_len": 9, "d_model": 4}, variant)
    assert parameters["positions.weight"].shape == (11, 4)


def test_rows_have_squared_length_half_the_width_and_products_by_distance() -> None:
    table = sinusoids(60, 16, CANONICAL)
    np.testing.assert_allclose((table**2).sum(axis=1), 8.0, rtol=1e-12)
    np.testing.assert_allclose([table[p] @ table[p + 3] for p in (0, 7, 40)], 5.543101, rtol=0, atol=6e-7)


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 5), st.integers(1, 6), LAYOUTS, st.integers(0, 2**32 - 1))
def test_codes_are_added_to_every_sequence(length: int, width: int, layout: Any, seed: int) -> None:
    random = np.random.default_rng(seed)
    x, rows = random.normal(size=(2, length, width)), random.normal(size=(9, width))
    fixed = positional_encoding({}, x, variant=CANONICAL.but(sinusoid_layout=layout))
    learned = positional_encoding({"positions.weight": rows}, x, variant=CANONICAL.but(positions="learned"))
    for b in range(2):
        for p in range(length):
            np.testing.assert_allclose(fixed[b, p], x[b, p] + code(p, width, layout), rtol=1e-12, atol=1e-12)
            np.testing.assert_array_equal(learned[b, p], x[b, p] + rows[p])


@settings(max_examples=20, deadline=None)
@given(
    st.integers(1, 6), st.integers(1, 4), st.sampled_from(["pairs", "halves"]), st.sampled_from([10000.0, 7.0]),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_a_rotation_is_a_product_of_complex_numbers(
    length: int, pairs: int, layout: Any, base: float, seed: int
) -> None:
    x = np.random.default_rng(seed).normal(size=(2, 3, length, 2 * pairs))
    found = rotate(x, CANONICAL.but(rotary_layout=layout, rotary_base=base))
    for index in np.ndindex(2, 3, length, pairs):
        *place, pair = index
        first, second = (2 * pair, 2 * pair + 1) if layout == "pairs" else (pair, pair + pairs)
        row = x[tuple(place)]
        turned = complex(row[first], row[second]) * cmath.exp(1j * place[-1] / base ** (2 * pair / (2 * pairs)))
        assert found[(*place, first)] == pytest.approx(turned.real, abs=1e-12)
        assert found[(*place, second)] == pytest.approx(turned.imag, abs=1e-12)


@pytest.mark.parametrize(
    ("layout", "want", "product"),
    [
        ("pairs", [0.540302, 0.841471, 0.999950, 0.010000], 12.540809),
        ("halves", [-0.301169, 0, 1.381773, 0], -1.279995),
    ],
)
def test_hand_values_of_rotations(layout: Any, want: list[float], product: float) -> None:
    variant = CANONICAL.but(rotary_layout=layout)
    turned = rotate(np.tile([1.0, 0.0, 1.0, 0.0], (2, 1)), variant)
    np.testing.assert_allclose(turned, [[1, 0, 1, 0], want], rtol=0, atol=6e-7)
    q, k = (rotate(np.tile(row, (10, 1)), variant) for row in ([1.0, 2.0, 3.0, 4.0], [0.5, -1.0, 2.0, 1.0]))
    np.testing.assert_allclose([q[m] @ k[n] for m, n in ((0, 2), (3, 5), (7, 9))], product, rtol=0, atol=6e-7)
