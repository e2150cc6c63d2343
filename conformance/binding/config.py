"""`conform.toml`, or `[tool.conform]` in `pyproject.toml`: what an implementation declares about itself.

The format is described in docs/conform-toml.md and, for editors, in conform.schema.json. When grading, the file is
trusted no more than the code: it is bounded, read as data, and every value is checked before use.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, Literal

from conformkit.conformance.binding.arguments import (
    DTYPES,
    Arguments,
    read_argument,
    read_arguments,
    read_globals,
    read_named,
)
from conformkit.conformance.binding.choices import check_choices
from conformkit.conformance.binding.limits import MAX_SIZE, NUMBERS, SIZE_NAMES, SizeLimits, check_range, read_limits
from conformkit.conformance.binding.masks import FORMS, SHAPES, MaskForm, read_form
from conformkit.conformance.binding.masks import NAMES as MASK_NAMES
from conformkit.conformance.binding.messages import shown
from conformkit.conformance.binding.parameters import PARAMETERS, SOURCES, read_parameters
from conformkit.conformance.binding.path_config import PathsConfig, read_paths
from conformkit.conformance.binding.rules import PatternError, Rule, check_rule, expand, folded, parse_rule
from conformkit.conformance.binding.selectors import Selector, read_index, read_selector
from conformkit.conformance.binding.toml_nodes import Node, parse_document, read_text
from conformkit.conformance.binding.tool_config import MethodConfig, ToolConfig, read_tool
from conformkit.spec.components import COMPONENTS, FURTHER, SEVERAL_NAMES, base_of, component
from conformkit.spec.presets import LACKING, PRESETS
from conformkit.spec.tools import TOOLS
from conformkit.spec.variants import Variant, choices

__all__ = [
    "CALL_NAMES", "GENERATE_NAMES", "OPTIONS", "ComponentConfig", "Config", "GenerateConfig", "MaskConfig",
    "canonical_axes", "load_config", "parse_config",
]  # fmt: skip

CALL_NAMES = (
    "x", "q", "k", "v", "ids", "mask", "causal", "positions", "position_ids", "query", "key", "value",
    "memory", "src", "tgt", "segments", "images",
    *(name for name in MASK_NAMES if name != "mask"), *NUMBERS, "dropout", "T", PARAMETERS,
)  # fmt: skip
"""What expressions in `call` may use."""
OPTIONS = ("temperature", "top_k", "top_p", "eos_id", "use_cache", *(argument.name for argument in FURTHER))
GENERATE_NAMES = ("model", "ids", "max_new_tokens", *OPTIONS, "seed", "T", "head", *SIZE_NAMES, PARAMETERS)
"""What expressions in `generate` may use."""
FRAMEWORKS = ("torch", "numpy")
CAUSAL = ("construct", "always", "never", "mask", "flag")
LAYOUTS = ("batch first", "sequence first", "one sequence")
MASK_SHAPES = ("T T", "1 T T", "1 1 T T", "T T 1", "B T T", "B 1 T T", "B H T T")


@dataclass(frozen=True, slots=True)
class MaskConfig:
    """How masks of core are passed. `kinds` empty: not at all. `true`: what True means, attend or hide.

    `required`: every call gets one, which hides nothing if the contract's call has none.
    """

    kinds: tuple[str, ...] = ("bool", "float")
    true: str = "attend"
    shape: str = "T T"
    required: bool = False

    @property
    def form(self) -> MaskForm:
        """How a Boolean mask is passed: as numbers that are added where it takes no other kind."""
        return MaskForm("bool" if "bool" in self.kinds else "float", self.true, self.shape)


@dataclass(frozen=True, slots=True)
class GenerateConfig:
    """How the model generates. `path` with a colon is a function, without one a method; `options` None: undeclared.

    `greedy` False: it only samples.
    """

    path: str = "generate"
    call: Arguments | None = None
    greedy: Arguments | Literal[False] | None = None
    options: tuple[str, ...] | None = None
    returns: str = "all"
    prompts: str = "batch"
    """What a call takes: a `batch` (B, T), or one prompt, as an array (T,) in `rows` or a list of ids in `lists`."""


@dataclass(frozen=True, slots=True)
class ComponentConfig:
    """What is declared about one component. None: not declared, determined automatically."""

    name: str
    path: str | None = None
    skip: bool = False
    """Leave it out of the run, which its verdict says."""
    unconfirmed: bool = False
    """The same, written by a draft that could not confirm what it found: never a pass."""
    factory: bool = False
    """`path` is a function that returns the component when called with `construct`."""
    construct: Arguments | None = None
    globals: Arguments | None = None
    """Globals of its module that are sizes, by their names: set while it is built and called."""
    parameters: Arguments | None = None
    """`path` is a function that gets its weights as arguments; this makes them."""
    call: Arguments | None = None
    output: Selector = None
    others: Mapping[str, str] = field(default_factory=dict)
    """What the results before the declared output are, in words, by their place."""
    weights_output: int | str | None = None
    causal: str | None = None
    layout: str | None = None
    mask: MaskConfig | None = None
    masks: Mapping[str, MaskForm] = field(default_factory=dict)
    """For an encoder-decoder's component: how each mask is passed, by its name in `call`."""
    methods: Mapping[str, MethodConfig] = field(default_factory=dict)
    variant: Mapping[str, Any] = field(default_factory=dict)
    limits: SizeLimits = field(default_factory=SizeLimits)
    ignore: tuple[str, ...] = ()
    weights: tuple[Rule, ...] = ()
    generate: GenerateConfig | None = None
    head: Arguments | str | None = None
    """Of a model that returns states: what scripts apply to them, an object, or the name of a matrix of the model."""
    paths: PathsConfig | None = None
    """Further arguments of a language model's call: masks, positions, a cache, targets."""

    def ignores(self, parameter: str) -> bool:
        """Return whether a parameter is neither written nor counted."""
        return any(fnmatchcase(parameter, pattern) for pattern in self.ignore)


@dataclass(frozen=True, slots=True)
class Config:
    """A whole file; `path` is None if there is none."""

    path: Path | None = None
    framework: str | None = None
    module: str | None = None
    dtypes: tuple[str, ...] = ("float64", "float32")
    variant: Mapping[str, Any] = field(default_factory=dict)
    limits: SizeLimits = field(default_factory=SizeLimits)
    components: Mapping[str, ComponentConfig] = field(default_factory=dict)
    tools: Mapping[str, ToolConfig] = field(default_factory=dict)
    refused: frozenset[str] = field(default=frozenset(), compare=False)
    """Kinds of further arguments that are left out, since a policy does not allow them: nothing in a file says this."""
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)
    """The line that says where something is: by component or tool; `generate` and `module` by these names."""

    def place(self, name: str) -> str:
        """Return where it is declared where something is, `conform.toml, line 12`."""
        line = self.lines.get(name)
        file = self.path.name if self.path is not None else "conform.toml"
        return f"{file}, line {line}" if line else file

    def skipped(self) -> list[str]:
        """Return the components and tools that are to be left out."""
        left_out = [one.name for one in self.components.values() if one.skip or one.unconfirmed]
        return left_out + [tool.name for tool in self.tools.values() if tool.skip]

    def leaves_out_by(self, name: str) -> str:
        """Return the key that leaves a component or a tool out."""
        return "unconfirmed" if self.component(name).unconfirmed else "skip"

    def tool(self, name: str) -> ToolConfig:
        """Return what is declared about a tool, which may be nothing."""
        return self.tools.get(name, ToolConfig(name))

    def component(self, name: str) -> ComponentConfig:
        """Return what is declared about a component, which may be nothing."""
        return self.components.get(name, ComponentConfig(name))

    def variant_for(self, component: str) -> Variant:
        """Return the variant of a component: the general one, overridden by its own."""
        return base_of(component).but(**{**self.variant, **self.component(component).variant})

    def limits_for(self, component: str) -> SizeLimits:
        """Return the limits of a component: the general ones, overridden by its own."""
        return self.limits.merged(self.component(component).limits)

    def rules_for(self, component: str, found: Mapping[str, Sequence[Rule]] | None = None) -> tuple[Rule, ...]:
        """Return the weights of a component, with those of its parts filled in: declared, or else `found`."""
        nested = {**(found or {}), **{name: c.weights for name, c in self.components.items() if c.weights}}
        return expand(self.component(component).weights, nested, component)


# --- finding ----------------------------------------------------------------------------------------------------------


def load_config(where: Path | Iterable[Path]) -> Config:
    """Return the configuration in a file, or in the nearest folder that has one; Config() if none has.

    A folder has one in `conform.toml`, or else in `pyproject.toml` under `[tool.conform]`; the file must lie in it.
    Folders are given nearest first. Raises ConfigError if it cannot be used.
    """
    if isinstance(where, Path):
        return parse_config(read_text(where, None), where)
    found = (_config_in(folder) for folder in where)
    return next((config for config in found if config is not None), Config())


def _config_in(folder: Path) -> Config | None:
    own, project = folder / "conform.toml", folder / "pyproject.toml"
    if own.is_file():
        return parse_config(read_text(own, folder), own)
    if not project.is_file():
        return None
    document = parse_document(read_text(project, folder), project)
    return _read(document, project) if "conform" in _tool(document) else None


def parse_config(text: str, path: Path = Path("conform.toml")) -> Config:
    """Return the configuration that a text declares; `path` is for messages and to recognize pyproject.toml."""
    return _read(parse_document(text, path), path)


def _read(document: Node, path: Path) -> Config:
    if path.name == "pyproject.toml":
        document = _tool(document).get("conform", replace(document, value={}))
    tables = document.table(("implementation", "variant", "limits", "components"))
    head = tables["implementation"].table(("framework", "module", "dtypes")) if "implementation" in tables else {}
    known = (*COMPONENTS, *SEVERAL_NAMES)
    named = tables["components"].table((*known, *TOOLS), "component") if "components" in tables else {}
    components = {name: node for name, node in named.items() if name in known}
    config = Config(
        path=path,
        framework=head["framework"].choice(FRAMEWORKS) if "framework" in head else None,
        module=head["module"].module() if "module" in head else None,
        dtypes=_dtypes(head["dtypes"]) if "dtypes" in head else Config().dtypes,
        variant=_variant(tables["variant"]) if "variant" in tables else {},
        limits=read_limits(tables["limits"]) if "limits" in tables else SizeLimits(),
        components={name: _component(name, node) for name, node in components.items()},
        tools={name: read_tool(name, node) for name, node in named.items() if name in TOOLS},
        lines=dict(_lines(head, named)),
    )
    _check_merged(config, components)
    _check_shared(config, tables)
    if "variant" in tables:
        check_choices(config.variant, tables["variant"])
    for name, node in components.items():
        if "variant" in node.table():
            check_choices({**config.variant, **config.component(name).variant}, node.table()["variant"])
    return config


def _lines(head: Mapping[str, Node], named: Mapping[str, Node]) -> Iterator[tuple[str, int]]:
    """Yield the line of each declared place: the module's, those of components and tools, a generating function's."""
    places = {"module": head.get("module")} | {name: node.table().get("path") for name, node in named.items()}
    generate = named["TinyTransformerLM"].table().get("generate") if "TinyTransformerLM" in named else None
    places["generate"] = generate.table().get("path") if generate is not None else None
    yield from ((name, node.line) for name, node in places.items() if node is not None and node.line is not None)


def _tool(document: Node) -> dict[str, Node]:
    tools = document.table().get("tool")
    return tools.table() if tools else {}


def _check_merged(config: Config, components: Mapping[str, Node]) -> None:
    """Refuse limits that allow no size once those of a component are merged with the general ones."""
    for name, node in components.items():
        limits = config.limits_for(name)
        for size, where in node.table()["limits"].table().items() if "limits" in node.value else ():
            if size != "rank":
                check_range(size, limits, where)


def _check_shared(config: Config, tables: Mapping[str, Node]) -> None:
    """Refuse a shared table of positions if positions are not learned."""
    variant = config.variant_for("Transformer")
    if variant.shared_positions and variant.positions != "learned":
        own = "shared_positions" in config.component("Transformer").variant
        whole = tables["components"].table()["Transformer"].table()["variant"] if own else tables["variant"]
        where = whole.table()["shared_positions"]
        raise where.error(f"positions are {variant.positions}, and only a learned table can be shared",
                          'declare positions = "learned", or leave this out')  # fmt: skip


# --- reading ----------------------------------------------------------------------------------------------------------


def _dtypes(node: Node) -> tuple[str, ...]:
    found = node.choices(DTYPES)
    if not found:
        raise node.error("at least one dtype is needed")
    return found


def _variant(node: Node) -> dict[str, Any]:
    """Return the declared choices, checked against the fields of Variant."""
    kinds = choices()
    given = node.table(("like", *kinds), "choice")
    found = _preset(given.pop("like")) if "like" in given else {}
    for name, value in given.items():
        kind = kinds[name]
        if isinstance(kind, tuple):
            found[name] = value.choice(kind)
        elif kind is bool:
            found[name] = value.flag()
        elif kind is float:
            found[name] = 0.0 if name in _MAY_BE_OFF and value.value == 0 else value.positive()
        elif kind is int:
            found[name] = value.whole(0, MAX_SIZE)
        elif isinstance(value.value, str):
            of_heads = {"kv_heads"} if name in _BESIDE_A_LATENT else {"kv_heads", "head_width"}
            found[name] = value.expression([n for n in NUMBERS if n not in of_heads])
        else:
            found[name] = str(value.whole(0 if name in _MAY_BE_OFF else 1, MAX_SIZE))
    return found


_WITHOUT_A_BATCH = 2
_MAY_BE_OFF = {"score_cap", "logit_cap", "latent", "query_latent"}
_BESIDE_A_LATENT = {"rotary_width", "value_width"}
"""Choices whose expressions may use the width of a head."""


def _preset(node: Node) -> dict[str, Any]:
    """Return the choices of a family; those next to `like` override them."""
    name = node.text(100).lower().replace("-", "_")
    if name in LACKING:
        raise node.error(f"no variant expresses {name}: {LACKING[name]}", "declare the choices that it has one by one")
    return PRESETS[replace(node, value=name).choice(PRESETS)].differences()


_NOT_ALWAYS = {"name", "generate", "head", "masks", "methods", "paths"}
_COMPONENT_KEYS = tuple(f.name for f in fields(ComponentConfig) if f.name not in _NOT_ALWAYS)
_SEVERAL_KEYS = (*(key for key in _COMPONENT_KEYS if key not in {"causal", "mask"}), "masks")


def _component(name: str, node: Node) -> ComponentConfig:
    further = {"TinyTransformerLM": ("generate", "head", "paths"), "ScaledDotProductAttention": ("paths",)}
    keys = (*_COMPONENT_KEYS, *further.get(name, ()))
    if name in SEVERAL_NAMES:
        model = bool(component(name).methods)
        more = {"causal": "tgt_mask" in component(name).inputs, "methods": model, "head": name == "Transformer"}
        keys = (*_SEVERAL_KEYS, *(key for key, has in more.items() if has))
    readers: dict[str, Any] = {
        "path": Node.attribute,
        "skip": Node.flag,
        "unconfirmed": Node.flag,
        "factory": Node.flag,
        "construct": lambda n: read_arguments(n, (*SIZE_NAMES, "dtype", "mask", *SOURCES)),
        "globals": lambda n: read_globals(n, SIZE_NAMES),
        "parameters": read_parameters,
        "call": lambda n: read_arguments(n, CALL_NAMES),
        "output": read_selector,
        "others": lambda n: {place: words.text(200) for place, words in n.table().items()},
        "weights_output": read_index,
        "causal": lambda n: n.choice(("always", "mask") if name in SEVERAL_NAMES else CAUSAL),
        "layout": lambda n: n.choice(LAYOUTS),
        "mask": _mask,
        "masks": lambda n: {mask: _form(mask, value) for mask, value in n.table(MASK_NAMES, "mask").items()},
        "methods": lambda n: dict(_methods(name, n)),
        "variant": _variant,
        "limits": read_limits,
        "ignore": lambda n: tuple(item.text(200) for item in n.items()),
        "weights": lambda n: tuple(_weights(name, n)),
        "generate": _generate,
        "head": _head,
        "paths": read_paths,
    }
    return _for_each_sequence(
        ComponentConfig(name, **{key: readers[key](value) for key, value in node.table(keys).items()})
    )


def _for_each_sequence(own: ComponentConfig) -> ComponentConfig:
    """Take inputs of two axes for what they are: code without a batch axis."""
    if own.limits.rank != _WITHOUT_A_BATCH or own.layout is not None:
        return own
    return replace(own, layout="one sequence", limits=replace(own.limits, rank=None))


def _head(node: Node) -> Arguments | str:
    """Read what scripts apply to a model's states: an object, or the name of a part or a matrix of the model."""
    if isinstance(node.value, dict):
        return read_argument(node, (*SIZE_NAMES, "dtype", *SOURCES))
    return node.text(200)


def _mask(node: Node) -> MaskConfig:
    """Read how masks of core are passed: as any mask, of several kinds, and whether each call gets one."""
    given = node.table(("kinds", "true", "shape", "required"))
    kinds = given["kinds"].choices(("bool", "float")) if "kinds" in given else MaskConfig().kinds
    required = "required" in given and given["required"].flag()
    if required and not kinds:
        raise node.error("no kind of mask is taken, so none can be required", 'add kinds = ["bool"]')
    rest = replace(node, value={key: value for key, value in node.value.items() if key in {"true", "shape"}})
    form = read_form(rest, MaskForm(shape=MaskConfig().shape), (), MASK_SHAPES)
    return MaskConfig(kinds, form.true, form.shape, required)


def _form(mask: str, node: Node) -> MaskForm:
    return read_form(node, FORMS[mask], ("bool", "float", "int", "lengths"), SHAPES)


def _methods(name: str, node: Node) -> Iterator[tuple[str, MethodConfig]]:
    known = component(name).methods
    for method, value in node.table([m.name for m in known], "method").items():
        options = (option.name for m in known if m.name == method for option in m.options)
        names = (*CALL_NAMES, *options, *(("model",) if component(name).method(method).options else ()))
        readers: dict[str, Any] = {
            "path": lambda n: n.text(200), "call": partial(read_arguments, known=names), "output": read_selector,
        }  # fmt: skip
        yield method, MethodConfig(**{key: readers[key](item) for key, item in value.table(readers).items()})


def _generate(node: Node) -> GenerateConfig:
    readers: dict[str, Any] = {
        "path": Node.attribute,
        "call": lambda n: read_arguments(n, GENERATE_NAMES),
        "greedy": lambda n: False if n.value is False else Arguments((), read_named(n, GENERATE_NAMES)),
        "options": lambda n: n.choices(OPTIONS),
        "returns": lambda n: n.choice(("all", "new")),
        "prompts": lambda n: n.choice(("batch", "rows", "lists")),
    }
    return GenerateConfig(**{key: readers[key](value) for key, value in node.table(readers).items()})


def _weights(name: str, node: Node) -> Iterator[Rule]:
    axes, mixed = canonical_axes(name), canonical_axes(name, experts=True)
    for target, value in node.table().items():
        if isinstance(value.value, dict):
            raise value.error("a rule is a string", 'quote the whole name: "' + target + '.…" = "q.weight"')
        try:
            rule = parse_rule(target, value.text())
            _check_either(rule, axes, mixed)
        except PatternError as error:
            raise value.error(f"{shown(value.value, 200)}: {error.problem}", error.advice) from None
        yield rule


def _check_either(rule: Rule, axes: Mapping[str, str], mixed: Mapping[str, str]) -> None:
    """Raise PatternError if a rule fits neither one feed-forward network nor several experts."""
    try:
        check_rule(rule, axes, SIZE_NAMES)
    except PatternError:
        with contextlib.suppress(PatternError):
            check_rule(rule, mixed, SIZE_NAMES)
            return
        raise


def canonical_axes(name: str, *, experts: bool = False) -> dict[str, str]:
    """Return the axes of every canonical parameter that a component has in some variant, {i} for a layer.

    With `experts`, those of a mixture of them, whose networks have an axis `e` more.
    """
    sizes = dict.fromkeys(SIZE_NAMES, 1)
    fullest = Variant(
        gated=True, qkv_bias=True, output_bias=True, positions="learned", embedding_norm=True, qk_norm="heads",
        sinks=True, output_gate="features", placement="sandwich", experts=int(experts), shared_expert=experts,
        router_bias=experts,
    )  # fmt: skip
    found = dict(component(name).parameters(sizes, fullest))
    for shared in (True, False):  # tables of relative positions, which no model has beside one of absolute ones
        found |= component(name).parameters(sizes, fullest.but(positions="relative", relative_shared=shared))
    latent = Variant(latent="1", query_latent="1", positions="rotary", output_bias=True)
    found = component(name).parameters(sizes, latent) | found
    return {folded(name): parameter.axes for name, parameter in found.items()}
