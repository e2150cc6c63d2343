"""Mutants are changes of code that runs, each in one place, and the same for one seed."""

from __future__ import annotations

import ast
import runpy

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
