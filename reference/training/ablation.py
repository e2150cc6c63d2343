"""A table of variants: what each choice costs or gains, and how the loss falls with the number of parameters.

Each variant is the same run with a few settings changed, trained on the same text with the same seed, in a folder of
its own. Finished runs are kept: after a stop, the same command resumes.

    L(N) = factor · N^(-exponent)        fitted over the variants of depth and width, and the baseline

Other choices change the loss at the same size, so they take no part in the fit.
"""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import tomli_w

from conformkit.reference.analysis import exponent_error, fit_power_law
from conformkit.reference.checkpoints import replace_file
from conformkit.reference.training import figures
from conformkit.reference.training.config import TrainingConfig, TrainingConfigError, with_changes
from conformkit.reference.training.folder import FolderError, RunFolder
from conformkit.reference.training.loop import DivergedError, Listener, TrainingEnd, train
from conformkit.reference.training.metrics import read_lines
from conformkit.reference.training.pages import publish
from conformkit.reference.training.progress import Silent
from conformkit.reference.training.sessions import RunSession, begin_run, resume_run

__all__ = ["AblationRow", "AblationVariant", "Fit", "Study", "fitted", "read_table"]

BASELINE = "baseline"
SIZED = ("depth", "width", BASELINE)
"""The axes that change the number of parameters and little else."""
KAPLAN = 0.076

Watch = Callable[[int, int], AbstractContextManager[Listener]]
"""Makes a listener, given the number of steps to make and of those already made."""


@dataclass(frozen=True)
class AblationVariant:
    """One row to be trained: the settings in which it differs."""

    axis: str
    name: str
    changes: dict[str, Any]

    @property
    def folder(self) -> str:
        """The name of its run's folder."""
        return re.sub(r"[^a-z0-9]+", "-", f"{self.axis} {self.name}".lower()).strip("-")


@dataclass(frozen=True)
class AblationRow:
    """One row of the table, trained."""

    axis: str
    name: str
    parameters: int
    loss: float | None
    """The best validation loss, in nats a token; None where training diverged."""
    seconds: float


@dataclass(frozen=True)
class Fit:
    """The power law through the sized variants, and the standard error of its exponent."""

    exponent: float
    error: float
    factor: float
    points: tuple[tuple[str, int, float], ...]


def read_table(name: str) -> tuple[str, list[AblationVariant]]:
    """Return title and variants of a table: a file, or one of those in tables/; the baseline comes first.

    Raises: ConfigError for what is no such table; OSError where the file can't be read.
    """
    bundled = files("conformkit.reference.training") / "tables"
    known = sorted(entry.name.removesuffix(".toml") for entry in bundled.iterdir() if entry.name.endswith(".toml"))
    source = bundled / f"{name}.toml" if name in known else Path(name)
    if not source.is_file():
        raise TrainingConfigError(f"the table {name}", "neither bundled nor a file", f"{', '.join(known)} or a path")
    try:
        document = tomllib.loads(source.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TrainingConfigError(
            f"the table {name}", f"no TOML: {error}", "a TOML document with [[variant]]"
        ) from error
    listed = document.get("variant")
    if not isinstance(listed, list) or not listed:
        raise TrainingConfigError(
            f"the table {name}", "without variants", "a [[variant]] with axis, name and set, or several"
        )
    found = [AblationVariant(BASELINE, BASELINE, {}), *(_variant(entry) for entry in listed)]
    if len({variant.folder for variant in found}) < len(found):
        raise TrainingConfigError(f"the table {name}", "with two variants of one name", "a name of its own for each")
    return str(document.get("title", "an ablation")), found


class Study:
    """A table being trained in a folder."""

    def __init__(self, title: str, variants: list[AblationVariant], config: TrainingConfig, folder: Path) -> None:
        self.title, self.variants, self.config, self.folder = title, variants, config, folder
        self.rows: list[AblationRow] = []
        self.interrupted = False
        self.watch: Watch = lambda steps, done: nullcontext(Silent())  # noqa: ARG005 - it looks at neither

    @classmethod
    def begin(cls, table: str, config: TrainingConfig, folder: Path) -> Study:
        """Check every variant before the first is trained. Raises ConfigError, FolderError, OSError."""
        title, variants = read_table(table)
        for variant in variants:
            with_changes(config, variant.changes)
        study = cls(title, variants, config, folder)
        begun = folder / "baseline.toml"
        text = tomli_w.dumps(config.as_document())
        if begun.exists() and begun.read_text(encoding="utf-8") != text:
            raise FolderError(str(folder), "of another ablation", "a new place, or the same configuration")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            replace_file(begun, text.encode())
        except (FileExistsError, NotADirectoryError, PermissionError) as error:
            raise FolderError(str(folder), f"not writable ({error.strerror})", "another place") from error
        return study

    def run(self, wanted: Callable[[], bool] = lambda: False) -> Iterator[str]:
        """Train all variants that are not trained yet, and yield a line for each."""
        for number, variant in enumerate(self.variants, 1):
            row = self._done(variant) or self._train(variant, wanted)
            if row is None:
                self.interrupted = True
                return
            self.rows.append(row)
            loss = "diverged" if row.loss is None else f"validation {row.loss:.4f}"
            yield f"{number}/{len(self.variants)} · {row.axis}: {row.name} · {row.parameters:,} parameters · {loss}"

    def fit(self) -> Fit | None:
        """Return the power law through the sized variants, or None where fewer than three sizes were trained."""
        return fitted(self.rows)

    def table(self, width: int = 100) -> list[str]:
        """Return the table as lines for a terminal; a narrow one gets fewer columns."""
        head = ("axis", "variant", "parameters", "loss", "difference", "seconds")
        cells = [head, *(self._cells(row) for row in self.rows)]
        kept = range(6) if width >= 70 else (1, 3, 4)
        room = [max(len(row[column]) for row in cells) for column in kept]
        return ["  ".join(_padded(row[c], room[i], c) for i, c in enumerate(kept)).rstrip() for row in cells]

    def conclusion(self) -> list[str]:
        """Return what the fit says, in sentences."""
        fit = self.fit()
        if fit is None:
            return ["no scaling exponent: fewer than three sizes were trained"]
        law = f"loss falls with parameters to the power {-fit.exponent:.4f} ± {fit.error:.4f}"
        return [
            f"{law} (standard error, {len(fit.points)} sizes); Kaplan et al. 2020 found {-KAPLAN}",
            "a loss that nothing can remove bends the line: the exponent holds for these sizes only",
        ]

    def write(self, *, pictures: bool = True) -> str:
        """Write rows and page; return a sentence if the picture can't be drawn. Raises OSError."""
        fit = self.fit()
        return publish(
            self.folder / "report.html", "ablation.html",
            lambda: {"scaling": figures.scaling_figure(fit.points, fit.exponent, fit.error, fit.factor)} if fit else {},
            pictures=pictures and fit is not None, title=self.title, rows=self.rows, difference=self._difference,
            conclusion=self.conclusion(), config=tomli_w.dumps(self.config.as_document()),
        )  # fmt: skip

    def _train(self, variant: AblationVariant, wanted: Callable[[], bool]) -> AblationRow | None:
        """Train one variant, or go on with it, and keep its row; None when asked to stop."""
        session = self._session(variant)
        settings = session.run.config.training
        try:
            with self.watch(settings.steps, session.run.step) as listener:
                outcome = train(session.run, session.folder, listener, wanted)
        except DivergedError:
            outcome = TrainingEnd("diverged", session.run.step, None)
        if outcome.end == "interrupted":
            return None
        parameters = sum(parameter.numel() for parameter in session.run.model.parameters())
        loss = outcome.best[1] if outcome.best else None
        seconds = sum(one["seconds"] for one in read_lines(session.folder.metrics) if one["kind"] == "step")
        row = AblationRow(variant.axis, variant.name, parameters, loss, seconds)
        replace_file(session.folder.path / "row.json", json.dumps(asdict(row)).encode())
        return row

    def _session(self, variant: AblationVariant) -> RunSession:
        place = self.folder / variant.folder
        if RunFolder(place).by_step():
            return resume_run(place, {})
        shutil.rmtree(place, ignore_errors=True)  # it was stopped before its first checkpoint
        return begin_run(with_changes(self.config, variant.changes), place)

    def _done(self, variant: AblationVariant) -> AblationRow | None:
        path = self.folder / variant.folder / "row.json"
        return AblationRow(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None

    def _difference(self, row: AblationRow) -> str:
        baseline = self.rows[0].loss
        return "" if row.loss is None or baseline is None or row is self.rows[0] else f"{row.loss - baseline:+.4f}"

    def _cells(self, row: AblationRow) -> tuple[str, ...]:
        loss = "diverged" if row.loss is None else f"{row.loss:.4f}"
        return row.axis, row.name, f"{row.parameters:,}", loss, self._difference(row), f"{row.seconds:.0f}"


def fitted(rows: list[AblationRow]) -> Fit | None:
    """Return the power law through rows that differ in size, or None where there are fewer than three sizes."""
    points = tuple((row.name, row.parameters, row.loss) for row in rows if row.axis in SIZED and row.loss is not None)
    sizes, losses = [size for _, size, _ in points], [loss for _, _, loss in points]
    if len(set(sizes)) < 3:
        return None
    exponent, factor = fit_power_law(sizes, losses)
    return Fit(exponent, exponent_error(sizes, losses), factor, points)


def _variant(entry: Any) -> AblationVariant:
    if not isinstance(entry, dict) or set(entry) != {"axis", "name", "set"} or not isinstance(entry["set"], dict):
        raise TrainingConfigError("a variant of the table", repr(entry), "a table with axis, name and set")
    return AblationVariant(str(entry["axis"]), str(entry["name"]), entry["set"])


def _padded(text: str, room: int, column: int) -> str:
    """Left for words, right for numbers."""
    return text.ljust(room) if column < 2 else text.rjust(room)
