"""A port as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from conformkit.conformance.apps.port.proof import Proof
from conformkit.conformance.apps.port.request import PortReport
from conformkit.conformance.text import one_line

__all__ = ["lines", "write"]

_WHERE = 3


def write(found: PortReport, page: Console) -> None:
    """Print the report: what was compared, what differs, and the mistake."""
    for line in lines(found):
        told = line.lstrip()
        indent = Text(line[: len(line) - len(told)])
        for part in Text(told).wrap(page, max(page.width - len(indent), 20)):
            part.rstrip()
            page.print(indent + part, soft_wrap=True)


def lines(found: PortReport) -> Iterator[str]:
    """Yield the report line by line."""
    yield f"{one_line(found.theirs, 200)} → {one_line(found.ours, 200)}"
    yield from (f"note: {note}" for note in found.notes)
    yield f"  code, with small random weights: {_said(found.code)}"
    if found.checkpoint is not None:
        yield f"  checkpoint: {_said(found.checkpoint)}"
    for choice, (one, other) in found.differences.items():
        yield f"  differs: {choice}: theirs has {one}, ours has {other}"
    yield from (f"  problem: {problem}" for problem in found.problems)
    for mistake in found.mistakes:
        where = ", ".join(mistake.where[:_WHERE]) + (", …" if len(mistake.where) > _WHERE else "")
        about = f" ({where})" if where and mistake.id not in {"numbers", "transposed", "rows"} else ""
        sure = "" if mistake.certainty == "exact" else f" [{mistake.certainty}]"
        yield f"  mistake: {mistake.sentence}{about}{sure}"
    if not found.proved and not (found.mistakes or found.differences or found.problems):
        yield "  no known mistake gives these numbers; conform run judges the code itself"
    if found.written:
        yield f"written: {found.written}"
    yield "PROVED: both say the same with the converted weights" if found.proved else "NOT PROVED"


def _said(proof: Proof) -> str:
    if not proof.compared:
        return "not compared: the weights of one have no place in the other"
    count = len(proof.compared)
    ids = f", {proof.ids} of {proof.sizes['vocab_size']} ids" if proof.ids < proof.sizes["vocab_size"] else ""
    how = f"{count} comparisons in {proof.dtype}{ids}, off by {proof.worst:.1e} at most"
    return f"the same ({how})" if proof.holds else f"first different: {proof.first} ({how})"
