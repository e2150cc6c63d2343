"""Clauses of spec/schedules.md."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import Compared, check, each_of, supposing, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case, Domain
from conformkit.conformance.assertions.values import close, number
from conformkit.conformance.evidence.at_sizes import check_at_sizes
from conformkit.conformance.evidence.schedule_slips import of_cosine, of_inverse_root
from conformkit.conformance.subject.tool import Tool
from conformkit.conformance.suite.registry import clause
from conformkit.fixtures import facts
from conformkit.spec.schedules import cosine_schedule as cosine_definition
from conformkit.spec.schedules import inverse_sqrt_schedule as inverse_definition

SHIFTS = (0, -1, 1)
"""Steps are counted from 1, from 0, or one behind: one step more or less is no difference."""
SETTINGS = (
    {"peak": 1e-3, "floor": 1e-4, "warmup": 40, "total": 240},
    {"peak": 0.5, "floor": 0.0, "warmup": 50, "total": 150},
)


@clause("SCHED-STEP0")
def test_the_first_steps_have_a_rate(cosine_schedule: Tool) -> None:
    for setting in each_of("setting", SETTINGS):
        for step in (0, 1):
            rate = _cosine(cosine_schedule, step, setting)
            label = f"the rate of step {step} is {rate:.6g}, the peak is {setting['peak']:g}"
            check(label, 0.0 <= rate <= setting["peak"] * (1 + 1e-6))


@clause("SCHED-WARMUP")
def test_the_rate_rises_in_a_straight_line_and_reaches_the_peak(cosine_schedule: Tool) -> None:
    for setting in each_of("setting", [*SETTINGS, _stored()[0]]):
        peak, warmup = setting["peak"], setting["warmup"]
        rise = peak / warmup
        quarters = [warmup * part // 4 for part in (1, 2, 3)]
        for one, other in itertools.pairwise(quarters):
            first, grown = (_cosine(cosine_schedule, step, setting) for step in (one, other))
            label = f"the rise from step {one}, whose rate is {first:.6g}, to {other}"
            close(label, grown - first, rise * (other - one), allowed=0.05)
        rate = _cosine(cosine_schedule, warmup, setting)
        label = f"the rate of step {warmup}, where the warm-up ends,"
        _compare(warmup, setting, rate, 1.01 * rise, label=label)
        highest = max(_cosine(cosine_schedule, step, setting) for step in range(warmup - 1, warmup + 2))
        label = f"around the end of the warm-up the rate is {highest:.6g}, the peak {peak:g}"
        check(label, highest <= peak * (1 + 1e-6))


@clause("SCHED-NO-WARMUP")
def test_a_schedule_without_a_warm_up_begins_at_the_peak(cosine_schedule: Tool) -> None:
    setting: dict[str, Any] = {"peak": 0.5, "floor": 0.1, "warmup": 0, "total": 200}
    for step in each_of("step", [0, 1, 60, 200]):
        _compare(step, setting, _cosine(cosine_schedule, step, setting), 0.005)


@clause("SCHED-COSINE")
def test_the_rate_falls_along_half_a_cosine(cosine_schedule: Tool) -> None:
    stored, at = _stored()
    for setting, steps in each_of(
        "setting, steps", [(SETTINGS[0], (60, 90, 140, 200, 230)), (SETTINGS[1], (60, 100, 140)), (stored, at)]
    ):
        slope = math.pi / 2 * (setting["peak"] - setting["floor"]) / (setting["total"] - setting["warmup"])
        for step in [s for s in steps if s >= setting["warmup"]]:
            _compare(step, setting, _cosine(cosine_schedule, step, setting), 1.01 * slope)


@clause("SCHED-FLOOR")
def test_the_rate_stays_at_the_floor_after_the_last_step(cosine_schedule: Tool) -> None:
    for setting in each_of("setting", SETTINGS):
        total = setting["total"]
        for step in (total, total + 1, total + 60, 2 * total, 10 * total):
            label = f"the rate of step {step}, of {total}"
            rate = _cosine(cosine_schedule, step, setting)
            close(label, rate, setting["floor"], allowed=1e-3, scale=setting["peak"])


@clause("SCHED-CONTINUOUS")
def test_the_rate_has_no_jump(cosine_schedule: Tool) -> None:
    for setting in each_of("setting", SETTINGS):
        peak, floor, warmup, total = (setting[name] for name in ("peak", "floor", "warmup", "total"))
        steepest = max(peak / warmup, math.pi / 2 * (peak - floor) / (total - warmup))
        rates = [_cosine(cosine_schedule, step, setting) for step in range(total + 5)]
        for step, (one, other) in enumerate(itertools.pairwise(rates)):
            jump = f"from step {step} to {step + 1} the rate goes from {one:.6g} to {other:.6g}"
            check(jump, abs(other - one) <= 1.1 * steepest and other >= 0.0)


@clause("SCHED-NOAM-STEP0")
def test_step_0_has_a_rate(inverse_sqrt_schedule: Tool) -> None:
    for width, warmup in each_of("width, warmup", [(64, 100), (512, 4000)]):
        _inverse(inverse_sqrt_schedule, 0, width, warmup)


@clause("SCHED-NOAM-PEAK")
def test_the_rate_is_greatest_at_the_end_of_the_warm_up(inverse_sqrt_schedule: Tool) -> None:
    for width, warmup in each_of("width, warmup", [(64, 100), (512, 4000)]):
        steps = [1, warmup // 4, warmup // 2, warmup, 2 * warmup, 8 * warmup]
        rates = [_inverse(inverse_sqrt_schedule, step, width, warmup) for step in steps]
        for n, (one, other) in enumerate(itertools.pairwise(rates)):
            rises = steps[n + 1] <= warmup
            label = f"the rate goes from {one:.4g} at step {steps[n]} to {other:.4g} at step {steps[n + 1]}"
            check(f"{label}, the warm-up ends at {warmup}", (other > one) == rises)


@clause("SCHED-NOAM")
def test_the_rate_is_the_inverse_root_of_width_and_step(inverse_sqrt_schedule: Tool) -> None:
    first = _first_step(inverse_sqrt_schedule)
    drawn = [(64, 100, 7), (128, 50, 50), (512, 4000, 90000), (1024, 1, 10**7)]
    for width, warmup, step in each_of("width, warmup, step", drawn):
        rate = _inverse(inverse_sqrt_schedule, step, width, warmup)
        supposing(*of_inverse_root(step, width, warmup))
        close(f"the rate of step {step}", rate, inverse_definition(step - first, width, warmup))
    for stored in facts("SCHED-NOAM"):
        under(f"golden {stored.number}, {stored.title}")
        for step, want in zip(stored.inputs["steps"], stored.value["rates"], strict=True):
            rate = _inverse(inverse_sqrt_schedule, step + first, stored.inputs["D"], stored.inputs["warm-up"])
            close(f"the rate of step {step + first}", rate, want)


@clause("SCHED-SIZES")
def test_the_rate_is_that_of_the_definition_at_every_step(cosine_schedule: Tool, draw: Draw) -> None:
    def check_sizes(sizes: Case) -> None:
        step, warmup = sizes["step"], sizes.get("warmup", _twice(sizes["step"]))
        total = warmup + 2 * step  # unless it is in the warm-up, the step is on the slope
        setting: dict[str, Any] = {"peak": 0.5, "floor": 0.05, "warmup": warmup, "total": total}
        rise, slope = 0.5 / warmup, math.pi / 2 * 0.45 / (total - warmup)
        next_step = slope if step > warmup else rise if step < warmup - 1 else max(rise, slope)
        want, rate = cosine_definition(step, **setting), _cosine(cosine_schedule, step, setting)
        check(
            f"the rate of step {step} is {rate:.6g}, expected {want:.6g}", abs(rate - want) <= 1.01 * next_step + 1e-4
        )

    for domain in (draw.domain, _in_a_warm_up(draw.domain)):
        check_at_sizes(draw, check_sizes, _nothing, dict, after="SCHED-COSINE", domain=domain)


@clause("SCHED-NOAM-SIZES")
def test_the_inverse_root_is_that_of_the_definition_at_every_step(inverse_sqrt_schedule: Tool, draw: Draw) -> None:
    def check_sizes(sizes: Case) -> None:
        step, width, warmup = sizes["step"], sizes["d_model"], sizes.get("warmup", _twice(sizes["step"]))
        rate = _inverse(inverse_sqrt_schedule, step, width, warmup)
        near = [inverse_definition(max(step - shift, 1), width, warmup) for shift in SHIFTS]
        close(f"the rate of step {step}", rate, min(near, key=lambda want: abs(want - rate)))

    for domain in (draw.domain, _in_a_warm_up(draw.domain)):
        check_at_sizes(draw, check_sizes, _nothing, dict, after="SCHED-NOAM", domain=domain)


def _compare(step: int, setting: Mapping[str, Any], rate: float, allowed: float, label: str = "") -> None:
    """Compare a rate with that of the definition; which slip gives it is seen far more closely."""
    want = cosine_definition(step, **setting)
    supposing(*of_cosine(step, **setting))
    both = Compared(np.asarray(rate), np.asarray(want), 1e-5 * float(setting["peak"]))
    said = f"{label or f'the rate of step {step}'} is {rate:.6g}, expected {want:.6g}"
    check(said, abs(rate - want) <= allowed, compared=both)


def _first_step(inverse_sqrt_schedule: Tool) -> int:
    """Return what it takes off a step, 0 unless it counts in another way: the shift that fits at steps 7 and 23."""
    for shift in SHIFTS:
        rates = {step: _inverse(inverse_sqrt_schedule, step, 64, 100) for step in (7, 23)}
        if all(math.isclose(rate, inverse_definition(step - shift, 64, 100), rel_tol=1e-3)
               for step, rate in rates.items()):  # fmt: skip
            return shift
    return 0


def _in_a_warm_up(domain: Domain) -> dict[str, tuple[int, int]]:
    """Return the same sizes with steps in the middle of a warm-up that is twice as long."""
    found = {name: ends for name, ends in domain.items() if name != "warmup"}
    return {**found, "step": (1, domain["warmup"][1] // 2)}


def _twice(step: int) -> int:
    """Return the length of a warm-up in whose middle a step is."""
    return 2 * step


def _nothing(_sizes: Case) -> float:
    """A rate costs the same at every step."""
    return 0.0


def _stored() -> tuple[dict[str, Any], tuple[int, ...]]:
    """Return the stored setting, and steps for which its rates are stored."""
    given = facts("SCHED-COSINE")[0].inputs
    names = {"peak": "peak", "floor": "floor", "warmup": "warm-up", "total": "end"}
    return {ours: given[theirs] for ours, theirs in names.items()}, tuple(given["steps"])


def _cosine(cosine_schedule: Tool, step: int, setting: Mapping[str, Any]) -> float:
    return number(f"the rate of step {step}", cosine_schedule(step=step, **setting))


def _inverse(inverse_sqrt_schedule: Tool, step: int, width: int, warmup: int) -> float:
    return number(f"the rate of step {step}", inverse_sqrt_schedule(step=step, d_model=width, warmup=warmup))
