"""TOML, written: tables of texts, numbers, booleans and lists of them, which is all that a run's documents need.

The standard library reads TOML and does not write it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["as_toml"]


def as_toml(document: Mapping[str, Any]) -> str:
    """Return a document of values and of tables, one level deep; empty tables are left out."""
    head = [f"{key} = {_value(value)}" for key, value in document.items() if not isinstance(value, Mapping)]
    lines = [*head]
    for name, table in document.items():
        if isinstance(table, Mapping) and table:
            lines += ["", f"[{name}]", *(f"{key} = {_value(value)}" for key, value in table.items())]
    return "\n".join(lines).strip() + "\n"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)
