"""The form that a reply must have before the harness accepts it. Its content is judged elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from conformkit.conformance.driver.client.interface import Reply
from conformkit.conformance.driver.client.recorded import is_place, is_record
from conformkit.conformance.driver.errors import FAILURES, ProtocolError
from conformkit.conformance.driver.wire.frames import split

__all__ = ["check_reply"]

_NOTHING: Any = None
Check = Callable[[Any], bool]


def check_reply(request: Mapping[str, Any], seq: int, reply: Reply) -> None:
    """Raise ProtocolError unless `reply` answers request number `seq` in the form of its operation."""
    found = reply.header.get("seq")
    if type(found) is not int or found != seq:
        message = f"the reply has seq {str(found)[:40]}, expected {seq}"
        raise ProtocolError(message)
    _check_body(request, reply.header, set(reply.tensors))


def _check_body(request: Mapping[str, Any], header: Any, names: set[str]) -> None:
    if not isinstance(header, dict) or type(header.get("ok")) is not bool:
        message = "the reply does not say whether it is ok"
        raise ProtocolError(message)
    if not header["ok"]:
        _check_error(header.get("error"))
        return
    operation = request.get("op")
    for key, check in _FORMS.get(str(operation), {}).items():
        if key not in header or not check(header[key]):
            message = f"the reply to {operation} has no proper {key}"
            raise ProtocolError(message)
    if operation in {"call", "vjp", "train", "trace"} and "out" not in names:
        message = f"the reply to {operation} has no array `out`"
        raise ProtocolError(message)
    if operation == "observe" and not {"out", "numbers"} <= names:
        message = "the reply to observe has no arrays `out` and `numbers`"
        raise ProtocolError(message)
    if operation == "describe" and not request.get("targets", {}).keys() <= header["exports"].keys():
        message = "the reply to describe lacks a requested name"
        raise ProtocolError(message)
    if operation == "batch":
        _check_batch(request["requests"], header["replies"], names)


def _check_error(error: object) -> None:
    keys = {"kind", "type", "base", "message", "where"}
    if not isinstance(error, dict) or set(error) != keys or not all(isinstance(error[key], str) for key in keys):
        message = "the reply is an error without kind, type, base, message and where"
        raise ProtocolError(message)
    if error["kind"] not in FAILURES:
        message = f"the reply has an unknown kind of error, {error['kind'][:40]}"
        raise ProtocolError(message)


def _check_batch(requests: list[Any], replies: list[Any], names: set[str]) -> None:
    if len(requests) != len(replies):
        message = f"a batch of {len(requests)} has {len(replies)} replies"
        raise ProtocolError(message)
    own: list[dict[str, Any]] = split(dict.fromkeys(names, _NOTHING), len(requests))
    for request, reply, arrays in zip(requests, replies, own, strict=True):
        _check_body(request, reply, set(arrays))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_handle(value: Any) -> bool:
    return type(value) is int


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_names(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value.values()))


def _is_parameters(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_parameter, value))


def _is_parameter(item: Any) -> bool:
    """Whether it describes a parameter: the most frequent form, checked without a call for each key."""
    try:
        name, shape, dtype, kind, alias = (item[key] for key in ("name", "shape", "dtype", "kind", "alias"))
        flags = type(item["trainable"]) is bool and type(item["lazy"]) is bool
    except (KeyError, TypeError):
        return False
    return (
        flags
        and type(name) is str
        and type(dtype) is str
        and type(kind) is str
        and (alias is None or type(alias) is str)
        and (shape is None or _is_shape(shape))
    )


def _is_exports(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, dict) and _is_export(item) for item in value.values())


def _is_export(item: dict[str, Any]) -> bool:
    if item.get("error") is not None:
        _check_error(item["error"])
    return _has(item, _FOUND if item.get("found") else {"found": _is_flag})


def _is_listing(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) and _has(item, _LISTED) for item in value)


def _is_signature(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) and _has(item, _ARGUMENT) for item in value)


def _is_methods(value: Any) -> bool:
    return isinstance(value, dict) and all(item is None or _is_signature(item) for item in value.values())


def _is_places(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_texts(item) for item in value.values())


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_count, value))


def _is_refusal(value: Any) -> bool:
    if value is not None:
        _check_error(value)
    return True


def _maybe(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _has(item: dict[str, Any], form: Mapping[str, Check]) -> bool:
    for key, check in form.items():  # noqa: SIM110 - for every parameter of every reply: `all` takes twice as long
        if key not in item or not check(item[key]):
            return False
    return True


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_amount(value: Any) -> bool:
    return type(value) in {int, float} and math.isfinite(value) and value >= 0


def _is_seen(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) and _has(item, _SEEN) for item in value)


def _is_attention(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) and _has(item, _ATTENTION) for item in value)


_SEEN: Mapping[str, Check] = {
    **dict.fromkeys(("name", "kind"), _is_text),
    "shape": _is_shape,
    **dict.fromkeys(("rms", "largest"), _is_amount),
    **dict.fromkeys(("broken", "calls", "dead", "units"), _is_count),
}
_ATTENTION: Mapping[str, Check] = {
    "part": _is_text,
    "shape": lambda value: _is_shape(value) and len(value) > 2,
    "entropy": lambda value: isinstance(value, list) and all(map(_is_amount, value)),
    "most": _is_amount,
    **dict.fromkeys(("distance", "future"), lambda value: isinstance(value, list) and all(map(_is_amount, value))),
}
_ARGUMENT: Mapping[str, Check] = {
    "name": _is_text,
    "kind": _is_text,
    "required": _is_flag,
    "default": _maybe(_is_text),
}
_FOUND: Mapping[str, Check] = {
    "found": _is_flag,
    "path": _is_text,
    "kind": _is_text,
    "construct": _maybe(_is_signature),
    "call": _maybe(_is_signature),
    "methods": _is_methods,
    "stubs": lambda value: isinstance(value, dict) and all(map(_is_text, value.values())),
    "inside": lambda value: isinstance(value, dict) and all(map(_is_texts, value.values())),
    "source": _is_text,
}
_LISTED: Mapping[str, Check] = {
    **dict.fromkeys(("path", "kind"), _is_text),
    **dict.fromkeys(("construct", "call"), _maybe(_is_signature)),
    "config": _maybe(_is_text),
    "objects": _is_places,
}
_CALLED: Mapping[str, Check] = {
    "dtypes": lambda value: _is_names(value) and "out" in value,
    "requires_grad": _is_flag,
    "rng": _is_texts,
    "training": _maybe(_is_flag),
    "modes": lambda value: isinstance(value, list) and all(map(_is_flag, value)),
    "structure": _is_text,
    "graph": _is_flag,
    "seen": _is_texts,
}
_FORMS: Mapping[str, Mapping[str, Check]] = {
    "load": {**dict.fromkeys(("framework", "version", "module", "file"), _is_text), "notes": _is_texts},
    "describe": {"exports": _is_exports, "refused": _is_refusal},
    "list": {"items": _is_listing, "left_out": _is_texts},
    "build": {"handle": _is_handle, "parameters": _is_parameters, "lazy": _is_flag, "dtype_refused": _is_refusal},
    "parameters": {"parameters": _is_parameters},
    "read": {"dtypes": _is_names, "left_out": _is_texts},
    "call": _CALLED,
    "ask": {"value": lambda _: True},
    "trace": {"parts": _is_seen, "attention": _is_attention},
    "observe": {"values": is_record, "place": _maybe(is_place), "cut": _is_flag},
    "vjp": {**_CALLED, "none": _is_texts},
    "hold": {"handle": _is_handle},
    "record": {"handle": _is_handle, "closed": _is_text},
    "gradients": {"none": _is_texts},
    "loop": {"handle": _is_handle},
    "copy": {"handle": _is_handle},
    "program": {"ended": _is_text, "errors": _is_names},
    "batch": {"replies": lambda value: isinstance(value, list)},
}
"""For each operation, what its reply must contain besides arrays."""
