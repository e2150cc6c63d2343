import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("spec", "fixtures", "reference", "conformance", "cli")


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def modules():
    return [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]


def test_every_package_of_the_tree_goes_into_the_wheel(project):
    folders = {path.parent.relative_to(ROOT) for path in modules()}
    assert set(project["tool"]["setuptools"]["packages"]) == {"conformkit." + ".".join(f.parts) for f in folders}


def test_every_package_has_an_init_without_which_its_data_is_not_found():
    assert {path.parent for path in modules() if not (path.parent / "__init__.py").exists()} == set()


def test_every_kind_of_data_file_goes_into_the_wheel(project):
    patterns = set(project["tool"]["setuptools"]["package-data"]["*"])
    found = [
        p for folder in FOLDERS for p in (ROOT / folder).rglob("*") if p.is_file() and p.suffix not in {".py", ".pyc"}
    ]
    assert {p.name for p in found if not any(p.match(pattern) for pattern in patterns)} == set()


def test_ci_runs_the_command_from_the_readme():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = [line for line in readme.splitlines() if line.startswith("python3.11 -m venv ")]
    assert len(commands) == 2
    assert all("-c constraints.txt" in line for line in commands)
    assert commands[0].endswith("conform run --impl conformkit.reference")
    assert commands[1].endswith("/pytest")
    assert "README.md" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_command_has_two_names(project):
    scripts = project["project"]["scripts"]
    assert scripts["conform"] == scripts["conformkit"] == "conformkit.cli.main:main"


def test_the_citation_is_of_this_version_and_license(project):
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["title"], citation["version"], citation["license"]) == tuple(
        project["project"][key] for key in ("name", "version", "license")
    )


def test_the_hook_for_other_repositories_is_a_command_that_is_installed(project):
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert hook["entry"].split()[0] in project["project"]["scripts"]
    assert (hook["language"], hook["pass_filenames"]) == ("system", False)
    assert f"id: {hook['id']}" in (ROOT / "docs" / "pytest.md").read_text(encoding="utf-8")


def test_the_sdist_holds_everything_that_is_tracked():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no git repository")
    lines = [line.split() for line in (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines()]
    folders = {name for keyword, name, *_ in (line for line in lines if line) if keyword == "graft"}
    patterns = [pattern for line in lines if line and line[0] == "include" for pattern in line[1:]]
    automatic = {"LICENSE", "MANIFEST.in", "pyproject.toml"}
    missing = [
        path
        for path in map(Path, listed.stdout.splitlines())
        if path.parts[0] not in folders | automatic
        and not (len(path.parts) == 1 and any(path.match(pattern) for pattern in patterns))
    ]
    assert missing == []
