"""Ways of sampling are measured as their definitions say; the repetition penalty lowers what was written already."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from conformkit.cli.app import app
from conformkit.reference import TinyTransformerLM
from conformkit.reference.errors import SizeError
from conformkit.reference.kv_cache import continue_ids
from conformkit.reference.repetition import penalized
from conformkit.reference.training.loop import train
from conformkit.reference.training.progress import Silent
from conformkit.reference.training.samplers import WAYS, _surprise, distinct, self_bleu
from conformkit.reference.training.session import TrainingSession


def test_ids_of_the_text_get_less_probable_whatever_their_sign() -> None:
    logits = torch.tensor([[2.0, -2.0, 0.5, 0.0], [1.0, 1.0, 1.0, 1.0]])
    found = penalized(logits, torch.tensor([[0, 1, 1], [3, 3, 3]]), 2.0)
    assert found.tolist() == [[1.0, -4.0, 0.5, 0.0], [1.0, 1.0, 1.0, 0.5]]
    assert torch.equal(penalized(logits, torch.tensor([[0], [1]]), 1.0), logits)
    for bad in (0.5, math.nan, math.inf):
        with pytest.raises(SizeError, match="repetition_penalty"):
            penalized(logits, torch.tensor([[0], [1]]), bad)


def test_a_penalty_makes_greedy_texts_repeat_less() -> None:
    torch.manual_seed(0)
    model, start = TinyTransformerLM(12, 16, 2, 1, 24, 8), torch.tensor([[3]])
    plain = continue_ids(model, start, 30, 0.0)
    assert torch.equal(continue_ids(model, start, 30, 0.0, repetition_penalty=1.0), plain)
    varied = continue_ids(model, start, 30, 0.0, repetition_penalty=5.0)
    assert len(set(varied[0].tolist())) > len(set(plain[0].tolist()))


def test_distinct_counts_different_n_grams() -> None:
    assert distinct([[1, 2, 1, 2], [1, 2, 3, 4]], 2) == 4 / 6  # 12 21 12 | 12 23 34
    assert distinct([[1, 1]], 1) == 0.5
    assert distinct([[1]], 2) == 0.0


def test_self_bleu_is_one_for_equal_texts_and_zero_for_texts_that_share_nothing() -> None:
    assert self_bleu([[1, 2, 3, 4, 5]] * 3) == pytest.approx(1)
    assert self_bleu([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]) == 0
    assert self_bleu([[1, 2, 3, 4, 5]]) == 0
    half = self_bleu([[1, 2, 3, 4, 5], [1, 2, 3, 4, 6]])
    assert half == pytest.approx((4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)


@pytest.mark.parametrize("length", [3, 8, 9, 25])
def test_the_surprise_of_each_id_is_given_what_the_model_can_see(length: int) -> None:
    torch.manual_seed(0)
    model = TinyTransformerLM(12, 16, 2, 1, 24, 8).eval()
    ids = torch.randint(12, (2, 2 + length))
    found = _surprise(model, ids, 2)
    assert found.numel() == 2 * length
    if length <= 6:  # then all of it is one window
        log_p = model(ids[:, :-1]).log_softmax(dim=-1).gather(-1, ids[:, 1:, None])[..., 0]
        torch.testing.assert_close(found.sum(), -log_p[:, 1:].sum())


def test_ways_are_compared_as_a_table_and_a_picture(
    session: TrainingSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(session.run, session.folder, Silent())

    def compare(*options: Any) -> Any:
        return CliRunner().invoke(app, ["sample", str(session.folder.path), *map(str, options)], prog_name="conform")

    result = compare("--tokens", 20, "--compare", tmp_path / "ways", "--prompt", "the ")
    assert result.exit_code == 0, result.output
    rows = {row["way"]: row for row in json.loads((tmp_path / "ways" / "samplers.json").read_text())}
    assert set(rows) == set(WAYS)
    assert rows["greedy"]["self_bleu"] == pytest.approx(1)  # eight equal texts
    assert rows["greedy"]["distinct_4"] < rows["temperature 1.5"]["distinct_4"]
    assert rows["greedy"]["perplexity"] < rows["temperature 1.5"]["perplexity"]
    assert all(len(row["texts"]) == 8 and len(row["texts"][0]) == 20 for row in rows.values())
    assert (tmp_path / "ways" / "samplers.png").read_bytes().startswith(b"\x89PNG")
    assert result.stdout.splitlines()[0].split() == [
        "way", "distinct-1", "distinct-2", "distinct-4", "self-BLEU", "perplexity",
    ]  # fmt: skip
    beams = compare("--beam", 2, "--tokens", 5, "--prompt", "the ")
    assert beams.stdout.count("--- 'the ', score") == 2
    (tmp_path / "taken").write_text("x")
    refused = compare("--compare", tmp_path / "taken", "--tokens", 2)
    assert refused.exit_code == 2
    assert "not writable" in refused.stderr
    assert compare("--repetition-penalty", 0.5).exit_code == 2
