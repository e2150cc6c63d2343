import pytest

from conformkit.cli.defaults import KEYS, defaults


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text):
        (tmp_path / "pyproject.toml").write_text(text)

    return write


def test_defaults_replace_missing_options_and_are_reported(conform, fake_run, project):
    project('[tool.conformkit]\nimpl = "mypkg"\nseed = 7\nlevel = "SHOULD"\n')
    result = conform("run", "--seed", "8")
    assert result.exit_code == 0
    (request,) = fake_run.requests
    assert (request.impl, request.seed, request.level) == ("mypkg", 8, "SHOULD")
    assert "defaults from pyproject.toml: impl = mypkg, seed = 7, level = SHOULD" in result.stderr


def test_what_stands_alone_wins_over_the_default(conform, fake_run, project):
    project('[tool.conformkit]\nimpl = "mypkg"\n')
    assert conform("run", "other").exit_code == 0
    assert fake_run.requests[0].impl == "other"


def test_without_a_table_nothing_is_reported_and_nothing_changes(conform, fake_run, project):
    project('[tool.conform]\nframework = "numpy"\n')
    result = conform("run", "--impl", "mypkg")
    assert (result.exit_code, result.stderr) == (0, "")
    assert fake_run.requests[0].profile == "core"


@pytest.mark.parametrize("command", [("repro", "SDPA-SCALE"), ("inspect",)], ids=["repro", "inspect"])
def test_a_command_takes_what_it_has_an_option_for(conform, project, tmp_path, command):
    project('[tool.conformkit]\nimpl = "nowhere_to_be_found"\nprofile = "lm"\n')
    result = conform(*command)
    assert result.exit_code == 3
    assert "defaults from pyproject.toml: impl = nowhere_to_be_found\n" in result.stderr
    assert "nowhere_to_be_found cannot be judged" in result.stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('profil = "lm"', "nearest: profile"), ('only = ["SDPA"]', "has 'only'"), ("seed = true", "a whole number"),
        ('isolation = "none"', "none: command line only"), ("seed = ", "is not valid TOML"),
        ('level = "SHALL"', "--level"), ("seed = -1", "-1"),
    ],
)  # fmt: skip
def test_what_the_table_may_not_hold_is_wrong_usage(conform, fake_run, project, line, words):
    project(f"[tool.conformkit]\n{line}\n")
    result = conform("run", "--impl", "mypkg")
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
    assert fake_run.requests == []


@pytest.mark.parametrize("text", ["conformkit", "tool = 1 # conformkit", "[tool]\nconformkit = 3"])
def test_a_value_that_is_not_a_table_is_reported(conform, fake_run, project, text):
    project(text)
    assert conform("run", "--impl", "mypkg").exit_code == 2


@pytest.mark.parametrize("command", ["grade", "autograder", "badge", "train", None])
def test_no_other_command_reads_it(project, command):
    project("[tool.conformkit]\nnonsense = \n")
    assert defaults(command) == {}


def test_nothing_that_chooses_clauses_or_files_can_be_set():
    assert not {"only", "config", "device", "hidden", "json_path", "everything"} & set(KEYS)
