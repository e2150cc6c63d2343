"""Find the arrays of an object without registered parameters: in attributes, lists, dicts, tuples, nested objects."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Slot", "owners", "walk"]

_LIMIT = 100_000
_DEPTH = 40
_OPAQUE = (
    type,
    str,
    bytes,
    int,
    float,
    complex,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.GeneratorType,
)


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in an object: how to read its value, and how to replace it."""

    name: str
    get: Callable[[], Any]
    set: Callable[[Any], None]


def walk(root: Any, is_leaf: Callable[[Any], bool]) -> Iterator[tuple[Slot, Any]]:
    """Yield every leaf beneath `root` with its place, in the order of attributes, names joined by dots.

    Safe with cycles: a container is entered only once; a leaf is yielded under each of its names.
    """
    seen = {id(root)}
    stack = [(Slot("", lambda: root, _refuse), root, 0)]
    while stack and len(seen) < _LIMIT:
        slot, value, depth = stack.pop()
        if depth and is_leaf(value):
            yield slot, value
            continue
        if depth and (value is None or isinstance(value, _OPAQUE) or id(value) in seen or depth > _DEPTH):
            continue
        seen.add(id(value))
        children = list(_children(slot, value))
        stack.extend((child, item, depth + 1) for child, item in reversed(children))


def owners(root: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return the object itself, under the empty name, and the objects on the path to these leaves."""
    found = {"": root}
    for name in names:
        value, path = root, ""
        for step in name.split(".")[:-1]:
            value = _below(value, step)
            if value is None:
                break
            path = f"{path}.{step}" if path else step
            found[path] = value
    return found


def _below(value: Any, step: str) -> Any:
    if isinstance(value, Mapping):
        return next((item for key, item in value.items() if str(key) == step), None)
    if isinstance(value, list | tuple) and step.isdecimal():
        return value[int(step)]
    return getattr(value, step, None)


def _children(slot: Slot, value: Any) -> Iterator[tuple[Slot, Any]]:
    if isinstance(value, Mapping):
        for key, item in list(value.items()):
            if isinstance(key, str | int):
                yield _of_item(slot, value, key), item
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield _of_item(slot, value, index), item
    elif isinstance(value, tuple):
        names = getattr(value, "_fields", range(len(value)))
        for index, (name, item) in enumerate(zip(names, value, strict=True)):
            yield _of_tuple(slot, index, str(name)), item
    elif isinstance(value, types.MethodType):
        return
    else:
        for name, item in _attributes(value):
            yield _of_attribute(slot, value, name), item


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    own = getattr(value, "__dict__", None)
    if isinstance(own, dict):
        yield from [(name, item) for name, item in own.items() if isinstance(name, str)]
    for base in type(value).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if isinstance(base.__dict__.get(name), types.MemberDescriptorType) and hasattr(value, name):
                yield name, getattr(value, name)


def _join(slot: Slot, name: object) -> str:
    return f"{slot.name}.{name}" if slot.name else str(name)


def _of_item(slot: Slot, container: Any, key: str | int) -> Slot:
    def put(item: Any) -> None:
        if not isinstance(container, MutableMapping | list):
            message = f"{_join(slot, key)} is inside a {type(container).__name__}, which cannot be changed"
            raise TypeError(message)
        container[key] = item  # type: ignore[index]

    return Slot(_join(slot, key), lambda: container[key], put)


def _of_tuple(slot: Slot, index: int, name: str) -> Slot:
    def put(item: Any) -> None:
        old = slot.get()
        items = [*old[:index], item, *old[index + 1 :]]
        slot.set(type(old)(*items) if hasattr(old, "_fields") else type(old)(items))

    return Slot(_join(slot, name), lambda: slot.get()[index], put)


def _of_attribute(slot: Slot, owner: Any, name: str) -> Slot:
    def put(item: Any) -> None:
        try:
            setattr(owner, name, item)
        except AttributeError:  # a frozen dataclass
            object.__setattr__(owner, name, item)

    return Slot(_join(slot, name), lambda: getattr(owner, name), put)


def _refuse(_: Any) -> None:
    message = "the component itself cannot be replaced"
    raise TypeError(message)
