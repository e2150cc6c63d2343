"""Values, lines and tables of conform.toml as text: `tomli_w` writes keys and scalars, and this puts them in lines.

tomli_w spreads lists over several lines, has no inline tables and no comments; in a file that people edit each key
has one line. Whoever drafts a file puts its comments between these lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tomli_w

__all__ = ["choice_line", "line", "lines", "stored", "table_text", "value_text"]


def table_text(component: str, table: Mapping[str, Any]) -> str:
    """Return a whole file that declares this component only."""
    return "\n".join(lines(f"components.{component}", table)) + "\n"


def lines(name: str, table: Mapping[str, Any]) -> list[str]:
    """Return the lines of one table, with `weights` and `generate` below it as separate tables."""
    below = [key for key in ("weights", "generate") if key in table]
    own = [line(key, value) for key, value in table.items() if key not in below]
    return [f"[{name}]", *own, *(text for key in below for text in ("", *lines(f"{name}.{key}", table[key])))]


def line(key: str, value: Any) -> str:
    """Return the line that gives a key its value."""
    return tomli_w.dumps({key: 0}).removesuffix("0\n") + value_text(value)


def choice_line(choice: str, value: Any) -> str:
    """Return the line that declares a choice of a variant."""
    return line(choice, stored(value))


def stored(value: Any) -> Any:
    """Return a choice as a file has it: numbers of heads and features are integers, expressions texts."""
    return int(value) if isinstance(value, str) and value.isdigit() else value


def value_text(value: Any) -> str:
    """Return a value in TOML, in one line."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(line(key, item) for key, item in value.items())} }}" if value else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(value_text, value))}]"
    return tomli_w.dumps({"value": value}).removeprefix("value = ").removesuffix("\n")
