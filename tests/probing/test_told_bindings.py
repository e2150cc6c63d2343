"""What a file says wrongly of right code is told as that: masks read the other way round, the batch not first."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from conformkit.conformance import check
from conformkit.conformance.engine.results import Report

CODE = """
    import math

    import torch
    from torch import nn


    class Mixer(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))

        def forward(self, x, blocked):
            x = ENTER
            q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
            scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(blocked, -math.inf)
            return LEAVE(self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2)))
"""
BINDING = """
    [components.MultiHeadAttention]
    path = "theirs:Mixer"
    construct = { width = "d_model", heads = "num_heads" }
    call = ["x", "mask"]
    causal = "mask"
"""
HIDES = 'mask = { kinds = ["bool"], true = "hide" }'
FIRST = ("x.transpose(0, 1)", "(lambda out: out.transpose(0, 1))")
PLAIN = ("x", "(lambda out: out)")


def judged(folder: Path, lines: str, entering: tuple[str, str]) -> Report:
    code = textwrap.dedent(CODE).replace("ENTER", entering[0]).replace("LEAVE", entering[1])
    (folder / "theirs.py").write_text(code, encoding="utf-8")
    (folder / "conform.toml").write_text(textwrap.dedent(BINDING) + lines, encoding="utf-8")
    return check(folder / "theirs.py", only=["MHA-SHAPE", "MHA-CAUSAL"])


@pytest.mark.parametrize(
    ("lines", "entering", "told"),
    [
        ('mask = { kinds = ["bool"] }', PLAIN, 'mask = { true = "hide" } under [components.MultiHeadAttention]'),
        (HIDES, FIRST, 'layout = "sequence first" under [components.MultiHeadAttention]'),
    ],
    ids=["polarity", "layout"],
)
def test_what_the_file_says_wrongly_is_told(tmp_path: Path, lines: str, entering: tuple[str, str], told: str) -> None:
    report = judged(tmp_path, lines, entering)
    assert not report.conforms
    assert [note for note in report.notes if told in note]


@pytest.mark.parametrize(("lines", "entering"), [(HIDES, PLAIN), (f'{HIDES}\nlayout = "sequence first"', FIRST)])
def test_what_it_says_rightly_is_not(tmp_path: Path, lines: str, entering: tuple[str, str]) -> None:
    report = judged(tmp_path, lines, entering)
    assert report.conforms
    assert not [note for note in report.notes if "if that is meant" in note]
