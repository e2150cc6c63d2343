import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

NUMPY = Path(__file__).parents[2] / "examples" / "numpy_only"


@pytest.fixture
def broken(tmp_path):
    """An implementation whose scores are not divided by the root of their width, but by the width."""
    code = tmp_path / "mine"
    shutil.copytree(NUMPY, code)
    file = code / "attention.py"
    file.write_text(file.read_text().replace("math.sqrt(q.shape[-1])", "q.shape[-1]"))
    return code


def test_a_failing_clause_becomes_a_script_in_the_current_folder(process, broken, tmp_path):
    result = process("repro", "sdpa-scale", "--impl", "mine", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (1, "")
    assert "run it: python repro_sdpa_scale.py" in result.stdout
    text = (tmp_path / "repro_sdpa_scale.py").read_text()
    assert "conform repro SDPA-SCALE --impl mine" in text
    assert "sys.path" not in text  # the code is next to it
    assert "import conformkit" not in text
    shown = subprocess.run([sys.executable, "repro_sdpa_scale.py"], cwd=tmp_path, capture_output=True, check=True)
    assert b"difference" in shown.stdout


@pytest.mark.full(guard="test_a_failing_clause_becomes_a_script_in_the_current_folder")
def test_a_failure_in_half_precision_is_reproduced_in_it(process, broken, tmp_path):
    arguments = ("repro", "SDPA-SCALE", "--impl", "mine", "--no-shrink")
    result = process(*arguments, "--dtype", "float16", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (1, "")
    text = (tmp_path / "repro_sdpa_scale.py").read_text()
    assert "--impl mine --dtype float16 --no-shrink" in text
    assert ".astype(np.float16)" in text
    shown = subprocess.run([sys.executable, "repro_sdpa_scale.py"], cwd=tmp_path, capture_output=True, check=True)
    got, want = re.search(r" is (\S+), expected (\S+)", shown.stdout.decode()).groups()
    assert f"{np.float16(got):.6g}" == got  # a number of that format
    assert abs(float(got) - float(want)) > 0.04


@pytest.mark.full(guard="test_a_failing_clause_becomes_a_script_in_the_current_folder")
def test_a_script_that_is_there_is_not_overwritten_unless_asked(process, broken, tmp_path):
    path = tmp_path / "again.py"
    path.write_text("mine")
    result = process("repro", "SDPA-SCALE", "--impl", str(broken), "--out", str(path))
    assert result.returncode == 2
    assert "--force" in result.stderr
    assert path.read_text() == "mine"
    result = process("repro", "SDPA-SCALE", "--impl", str(broken), "--out", str(path), "--force")
    assert result.returncode == 1
    assert "SDPA-SCALE fails" in path.read_text()


def test_a_clause_that_holds_leaves_nothing_behind(process, tmp_path):
    result = process("repro", "SDPA-SCALE", "--impl", str(NUMPY), cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert "Nothing was written" in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_blocked_clause_names_the_one_to_reproduce(process, broken, tmp_path):
    result = process("repro", "SDPA-FORMULA", "--impl", str(broken), "--out", str(tmp_path / "r.py"))
    assert (result.returncode, result.stdout) == (1, "")
    assert "try conform repro SDPA-SCALE" in result.stderr
    assert not (tmp_path / "r.py").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["SDPA-SCALR"], ["SDPA-SCALR", "nearest: SDPA-SCALE"]),
        (["SDPA-SCALE", "--out", "nowhere/r.py"], ["nowhere"]),
        (["SDPA-SCALE", "--out", "r.txt"], ["end in .py"]),
    ],
    ids=["no such clause", "no such folder", "no script"],
)
def test_wrong_usage_is_reported_before_anything_runs(process, tmp_path, arguments, words):
    result = process("repro", *arguments, "--impl", "mine", cwd=tmp_path)
    assert result.returncode == 2
    text = " ".join(result.stderr.split())
    assert all(word in text for word in words), text


def test_an_implementation_that_is_not_there_ends_with_3(process, tmp_path):
    result = process("repro", "SDPA-SCALE", "--impl", "nobody_has_this", cwd=tmp_path)
    assert result.returncode == 3
    assert "Traceback" not in result.stderr


def test_code_of_another_name_is_found_as_a_run_finds_it(process, tmp_path):
    """Catches a command that refuses the code of which a run has just told the mistake."""
    text = "import numpy as np\n\ndef attend(q, k, v, mask=None):\n    s = np.exp(q @ np.swapaxes(k, -1, -2))\n"
    (tmp_path / "mine.py").write_text(text + "    return s / s.sum(-1, keepdims=True) @ v\n")
    result = process("repro", "SDPA-SCALE", "--impl", "mine.py", cwd=tmp_path)
    assert result.returncode == 1
    assert "from mine import attend" in (tmp_path / "repro_sdpa_scale.py").read_text()


def test_a_stub_has_no_script_and_does_not_conform(process, tmp_path):
    (tmp_path / "mine.py").write_text(
        "import numpy\n\ndef scaled_dot_product_attention(q, k, v, mask=None):\n    raise NotImplementedError\n"
    )
    result = process("repro", "SDPA-SCALE", "--impl", "mine.py", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (1, "")
    assert "SDPA-SCALE has no script: ScaledDotProductAttention is not implemented yet: mine.py:4" in result.stderr
    assert [path.name for path in tmp_path.iterdir() if path.suffix] == ["mine.py"]
