"""A package of typed stubs, generated from the contract: its texts are those of the current law."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import keyword
import re
import shutil
import sys
import tempfile
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from conformkit.conformance.apps.scaffold.definitions import defined
from conformkit.conformance.apps.scaffold.stub_types import FRAMEWORKS, StubFramework, arguments, imports, result
from conformkit.spec.clauses import Clause, Level, clauses_of
from conformkit.spec.components import COMPONENTS, GENERATE, PATHS, Component, components_of
from conformkit.spec.profiles import MILESTONE_PROFILES, PROFILES, named_profile
from conformkit.spec.tools import FUNCTION, ToolContract, tools_of

__all__ = ["obstacle", "package", "write_package"]

_WIDTH = 100
_LISTED = 40
"""Maximum number of clauses to list; `conform spec` lists them all."""


def package(name: str, framework: str = "torch", profile: str = "core") -> dict[str, str]:
    """Return the files of the package by name: a module for each document of the law that describes something."""
    how = FRAMEWORKS[framework]
    modules: dict[str, dict[str, str]] = {}
    for export, text in _exports(how, profile):
        modules.setdefault(_protocol(export).__module__.rpartition(".")[2], {})[export] = text
    files = {f"{stem}.py": _module(stem, list(found.values())) for stem, found in modules.items()}
    return {"__init__.py": _init(name, modules, profile), **files}


def obstacle(path: Path) -> str:
    """Return why no package can be created there and what to do, or nothing."""
    target = path.resolve()
    name = target.name
    if not name.isidentifier() or keyword.iskeyword(name):
        what = "is a keyword of Python" if keyword.iskeyword(name) else "is not a package name"
        return f"{name!r} {what}; use letters, digits and underscores, such as my_transformer"
    if target.is_dir() and any(target.iterdir()):
        return f"{path} exists and is not empty; choose another name"
    if target.exists() and not target.is_dir():
        return f"{path} is an existing file; choose another name"
    if not target.parent.is_dir():
        return f"the folder {path.parent} does not exist; create it with: mkdir -p {path.parent}"
    if name in sys.stdlib_module_names or importlib.util.find_spec(name) is not None:
        return f"{name} is the name of an installed module, which would conflict with yours; choose another name"
    return ""


def write_package(path: Path, files: Mapping[str, str]) -> None:
    """Write all files or none. Raises OSError if something exists there, or if writing is not permitted."""
    target = path.resolve()
    draft = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        for name, text in files.items():
            (draft / name).write_text(text, encoding="utf-8")
        draft.chmod(0o755)
        if target.is_dir():
            target.rmdir()  # fails if it is not empty
        draft.rename(target)  # fails if it is not a folder
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _exports(how: StubFramework, profile: str) -> Iterator[tuple[str, str]]:
    for component in _components(profile).values():
        yield component.export, _component(component, how, profile)
    if named_profile(profile).has_tools:
        for tool in (tool for tool in tools_of(profile).values() if tool.begin):
            yield tool.name, _function(tool, how) if tool.construct is None else _class_of(tool, how)


def _components(profile: str) -> Mapping[str, Component]:
    """Return the exports of a new package of a profile; for an encoder-decoder, also those of its milestones."""
    if named_profile(profile).further_arguments:  # which ones is its author's choice: the model of core
        return {name: COMPONENTS[name] for name, component in PATHS.items() if component.required}
    steps = (*MILESTONE_PROFILES, profile) if profile == "seq2seq" else (profile,)
    return {name: component for step in steps for name, component in components_of(step).items()}


@cache
def _protocols() -> Mapping[str, type]:
    stems = dict.fromkeys(stem for one in PROFILES.values() for stem in one.documents)
    names = [f"conformkit.spec.{stem}" for stem in stems]
    modules = [importlib.import_module(name) for name in names if importlib.util.find_spec(name)]
    found = (value for module in modules for value in vars(module).values() if isinstance(value, type))
    return {value.__name__: value for value in found if getattr(value, "_is_protocol", False)}


def _protocol(export: str) -> type:
    """Return the Protocol of an export: `cross_entropy` is described by CrossEntropy."""
    named = _protocols()
    return named.get(export) or named["".join(word[:1].upper() + word[1:] for word in export.split("_"))]


def _component(component: Component, how: StubFramework, profile: str) -> str:
    protocol = _protocol(component.export)
    document_text = _with_definition(_doc(protocol), component.export)
    document = _docstring(document_text, _clauses_of(component.name, component.prefix, component.profile))
    call = arguments(_parameters(protocol, "__call__"), how)
    if component.export != component.name:
        return _def(component.export, call, how.array, document)
    built = arguments(component.arguments, how)
    parts = [_def("__init__", ["self", *built], "None", "", how.begin)]
    second = any(method.beside is not None for method in component.methods)
    parts.append(_def(how.call, ["self", *call], f"tuple[{how.array}, {how.array}]" if second else how.array, ""))
    if component.is_language_model:
        parts.append(_generate(protocol, how, profile))
    parts += [_method(protocol, method.name, how) for method in component.methods if method.beside is None]
    return _class(component.name, how.base, document, parts)


def _method(protocol: type, name: str, how: StubFramework) -> str:
    given = arguments(_parameters(protocol, name), how)
    return _def(name, ["self", *given], how.array, _docstring(_doc(getattr(protocol, name)), []))


def _generate(protocol: type, how: StubFramework, profile: str) -> str:
    given = _parameters(protocol, "generate")
    if profile != "core":
        known = {parameter.name for parameter in given}
        given += [a for a in GENERATE if not a.required and a.name not in known]
    document = _docstring("Return prompt and new ids, (B, T) → (B, T + max_new_tokens); temperature 0 is greedy.",
                          _clauses_of("TinyTransformerLM", "GEN", "core"))  # fmt: skip
    return _def("generate", ["self", *arguments(given, how)], how.array, document)


def _function(tool: ToolContract, how: StubFramework) -> str:
    protocol = _protocol(tool.name)
    given = arguments(tool.calls[FUNCTION], how, lists=tool.lists)
    document = _docstring(_doc(protocol), _clauses_of(tool.name, "", tool.profile))
    return _def(tool.name, given, result(tool, FUNCTION, how), document)


def _class_of(tool: ToolContract, how: StubFramework) -> str:
    protocol = _protocol(tool.name)
    document = _docstring(_doc(protocol), _clauses_of(tool.name, "", tool.profile))
    head = "".join(f"{name}: int\n" for name in tool.attributes)
    built = arguments(tool.construct or (), how, lists=tool.lists)
    called = FUNCTION in tool.calls
    parts = [_def("__init__", ["self", *built], "None", "", how.begin if called else "")]
    for method, given in tool.calls.items():
        text = _docstring(_doc(getattr(protocol, method)), []) if method else ""
        typed = ["self", *arguments(given, how, lists=tool.lists)]
        parts.append(_def(method or how.call, typed, result(tool, method, how), text))
    return _class(tool.name, how.base if called else "", document, ([head] if head else []) + parts)


def _parameters(protocol: type, method: str) -> list[Any]:
    return list(inspect.signature(getattr(protocol, method)).parameters.values())[1:]


def _doc(protocol: object) -> str:
    return inspect.getdoc(protocol) or ""


def _with_definition(document: str, export: str) -> str:
    """Insert what it computes before the sources, or at the end."""
    lines, found = document.splitlines(), defined(export)
    at = next((n for n, line in enumerate(lines) if line.lstrip().startswith("Source:")), len(lines))
    return "\n".join([*lines[:at], *([found] if found else []), *lines[at:]])


def _clauses_of(component: str, prefix: str, profile: str) -> list[str]:
    """Return its binding clauses by id and title, and which other groups of clauses are about it."""
    own = [c for c in clauses_of(profile).values() if c.component == component and c.level is Level.MUST]
    listed = [c for c in own if prefix in {"", c.prefix}]
    others = Counter(c.prefix for c in own if c not in listed)
    width = max((len(c.id) for c in listed), default=0)
    lines = [line for c in listed[:_LISTED] for line in _entry(c, width)]
    if listed[_LISTED:]:
        lines.append(f"    and {len(listed) - _LISTED} more: conform spec {prefix or component}")
    if prefix == "GEN" or not others:
        return lines
    return [*lines, f"    and of {', '.join(f'{name} ({count})' for name, count in others.items())}"]


def _entry(clause: Clause, width: int) -> list[str]:
    first = f"    {clause.id:{width}}  "
    return textwrap.wrap(clause.title, _WIDTH, initial_indent=first, subsequent_indent=" " * len(first))


def _docstring(text: str, listed: list[str]) -> str:
    body = [text.rstrip(), "", "Clauses (conform explain ID):", *listed] if listed else [text.rstrip()]
    lines = "\n".join(body)
    quoted = lines.replace("\\", "\\\\")
    return f'"""{quoted}\n"""' if "\n" in quoted else f'"""{quoted}"""'


def _class(name: str, base: str, document: str, parts: list[str]) -> str:
    body = "\n\n".join(textwrap.indent(part, "    ").rstrip() for part in parts)
    return f"class {name}{f'({base})' if base else ''}:\n{textwrap.indent(document, '    ')}\n\n{body}\n"


def _def(name: str, given: list[str], returned: str, document: str, begin: str = "") -> str:
    head = f"def {name}({', '.join(given)}) -> {returned}:"
    if len(head) > _WIDTH:
        inside = ", ".join(given)
        inside = inside if len(inside) < _WIDTH - 12 else ",\n    ".join(given) + ","
        head = f"def {name}(\n    {inside}\n) -> {returned}:"
    body = [part for part in (document, begin, "raise NotImplementedError") if part]
    return head + "\n" + textwrap.indent("\n".join(body), "    ") + "\n"


def _module(stem: str, texts: list[str]) -> str:
    body = "\n\n".join(texts)
    title = re.sub("_", " ", stem).capitalize()
    head = [f'"""{title}."""', "from __future__ import annotations", imports(body)]
    return "\n\n".join(part for part in head if part) + f"\n\n\n{body}"


def _init(name: str, modules: Mapping[str, Mapping[str, str]], profile: str) -> str:
    option = "".join(f" {word}" for word in named_profile(profile).option)
    steps = ";\n--profile milestone1 to milestone5 does so step by step" if profile == "seq2seq" else ""
    document = (
        f'"""Stubs of a small transformer to fill in.\n\n    conform run --impl {name}{option}\n\n'
        f"says what is wrong, and what to write next{steps}. The docstrings describe the canonical variant; another\n"
        f"choice, post-norm or ReLU or learned positions, is right too once conform.toml declares it:\n\n"
        f'    [variant]\n    placement = "post"\n"""\n'
    )
    lines = [f"from .{stem} import {', '.join(sorted(found))}" for stem, found in sorted(modules.items())]
    exported = ", ".join(f'"{export}"' for export in sorted(e for found in modules.values() for e in found))
    wrapped = textwrap.fill(exported, _WIDTH, initial_indent="    ", subsequent_indent="    ")
    return f"{document}\n" + "\n".join(lines) + f"\n\n__all__ = [\n{wrapped},\n]\n"
