"""An encoder-decoder so small, and a task so short, that a run takes a moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.reference.training import config as configs
from conformkit.reference.training.config import TrainingConfig
from conformkit.reference.training.pairs.session import PairsSession, begin_pairs

SMALL = """
[data]
task = "reverse"
pairs = 60
symbols = 5
shortest = 2
longest = 4
[model]
d_model = 16
num_heads = 2
num_layers = 1
d_ff = 24
block_size = 8
dropout = 0.1
attention_dropout = 0.1
embedding_dropout = 0.1
[optimizer]
schedule = "inverse_sqrt"
warmup = 4
[training]
steps = 12
batch_size = 4
eval_interval = 4
eval_batches = 2
label_smoothing = 0.1
buckets = 3
[speed]
threads = 1
[samples]
held_out = 5
beam_width = 2
"""


@pytest.fixture
def config() -> TrainingConfig:
    return configs.parse(SMALL)


@pytest.fixture
def session(config: TrainingConfig, tmp_path: Path) -> PairsSession:
    return begin_pairs(config, tmp_path / "run")
