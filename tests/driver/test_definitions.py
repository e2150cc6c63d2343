"""What scripts and notebooks run besides their definitions is not run; what only they need is stood in for."""

import json
import types

import pytest
import torch

from conformkit.conformance.driver.client.session import InProcess
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.driver.location import locate
from conformkit.conformance.driver.worker.definitions import defined_by

ATTEND = "def scaled_dot_product_attention(q, k, v, mask=None):\n    return SCALE * q\n"


def _started(location):
    with InProcess(location) as session:
        notes = " ".join(session.start().notes)
        described = session.request({"op": "describe", "targets": {"scaled_dot_product_attention": None}})
        return notes, described.header["exports"]["scaled_dot_product_attention"]["found"]


@pytest.mark.parametrize(
    ("begin", "end", "note"),
    [
        ("text = open('notthere.txt').read()\n", "", "one.py:1 raises FileNotFoundError"),
        ("", "for i in range(3):\n    print(i / 0 * float('x'))\n", "one.py:6 raises ZeroDivisionError"),
        ("import wandb\nwandb.init()\n", "", "pip install wandb"),
        ("from tqdm import tqdm\nlast = [i for i in tqdm(range(3))][-1]\n", "assert last == 2", ""),
    ],
    ids=["a-file-that-is-not-there", "a-loop-that-raises", "logging", "a-progress-bar"],
)
def test_a_script_gives_its_definitions(write, begin, end, note):
    """Catches code that is refused for what it does besides defining things, and silence about it."""
    notes, found = _started(write("one.py", {"one.py": f"{begin}SCALE = 2\n\n{ATTEND}{end}"}))
    assert found
    assert note in notes


def test_a_script_that_trains_is_stopped(write):
    """Catches a run that waits for the end of a training, whose loop stands in a function."""
    loop = "def main(w):\n    while True:\n        w.sum().backward()\nmain(torch.ones(2, requires_grad=True))\n"
    notes, found = _started(write("one.py", {"one.py": f"import torch\nSCALE = 2\n{ATTEND}{loop}"}))
    assert found
    assert "it trains when it is imported" in notes


def test_a_loop_that_trains_is_not_begun(write, capfd):
    """Catches the most copied lecture as it is: at its sizes the first evaluation alone takes minutes."""
    loop = "for i in range(3):\n    print('evaluated')\n    if i:\n        w.sum().backward()\n"
    path = "import sys\nsys.path.append('.')\n"
    notes, found = _started(write("one.py", {"one.py": f"{path}SCALE = 2\n{ATTEND}{loop}"}))
    assert found
    assert "one.py:6 trains when it is imported" in notes
    assert "evaluated" not in capfd.readouterr().out


@pytest.mark.parametrize("main", ["", "if __name__ == '__main__':\n    "], ids=["outside", "guarded"])
def test_a_script_that_computes_for_long_is_stopped(write, monkeypatch, main):
    """Catches a run that waits for a script which evaluates; a long import is waited for."""
    monkeypatch.setattr("conformkit.conformance.driver.worker.definitions._SECONDS_TO_RUN", 0.05)
    busy = "def busy():\n    for _ in range(10**7):\n        pass\n"
    files = {"slow.py": f"{busy}busy()\n", "one.py": f"import slow\nSCALE = 2\n{ATTEND}{busy}{main}busy()\n"}
    location = write("one.py", files)
    monkeypatch.syspath_prepend(str(location.path.parent))
    notes, found = _started(location)
    assert found
    assert ("one.py:8 takes more than" in notes) == (not main)


def test_a_backward_that_the_code_replaces_is_the_one_that_users_call(write):
    """Catches a judge that puts torch's own back after the import, and so trains where users of the code do not."""
    own = "own = torch.Tensor.backward\ntorch.Tensor.backward = lambda *a, **k: own(*a, **k)\n"
    code = f"import torch\nSCALE = 2\n{own}"
    before = torch.Tensor.backward
    try:
        assert _started(write("one.py", {"one.py": f"{code}\n{ATTEND}"}))[1]
        assert torch.Tensor.backward is not before
        for _ in range(5):
            torch.ones(1, requires_grad=True).sum().backward()
    finally:
        torch.Tensor.backward = before


def test_an_error_in_a_definition_is_told(write):
    """Catches wrong code of which a part is judged as if nothing were wrong."""
    with pytest.raises(ImplementationFailure, match="not defined"):
        _started(write("one.py", {"one.py": f"{ATTEND}\nclass A(Missing):\n    pass\n"}))


def test_a_notebook_gives_what_its_cells_define(tmp_path):
    """Catches cells that train, commands of the notebook taken for Python, and cells in another language."""
    cells = ["%matplotlib inline\n!ls\nSCALE = 2", ATTEND, "while True:\n    pass", "%%bash\nfor x in y; do", "SCALE?"]
    page = {"cells": [{"cell_type": "code", "source": [text]} for text in cells]}
    (tmp_path / "work.ipynb").write_text(json.dumps(page))
    notes, found = _started(locate(str(tmp_path / "work.ipynb")))
    assert found
    assert "not run" in notes


def test_a_class_of_a_library_is_not_the_implementations(write):
    """Catches an imported class that is judged as if its author had written it."""
    source = "from torch.nn import Module, MultiheadAttention as MultiHeadAttention\nclass Mine(Module):\n    pass\n"
    with InProcess(write("one.py", {"one.py": source})) as session:
        session.start()
        asked = {"MultiHeadAttention": None, "Named": "torch.nn:MultiheadAttention", "Mine": None}
        exports = session.request({"op": "describe", "targets": asked}).header["exports"]
    assert [exports[name]["found"] for name in asked] == [False, True, True]


def test_code_reads_its_own_version_where_it_is_not_installed(write):
    """Catches a package that is refused since nothing has installed it."""
    source = f"import importlib.metadata as m\nassert m.version('one-x') == '3'\nSCALE = 2\n{ATTEND}"
    files = {"pyproject.toml": "[project]\nname = 'one_x'\nversion = '3'\n", "one/__init__.py": source}
    assert _started(write("one", files))[1]


@pytest.mark.parametrize(
    ("reads", "size"),
    [
        ("with open('input.txt') as f:\n    text = f.read()", 96),
        ("text = open('input.txt').read()", 96),
        ("with open('there.txt') as f:\n    text = f.read()", 3),
        ("with open('input.txt') as f:\n    text = f.read()\n    print(text)", 0),
        ("with open('input.txt', 'w') as f:\n    f.write('x')", 0),
    ],
    ids=["with", "at-once", "there", "and-more", "written"],
)
def test_a_text_that_is_not_there_still_gives_a_vocabulary(tmp_path, monkeypatch, reads, size):
    """Catches the most copied lecture, whose classes read the number of characters of a text at the top of the file."""
    (tmp_path / "there.txt").write_text("abc")
    (tmp_path / "gpt.py").write_text(f"{reads}\nchars = sorted(set(text))\nvocab_size = len(chars)\n")
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("gpt")
    raised = defined_by(module, tmp_path / "gpt.py")
    assert getattr(module, "vocab_size", 0) == size
    assert any("a text of the kit's" in one for one in raised) == (size == 96)
    assert not (tmp_path / "input.txt").exists()
