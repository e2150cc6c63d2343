"""The message for a missing required argument: what to type."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

__all__ = ["Command"]

_TYPE = {
    "impl": "Name what to judge: --impl mypkg, a module, a .py file or a folder.",
    "adapt impl": "Name the code to look through: conform adapt mypkg.",
    "package": "Name the package to create: conform init mypkg.",
    "policy": "conform grade --example-policy > policy.toml writes one to start with.",
    "out": "Name the folder for the results: --out grades.",
    "submissions": "Name the folder of submissions: conform grade submissions --policy policy.toml --out grades.",
    "report": "conform run --impl mypkg --json report.json writes one.",
    "ids": "Name a clause, for example: conform explain SDPA-SCALE.",
    "clause_id": "Name a clause that fails, for example: conform repro SDPA-SCALE --impl mypkg.",
    "impls": "Name two or more, for example: conform compare mypkg mypkg@main.",
}
"""By name of the argument; prefixed with the command if the name means something else there."""


_WITHOUT_A_VALUE = {"--thorough": "25"}
"""Options whose value may be left out, and what it is then."""


class Command(TyperCommand):
    """A command that says what to type if an argument is missing, and knows values that may be left out."""

    def __init__(self, *args: Any, **options: Any) -> None:
        """Keep the lines of examples as they stand, by the character that is click's mark for that."""
        options["help"] = (options.get("help") or "").replace("Examples:\n", "\b\nExamples:\n")
        super().__init__(*args, **options)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line."""
        try:
            return super().parse_args(ctx, _with_values(args))
        except typer.BadParameter as problem:
            if not problem.message and problem.param is not None:
                name = problem.param.name or ""
                problem.message = _TYPE.get(f"{ctx.info_name} {name}") or _TYPE.get(name, "")
            raise


def _with_values(args: list[str]) -> list[str]:
    """Return the arguments, each option whose value was left out with its usual one."""
    found = []
    for arg, following in zip(args, [*args[1:], "-"], strict=False):
        found.append(arg)
        if arg in _WITHOUT_A_VALUE and not following.isdecimal():
            found.append(_WITHOUT_A_VALUE[arg])
    return found
