"""Clauses of spec/positional_encoding.md."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import (
    NotApplicable,
    check,
    check_close,
    check_differs,
    check_dtype,
    check_equal,
    check_finite,
    check_refuses,
    check_repeated,
    check_shape,
    quoted,
    refusing,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.counting import check_count
from conformkit.conformance.evidence.definition_at_sizes import check_definition_at_sizes
from conformkit.conformance.evidence.stored_values import check_goldens
from conformkit.conformance.probing.refusals import is_refusal
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.fixtures import Golden
from conformkit.spec.arrays import Array
from conformkit.spec.positional_encoding import first_position, input_scale, sinusoids
from conformkit.spec.tolerances import tolerance

Goldens = Callable[[str], list[Golden]]

TABLE = tolerance("float32")
"""Right code often makes its table in float32, whose angles are off by 6e-8 of a position: keep positions below 40."""


def build(positions: Subject, width: int, max_len: int, draw: Draw | None = None, **options: Any) -> Instance:
    """Construct; with a draw, fill a learned table, which may have started at zero."""
    instance = positions.build(d_model=width, max_len=max_len, **options)
    under(f"d_model = {instance.sizes['d_model']}, max_len = {instance.sizes['max_len']}")
    return instance.scatter(draw) if draw is not None and positions.variant.positions == "learned" else instance


def length(instance: Instance, wanted: int) -> int:
    return min(instance.subject.tokens(wanted), int(instance.sizes["max_len"]))


def inputs(instance: Instance, draw: Draw, batch: int, tokens: int, scale: float = 1.0) -> Array:
    return draw.values(batch, length(instance, tokens), instance.sizes["d_model"], scale=scale)


def scaled(instance: Instance, x: Array) -> Array:
    """Return the input as it is added to the codes: times √d_model where that is declared."""
    return input_scale(instance.subject.variant, instance.sizes["d_model"]) * x


def codes(instance: Instance, tokens: int, batch: int = 1) -> Array:
    """Return what is added to zeros, (B, T, D)."""
    return instance(np.zeros((batch, length(instance, tokens), instance.sizes["d_model"])))


def long_table(positions: Subject, tokens: int, *, width: int = 8, least: int) -> Array:
    """Return the codes of so many positions (T, D), or of fewer where its table is shorter than it is asked for.

    A constructor that takes no `max_len` may refuse what is longer than its own table: that is a limit.
    """
    while True:
        try:
            table: Array = codes(build(positions, width, tokens + 1), tokens)[0]
        except ImplementationFailure as failure:
            if "max_len" in positions.bound.construct.names() or not is_refusal(failure):
                raise
            if tokens // 2 < least:
                raise NotApplicable.from_sizes(f"it refuses {tokens} positions") from None
            tokens //= 2
        else:
            return table


def numbers(positions: Subject, count: int) -> Array:
    """Return the numbers of these many positions."""
    return first_position(positions.variant, {}) + np.arange(count)


def formula(positions: Subject, table: Array) -> Array:
    """Return the definition of a table of codes."""
    rows, width = table.shape
    return sinusoids(rows, width, positions.variant, first_position(positions.variant, {}))


def pairs(positions: Subject, *, width: int = 8, tokens: int = 9) -> tuple[Array, Array]:
    """Return the sines and the cosines of the table where the layout has them, (T, D/2) each."""
    table = long_table(positions, tokens, width=width, least=tokens)
    if table.shape[1] % 2 or table.shape[1] < 4 or table.shape[0] < 4:
        raise NotApplicable.from_sizes(
            f"a table of {table.shape[0]} positions and {table.shape[1]} features shows too little"
        )
    if positions.variant.sinusoid_layout == "interleaved":
        return table[:, 0::2], table[:, 1::2]
    return table[:, : table.shape[1] // 2], table[:, table.shape[1] // 2 :]


@clause("PE-SHAPE")
def test_any_batch_and_any_shorter_length_keep_their_shape(positions: Subject, draw: Draw) -> None:
    for width in (8, 12):
        instance = build(positions, width, 11, draw)
        for batch, tokens in ((1, 1), (3, 2), (2, 7), (1, 10), (8, 8)):
            x = inputs(instance, draw, batch, tokens)
            check_shape("output", y := instance(x), x.shape)
            check_finite("output", y)


@clause("PE-ADD")
def test_the_same_is_added_to_every_input(positions: Subject, draw: Draw) -> None:
    instance = build(positions, 8, 11, draw)
    x, other = inputs(instance, draw, 2, 7), inputs(instance, draw, 2, 7, scale=5.0)
    added = codes(instance, 7, batch=2)
    check_close(
        "f(x) - x, compared with f(0),", instance(x) - scaled(instance, x), added, positions.tolerance(), scale=10.0
    )
    check_close(
        "f(x) - x for a larger x", instance(other) - scaled(instance, other), added, positions.tolerance(), scale=30.0
    )
    x[:, :3] = 0.0
    check_close(
        "f(x) - x where x begins with zeros",
        instance(x) - scaled(instance, x),
        added,
        positions.tolerance(),
        scale=10.0,
    )


@clause("PE-NO-SCALE")
def test_twice_the_input_adds_the_input_once_more(positions: Subject, draw: Draw) -> None:
    instance = build(positions, 8, 11, draw)
    x = inputs(instance, draw, 2, 7, scale=3.0)
    gained = instance(2 * x) - instance(x)
    want = input_scale(positions.variant, instance.sizes["d_model"])
    times = float((gained * x).sum() / (x**2).sum())
    close = positions.no_finer(1e-3)
    multiple = bool((np.abs(gained - times * x) <= close * np.abs(x).max()).all())  # what is none is PE-ADD's affair
    right = abs(times - want) <= 2 * want * positions.tolerance()
    check(f"f(2x) - f(x) is {times:.6g} times x, expected {want:.6g}", right or not multiple)


@clause("PE-BATCH-SAME")
def test_all_sequences_get_the_same_codes(positions: Subject, draw: Draw) -> None:
    instance = build(positions.as_asked, 8, 11, draw)
    for tokens, batch in ((3, 3), (8, 8), (7, 3)):
        table = codes(instance, tokens, batch=batch)
        for sequence in range(1, batch):
            check_equal(
                f"the codes of sequence {sequence}, compared with those of sequence 0,", table[sequence], table[0]
            )
    if table.shape[1] > 1:
        check_differs(
            "the code of position 1, compared with that of position 0,", table[0, 1], table[0, 0], at_least=1e-3
        )


@clause("PE-PREFIX")
def test_a_shorter_sequence_gets_the_first_codes(positions: Subject, draw: Draw) -> None:
    instance = build(positions, 8, 11, draw)
    whole = codes(instance, 10)
    for tokens in (3, 1, 9):
        part = codes(instance, tokens)
        under(f"{part.shape[1]} positions of {instance.sizes['max_len']}")
        check_close("codes", part, whole[:, : part.shape[1]], TABLE)


@clause("PE-MAXLEN")
def test_a_full_table_can_be_used(positions: Subject, draw: Draw) -> None:
    for max_len in (6, 1, 11):
        instance = build(positions, 8, max_len, draw)
        full = instance.sizes["max_len"]
        if positions.as_asked.tokens(full) != full:
            raise NotApplicable.from_sizes("the declared limits leave no sequence of max_len positions")
        x = inputs(instance, draw, 2, full)
        check_shape("output", y := instance(x), x.shape)
        check_finite("output", y)


@clause("PE-GRAD-IDENTITY")
def test_the_cotangent_comes_back_as_it_was(positions: Subject, draw: Draw) -> None:
    instance = build(positions, 8, 11, draw)
    x = inputs(instance, draw, 2, 7)
    cotangent = draw.values(*x.shape)
    gradient = instance.vjp(x, cotangent=cotangent).inputs["x"]
    check("x receives no gradient", gradient is not None)
    if positions.variant.positions_scale:
        check_close("the gradient of x", np.asarray(gradient), scaled(instance, cotangent), positions.tolerance())
    else:
        check_equal("the gradient of x", np.asarray(gradient), cotangent)


@clause("PE-NONCONTIG")
def test_views_with_gaps_give_the_same_result(positions: Subject, draw: Draw) -> None:
    instance = build(positions, 8, 11, draw)
    x = inputs(instance, draw, 2, 7)
    check_close("output for a strided input", instance(x, strided=True), instance(x), positions.tolerance())


@clause("PE-DTYPE")
def test_the_number_format_is_kept(positions: Subject, draw: Draw) -> None:
    if not positions.link.is_torch:
        raise NotApplicable("NumPy widens where formats differ, and no later layer refuses")
    formats = {positions.bound.dtype, *(["float32"] if positions.offers("float32") else [])}
    for dtype in sorted(formats):
        instance = build(positions, 8, 11, draw, dtype=dtype)
        check_dtype(f"output for {dtype}", instance.call(inputs(instance, draw, 2, 7)).dtype, dtype)


@clause("PE-DROPOUT-EVAL")
def test_evaluation_does_not_depend_on_the_random_state(positions: Subject, draw: Draw) -> None:
    instance = build(positions, 8, 11, draw)
    x = inputs(instance, draw, 3, 10, scale=3.0)
    y = instance(x, seed=1)
    for seed in (2, 3):
        check_repeated("output in another call", instance(x, seed=seed), y)


@clause("PE-NO-MUTATE")
def test_the_argument_is_unchanged(positions: Subject, draw: Draw) -> None:
    instance = build(positions, 8, 11, draw)
    x = inputs(instance, draw, 2, 7)
    for name, after in instance.call(x, echo=True).arguments.items():
        if name == "x":
            check_equal("x after the call", positions.bound.from_theirs(after), x)


@clause("PE-DEVICE-STATE")
def test_copies_and_half_precision_give_the_same_codes(positions: Subject, draw: Draw) -> None:
    instance = build(positions, 8, 11, draw)
    table = codes(instance, 7)
    check_equal("codes of a deep copy", codes(instance.copy(), 7), table)
    restored = build(positions, 8, 11)
    restored.write_raw(instance.read_raw())
    check_equal("codes of a new object with the same state", codes(restored, 7), table)
    formats_vary = positions.bound.dtype == "float64"  # else it is written for float32 alone
    if positions.variant.positions == "sinusoidal" and formats_vary:
        try:
            outcome = build(positions, 8, 11, dtype="float16").call(np.zeros_like(table))
        except ImplementationFailure as refusal:
            raise NotApplicable.from_formats(f"half precision is refused: {refusal.message}") from None
        check_dtype("output in half precision", outcome.dtype, "float16")
        check_close("codes in half precision", outcome.out, table, 5e-3)  # the format's own precision is 5e-4


@clause("PE-OVERLONG")
def test_more_positions_than_rows_raise_or_get_their_own_codes(positions: Subject) -> None:
    for instance, tokens in overlong(positions, 4, 2):
        width, rows = instance.sizes["d_model"], instance.sizes["max_len"]
        label, x = f"a sequence of {tokens} positions with max_len = {rows}", np.ones((2, tokens, width))
        for before in ((), (x[:, :rows],)):  # a table that grows keeps what it has grown to
            used, got = build(positions.as_asked, width, rows), None
            for shorter in before:
                used(shorter)
            with refusing():
                got = used(x)
            if got is not None:
                want = build(positions.as_asked, width, tokens)(x)
                check_close(f"the output for {label}, which was accepted,", got, want, TABLE)


@clause("PE-OVERLONG-REFUSED")
def test_more_positions_than_rows_raise(positions: Subject) -> None:
    check_overlong(positions, 4, 2)


def check_overlong(positions: Subject, *lengths: int) -> None:
    for instance, tokens in overlong(positions, *lengths):
        x = np.ones((2, tokens, instance.sizes["d_model"]))
        label = f"a sequence of {tokens} positions with max_len = {instance.sizes['max_len']}"
        check_refuses(label, partial(instance, x))


def overlong(positions: Subject, *lengths: int) -> Iterator[tuple[Instance, int]]:
    """Yield components of these numbers of positions, each with lengths that are too long for it."""
    if "max_len" not in positions.bound.construct.names():
        raise NotApplicable("its constructor takes no max_len: there is no table to run out of", lacks="max-len")
    for max_len in lengths:
        rows = build(positions, 8, max_len).sizes["max_len"]
        for tokens in (rows + 1, 2 * rows, 2 * rows + 3):
            yield build(positions, 8, max_len), tokens


@clause("PE-OVERLONG-ONE")
def test_more_positions_than_one_row_raise(positions: Subject) -> None:
    check_overlong(positions, 1)


@clause("PE-INTERLEAVED")
def test_every_pair_begins_on_the_unit_circle(positions: Subject) -> None:
    # with an odd number of pairs, the wrong layout has 1 everywhere, too
    sines, cosines = pairs(positions.as_asked)
    first, second, *_ = sines**2 + cosines**2
    listing = ", ".join(f"{length:.5g}" for length in second)  # at position 0 many mistakes look alike
    label = f"sin² + cos² of the pairs at position 0, where those at position 1 are {listing},"
    check_close(label, first, np.ones_like(first), 2 * TABLE)


@clause("PE-POS-ZERO")
def test_the_first_row_alternates_between_0_and_1(positions: Subject) -> None:
    instance = build(positions, 8, 11)
    first = sinusoids(1, instance.sizes["d_model"], positions.variant)
    for tokens in (7, 1):
        table = codes(instance, tokens, batch=3)
        check_close("the codes of position 0", table[:, 0], np.repeat(first, 3, axis=0), 1e-7)  # 0 and 1 in any format


@clause("PE-EVEN-SIN")
def test_the_first_feature_is_the_sine_of_the_position(positions: Subject) -> None:
    table = codes(build(positions, 8, 30), 29)[0]
    check_close("feature 0", table[:, 0], np.sin(numbers(positions, len(table))), TABLE)


@clause("PE-ODD-COS")
def test_the_first_cosine_has_the_angle_of_the_first_sine(positions: Subject) -> None:
    _, cosines = pairs(positions, tokens=29)
    check_close("the first cosine", cosines[:, 0], np.cos(numbers(positions, len(cosines))), TABLE)


@clause("PE-FREQ-ORDER")
def test_each_pair_takes_smaller_steps_than_the_one_before(positions: Subject) -> None:
    sines, cosines = pairs(positions)
    steps = np.hypot(np.diff(sines, axis=0), np.diff(cosines, axis=0)).mean(axis=0)
    listed = ", ".join(f"{step:.3g}" for step in steps[:8])
    falling = bool((np.diff(steps) < 0).all())
    check(f"the pairs move by {listed} from a position to the next, expected ever smaller steps", falling)


@clause("PE-EXPONENT")
def test_every_code_is_that_of_the_formula(positions: Subject) -> None:
    for width in (8, 12, 2):
        instance = build(positions, width, 36)
        table = codes(instance, 35)[0]
        check_close("codes", table, formula(positions, table), TABLE)


@clause("PE-GOLDEN-D8")
def test_width_8_gives_the_stored_codes(positions: Subject, goldens: Goldens) -> None:
    check_goldens(positions, goldens("PE-GOLDEN-D8"), tolerance=TABLE)


@clause("PE-GOLDEN-D4")
def test_width_4_gives_the_stored_codes(positions: Subject, goldens: Goldens) -> None:
    check_goldens(positions, goldens("PE-GOLDEN-D4"), tolerance=TABLE)


@clause("PE-GOLDEN-D512")
def test_width_512_gives_the_stored_codes(positions: Subject, goldens: Goldens) -> None:
    for golden in goldens("PE-GOLDEN-D512"):
        instance = build(positions, golden.sizes["d_model"], golden.sizes["max_len"])
        rows, features = golden.inputs["positions"], golden.inputs["features"]
        table = codes(instance, golden.sizes["max_len"])[0]
        if table.shape[1] != golden.sizes["d_model"] or len(table) <= rows.max():
            raise NotApplicable.from_sizes("the declared limits exclude this width or length")
        # float32 angles of 100 are good to 6e-6
        check_close(golden.title, table[rows, features], golden.expected, 1e-5)


@clause("PE-NORM")
def test_the_squares_of_a_row_add_up_to_half_the_width(positions: Subject) -> None:
    for width in (8, 14):
        sines, cosines = pairs(positions, width=width, tokens=20)
        squares = (sines**2 + cosines**2).sum(axis=1)
        check_close("the squared length of each row", squares, np.full(len(squares), float(sines.shape[1])), 2 * TABLE)


@clause("PE-SHIFT-DOT")
def test_dot_products_are_constant_along_diagonals(positions: Subject) -> None:
    sines, cosines = pairs(positions, width=16, tokens=20)
    products = sines @ sines.T + cosines @ cosines.T
    for distance in range(1, len(products)):
        along = np.diagonal(products, distance)
        check_close(
            f"PE[p] · PE[p + {distance}]", along, np.full_like(along, along[0]), TABLE, scale=float(sines.shape[1])
        )
    check("PE[0] · PE[0] is not the largest product", bool((products[0, 0] > products[0, 1:]).all()))


@clause("PE-ROTATION")
def test_one_rotation_a_pair_takes_every_code_k_positions_on(positions: Subject) -> None:
    sines, cosines = pairs(positions, tokens=20)
    for distance in (1, 3):
        turn = (cosines[0] + 1j * sines[0]).conj() * (cosines[distance] + 1j * sines[distance])
        check_differs("the direction of every pair", turn.imag, np.zeros_like(turn.imag), at_least=1e-2)
        turned = turn * (cosines[:-distance] + 1j * sines[:-distance])
        check_close(f"sines, turned {distance} positions on,", turned.imag, sines[distance:], 4 * TABLE)
        check_close(f"cosines, turned {distance} positions on,", turned.real, cosines[distance:], 4 * TABLE)


@clause("PE-UNIQUE")
def test_rows_of_a_long_table_differ(positions: Subject) -> None:
    table = long_table(positions, 2100, least=60)
    neighbors = np.linalg.norm(np.diff(table, axis=0), axis=1)
    if neighbors.size:
        at, least = int(neighbors.argmin()), float(neighbors.min())
        check(f"the codes of positions {at} and {at + 1} differ by {least:.2g}, expected more than 1e-4", least > 1e-4)
    start = table[:60]
    distances = np.linalg.norm(start[:, None] - start[None], axis=-1) + 9.0 * np.eye(len(start))
    p, q = divmod(int(distances.argmin()), len(start))
    least = float(distances.min())
    check(f"the codes of positions {p} and {q} differ by {least:.2g}, expected more than 1e-4", least > 1e-4)


@clause("PE-PRECISION")
def test_codes_around_position_5000_are_accurate(positions: Subject) -> None:
    sines, cosines = pairs(positions, tokens=5001)
    last = numbers(positions, len(sines))[-50:]
    # float32 angles of 5000 are good to 3e-4
    check_close("the first sine", sines[-50:, 0], np.sin(last), 1e-3, scale=1.0)
    check_close("the first cosine", cosines[-50:, 0], np.cos(last), 1e-3, scale=1.0)


@clause("PE-NOT-TRAINABLE")
def test_there_is_nothing_to_train(positions: Subject) -> None:
    names = [p["name"] for p in build(positions, 8, 11).trainable]
    check(f"{quoted(names)} can be trained, expected no trainable parameters", not names)


@clause("PE-ODD-D")
def test_an_odd_width_has_one_more_sine_or_is_refused(positions: Subject) -> None:
    sizes = positions.sizes(d_model=7, max_len=11)
    if sizes["d_model"] % 2 == 0 and "d_model" in positions.bound.found:  # the refusal is what this is about
        sizes = sizes | {"d_model": sizes["d_model"] + 1}
    elif sizes["d_model"] % 2 == 0:
        raise NotApplicable.from_sizes("odd widths are excluded by the declared limits")
    under(f"d_model = {sizes['d_model']}, max_len = {sizes['max_len']}")
    try:
        table = codes(positions.construct(sizes), 6)[0]
    except ImplementationFailure as refusal:
        if refusal.kind != "exception":
            raise
        named = re.search(rf"\b(even|odd|d_model|{sizes['d_model']})\b", refusal.message)
        clear = refusal.type == "AssertionError" or named is not None
        check(f"it raised {refusal.type}: {refusal.message}, which says nothing of the odd width", clear)
        return
    check_close("codes", table, formula(positions, table), TABLE)


@clause("LPE-TRAINABLE")
def test_the_table_is_trainable(positions: Subject, draw: Draw) -> None:
    for width, max_len in ((8, 11), (12, 5)):
        instance = build(positions, width, max_len)
        check_count(instance)
        if positions.offers("gradients"):
            x = inputs(instance, draw, 2, 4)
            for name, gradient in instance.vjp(x, cotangent=draw.values(*x.shape)).parameters.items():
                check(f"{name} receives no gradient", gradient is not None and bool(np.any(gradient)))
    positions.bound.require_weights()


@clause("LPE-ROWS")
def test_position_t_gets_row_t(positions: Subject, draw: Draw) -> None:
    instance = build(positions, 8, 11).randomize(draw)
    rows = instance.weights["positions.weight"][first_position(positions.variant, instance.sizes) :]
    for tokens in (7, 1, 11):
        table = codes(instance, tokens, batch=2)
        check_close("codes", table, np.broadcast_to(rows[: table.shape[1]], table.shape), TABLE)
    if positions.offers("gradients"):
        x = inputs(instance, draw, 1, 4)
        gradients = instance.vjp(x, cotangent=draw.uniform(*x.shape, low=1.0, high=2.0)).parameters.values()
        reached, want = sum(int(np.count_nonzero(g)) for g in gradients if g is not None), x[0].size
        check(f"{reached} numbers of the table receive a gradient, expected {want}: {len(x[0])} rows", reached == want)


@clause("LPE-ADD")
def test_twice_the_table_adds_twice_as_much(positions: Subject, draw: Draw) -> None:
    instance = build(positions, 8, 11).randomize(draw)
    x = inputs(instance, draw, 2, 7)
    once = instance(x) - scaled(instance, x)
    instance.write({"positions.weight": 2 * instance.weights["positions.weight"]})
    check_close("f(x) - x with twice the table", instance(x) - scaled(instance, x), 2 * once, TABLE, scale=10.0)
    check_differs("f(x)", instance(x), x)


@clause("LPE-OVERLONG")
def test_more_positions_than_learned_rows_raise(positions: Subject) -> None:
    check_overlong(positions, 4, 2)


@clause("PE-SIZES")
def test_the_encoding_equals_the_definition_at_every_size(positions: Subject, draw: Draw) -> None:
    check_definition_at_sizes(positions, draw, after="PE-ADD")
