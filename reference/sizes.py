"""Checks of the sizes of constructors and inputs, and the values of a variant's expressions over sizes."""

from __future__ import annotations

from torch import Tensor

from conformkit.reference.errors import ShapeError, SizeError

__all__ = ["check_at_least", "check_rate", "check_rows", "check_width", "evaluate"]


def check_at_least(least: int, **sizes: int) -> None:
    """Refuse a size below `least`, by name, before anything divides by it."""
    for name, size in sizes.items():
        if size < least:
            raise SizeError(name, size, f"at least {least}")


def check_rate(dropout: float) -> None:
    """Refuse a dropout rate that is no probability, such as NaN."""
    if not 0.0 <= dropout <= 1.0:
        raise SizeError("dropout", dropout, "between 0 and 1")


def check_rows(x: Tensor, d_model: int) -> None:
    """Refuse an input that is not (B, T, D)."""
    if x.ndim != 3 or x.shape[-1] != d_model:
        raise ShapeError("the shape of x", tuple(x.shape), f"(batch, positions, {d_model})")


def check_width(x: Tensor, d_model: int) -> None:
    """Refuse an input that is not (…, D)."""
    if x.ndim < 1 or x.shape[-1] != d_model:
        raise ShapeError("the shape of x", tuple(x.shape), f"(…, {d_model})")


def evaluate(expression: str, **sizes: int) -> int:
    """Return the value of an expression such as `num_heads // 2`, read from left to right.

    Operands are integers or names of sizes, operators `*` and `//`. A division must leave no remainder, because
    what is divided here is shared among heads.

    Raises: SizeError when a division leaves a remainder, or the value is below 1.
    """
    words = expression.replace("//", " // ").replace("*", " * ").split()
    value, so_far = _operand(words[0], sizes), words[0]
    for operator, word in zip(words[1::2], words[2::2], strict=True):
        operand = _operand(word, sizes)
        if operator == "//" and value % operand:
            wanted = str(operand) if word.isdigit() else f"{word} = {operand}"
            raise SizeError(so_far, value, f"a multiple of {wanted}")
        value = value // operand if operator == "//" else value * operand
        so_far = f"{so_far} {operator} {word}"
    check_at_least(1, **{expression: value})
    return value


def _operand(word: str, sizes: dict[str, int]) -> int:
    if word.isdigit():
        return int(word)
    if word not in sizes:
        raise SizeError("a name in a variant's expression", repr(word), "one of " + ", ".join(sizes))
    return sizes[word]
