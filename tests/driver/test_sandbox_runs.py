"""A sandbox is available or refused with a reason; verdicts are the same with and without; the kit is always hidden."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import venv
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from conformkit.conformance.defects import defects
from conformkit.conformance.diagnosis.patching import write_reference
from conformkit.conformance.driver.client.head_start import head_start
from conformkit.conformance.driver.errors import IsolationUnavailable
from conformkit.conformance.driver.sandbox import bubblewrap
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.report.json_report import as_object
from conformkit.conformance.runner import run

ROOT = Path(bubblewrap.__file__).resolve().parents[3]
KIT = ("cli", "conformance", "fixtures", "reference", "spec")
ONLY = ("SDPA", "MHA-OUT")


@pytest.fixture
def anew():
    """Let the program be searched for again, now and afterwards."""
    bubblewrap._found.cache_clear()
    yield
    bubblewrap._found.cache_clear()


def refusal():
    with pytest.raises(IsolationUnavailable) as caught:
        bubblewrap.program()
    return str(caught.value), " ".join(caught.value.advice)


def script(folder, text):
    (folder / "bwrap").write_text(f"#!/bin/sh\n{text}\n")
    (folder / "bwrap").chmod(0o755)
    return str(folder)


def test_without_bubblewrap_it_is_refused_with_the_way_to_get_it(anew, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    problem, advice = refusal()
    assert "bwrap" in problem
    assert "apt-get install bubblewrap" in advice


def test_a_failure_of_bubblewrap_is_shown_in_its_own_words(anew, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", script(tmp_path, "echo 'bwrap: No permissions to create new namespace' >&2; exit 1"))
    assert "No permissions to create new namespace" in refusal()[0]


def test_a_setting_that_forbids_namespaces_is_named(anew, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", script(tmp_path, "exit 1"))
    (tmp_path / "setting").write_text("1\n")
    monkeypatch.setattr(bubblewrap, "_SETTINGS", {str(tmp_path / "setting"): ("1", "sysctl -w this=0")})
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    problem, advice = refusal()
    assert "status 1" in problem
    assert "sysctl -w this=0" in advice


def test_a_bwrap_of_the_current_folder_is_not_run(anew, monkeypatch, tmp_path):
    script(tmp_path, f": > {tmp_path}/was-run")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join(["", ".", os.curdir]))
    refusal()
    assert not (tmp_path / "was-run").exists()


def test_elsewhere_than_on_linux_it_is_refused(anew, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "Linux" in refusal()[0]


def test_a_run_is_refused_and_not_made_with_less(anew, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "mypkg.py").write_text(f"open({str(tmp_path / 'was-run')!r}, 'w')")
    assert head_start(str(tmp_path / "mypkg.py"), "sandbox").warm is None
    with pytest.raises(IsolationUnavailable):
        run(RunRequest(impl=str(tmp_path / "mypkg.py"), isolation="sandbox"))
    assert not (tmp_path / "was-run").exists()


def judged(folder, isolation):
    """The report on a package, without what differs from run to run; its isolation is separate."""
    request = RunRequest(impl=str(folder), only=ONLY, isolation=isolation, processes=2)
    found = as_object(run(request))
    for clause in found["clauses"]:
        clause.pop("seconds")
    notes = found.pop("notes")
    return {key: value for key, value in found.items() if key not in {"seconds", "isolation"}}, notes


@pytest.mark.full(guard="test_the_bundled_reference_can_be_judged_by_name")
@pytest.mark.parametrize("names", [(), ("sdpa-no-scale",)], ids=["right", "wrong"])
def test_a_run_finds_the_same_as_without_a_sandbox(bwrap, tmp_path, names):
    patches = [patch for name in names for patch in defects()[name].patches]
    folder = write_reference(tmp_path / "judged", patches)
    shutil.copytree(ROOT / "spec" / "choices", folder / "law" / "choices")
    for name in ("arrays", "rotary", "variants"):
        shutil.copy(ROOT / "spec" / f"{name}.py", folder / "law")
    for file in folder.rglob("*.py"):  # a submission cannot reach the kit
        file.write_text(file.read_text().replace("conformkit.spec", "judged.law"))
    inside, notes = judged(folder, "sandbox")
    outside, _ = judged(folder, "process")
    assert inside == outside
    assert inside["conforms"] == (not names)
    assert [note.partition(":")[0] for note in notes] == ["sandbox"]
    assert bool([c for c in inside["clauses"] if c["looks_like"]]) == bool(names)


def test_the_bundled_reference_can_be_judged_by_name(bwrap):
    assert run(RunRequest(impl="conformkit.reference", only=("SDPA-OUT",), isolation="sandbox")).conforms


@pytest.mark.parametrize("name", ["conformkit.reference", "conformkit.spec.attention"])
def test_a_submission_can_hand_back_neither_the_reference_nor_the_oracle(bwrap, tmp_path, name):
    (tmp_path / "mypkg").mkdir()
    (tmp_path / "mypkg" / "__init__.py").write_text(f"from {name} import scaled_dot_product_attention")
    with pytest.raises(LoadFailure, match=f"No module named '{name.rpartition('.attention')[0] or name}'"):
        run(RunRequest(impl=str(tmp_path / "mypkg"), only=("SDPA-OUT",), isolation="sandbox"))


def test_a_file_that_imports_its_neighbor_is_reported_as_part_of_a_folder(bwrap, tmp_path):
    (tmp_path / "model.py").write_text("import helper")
    (tmp_path / "helper.py").write_text("")
    with pytest.raises(LoadFailure, match="No module named 'helper'") as caught:
        run(RunRequest(impl=str(tmp_path / "model.py"), isolation="sandbox"))
    assert "name the folder" in " ".join(caught.value.advice)


LOOK = """
    import importlib, json, os
    def there(name):
        try:
            return bool(importlib.import_module(name))
        except ImportError:
            return False
    names = [f"conformkit.{name}" for name in ("spec", "fixtures", "reference", "cli", "conformance.suite")]
    def readable(path):
        try:
            return bool(open(path, "rb").read(1))
        except OSError:
            return False
    rights = [line.split()[1].strip("0") for line in open("/proc/self/status") if line.startswith(("CapEff", "CapPrm"))]
    rights += [name for name in ("environ", "mem", "maps") if readable("/proc/1/" + name)]
    print(json.dumps([[name for name in names if there(name)], [path for path in %s if os.path.exists(path)], rights]))
    def scaled_dot_product_attention(q, k, v, mask=None):
        return q
"""
HARNESS = """
import sys
from conformkit.conformance.driver.sandbox.sandbox import SandboxedProcess
from conformkit.conformance.driver.client.session import Limits, Session, locate
place = locate(sys.argv[1])
with Session(place, make=lambda: SandboxedProcess(place, Limits(), torch=False)) as session:
    session.start()
    print(session.take_output())
print(SandboxedProcess.__module__, sys.modules["conformkit.conformance"].__file__)
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A virtual environment without the kit, on top of this one."""
    folder = tmp_path_factory.mktemp("venv") / "venv"
    venv.create(folder, symlinks=True, with_pip=False)
    (packages,) = folder.glob("lib/python*/site-packages")
    above = Path(pytest.__file__).parents[1]
    (packages / "above.pth").write_text(f"{above}\n")
    return folder / "bin" / "python", packages


@pytest.mark.parametrize("layout", ["wheel", pytest.param("editable", marks=pytest.mark.full), "strict-editable"])
def test_the_kit_is_out_of_sight_however_it_is_installed(bwrap, environment, tmp_path, write, layout):
    python, packages = environment
    home = {"wheel": packages, "editable": tmp_path / "tree", "strict-editable": tmp_path / "links"}[layout]
    for name in KIT:
        source = (home if layout == "wheel" else tmp_path / "tree") / "conformkit" / name
        shutil.copytree(ROOT / name, source, ignore=shutil.ignore_patterns("__pycache__"))
        if layout == "strict-editable":
            shutil.copytree(source, home / "conformkit" / name, copy_function=os.symlink)
    if layout != "wheel":
        (packages / "kit.pth").write_text(f"{home}\n")
    hidden = [str(place / "conformkit" / name) for place in (home, tmp_path / "tree") for name in ("spec", "fixtures")]
    marks = [str(Path(path) / "__init__.py") for path in hidden]
    target = write(source=LOOK % json.dumps(marks)).path
    try:
        shown = subprocess.run(
            [python, "-P", "-c", HARNESS, target], capture_output=True, text=True, check=False, cwd=os.sep
        )
    finally:
        shutil.rmtree(packages / "conformkit", ignore_errors=True)
        (packages / "kit.pth").unlink(missing_ok=True)
    assert shown.returncode == 0, shown.stderr
    inside, loaded = shown.stdout.split("\n")[0], shown.stdout.strip().split()[-1]
    assert loaded.startswith(str(home))
    assert json.loads(inside)[:2] == [[], []]


def without(*rights):
    return ["setpriv", f"--bounding-set={','.join('-' + right for right in rights)}", "--inh-caps=-all", "--"]


def as_ordinary_user():
    """Become another user who can reach this Python and the kit, which may be in root's home."""
    needed = {Path(folder).resolve() for folder in (sys.prefix, sys.base_prefix, ROOT)}
    prefixes = {folder for folder in needed if needed.isdisjoint(folder.parents)}
    closed = {folder for prefix in prefixes for folder in prefix.parents if not folder.stat().st_mode & 0o001}
    words = ["bwrap", "--dev-bind", "/", "/"]
    for folder in sorted(closed):
        words += ["--perms", "0755", "--tmpfs", str(folder)]
        for prefix in (prefix for prefix in prefixes if prefix.is_relative_to(folder)):
            inner = [
                str(parent) for parent in reversed(prefix.parents) if parent != folder and folder in parent.parents
            ]
            words += [word for parent in inner for word in ("--perms", "0755", "--dir", parent)]
            words += ["--ro-bind", str(prefix), str(prefix)]
    user = ["--reuid=1000", "--regid=1000", "--clear-groups", "--inh-caps=-all", "--no-new-privs"]
    return [*words, "--", "setpriv", *user, "--"]


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("setpriv"), reason="needs root, to become somebody else")
@pytest.mark.parametrize(
    ("become", "note"),
    [
        (list, "a separate user"),
        (partial(without, "sys_admin"), "a user namespace"),
        (as_ordinary_user, "a user namespace"),
    ],
    ids=["root", "root-without-mounts", "ordinary-user"],
)
def test_every_user_gets_a_sandbox(bwrap, become, note):
    code = HARNESS.replace("print(session.take_output())", "print(session.take_output()); print(session.note)")
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folder is only for the user who runs it
        Path(folder).chmod(0o755)
        target = Path(folder, "mypkg.py")
        target.write_text(textwrap.dedent(LOOK % json.dumps([str(ROOT / "spec"), str(Path.home())])))
        command = [*become(), sys.executable, "-P", "-c", code, target]
        shown = subprocess.run(command, capture_output=True, text=True, check=False, cwd=os.sep)
    assert shown.returncode == 0, shown.stderr
    inside, told = (line for line in shown.stdout.splitlines() if line[:1] in {"[", "s"})
    assert note in told
    names, seen, rights = json.loads(inside)
    assert names == []
    assert not any(rights)
    assert set(seen) <= {str(Path.home())}  # Python may be in there, and nothing else


def test_limits_are_part_of_the_request(bwrap, tmp_path):
    (tmp_path / "mypkg.py").write_text("open('/tmp/big', 'wb').write(bytes(1 << 21))")
    request = RunRequest(impl=str(tmp_path / "mypkg.py"), isolation="sandbox")
    request = replace(request, limits=replace(request.limits, tmp_bytes=1 << 20))
    with pytest.raises(LoadFailure, match="No space left on device"):
        run(request)
