"""Mutants are changes of code that runs, each in one place, and the same for one seed."""

from __future__ import annotations

import ast
import runpy
import tomllib

import pytest

from tests.tiers import ROOT

SCRIPT = runpy.run_path(str(ROOT / "benchmarks" / "mutants.py"))
SOURCE = '''"""A text about é."""
from typing import TYPE_CHECKING

__all__ = ["f g"]
if TYPE_CHECKING:
    from os import path as a


def f(x: "a b", é: int = 1) -> "c d":
    """Say what it does."""
    if not x and é < 2:
        print("too small")
        raise ValueError(f"{x} is small")
    while x in (True, None):
        x += 1.5 + len(zip(x, x, strict=True))
    return x * 2 if x else 0
'''


def test_each_mutant_is_code_that_differs_in_one_place() -> None:
    source = SOURCE.encode()
    found = list(SCRIPT["mutants"]("module.py", source))
    for mutant in found:
        changed = mutant.of(source)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source)), mutant
        assert mutant.told(source).startswith(f"module.py:{mutant.line}: ")
    told = {mutant.told(source).partition(": ")[2] for mutant in found}
    assert {
        "not x and é < 2 → False", "not x and é < 2 → (not x or é < 2)", "not x → (x)", "é < 2 → (é >= 2)", "2 → 3",
        'print("too small") → pass', "\"too small\" → ''", "x in (True, None) → False", "True → False",
        "x += 1.5 + len(zip(x, x, strict=True)) → pass",
        "1.5 → 2.5", "return x * 2 if x else 0 → return None", "x * 2 → (x / 2)", "0 → 1",
        'raise ValueError(f"{x} is small") → pass', "x * 2 if x else 0 → (0 if x else x * 2)",
    } <= told  # fmt: skip
    assert not [text for text in told if "Say what" in text or "f g" in text or "a b" in text or "path" in text]
    lines = [mutant.line for mutant in found if mutant.told(source).endswith(": True → False")]
    assert lines == [SOURCE.splitlines().index("    while x in (True, None):") + 1]  # strict=True only guards a zip


def test_what_only_says_what_code_relies_on_stays() -> None:
    """Would break if a class that nobody writes to anyway counted as code that no test guards."""
    source = (
        "@dataclass(frozen=True, slots=True, eq=False)\nclass A:\n    x = zip(a, strict=True)\n    y = f(strict=True)"
    )
    told = [mutant.told(source.encode()) for mutant in SCRIPT["mutants"]("module.py", source.encode())]
    assert sorted(told) == ["module.py:1: False → True", "module.py:4: True → False"]


def test_numbers_and_texts_of_clauses_stay() -> None:
    """Would break if another size of an example, as good as the one that stands there, counted as a mistake."""
    told = {
        mutant.told(SOURCE.encode()) for mutant in SCRIPT["mutants"]("conformance/suite/test_x.py", SOURCE.encode())
    }
    assert not [text for text in told if text.endswith(("2 → 3", "\"too small\" → ''", "0 → 1", "1.5 → 2.5"))]
    assert [text for text in told if text.endswith(("True → False", "x * 2 → (x / 2)"))]


def test_a_draw_is_the_same_for_one_seed_and_over_all_that_is_named() -> None:
    one, again, other = (SCRIPT["drawn"](["cli", "spec/masks.py"], 20, seed) for seed in (1, 1, 2))
    assert one == again != other
    assert {mutant.file.partition("/")[0] for mutant in one} <= {"cli", "spec"}
    assert len(set(one)) == 20


@pytest.mark.parametrize("folder", ["conformance/probing", "reference"])
def test_the_product_s_mutants_can_be_imported(folder: str) -> None:
    """Would break if the place of a mutant were wrong, as behind letters that take several bytes."""
    for mutant in SCRIPT["drawn"]([folder], 60, 3):
        ast.parse(mutant.of((ROOT / mutant.file).read_bytes()))


def test_what_only_ran_out_of_time_counts_neither_way_and_the_figure_is_recorded() -> None:
    """Would break if a busy machine made mutants count as noticed, or if another figure were overwritten."""
    one, other, late = SCRIPT["drawn"](["spec/masks.py"], 3, 1)
    draw = SCRIPT["Draw"]([one, other, late], [], 0.0)
    draw.found.update({one: "a.py::test_it", other: "", late: SCRIPT["NO_END"]})
    assert (draw.caught, draw.counted, str(draw)) == (1, 2, "1 of 2, 1 ran out of time")
    text = SCRIPT["FIGURES"].read_text(encoding="utf-8")
    before, after = (tomllib.loads(each)["figure"] for each in (text, SCRIPT["recorded"](text, "--draw 3", draw)))
    (changed,) = [new for old, new in zip(before, after, strict=True) if old != new]
    assert (changed["what"], changed["found"]) == (SCRIPT["ABOUT"], "2; 1")
    assert f"not noticed: {other.file}:{other.line}" in changed["measured"]
    assert changed["again"] == "`python benchmarks/mutants.py --draw 3`"


def test_a_mutant_that_nothing_near_notices_meets_all_quick_tests(capsys: pytest.CaptureFixture[str]) -> None:
    """Would break if the second round tried all again, or none; nothing begins after the end."""
    asked = []

    class Copy:
        def caught_by(self, mutant: object, *options: str) -> str:
            asked.append((mutant, options[0]))
            return "t" if mutant is one or options[0] == "-n" else ""

    one, other = SCRIPT["drawn"](["spec/masks.py"], 2, 1)
    draw = SCRIPT["Draw"]([one, other], [Copy()], float("inf"))
    draw.run()
    assert asked == [(one, "--changed"), (other, "--changed"), (other, "-n")]
    assert str(draw) == "2 of 2"
    assert "NOT CAUGHT (1 of 2)" in capsys.readouterr().out
    late = SCRIPT["Draw"]([one], [Copy()], 0.0)
    late.run()
    assert str(late) == "0 of 0"
