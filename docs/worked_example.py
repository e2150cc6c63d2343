"""Draw the attention weights of the handout's example with three tokens: `python docs/worked_example.py`.

Its figure 1 shows them without a mask and with the causal one. Queries and keys are those of fixtures/attention.json,
the weights are what the reference computes from them; docs/worked-example.svg is written anew.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from conformkit.reference.attention import causal_mask, scaled_dot_product_attention

__all__ = ["PICTURE", "drawn", "weights"]

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "worked-example.svg"
CELL = 64
LEFT, TOP, GAP = 70, 80, 90
DARK = (31, 78, 140)


def weights() -> dict[str, Tensor]:
    """Return the weights by the words above them, (3, 3) each: they are the output for values that are one-hot rows."""
    goldens = json.loads((ROOT / "fixtures" / "attention.json").read_text(encoding="utf-8"))["goldens"]
    given = next(one["inputs"] for one in goldens if one["id"] == "SDPA-GOLDEN-TINY/handout-weights")
    q, k, v = (torch.tensor(given[name], dtype=torch.float64) for name in ("q", "k", "v"))
    return {
        "without a mask": scaled_dot_product_attention(q, k, v),
        "with the causal mask": scaled_dot_product_attention(q, k, v, causal_mask(len(q))),
    }


def drawn() -> str:
    """Return the picture as SVG."""
    panels = weights()
    count = len(next(iter(panels.values())))
    width = LEFT + len(panels) * (count * CELL + GAP) - GAP + 20
    height = TOP + count * CELL + 20
    size = f'width="{width}" height="{height}"'
    style = 'role="img" font-family="sans-serif" font-size="14" text-anchor="middle"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}" {style}>',
        "<title>Attention weights of the handout's three tokens</title>",
        f'<rect {size} fill="white"/>',
    ]
    for number, (title, panel) in enumerate(panels.items()):
        lines += _panel(LEFT + number * (count * CELL + GAP), title, panel)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _panel(left: int, title: str, panel: Tensor) -> Iterator[str]:
    """Draw one map: a row is a query, a column a key, and what is dark has much weight."""
    rows = panel.tolist()
    yield f'<text x="{left + len(rows) * CELL / 2:g}" y="24" font-weight="bold">{title}</text>'
    for place in range(len(rows)):
        middle = place * CELL + CELL / 2
        yield f'<text x="{left + middle:g}" y="{TOP - 12}">key {place + 1}</text>'
        yield f'<text x="{left - 8}" y="{TOP + middle + 5:g}" text-anchor="end">query {place + 1}</text>'
    for row, entries in enumerate(rows):
        for column, weight in enumerate(entries):
            x, y = left + column * CELL, TOP + row * CELL
            color = "".join(f"{round(255 + (dark - 255) * weight):02x}" for dark in DARK)
            yield f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="#{color}" stroke="#999"/>'
            ink = "white" if weight > 0.5 else "black"
            yield f'<text x="{x + CELL / 2:g}" y="{y + CELL / 2 + 5:g}" fill="{ink}">{weight:.3f}</text>'


def main() -> int:
    """Write the picture."""
    PICTURE.write_text(drawn(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
