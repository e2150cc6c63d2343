"""Clauses of spec/norms.md."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import (
    NotApplicable,
    check,
    check_close,
    check_differs,
    check_equal,
    check_finite,
    check_zero,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.neutral_weights import NormWindow, silent_attention
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array

WIDE = 10.0
"""A spread at which ε is negligible: it changes a result by 1e-7."""


def rows(window: NormWindow, draw: Draw, count: int = 5) -> Array:
    """Return rows (R, D) of mean 0 and variance 1."""
    drawn = draw.values(count, window.width)
    centered = drawn - drawn.mean(axis=-1, keepdims=True)
    return np.asarray(centered / centered.std(axis=-1, keepdims=True))


def squares(window: NormWindow, draw: Draw) -> Array:
    """Return the sum of squared deviations of each normed row: the divisor of the variance."""
    given = window(rows(window, draw), spread=1.0 if window.instance.subject.half else WIDE).given
    return np.asarray(((given - given.mean(axis=-1, keepdims=True)) ** 2).sum(axis=-1))


def wide_enough(window: NormWindow) -> NormWindow:
    if window.width < 3:
        raise NotApplicable.from_sizes("rows of two features have no shape to keep")
    return window


@clause("LN-MEAN")
def test_the_mean_of_every_row_is_0(block: Subject, draw: Draw) -> None:
    window = NormWindow(block, draw)
    seen = window(rows(window, draw), spread=2.0, offset=5.0)
    check_zero("the mean of each row", seen.given.mean(axis=-1), at_most=block.tolerance() * seen.scale)
    check_differs("a row", seen.given, np.zeros_like(seen.given), at_least=0.1)


@clause("LN-SHIFT-INV")
def test_a_shifted_row_gives_the_same(block: Subject, draw: Draw) -> None:
    window = NormWindow(block, draw)
    own = rows(window, draw)
    plain, shifted = window(own), window(own, offset=5.0)
    check_close("the norm of x + 5", shifted.given, plain.given, block.tolerance(2), scale=shifted.scale)
    check_differs("a row", plain.given, np.zeros_like(plain.given), at_least=0.1)


@clause("LN-SCALE-INV")
def test_a_multiplied_row_gives_the_same(block: Subject, draw: Draw) -> None:
    check_scale_invariance(NormWindow(block, draw), draw)


@clause("LN-VAR")
def test_the_variance_of_every_row_is_1(block: Subject, draw: Draw) -> None:
    for width, heads in ((4, 2), (12, 3)):
        window = wide_enough(NormWindow(block, draw, width=width, heads=heads))
        variance = squares(window, draw) / (window.width - (block.variant.norm_deviation == "sample"))
        under(f"d_model = {window.width}")
        check_close("the variance of each row", variance, np.ones_like(variance), 1e-4)  # ε takes 1e-7, float32 1e-5


@clause("LN-BIASED")
def test_the_divisor_of_the_variance_is_the_declared_one(block: Subject, draw: Draw) -> None:
    for width, heads in ((4, 2), (12, 3)):
        window = wide_enough(NormWindow(block, draw, width=width, heads=heads))
        under(f"d_model = {window.width}")
        divisors = window.width, window.width - 1
        declared, other = divisors[::-1] if block.variant.norm_deviation == "sample" else divisors
        total = float(squares(window, draw).mean())
        sentence = f"the squares of a row's deviations add up to {total:.6g}, as with the divisor {other}"
        check(f"{sentence}, expected {declared}", abs(total - other) > 0.1)


@clause("LN-EPS")
def test_rows_of_tiny_variance_show_eps(block: Subject, draw: Draw) -> None:
    window = wide_enough(NormWindow(block, draw))
    eps = block.variant.norm_eps
    at = float(np.sqrt(eps)) if block.variant.norm_deviation == "biased" else eps
    for times in (0.3, 1.0, 3.0):
        under(f"rows of deviation {times * at:.2g}, eps = {eps:g}")
        seen = window(rows(window, draw), spread=times * at)
        # x is as large as the deviation, so that nothing cancels in y - x
        check_close("the norm of x", seen.given, window.expected(seen), 10 * block.tolerance())


@clause("LN-CONST")
def test_constant_rows_give_beta(block: Subject, draw: Draw) -> None:
    window = NormWindow(block, draw)
    beta = draw.values(window.width) if block.variant.shifts else np.zeros(window.width)
    for offset in (0.0, 3.0):
        under(f"rows of nothing but {offset:g}")
        seen = window(np.zeros((3, window.width)), offset=offset, gamma=draw.values(window.width), beta=beta)
        check_finite("the norm of a constant row", seen.given)
        check_close("the norm of a constant row", seen.given, np.tile(beta, (3, 1)), block.tolerance(), scale=5.0)


@clause("LN-AFFINE")
def test_gamma_scales_and_beta_shifts_each_feature(block: Subject, draw: Draw) -> None:
    window = NormWindow(block, draw)
    own = rows(window, draw)
    gamma = draw.values(window.width, scale=2.0)
    beta = draw.values(window.width) if block.variant.shifts else np.zeros(window.width)
    plain, seen = window(own).given, window(own, gamma=gamma, beta=beta)
    check_close("γ ⊙ n + β", seen.given, gamma * plain + beta, block.tolerance(2), scale=10.0)
    check_differs("the norm with γ and β", seen.given, plain, at_least=0.1)


@clause("LN-INIT")
def test_norms_start_at_1_and_0(block: Subject) -> None:
    instance = block.build()
    for name, value in instance.read().items():
        if name.startswith("norm"):
            check_equal(f"{name} at construction", value, np.full(value.shape, float(name.endswith("weight"))))


@clause("LN-LARGE")
def test_rows_near_10000_stay_accurate_in_float32(block: Subject, draw: Draw) -> None:
    block.requires("float32")
    window = NormWindow(block, draw, dtype="float32")
    seen = window((rows(window, draw) + 1e4).astype(np.float32) - 1e4, offset=1e4)
    check_close("the norm of x", seen.given, window.expected(seen), 1e-2, scale=1.0)  # half a unit of 1e4 is 5e-4


@clause("RMS-NO-CENTER")
def test_a_mean_stays(block: Subject, draw: Draw) -> None:
    window = NormWindow(block, draw)
    seen = window(rows(window, draw), offset=3.0)
    lowest = float(seen.given.mean(axis=-1).min())
    check(f"rows of mean 3 come out with mean {lowest:.3g}, expected more than 0.5", lowest > 0.5)


@clause("RMS-SCALE-INV")
def test_a_multiplied_row_has_the_same_rms_norm(block: Subject, draw: Draw) -> None:
    check_scale_invariance(NormWindow(block, draw), draw)


def check_scale_invariance(window: NormWindow, draw: Draw) -> None:
    own = rows(window, draw)
    half = window.instance.subject.half
    spread = 1.0 if half else WIDE  # ε takes less than half precision rounds off either way
    plain, large = window(own, spread=spread), window(own, spread=7 * spread)
    scale = large.scale if half else None
    check_close("the norm of 7x", large.given, plain.given, 1e-4, scale=scale)  # ε takes 1e-7, float32 1e-5
    check_differs("a row", plain.given, np.zeros_like(plain.given), at_least=0.1)


@clause("RMS-FORMULA")
def test_the_norm_is_that_of_the_formula(block: Subject, draw: Draw) -> None:
    window = NormWindow(block, draw)
    for spread in (1.0, 3 * float(np.sqrt(block.variant.norm_eps)), 0.3 * float(np.sqrt(block.variant.norm_eps))):
        under(f"rows of size {spread:.2g}, eps = {block.variant.norm_eps:g}")
        seen = window(draw.values(5, window.width), spread=spread, gamma=draw.values(window.width, scale=2.0))
        check_close("the norm of x", seen.given, window.expected(seen), 10 * block.tolerance())


def apart(block: Subject, draw: Draw) -> Instance:
    """Return a block whose positions do not attend to each other."""
    instance = block.build(d_model=12, num_heads=3, d_ff=20).randomize(draw)
    return instance.write(silent_attention(instance))


@clause("LN-LAST-DIM")
def test_a_changed_position_changes_its_own_output_only(block: Subject, draw: Draw) -> None:
    instance = apart(block, draw)
    x = draw.values(2, block.tokens(5), instance.sizes["d_model"])
    if x.shape[1] < 2:
        raise NotApplicable.from_sizes("the declared limits allow only sequences of one position")
    before = instance(x)
    for position in (0, x.shape[1] - 1):
        changed = x.copy()
        changed[:, position] = draw.values(*x[:, 0].shape, scale=4.0)
        after = instance(changed)
        check_differs("the output at the changed position", after[:, position], before[:, position])
        after[:, position] = before[:, position]
        check_close(f"output elsewhere, x changed at {position},", after, before, block.tolerance(2))


@clause("LN-BATCH-INDEP")
def test_a_sequence_gives_the_same_alone(block: Subject, draw: Draw) -> None:
    instance = apart(block, draw)
    x = draw.values(4, block.tokens(3), instance.sizes["d_model"])
    together = instance(x)
    check_differs("the output for another sequence", together[0], together[1])
    check_close("output of sequence 2 alone", instance(x[2:3]), together[2:3], block.tolerance(2))
    x[1] = 5.0 * x[1] + 3.0
    check_close("output of sequence 0 batched with another", instance(x)[0], together[0], block.tolerance(2))


@clause("LN-TRAIN-EVAL-SAME")
def test_training_mode_changes_nothing(block: Subject, draw: Draw) -> None:
    instance = block.build(d_model=12, num_heads=3, d_ff=20, dropout=0.0).scatter(draw)
    x = draw.values(3, block.tokens(5), instance.sizes["d_model"])
    before = instance(x)
    trained = instance(x, mode="train", seed=1)
    if np.abs(trained - instance(x, mode="train", seed=2)).max() > block.tolerance(4):
        raise NotApplicable("it drops something although dropout is 0; see BLOCK-DROPOUT-TRAIN")
    check_close("output in training mode", trained, before, block.tolerance(2))
    instance(3.0 * x + 1.0, mode="train")
    check_close("output after training calls", instance(x), before, block.tolerance(2))
