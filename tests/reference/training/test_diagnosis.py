"""Each thing that a curve can say is said of a run that has it, and of no other; leaks and dead parts are found."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from conformkit.cli.app import app
from conformkit.reference import TinyTransformerLM, Transformer
from conformkit.reference.training import metrics
from conformkit.reference.training.anatomy import anatomy_of_language_model, anatomy_of_translator
from conformkit.reference.training.config import TrainingConfig, with_changes
from conformkit.reference.training.diagnosis import curves, diagnose
from conformkit.reference.training.inspection import inside, inspect_run
from conformkit.reference.training.loop import DivergedError, train
from conformkit.reference.training.progress import Silent
from conformkit.reference.training.session import begin
from conformkit.spec.variants import CANONICAL


def steps(losses: list[float], rate: float = 1e-3, norms: list[float] | None = None) -> list[dict[str, Any]]:
    """Return records of updates with a little noise, as batches have it."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(len(losses), generator=generator).tolist()
    return [
        {
            "kind": "step", "step": n, "loss": None if math.isnan(loss) else loss * (1 + 0.02 * noise[n - 1]),
            "rate": rate, "norm": norms[n - 1] if norms else 1.0, "seconds": 0.1,
        }
        for n, loss in enumerate(losses, 1)
    ]  # fmt: skip


def evaluations(losses: list[float], every: int = 50) -> list[dict[str, Any]]:
    return [{"kind": "evaluation", "step": every * n, "loss": loss} for n, loss in enumerate(losses, 1)]


def decay(start: float, end: float, half: float, count: int) -> list[float]:
    return [end + (start - end) * 0.5 ** (n / half) for n in range(count)]


def names(records: list[dict[str, Any]], **known: Any) -> list[str]:
    return [finding.name for finding in diagnose(curves(records, **known))]


GOOD = decay(4.0, 1.5, 40, 500)
VALIDATION = [GOOD[n] + 0.05 for n in range(49, 500, 50)]


def test_nothing_is_said_of_a_run_as_it_should_be() -> None:
    assert names(steps(GOOD) + evaluations(VALIDATION)) == []
    assert names(steps(decay(2.5, 1.0, 100, 500)) + evaluations([1.9, 1.4, 1.2, 1.1, 1.03, 1.01]), floor=0.99) == []


def test_nothing_is_said_of_a_few_steps() -> None:
    assert names(steps([4.0] * 30)) == []


@pytest.mark.parametrize(
    ("records", "found"),
    [
        (steps(decay(4.0, 1.5, 40, 300) + [1.5 + 0.01 * n for n in range(200)]), ["diverged"]),
        (steps([4.0] * 500), ["not learning"]),
        (steps([4.0] * 500, rate=1e-6), ["rate too low"]),
        (steps([4.0 - 0.002 * n for n in range(500)], rate=1e-4), ["rate too low"]),
        (steps(decay(4.0, 9.0, 10, 60) + decay(9.0, 3.0, 60, 440)), ["rate too high"]),
        (steps([x * (3.0 if n % 60 == 59 else 1.0) for n, x in enumerate(GOOD)]), ["rate too high"]),
        (
            steps(decay(4.0, 0.3, 60, 500)) + evaluations([2.2, 1.8, 1.7, 1.75, 1.9, 2.1, 2.3, 2.5, 2.7, 2.9]),
            ["overfit"],
        ),
        (steps(GOOD) + evaluations([2.0, 1.7, 1.65, 1.6, 1.6, 1.6, 1.6, 1.601, 1.6, 1.6, 1.6, 1.6]), ["plateau"]),
        (steps(GOOD) + evaluations([2.0, 0.01, 0.005, 0.004]), ["too good"]),
        (steps(GOOD, norms=[1.0] * 450 + [1e-9] * 50), ["vanishing gradients"]),
        (steps(GOOD, norms=[0.5] * 400 + [80.0] * 100), ["exploding gradients"]),
    ],
    ids=[
        "diverged", "flat", "flat-slow", "slow", "above-start", "spikes", "overfit", "plateau", "too-good", "vanish",
        "explode",
    ],
)  # fmt: skip
def test_each_curve_is_read_for_what_it_is(records: list[dict[str, Any]], found: list[str]) -> None:
    assert names(records) == found


def test_a_known_least_loss_decides_what_is_too_good_and_what_is_no_plateau() -> None:
    settled = [2.0, 1.0, 0.995, 0.995, 0.995, 0.995, 0.995, 0.995]
    assert names(steps(GOOD) + evaluations(settled), floor=0.99) == []
    assert names(steps(GOOD) + evaluations(settled), floor=1.2)[0] == "too good"
    perfect = evaluations([1.0, 0.1, 0.01, 0.001, 0.001, 0.001, 0.001])
    assert names(steps(decay(2.5, 0.001, 40, 500)) + perfect, text=False) == []


def test_where_numbers_stop_being_finite_is_told_with_what_came_before() -> None:
    records = steps([*GOOD[:100], math.nan, math.nan], norms=[1.0] * 99 + [500.0, 1.0, 1.0])
    (finding,) = diagnose(curves(records))
    assert (finding.name, finding.step) == ("not finite", 101)
    assert finding.problem == (
        "the loss is NaN or infinite at step 101, here first; the norm of the gradients was 500 just before, 1 usually"
    )
    calm = steps([*GOOD[:100], math.nan])
    assert "just before" not in diagnose(curves(calm))[0].problem


def trained(config: TrainingConfig, place: Path, **changes: Any) -> Path:
    settings = {"model.dropout": 0.0, "training.steps": 200, "training.eval_interval": 20, **changes}
    session = begin(with_changes(config, settings), place)
    with contextlib.suppress(DivergedError):
        train(session.run, session.folder, Silent(), looked=session.looked)
    return place


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, set()),
        pytest.param({"optimizer.peak": 3e-6, "optimizer.floor": 0.0}, {"rate too low"}, marks=pytest.mark.full),
        pytest.param(
            {"optimizer.peak": 3.0, "optimizer.schedule": "constant", "optimizer.weight_decay": 0.0},
            {"rate too high"},
            marks=pytest.mark.full,
        ),
        ({"optimizer.peak": 1000.0, "optimizer.weight_decay": 1e6, "optimizer.max_norm": 9e9}, {"not finite"}),
    ],
    ids=["good", "slow", "hot", "broken"],
)
def test_real_runs_are_read_for_what_they_are(
    config: TrainingConfig, tmp_path: Path, changes: dict[str, Any], found: set[str]
) -> None:
    place = trained(config, tmp_path / "run", **changes)
    said = {one.name for one in inspect_run(place).findings}
    assert found <= said, said
    if not found:
        assert said == set()


@pytest.mark.full(guard="test_each_curve_is_read_for_what_it_is")
def test_a_text_learned_by_heart_is_overfit(config: TrainingConfig, tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(1)
    letters = torch.randint(12, (500,), generator=generator).tolist()
    (tmp_path / "noise.txt").write_text("".join("abcdefghijkl"[n] for n in letters))
    place = trained(
        config, tmp_path / "run",
        **{"data.corpus": str(tmp_path / "noise.txt"), "model.d_model": 32, "model.d_ff": 96, "training.batch_size": 16,
           "optimizer.weight_decay": 0.0},
    )  # fmt: skip
    assert "overfit" in {one.name for one in inspect_run(place).findings}


def model() -> TinyTransformerLM:
    torch.manual_seed(0)
    return TinyTransformerLM(11, 16, 4, 2, 24, 8, variant=CANONICAL.but(activation="relu"))


IDS = torch.randint(11, (6, 8), generator=torch.Generator().manual_seed(0))


def test_a_sound_model_shows_heads_that_differ_and_no_leak() -> None:
    found = anatomy_of_language_model(model(), IDS)
    assert len(found.heads) == 8
    assert list(found.leaks) == []
    assert list(inside(found)) == []
    assert all(0 < head.share <= 1 and 0 < head.entropy <= head.most for head in found.heads)
    assert all(head.unlike is not None and 0 < head.unlike < 1 for head in found.heads)


def test_equal_weights_have_a_known_distance_and_entropy() -> None:
    even = model()
    with torch.no_grad():
        for block in even.blocks:
            block.attention.q.weight.zero_()
    found = anatomy_of_language_model(even, IDS)
    head = found.heads[0]
    assert head.distance == pytest.approx(sum(t / 2 for t in range(1, 8)) / 7)  # the first query sees one key only
    assert head.entropy == pytest.approx(head.most)
    assert head.unlike == pytest.approx(0, abs=1e-6)
    assert [finding.name for finding in inside(found)] == ["even heads"]


def test_dead_heads_equal_heads_and_dead_units_are_named() -> None:
    broken = model()
    with torch.no_grad():
        broken.blocks[0].attention.out.weight[:, 4:8] = 0  # what head 2 gives is not read
        broken.blocks[0].feed_forward.up.bias[:10] = -100.0
        for layer in (broken.blocks[1].attention.q, broken.blocks[1].attention.k):
            layer.weight.copy_(layer.weight[:4].repeat(4, 1))
    found = {finding.name: finding.problem for finding in inside(anatomy_of_language_model(broken, IDS))}
    assert set(found) == {"dead heads", "dead units", "equal heads"}
    assert found["dead heads"].startswith("layer 1, head 2:")
    assert found["equal heads"].startswith("layer 2:")
    assert found["dead units"] == "blocks.0.feed_forward: 10 of 24 units are 0 at every position"


def test_a_leak_of_the_future_is_found() -> None:
    leaking = model()
    leaking.blocks[1].attention.causal = False
    leaks = anatomy_of_language_model(leaking, IDS).leaks
    assert [leak.what for leak in leaks] == ["the last position, by the logits before it"]
    (finding,) = [one for one in inside(anatomy_of_language_model(leaking, IDS)) if one.name == "mask leak"]
    assert "of what should be hidden arrives" in finding.problem


def translator() -> tuple[Transformer, torch.Tensor, torch.Tensor]:
    torch.manual_seed(2)
    src = torch.tensor([[4, 5, 6, 7], [8, 9, 0, 0]])
    tgt = torch.tensor([[1, 5, 6, 7], [1, 8, 9, 0]])
    return Transformer(11, 11, 16, 4, 1, 2, 24, 8), src, tgt


def test_an_encoder_decoder_has_three_kinds_of_attention_and_no_leak() -> None:
    found = anatomy_of_translator(*translator())
    kinds = [head.place.partition(",")[0] for head in found.heads]
    assert sorted(set(kinds)) == ["cross 1", "cross 2", "decoder 1", "decoder 2", "encoder 1"]
    assert all((head.distance is None) == head.place.startswith("cross") for head in found.heads)
    assert list(found.leaks) == []


def test_leaks_of_an_encoder_decoder_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    model, src, tgt = translator()
    everything = lambda size, device=None: torch.ones(size, size, dtype=torch.bool, device=device)  # noqa: E731
    monkeypatch.setattr("conformkit.reference.seq2seq.model.create_causal_mask", everything)
    assert {leak.what.partition(",")[0] for leak in anatomy_of_translator(model, src, tgt).leaks} == {
        "later target positions", "the last target position",
    }  # fmt: skip
    monkeypatch.undo()
    real = lambda ids, pad_id=0: torch.ones_like(ids, dtype=torch.bool)[:, None, None, :]  # noqa: E731
    monkeypatch.setattr("conformkit.reference.seq2seq.model.create_padding_mask", real)
    assert {leak.what.partition(",")[0] for leak in anatomy_of_translator(model, src, tgt).leaks} == {
        "padding of the source",
    }  # fmt: skip


def test_the_command_prints_the_curve_the_heads_and_what_stands_out(
    config: TrainingConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    place = trained(config, tmp_path / "run", **{"training.steps": 60})
    result = CliRunner().invoke(app, ["inspect", str(place), "--json", str(tmp_path / "x.json")], prog_name="conform")
    assert result.exit_code == 0, result.output
    assert "validation loss: " in result.stdout
    assert "layer 2, head 2" in result.stdout
    assert "Nothing stands out: the curves" in result.stdout
    assert "all ids alike would give ln V = " in result.stdout
    assert '"schema": "conformkit.run-inspection/1"' in (tmp_path / "x.json").read_text()
    (place / "config.toml").write_text((place / "config.toml").read_text().replace("steps = 60", "steps = 90"))
    stopped = CliRunner().invoke(app, ["inspect", str(place)], prog_name="conform")
    assert f"of 90; continue: conform train --resume {place}" in " ".join(stopped.stdout.split())
    assert "Nothing stands out so far." in stopped.stdout
    best = place / "checkpoints" / "best.safetensors"
    alone = CliRunner().invoke(app, ["inspect", str(best)], prog_name="conform")
    assert "validation loss" not in alone.stdout
    assert "layer 1, head 1" in alone.stdout
    (tmp_path / "corpus.txt").unlink()
    without = CliRunner().invoke(app, ["inspect", str(best)], prog_name="conform")
    assert "drawn ids, since the text can't be read" in " ".join(without.stdout.split())
    gone = CliRunner().invoke(app, ["inspect", str(tmp_path / "none")], prog_name="conform")
    assert gone.exit_code == 2
    assert "there is no" in gone.stderr
    cut = best.read_bytes()
    best.unlink()
    best.write_bytes(cut[:100])
    assert CliRunner().invoke(app, ["inspect", str(best)], prog_name="conform").exit_code == 3


def test_a_run_that_broke_before_its_first_checkpoint_is_read(config: TrainingConfig, tmp_path: Path) -> None:
    session = begin(config, tmp_path / "run")
    metrics.append(session.folder.metrics, [{"kind": "step", "step": 1, "loss": None, "rate": 0.1, "norm": 1.0}])
    found = inspect_run(session.folder.path)
    assert [one.name for one in found.findings] == ["not finite"]
