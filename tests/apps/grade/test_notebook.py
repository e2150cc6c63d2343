"""Notebooks as submissions: their definitions are judged, what they run is not."""

import json
import runpy

from conformkit.conformance.apps.grade.choice import choose
from conformkit.conformance.apps.grade.notebook import convert

CELLS = [
    "# Attention\n%matplotlib inline\n!pip install torch\nimport math\nfrom pathlib import Path",
    "scale = 2.0\ndevice = str('cpu')\ntext = Path('input.txt').read_text()\nunused = print('ran')",
    "def scaled_dot_product_attention(q, k, v, mask=None):\n    return q, scale, device",
    "def batch():\n    return text",
    "for step in range(10 ** 12):\n    pass",
    "raise SystemExit",
    "this is no Python",
]


def notebook(path, cells=CELLS):
    page = {"cells": [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]}
    path.write_text(json.dumps(page))


def test_definitions_are_kept_and_what_only_runs_is_left_out_and_told(tmp_path):
    notebook(tmp_path / "Assignment 3 (1).ipynb")
    (note,) = convert(tmp_path)
    assert "left out, because it only runs or these do not use it: 4 statements" in note
    assert note.endswith("left out: cell 7")
    module = runpy.run_path(str(tmp_path / "Assignment 3 (1).py"))
    assert module["scaled_dot_product_attention"](1, 0, 0) == (1, 2.0, "cpu")
    assert "unused" not in module


def test_imports_of_what_is_left_out_are_left_out_too(tmp_path):
    """Would break if a notebook from Colab could not be loaded, since nothing but Colab has its modules."""
    first = "import math, no_such_library as pictures\nfrom google.colab import drive\ndrive.mount('/content')"
    notebook(
        tmp_path / "work.ipynb", [first, "from __future__ import annotations\ndef f(x: Later):\n    return math.e"]
    )
    convert(tmp_path)
    assert runpy.run_path(str(tmp_path / "work.py"))["f"](0) == 2.718281828459045


def test_it_is_found_as_the_implementation_and_called_by_its_own_name(tmp_path):
    (tmp_path / "handed in").mkdir()
    notebook(tmp_path / "handed in" / "work.ipynb")
    convert(tmp_path)
    found = choose(tmp_path)
    assert (found.path.name, found.own_name) == ("work.py", "./work.ipynb")


def test_a_python_file_of_the_same_name_wins_and_what_is_no_notebook_is_told(tmp_path):
    notebook(tmp_path / "work.ipynb")
    (tmp_path / "work.py").write_text("mine = 1\n")
    (tmp_path / "empty.ipynb").write_text("{}")
    assert [note.partition(": ")[2] for note in convert(tmp_path)] == [
        "it is no notebook, or defines nothing", "there is a Python file of the same name",
    ]  # fmt: skip
    assert (tmp_path / "work.py").read_text() == "mine = 1\n"
