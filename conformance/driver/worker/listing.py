"""What an implementation defines, whatever it is called: classes, functions, dictionaries of settings, sizes."""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import re
import sys
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from conformkit.conformance.driver.location import parse
from conformkit.conformance.driver.worker.exports import describe, kind_of, signature
from conformkit.conformance.driver.worker.failures import failure
from conformkit.conformance.driver.worker.loading import LoadedImplementation
from conformkit.conformance.driver.worker.own_calls import of_library

__all__ = ["config_of", "listed"]

_MAX_ITEMS = 200
_MOST_KEYS = 60
_TOKENS = re.compile(r"pad|bos|sos|cls|mask", re.IGNORECASE)
"""In names of ids of special tokens, which may be 0 as no size is."""
_MOST_MODULES = 60
_MOST_KINDS = 8
_NAMESPACES = (types.SimpleNamespace, argparse.Namespace)
_ALONE: Mapping[str, Any] = {"config": None, "objects": {}, "says": "", "boolean": [], "memory": "", "reads": [],
                             "data_set": False}  # fmt: skip
_MOST_SAID = 300
_DEEP = 3
"""How many dictionaries of settings may lie in one another."""


def listed(
    implementation: LoadedImplementation, paths: Sequence[str], *, others: bool
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return what is at these paths and, with `others`, defined in its modules, and what could not be read.

    Signatures, no values.
    """
    left_out: list[str] = []
    items = _items(implementation, left_out) if others else iter(())
    named = (_item(path, implementation.resolve(path), implementation) for path in paths)
    found = {item["path"]: item for item in islice(chain(named, items), _MAX_ITEMS)}
    return list(found.values()), left_out


def config_of(value: Any) -> str | None:
    """Return where the class of the object is that a class is constructed from, if it says: `package.module:Name`."""
    if not isinstance(value, type):
        return None
    named = getattr(value, "config_class", None)
    if isinstance(named, type):
        return _path(named)
    annotated = next((_path(kind) for kind in _annotations(value) if _is_settings(kind)), None)
    return annotated or _beside(value)


def _items(implementation: LoadedImplementation, left_out: list[str]) -> Iterator[dict[str, Any]]:
    for module in _modules(implementation, left_out):
        yield _numbers(module)
        for name, value in list(vars(module).items()):
            if name.startswith("_") or not _is_defined_in(module, value):
                continue
            path = f"{module.__name__}:{name}"
            yield _item(path, value, implementation)
            for inner, method in vars(value).items() if isinstance(value, type) else ():
                if isinstance(method, staticmethod) and not inner.startswith("_"):
                    yield _item(f"{path}.{inner}", method.__func__, implementation)


def _item(path: str, value: Any, implementation: LoadedImplementation) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {"path": path, "kind": "mapping", "construct": _keys(value), "call": None, **_ALONE}
    described = describe(value, path, implementation.place)
    facts = {key: described[key] for key in ("path", "kind", "construct", "call", "boolean", "memory")}
    inherited = getattr(value, "forward", None) if isinstance(value, type) and facts["call"] is None else None
    facts["call"] = signature(inherited, bound=False) if inherited is not None else facts["call"]
    if _hides(facts["call"]) and inspect.isroutine(handed := getattr(value, "call", None)):
        facts["call"] = signature(handed, bound=not isinstance(value, type))
    if isinstance(value, type) and facts["construct"] is not None:
        facts["construct"] = _with_fields(value, _with_inherited(value, facts["construct"]))
        facts["construct"] = _with_settings(value, facts["construct"]) if not _has_call(value) else facts["construct"]
    facts |= {"config": config_of(value), "objects": _objects(value), "says": _says(value), "reads": _reads(value)}
    return {**facts, "data_set": facts["call"] is None and _is_data_set(value)}


def _is_data_set(value: Any) -> bool:
    """Whether it is a class of its author's whose items are read by their number, and that tells how many there are."""
    bases = [base for base in value.__mro__ if not of_library(base)] if isinstance(value, type) else []
    return all(any(name in vars(base) for base in bases) for name in ("__getitem__", "__len__"))


def _reads(value: Any) -> list[str]:
    """Return the numbers and arrays of its module that a function reads, in the order in which it does."""
    code, there = getattr(value, "__code__", None), getattr(value, "__globals__", {})
    return [name for name in getattr(code, "co_names", ()) if _is_read(there.get(name))]


def _is_read(value: Any) -> bool:
    return type(value) in {int, float} or (getattr(value, "ndim", 0) == 1 and hasattr(value, "dtype"))


def _says(value: Any) -> str:
    """Return what its docstring and that of its module say first."""
    module = sys.modules.get(str(getattr(value, "__module__", "")))
    own = value.__doc__ if inspect.isroutine(value) or isinstance(value, type) else None
    said = [text for text in (own, getattr(module, "__doc__", None)) if isinstance(text, str)]
    return " ".join(text[:_MOST_SAID] for text in said)


def _hides(call: Sequence[Mapping[str, Any]] | None) -> bool:
    """Whether a call hands everything on: `forward(*args, **kwargs)` that calls `call`."""
    return bool(call) and all(p["kind"].startswith("var_") for p in call or ())


def _modules(implementation: LoadedImplementation, left_out: list[str]) -> Iterator[types.ModuleType]:
    """Yield its module, then submodules that define something and run nothing long when they are imported."""
    if implementation.module is not None:
        yield implementation.module
    for name, path in islice(implementation.submodules(), _MOST_MODULES):
        tree = parse(path)
        if tree is None or not any(isinstance(node, ast.ClassDef | ast.FunctionDef) for node in tree.body):
            continue
        if name not in sys.modules and any(isinstance(node, ast.For | ast.While | ast.With) for node in tree.body):
            left_out.append(f"{name} is a script and was not imported")
            continue
        try:
            yield importlib.import_module(name)
        except (Exception, SystemExit) as error:  # noqa: BLE001
            left_out.append(f"{name}: {failure(error, implementation.place, loading=True)['message']}")


def _numbers(module: types.ModuleType) -> dict[str, Any]:
    """Describe the numbers in a module as if they were arguments: sizes and rates that its code reads from there.

    Those in a dictionary or an object of settings follow, as `cfg.n_embd`.
    """
    there = {n: v for n, v in list(vars(module).items()) if not n.startswith("_")}
    inner = {f"{n}.{key}": number for n, v in there.items() for key, number in _inside(v, module).items()}
    found = {n: v for n, v in {**there, **inner}.items() if _is_setting(n, v)}
    used = _names_read(module) if any(type(v) is float for v in found.values()) else set()
    found = {n: v for n, v in found.items() if type(v) is int or n.rpartition(".")[2] in used}
    keys = _keys(dict(islice(found.items(), _MOST_KEYS)))
    return {"path": f"{module.__name__}:", "kind": "numbers", "construct": keys, "call": None, **_ALONE}


def _names_read(module: types.ModuleType) -> set[str]:
    """Return the names, and texts, in functions and methods that a module defines: a rate at its top may be idle."""
    own = [value for value in vars(module).values() if getattr(value, "__module__", None) == module.__name__]
    inner = [part for value in own if isinstance(value, type) for part in vars(value).values()]
    bare = [inspect.unwrap(getattr(value, "__func__", value)) for value in [*own, *inner]]
    waiting = [code for value in bare if isinstance(code := getattr(value, "__code__", None), types.CodeType)]
    found: set[str] = set()
    while waiting:
        code = waiting.pop()
        found |= {*code.co_names, *(one for one in code.co_consts if isinstance(one, str))}
        waiting += [one for one in code.co_consts if isinstance(one, types.CodeType)]
    return found


def _inside(value: Any, module: types.ModuleType) -> dict[str, Any]:
    """Return what a dictionary, a namespace, or an object or class of settings of this module holds."""
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if isinstance(key, str) and key.isidentifier()}
    kind = value if isinstance(value, type) else type(value)
    settings = kind.__module__ == module.__name__ and not _has_call(kind)
    return dict(getattr(value, "__dict__", {})) if settings or kind in _NAMESPACES else {}


def _is_setting(name: str, value: Any) -> bool:
    """Whether a number may be a size, the id of a token, or the rate of a dropout."""
    if type(value) is int:
        return value > 0 or (value == 0 and bool(_TOKENS.search(name)))
    return type(value) is float and "drop" in name.lower()


def _is_defined_in(module: types.ModuleType, value: Any) -> bool:
    if isinstance(value, Mapping):
        return 0 < len(value) <= _MOST_KEYS and all(isinstance(key, str) and key.isidentifier() for key in value)
    return kind_of(value) != "object" and getattr(value, "__module__", None) == module.__name__


def _with_inherited(kind: type, own: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the arguments that `**kwargs` hands on to base classes; these can be passed by name only."""
    found = own
    for base in kind.__mro__[1:-1]:
        if not any(p["kind"] == "var_keyword" for p in found):
            break
        if "__init__" in vars(base):
            named = [p for p in found if p["kind"] != "var_keyword"]
            more = [p for p in signature(vars(base)["__init__"], bound=False) or () if p["kind"] != "var_positional"]
            more = [p for p in more if p["name"] not in {other["name"] for other in named}]
            found = named + [p if p["kind"] == "var_keyword" else {**p, "kind": "keyword"} for p in more]
    return found


def _with_fields(kind: type, own: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the numbers of a class of settings that its constructor takes as `**kwargs`, to replace them."""
    if not any(p["kind"] == "var_keyword" for p in own) or _has_call(kind):
        return own
    fields = {n: v for n, v in vars(kind).items() if not n.startswith("_") and isinstance(v, bool | int | float | None)}
    more = [p for p in _keys(dict(islice(fields.items(), _MOST_KEYS))) if p["name"] not in {o["name"] for o in own}]
    return [*(p for p in own if p["kind"] != "var_keyword"), *more, *(p for p in own if p["kind"] == "var_keyword")]


def _with_settings(kind: type, own: list[dict[str, Any]], deep: int = _DEEP) -> list[dict[str, Any]]:
    """Say of the arguments of a class of settings that are such objects themselves what these are made from."""
    try:
        said = {p.name: _kinds(p.annotation, kind) for p in inspect.signature(kind).parameters.values()}
    except (ValueError, TypeError):
        return own
    return [_made_inside(parameter, said.get(parameter["name"], ()), kind, deep) for parameter in own]


def _made_inside(parameter: dict[str, Any], kinds: Sequence[type], owner: type, deep: int) -> dict[str, Any]:
    """Say of one argument what it is made from, if it is an object of settings; `deep` says how far to look."""
    for kind in kinds if deep else ():
        fields = signature(kind) if _is_settings(kind) and _is_of_package(kind, owner) and not _has_call(kind) else None
        if fields:
            return {**parameter, "inner": _with_settings(kind, fields, deep - 1), "made_of": _path(kind)}
    return parameter


def _objects(value: Any) -> dict[str, list[str]]:
    """Return, by required arguments of a constructor, the classes of its own package that their annotations allow."""
    try:
        parameters = inspect.signature(value).parameters.values() if isinstance(value, type) else ()
    except (ValueError, TypeError):
        return {}
    found = {p.name: _allowed(p.annotation, value) for p in parameters if p.default is p.empty}
    return {name: paths for name, paths in found.items() if paths}


def _allowed(annotation: Any, owner: type) -> list[str]:
    """Return a class with a call that an annotation names, as text too, and its subclasses."""
    kinds = [kind for kind in _kinds(annotation, owner) if _is_of_package(kind, owner) and _has_call(kind)]
    return list(islice(dict.fromkeys(_path(other) for kind in kinds for other in _with_subclasses(kind)), _MOST_KINDS))


def _kinds(annotation: Any, owner: type) -> list[type]:
    """Return the classes that an annotation names, in a union and as text too."""
    names = vars(sys.modules.get(owner.__module__, types))
    words = re.findall(r"\w+", annotation) if isinstance(annotation, str) else ()
    said = [names.get(word) for word in words] or [annotation, *typing.get_args(annotation)]
    return [kind for kind in said if isinstance(kind, type)]


def _with_subclasses(kind: type) -> Iterator[type]:
    yield kind
    below: list[type] = type.__subclasses__(kind)
    for other in below:
        yield from _with_subclasses(other)


def _is_of_package(kind: type, owner: type) -> bool:
    return kind is not owner and kind.__module__.partition(".")[0] == owner.__module__.partition(".")[0]


def _has_call(kind: type) -> bool:
    return hasattr(kind, "forward") or "__call__" in {name for base in kind.__mro__ for name in vars(base)}


def _keys(value: Mapping[str, Any], deep: int = _DEEP) -> list[dict[str, Any]]:
    """Describe a dictionary as if its keys were arguments, and those in it that are dictionaries too."""
    form = {"kind": "keyword", "positional_only": False, "required": False}
    return [
        {
            "name": key,
            **form,
            "default": repr(item)[:40] if _is_plain(item) else "…",
            **({"inner": _keys(item, deep - 1)} if deep and _is_table(item) else {}),
        }
        for key, item in value.items()
    ]


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) and 0 < len(value) <= _MOST_KEYS and all(isinstance(key, str) for key in value)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float) or (isinstance(value, str) and value.isidentifier())


def _annotations(value: type) -> Iterator[type]:
    try:
        parameters = inspect.signature(value, eval_str=True).parameters.values()
    except Exception:  # noqa: BLE001 - annotations are code, and may fail in any way
        return
    said = (kind for parameter in parameters for kind in _kinds(parameter.annotation, value))
    yield from (kind for kind in said if kind is not inspect.Parameter.empty)


def _beside(value: type) -> str | None:
    """Return the class of settings in its module that is called most like it, where its constructor wants one."""
    if "config" not in (p["name"] for p in signature(value) or ()):
        return None
    names = vars(sys.modules[value.__module__]).items() if value.__module__ in sys.modules else ()
    found = [other for name, other in names if name.endswith("Config") and isinstance(other, type)]
    nearest = max(found, key=lambda other: _alike(other.__name__, value.__name__), default=None)
    return _path(nearest) if nearest and _alike(nearest.__name__, value.__name__) else None


def _alike(one: str, other: str) -> int:
    """Return how many letters two names begin with alike."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _is_settings(kind: type) -> bool:
    return kind.__module__ != "builtins" and not hasattr(kind, "forward") and not kind.__module__.startswith("torch")


def _path(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"
