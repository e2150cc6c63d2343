"""What other commands than run make of hostile code: watch, compare, repro and port."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformkit.cli.app import app
from conformkit.conformance.apps.watch.session import Judged, Superseded, WatchSession
from conformkit.conformance.driver.client.session import Limits
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.report.json_report import as_json
from conformkit.conformance.runner import run

from .attack import FOLDER, Attack, attacks
from .making import lay_out
from .world import guarded

COMMAND = Path(sys.executable).with_name("conform")
RIGHT = (FOLDER / "base" / "right.py").read_text(encoding="utf-8")
WRONG = (FOLDER / "base" / "wrong.py").read_text(encoding="utf-8")
RED = {"SDPA-SCALE": "fail"}


def named(*ids: str) -> list[Attack]:
    known = {attack.id: attack for attack in attacks()}
    return [known[name] for name in ids]


def ignore(found: object) -> None:
    del found


# --- watch ------------------------------------------------------------------------------------------------------------


@contextmanager
def watched(folder: Path) -> Iterator[WatchSession]:
    limits = Limits(call_seconds=1.0, load_seconds=5.0, output_bytes=1 << 18)
    request = RunRequest(impl=str(folder), only=("SDPA-SCALE",), diagnose=False, limits=limits)
    with guarded(120), closing(WatchSession(request)) as session:
        yield session


def saved(session: WatchSession, folder: Path, text: str) -> Judged:
    """Save a module, and return how it was judged, whatever a run before it said."""
    (folder / "__init__.py").write_text(text, encoding="utf-8")
    changed = session.wait()
    while True:
        try:
            return session.judge(changed, ignore)
        except Superseded:
            changed = session.wait()


def verdicts(judged: Judged) -> dict[str, str]:
    return {result.clause.id: result.verdict.value for result in judged.report.results}


@pytest.mark.parametrize(
    "attack",
    named(
        "denial/kills-its-parent", "denial/loop-in-a-call", "denial/loop-at-import", "forging/exit-in-a-call",
        "denial/output-flood", "text/escape-sequences", "forging/exit-at-import", "tampering/own-configuration",
    ),
    ids=lambda attack: attack.id,
)  # fmt: skip
def test_a_session_judges_the_next_save_whatever_the_one_before_did(attack: Attack, tmp_path: Path) -> None:
    folder = lay_out(attack, tmp_path)
    with watched(folder) as session:
        try:
            judged = session.judge(None, ignore)
        except (LoadFailure, Superseded):
            pass
        else:
            assert not judged.report.conforms
        (folder / "conform.toml").unlink(missing_ok=True)
        assert verdicts(saved(session, folder, WRONG)) == RED
        assert saved(session, folder, RIGHT).report.conforms


def test_code_that_changes_its_files_while_it_is_judged_gets_a_verdict(tmp_path: Path) -> None:
    # each run would give up for the next save
    folder = tmp_path / "restless"
    folder.mkdir()
    writes = "import pathlib, time\npathlib.Path(__file__).with_name('state.py').write_text(f'n = {time.time_ns()}')\n"
    with watched(folder) as session:
        assert (
            verdicts(saved(session, folder, writes + WRONG.replace("scores = q", f"exec({writes!r}); scores = q")))
            == RED
        )


def test_a_conform_toml_that_is_planted_while_it_is_judged_is_told_and_earns_no_pass(tmp_path: Path) -> None:
    folder = tmp_path / "planter"
    folder.mkdir()
    plant = (
        "import pathlib\npathlib.Path(__file__).with_name('conform.toml').write_text("
        "'[components.ScaledDotProductAttention]\\nskip = true\\n')\n"
    )
    with watched(folder) as session:
        try:  # the file is read before the code is imported, or after it where the save is judged once more
            assert not saved(session, folder, plant + WRONG).report.conforms
        except LoadFailure as failure:
            assert "ScaledDotProductAttention is not judged" in str(failure)  # noqa: PT017
        (folder / "__init__.py").write_text(WRONG, encoding="utf-8")
        with pytest.raises(LoadFailure, match=r"ScaledDotProductAttention is not judged: .* skip = true"):
            session.judge(session.wait(), ignore)


def test_links_pipes_and_files_that_vanish_leave_the_watched_files_finite(tmp_path: Path) -> None:
    folder = tmp_path / "looping"
    folder.mkdir()
    (folder / "__init__.py").write_text(WRONG, encoding="utf-8")
    (folder / "again").symlink_to(folder)
    (folder / "inner").mkdir()
    (folder / "inner" / "up").symlink_to("..")
    (folder / "self.py").symlink_to("self.py")
    os.mkfifo(folder / "pipe.py")
    with watched(folder) as session:
        assert {path.name for path in session.files} == {"__init__.py"}
        assert verdicts(session.judge(None, ignore)) == RED
        shutil.rmtree(folder)
        with pytest.raises(LoadFailure):
            session.judge(session.wait(), ignore)
        folder.mkdir()
        assert saved(session, folder, RIGHT).report.conforms


def test_the_terminal_of_a_watcher_gets_no_escape_sequence(tmp_path: Path) -> None:
    (attack,) = named("text/escape-sequences")
    folder = lay_out(attack, tmp_path)
    (folder / "\x1b[2Jname.py").write_text("x = 1\n", encoding="utf-8")
    command = [COMMAND, "watch", "--impl", str(folder), "--only", "SDPA-SCALE", "--color", "never"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        told = _until(process.stdout, b"Ctrl-C ends")
        (folder / "\x1b[2Jname.py").write_text("class x: pass\n", encoding="utf-8")
        told += _until(process.stdout, b"Ctrl-C ends")
        process.kill()
    assert b"name.py" in told
    assert not set(told) & (set(range(32)) - {10})


def _until(stream: Iterator[bytes], words: bytes) -> bytes:
    """Return what is printed up to some words."""
    told = b""
    with guarded(60):
        for line in stream:
            told += line
            if words in line:
                break
    return told


# --- names on the command line ----------------------------------------------------------------------------------------

NAMES = [
    "\x1b[2J\x1b]0;x\x07",
    "a\n::error::x",
    "\udcff\udcfe",
    "\u202egnp",
    "{0.__class__}",
    "$(touch SUCCEEDED)",
    "x" * 5000,
]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, id=ascii(name)[:20], marks=[pytest.mark.full] if number % 6 else [])
        for number, name in enumerate(NAMES)
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ["explain", "*"], ["badge", "*"], ["repro", "*", "--impl", "right.py"], ["repro", "SDPA-SCALE", "--impl", "*"],
        ["compare", "right.py", "*"], ["compare", "right.py", "right.py@*"], ["port", "*", "right.py"],
        ["port", "right.py", "*"], ["watch", "--impl", "*"], ["run", "--impl", "*"], ["adapt", "*"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_name_that_means_nothing_is_told_as_text(command: list[str], name: str, tmp_path: Path) -> None:
    (tmp_path / "right.py").write_text(RIGHT, encoding="utf-8")
    words = [word.replace("*", name) for word in command]
    done = subprocess.run([COMMAND, *words], cwd=tmp_path, capture_output=True, check=False)
    told = (done.stdout + done.stderr).decode(errors="surrogateescape")
    assert done.returncode in {2, 3}, told
    assert not {c for c in told if unicodedata.category(c) in {"Cc", "Cf", "Cs"} and c != "\n"}
    assert not [line for line in told.splitlines() if line.startswith("::")]
    assert not list(tmp_path.rglob("SUCCEEDED"))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What a run writes about wrong code."""
    file = tmp_path_factory.mktemp("told") / "wrong.py"
    file.write_text(WRONG, encoding="utf-8")
    found: dict[str, object] = json.loads(as_json(run(RunRequest(impl=str(file), only=("SDPA-SCALE",)))))
    return found


@pytest.mark.parametrize("seed", [["\x1b"], "7", {"a": 1}, 1.5], ids=repr)
def test_a_badge_of_a_report_that_is_none_is_refused(seed: object, told: dict[str, object], tmp_path: Path) -> None:
    """In this process: what nobody foresaw would be raised here, and end a command with 5."""
    for key in ("seed", "level", "only", "clauses", "notes", "complete"):
        assert key in told
        (tmp_path / "other.json").write_text(json.dumps({**told, key: seed}), encoding="utf-8")
        done = CliRunner().invoke(app, ["badge", str(tmp_path / "other.json")], prog_name="conform")
        assert done.exit_code in {0, 2}, done.output
        assert "\x1b" not in done.output


# --- compare ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["$(touch SUCCEEDED)", "-rf", "a b; touch SUCCEEDED", "\u202egnp"], ids=ascii)
def test_a_repository_with_a_hostile_name_is_compared_as_text(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_bytes((FOLDER / "base" / "right.py").read_bytes())
    hook = tmp_path / name / ".git-hook"
    hook.write_text("#!/bin/sh\ntouch SUCCEEDED\n")
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.hooksPath=/dev/null"]
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "$(touch SUCCEEDED)"]):
        subprocess.run([*git, *command], check=True)
    subprocess.run([*git, "config", "filter.x.smudge", f"touch {tmp_path}/SUCCEEDED"], check=True)
    subprocess.run([*git, "config", "core.fsmonitor", f"touch {tmp_path}/SUCCEEDED"], check=True)
    only = ["--only", "SDPA-SCALE"]
    done = subprocess.run(
        [COMMAND, "compare", *only, f"./{name}", f"./{name}@main"], cwd=tmp_path, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode != 5, done.stderr
    assert not list(tmp_path.rglob("SUCCEEDED"))


def test_a_hostile_package_is_compared_with_a_right_one_that_keeps_its_verdict(tmp_path: Path) -> None:
    for attack in named("text/escape-sequences", "denial/kills-its-parent"):
        shutil.move(lay_out(attack, tmp_path), tmp_path / attack.folder.name)
    (tmp_path / "right.py").write_text(RIGHT, encoding="utf-8")
    compared = ["right.py", "./escape-sequences", "./kills-its-parent"]
    done = subprocess.run(
        [COMMAND, "compare", "--only", "SDPA-SCALE", *compared, "--json", "found.json", "--html", "found.html"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert [one["conforms"] for one in found["implementations"]] == [True, False, False]
    shown = done.stdout + done.stderr + (tmp_path / "found.html").read_text(encoding="utf-8")
    assert not set(shown) & {chr(code) for code in (*range(9), *range(14, 32), 127)}


# --- repro ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attack", "clause"),
    [
        ("text/names-for-the-shell", "MHA-ORACLE"), ("text/excuses-with-markup", "MHA-ORACLE"),
        ("excuses/second-output", "MHA-ORACLE"), ("text/keys-that-are-code", "SDPA-SCALE"),
        ("text/attributes-that-are-code", "SDPA-SCALE"), ("text/weights-that-are-code", "MHA-SCALE-DHEAD"),
    ],
    ids=str,
)  # fmt: skip
def test_a_script_of_a_failure_holds_hostile_names_as_text(attack: str, clause: str, tmp_path: Path) -> None:
    (found,) = named(attack)
    lay_out(found, tmp_path)
    done = repro(clause, "submission", tmp_path)
    script = tmp_path / "failure.py"
    if found.source == WRITTEN:
        assert script.exists(), done.stderr
    check_script(script, tmp_path)


@pytest.mark.parametrize(
    "name",
    ["it's.py", 'three"""quotes.py', "{0.__class__}.py", "two\nlines.py", "back\\slash.py", "$(touch SUCCEEDED).py"],
    ids=ascii,
)
def test_a_script_holds_a_hostile_file_name_as_text(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(WRONG, encoding="utf-8")
    done = repro("SDPA-SCALE", name, tmp_path)
    assert (tmp_path / "failure.py").exists(), done.stderr
    check_script(tmp_path / "failure.py", tmp_path)


WRITTEN = "found by writing what a script quotes"


def repro(clause: str, impl: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Write a script of a failure; what is said about it is text."""
    done = subprocess.run(
        [COMMAND, "repro", clause, "--impl", impl, "--out", "failure.py"], cwd=folder, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode != 5, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    return done


def check_script(script: Path, folder: Path) -> None:
    """Run a script, if there is one: it shows the failure, and nothing in a name is carried out."""
    if script.exists():
        shown = subprocess.run([sys.executable, script.name], cwd=folder, capture_output=True, text=True, check=False)
        assert shown.returncode == 0, shown.stderr
        assert "SUCCEEDED" not in shown.stdout
    assert not list(folder.rglob("SUCCEEDED"))


# --- port -------------------------------------------------------------------------------------------------------------

RENAMED = """
from . import model

NAME = {name!r}


class TinyTransformerLM(model.TinyTransformerLM):
    def __init__(self, *sizes, **more):
        super().__init__(*sizes, **more)
        kept = self.blocks
        del self.blocks
        self.add_module(NAME, kept)

    @property
    def blocks(self):
        return self._modules["blocks" if NAME not in self._modules else NAME]
"""


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("b'''\\\"\"\"$(touch SUCCEEDED)__import__('os')or open('SUCCEEDED','w')", 0),
        ("b{open('SUCCEEDED','w')}", 3), ("b\n__import__('os')or open('SUCCEEDED','w')#", 3), ("b\x1b[2J\u202e", 3),
    ],
    ids=["quotes", "braces", "a-line", "escapes"],
)  # fmt: skip
def test_a_conversion_holds_hostile_names_of_weights_as_text(name: str, code: int, tmp_path: Path) -> None:
    base = (FOLDER / "base" / "model_torch.py").read_text(encoding="utf-8")
    for folder, text in (("theirs", RENAMED.format(name=name)), ("ours", base)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").write_text(text, encoding="utf-8")
        (tmp_path / folder / "model.py").write_text(base, encoding="utf-8")
    done = subprocess.run(
        [COMMAND, "port", "./theirs", "./ours", "--map"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    assert not set(done.stdout + done.stderr) & {"\x1b", "\u202e"}
    if code == 0:
        (tmp_path / "converting.py").write_text(done.stdout.partition("./theirs \u2192")[0], encoding="utf-8")
        use = "import collections, converting; converting.convert(collections.defaultdict(float))"
        subprocess.run([sys.executable, "-c", use], cwd=tmp_path, check=True)
    assert not list(tmp_path.rglob("SUCCEEDED"))
