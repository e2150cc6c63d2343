"""One thread, since the models are tiny and cores are shared; and runs small enough to train in a moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner, Result

from conformkit.cli.app import app
from conformkit.reference.training import config as configs
from conformkit.reference.training.config import TrainingConfig
from conformkit.reference.training.session import TrainingSession, begin

SMALL = """
[data]
corpus = "{corpus}"
[model]
d_model = 16
num_heads = 2
num_layers = 2
d_ff = 24
block_size = 8
dropout = 0.1
[optimizer]
peak = 1e-2
schedule = "cosine"
warmup = 3
floor = 1e-3
max_norm = 1.0
weight_decay = 0.1
[training]
steps = 12
batch_size = 4
eval_interval = 4
eval_batches = 2
[samples]
temperatures = [0.0, 1.0]
tokens = 6
"""
TEXT = "the quick brown fox jumps over the lazy dog.\n" * 40


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def conform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run a command line in this process, in a separate folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def call(*arguments: object) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="conform")

    return call


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture
def config(corpus: Path) -> TrainingConfig:
    return configs.parse(SMALL.format(corpus=corpus))


@pytest.fixture
def session(config: TrainingConfig, tmp_path: Path) -> TrainingSession:
    return begin(config, tmp_path / "run")
