"""What git answers is whole, or it is no answer."""

from __future__ import annotations

from io import BytesIO
from types import SimpleNamespace
from typing import Any

import pytest

from conformkit.conformance.apps.compare.blobs import Blobs, NoRevision


def answering(told: bytes) -> Blobs:
    git: Any = SimpleNamespace(stdin=BytesIO(), stdout=BytesIO(told))
    return Blobs(git)


def test_an_object_is_read_whole() -> None:
    assert answering(b"0a blob 5\nhello\n").read("0a") == ("blob", b"hello")
    assert answering(b"0a missing\n").read("0a") is None


@pytest.mark.parametrize("told", [b"0a blob 5\nhel", b"0a blo", b""], ids=["content", "line", "nothing"])
def test_an_answer_that_stops_is_none(told: bytes) -> None:
    """Would break if a file were read in part where git ends: another program would be judged."""
    with pytest.raises(NoRevision, match="git cannot read its objects"):
        answering(told).read("0a")
