"""`conform defects`: the known mistakes, and what catches each."""

from __future__ import annotations

import difflib
import importlib.util
import json
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from conformkit.cli.exits import Exit, fail, wrong

if TYPE_CHECKING:
    from conformkit.conformance.defects import Defect

__all__ = ["defects"]


def defects(
    prefixes: Annotated[
        list[str] | None, typer.Argument(metavar="PREFIX", help="Only mistakes whose ids begin with it, e.g. mask.")
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print every field as JSON.")] = False,
    measure: Annotated[
        bool, typer.Option("--measure", help="Judge them again, seconds for each, and compare with their files.")
    ] = False,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, help="Seed of the inputs when measured, 0 by default.")
    ] = 0,
) -> None:
    """List the known mistakes with the clauses that catch each, and the kill rate.

    Examples:
      conform defects mask
      conform defects --measure sdpa-no-scale
    """
    from conformkit.conformance.defects import defects as catalogue
    from conformkit.conformance.defects.kills import kill_rate, kills

    words = [word.lower() for item in prefixes or [] for word in item.split(",") if word]
    found = [d for d in catalogue().values() if not words or any(d.id.startswith(word) for word in words)]
    if not found:
        wrong("PREFIX", f"{', '.join(words)}: no known mistake has such an id{_nearest(words, catalogue())}.")
    if measure:
        _measure([defect.id for defect in found], seed)
        return
    red = {defect.id: kills().get(defect.id, ()) for defect in found}
    if as_json:
        print(json.dumps([_fields(defect, red[defect.id]) for defect in found], indent=2, ensure_ascii=False))
        return
    print("\n".join(_listing(found, red, shutil.get_terminal_size().columns)))
    killed, total = kill_rate(red)
    print(f"\n{killed} of {total} known mistakes break a clause that is binding (MUST)")


def _nearest(words: Sequence[str], ids: Iterable[str]) -> str:
    """Return the nearest ids or prefixes, or all prefixes, as the end of a sentence."""
    known = list(ids)
    begins = list(dict.fromkeys(name.partition("-")[0] for name in known))
    near = [hit for word in words for hit in difflib.get_close_matches(word, [*begins, *known], n=2, cutoff=0.6)]
    return f"; nearest: {', '.join(near)}" if near else f"; known prefixes: {', '.join(begins)}"


def _measure(ids: Sequence[str], seed: int) -> None:
    """Judge known mistakes again; print which clauses are red, and what to change in the files that say otherwise."""
    from conformkit.conformance.defects.kills import kill_rate
    from conformkit.conformance.diagnosis.measuring import measure

    if importlib.util.find_spec("torch") is None:  # the reference that is judged is written in it
        raise ModuleNotFoundError("No module named 'torch'", name="torch")
    found: dict[str, Sequence[str]] = {}
    _check_patches(ids)
    for name, red in measure(ids, seed):
        found[name] = red
        print(f"{name}: {', '.join(red) or 'nothing'}", *_untold(name, red), sep="\n", flush=True)
    killed, total = kill_rate(found)
    print(f"\n{killed} of {total} known mistakes break a clause that is binding (MUST)")


def _check_patches(ids: Sequence[str]) -> None:
    """Exit with the code for wrong usage, before anything is judged, if a patch does not fit the reference."""
    from conformkit.conformance.defects import defects as catalogue
    from conformkit.conformance.diagnosis.patching import PatchError, patched

    for name in ids:
        known = catalogue()[name]
        try:
            patched(known.patches)
        except PatchError as error:
            place = f"conformance/defects/{known.stem}/{name}.toml"
            fail(Exit.USAGE, f"{place}: {error}", "`find` must occur once in that file, or in what `at` names")


def _untold(name: str, red: Sequence[str]) -> Iterator[str]:
    """Yield what to change in a defect's file, if it names other clauses than were red."""
    from conformkit.conformance.binding.toml_text import line as toml_line
    from conformkit.conformance.defects import defects as catalogue

    known = catalogue()[name]
    also = [clause for clause in red if clause not in known.clauses]
    if set(also) != set(known.also):
        line = toml_line("also", also) if also else "no line `also`"
        yield f"  in {known.stem}/{name}.toml, if this patch breaks no more than it should: {line}"
    if spared := [clause for clause in known.clauses if clause not in red]:
        yield f"  not broken, although the file names them: {', '.join(spared)}"


def _listing(found: Sequence[Defect], red: dict[str, Sequence[str]], width: int) -> Iterator[str]:
    room = max(width, 40)
    for stem, group in groupby(found, key=lambda defect: defect.stem):
        members = list(group)
        yield f"{stem} ({len(members)})"
        for defect in members:
            yield from textwrap.wrap(
                f"{defect.id} · {defect.title}", room, initial_indent="  ", subsequent_indent="    "
            )
            caught = ", ".join(name for name in defect.clauses if name in red[defect.id]) or "nothing"
            yield from textwrap.wrap(
                f"caught by {caught}", room, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False
            )


def _fields(defect: Defect, red: Sequence[str]) -> dict[str, object]:
    return {
        "id": defect.id, "stem": defect.stem, "title": defect.title, "common": defect.common,
        "clauses": list(defect.clauses), "also": list(defect.also), "red": list(red), "sources": list(defect.sources),
        "hint": {"symptom": defect.hint.symptom, "area": defect.hint.area, "mistake": defect.hint.mistake},
        "variant": defect.choices,
    }  # fmt: skip
