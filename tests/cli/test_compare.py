import json
import subprocess

import pytest

from conformkit.conformance.apps.compare import blobs
from conformkit.conformance.apps.compare.revisions import NoRevision, lay_out, split
from conformkit.conformance.engine.declarations.not_judged import Unusable
from conformkit.conformance.engine.results import Report, Result, Verdict
from conformkit.conformance.report.json_report import as_json


@pytest.fixture
def stored(tmp_path, small_law):
    def make(name, verdict, **fields):
        results = [Result(clause, verdict) for clause in small_law.values()]
        report = Report(name, "", "torch", results=results, complete=True, **fields)
        path = tmp_path / f"{name}.json"
        path.write_text(as_json(report))
        return str(path)

    return make


def test_stored_reports_are_compared_and_the_code_is_the_worst(conform, stored, tmp_path):
    good, bad = stored("good", Verdict.PASS), stored("bad", Verdict.FAIL)
    assert conform("compare", good, good).exit_code == 0
    result = conform("compare", good, bad, "--html", str(tmp_path / "c.html"), "--markdown", str(tmp_path / "c.md"))
    assert result.exit_code == 1
    assert "the verdicts differ on 3 of 3 clauses" in result.stdout
    assert "SDPA-SCALE" in (tmp_path / "c.html").read_text()
    assert "SDPA-SCALE" in (tmp_path / "c.md").read_text()


def test_the_code_says_whether_the_first_is_worse_and_not_only_that_something_fails(conform, stored):
    good, bad = stored("good", Verdict.PASS), stored("bad", Verdict.FAIL)
    worse = conform("compare", bad, good, "--json", "-")
    assert worse.exit_code == 6
    assert json.loads(worse.stdout)["worse"] == ["SDPA-SHAPE", "SDPA-SCALE"]
    assert conform("compare", bad, bad).exit_code == 1


def test_implementations_are_judged_with_the_same_settings(conform, fake_run, stored):
    result = conform(
        "compare", "mypkg", stored("good", Verdict.PASS), "--seed", "7", "--dtype", "float16", "--json", "-"
    )
    assert result.exit_code == 0
    assert json.loads(result.stdout)["implementations"][0]["name"] == "mypkg"
    assert [(r.impl, r.seed, r.dtype, r.discover) for r in fake_run.requests] == [("mypkg", 7, "float16", True)]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("mypkg",), 2, "name two or more"),
        (("mypkg", "  "), 2, "is empty"),
        (("  ",), 2, "is empty"),
        (("mypkg", "nowhere.json"), 2, "conform run --impl mypkg --json report.json makes one"),
        (("mypkg", "other", "--only", "NOPE"), 2, "no clause is called NOPE"),
        (("mypkg", "other", "--dtype", "float8"), 2, "nearest: float"),
        (("mypkg", "other", "--html", "no/such/c.html"), 2, "mkdir -p"),
    ],
)  # fmt: skip
def test_wrong_usage_is_reported(conform, fake_run, arguments, code, words):
    result = conform("compare", *arguments)
    assert result.exit_code == code
    assert words in result.stderr


def test_one_that_cant_be_judged_leaves_the_others_and_ends_with_3(conform, stored, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = conform("compare", stored("good", Verdict.PASS), "nowhere_to_be_found")
    assert result.exit_code == 3
    assert "good conforms" in result.stdout
    assert "no module 'nowhere_to_be_found'" in result.stdout


def test_a_component_that_cannot_be_judged_ends_with_3_as_in_a_run(conform, stored):
    part = stored("part", Verdict.PASS, unusable={"FeedForward": Unusable("binding unsure")})
    result = conform("compare", stored("good", Verdict.PASS), part)
    assert result.exit_code == 3


def test_a_badge_is_printed_from_a_report_and_from_nothing_else(conform, stored, tmp_path):
    result = conform("badge", stored("good", Verdict.PASS))
    assert result.exit_code == 0
    assert result.stdout.startswith("<svg ")
    (tmp_path / "no.json").write_text("[1]")
    for path, words in ((tmp_path / "no.json", "not a report"), (tmp_path / "gone.json", "could not be read")):
        result = conform("badge", str(path))
        assert (result.exit_code, result.stdout) == (2, "")
        assert words in result.stderr


def committed(repository):
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    for words in (("add", "-A"), ("commit", "-q", "-m", "as it is")):
        git = ["git", "-C", str(repository.parent), *author, *words]
        subprocess.run(git, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    package = tmp_path / "mypkg"
    package.mkdir()
    (package / "__init__.py").write_text("x = 1\n")
    (tmp_path / "conform.toml").write_text("# then\n")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True, capture_output=True)
    committed(package)
    (package / "__init__.py").write_text("x = 2\n")
    return package


def test_a_revision_is_restored_with_the_file_next_to_it(repository, tmp_path_factory):
    found = lay_out(repository, "HEAD", tmp_path_factory.mktemp("then"))
    assert (found / "__init__.py").read_text() == "x = 1\n"
    assert (found.parent / "conform.toml").read_text() == "# then\n"
    assert (repository / "__init__.py").read_text() == "x = 2\n"


def settings_of(repository, *words):
    subprocess.run(["git", "-C", str(repository.parent), "config", *words], check=True)


@pytest.mark.parametrize("name", ["smudge", "process"])
def test_nothing_that_a_repository_sets_is_run(repository, tmp_path_factory, name):
    # without this, `git archive` in the repository would run its filters, with full rights and outside any sandbox
    mark = tmp_path_factory.mktemp("mark") / "was-run"
    (repository.parent / ".git" / "info" / "attributes").write_text("* filter=evil\n")
    settings_of(repository, f"filter.evil.{name}", f"touch {mark}; cat")
    settings_of(repository, "core.fsmonitor", f"touch {mark}")
    found = lay_out(repository, "HEAD", tmp_path_factory.mktemp("then"))
    assert (found / "__init__.py").read_text() == "x = 1\n"
    assert not mark.exists()


def test_filters_named_in_the_revision_itself_are_not_run(repository, tmp_path_factory):
    mark = tmp_path_factory.mktemp("mark") / "was-run"
    (repository / ".gitattributes").write_text("* filter=evil\n")
    committed(repository)
    settings_of(repository, "filter.evil.smudge", f"touch {mark}; cat")
    found = lay_out(repository, "HEAD", tmp_path_factory.mktemp("then"))
    assert (found / "__init__.py").read_text() == "x = 2\n"
    assert not mark.exists()


def test_a_filter_of_the_users_own_settings_is_not_run(repository, tmp_path_factory, monkeypatch):
    """git archive ran it, for a repository that asks for it in .gitattributes; with %GG there, it ran gpg."""
    mark = tmp_path_factory.mktemp("mark") / "was-run"
    settings = tmp_path_factory.mktemp("home") / ".gitconfig"
    settings.write_text(f'[filter "lfs"]\n    smudge = touch {mark}; cat\n[gpg]\n    program = touch {mark};\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    (repository / ".gitattributes").write_text("* filter=lfs\n*.py export-subst\n__init__.py export-ignore\n")
    (repository / "signed.py").write_text("# $Format:%GG$\n")
    committed(repository)
    mark.unlink(missing_ok=True)
    found = lay_out(repository, "HEAD", tmp_path_factory.mktemp("then"))
    assert (found / "signed.py").read_text() == "# $Format:%GG$\n"
    assert (found / "__init__.py").read_text() == "x = 2\n"
    assert not mark.exists()


def made(repository, *words, given=b""):
    git = ["git", "-C", str(repository.parent), "-c", "user.name=a", "-c", "user.email=a@example.org", *words]
    return subprocess.run(git, input=given, capture_output=True, check=True).stdout.decode().strip()


def tree_of(repository, *entries):
    raw = b"".join(f"{mode} {name}".encode() + b"\0" + bytes.fromhex(id_) for mode, name, id_ in entries)
    return made(repository, "hash-object", "-t", "tree", "-w", "--stdin", "--literally", given=raw)


@pytest.mark.parametrize(
    ("levels", "wide", "words"),
    [(9, 10, "more than 20000 files"), (60, 1, "more than 50 deep")],
    ids=["unfolding", "nested"],
)
def test_trees_that_unfold_are_refused_while_they_are_read(repository, tmp_path_factory, levels, wide, words):
    """A few hundred kilobytes became a minute and a gigabyte: each level holds the one below it ten times."""
    inner = tree_of(repository, ("100644", "a.py", made(repository, "hash-object", "-w", "--stdin", given=b"x")))
    for _ in range(levels):
        inner = tree_of(repository, *(("40000", f"f{number}", inner) for number in range(wide)))
    commit = made(repository, "commit-tree", "-m", "deep", tree_of(repository, ("40000", "mypkg", inner)))
    with pytest.raises(NoRevision, match=words):
        lay_out(repository, commit, tmp_path_factory.mktemp("then"))


@pytest.mark.parametrize("name", ["..", "a/../../../b", ".", "a\\b", "x" * 300], ids=len)
def test_a_name_that_leads_out_of_a_revision_is_refused(repository, tmp_path_factory, name):
    blob = made(repository, "hash-object", "-w", "--stdin", given=b"x")
    hostile = tree_of(repository, ("100644", name, blob))
    commit = made(repository, "commit-tree", "-m", "out", tree_of(repository, ("40000", "mypkg", hostile)))
    with pytest.raises(NoRevision, match="a name that no file can have"):
        lay_out(repository, commit, tmp_path_factory.mktemp("then"))


def test_what_is_missing_is_not_fetched_by_a_command_of_the_repository(repository, tmp_path_factory):
    mark = tmp_path_factory.mktemp("mark") / "was-run"
    for path in (repository.parent / ".git" / "objects").glob("??/*"):
        path.unlink()
    for words in (
        ("core.repositoryFormatVersion", "1"), ("extensions.partialClone", "origin"), ("protocol.ext.allow", "always"),
        ("remote.origin.url", f"ext::touch {mark}"), ("remote.origin.promisor", "true"),
    ):  # fmt: skip
        settings_of(repository, *words)
    with pytest.raises(NoRevision):
        lay_out(repository, "HEAD", tmp_path_factory.mktemp("then"))
    assert not mark.exists()


def test_a_repository_that_lies_about_where_its_files_are_is_refused(repository, tmp_path_factory):
    settings_of(repository, "core.worktree", str(tmp_path_factory.mktemp("elsewhere")))
    with pytest.raises(NoRevision, match="says that its files are in"):
        lay_out(repository, "HEAD", tmp_path_factory.mktemp("then"))


def test_links_that_lead_out_of_a_revision_are_left_out(repository, tmp_path_factory):
    (repository / "out").symlink_to("/etc/hostname")
    (repository / "up").symlink_to("../../..")
    (repository / "own").symlink_to("__init__.py")
    committed(repository)
    found = lay_out(repository, "HEAD", tmp_path_factory.mktemp("then"))
    assert sorted(path.name for path in found.iterdir()) == ["__init__.py", "own"]


def test_a_revision_that_would_fill_memory_is_refused(repository, tmp_path_factory, monkeypatch):
    monkeypatch.setattr(blobs, "_MOST_BYTES", 5)
    with pytest.raises(NoRevision, match="more than 0 MiB"):
        lay_out(repository, "HEAD", tmp_path_factory.mktemp("then"))


@pytest.mark.parametrize("revision", ["nope", "--upload-pack=x", ""])
def test_an_unknown_revision_is_reported(repository, tmp_path_factory, revision):
    with pytest.raises(NoRevision):
        lay_out(repository, revision, tmp_path_factory.mktemp("then"))


def test_a_folder_whose_name_has_an_at_is_not_a_revision(tmp_path):
    (tmp_path / "mine@home").mkdir()
    assert split(str(tmp_path / "mine@home")) == (str(tmp_path / "mine@home"), "")
    assert split("mypkg@HEAD~1") == ("mypkg", "HEAD~1")
