"""JSON as every command writes it, and the schemas that describe it."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

__all__ = ["json_text", "packaged_schema"]


def json_text(found: object) -> str:
    """Return an object as indented JSON text that ends with a newline. Raises ValueError for NaN and infinity."""
    return json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def packaged_schema(package: str, name: str) -> dict[str, Any]:
    """Return the JSON Schema `name.schema.json` that lies in a package."""
    text = files(package).joinpath(f"{name}.schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found
