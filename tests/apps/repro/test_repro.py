"""Scripts that reproduce a failure are run as their readers run them: without the kit."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from conformkit.conformance.apps.repro.arguments import Filled
from conformkit.conformance.apps.repro.page import Page
from conformkit.conformance.apps.repro.reproduce import Reproduction, reproduce
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Verdict
from tests.two_halves import IN_HALVES

ROOT = Path(__file__).parents[3]
WITHOUT_KIT = "import runpy, sys; sys.modules['conformkit'] = None; runpy.run_path(sys.argv[1], run_name='__main__')"
NUMBER = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"

HANDOUT = "examples/handout"
NUMPY = "examples/numpy_only"
HEADS = ("__init__.py", "t.view(shape).transpose(1, 2)", "t.view(*shape[:-2], -1, self.num_heads).movedim(-1, 1)")
ACTIVATION = ("layers.py", "nn.GELU(),", "nn.ReLU(),")
PATCHES = {
    "handout": (HANDOUT, ACTIVATION),
    "foreign layout": ("tests/right/gpt2_conv1d", HEADS),
    "numpy": (NUMPY, ("attention.py", "math.sqrt(q.shape[-1])", "q.shape[-1]")),
    "numpy positions": (NUMPY, ("layers.py", "(2 * (feature // 2) / width)", "(feature // 2 / width)")),
    "plain objects": ("tests/right/dict_of_arrays.py", ("", "x / math.sqrt(2)", "x / 2.0")),
    "three mistakes": ("examples/three_mistakes", None),
}

Broken = Callable[[str, tuple[str, str, str] | None], Path]


@pytest.fixture
def broken(tmp_path: Path) -> Broken:
    """Return a function that copies an implementation and changes one text in it."""

    def copy(source: str, patch: tuple[str, str, str] | None) -> Path:
        target = tmp_path / "code" / Path(source).name
        target.parent.mkdir(exist_ok=True)
        if (ROOT / source).is_file():
            shutil.copy(ROOT / source, target)
        else:
            shutil.copytree(ROOT / source, target, dirs_exist_ok=True)
        if patch is not None:
            file = target / patch[0] if patch[0] else target
            text = file.read_text(encoding="utf-8")
            assert patch[1] in text
            file.write_text(text.replace(patch[1], patch[2]), encoding="utf-8")
        return target

    return copy


def written(found: Reproduction, folder: Path) -> Path:
    """Write the script and its data."""
    assert found.script is not None, found.reason
    path = folder / "repro.py"
    path.write_text(found.script.text, encoding="utf-8")
    if found.script.arrays:
        path.with_suffix(".npz").write_bytes(found.script.npz())
    return path


def ran(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT_KIT, str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def got_and_want(text: str) -> tuple[float, float]:
    """Return the numbers of the line that quotes an entry."""
    match = re.search(rf"^got(?:\[.*\] is)? ({NUMBER}), expected ({NUMBER})", text, re.MULTILINE)
    assert match, text
    return float(match[1]), float(match[2])


full = partial(pytest.param, marks=pytest.mark.full)


@pytest.mark.parametrize(
    ("case", "clause_id"),
    [
        ("numpy positions", "PE-EXPONENT"), full("three mistakes", "PE-EXPONENT"), full("handout", "FFN-ACT"),
        full("foreign layout", "MHA-HEAD-SLICES"), full("foreign layout", "MHA-CONCAT-ORDER"),
    ],
)  # fmt: skip
def test_the_script_shows_the_numbers_of_the_report(broken: Broken, tmp_path: Path, case: str, clause_id: str) -> None:
    found = reproduce(RunRequest(impl=str(broken(*PATCHES[case]))), clause_id, tmp_path, "again", shrink=False)
    assert found.result.verdict is Verdict.FAIL
    match = re.search(rf" is ({NUMBER}), expected ({NUMBER})", found.result.message)
    assert match, found.result.message
    result = ran(written(found, tmp_path))
    assert result.returncode == 0, result.stderr
    assert got_and_want(result.stdout) == (float(match[1]), float(match[2]))


@pytest.mark.parametrize(
    ("case", "clause_id", "right"),
    [
        ("numpy", "SDPA-SCALE", NUMPY), ("plain objects", "FFN-ACT", "tests/right/dict_of_arrays.py"),
        full("three mistakes", "MHA-SCALE-DHEAD", HANDOUT), full("handout", "FFN-ACT", HANDOUT),
        full("foreign layout", "MHA-CONCAT-ORDER", "tests/right/gpt2_conv1d"),
    ],
)  # fmt: skip
def test_the_smaller_call_is_wrong_only_while_the_code_is(
    broken: Broken, tmp_path: Path, case: str, clause_id: str, right: str
) -> None:
    code = broken(*PATCHES[case])
    found = reproduce(RunRequest(impl=str(code)), clause_id, tmp_path, "again")
    path = written(found, tmp_path)
    assert found.script is not None
    assert not found.script.arrays
    wrong = ran(path)
    assert wrong.returncode == 0, wrong.stderr
    got, want = got_and_want(wrong.stdout)
    assert abs(got - want) > 1e-3
    mended = broken(right, None)
    if mended.name != code.name:
        shutil.rmtree(code)
        mended.rename(code)
    got, want = got_and_want(ran(path).stdout)
    assert got == pytest.approx(want, abs=1e-5)


@pytest.mark.full(guard="test_infinities_and_nan_are_shown_as_well")
def test_the_script_is_as_short_as_its_reader_wants_it(broken: Broken, tmp_path: Path) -> None:
    code = broken(*PATCHES["three mistakes"])
    found = reproduce(RunRequest(impl=str(code)), "MHA-SCALE-DHEAD", tmp_path, "again")
    assert found.script is not None
    _, _, body = found.script.text.split('"""', 2)
    assert len([line for line in body.splitlines() if line.strip()]) <= 30


@pytest.mark.parametrize(
    ("patch", "clause_id", "words"),
    [
        (("layers.py", "return self.net(x)", "raise RuntimeError('tired')"), "FFN-SHAPE", "RuntimeError: tired"),
        full(
            ("layers.py", "self.net(x)", "self.net(nn.functional.pad(x, (0, self.net[0].in_features - x.shape[-1])))"),
            "ERRH-FEATURE-DIM",
            "",
        ),
        full(("layers.py", "return self.net(x)", "return self.net(x.detach())"), "GRAD-INPUT", ""),
    ],
    ids=["raises", "accepts", "no gradient"],
)
def test_infinities_and_nan_are_shown_as_well(
    broken: Broken, tmp_path: Path, patch: tuple[str, str, str], clause_id: str, words: str
) -> None:
    found = reproduce(RunRequest(impl=str(broken(HANDOUT, patch))), clause_id, tmp_path, "again")
    result = ran(written(found, tmp_path))
    assert words in result.stderr
    assert (result.returncode == 0) == (not words)
    assert words or result.stdout


@pytest.mark.parametrize(
    ("patch", "clause_id", "verdict", "words"),
    [
        (None, "FFN-SHAPE", Verdict.PASS, "it holds"),
        (
            ("attention.py", "math.sqrt(q.shape[-1])", "2.5"),
            "SDPA-FORMULA",
            Verdict.BLOCKED,
            "it is not checked until SDPA-",
        ),
        (("layers.py", "return gelu(", "import os; os._exit(3); return gelu("), "FFN-SHAPE", Verdict.CRASH, "lost"),
    ],
    ids=["holds", "blocked", "crashes"],
)
def test_where_there_is_nothing_to_show_there_is_a_reason(
    broken: Broken, tmp_path: Path, patch: tuple[str, str, str] | None, clause_id: str, verdict: Verdict, words: str
) -> None:
    found = reproduce(RunRequest(impl=str(broken(NUMPY, patch))), clause_id, tmp_path, "again")
    assert (found.result.verdict, found.script) == (verdict, None)
    assert words in found.reason


def test_a_model_of_two_halves_is_called_by_them(tmp_path: Path) -> None:
    """Catches a script that calls what has no `forward`."""
    code = tmp_path / "code" / "own.py"
    code.parent.mkdir()
    code.write_text(IN_HALVES.replace("self.src(src)", "0 * self.src(src)").replace("WRONG", "False"), encoding="utf-8")
    found = reproduce(RunRequest(str(code), profile="seq2seq"), "S2S-SRC-DEP", tmp_path, "again")
    ended = ran(written(found, tmp_path))
    assert (ended.returncode, ended.stderr) == (0, "")


HOSTILE = """import os
import numpy as np

CALLS = [0]
CODE = "sys import path\\nprint('SUCCEEDED')\\n#:x"


def scaled_dot_product_attention(q, k, v, mask=None):
    CALLS[0] += 1
"""
OTHERWISE = {
    "it ends when it is asked again": "    CALLS[0] < 3 or os._exit(0)\n    return q @ np.swapaxes(k, -1, -2) @ v\n",
    "it gives other shapes later": "    return (q @ np.swapaxes(k, -1, -2) @ v)[: None if CALLS[0] < 3 else 1]\n",
    "it raises what is called like code": "    raise type('E\\nimport this\\n#', (Exception,), {})('x')\n",
    "it raises later": "    if CALLS[0] > 2:\n        raise ValueError\n    return q @ np.swapaxes(k, -1, -2) @ v\n",
}


@pytest.mark.parametrize("body", OTHERWISE.values(), ids=OTHERWISE)
@pytest.mark.parametrize("clause", ["SDPA-OUT-SHAPE", "SDPA-SCALE"])
def test_whatever_an_implementation_does_there_is_a_script_or_a_reason(tmp_path: Path, body: str, clause: str) -> None:
    (tmp_path / "hostile.py").write_text(HOSTILE + body, encoding="utf-8")
    found = reproduce(RunRequest(str(tmp_path / "hostile.py")), clause, tmp_path, "again")
    assert found.script is not None or found.reason
    lines = ast.walk(ast.parse(found.script.text if found.script else ""))
    assert "this" not in [alias.name for node in lines if isinstance(node, ast.Import) for alias in node.names]


def test_arguments_that_are_called_like_code_are_texts() -> None:
    named = {"x": 1, "y=2)\nprint('SUCCEEDED')\n#": 3, "class": 4}
    written = Filled(Page(None, torch=False), {}, "m").arguments({"kwargs": named})  # type: ignore[arg-type]
    (call,) = ast.parse(f"f({written})").body
    assert isinstance(call, ast.Expr)
    assert eval(f"dict({written})") == named
