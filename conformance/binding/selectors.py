"""Which part of a call's result to take: an index, a key or an attribute, or several of these."""

from __future__ import annotations

from conformkit.conformance.binding.toml_nodes import Node

__all__ = ["Selector", "read_index", "read_selector"]

Selector = None | int | str | tuple[int | str, ...]


def read_selector(node: Node) -> Selector:
    """Read one selector, or a list of them."""
    if not isinstance(node.value, list):
        return read_index(node)
    if not node.value:
        raise node.error("an empty list selects nothing")
    return tuple(read_index(item) for item in node.items())


def read_index(node: Node) -> int | str:
    """Read an index, a key or an attribute."""
    return node.text(200) if isinstance(node.value, str) else node.whole(-16, 16)
