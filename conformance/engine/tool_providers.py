"""What a test of a profile with tools may request besides components: each tool, by its name in lower case."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.engine.implementation import Implementation
from conformkit.spec.tools import TOOLS

__all__ = ["TOOL_PROVIDERS"]


def _tool(name: str) -> Callable[[Implementation, Draw], Any]:
    return lambda implementation, _draw: implementation.part(name)


def argument(name: str) -> str:
    """Return the argument name of a tool in tests: `char_tokenizer` for CharTokenizer."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


TOOL_PROVIDERS: Mapping[str, Callable[[Implementation, Draw], Any]] = {
    **{argument(name): _tool(name) for name in TOOLS},
    "own_adam": lambda implementation, _draw: implementation.tools().get("AdamW"),
    "own_batches": lambda implementation, _draw: implementation.tools().get("get_batch"),
}
"""`own_…` is None if the tool is missing: for clauses that work with another tool too."""
