"""Attention maps are the model's own weights; the pictures show what was measured, and nothing else."""

from __future__ import annotations

import math

import pytest
import torch

from conformkit.reference.training import figures
from conformkit.reference.training.config import TrainingConfig, with_changes
from conformkit.reference.training.corpus import Corpus, tokenize
from conformkit.reference.training.pages import visible
from conformkit.reference.training.session import TrainingSession
from conformkit.reference.training.source import floor_in_windows

STEPS = [
    {"kind": "step", "step": n, "loss": 10.0 if n == 1 else 0.0, "rate": 0.1 * n, "norm": float(n % 2), "seconds": 0.1}
    for n in range(1, 151)
]
EVALUATIONS = [
    {"kind": "evaluation", "step": step, "loss": loss, "best": True} for step, loss in ((50, 3.0), (100, 1.0), (150, 2))
]


def test_panels_show_raw_smoothed_best_floor_and_mean() -> None:
    figure = figures.training_figure([*STEPS, *EVALUATIONS], 0.5, "a $title$")
    loss, validation, rate, norm = figure.axes
    raw, smooth, floor = loss.get_lines()
    assert list(raw.get_ydata())[:3] == [10, 0, 0]
    kept = 1 - 10 / 150  # in a short run α is more than 0.01
    second, third = 10 * kept / (1 + kept), 10 * kept**2 / (1 + kept + kept**2)
    assert list(smooth.get_ydata())[:3] == pytest.approx([10, second, third])
    assert list(floor.get_ydata()) == [0.5, 0.5]
    curve, best, floor = validation.get_lines()
    assert list(curve.get_xdata()) == [50, 100, 150]
    assert (list(best.get_xdata()), list(best.get_ydata())) == ([100], [1.0])
    assert best.get_label() == "best: 1.0000 at step 100"
    assert list(rate.get_lines()[0].get_ydata())[-1] == pytest.approx(15)
    _, mean = norm.get_lines()
    assert list(mean.get_xdata()) == list(range(15, 151))
    assert list(mean.get_ydata()) == pytest.approx([8 / 15, 7 / 15] * 68)
    assert figures.as_png(figure).startswith(b"\x89PNG")


def test_perplexity_has_one_panel_and_bits_a_character_another() -> None:
    alone = figures.perplexity_figure([*STEPS, *EVALUATIONS])
    [perplexity] = alone.axes
    _, measured = perplexity.get_lines()[:2]
    assert list(measured.get_ydata()) == pytest.approx([math.exp(3.0), math.exp(1.0), math.exp(2.0)])
    assert perplexity.get_yscale() == "log"
    both = figures.perplexity_figure([*STEPS, *EVALUATIONS], 0.5)
    same, bits = both.axes
    assert list(bits.get_lines()[1].get_ydata()) == pytest.approx([value / 2 / math.log(2) for value in (3, 1, 2)])
    assert [list(line.get_ydata()) for line in same.get_lines()] == [
        list(line.get_ydata()) for line in perplexity.get_lines()
    ]
    assert both.get_figwidth() > alone.get_figwidth()
    assert same.get_position().y0 == bits.get_position().y0  # side by side


def test_a_run_that_was_hardly_begun_can_be_drawn() -> None:
    figure = figures.training_figure([{**STEPS[0], "loss": None}], None, "one step")
    assert figures.as_png(figure).startswith(b"\x89PNG")


@pytest.mark.parametrize("steps", [20, 60, 2000])
def test_a_smoothed_curve_of_a_short_run_does_not_lag_behind_it(steps: int) -> None:
    """Would break if averages looked back over most of a short run, as α = 0.01 does over 60 steps."""
    records = [{**STEPS[0], "step": step, "loss": 3 - 2 * step / steps, "norm": 1.0} for step in range(1, steps + 1)]
    loss, _, _, norm = figures.training_figure(records, None, "a run").axes
    raw, smoothed = loss.get_lines()[:2]
    assert 0 < smoothed.get_ydata()[-1] - raw.get_ydata()[-1] < 0.25  # a tenth of a fall by 2, and what is left of α
    assert ("α = 0.01," in smoothed.get_label()) == (steps == 2000)
    assert len(norm.get_lines()[1].get_ydata()) == steps - max(min(100, steps // 10), 1) + 1


def test_gradients_are_drawn_by_parameter_and_step() -> None:
    """Would break if rows and columns were swapped, or if a gradient of 0 had a color."""
    records = [{"step": step, "norms": {"a.weight": 0.1 * step, "b$": 0.0, "c": None}} for step in (1, 10)]
    figure = figures.gradients_figure(records)
    axes = figure.axes[0]
    shown = axes.images[0].get_array()
    assert shown[0].tolist() == pytest.approx([0.1, 1.0])
    assert shown.mask[1:].all()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a.weight", "b$", "c"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "10"]
    assert figures.as_png(figure).startswith(b"\x89PNG")
    nothing = figures.gradients_figure([{"step": 1, "norms": {"a": 0.0}}])
    assert figures.as_png(nothing).startswith(b"\x89PNG")


@pytest.mark.filterwarnings("ignore:Glyph")
def test_maps_are_drawn_by_layer_and_head_with_their_tokens() -> None:
    weights = torch.full((1, 2, 3, 3), 1 / 3).tril()
    figure = figures.attention_figure([weights] * 3, ["a b", "\n", "$x\x00"])
    panels = [axes for axes in figure.axes if axes.images]
    assert [axes.get_title().split(":")[0] for axes in panels[:3]] == [
        "layer 1, head 1", "layer 1, head 2", "layer 2, head 1",
    ]  # fmt: skip
    assert len(panels) == 6
    assert [label.get_text() for label in panels[0].get_yticklabels()] == ["a␣b", "⏎", "$x\ufffd"]
    assert panels[0].get_title().endswith(f"{(1 / 3 + 2 / 3 + 1) * math.log(3) / 3:.2f} nats")  # the mean of its rows
    assert figures.as_png(figure).startswith(b"\x89PNG")
    many = figures.attention_figure([torch.ones(1, 6, 40, 40)] * 3, ["x"] * 40)
    assert many.axes[0].get_yticklabels() == []


def test_the_scaling_line_goes_through_its_points() -> None:
    points = [("a", 1000, 4.0), ("b", 100_000, 2.0)]
    exponent = math.log(2) / math.log(100)
    figure = figures.scaling_figure(points, exponent, 0.01, 4.0 * 1000**exponent)
    (line,) = figure.axes[0].get_lines()
    x, y = line.get_xdata(), line.get_ydata()
    slope = (math.log(y[1]) - math.log(y[0])) / (math.log(x[1]) - math.log(x[0]))
    assert slope == pytest.approx(-exponent)
    assert y[0] * (1000 / x[0]) ** slope == pytest.approx(4.0)
    assert f"exponent {exponent:.4f} ± 0.0100" in figure.axes[0].get_legend().get_texts()[0].get_text()


def test_the_floor_is_known_for_letters_of_the_source_alone(session: TrainingSession, config: TrainingConfig) -> None:
    assert session.floor is None
    run = session.run
    corpus = Corpus("synthetic", "abc")
    tokens = tokenize("abc" * 9, run.tokenizer, 0.5)
    assert TrainingSession(run, session.folder, corpus, tokens).floor == floor_in_windows(8)
    run.config = with_changes(config, {"data.tokenizer": "bpe"})
    assert TrainingSession(run, session.folder, corpus, tokens).floor is None


def test_control_characters_are_shown_as_marks() -> None:
    assert visible("a\tb\n\x1b[31m\x00\u202e") == "a\tb\n\ufffd[31m\ufffd\ufffd"
