import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from conformkit.cli.inspect_run import _write_heads
from conformkit.conformance.apps.inspect.inspect import SIZES
from conformkit.reference.training.anatomy import HeadFacts

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_help_has_an_example_and_the_exit_codes(process):
    result = process("inspect", "--help")
    assert "conform inspect --impl mypkg --component TransformerBlock" in " ".join(result.stdout.split())
    assert "Exit code 0 if nothing stands out" in " ".join(result.stdout.split())


def test_a_piped_table_of_sixty_columns_and_json_next_to_it(process, tmp_path):
    out = tmp_path / "found.json"
    result = process("inspect", "--impl", str(EXAMPLES / "numpy_only"), "--json", str(out), env={"COLUMNS": "60"})
    assert (result.returncode, result.stderr) == (0, "")
    assert max(map(len, result.stdout.splitlines())) <= 60
    assert "No gradients: NumPy has no derivatives." in result.stdout
    assert json.loads(out.read_text())["sizes"]["d_model"] == SIZES["d_model"]


def test_json_on_stdout_is_nothing_but_json(process):
    result = process("inspect", "--impl", str(EXAMPLES / "numpy_only"), "--component", "feedforward", "--json", "-")
    assert json.loads(result.stdout)["component"] == "FeedForward"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--size", "num_head=3"), "nearest: num_heads"),
        (("--size", "num_heads=0"), "from 1 to 4096"),
        (("--component", "Transformerblok"), "nearest: TransformerBlock"),
        (("--component", "EncoderLayr"), "nearest: EncoderLayer"),
        (("--json", "/nowhere/at/all.json"), "does not exist"),
        (("--tokens", "1"), "Invalid value for '--tokens'"),
        (("--isolation", "jail"), "not one of process, sandbox, none"),
    ],
    ids=["name", "value", "component", "seq2seq", "file", "tokens", "isolation"],
)
def test_wrong_usage_is_reported_before_anything_is_loaded(process, arguments, said):
    result = process("inspect", "--impl", "no_such_package", *arguments, env={"COLUMNS": "200"})
    assert result.returncode == 2
    assert said in " ".join(result.stderr.replace("│", " ").split())


def test_what_is_not_there_ends_with_code_3(process):
    result = process("inspect", "--impl", "no_such_package")
    assert result.returncode == 3
    assert "Traceback" not in result.stderr


def test_a_process_that_dies_in_the_call_is_a_sentence(process, tmp_path):
    code = "import os\nclass FeedForward:\n    def __init__(self, d_model, d_ff): pass\n"
    (tmp_path / "mine.py").write_text(code + "    def __call__(self, x): os._exit(7)\n")
    result = process("inspect", "--impl", "mine.py", cwd=tmp_path)
    assert result.returncode == 1
    assert result.stderr.startswith("conform: FeedForward cannot be inspected: ")
    assert "status 7" in result.stderr
    assert "Traceback" not in result.stderr


def test_what_stands_out_ends_with_code_1(process, tmp_path):
    code = "import numpy as np\nclass MLP:\n"
    code += "    def __init__(self, d_model, d_ff): self.w = np.ones(d_model)\n"
    (tmp_path / "mine.py").write_text(code + "    def __call__(self, x): return x * self.w * np.nan\n")
    result = process("inspect", "mine.py", cwd=tmp_path, env={"COLUMNS": "60"})
    assert result.returncode == 1
    assert "NaN or infinite, here first" in " ".join(result.stdout.split())


def test_without_an_implementation_or_a_run_both_are_named(process):
    result = process("inspect", env={"COLUMNS": "200"})
    assert result.returncode == 2
    assert "or as RUN the folder of a run" in " ".join(result.stderr.replace("│", " ").split())
    both = process("inspect", "runs/tiny", "--impl", "mine", env={"COLUMNS": "200"})
    assert both.returncode == 2
    assert "contradicts RUN" in both.stderr


def test_a_device_that_is_not_there_is_a_sentence(process):
    result = process("inspect", "--impl", "conformkit.reference", "--component", "FeedForward", "--device", "mps")
    assert result.returncode in {2, 3, 5}
    assert result.stderr.startswith("conform: ")
    assert "Traceback" not in result.stderr


def test_no_number_of_a_head_is_cut_on_a_narrow_terminal():
    page = Console(width=40, file=io.StringIO())
    head = HeadFacts("encoder 1, head 1", 1.61, 1.91, 2.1, 0.43, 0.14, 0.87)
    _write_heads([head], page)
    assert page.file.getvalue().splitlines()[-1].split()[-6:] == ["1.61", "1.91", "2.1", "0.43", "0.14", "0.87"]
