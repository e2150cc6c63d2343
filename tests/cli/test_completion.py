import pytest
from typer.main import get_command

from conformkit.cli import completion
from conformkit.cli.app import app

SHELLS = {
    "bash": {"COMP_WORDS": "conform run --only MASK-LEFT", "COMP_CWORD": "3"},
    "zsh": {"_TYPER_COMPLETE_ARGS": "conform run --only MASK-LEFT"},
    "fish": {"_TYPER_COMPLETE_ARGS": "conform run --only MASK-LEFT", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
}


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_gets_a_script_and_clauses(process, shell):
    script = process(env={"_CONFORM_COMPLETE": f"source_{shell}"})
    assert f"_CONFORM_COMPLETE=complete_{shell} " in script.stdout
    found = process(env={"_CONFORM_COMPLETE": f"complete_{shell}", **SHELLS[shell]})
    assert "MASK-LEFT-PAD" in found.stdout
    assert "SDPA" not in found.stdout
    assert (script.stderr, found.stderr) == ("", "")


def test_the_last_of_several_clauses_is_completed():
    assert completion.clause_ids("sdpa,mask-n") == ["SDPA,MASK-NONE"]
    assert completion.clause_ids("sdpa") == ["SDPA", "SDPA-SHAPE", "SDPA-SCALE"]


def test_a_component_is_completed_in_its_own_spelling():
    assert completion.clause_ids("scaled") == ["ScaledDotProductAttention"]


def test_implementations_are_folders_and_python_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mypkg" / "inner").mkdir(parents=True)
    for name in ("mine.py", "my.txt", ".my.py"):
        (tmp_path / name).touch()
    assert completion.implementations("m") == ["mine.py", "mypkg"]
    assert completion.implementations("mypkg/") == ["mypkg/inner"]
    assert completion.implementations("nowhere/") == []


@pytest.mark.parametrize("name", sorted(get_command(app).commands))
def test_the_help_of_every_command_has_an_example_that_begins_with_it(conform, name):
    result = conform(name, "--help")
    assert result.exit_code == 0
    assert f"Examples: conform {name}" in " ".join(result.stdout.split())
