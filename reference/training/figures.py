"""Pictures of a run, drawn by matplotlib: four panels of what was measured, and who looks at whom.

Each is drawn on its own figure, never through pyplot: nothing global changes, and no display is needed.
"""

from __future__ import annotations

import io
import math
import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from conformkit.reference.analysis import attention_entropy, bias_corrected_average, rolling_mean
from conformkit.reference.training import metrics

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "LACKING", "as_png", "attention_figure", "available", "gradients_figure", "history_figure", "perplexity_figure",
    "samplers_figure", "scaling_figure", "training_figure",
]  # fmt: skip

LACKING = "the pictures of the report need matplotlib: pip install 'conformkit[report]'"
SMOOTHING = 0.01
SHORT = 10
"""An average looks back over about one in so many of a run's steps, or fewer."""
WINDOW = 100
LABELLED = 32
"""Most tokens whose names fit along an axis."""

Record = Mapping[str, Any]


def available() -> bool:
    """Return whether matplotlib is installed."""
    try:
        import matplotlib.figure  # noqa: F401, PLC0415
    except ImportError:
        return False
    return True


def as_png(figure: Figure) -> bytes:
    """Return a figure as the bytes of a PNG."""
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a letter that no installed font has is drawn as a box
        figure.savefig(stream, format="png", dpi=150)
    return stream.getvalue()


def training_figure(records: Sequence[Record], floor: float | None, title: str) -> Figure:
    """Draw loss, validation loss, rate and norm of the gradients over the steps."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    steps = [record for record in records if record["kind"] == "step"]
    evaluations = metrics.evaluations(records)
    figure = Figure(figsize=(12, 8), layout="constrained")
    (loss, validation), (rate, norm) = figure.subplots(2, 2)
    figure.suptitle(title, parse_math=False)
    _draw_loss(loss, steps, floor)
    _draw_validation(validation, evaluations, floor)
    _draw(rate, _series(steps, "rate"), "learning rate", "tab:green")
    rate.set_ylim(bottom=0)
    _draw_norm(norm, steps)
    return figure


def perplexity_figure(records: Sequence[Record], tokens_per_character: float | None = None) -> Figure:
    """Draw perplexity, and where a text's tokens are counted against its characters, bits a character, over the steps.

    Training is smoothed before the exponential is taken, as validation is a mean over many tokens.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415

    steps = [record for record in records if record["kind"] == "step"]
    evaluations = metrics.evaluations(records)
    at, losses = _series(steps, "loss")
    smoothed = bias_corrected_average(losses, _smoothing(len(losses)))
    shown, measured = _series(evaluations, "loss")
    bits = tokens_per_character is not None
    figure = Figure(figsize=(12, 4.2) if bits else (7, 4.2), layout="constrained")
    panels = figure.subplots(1, 2 if bits else 1, squeeze=False)[0]
    _draw_pair(panels[0], (at, _exponentials(smoothed)), (shown, _exponentials(measured)), "perplexity")
    panels[0].set_yscale("log")
    if tokens_per_character is not None:
        scale = tokens_per_character / math.log(2)
        one, other = ([value * scale for value in values] for values in (smoothed, measured))
        _draw_pair(panels[1], (at, one), (shown, other), "bits a character")
    return figure


def gradients_figure(records: Sequence[Record]) -> Figure:
    """Draw the norm of each parameter's gradient, a row each, a column a step; gray where it is 0 or infinite."""
    from matplotlib.colors import LogNorm  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    names = list(records[0]["norms"])
    norms = [[one["norms"].get(name) or math.nan for one in records] for name in names]
    known = [norm for row in norms for norm in row if norm == norm] or [1.0]  # noqa: PLR0124 - NaN equals nothing
    figure = Figure(figsize=(8, max(2.5, 0.16 * len(names) + 1.5)), layout="constrained")
    axes = figure.subplots()
    axes.set_facecolor("lightgray")
    least, most = min(known), max(known)
    scale = LogNorm(least, max(most, least * 10))
    image = axes.imshow(norms, norm=scale, cmap="viridis", aspect="auto", interpolation="nearest")
    axes.set_title("norm of each parameter's gradient, before clipping", fontsize=10)
    axes.set_yticks(range(len(names)), names, fontsize=6, parse_math=False)
    shown = sorted({round(place * (len(records) - 1) / 7) for place in range(8)})
    axes.set_xticks(shown, [str(records[place]["step"]) for place in shown], fontsize=8)
    axes.set_xlabel("step")
    figure.colorbar(image, ax=axes, label="norm")
    return figure


def history_figure(history: Sequence[tuple[str, Tensor]], tokens: Sequence[str], queries: Sequence[str] = ()) -> Figure:
    """Draw the weights at several steps of a run side by side, a row for each layer.

    Shapes: history (title, (L, Tq, Tk)) for each step, the mean over heads; tokens Tk texts, queries Tq texts, by
            default the tokens
    """
    from matplotlib.cm import ScalarMappable  # noqa: PLC0415
    from matplotlib.colors import Normalize  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    scale, layers = Normalize(0, 1), len(history[0][1])
    figure = Figure(figsize=(max(3.2 * len(history), 5), 3.2 * layers + 0.6), layout="constrained")
    grid = figure.subplots(layers, len(history), squeeze=False)
    figure.suptitle("attention weights during the run, mean of the heads", fontsize=10)
    for column, (title, weights) in enumerate(history):
        for layer, one in enumerate(weights):
            axes = grid[layer][column]
            axes.imshow(one.float().numpy(), norm=scale, cmap="magma", interpolation="nearest")
            axes.set_title(f"{title}, layer {layer + 1}", fontsize=8)
            _label(axes, tokens, queries or tokens, wide=True)
    figure.colorbar(ScalarMappable(scale, "magma"), ax=grid.ravel().tolist(), shrink=0.6, label="weight")
    return figure


def attention_figure(maps: Sequence[Tensor], tokens: Sequence[str], queries: Sequence[str] = ()) -> Figure:
    """Draw the weights of each layer (rows) and head (columns), each with its mean entropy.

    Shapes: maps (1, H, Tq, Tk) for each layer, tokens Tk texts, queries Tq texts, by default the tokens
    """
    from matplotlib.cm import ScalarMappable  # noqa: PLC0415
    from matplotlib.colors import Normalize  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    scale = Normalize(0, 1)
    layers, heads = len(maps), maps[0].shape[1]
    size = 3.4 if layers * heads <= 16 else 1.9
    figure = Figure(figsize=(max(size * heads, 5), size * layers + 0.6), layout="constrained")
    grid = figure.subplots(layers, heads, squeeze=False)
    figure.suptitle("attention weights: a row is a query, a column a key", fontsize=10)
    for layer, weights in enumerate(maps):
        for head in range(heads):
            axes, one = grid[layer][head], weights[0, head].float().cpu()
            axes.imshow(one.numpy(), norm=scale, cmap="magma", interpolation="nearest")
            entropy = attention_entropy(one).mean().item()
            axes.set_title(f"layer {layer + 1}, head {head + 1}: {entropy:.2f} nats", fontsize=8)
            _label(axes, tokens, queries or tokens, wide=size > 3)
    figure.colorbar(ScalarMappable(scale, "magma"), ax=grid.ravel().tolist(), shrink=0.6, label="weight")
    return figure


def scaling_figure(points: Sequence[tuple[str, int, float]], exponent: float, error: float, factor: float) -> Figure:
    """Draw validation loss over parameters, both on logarithmic scales, with the fitted line."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.subplots()
    sizes = [size for _, size, _ in points]
    axes.scatter(sizes, [loss for _, _, loss in points], zorder=3)
    for name, size, loss in points:
        axes.annotate(name, (size, loss), xytext=(4, 4), textcoords="offset points", fontsize=8, parse_math=False)
    ends = [min(sizes) / 1.5, max(sizes) * 1.5]
    label = f"exponent {exponent:.4f} ± {error:.4f}"
    axes.plot(ends, [factor * size**-exponent for size in ends], "--", color="tab:red", label=label)
    axes.set(xscale="log", yscale="log", xlabel="parameters", ylabel="validation loss, nats a token")
    _explain(axes)
    axes.grid(visible=True, which="both", alpha=0.3)
    return figure


def samplers_figure(points: Sequence[tuple[str, float, float, float]], title: str) -> Figure:
    """Draw ways of sampling: how varied their texts are over how improbable the model finds them.

    A point has a name, perplexity, distinct-4 and self-BLEU.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    figure.suptitle(title, parse_math=False)
    for axes, place, label in zip(figure.subplots(1, 2), (2, 3), ("distinct-4", "self-BLEU"), strict=True):
        for point in points:
            axes.scatter([point[1]], [point[place]], zorder=3)
            axes.annotate(point[0], (point[1], point[place]), xytext=(4, 4), textcoords="offset points", fontsize=8)
        axes.set(xscale="log", xlabel="perplexity under the model", ylabel=label, ylim=(-0.05, 1.05))
        axes.grid(visible=True, which="both", alpha=0.3)
    return figure


def _series(records: Sequence[Record], name: str) -> tuple[list[int], list[float]]:
    found = [(record["step"], record[name]) for record in records if record[name] is not None]
    return [step for step, _ in found], [value for _, value in found]


def _draw(axes: Axes, series: tuple[list[int], list[float]], title: str, color: str, **options: Any) -> None:
    axes.plot(*series, color=color, **options)
    axes.set(title=title, xlabel="step")
    axes.grid(visible=True, alpha=0.3)


def _draw_pair(
    axes: Axes, training: tuple[list[int], list[float]], validation: tuple[list[int], list[float]], title: str
) -> None:
    """Draw what is smoothed of training, and validation."""
    _draw(axes, training, title, "tab:blue", label="training, smoothed")
    axes.plot(*validation, color="tab:orange", marker="o", markersize=3, label="validation")
    _explain(axes)


def _smoothing(count: int) -> float:
    """Return the weight of the newest of so many values: an average over most of a run would lag behind it."""
    return min(max(SMOOTHING, SHORT / max(count, 1)), 1.0)


def _exponentials(losses: Sequence[float]) -> list[float]:
    return [math.exp(min(loss, 700.0)) for loss in losses]  # beyond that a number has no exponential


def _draw_loss(axes: Axes, steps: Sequence[Record], floor: float | None) -> None:
    at, values = _series(steps, "loss")
    _draw(axes, (at, values), "training loss, nats a token", "tab:blue", alpha=0.25, label="raw")
    alpha = _smoothing(len(values))
    smoothed = bias_corrected_average(values, alpha)
    axes.plot(at, smoothed, color="tab:blue", linewidth=2, label=f"smoothed, α = {alpha:.2g}, corrected")
    _draw_floor(axes, floor)
    _explain(axes)


def _draw_validation(axes: Axes, evaluations: Sequence[Record], floor: float | None) -> None:
    at, values = _series(evaluations, "loss")
    _draw(axes, (at, values), "validation loss, nats a token", "tab:orange", marker="o", markersize=3)
    if values:
        best = min(values)
        where = at[values.index(best)]
        axes.plot([where], [best], "*", color="tab:red", markersize=14, label=f"best: {best:.4f} at step {where}")
    _draw_floor(axes, floor)
    _explain(axes)


def _draw_norm(axes: Axes, steps: Sequence[Record]) -> None:
    at, values = _series(steps, "norm")
    _draw(axes, (at, values), "norm of the gradients, before clipping", "tab:red", alpha=0.3, label="raw")
    window = max(min(WINDOW, len(values) // SHORT), 1)
    if means := rolling_mean(values, window):
        axes.plot(at[window - 1 :], means, color="tab:red", linewidth=2, label=f"mean of {window} steps")
    _explain(axes)


def _draw_floor(axes: Axes, floor: float | None) -> None:
    if floor is not None:
        axes.axhline(floor, color="black", linestyle=":", label=f"the least possible: {floor:.4f}")


def _explain(axes: Axes) -> None:
    """Draw a legend where there is something to explain."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend()


def _label(axes: Axes, keys: Sequence[str], queries: Sequence[str], *, wide: bool) -> None:
    """Write the tokens along both axes where they have room."""
    if not wide or max(len(keys), len(queries)) > LABELLED:
        axes.set(xticks=[], yticks=[])
        return
    across, down = ([_name(token) for token in tokens] for tokens in (keys, queries))
    axes.set_xticks(range(len(across)), across, fontsize=6, rotation=90, parse_math=False)
    axes.set_yticks(range(len(down)), down, fontsize=6, parse_math=False)


def _name(token: str) -> str:
    """Return a token with blanks made visible."""
    signs = token.replace("\n", "⏎").replace("\t", "⇥").replace(" ", "␣")
    return "".join(c if unicodedata.category(c)[0] != "C" else "\ufffd" for c in signs)[:8]
