"""`conform train`: train the reference on a text, and keep the results in a folder."""

from __future__ import annotations

import contextlib
import shlex
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from conformkit.cli.exits import Exit, fail, one_of, wrong

if TYPE_CHECKING:
    from rich.console import Console

    from conformkit.conformance.report.terminal import Color
    from conformkit.reference.training.config import TrainingConfig
    from conformkit.reference.training.loop import TrainingEnd
    from conformkit.reference.training.sessions import RunSession

__all__ = ["explained", "train"]


def _print_recipes(wanted: bool) -> None:
    if wanted:
        from conformkit.reference.training.config import recipes

        for name, config in recipes().items():
            print(f"{name}: {config.title}\n    {config.source}")
        raise typer.Exit


def train(
    recipe: Annotated[str, typer.Option(metavar="NAME", help="A model from the sources; --recipes lists them.")] = "",
    config: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Your own configuration, in TOML, instead of a recipe.")
    ] = None,
    corpus: Annotated[
        str,
        typer.Option(metavar="FILE|synthetic|shakespeare", help="The text to learn; shakespeare is downloaded once."),
    ] = "",
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder of the run; by default runs/RECIPE.")
    ] = None,
    resume: Annotated[Path | None, typer.Option(metavar="DIR", help="Continue the run in that folder.")] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="With --resume: start from this checkpoint instead of the newest."),
    ] = None,
    ablate: Annotated[
        str,
        typer.Option(
            metavar="TABLE", help="Train and compare each variant of a table: PATH, capstone, eighth, habits, small."
        ),
    ] = "",
    steps: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Number of updates; fewer of them shorten the warm-up too.")
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", min=0, help="Seed of weights and windows.")] = None,
    device: Annotated[str, typer.Option(metavar="cpu|cuda|mps", help="Device to compute on.")] = "",
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any other setting, e.g. model.d_model=128.")
    ] = None,
    pictures: Annotated[
        bool, typer.Option("--pictures/--no-pictures", help="Draw the run; needs matplotlib (the extra `report`).")
    ] = True,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print only the outcome.")] = False,
    color: Annotated[
        str, typer.Option(metavar="auto|always|never", help="auto respects NO_COLOR, FORCE_COLOR.")
    ] = "auto",
    list_recipes: Annotated[
        bool, typer.Option("--recipes", callback=_print_recipes, is_eager=True, help="List the recipes, then exit.")
    ] = False,
) -> None:
    """Train the reference on a text, and keep metrics, checkpoints, samples and a report of the run in a folder.

    Exit code 0 if it is trained, 1 if the loss is no longer finite, 3 if a checkpoint can't be used, 5 if something
    can't be written, 130 if stopped: continue with --resume DIR.


    Examples:
      conform train --out runs/tiny
      conform train --resume runs/tiny
    """
    del list_recipes
    shade = cast("Color", one_of("--color", color, ("auto", "always", "never")))
    given: dict[str, Any] = {
        "data.corpus": corpus or None, "training.steps": steps, "training.seed": seed, "speed.device": device or None,
    }  # fmt: skip
    wanted = {name: value for name, value in given.items() if value is not None} | _settings(changes or [])
    _check_alone(resume=resume, checkpoint=checkpoint, recipe=recipe, config=config, out=out, ablate=ablate)
    with explained():
        from conformkit.reference.training import sessions

        if resume is not None:
            _train(sessions.resume_run(resume, wanted, checkpoint), shade, quiet=quiet, pictures=pictures)
            return
        chosen = _chosen(recipe, config, wanted)
        name = recipe or (config.stem if config else "tiny")
        if ablate:
            _ablate(ablate, chosen, out or Path("runs", f"{name}-ablation"), shade, quiet=quiet, pictures=pictures)
            return
        _train(sessions.begin_run(chosen, out or Path("runs", name)), shade, quiet=quiet, pictures=pictures)


def _check_alone(**options: object) -> None:
    """Refuse options that contradict each other."""
    if options["resume"] is None and options["checkpoint"] is not None:
        wrong("--checkpoint", "needs --resume; to write text from a checkpoint use conform sample.")
    if options["recipe"] and options["config"] is not None:
        wrong("--config", "contradicts --recipe; choose one.")
    for name in ("recipe", "config", "out", "ablate"):
        if options["resume"] is not None and options[name]:
            wrong(f"--{name}", "contradicts --resume, which continues the run with its settings.")


def _settings(words: Sequence[str]) -> dict[str, Any]:
    """Return `model.d_model=128` as a name and a TOML value; anything else than a TOML value is a string."""
    found: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            wrong("--set", f"{word!r} is not KEY=VALUE; write for example model.d_model=128.")
        try:
            found[name.strip()] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            found[name.strip()] = text.strip()
    return found


def _chosen(recipe: str, path: Path | None, changes: Mapping[str, Any]) -> TrainingConfig:
    from conformkit.reference.training import config

    chosen = config.read_config(path) if path else config.recipe(recipe or "tiny")
    return config.with_changes(chosen, config.shortened(chosen, changes))


def _train(session: RunSession, color: Color, *, quiet: bool, pictures: bool) -> None:
    """Train, report, and exit with the code."""
    from conformkit.reference.training.interrupts import stopping
    from conformkit.reference.training.loop import train as run_loop
    from conformkit.reference.training.progress import Silent, watching

    run, page, bar = session.run, _page(color), _page(color, sys.stderr)
    if threads := run.config.speed.threads:
        import torch

        torch.set_num_threads(threads)
    watched = contextlib.nullcontext(Silent()) if quiet else watching(page, bar, run.config.training.steps, run.step)
    if not quiet:
        from conformkit.reference.training.memory import memory_estimate, shown

        share = f"{run.per_parameter:.3g} {run.unit} a parameter"
        _say(page, f"{session.description}; about {shown(memory_estimate(run))} of memory; {share}")
    with stopping() as asked, watched as listener:
        outcome = run_loop(run, session.folder, listener, asked, session.sample, session.looked)
    if outcome.end == "interrupted":
        fail(
            Exit.INTERRUPTED, f"stopped at step {outcome.step}; nothing is lost",
            f"continue: conform train --resume {_word(session.folder.path)}",
        )  # fmt: skip
    _finish(session, outcome, page, pictures=pictures)


def _finish(session: RunSession, outcome: TrainingEnd, page: Console, *, pictures: bool) -> None:
    from conformkit.reference.training.reports import write_report

    session.sample_best()
    missing = write_report(session, pictures=pictures)
    _say(page, _ending(session, outcome))
    for line in [*session.scores(), *_findings(session), *([missing] if missing else [])]:
        _say(page, line)


def _findings(session: RunSession) -> list[str]:
    """Return what stands out in the curves of the run, a line each."""
    from conformkit.reference.training import metrics
    from conformkit.reference.training.diagnosis import curves, diagnose

    measured = curves(metrics.read_lines(session.folder.metrics), session.floor, text=not session.run.config.data.task)
    return [f"{one.name}: {one.problem}\n    {one.advice}" for one in diagnose(measured)]


def _ablate(table: str, config: TrainingConfig, out: Path, color: Color, *, quiet: bool, pictures: bool) -> None:
    from conformkit.reference.training import ablation
    from conformkit.reference.training.interrupts import stopping
    from conformkit.reference.training.progress import watching

    page = _page(color)
    with stopping() as asked:
        study = ablation.Study.begin(table, config, out)
        if not quiet:
            study.watch = lambda steps, done: watching(None, _page(color, sys.stderr), steps, done)
        for line in study.run(asked):
            if not quiet:
                _say(page, line)
    if study.interrupted:
        fail(Exit.INTERRUPTED, "stopped; finished variants are kept", f"continue: the same command, --out {_word(out)}")
    missing = study.write(pictures=pictures)
    for line in [*study.table(page.width), "", *study.conclusion(), *([missing] if missing else [])]:
        _say(page, line)


def _ending(session: RunSession, outcome: TrainingEnd) -> str:
    words = {"done": "trained", "early": "stopped early: the validation loss no longer falls"}
    best = f"; best validation loss {outcome.best[1]:.4f} at step {outcome.best[0]}" if outcome.best else ""
    floor = f" (the least possible is {session.floor:.4f})" if session.floor is not None else ""
    place = _word(session.folder.path)
    return (
        f"{words[outcome.end]}, {outcome.step} steps{best}{floor}\n"
        f"report: {session.folder.report}\ntext:   conform sample {place}"
    )


def _word(path: Path) -> str:
    """Return a path as a shell wants it, so that a printed command can be copied as it stands."""
    return shlex.quote(str(path))


def _page(color: Color, stream: Any = None) -> Console:
    from conformkit.conformance.report.terminal import console

    return console(stream or sys.stdout, color)


def _say(page: Console, text: str) -> None:
    """Print text that may hold file names: shown as it is, never as markup."""
    from conformkit.conformance.text import plain

    with contextlib.suppress(BrokenPipeError):
        page.print(plain(text, 20_000), markup=False, highlight=False, soft_wrap=not page.is_terminal)


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Turn the errors of training and sampling into a sentence and an exit code."""
    from conformkit.reference.errors import CheckpointError, RefusalError
    from conformkit.reference.training.loop import DivergedError

    try:
        yield
    except CheckpointError as error:
        fail(
            Exit.NOT_LOADED,
            str(error),
            "name another checkpoint of the run: conform train --resume DIR --checkpoint PATH, or conform sample PATH",
        )
    except RefusalError as error:
        fail(Exit.USAGE, str(error))
    except DivergedError as error:
        kept = f"the last good checkpoint is {error.kept}" if error.kept else "there was no checkpoint yet"
        fail(Exit.DIFFERS, f"training diverged: {error}", kept, "lower optimizer.peak, or clip: optimizer.max_norm=1.0")
    except FileNotFoundError as error:
        fail(Exit.USAGE, f"there is no {error.filename}")
    except PermissionError as error:
        fail(Exit.USAGE, f"no permission to read or write {error.filename}")
    except OSError as error:
        place = f" {error.filename}" if error.filename else ""
        fail(
            Exit.KIT_FAILED, f"writing{place} failed: {error.strerror or error}",
            "earlier files are complete: free some space, then continue with --resume, or start again if there is none",
        )  # fmt: skip
    except KeyboardInterrupt:
        fail(Exit.INTERRUPTED, "stopped")
