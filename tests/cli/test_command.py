import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformkit.cli import main as command
from conformkit.cli.app import app

HEAVY = {"torch", "pytest", "hypothesis", "numpy", "rich"}


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["spec"], ["explain", "--help"], ["run", "--help"]], ids=" ".join
)
def test_light_commands_import_nothing_heavy(process, arguments):
    result = process(*arguments, python=("-P", "-X", "importtime"))
    assert result.returncode == 0
    imported = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
    assert imported & HEAVY == set()


@pytest.mark.parametrize("name", sorted(info.callback.__name__ for info in app.registered_commands))
def test_help_has_two_examples_on_its_first_screen_that_can_be_pasted_and_fits_eighty_columns(name):
    """Would break if click joined them into one paragraph, a subcommand had none, or one ran over the edge."""
    shown = CliRunner().invoke(app, [name, "--help"], terminal_width=80).stdout.splitlines()
    begin = shown[:24].index("  Examples:")
    examples = [line for line in shown[begin + 1 : begin + 3] if line.startswith("    conform ")]
    assert len(examples) == 2
    assert any(f"conform {name} " in line for line in examples)
    assert [line for line in shown if len(line) > 80] == []


def test_the_list_of_commands_cuts_no_sentence():
    """Would break if a line of it ended in dots: `List the known mistakes with the clauses that catch each,...`."""
    shown = CliRunner().invoke(app, ["--help"], terminal_width=80).stdout
    listed = shown.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    assert len(listed) == len(app.registered_commands)
    assert [line for line in listed if not re.fullmatch(r"  [a-z]+ +[A-Z].*[^.]\.", line)] == []


def test_help_names_the_exit_codes(process):
    assert "130 stopped" in " ".join(process("--help").stdout.split())


def test_what_a_subcommand_does_is_said_in_words():
    """Would break if a class were renamed in sentences too: `serve` was "JudgePool what other programs send"."""
    first = [(info.callback.__doc__ or "").split()[0] for info in app.registered_commands]
    assert [word for word in first if not word.istitle()] == []


def test_a_mistyped_subcommand_suggests_the_nearest(process):
    result = process("rnu")
    assert result.returncode == 2
    assert "'run'" in result.stderr


def test_a_reader_who_leaves_early_sees_no_traceback():
    conform = f"{sys.executable} -P -m conformkit.cli"
    shell = f"{conform} run --help | true; {conform} spec | head -n 1"
    result = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in result.stderr
    assert "Exception ignored" not in result.stderr


@pytest.mark.parametrize("arguments", ["spec", "explain SDPA MHA", "defects"])
def test_a_reader_who_leaves_early_changes_no_exit_code(arguments):
    command = f"{sys.executable} -P -m conformkit.cli {arguments} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("closed", "arguments", "code"),
    [(">&-", "spec SDPA", 0), ("2>&-", "badge nope.json", 2), ("<&- >&- 2>&-", "spec SDPA", 0)],
    ids=["stdout", "stderr", "all"],
)
def test_a_closed_stream_is_not_a_reason_to_fail(closed, arguments, code):
    command = f"{sys.executable} -P -m conformkit.cli {arguments} {closed}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, "")


def test_a_missing_current_folder_is_reported(tmp_path):
    command = f"cd {tmp_path} && rmdir {tmp_path} && {sys.executable} -P -m conformkit.cli spec SDPA"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("conform: the current folder does not exist")


def test_a_locale_without_unicode_is_not_a_reason_to_fail(process):
    result = process("run", "--help", env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"})
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("debug", ["", "1"], ids=["plain", "debug"])
def test_a_failure_of_the_kit_is_a_sentence_and_a_traceback_only_when_requested(monkeypatch, capsys, debug):
    def app(**_options):
        raise RuntimeError("wrong \x1b[31mturn")

    monkeypatch.setenv("CONFORM_DEBUG", debug)
    monkeypatch.setattr("conformkit.cli.app.app", app)
    assert command._outcome() == 5
    text = capsys.readouterr().err
    assert "RuntimeError" in text
    assert ("Traceback" in text) == bool(debug)
    assert ("\x1b" in text) == bool(debug)
    assert ("CONFORM_DEBUG=1" in text) == (not debug)


def test_a_command_without_torch_says_what_to_install(monkeypatch, capsys):
    """It was: the kit itself failed, please report it."""

    def app(**_options):
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr("conformkit.cli.app.app", app)
    assert command._outcome() == 3
    assert "pip install torch --index-url https://download.pytorch.org/whl/cpu" in capsys.readouterr().err


def test_modules_of_the_current_folder_do_not_shadow_the_kits(process, tmp_path):
    for name in ("typer", "json", "rich", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('shadowed')")
    result = process("--version", python=(), cwd=tmp_path, env={"PYTHONSAFEPATH": ""})
    assert (result.returncode, result.stderr) == (0, "")


def test_pythonpath_does_not_shadow_the_kits_modules(process, tmp_path):
    for name in ("typer", "rich", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('shadowed')")
    result = process("--version", env={"PYTHONPATH": str(tmp_path)})
    assert (result.returncode, result.stderr) == (0, "")


_FULL = Path("/dev/full")


@pytest.mark.skipif(not _FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", ["--help", "spec", "explain SDPA-SCALE", "spec SDPA --json"])
def test_a_full_disk_is_not_a_failure_of_the_kit(arguments):
    command = f"{sys.executable} -P -m conformkit.cli {arguments} > {_FULL}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 5
    assert done.stderr.splitlines() == [
        "conform: what this command prints could not be written completely: No space left on device",
        "  free some space, or write to another place, and run it again; do not use the partial output",
    ]


def test_a_full_disk_below_a_file_names_the_file(monkeypatch, capsys):
    def app(**_options):
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT), "/tmp/draft")

    monkeypatch.setattr("conformkit.cli.app.app", app)
    assert command._outcome() == 5
    assert capsys.readouterr().err.startswith(
        "conform: /tmp/draft could not be written completely: Disk quota exceeded"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run", "conform run mypkg"), ("init", "conform init mypkg"), ("adapt", "conform adapt mypkg"),
        ("grade subs --out grades", "--example-policy"), ("badge", "--json report.json"),
        ("badge nowhere.json", "--json report.json"), ("repro", "conform repro SDPA-SCALE"),
    ],
    ids=["run", "init", "adapt", "grade", "badge", "badge-file", "repro"],
)  # fmt: skip
def test_a_missing_extra_is_reported_with_the_command_to_install_it(words, said):
    """Would break if a first-time user had to read the whole help."""
    done = CliRunner().invoke(app, words.split())
    assert done.exit_code == 2
    assert said in done.stderr
