"""The warm process of `conform run`, begun before the command's options are read.

To import torch takes longest of all that has to be done before anything is judged, and what reads options takes a fifth
of a second to import itself. What is guessed wrong here costs time only.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformkit.conformance.driver.client.head_start import HeadStart

__all__ = ["begin", "begun", "end"]

_USUAL = "process"
"""The isolation for which a process is begun: others are rare, and are begun when all is known about them."""
_NO_RUN = ("-h", "--help", "--isolation")
_waiting: dict[str, HeadStart] = {}
"""What was begun and not taken yet, by the name of the code."""


def begin(arguments: Sequence[str]) -> None:
    """Begin if these arguments of the command run something; whatever is wrong with them is told when they are read."""
    name = _code(arguments)
    if name is None or any(one.startswith(_NO_RUN) for one in arguments):
        return
    from conformkit.conformance.driver.client.head_start import head_start

    with contextlib.suppress(Exception):
        _waiting[name] = head_start(name, _USUAL)


def begun(name: str, isolation: str, workers: int) -> HeadStart:
    """Return what was begun for this code, or begin now."""
    from conformkit.conformance.driver.client.head_start import head_start

    if isolation == _USUAL and name in _waiting:
        return _waiting.pop(name)
    end()
    return head_start(name, isolation, workers)


def end() -> None:
    """End what nobody has taken: options were wrong, or name other code."""
    while _waiting:
        _waiting.popitem()[1].close()


def _code(arguments: Sequence[str]) -> str | None:
    """Return what is probably to be judged: the last value of --impl, or what follows `run` directly."""
    command, *others = arguments or [""]
    if command != "run" or not others:
        return None
    named = [value for word, value in pairwise(others) if word == "--impl"]
    named += [word.removeprefix("--impl=") for word in others if word.startswith("--impl=")]
    first = [others[0]] if not others[0].startswith("-") else []
    return next(iter([*named[-1:], *first]), None)
