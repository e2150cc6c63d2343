"""Tables of conform.toml as text: the same for trying and for writing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["lines", "table_text", "value_text"]

_BARE = re.compile(r"^[A-Za-z0-9_-]+$")


def table_text(component: str, table: Mapping[str, Any]) -> str:
    """Return a whole file that declares this component only."""
    return "\n".join(lines(f"components.{component}", table)) + "\n"


def lines(name: str, table: Mapping[str, Any]) -> list[str]:
    """Return the lines of one table, with `weights` and `generate` below it as separate tables."""
    own = {key: value for key, value in table.items() if key not in {"weights", "generate"}}
    found = [f"[{name}]", *(f"{_key(key)} = {value_text(value)}" for key, value in own.items())]
    for key in ("weights", "generate"):
        if key in table:
            found += ["", *lines(f"{name}.{key}", table[key])]
    return found


def value_text(value: Any) -> str:
    """Return a value in TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {value_text(v)}" for k, v in value.items()) + " }" if value else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(value_text, value))}]"
    return repr(value)


def _key(name: str) -> str:
    return name if _BARE.match(name) else json.dumps(name, ensure_ascii=False)
