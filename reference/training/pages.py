"""Pages for a browser, which fetch nothing, and their pictures as files: what all reports of training share.

`page.html` has the head, the configuration and the footer; `run.html`, for a single run, the facts, the curves, what
stands out in them and the evaluations too. A report's own template fills in the rest.
"""

from __future__ import annotations

import base64
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w
from jinja2 import Environment, FunctionLoader, StrictUndefined

from conformkit.reference.checkpoints import replace_file
from conformkit.reference.training import figures, metrics
from conformkit.reference.training.config import TrainingConfig
from conformkit.reference.training.diagnosis import curves, diagnose
from conformkit.reference.training.folder import RunFolder
from conformkit.reference.training.metrics import MetricRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["TRAINING", "TableColumn", "number", "publish", "publish_run", "step", "visible"]

TableColumn = Callable[[MetricRecord], str]
"""What a column of the table says of an evaluation."""
Draw = Callable[[], Mapping[str, "Figure"]]
TRAINING = (
    "Training loss raw and smoothed, validation loss with the best marked, learning rate, and norm of the gradients, "
    "over the steps."
)
"""What `figures.training_figure` shows, in words."""
GRADIENTS = (
    "Norm of each parameter's gradient before clipping: a row is a parameter, a column a step, and colors are on a "
    "logarithmic scale."
)


def publish(report: Path, template: str, draw: Draw, *, pictures: bool = True, **given: Any) -> str:
    """Write a page, and what `draw` returns next to it by name; return a sentence if that can't be drawn.

    Raises: OSError where a file can't be written.
    """
    lacking = figures.LACKING if pictures and not figures.available() else ""
    drawn = {name: figures.as_png(one) for name, one in draw().items()} if pictures and not lacking else {}
    for name, content in drawn.items():
        replace_file(report.parent / f"{name}.png", content)
    coded = {name: base64.b64encode(content).decode() for name, content in drawn.items()}
    replace_file(report, _page(template, pictures=coded, lacking=lacking, **given).encode())
    return lacking


def publish_run(
    folder: RunFolder, config: TrainingConfig, template: str,
    draw: Callable[[Sequence[MetricRecord]], Mapping[str, Figure]], *, told: Mapping[str, str],
    columns: Mapping[str, TableColumn] | None = None, floor: float | None = None, pictures: bool = True, **given: Any,
) -> str:  # fmt: skip
    """Publish the report of a run. `draw` gets what was measured; without `columns` the table shows all of it.

    `told` describes the pictures that stand above the table; gradients by parameter are drawn for every run.

    Raises: OSError where a file can't be written.
    """
    records = metrics.read_lines(folder.metrics)
    evaluations = metrics.evaluations(records)
    norms = metrics.read_lines(folder.gradients)

    def drawn() -> Mapping[str, Figure]:
        return {**draw(records), **({"gradients": figures.gradients_figure(norms)} if norms else {})}

    return publish(
        folder.report, template, drawn, pictures=pictures, told={**told, "gradients": GRADIENTS},
        title=config.title or "a training run", source=config.source,
        config=tomli_w.dumps(config.as_document()), evaluations=evaluations,
        columns=columns or _columns(evaluations[0]),
        findings=diagnose(curves(records, floor, text=not config.data.task)), **given,
    )  # fmt: skip


def step(one: MetricRecord) -> str:
    """Say at which step an evaluation was made."""
    return str(one["step"])


def number(name: str) -> TableColumn:
    """Return a column for one of the measured numbers."""
    return lambda one: f"{one[name]:.4f}"


def visible(text: str) -> str:
    """Return text as a page can show it: control characters, which a corpus may hold, as U+FFFD."""
    return "".join(c if c in "\n\t" or unicodedata.category(c)[0] != "C" else "\ufffd" for c in text)


def _columns(measured: MetricRecord) -> dict[str, TableColumn]:
    names = [name for name in measured if name not in {"kind", "best"}]
    return {name: step if name == "step" else number(name) for name in names}


def _page(template: str, **given: Any) -> str:
    """Return a page from a template below this module's folder; inserted text is escaped."""
    folder = files("conformkit.reference.training")

    def read(name: str) -> str:
        return folder.joinpath(name).read_text(encoding="utf-8")

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, loader=FunctionLoader(read)
    )
    environment.filters["visible"] = visible
    return environment.get_template(template).render(style=read("report.css"), **given)
