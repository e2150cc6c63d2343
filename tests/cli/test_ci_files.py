"""The action, the templates of workflows and the scripts: as far as they can be tested without GitHub."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted([*(ROOT / "examples" / "ci").glob("*.yml"), *(ROOT / ".github" / "workflows").glob("*.yml")])
FILES = [ROOT / "action.yml", *WORKFLOWS]
JUDGE, INSTALL = ROOT / ".github" / "judge.sh", ROOT / ".github" / "install.sh"
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))
SCRIPTS = [
    JUDGE, INSTALL, *(ROOT / ".ci" / name for name in ("run", "smoke", "types", "workflows")),
    *sorted((ROOT / "conformance" / "apps" / "grade").rglob("*.sh")),
]  # fmt: skip
PUBLISHING = {
    ("release.yml", "publish"): {"contents": "read", "id-token": "write", "attestations": "write"},
    ("docs.yml", "deploy"): {"pages": "write", "id-token": "write"},
}
"""Jobs that may write: to PyPI and to GitHub Pages."""
NAMED = {"ids": lambda path: path.name}


def steps(path):
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    jobs = found["jobs"].values() if "jobs" in found else [found["runs"]]
    return [step for job in jobs for step in job["steps"]]


def shellcheck(text, *options):
    beside = shutil.which("shellcheck", path=Path(sys.executable).parent) or "shellcheck"
    command = [beside, "--shell=bash", *options, "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize("script", SCRIPTS, **NAMED)
def test_scripts_are_clean_by_shellcheck(script):
    assert shellcheck(script.read_text(encoding="utf-8")) == ""


@pytest.mark.parametrize("path", FILES, **NAMED)
def test_what_steps_run_is_clean_by_shellcheck_and_has_no_expression_in_it(path):
    for step in steps(path):
        if "run" in step:
            assert "${{" not in step["run"], "an expression becomes part of the script; pass it as a variable"
            assert shellcheck(step["run"]) == ""


@pytest.mark.parametrize("path", FILES, **NAMED)
def test_actions_are_named_by_commit(path):
    for step in steps(path):
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"])


@pytest.mark.parametrize("path", WORKFLOWS, **NAMED)
def test_a_workflow_can_read_and_no_more_and_keeps_no_token_next_to_the_code(path):
    text = path.read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert job.get("permissions") == PUBLISHING.get((path.name, name))
    assert "pull_request_target" not in workflow[True]  # YAML reads the key `on` as true
    assert "secrets." not in text
    for step in steps(path):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize(("file", "name"), PUBLISHING)
def test_a_job_that_may_write_runs_no_code_of_the_repository_and_never_for_a_pull_request(file, name):
    job = yaml.safe_load((ROOT / ".github" / "workflows" / file).read_text(encoding="utf-8"))["jobs"][name]
    assert not any("run" in step or step["uses"].startswith("actions/checkout@") for step in job["steps"])
    assert "refs/" in job["if"]
    assert re.search(r"github\.event_name (== 'push'|!= 'pull_request')", job["if"])
    assert job["environment"]
    assert job["needs"] == "build"


def test_a_release_is_built_checked_and_tried_before_it_is_published():
    commands = [step.get("run", "") for step in steps(ROOT / ".github" / "workflows" / "release.yml")]
    order = [
        next(n for n, text in enumerate(commands) if part in text)
        for part in ("-m build", "check --strict", ".ci/smoke")
    ]
    assert order == sorted(order)
    assert any("GITHUB_REF_NAME" in text and "exit 1" in text for text in commands)


def test_issue_forms_ask_for_what_is_needed():
    forms = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in FORMS}
    assert {"false_alarm", "missed_mistake", "bug", "new_clause"} == forms.keys()
    for form in forms.values():
        assert any(field.get("validations", {}).get("required") for field in form["body"])


def test_the_kit_comes_from_the_action_s_own_commit():
    (install,) = [step["run"] for step in steps(ROOT / "action.yml") if "bin/pip" in step.get("run", "")]
    assert 'install -c "$GITHUB_ACTION_PATH/constraints.txt" "$GITHUB_ACTION_PATH"' in install


@pytest.fixture
def judge(tmp_path):
    """Run the action's last step with a `conform` that writes the given texts; return the outcome."""

    def call(*, policy="policy.toml", minimum="80", code=0, STRICT="", ONLY="", BASELINE="", **grade):
        bin_ = tmp_path / "bin"
        bin_.mkdir()
        (bin_ / "python").symlink_to(sys.executable)
        folder = tmp_path / "out" / "students" / "submission"
        graded = {"points": 9.0, "max_points": 10.0, "outcome": "judged", **grade}
        script = f"""#!/usr/bin/env bash
echo "$@" >"{tmp_path}/arguments"
echo "::add-mask::everything"
mkdir -p "{folder}"
cat >"{folder}/grade.json" <<'END'
{json.dumps(graded)}
END
echo "# submission" >"{folder}/report.md"
exit {code}
"""
        (bin_ / "conform").write_text(script)
        (bin_ / "conform").chmod(0o755)
        environment = {
            **os.environ, "IMPL": "sub mission", "POLICY": policy, "MINIMUM": minimum, "PROFILE": "core", "SEED": "3",
            "STRICT": STRICT, "ONLY": ONLY, "BASELINE": BASELINE,
            "OUT": str(tmp_path / "out"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        }  # fmt: skip
        command = ["bash", str(JUDGE), str(bin_)]
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)

    return call


@pytest.mark.parametrize(
    ("grade", "minimum", "passes"),
    [
        ({"points": 9.0}, "90", True),
        ({"points": 8.9}, "90", False),
        ({"points": 0.0}, "0", True),
        ({"points": 10.0, "outcome": "timeout"}, "0", False),
        ({"points": 0.0, "max_points": 0.0}, "1", False),
    ],
    ids=["enough", "too-little", "nothing-needed", "not-judged", "nothing-to-get"],
)
def test_it_takes_a_verdict_and_enough_points_to_pass(judge, tmp_path, grade, minimum, passes):
    done = judge(minimum=minimum, **grade)
    assert (done.returncode == 0) == passes
    assert done.stdout.splitlines()[-1].startswith("::notice" if passes else "::error")
    assert (tmp_path / "summary.md").read_text() == "# submission\n"
    arguments = (tmp_path / "arguments").read_text()
    assert arguments.startswith("grade sub mission --single --policy policy.toml --out ")


def test_printed_text_is_not_a_command(judge):
    lines = judge().stdout.splitlines()
    word = lines[0].removeprefix("::stop-commands::")
    assert lines.index("::add-mask::everything") < lines.index(f"::{word}::")
    assert len(word) == 32


@pytest.mark.parametrize("code", [2, 4, 5])
def test_a_failed_run_passes_nobody_and_enables_commands_again(judge, code):
    done = judge(code=code, points=10.0)
    assert done.returncode == code
    first, *_, last = done.stdout.splitlines()
    assert last == f"::{first.removeprefix('::stop-commands::')}::"


def test_without_a_policy_the_verdict_is_the_one_of_a_run_in_the_sandbox(judge, tmp_path):
    assert judge(policy="", code=1).returncode == 1
    arguments = (tmp_path / "arguments").read_text()
    # all options are explicit: a pyproject.toml in the workspace may have other defaults
    said = "run --impl sub mission --isolation sandbox --profile core --level MUST --seed 3 --strict --github "
    assert arguments.startswith(said)


def test_the_action_is_strict_unless_told_otherwise(judge, tmp_path):
    """It was not: code that is right only where it is judged, or leaves out what is wrong, was green."""
    judge(policy="", STRICT="false")
    assert " --no-strict " in (tmp_path / "arguments").read_text()
    inputs = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"]
    assert inputs["strict"]["default"] == "true"


def test_the_action_passes_on_what_is_selected_and_known(judge, tmp_path):
    judge(policy="", ONLY="SDPA,MHA", BASELINE="known failures.json")
    assert (tmp_path / "arguments").read_text().endswith("--only SDPA,MHA --baseline known failures.json\n")


@pytest.mark.parametrize(
    ("install", "policy", "asked"),
    [
        ("auto", "", "install --only-binary :all: -r needed.txt"),
        ("auto", "policy.toml", ""),
        ("none", "", ""),
        ("-r more.txt", "policy.toml", "install -r more.txt"),
    ],
    ids=["own code", "submission", "nothing", "as told"],
)
def test_dependencies_are_installed_as_wheels_and_not_those_of_a_submission(tmp_path, install, policy, asked):
    """Would break if a pull request could run code of its own on the runner, or own code lacked what it imports."""
    bin_, code = tmp_path / "bin", tmp_path / "src" / "mypkg"
    bin_.mkdir()
    code.mkdir(parents=True)
    (bin_ / "python").symlink_to(sys.executable)
    (bin_ / "pip").write_text(f'#!/bin/sh\necho "$@" >"{tmp_path}/asked"\n')
    (bin_ / "pip").chmod(0o755)
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["einops>=0.8", "x; python_version < \'3\'"]\n')
    environment = {
        **os.environ, "IMPL": "src/mypkg", "POLICY": policy, "INSTALL": install, "RUNNER_TEMP": str(tmp_path)
    }  # fmt: skip
    subprocess.run(["bash", str(INSTALL), str(bin_)], cwd=tmp_path, env=environment, check=True)
    told = (tmp_path / "asked").read_text() if (tmp_path / "asked").exists() else ""
    assert told.replace(f"{tmp_path}/", "").strip() == asked
    if install == "auto" and not policy:
        assert (tmp_path / "needed.txt").read_text() == "einops>=0.8\nx; python_version < '3'\n"
