"""`conform.toml`, or `[tool.conform]` in `pyproject.toml`: what an implementation declares about itself.

The format is described in docs/conform-toml.md and, for editors, in conform.schema.json. When grading, the file is as
little trusted as the code: it is bounded, read as data, and every value is checked before anything uses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from conformkit.conformance.binding.expressions import ExpressionError, evaluate, names, nearest, shown
from conformkit.conformance.binding.patterns import PatternError, Rule, check_rule, expand, parse_rule
from conformkit.conformance.binding.toml_lines import ConfigError, Node, parse_document, read_text
from conformkit.spec.components import COMPONENTS
from conformkit.spec.variants import Variant, choices

__all__ = [
    "CALL_NAMES", "GENERATE_NAMES", "SIZE_NAMES", "Arguments", "ComponentConfig", "Config", "ConfigError", "Expression",
    "GenerateConfig", "Limits", "MaskConfig", "Range", "canonical_axes", "find_config", "load_config", "parse_config",
]  # fmt: skip

SIZE_NAMES = (
    "d_model", "num_heads", "kv_heads", "head_width", "d_ff", "vocab_size", "block_size", "max_len", "num_layers",
    "d_k", "d_v", "dropout", "causal",
)  # fmt: skip
"""What expressions in `construct`, `weights` and `limits` may use."""
CALL_NAMES = ("x", "q", "k", "v", "ids", "mask", "causal", "positions", *SIZE_NAMES[:-1])
"""What expressions in `call` may use."""
GENERATE_NAMES = ("model", "ids", "max_new_tokens", "temperature", "top_k", "top_p", "seed", *SIZE_NAMES)
"""What expressions in `generate` may use."""
LIMITED = (*SIZE_NAMES[:-2], "tokens", "batch")
DTYPES = ("float64", "float32", "float16", "bfloat16")
FRAMEWORKS = ("torch", "numpy")
CAUSAL = ("construct", "always", "never", "mask", "flag")
LAYOUTS = ("batch first", "sequence first")
MASK_SHAPES = ("T T", "1 T T", "1 1 T T", "T T 1")
OPTIONS = ("temperature", "top_k", "top_p")
MAX_NESTING = 8
MAX_SIZE = 1_000_000

Selector = None | int | str | tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression, evaluated when its names have values."""

    text: str


@dataclass(frozen=True, slots=True)
class _Object:
    path: str
    arguments: Arguments


@dataclass(frozen=True, slots=True)
class Arguments:
    """Positional and named arguments whose values are known only when sizes or arrays are."""

    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)

    def template(self, values: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return `args` and `kwargs` as the driver wants them; raise ExpressionError where a value has none."""
        return [_filled(a, values) for a in self.positional], {n: _filled(a, values) for n, a in self.named.items()}

    def names(self) -> frozenset[str]:
        """Return the names of the values that are used."""
        return frozenset(_used([*self.positional, *self.named.values()]))

    def but(self, changes: Arguments) -> Arguments:
        """Return these with other named arguments; one that stands by its own name among the positional is replaced."""
        rest = dict(changes.named)
        positional = tuple(rest.pop(a.text, a) if isinstance(a, Expression) else a for a in self.positional)
        return Arguments(positional, {**self.named, **rest})


@dataclass(frozen=True, slots=True)
class Range:
    """What a size may be. `equals`, an expression over other sizes, leaves no choice."""

    min: int | None = None
    max: int | None = None
    multiple_of: int | None = None
    equals: str | None = None

    def merged(self, other: Range) -> Range:
        """Return this range, overridden where the other one says something."""
        if other.equals is not None:
            return other
        said = {f.name: value for f in fields(other) if (value := getattr(other, f.name)) is not None}
        return replace(self, equals=None, **said) if said else self

    def allows(self, size: int) -> bool:
        """Return whether a size is within (an expression allows any)."""
        low, high = self.min or 0, MAX_SIZE if self.max is None else self.max
        return low <= size <= high and size % (self.multiple_of or 1) == 0


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be drawn. `rank`: attention inputs have exactly this many dimensions."""

    sizes: Mapping[str, Range] = field(default_factory=dict)
    rank: int | None = None

    def of(self, size: str) -> Range:
        """Return the range of a size, of `tokens` or of `batch`; without limits where none are declared."""
        return self.sizes.get(size, Range())

    def merged(self, other: Limits) -> Limits:
        """Return these limits, overridden where the others say something."""
        sizes = {n: self.of(n).merged(other.of(n)) for n in {**self.sizes, **other.sizes}}
        return Limits(sizes, self.rank if other.rank is None else other.rank)


@dataclass(frozen=True, slots=True)
class MaskConfig:
    """How masks are taken. `kinds` empty: not at all. `true`: what True means, attend or hide."""

    kinds: tuple[str, ...] = ("bool", "float")
    true: str = "attend"
    shape: str = "T T"


@dataclass(frozen=True, slots=True)
class GenerateConfig:
    """How the model generates. `path` with a colon is a function, without one a method; `options` None: undeclared."""

    path: str = "generate"
    call: Arguments | None = None
    greedy: Arguments | None = None
    options: tuple[str, ...] | None = None
    returns: str = "all"


@dataclass(frozen=True, slots=True)
class ComponentConfig:
    """What is declared about one component. None: not declared, to be found out."""

    name: str
    path: str | None = None
    factory: bool = False
    """`path` is a function that returns the component when called with `construct`."""
    construct: Arguments | None = None
    call: Arguments | None = None
    output: Selector = None
    weights_output: int | str | None = None
    causal: str | None = None
    layout: str | None = None
    mask: MaskConfig | None = None
    variant: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = Limits()
    ignore: tuple[str, ...] = ()
    weights: tuple[Rule, ...] = ()
    generate: GenerateConfig | None = None

    def ignores(self, parameter: str) -> bool:
        """Return whether a parameter is never written nor counted."""
        return any(fnmatchcase(parameter, pattern) for pattern in self.ignore)


@dataclass(frozen=True, slots=True)
class Config:
    """A whole file; `path` is None where there is none."""

    path: Path | None = None
    framework: str | None = None
    module: str | None = None
    dtypes: tuple[str, ...] = ("float64", "float32")
    variant: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = Limits()
    components: Mapping[str, ComponentConfig] = field(default_factory=dict)

    def component(self, name: str) -> ComponentConfig:
        """Return what is declared about a component, which may be nothing."""
        return self.components.get(name, ComponentConfig(name))

    def variant_for(self, component: str) -> Variant:
        """Return the variant of a component: the general one, overridden by its own."""
        return Variant(**{**self.variant, **self.component(component).variant})

    def limits_for(self, component: str) -> Limits:
        """Return the limits of a component: the general ones, overridden by its own."""
        return self.limits.merged(self.component(component).limits)

    def rules_for(self, component: str) -> tuple[Rule, ...]:
        """Return the weights of a component, those of the components within filled in."""
        nested = {name: c.weights for name, c in self.components.items()}
        return expand(self.component(component).weights, nested)


# --- finding ----------------------------------------------------------------------------------------------------------


def find_config(folders: Iterable[Path]) -> Path | None:
    """Return the first `conform.toml`, or `pyproject.toml` with `[tool.conform]`, in folders given nearest first."""
    for folder in folders:
        if (folder / "conform.toml").is_file():
            return folder / "conform.toml"
        project = folder / "pyproject.toml"
        if project.is_file() and "conform" in _tool(parse_document(read_text(project, folder), project)):
            return project
    return None


def load_config(where: Path | Iterable[Path]) -> Config:
    """Return the configuration in a file, or in the first of some folders that has one; Config() where none has.

    Raises ConfigError when it cannot be used. A file found in a folder must lie in it.
    """
    path = where if isinstance(where, Path) else find_config(where)
    if path is None:
        return Config()
    return parse_config(read_text(path, None if isinstance(where, Path) else path.parent), path)


def parse_config(text: str, path: Path = Path("conform.toml")) -> Config:
    """Return the configuration that a text declares; `path` is for messages and tells pyproject.toml apart."""
    document = parse_document(text, path)
    if path.name == "pyproject.toml":
        document = _tool(document).get("conform", replace(document, value={}))
    tables = document.table(("implementation", "variant", "limits", "components"))
    head = tables["implementation"].table(("framework", "module", "dtypes")) if "implementation" in tables else {}
    components = tables["components"].table(COMPONENTS, "component") if "components" in tables else {}
    config = Config(
        path=path,
        framework=head["framework"].choice(FRAMEWORKS) if "framework" in head else None,
        module=_dotted(head["module"]) if "module" in head else None,
        dtypes=_dtypes(head["dtypes"]) if "dtypes" in head else Config().dtypes,
        variant=_variant(tables["variant"]) if "variant" in tables else {},
        limits=_limits(tables["limits"]) if "limits" in tables else Limits(),
        components={name: _component(name, node) for name, node in components.items()},
    )
    _check_merged(config, components)
    return config


def _tool(document: Node) -> dict[str, Node]:
    tools = document.table().get("tool")
    return tools.table() if tools else {}


def _check_merged(config: Config, components: Mapping[str, Node]) -> None:
    """Refuse limits that leave no size, once those of a component are merged with the general ones."""
    for name, node in components.items():
        limits = config.limits_for(name)
        for size, where in node.table()["limits"].table().items() if "limits" in node.value else ():
            if size != "rank":
                _check_range(size, limits, where)


# --- reading ----------------------------------------------------------------------------------------------------------

_WORD = r"[^\W\d]\w*"
_MODULE = re.compile(rf"{_WORD}(?:\.{_WORD})*")
_PATH = re.compile(rf"(?:{_WORD}(?:\.{_WORD})*:)?{_WORD}(?:\.{_WORD})*")


def _dotted(node: Node, pattern: re.Pattern[str] = _MODULE, form: str = "package.module") -> str:
    """Return a dotted name. Slashes and leading dots, with which a path could leave the folder, are not part of one."""
    if not pattern.fullmatch(node.text(200)):
        raise node.error(f"{shown(node.value)} is not a dotted name", f'write "{form}", no file path')
    return node.text()


def _attribute(node: Node) -> str:
    return _dotted(node, _PATH, "package.module:name")


def _dtypes(node: Node) -> tuple[str, ...]:
    found = node.choices(DTYPES)
    if not found:
        raise node.error("at least one dtype is needed")
    return found


def _expression(node: Node, known: Iterable[str], advice: str = "") -> str:
    """Return the text of an expression that uses known names only."""
    known = tuple(known)
    try:
        unknown = sorted(names(node.text()) - set(known))
    except ExpressionError as error:
        hint = f"nearest: {', '.join(error.nearest)}" if error.nearest else advice
        raise node.error(f"{shown(node.value)}: {error.problem}", hint) from None
    if unknown:
        close = nearest(unknown[0], known)
        hint = f"nearest: {', '.join(close)}" if close else f"known: {', '.join(known)}"
        raise node.error(f"{shown(node.value)}: unknown name {shown(unknown[0])[1:-1]}", hint)
    return node.text()


def _variant(node: Node) -> dict[str, Any]:
    """Return the declared choices, checked against the fields of Variant."""
    found: dict[str, Any] = {}
    kinds = choices()
    for name, value in node.table(kinds, "choice").items():
        kind = kinds[name]
        if isinstance(kind, tuple):
            found[name] = value.choice(kind)
        elif kind is bool:
            found[name] = value.flag()
        elif kind is float:
            found[name] = value.positive()
        elif isinstance(value.value, str):
            found[name] = _expression(value, [n for n in SIZE_NAMES[:-2] if n not in {"kv_heads", "head_width"}])
        else:
            found[name] = str(value.whole(1, MAX_SIZE))
    return found


def _limits(node: Node) -> Limits:
    """Return the declared limits: a table of bounds, a fixed number or an expression for each size."""
    tables = node.table((*LIMITED, "rank"), "size")
    rank = tables.pop("rank").whole(2, 8) if "rank" in tables else None
    limits = Limits({name: _range(value) for name, value in tables.items()}, rank)
    for name, value in tables.items():
        _check_range(name, limits, value)
    return limits


def _range(node: Node) -> Range:
    if isinstance(node.value, str):
        return Range(equals=_expression(node, SIZE_NAMES[:-2]))
    if not isinstance(node.value, dict):
        size = node.whole(1, MAX_SIZE)
        return Range(size, size)
    bounds = {key: value.whole(1, MAX_SIZE) for key, value in node.table(("min", "max", "multiple_of")).items()}
    return Range(bounds.get("min"), bounds.get("max"), bounds.get("multiple_of"))


def _check_range(size: str, limits: Limits, node: Node) -> None:
    limit = limits.of(size)
    for name in sorted(names(limit.equals)) if limit.equals else ():
        if name == size or limits.of(name).equals:
            raise node.error(f"it depends on {name}, which is an expression itself", "use sizes that are drawn")
    low, step, high = limit.min or 1, limit.multiple_of or 1, limit.max
    if high is not None and -(-low // step) * step > high:
        raise node.error(f"no multiple of {step} lies between {low} and {high}")


_COMPONENT_KEYS = tuple(f.name for f in fields(ComponentConfig) if f.name not in {"name", "generate"})


def _component(name: str, node: Node) -> ComponentConfig:
    keys = (*_COMPONENT_KEYS, "generate") if name == "TinyTransformerLM" else _COMPONENT_KEYS
    readers: dict[str, Any] = {
        "path": _attribute,
        "factory": Node.flag,
        "construct": lambda n: _arguments(n, SIZE_NAMES),
        "call": lambda n: _arguments(n, CALL_NAMES),
        "output": _selector,
        "weights_output": _one_selector,
        "causal": lambda n: n.choice(CAUSAL),
        "layout": lambda n: n.choice(LAYOUTS),
        "mask": _mask,
        "variant": _variant,
        "limits": _limits,
        "ignore": lambda n: tuple(item.text(200) for item in n.items()),
        "weights": lambda n: tuple(_weights(name, n)),
        "generate": _generate,
    }
    return ComponentConfig(name, **{key: readers[key](value) for key, value in node.table(keys).items()})


def _selector(node: Node) -> Selector:
    if not isinstance(node.value, list):
        return _one_selector(node)
    if not node.value:
        raise node.error("an empty list selects nothing")
    return tuple(_one_selector(item) for item in node.items())


def _one_selector(node: Node) -> int | str:
    return node.text(200) if isinstance(node.value, str) else node.whole(-16, 16)


def _mask(node: Node) -> MaskConfig:
    tables = node.table(("kinds", "true", "shape"))
    readers: dict[str, Any] = {
        "kinds": lambda n: n.choices(("bool", "float")),
        "true": lambda n: n.choice(("attend", "hide")),
        "shape": lambda n: n.choice(MASK_SHAPES),
    }
    return MaskConfig(**{key: readers[key](value) for key, value in tables.items()})


def _generate(node: Node) -> GenerateConfig:
    readers: dict[str, Any] = {
        "path": _attribute,
        "call": lambda n: _arguments(n, GENERATE_NAMES),
        "greedy": lambda n: Arguments((), _named(n, GENERATE_NAMES, 0)),
        "options": lambda n: n.choices(OPTIONS),
        "returns": lambda n: n.choice(("all", "new")),
    }
    return GenerateConfig(**{key: readers[key](value) for key, value in node.table(readers).items()})


def _weights(component: str, node: Node) -> Iterator[Rule]:
    axes = canonical_axes(component)
    for target, value in node.table().items():
        if isinstance(value.value, dict):
            raise value.error("a rule is a text", 'quote the whole name: "' + target + '.…" = "q.weight"')
        try:
            rule = parse_rule(target, value.text())
            check_rule(rule, axes, SIZE_NAMES)
        except PatternError as error:
            raise value.error(f"{shown(value.value, 200)}: {error.problem}", error.advice) from None
        yield rule


def canonical_axes(component: str) -> dict[str, str]:
    """Return the axes of every canonical parameter that a component has in some variant, {i} for a layer."""
    sizes = dict.fromkeys(SIZE_NAMES, 1)
    fullest = Variant(gated=True, qkv_bias=True, output_bias=True, positions="learned", embedding_norm=True)
    found = COMPONENTS[component].parameters(sizes, fullest)
    return {name.replace("blocks.0.", "blocks.{i}."): parameter.axes for name, parameter in found.items()}


# --- arguments --------------------------------------------------------------------------------------------------------


def _arguments(node: Node, known: Iterable[str], depth: int = 0) -> Arguments:
    """Read a list (positional, its last element may be a table of named ones) or a table of named arguments."""
    if isinstance(node.value, dict):
        return Arguments((), _named(node, known, depth))
    items = node.items()
    named = _named(items.pop(), known, depth) if items and _is_named(items[-1].value) else {}
    return Arguments(tuple(_argument(item, known, depth) for item in items), named)


def _is_named(value: Any) -> bool:
    return isinstance(value, dict) and not {"object", "lookup", "dtype"} & value.keys()


def _named(node: Node, known: Iterable[str], depth: int) -> dict[str, Any]:
    found = {}
    for name, value in node.table().items():
        if not name.isidentifier():
            raise value.error(f"{shown(name)} cannot be the name of an argument")
        found[name] = _argument(value, known, depth)
    return found


def _argument(node: Node, known: Iterable[str], depth: int) -> Any:
    if depth > MAX_NESTING:
        raise node.error(f"it is nested more than {MAX_NESTING} deep")
    if isinstance(node.value, str):
        return Expression(_expression(node, known, "quote a text within: \"'gelu'\""))
    if isinstance(node.value, (bool, int, float)):
        if not abs(node.value) < 2**63:
            raise node.error("a number is not finite, or larger than 2 ** 63")
        return node.value
    if isinstance(node.value, list):
        return [_argument(item, known, depth + 1) for item in node.items()]
    if not isinstance(node.value, dict):
        raise node.wrong("a text, a number, true or false, a list or a table")
    return _special(node, known, depth)


def _special(node: Node, known: Iterable[str], depth: int) -> Any:
    """Read a table in the place of a value: an object to build, a name to look up, a dtype, or a dictionary."""
    if "object" in node.value:
        tables = node.table(("object", "arguments"))
        inner = tables.get("arguments")
        return _Object(_attribute(tables["object"]), _arguments(inner, known, depth + 1) if inner else Arguments())
    if "lookup" in node.value:
        return {"$name": _attribute(node.table(("lookup",))["lookup"])}
    if "dtype" in node.value:
        return {"$dtype": node.table(("dtype",))["dtype"].choice((*DTYPES, "int64", "bool"))}
    for key, value in node.table().items():
        if key.startswith("$"):
            raise value.error("a key that begins with $ is not possible here")
    return {key: _argument(value, known, depth + 1) for key, value in node.table().items()}


def _filled(argument: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(argument, Expression):
        return _listed(evaluate(argument.text, values))
    if isinstance(argument, _Object):
        args, kwargs = argument.arguments.template(values)
        return {"$object": argument.path, "args": args, "kwargs": kwargs}
    if isinstance(argument, list):
        return [_filled(a, values) for a in argument]
    if isinstance(argument, dict):
        return {key: _filled(a, values) for key, a in argument.items()}
    return argument


def _listed(value: Any) -> Any:
    """Templates are JSON, which has no tuples."""
    return [_listed(v) for v in value] if isinstance(value, tuple) else value


def _used(arguments: Iterable[Any]) -> Iterator[str]:
    for argument in arguments:
        if isinstance(argument, Expression):
            yield from names(argument.text)
        elif isinstance(argument, _Object):
            yield from argument.arguments.names()
        elif isinstance(argument, (list, dict)):
            yield from _used(argument.values() if isinstance(argument, dict) else argument)
