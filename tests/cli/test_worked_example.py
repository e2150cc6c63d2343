"""The picture of the handout's three tokens shows what the reference computes, and the stored weights."""

import importlib.util
import re
from pathlib import Path

import pytest

from conformkit.fixtures import goldens

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("worked_example", ROOT / "docs" / "worked_example.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_is_what_its_script_draws(example):
    """Would break if the picture were changed by hand, or the script without it."""
    assert example.PICTURE.read_text(encoding="utf-8") == example.drawn()


def test_its_numbers_are_the_stored_ones_and_nothing_is_above_the_diagonal(example):
    stored = next(one for one in goldens("SDPA-GOLDEN-TINY") if one.id.endswith("handout-weights"))
    cells = [float(text) for text in re.findall(r">(\d\.\d{3})<", example.PICTURE.read_text(encoding="utf-8"))]
    plain, causal = cells[:9], cells[9:]
    assert plain == pytest.approx([weight for row in stored.expected for weight in row], abs=5e-4)
    assert [causal[1], causal[2], causal[5]] == [0, 0, 0]
    assert [sum(causal[row : row + 3]) for row in (0, 3, 6)] == pytest.approx([1, 1, 1], abs=2e-3)
    assert causal[6:] == plain[6:]  # the last query sees all keys
