import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformkit.cli.app import app
from conformkit.conformance.apps.grade.outputs.autograder import KitUnusable, autograder
from conformkit.conformance.apps.grade.outputs.wheel import wheel
from conformkit.conformance.binding.toml_nodes import ConfigError
from conformkit.conformance.versions import kit_version

ROOT = Path(__file__).parents[4]
WHEEL = f"conformkit-{kit_version()}-py3-none-any.whl"
POLICY = 'seed = 3\n[[groups]]\nname = "attention"\npoints = 10\nclauses = ["SDPA-SCALE"]\n'


@pytest.fixture
def policy(tmp_path):
    (tmp_path / "policy.toml").write_text(POLICY)
    return tmp_path / "policy.toml"


def members(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {entry.filename: (archive.read(entry), entry.external_attr >> 16) for entry in archive.infolist()}


def test_it_holds_what_gradescope_asks_for_and_the_policy(policy):
    found = members(autograder(policy))
    assert set(found) == {"setup.sh", "run_autograder", "policy.toml", "requirements.txt", "options.txt", WHEEL}
    assert found["policy.toml"][0].decode() == POLICY
    assert {name for name, (_, mode) in found.items() if mode & 0o111} == {"setup.sh", "run_autograder"}
    assert found["run_autograder"][0].startswith(b"#!/usr/bin/env bash\n")


def test_it_grades_with_the_versions_that_are_installed_here(policy):
    lines = members(autograder(policy))["requirements.txt"][0].decode().splitlines()
    assert lines[0] == f"./{WHEEL}"
    assert [line.partition("==")[0] for line in lines[1:]] == ["torch", "numpy"]
    assert not any("+" in line for line in lines)


def test_a_wheel_goes_into_the_zip(policy, tmp_path):
    own = tmp_path / "conformkit-9.9-py3-none-any.whl"
    own.write_bytes(b"wheel")
    found = members(autograder(policy, str(own)))
    assert found[own.name][0] == b"wheel"
    assert found["requirements.txt"][0].decode().splitlines()[0] == f"./{own.name}"


def test_the_same_policy_gives_the_same_bytes(policy):
    assert autograder(policy) == autograder(policy)


def test_the_conform_toml_that_the_policy_names_comes_along(policy, tmp_path):
    policy.write_text('conform = "own/class.toml"\n' + POLICY)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "class.toml").write_text("[variant]\n")
    assert members(autograder(policy))["own/class.toml"][0] == b"[variant]\n"


@pytest.mark.parametrize("kit", ["gone.whl", "-e .", "a\nb"], ids=["no-such-file", "an-option", "two-lines"])
def test_what_cannot_be_installed_is_refused(policy, kit):
    with pytest.raises(KitUnusable):
        autograder(policy, kit)


def test_a_policy_that_cannot_be_used_is_refused(policy):
    policy.write_text("hints = 9\n")
    with pytest.raises(ConfigError):
        autograder(policy)


@pytest.fixture
def machine(tmp_path, policy):
    """An unpacked autograder; running it returns the outcome. `conform` is the given script."""

    def call(conform, isolation=""):
        for name in ("source", "submission", "results"):
            (tmp_path / "root" / name).mkdir(parents=True)
        for name, (data, _) in members(autograder(policy, isolation=isolation)).items():
            (tmp_path / "root" / "source" / name).write_bytes(data)
        (tmp_path / "root" / "results" / "results.json").write_text('{"score": 100}')
        (tmp_path / "conform").write_text(f"#!/usr/bin/env bash\necho \"$@\" >'{tmp_path}/arguments'\n{conform}")
        (tmp_path / "conform").chmod(0o755)
        environment = {
            **os.environ, "AUTOGRADER_ROOT": str(tmp_path / "root"), "CONFORM": str(tmp_path / "conform"),
        }  # fmt: skip
        script = str(tmp_path / "root" / "source" / "run_autograder")
        return subprocess.run(["bash", script], capture_output=True, text=True, env=environment, check=False)

    return call


GRADES = """
while [ "$1" != --out ]; do shift; done
mkdir -p "$2/students/submission"
echo '{"score": 7.5}' >"$2/students/submission/results.json"
"""


def test_the_result_of_the_submission_is_gradescope_s(machine, tmp_path):
    done = machine(GRADES)
    assert done.returncode == 0
    assert json.loads((tmp_path / "root" / "results" / "results.json").read_text()) == {"score": 7.5}
    arguments = (tmp_path / "arguments").read_text()
    assert "--single --policy" in arguments
    assert "--isolation" not in arguments


def test_another_isolation_is_passed_on(machine, tmp_path):
    machine(GRADES, isolation="process")
    assert "--isolation=process" in (tmp_path / "arguments").read_text()


@pytest.mark.parametrize("conform", ["exit 4", "exit 0"], ids=["no-sandbox", "no-result"])
def test_without_a_verdict_there_is_no_score_even_from_an_earlier_run(machine, tmp_path, conform):
    done = machine(conform)
    assert done.returncode in {4, 5}
    assert "run_autograder: " in done.stderr
    assert not (tmp_path / "root" / "results" / "results.json").exists()


def test_a_policy_with_a_course_grades_there_too(machine, policy, tmp_path):
    """Would break if the roster, which stays with the instructor, were looked for where one submission is graded."""
    policy.write_text(f'{POLICY}[course]\nroster = "roster.csv"\n')
    (tmp_path / "roster.csv").write_text("id,name\ns1,Anna Berg\n")
    submission = tmp_path / "root" / "submission" / "solution.py"
    copy = f"cp '{ROOT}/examples/single_file.py' '{submission}'"
    done = machine(f'{copy}\nexec "{sys.executable}" -P -m conformkit.cli "$@"', isolation="process")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "root" / "results" / "results.json").read_text())["score"] == 10


def conform(*arguments):
    return CliRunner().invoke(app, ["autograder", *arguments], prog_name="conform")


def test_the_command_writes_the_zip(policy, tmp_path):
    target = tmp_path / "autograder.zip"
    result = conform("--policy", str(policy), "--out", str(target), "--isolation", "process")
    assert result.exit_code == 0
    assert members(target.read_bytes())["options.txt"][0] == b"--isolation=process\n"


@pytest.mark.parametrize(
    ("arguments", "text", "words"),
    [
        ([], "hints = 9\n", "the policy cannot be used"),
        (["--kit", "gone.whl"], POLICY, "gone.whl"),
        (["--isolation", "none"], POLICY, "not one of sandbox, process"),
        (["--out", "/no/such/folder/a.zip"], POLICY, "mkdir -p"),
        ([], f'conform = "../class.toml"\n{POLICY}', "class.toml"),
    ],
    ids=["policy", "kit", "isolation", "folder", "conform-outside"],
)
def test_wrong_usage_ends_with_2_and_a_sentence(policy, tmp_path, arguments, text, words):
    policy.write_text(text)
    (tmp_path.parent / "class.toml").write_text("[variant]\n")
    result = conform("--policy", str(policy), "--out", str(tmp_path / "a.zip"), *arguments)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "a.zip").exists()


def test_the_wheel_in_it_is_this_kit_and_pip_installs_it(policy, tmp_path):
    """Would break if a file of data were left out, or if the wheel were one that pip refuses."""
    data = members(autograder(policy))[WHEEL][0]
    assert wheel() == (WHEEL, data)  # the same kit, the same bytes
    (tmp_path / WHEEL).write_bytes(data)
    target = tmp_path / "installed"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(target)]
    subprocess.run([*command, str(tmp_path / WHEEL)], check=True, capture_output=True)
    ours = {path.relative_to(ROOT) for name in ("cli", "conformance", "spec") for path in (ROOT / name).rglob("*")}
    theirs = {path.relative_to(target / "conformkit") for path in (target / "conformkit").rglob("*")}
    kept = {path for path in ours if "__pycache__" not in path.parts and (ROOT / path).is_file()}
    assert kept <= theirs
    asked = [sys.executable, "-c", "from conformkit.cli import app; print(app.__file__)"]
    told = subprocess.run(
        asked, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(target)}, check=True, capture_output=True, text=True
    )
    assert told.stdout.startswith(str(target))
