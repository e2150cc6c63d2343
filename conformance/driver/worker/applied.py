"""Functions and the weights that they get as arguments, models and heads that stand outside of them: as one object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from conformkit.conformance.driver.worker.frameworks.base import RequestError

__all__ = ["Applied", "Headed", "made", "pair"]

_PAIR = 2


class Applied:
    """A function with the weights that its calls get: as the argument that a call names, or each by its own name."""

    def __init__(self, function: Callable[..., Any], params: Any, *, spread: bool) -> None:
        self.params = params
        self._call = _Hidden(function, spread=spread and isinstance(params, Mapping))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self._call.function(*args, **{**(self.params if self._call.spread else {}), **kwargs})


class Headed:
    """A model that returns states, and the head that scripts apply to them: an object, or a part of the model.

    A part is called, and rows of a matrix are multiplied.
    """

    def __init__(self, model: Any, head: Any, states: Callable[[Any], Any]) -> None:
        self.model = model
        self.head = None if isinstance(head, str) else head
        self._of = _Hidden(states, spread=False)
        self._part = head if isinstance(head, str) else ""
        self.training = bool(getattr(model, "training", False))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the logits."""
        states = self._of.function(self.model(*args, **kwargs))
        head = self.head if self.head is not None else attrgetter(self._part)(self.model)
        return head(states) if callable(head) else states @ head.T

    def train(self) -> None:
        """Switch both to training mode."""
        self._switch("train")

    def eval(self) -> None:
        """Switch both to evaluation mode."""
        self._switch("eval")

    def _switch(self, mode: str) -> None:
        self.training = mode == "train"
        for part in (self.model, self.head):
            if callable(switch := getattr(part, mode, None)):
                switch()


class _Hidden:
    """The function, where no search for arrays finds what it holds."""

    __slots__ = ("_kept",)

    def __init__(self, function: Callable[..., Any], *, spread: bool) -> None:
        self._kept = (lambda: function, spread)

    @property
    def function(self) -> Callable[..., Any]:
        found: Callable[..., Any] = self._kept[0]()
        return found

    @property
    def spread(self) -> bool:
        return self._kept[1]


def pair(product: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the functions init and apply of what a factory or class gave: a pair of them, or an object with both."""
    found = (getattr(product, "init", None), getattr(product, "apply", None))
    if isinstance(product, tuple | list) and len(product) == _PAIR:
        found = (product[0], product[1])
    if not all(map(callable, found)):
        message = "it gives no pair of functions, init and apply"
        raise RequestError(message)
    return found  # type: ignore[return-value]


def made(returned: Any) -> Any:
    """Return the weights in what init returned: stax and its likes return the shape of the output with them."""
    if isinstance(returned, tuple) and len(returned) == _PAIR and _is_shape(returned[0]):
        return returned[1]
    return returned


def _is_shape(value: Any) -> bool:
    return isinstance(value, tuple | list) and bool(value) and all(isinstance(extent, int) for extent in value)
