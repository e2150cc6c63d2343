"""conform adapt as a command: streams, files, exit codes."""

import pytest
from typer.testing import CliRunner

from conformkit.cli.app import app
from conformkit.conformance.apps.adapt import adapt as adapting
from conformkit.conformance.apps.adapt.adapt import Adapted
from conformkit.conformance.discovery.draft import Draft
from conformkit.conformance.discovery.proposal import Proposal
from conformkit.conformance.driver.client.head_start import HeadStart
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.results import Report, Result, Verdict
from conformkit.conformance.findings.finding import stated

TABLE = {"path": "mypkg:Attn", "construct": {"dim": "d_model"}, "causal": "always"}


def report(results):
    return Report("mypkg", "/mypkg", "torch", results=results, complete=True)


@pytest.fixture
def adapted(monkeypatch, small_law):
    """Replace the search: one attention, one doubt, one line that is left to the author; tests set the verdict."""
    doubts, offered = ["nobody knows\nwhat p is"], [('causal = "never"', "it looks ahead")]
    draft = Draft("mypkg", "torch", [Proposal("MultiHeadAttention", TABLE, doubts, offered)], [], {}, [])
    box = {"found": Adapted(draft, report([Result(clause, Verdict.PASS) for clause in small_law.values()]))}
    monkeypatch.setattr(adapting, "adapt", lambda request, named, early: box["found"])
    monkeypatch.setattr("conformkit.conformance.driver.client.head_start.head_start", lambda *_: HeadStart())
    box["draft"], box["law"] = draft, small_law
    return box


def conform(*words):
    return CliRunner().invoke(app, ["adapt", *words])


def test_the_draft_is_all_that_stdout_has(adapted):
    """Would break if `> conform.toml` got a word that is not TOML, or a doubt could start a new line."""
    done = conform("mypkg")
    assert done.exit_code == 0
    assert done.stdout == adapted["draft"].text()
    assert "# unsure: nobody knows what p is" in done.stdout
    assert '# causal = "never"' in done.stdout
    assert "checked: 3 of 3 clauses judged" in done.stderr


def test_a_draft_that_does_not_hold_is_printed_all_the_same(adapted):
    """Would break if a failing proof exited with 0, or lost the draft."""
    broken = report([Result(adapted["law"]["SDPA-SCALE"], Verdict.FAIL, stated("too large"))])
    adapted["found"] = Adapted(adapted["draft"], broken)
    done = conform("mypkg")
    assert done.exit_code == 1
    assert "[components.MultiHeadAttention]" in done.stdout
    assert "SDPA-SCALE" in done.stderr
    assert "1 of 1 clause fails; no clause passed; each failure is a mistake in the code" in done.stderr


def test_a_file_that_is_there_is_overwritten_only_when_told(adapted, tmp_path):
    """Would break if the user's own declarations were lost."""
    path = tmp_path / "conform.toml"
    path.write_text("# mine\n")
    refused = conform("mypkg", "--out", str(path))
    assert refused.exit_code == 2
    assert path.read_text() == "# mine\n"
    assert conform("mypkg", "--out", str(path), "--force").exit_code == 0
    assert path.read_text() == adapted["draft"].text()
    assert [other.name for other in tmp_path.iterdir()] == ["conform.toml"]


@pytest.mark.usefixtures("adapted")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--component", "MultiHeadAtention=a:B"], "MultiHeadAttention"),
        (["--component", "MultiHeadAttention=../a.py"], "names no location"),
        (["--component", "MultiHeadAttention"], "names no location"),
        (["--component", "EncoderLayer=a:B"], "add --profile seq2seq"),
        (["--profile", "seq2sec"], "seq2seq"),
        (["--out", "no/such/folder/conform.toml"], "does not exist"),
        (["--isolation", "sanbox"], "sandbox"),
    ],
    ids=["misspelt", "file-path", "no-path", "other-profile", "profile", "no-folder", "isolation"],
)
def test_wrong_usage_says_what_is_meant(words, said):
    """Would break if anything ran before the options were checked."""
    done = conform("mypkg", *words)
    assert done.exit_code == 2
    assert said in done.stderr


def test_nothing_found_ends_with_its_own_code(adapted, monkeypatch):
    """Would break if an empty search looked like a wrong implementation."""

    def nothing(*_):
        raise LoadFailure("nothing in it looks like a component of the contract")

    monkeypatch.setattr(adapting, "adapt", nothing)
    done = conform("mypkg")
    assert done.exit_code == 3
    assert not done.stdout
    assert adapted["draft"].text() not in done.stderr
