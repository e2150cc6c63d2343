"""What a command says of an argument that it can't do without: what to type."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

__all__ = ["Command"]

_TYPE = {
    "impl": "Name what to judge: --impl mypkg, a module, a .py file or a folder.",
    "adapt impl": "Name what to look through: conform adapt mypkg.",
    "package": "Name the package to make: conform init mypkg.",
    "policy": "conform grade --example-policy > policy.toml writes one to begin with.",
    "out": "Name the folder for the results: --out grades.",
    "submissions": "Name the folder that holds them: conform grade submissions --policy policy.toml --out grades.",
    "report": "conform run --impl mypkg --json report.json writes one.",
    "ids": "Name a clause, say: conform explain SDPA-SCALE.",
    "clause_id": "Name one that fails, say: conform repro SDPA-SCALE --impl mypkg.",
    "impls": "Name two or more, say: conform compare mypkg mypkg@main.",
}
"""By the names of arguments, where one means something else in a command with that before it."""


class Command(TyperCommand):
    """A command that tells what to type where something is missing."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line."""
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as problem:
            if not problem.message and problem.param is not None:
                name = problem.param.name or ""
                problem.message = _TYPE.get(f"{ctx.info_name} {name}") or _TYPE.get(name, "")
            raise
