"""Why a checkpoint cannot be converted, as a sentence."""

from __future__ import annotations

__all__ = ["Unportable"]


class Unportable(Exception):
    """Something keeps the conversion from being tried: a file, a family, sizes, or code that cannot be bound.

    `advice` says what to do; `usage`: the command itself is wrong.
    """

    def __init__(self, problem: str, *, advice: tuple[str, ...] = (), usage: bool = False) -> None:
        super().__init__(problem)
        self.problem, self.advice, self.usage = problem, advice, usage
