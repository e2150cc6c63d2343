"""What a component or a tool needs from the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from conformkit.conformance.driver.client.interface import Reply
from conformkit.spec.arrays import Array

__all__ = ["Link"]


class Link(Protocol):
    """The connection to the worker."""

    is_torch: bool

    def request(self, header: Mapping[str, Any], tensors: Mapping[str, Array]) -> Reply:
        """Send a request to the worker."""
