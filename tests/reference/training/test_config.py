"""Recipes are complete, and a refusal names the key."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomli_w

from conformkit.reference.training.config import (
    TrainingConfig,
    TrainingConfigError,
    parse,
    read_config,
    recipe,
    recipes,
    shortened,
    with_changes,
)
from conformkit.reference.training.rates import rate_at
from conformkit.reference.training.run import build_model

MINIMAL = """
[model]
d_model = 8
num_heads = 2
num_layers = 1
d_ff = 16
block_size = 4
[training]
steps = 10
batch_size = 2
"""


@pytest.mark.parametrize(
    ("name", "vocabulary", "parameters"),
    [("tiny", 65, 107_969), ("shakespeare", 500, 490_740), ("capstone", 65, 25_270_337), ("nanogpt", 65, 10_745_088)],
)
def test_a_recipe_is_the_model_of_its_source(name: str, vocabulary: int, parameters: int) -> None:
    model = build_model(recipe(name), vocabulary)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


def test_every_recipe_says_what_it_is_and_where_it_is_from() -> None:
    assert {"tiny", "shakespeare", "capstone", "nanogpt", "copy", "translation"} <= set(recipes())
    assert all(found.title and found.source for found in recipes().values())


@pytest.mark.parametrize("name", sorted(recipes()))
def test_a_configuration_written_and_read_is_the_same(name: str) -> None:
    assert parse(tomli_w.dumps(recipe(name).as_document())) == recipe(name)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("d_model = 8", "d_model = 0", "model.d_model is 0, expected at least 1"),
        ("d_model = 8", 'd_model = "8"', "model.d_model is '8', expected an integer"),
        ("d_model = 8", "d_model = true", "model.d_model is True, expected an integer"),
        ("d_model = 8", "d_model = 9", "model.d_model is 9, expected a multiple of model.num_heads = 2"),
        ("d_model = 8", "", "model.d_model is missing, expected an integer"),
        ("d_model = 8", "d_model = 8\nd_modle = 8", r"a key is 'model.d_modle', expected .*; nearest: model.d_model"),
        ("[training]", "[trainning]", r"a key is 'trainning', expected .*; nearest: training"),
        ("[model]", "model = 3\n[data]", "model is 3, expected a table"),
        ("steps = 10", "steps = 10\n[speed]\nprecision = 'int8'", "speed.precision is 'int8', expected one of float32"),
        ("steps = 10", "steps = nan", "training.steps is nan, expected an integer"),
        ("steps = 10", "steps = 10\n[optimizer]\npeak = nan", "optimizer.peak is nan, expected above 0 and"),
        ("steps = 10", "steps = 10\n[optimizer]\nfloor = 1.0", "optimizer.floor is 1.0, expected at most opt"),
        ("steps = 10", "steps = 10\n[variant]\nnorm = 'batch'", "variant.norm is 'batch', expected one of layernorm"),
        ("steps = 10", "steps = 10\n[variant]\ntied = 1", "variant.tied is 1, expected true or false"),
        ("steps = 10", "steps = 10\n[samples]\nprompts = 'x'", "samples.prompts is 'x', expected a list"),
        ("steps = 10", "steps = 10\n[samples]\ntemperatures = [-1]", "samples.temperatures is"),
        ("steps = 10", "steps = 10\n[data]\nfraction = 1.0", "data.fraction is 1.0, expected above 0 and below 1"),
        ("steps = 10", "steps =", "the configuration is no TOML"),
    ],
    ids=[
        "zero", "text", "boolean", "heads", "missing", "key", "table", "scalar", "choice", "float", "nan", "floor",
        "variant", "variant-type", "list", "negative", "fraction", "syntax",
    ],
)  # fmt: skip
def test_a_value_that_can_not_be_is_refused_by_its_key(old: str, new: str, says: str) -> None:
    assert MINIMAL.count(old) == 1
    batch, steps = ("batch_size = 2\n", "steps = 10")
    text = MINIMAL.replace(batch, "").replace(steps, batch + steps).replace(old, new)
    with pytest.raises(TrainingConfigError, match=says):
        parse(text)


@pytest.mark.parametrize(
    ("schedule", "warmup", "says"),
    [("inverse_sqrt", 0, "at least 1 for inverse_sqrt"), ("cosine", 10, "fewer than training.steps = 10")],
)
def test_a_warm_up_fits_its_schedule(schedule: str, warmup: int, says: str) -> None:
    with pytest.raises(TrainingConfigError, match=says):
        with_changes(parse(MINIMAL), {"optimizer.schedule": schedule, "optimizer.warmup": warmup})


def test_single_settings_are_changed_and_checked() -> None:
    config = with_changes(parse(MINIMAL), {"model.d_model": 12, "variant.norm": "rmsnorm", "optimizer.peak": 1})
    assert (config.model.d_model, config.variant.norm, config.optimizer.peak) == (12, "rmsnorm", 1.0)
    for name, says in [
        ("d_model", "expected TABLE.KEY"),
        ("modle.d_model", "nearest: model"),
        ("title.x", "TABLE.KEY"),
    ]:
        with pytest.raises(TrainingConfigError, match=says):
            with_changes(config, {name: 1})
    with pytest.raises(TrainingConfigError, match=r"the recipe is 'tinny', expected one of .*; nearest: tiny"):
        recipe("tinny")


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(TrainingConfigError, match=r"a\.toml is no text in UTF-8"):
        read_config(tmp_path / "a.toml")


def rates(**changes: object) -> list[float]:
    config: TrainingConfig = with_changes(
        parse(MINIMAL), {f"optimizer.{name}": value for name, value in changes.items()}
    )
    return [rate_at(config, step) for step in range(1, 11)]


def test_the_first_update_has_neither_no_rate_nor_all_of_it() -> None:
    constant = rates(peak=1.0, warmup=4)
    assert constant == [0.25, 0.5, 0.75, 1.0, 1, 1, 1, 1, 1, 1]
    assert rates(peak=1.0) == [1.0] * 10
    cosine = rates(peak=1.0, floor=0.1, schedule="cosine", warmup=2)
    assert cosine[:2] == [0.5, 1.0]
    assert cosine[-1] == pytest.approx(0.1)
    inverse = rates(schedule="inverse_sqrt", warmup=4)
    assert max(inverse) == inverse[3] == pytest.approx(8**-0.5 * 0.5)


@pytest.mark.parametrize(
    ("changes", "warmup"),
    [
        ({"training.steps": 60}, 3),
        ({"training.steps": 2}, 1),
        ({"training.steps": 20_000}, 500),
        ({"training.steps": 6000, "optimizer.warmup": 7}, 7),
        ({}, 500),
    ],
)
def test_fewer_steps_shorten_the_warm_up_too(changes: dict[str, int], warmup: int) -> None:
    """Would break if a short trial of a recipe ended before its rate had risen, or were refused."""
    capstone = recipe("capstone")
    assert with_changes(capstone, shortened(capstone, changes)).optimizer.warmup == warmup


def test_every_recipe_can_be_tried_for_a_few_steps() -> None:
    for config in recipes().values():
        for steps in (1, 2, 60):
            assert with_changes(config, shortened(config, {"training.steps": steps})).training.steps == steps


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"data.task": "sort", "data.tokenizer": "bpe"}, "expected char or word for data.task = 'sort'"),
        ({"data.tokenizer": "word"}, "expected char or bpe for a language model"),
        ({"data.task": "sort", "data.shortest": 9}, "data.shortest is 9, expected at most data.longest = 8"),
        ({"data.task": "summary"}, "data.task is 'summary', expected one of"),
        ({"training.label_smoothing": 1.0}, "at least 0 and below 1"),
        ({"data.symbols": 27}, "from 2 to 26"),
    ],
)
def test_a_task_and_its_settings_fit_together(changes: dict[str, object], says: str) -> None:
    with pytest.raises(TrainingConfigError, match=says):
        with_changes(recipe("tiny"), changes)
