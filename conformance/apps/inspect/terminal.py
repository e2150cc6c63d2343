"""An inspection for people: a table of parts, the entropy of heads, and what stands out, in sentences.

Names come from the implementation: they are printed as text, never as markup, and bounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from conformkit.conformance.apps.inspect.inspection import Inspection, Part, Weight
from conformkit.conformance.text import count, one_line

__all__ = ["write"]

_NAME = 80
_MAX_LINES = 40
_SILENT = {"Dropout", "Identity"}
"""Parts that return their input in eval mode."""


def write(found: Inspection, page: Console) -> None:
    """Print what was found."""
    page.print(Text(_title(found)))
    page.print(Text(_facts(found)))
    page.print()
    page.print(_table(found))
    _attention(found, page)
    _conspicuous(found, page)


def _title(found: Inspection) -> str:
    name = one_line(found.implementation, _NAME)
    return f"{found.component} of {name} ({found.framework}), seed {found.seed}, as initialized"


def _facts(found: Inspection) -> str:
    sizes = ", ".join(f"{name} {value}" for name, value in found.sizes.items() if value not in {0.0, None})
    total = sum(weight.count for weight in found.weights)
    loss = f"; loss {found.loss:.3f}" if found.loss is not None else ""
    chance = found.sizes.get("vocab_size")
    known = f", ln {chance} is {math.log(chance):.3f}" if loss and isinstance(chance, int) and chance > 0 else ""
    numbers = f"{total:,} trainable number{'' if total == 1 else 's'}"
    return f"{sizes}; input {_shape(found.inputs)}; {numbers}{loss}{known}"


def _table(found: Inspection) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("part", overflow="fold", ratio=1)
    for heading in ("output", "rms", "numbers", "gradient"):
        table.add_column(heading, justify="right", no_wrap=True)
    own = _by_owner(found)
    for part in (part for part in found.parts if part.kind not in _SILENT):
        weights = own.pop(part.name, [])
        table.add_row(
            Text(one_line(part.name, _NAME) or "the whole"), _shape(part.shape), _rms(part), *_sums(found, weights)
        )
    for owner, weights in own.items():  # parameters of parts that were not called
        table.add_row(Text(one_line(owner, _NAME) or "the whole"), "", "", *_sums(found, weights))
    return table


def _by_owner(found: Inspection) -> dict[str, list[Weight]]:
    own: dict[str, list[Weight]] = {}
    for weight in found.weights:
        own.setdefault(weight.owner, []).append(weight)
    return own


def _sums(found: Inspection, weights: Sequence[Weight]) -> tuple[str, str]:
    """Return the number of trainable numbers of one part, and the norm of all their gradients."""
    if not weights:
        return "", ""
    numbers = f"{sum(weight.count for weight in weights):,}"
    if not found.differentiated:
        return numbers, ""
    norms = [weight.gradient for weight in weights if weight.gradient is not None]
    return numbers, f"{math.sqrt(sum(norm**2 for norm in norms)):.2g}" if norms else "none"


def _rms(part: Part) -> str:
    return "NaN" if part.broken else f"{part.rms:.3g}"


def _shape(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape[:6])) or "number"


def _attention(found: Inspection, page: Console) -> None:
    page.print()
    if not found.heads:
        page.print(Text("No attention weights were seen: they may be computed in one fused operation, or not at all."))
        return
    page.print(Text("Entropy of attention by head, in nats:", style="bold"))
    for heads in found.heads[:_MAX_LINES]:
        values = " ".join(f"{value:.2f}" for value in heads.entropy[:_MAX_LINES])
        more = " …" if len(heads.entropy) > _MAX_LINES else ""
        place = one_line(heads.part, _NAME) or "the whole"
        page.print(Text(f"  {place}: {values}{more} (at most {heads.most:.2f})"))
    if any(heads.distance for heads in found.heads):
        page.print(Text("Mean distance between query and key by head, in positions:", style="bold"))
    for heads in [heads for heads in found.heads if heads.distance][:_MAX_LINES]:
        values = " ".join(f"{value:.1f}" for value in heads.distance[:_MAX_LINES])
        page.print(Text(f"  {one_line(heads.part, _NAME) or 'the whole'}: {values}"))


def _conspicuous(found: Inspection, page: Console) -> None:
    page.print()
    if not found.differentiated:
        why = "NumPy has no derivatives" if found.framework == "numpy" else "its output depends on no parameter"
        page.print(Text(f"No gradients: {why}."))
    if not found.conspicuous:
        page.print(Text("Nothing stands out: no dead, exploding or detached parts.", style="green"))
        return
    page.print(Text(f"{count(len(found.conspicuous), 'thing')} to look at:", style="bold red"))
    for item in found.conspicuous[:_MAX_LINES]:
        page.print(Text(f"  {one_line(item.place)}: {one_line(item.problem)}"))
        page.print(Text(f"      {item.advice}", style="dim"))
