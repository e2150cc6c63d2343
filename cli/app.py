"""The subcommands of `conform` and what they share: version, help, exit codes."""

from __future__ import annotations

from typing import Annotated

import typer
from typer.core import TyperGroup

from conformkit.cli.adapt import adapt
from conformkit.cli.argument_help import Command
from conformkit.cli.autograder import autograder
from conformkit.cli.badge import badge
from conformkit.cli.compare import compare
from conformkit.cli.defaults import defaults
from conformkit.cli.defects import defects
from conformkit.cli.explain import explain
from conformkit.cli.grade import grade
from conformkit.cli.init import init
from conformkit.cli.inspect import inspect
from conformkit.cli.port import port
from conformkit.cli.repro import repro
from conformkit.cli.run import run
from conformkit.cli.sample import sample
from conformkit.cli.serve import serve
from conformkit.cli.spec import spec
from conformkit.cli.train import train
from conformkit.cli.watch import watch

__all__ = ["app"]

app = typer.Typer(
    name="conform", help="Is this transformer right, and if not, which mistake is it?", no_args_is_help=True,
    rich_markup_mode=None, pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 conforms, 1 does not, 2 wrong usage, 3 the implementation could not be loaded or bound, "
    "4 the requested isolation is not available, 5 the kit itself failed or the disk is full, "
    "6 compare: the first one is worse than another, 130 stopped.",
)  # fmt: skip
for _command, _short in (  # the most used ones first; a line each has room for 66 letters on a terminal of 80 columns
    (run, "Judge an implementation and print a report."),
    (watch, "Judge an implementation, and again whenever a file is saved."),
    (explain, "Explain clauses, points on which sources err, or stored values."),
    (repro, "Write a failing clause as a script that needs no conformkit."),
    (inspect, "Look inside a model: shapes, parameters, gradients, heads."),
    (compare, "Show where implementations, or versions of one, differ."),
    (adapt, "Draft a conform.toml: what a run takes for what, written down."),
    (init, "Write a package of stubs to fill in."),
    (port, "Convert a checkpoint for your own model, and prove it."),
    (badge, "Print a badge as SVG, from what conform run --json wrote."),
    (grade, "Grade a class: each submission in a sandbox, by one policy."),
    (autograder, "Write an autograder for Gradescope."),
    (serve, "Judge what other programs send, one JSON object a line."),
    (spec, "List the clauses, or write them as pages for a browser."),
    (defects, "List the known mistakes, with the clauses that catch each."),
    (train, "Train the reference on a text, and keep the run in a folder."),
    (sample, "Continue a prompt with a trained model."),
):
    app.command(cls=Command, short_help=_short)(_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        from conformkit.conformance.versions import SPEC_VERSION, kit_version

        print(f"conform {kit_version()} (spec {SPEC_VERSION})")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    del version
    name = context.invoked_subcommand
    command = context.command.commands.get(name or "") if isinstance(context.command, TyperGroup) else None
    context.default_map = defaults(name, [option.name or "" for option in command.params] if command else ())
