"""Options that several subcommands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from conformkit.cli.completion import clause_ids, colors, dtypes, implementations, isolations, levels, profiles
from conformkit.cli.exits import wrong
from conformkit.spec.clauses import OutsideProfileError, UnknownClauseError, check_selection, clauses, select
from conformkit.spec.profiles import PROFILES

__all__ = [
    "FORMATS", "CodeArgument", "ConfigPath", "Dtype", "Impl", "Isolation", "Only", "ProfileName", "Shade", "Strictness",
    "check_named", "known_profiles", "prefixes_of", "the_code",
]  # fmt: skip

Impl = Annotated[
    str,
    typer.Option(
        metavar="NAME|PATH", autocompletion=implementations, help="A package, a module, a .py file or a folder."
    ),
]
CodeArgument = Annotated[
    str, typer.Argument(metavar="IMPL", autocompletion=implementations, help="What --impl names, without the option.")
]
Isolation = Annotated[
    str,
    typer.Option(
        metavar="process|sandbox|none",
        autocompletion=isolations,
        help="sandbox is for untrusted code; none runs the code inside the harness, for a debugger.",
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PREFIX",
        autocompletion=clause_ids,
        help="Only these clauses, or those about a component; repeat the option, or separate by commas.",
    ),
]
Without = Annotated[
    list[str] | None,
    typer.Option(metavar="PREFIX", autocompletion=clause_ids, help="Not these clauses; same form as --only."),
]
ProfileName = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        autocompletion=profiles,
        help="The clauses that must hold, separated by commas: core, lm, model (block and model of core alone), paths, "
        "seq2seq, encoder, vit, milestone1 to milestone5.",
    ),
]
Strictness = Annotated[
    str,
    typer.Option(
        "--level",
        metavar="MUST|SHOULD|MAY",
        autocompletion=levels,
        help="What binds: SHOULD includes MUST, MAY includes both.",
    ),
]
Shade = Annotated[
    str,
    typer.Option(
        "--color", metavar="auto|always|never", autocompletion=colors, help="auto respects NO_COLOR, FORCE_COLOR."
    ),
]
FORMATS = dtypes()
Dtype = Annotated[
    str,
    typer.Option(
        "--dtype",
        metavar="|".join(FORMATS),
        autocompletion=dtypes,
        help="Judge in this number format, whatever conform.toml declares.",
    ),
]
ConfigPath = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH", exists=True, dir_okay=False, readable=True, help="Use this conform.toml instead of its own."
    ),
]


def check_named(impl: str) -> None:
    """Exit with the code for wrong usage if --impl is empty."""
    if not impl.strip():
        wrong("--impl", "is empty; give a module's name, a .py file or a folder.")


def the_code(context: typer.Context, code: str, impl: str) -> str:
    """Return what is to be judged: what stands alone, or else --impl, for which pyproject.toml may have a default."""
    source = context.get_parameter_source("impl")
    if code and source is not None and source.name == "COMMANDLINE":
        wrong("--impl", f"names {impl}, and {code} stands there as well; name one of them.")
    if not code and source is not None and source.name == "DEFAULT":
        wrong("IMPL", f"is missing; name a module, a .py file or a folder: conform {context.info_name} mypkg.")
    check_named(code or impl)
    return code or impl


def known_profiles() -> list[str]:
    """Return the names of all profiles."""
    return list(PROFILES)


def prefixes_of(only: Sequence[str], option: str = "--only", profile: str = "") -> tuple[str, ...]:
    """Return the clauses and prefixes that an option names, all of a profile if there is one.

    Exits with the code for wrong usage if one is unknown, or not of the profile.
    """
    components = {clause.component.upper(): clause.component for clause in clauses().values()}
    words = tuple(word.strip().upper() for item in only for word in item.split(",") if word.strip())
    words = tuple(components.get(word, word) for word in words)
    if only and not words:
        wrong(option, "is empty; name a clause or a prefix.")
    try:
        check_selection(words, profile) if profile else select(words)
    except OutsideProfileError as error:
        wrong(option, f"{error}: name that with --profile.")
    except UnknownClauseError as error:
        wrong(option, f"{error}.")
    return words
