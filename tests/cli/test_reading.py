"""docs/reading.md: what the tour says of the code, the law and the known mistakes is so."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from conformkit.conformance.defects import defects
from conformkit.fixtures import goldens
from conformkit.spec.clauses import clauses

ROOT = Path(__file__).parents[2]
STEPS = re.split(r"^## ", (ROOT / "docs/reading.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:-1]
KNOWN = {math.exp(1 / math.sqrt(2)), math.log(65)}
"""What a step works out besides stored values."""


def found(pattern, step):
    return re.search(pattern, step).groups()


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.splitlines()[0])
class TestEachStep:
    def test_names_a_definition_of_a_file_of_the_reference(self, step):
        """Would break if a function moved: every name in front of the file's is looked for."""
        for names, file in re.findall(r"((?:`\w+`(?:, | and )?)+) in \[\w+\.py\]\(\.\./(\S+)\)", step):
            text = (ROOT / file).read_text(encoding="utf-8")
            assert [
                name for name in re.findall(r"`(\w+)`", names) if not re.search(rf"(def|class) {name}\b", text)
            ] == []

    def test_names_a_mistake_that_breaks_the_clause_it_names(self, step):
        mistake, broken = found(r"Mistake: `([\w-]+)` breaks\s+`([A-Z-]+)`", step)
        assert broken in defects()[mistake].clauses

    def test_has_numbers_that_are_stored_for_its_clause(self, step):
        """Would break if a value were changed by a slip of the pen: 0.802 as 0.820."""
        (clause,) = found(r"Clause: `([\w-]+)`", step)
        assert clause in clauses()
        stored = np.concatenate([*(golden.expected.ravel() for golden in goldens(clause)), np.array(sorted(KNOWN))])
        by_hand = " ".join(step.partition("By hand")[2].partition("- Clause")[0].split())
        numbers = [float(number) for number in re.findall(r"\d\.\d{3}", by_hand)]
        assert [number for number in numbers if np.abs(stored - number).min() > 5.01e-4] == []
