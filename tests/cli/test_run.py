import json
from dataclasses import replace
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from conformkit.conformance import runner
from conformkit.conformance.binding.toml_nodes import ConfigError
from conformkit.conformance.driver.errors import IsolationUnavailable
from conformkit.conformance.driver.sandbox import bubblewrap
from conformkit.conformance.engine.declarations.not_judged import Unusable
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.results import Result, Verdict
from conformkit.conformance.report.json_report import schema
from conformkit.spec.clauses import Level


class NotLoaded(LoadFailure):
    problem, where, output = "No module named 'mypkg'", "mypkg/__init__.py:3", "\x1b[31mhello"
    advice = ("is it in this folder?",)
    nowhere = False

    def __init__(self):
        Exception.__init__(self)


class NotConfigured(ConfigError):
    def __init__(self):
        Exception.__init__(self)
        self.path, self.line, self.problem, self.advice = "conform.toml", 4, "norm is 'layer'", "nearest: layernorm"


class NotIsolated(IsolationUnavailable):
    def __init__(self):
        super().__init__("this system lets no process be limited", "use one that does")


def test_the_exit_code_is_the_verdict(conform, fake_run, small_law):
    assert conform("run", "--impl", "mypkg").exit_code == 0
    fake_run.results[1] = Result(small_law["SDPA-SCALE"], Verdict.FAIL)
    assert conform("run", "--impl", "mypkg").exit_code == 1


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (NotLoaded(), 3, ["mypkg cannot be judged: No module", "is it in this folder?", "printed: hello"]),
        (NotConfigured(), 3, ["conform.toml, line 4: norm is 'layer'", "nearest: layernorm"]),
        (NotIsolated(), 4, ["this system lets no process be limited", "use one that does"]),
        (KeyboardInterrupt(), 130, ["stopped before any clause was judged"]),
    ],
    ids=["not loaded", "bad conform.toml", "no isolation", "stopped while loading"],
)
def test_what_ends_a_run_is_a_sentence_with_its_code(conform, fake_run, error, code, words):
    fake_run.error = error
    result = conform("run", "--impl", "mypkg")
    assert result.exit_code == code
    assert result.stdout == ""
    assert all(word in result.stderr for word in words)
    assert "Traceback" not in result.stderr
    assert "\x1b" not in result.stderr


def test_a_stopped_run_reports_what_it_has_and_ends_with_130(conform, fake_run, tmp_path):
    fake_run.complete = False
    result = conform("run", "--impl", "mypkg", "--json", str(tmp_path / "r.json"))
    assert result.exit_code == 130
    assert "the run is incomplete" in result.stdout
    assert json.loads((tmp_path / "r.json").read_text())["complete"] is False


def test_every_option_reaches_the_run(conform, fake_run, tmp_path):
    (tmp_path / "c.toml").write_text("")
    conform(
        "run", "--impl", "mypkg", "--only", "sdpa-scale,MASK", "--only", "SDPA", "--level", "should", "--seed", "7",
        "--isolation", "none", "--config", str(tmp_path / "c.toml"), "-n", "2",
    )  # fmt: skip
    (request,) = fake_run.requests
    assert (request.impl, request.only, request.seed) == ("mypkg", ("SDPA-SCALE", "MASK", "SDPA"), 7)
    assert (request.level, request.isolation, request.config) == (Level.SHOULD, "none", tmp_path / "c.toml")


def test_clauses_are_judged_by_the_profile_that_they_are_of(conform, fake_run, small_law):
    """Would break if core were asked, whatever is selected: no clause is judged, and a right package fails."""
    small_law["TRAIN-LOSS"] = replace(small_law["SDPA-SCALE"], id="TRAIN-LOSS", profile="lm")
    conform("run", "--impl", "mypkg", "--only", "TRAIN-LOSS")
    conform("run", "--impl", "mypkg", "--only", "TRAIN-LOSS,SDPA")
    assert [request.profile for request in fake_run.requests] == ["lm", "core,lm"]


@pytest.mark.parametrize(
    ("options", "seconds"), [((), 600.0), (("--seconds", "7"), 7.0), (("--thorough", "3"), None)], ids=str
)
def test_a_run_has_a_deadline_unless_it_is_thorough(conform, fake_run, options, seconds):
    conform("run", "--impl", "mypkg", *options)
    assert fake_run.requests[0].seconds == seconds


def test_how_long_a_call_may_take_can_be_said(conform, fake_run):
    """Would break if code with an endless loop could not be judged faster, or slow code not more patiently."""
    conform("run", "--impl", "mypkg", "--seconds-per-call", "2.5")
    conform("run", "--impl", "mypkg")
    assert fake_run.requests[0].limits.call_seconds == 2.5
    assert fake_run.requests[1].limits.call_seconds >= 20.0


@pytest.mark.parametrize(
    ("options", "seed", "drawn"),
    [((), 0, False), (("--seed", "7"), 7, False), (("--strict", "--seed", "7"), 7, False)],
    ids=["usual", "named", "named with strict"],
)
def test_a_seed_that_is_named_or_usual_is_not_drawn(conform, fake_run, options, seed, drawn):
    conform("run", "--impl", "mypkg", *options)
    assert (fake_run.requests[0].seed, fake_run.requests[0].drawn) == (seed, drawn)


@pytest.mark.parametrize("options", [("--strict",), ("--seed", "drawn"), ("--strict", "--seed", "drawn")], ids=" ".join)
def test_for_a_verdict_that_counts_the_seed_is_drawn(conform, fake_run, options):
    # a package that had recorded the answers to 2,723 inputs of seed 0 conformed
    for _ in range(3):
        conform("run", "--impl", "mypkg", *options)
    seeds = {request.seed for request in fake_run.requests}
    assert len(seeds) == 3
    assert 0 not in seeds
    assert all(request.drawn for request in fake_run.requests)
    assert fake_run.requests[0].strict == ("--strict" in options)


@pytest.mark.parametrize(("first", "code", "said"), [
    (Verdict.PASS, 3, "mypkg is judged only in part by core"), (Verdict.FAIL, 1, "mypkg does not conform to core"),
], ids=["nothing-red", "red"])  # fmt: skip
def test_a_run_that_is_out_of_time_is_not_judged_unless_something_is_red(
    conform, fake_run, tmp_path, first, code, said
):
    """Would break if code of which nothing is red were called wrong because the machine was slow."""
    late = "the time limit of the run, 600 s, was reached; for more time, add --seconds 1200"
    fake_run.complete, fake_run.late = False, late
    left = [replace(result, verdict=Verdict.NOT_RUN, reason=late) for result in fake_run.results[1:]]
    fake_run.results = [replace(fake_run.results[0], verdict=first), *left]
    options = ("--json", str(tmp_path / "r.json"), "--baseline", str(tmp_path / "none.json"))
    (tmp_path / "none.json").write_text(json.dumps({"schema": "conformkit.baseline/1", "known": {}}))
    for given in (options[:2], options):
        result = conform("run", "--impl", "mypkg", *given)
        assert result.exit_code == code
        assert said in " ".join(result.stdout.split())
        assert late in " ".join(result.stdout.split())
    assert json.loads((tmp_path / "r.json").read_text())["late"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--only", "SDPA-SCAEL"], "nearest: SDPA-SCALE"),
        (["--only", ","], "is empty"),
        (["--only", "SDPA-SCALE", "--profile", "lm,paths"], "not in profile lm,paths, but in core: name that with"),
        (["--without", "SDPA-SCAEL"], "nearest: SDPA-SCALE"),
        (["--isolation", "proces"], "nearest: process"),
        (["--level", "MUSST"], "nearest: MUST"),
        (["--profile", "coer"], "nearest: core"),
        (["--profile", "lm,coer"], "nearest: core"),
        (["--profile", "lm,"], "--profile"),
        (["--device", "gpu"], "not one of cpu, cuda, mps"),
        (["--pages", "javascript:alert(1)"], "begins with https://"),
        (["--color", "nevr"], "nearest: never"),
        (["--sede", "3"], "--seed"),
        (["--seed", "-1"], "--seed"),
        (["--seed", "dice"], "give a number from 0 on, or drawn"),
        (["--config", "/no/conform.toml"], "does not exist"),
        (["-q", "-v"], "contradicts"),
        (["--thorough", "many"], "names mypkg, and many stands there as well"),
        (["--json", "/no/such/folder/r.json"], "mkdir -p /no/such/folder"),
        (["--junit", "/no/such/folder/r.xml"], "mkdir -p /no/such/folder"),
        (["--json", "-", "--junit", "-"], "name two places"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_is_refused_before_anything_runs(conform, fake_run, arguments, words):
    result = conform("run", "--impl", "mypkg", *arguments)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
    assert fake_run.requests == []


def test_several_profiles_are_asked_for_once_each(conform, fake_run):
    assert conform("run", "--impl", "mypkg", "--profile", "lm, paths,lm").exit_code == 0
    assert fake_run.requests[0].profile == "lm,paths"


@pytest.mark.parametrize("word", ["ScaledDotProductAttention", "scaleddotproductattention"])
@pytest.mark.parametrize("option", ["--only", "--without"])
def test_a_component_selects_its_clauses_however_it_is_spelled(conform, fake_run, option, word):
    # it was read in capitals, as an id is, and refused as an unknown clause
    result = conform("run", "--impl", "mypkg", option, f"MASK-NONE,{word}")
    assert result.exit_code == 0, result.stderr
    assert getattr(fake_run.requests[0], option[2:]) == ("MASK-NONE", "ScaledDotProductAttention")


def test_a_sandbox_is_refused_and_never_replaced_by_less(conform, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    bubblewrap._found.cache_clear()
    (tmp_path / "mypkg.py").write_text("raise SystemExit")
    result = conform("run", "--impl", str(tmp_path / "mypkg.py"), "--isolation", "sandbox")
    bubblewrap._found.cache_clear()
    assert result.exit_code == 4
    assert "apt-get install bubblewrap" in result.stderr
    assert result.stdout == ""


def test_reports_are_written_and_hold_what_the_run_found(conform, fake_run, tmp_path):
    del fake_run
    (tmp_path / "r.json").write_text("older and longer " * 1000)
    conform("run", "--impl", "mypkg", "--json", str(tmp_path / "r.json"), "--junit", str(tmp_path / "r.xml"))
    jsonschema.validate(json.loads((tmp_path / "r.json").read_text()), schema())
    assert len(ET.parse(tmp_path / "r.xml").findall(".//testcase")) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.json", "r.xml"]


def test_json_on_stdout_stands_there_alone(conform, fake_run):
    fake_run.prints = "the implementation says hello"
    result = conform("run", "--impl", "mypkg", "--isolation", "none", "--json", "-")
    assert json.loads(result.stdout)["conforms"] is True
    assert "mypkg conforms" in result.stderr


def test_quiet_prints_the_verdict_only(conform, fake_run):
    del fake_run
    assert conform("run", "--impl", "mypkg", "-q").stdout.splitlines() == [
        "mypkg conforms to core (spec 1.0): 3 of 3 clauses pass"
    ]


def test_color_is_used_on_request(conform, fake_run, monkeypatch):
    del fake_run
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert "\x1b[" not in conform("run", "--impl", "mypkg").stdout
    assert "\x1b[" in conform("run", "--impl", "mypkg", "--color", "always").stdout


@pytest.mark.parametrize(
    "words", [("mypkg",), ("--only", "SDPA", "mypkg"), ("--thorough", "mypkg", "-q")], ids=" ".join
)
def test_what_to_judge_may_stand_alone(conform, fake_run, words):
    """Catches a command that knows --impl only, and an option that takes the name for its own value."""
    assert conform("run", *words).exit_code == 0
    (request,) = fake_run.requests
    assert request.impl == "mypkg"


@pytest.mark.parametrize("words", [(), ("mypkg", "--impl", "other"), ("",)], ids=" ".join)
def test_one_thing_to_judge_is_required(conform, fake_run, words):
    result = conform("run", *words)
    assert result.exit_code == 2
    assert "name" in result.stderr
    assert fake_run.requests == []


def test_what_is_left_out_is_not_judged_and_the_verdict_says_so(process, tmp_path):
    (tmp_path / "mine.py").write_text("def scaled_dot_product_attention(q, k, v, mask=None):\n    return v\n")
    path = tmp_path / "r.json"
    wanted = ("--only", "SDPA-OUT-SHAPE,SDPA-SCALE", "--without", "SDPA-SCALE", "--json", str(path))
    result = process("run", "--impl", str(tmp_path / "mine.py"), *wanted)
    found = json.loads(path.read_text())
    assert [clause["id"] for clause in found["clauses"]] == ["SDPA-OUT-SHAPE"]
    assert found["without"] == ["SDPA-SCALE"]
    assert "of core without SDPA-SCALE" in " ".join(result.stdout.split())


@pytest.mark.parametrize("nowhere", [True, False], ids=["nothing-binds", "something-declared"])
def test_where_nothing_binds_the_draft_is_offered(conform, fake_run, monkeypatch, nowhere):
    monkeypatch.setattr("conformkit.conformance.apps.adapt.offer.offer", lambda _: "conform adapt finds 6 of 7")
    fake_run.error = LoadFailure("mypkg exports none of it", advice=("looked for it",), nowhere=nowhere)
    result = conform("run", "--impl", "mypkg", "--strict")  # other runs look for it themselves
    assert result.exit_code == 3
    assert ("conform adapt finds 6 of 7" in result.stderr) is nowhere
    assert "looked for it" in result.stderr


@pytest.mark.parametrize(("verdict", "code"), [(Verdict.PASS, 3), (Verdict.NOT_RUN, 3), (Verdict.FAIL, 1)])
def test_a_failure_ends_with_1_also_where_another_part_cannot_be_judged(
    conform, fake_run, monkeypatch, small_law, verdict, code
):
    """Catches a red clause that ends with 3, which a script reads as "not judged"."""
    fake_run.results[1] = Result(small_law["SDPA-SCALE"], verdict)
    whole, why = fake_run.__call__, Unusable("it cannot be built")
    monkeypatch.setattr(runner, "run", lambda *a, **k: replace(whole(*a, **k), unusable={"FeedForward": why}))
    assert conform("run", "--impl", "mypkg").exit_code == code
    assert conform("run", "--impl", "mypkg", "--exit-zero").exit_code == 3


def test_a_part_that_cannot_be_judged_is_told_and_ends_with_3(conform, fake_run, monkeypatch):
    why = Unusable("binding unsure: the weights of FeedForward could not be bound", "m:F", ("yours: w [2]",))
    whole = fake_run.__call__
    monkeypatch.setattr(runner, "run", lambda *a, **k: replace(whole(*a, **k), unusable={"FeedForward": why}))
    result = conform("run", "--impl", "mypkg")
    assert result.exit_code == 3
    assert "error: binding unsure: the weights of FeedForward could not be bound (m:F)" in result.stdout
    assert "yours: w [2]" in result.stdout
