"""docs/results.md is what benchmarks/results.py makes of the files that runs wrote: no figure in it is typed."""

import importlib.util
import itertools
import json
import re
import shlex
import sys
from pathlib import Path

import typer

from conformkit.cli.app import app
from conformkit.reference.training.ablation import read_table
from conformkit.reference.training.config import recipes
from conformkit.spec.profiles import PROFILES

ROOT = Path(__file__).parents[2]


def script():
    spec = importlib.util.spec_from_file_location("results", ROOT / "benchmarks" / "results.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["results"] = module
    spec.loader.exec_module(module)
    return module


results = script()


def test_the_page_is_made_of_what_runs_wrote():
    """Would break if a figure were typed into the page, or a result were committed without its page."""
    assert (ROOT / "docs" / "results.md").read_text(encoding="utf-8") == results.page()


def test_a_figure_that_changes_changes_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "FOUND", tmp_path)
    assert "not run yet" in results.page()
    found = {"tokens_a_second": 123.0, "beam_by_greedy": 2.5, "date": "2026-01-01", "machine": "m", "torch": "t"}
    (tmp_path / "decoding.json").write_text(json.dumps(found))
    assert "123 tokens a second; 2.50 times greedy" in results.page()
    assert "Measured 2026-01-01, m, torch t." in results.page()


def test_a_table_of_variants_tells_how_long_each_took():
    """Would break if the capstone's last column, the wall time, were lost between a run and the page."""
    one = next(one for one in results.experiments() if one["id"] == "capstone-eighth")
    found = {"rows": [{"axis": "depth", "name": "2 layers", "parameters": 1234, "loss": 1.5, "seconds": 7.4}]}
    assert results.table(one, found)[-1] == "| depth | 2 layers | 1,234 | 1.5000 |  | 7 |"
    del found["rows"][0]["seconds"]
    assert results.table(one, found)[-1] == "| depth | 2 layers | 1,234 | 1.5000 |  |"


def test_ways_of_sampling_are_a_table():
    """Would break if a column of the comparison were exchanged with another or lost."""
    one = next(one for one in results.experiments() if one["id"] == "samplers")
    way = {"way": "greedy", "distinct_1": 0.1, "distinct_2": 0.2, "distinct_4": 0.4, "self_bleu": 0.9, "perplexity": 2}
    lines = results.table_of_ways(one, {"loss": 1.5, "ways": [way]})
    assert lines[-3] == "| way | distinct-1 | distinct-2 | distinct-4 | self-BLEU | perplexity |"
    assert lines[-1] == "| greedy | 0.100 | 0.200 | 0.400 | 0.900 | 2.00 |"


def test_both_tasks_of_bert_are_told():
    """Would break if the next sentence, which a tiny BERT may not learn at all, were left out of the page."""
    found = {"loss": 3.5, "step": 3000, "accuracy": 0.25, "next_sentence": 0.484, "seconds": None}
    assert results.told_of_training(found) == (
        "validation loss 3.5000 at step 3,000; 25.0% right; next sentence 48.4% right"
    )


def test_every_experiment_names_a_command_that_exists():
    known = {"train", "ablate", "run", "compare", "speed", "gpu"}
    found = results.experiments()
    assert len({one["id"] for one in found}) == len(found)
    for one in found:
        assert one["kind"] in known
        assert one["what"]
        assert one["source"]
        assert one["printed"]
        assert one["why"]
        words = shlex.split(results.command(one))
        named = dict(itertools.pairwise(words))
        assert named.get("--recipe", "tiny") in recipes()
        assert named.get("--profile", "core") in PROFILES
        if "--ablate" in named:
            assert read_table(named["--ablate"])
        if one["kind"] == "speed":
            assert callable(getattr(results, one["id"]))


def test_every_command_of_the_page_parses():
    """Would break if an option that the page tells readers to use were renamed or removed."""
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    commands = re.findall(r"`((?:conform|python) [^`]+)`", (ROOT / "docs" / "results.md").read_text(encoding="utf-8"))
    assert len(commands) > len(results.experiments())
    for text in commands:
        program, verb, *rest = shlex.split(text)
        if program == "python":
            assert (ROOT / verb).is_file()
            assert rest in ([], *(["--only", one["id"]] for one in results.experiments()))
        else:
            assert group.commands[verb].make_context(verb, rest).params


def test_every_result_belongs_to_an_experiment():
    ids = {one["id"] for one in results.experiments()}
    assert {path.stem for path in (ROOT / "benchmarks" / "results").glob("*.json")} <= ids
    assert all(re.fullmatch(r"[a-z0-9-]+", name) for name in ids)
