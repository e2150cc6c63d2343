"""From what an implementation exports to bound components: constructors, calls, abilities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from conformkit.conformance.binding.abilities import MEMORIES, TARGETS, abilities, exemptions
from conformkit.conformance.binding.aliases import meaning
from conformkit.conformance.binding.arguments import GLOBALS, Arguments, Expression
from conformkit.conformance.binding.bound import HELD_POSITIONS, Bound, set_only
from conformkit.conformance.binding.by_position import by_position
from conformkit.conformance.binding.call_arguments import (
    ArgumentNames,
    call_arguments_of,
    flags_of,
    losses_of,
    takes_cache,
)
from conformkit.conformance.binding.calls import BoundMethod, call_of, insisted_on, insists, left_out, unread
from conformkit.conformance.binding.config import ComponentConfig, Config, GenerateConfig, MaskConfig
from conformkit.conformance.binding.factories import CONFIGS, makes_it, to_declare
from conformkit.conformance.binding.further import Plain, further_of
from conformkit.conformance.binding.generation import Generation, generation_of, switched
from conformkit.conformance.binding.limits import Range, SizeLimits
from conformkit.conformance.binding.lookups import stub_of, with_inside
from conformkit.conformance.binding.masks import FORMS, MASKS, MaskForm
from conformkit.conformance.binding.masks import NAMES as MASK_NAMES
from conformkit.conformance.binding.parameters import PARAMETERS, SOURCES, call_with, has_shapes
from conformkit.conformance.binding.selectors import Selector
from conformkit.conformance.binding.signatures import (
    Signature,
    SignatureMismatch,
    call_from,
    construct_from,
    takes_any,
    with_a_dictionary,
    with_sizes,
)
from conformkit.conformance.binding.sizes import DERIVED, derived_names
from conformkit.conformance.binding.tool_config import MethodConfig
from conformkit.conformance.binding.unpassed_masks import unpassed_masks
from conformkit.spec.components import GENERATE, SEVERAL_NAMES, Component, Method
from conformkit.spec.variants import Variant

__all__ = ["ExportMismatch", "bind_export"]

_IN_SETTINGS: Mapping[str, str] = {
    "num_heads": "1", "kv_heads": "1", "head_width": "d_model", "d_ff": "(4 * d_model)", "num_layers": "1",
    "vocab_size": "11", "block_size": "256", "max_len": "256",
}  # fmt: skip
"""Sizes in an object of settings for a component that has no such size."""
_WITH_A_LOSS = {"Transformer", "BertForPreTraining"}
"""Components whose call may take targets, for a loss of their own."""
_ENDLESS = ("rotary", "alibi", "relative", "none")
"""Positions that need no longest input."""


class ExportMismatch(ValueError):
    """An export is not constructed or called as the contract says, and conform.toml doesn't say how."""

    def __init__(self, component: str, path: str, source: str, problem: str, advice: tuple[str, ...]) -> None:
        super().__init__(f"{component}: {path} {problem}")
        self.component, self.path, self.source, self.problem, self.advice = component, path, source, problem, advice


def bind_export(
    component: Component, export: Mapping[str, Any], config: Config, free: Mapping[str, Any] | None
) -> Bound:
    """Work out how a component is constructed and called. `free` describes a function `generate`, if there is one.

    Raises ExportMismatch if that can't be done.
    """
    own = config.component(component.name)
    if own.factory and export["kind"] == "function":
        export = _made_by(export)
    is_function = export["kind"] == "function" and not own.factory
    if is_function and own.call is None and own.parameters is None and makes_it(component, export):
        problem = f"is a function that does not take {component.inputs[0]}: it is no {component.name} itself"
        raise ExportMismatch(
            component.name, export["path"], export.get("source", ""), problem, to_declare(component, export)
        )
    if own.path is None and own.construct is None and (heads := _heads_of_another(component, export)):
        problem = f"takes {heads}, a number of heads, which {component.name} does not have"
        either = (
            "if it is MultiHeadAttention, declare `path` in [components.MultiHeadAttention]",
            f"if it is {component.name}, declare `construct` in [components.{component.name}]",
        )
        raise ExportMismatch(component.name, export["path"], export.get("source", ""), problem, either)
    own = replace(own, construct=with_a_dictionary(own.construct, export["construct"]))
    config = replace(config, components={**config.components, component.name: own})
    own, told, plain = further_of(component, export, config, free)
    variant = config.variant_for(component.name)
    unlimited = "ids" in component.inputs and variant.positions != "learned"
    construct = _construct(component, export, own, is_function=is_function, unlimited=unlimited)
    if own.globals is not None:
        construct = replace(construct, named={**construct.named, GLOBALS: dict(own.globals.named)})
    call = _call(component, export, own)
    others = _sizes_of_others(component, variant, construct)
    construct, call = construct.settled(others), call.settled(_sizes_of_others(component, variant, call))
    mask = _mask(own, call, export["call"])
    undeclared = _causal(component, construct, call, mask, declared=own.call is not None)
    stands = undeclared == "construct" and own.causal in {"mask", "flag"} and "causal" in construct.names()
    causal = undeclared if stands or own.causal is None else own.causal
    _check_names(component, config.variant_for(component.name), export, construct, call)
    _check_complete(component, export, own)
    for problem in _without_meaning(component, config.variant_for(component.name)):
        advice = (
            f"declare it in [components.TinyTransformerLM.variant], or skip = true in [components.{component.name}]"
        )
        raise ExportMismatch(component.name, export["path"], export.get("source", ""), problem, (advice,))
    for problem, advice in unpassed_masks(component, own, own.causal or causal, required=mask.required):
        raise ExportMismatch(component.name, export["path"], export.get("source", ""), problem, (advice,))
    methods = dict(_methods(component, export, own, config.module))
    blind = _without_padding(methods, own, call)
    methods = {name: method for name, method in methods.items() if name not in blind}
    generation, generation_notes = _generation(component, export, own, free)
    bound = Bound(
        component=component,
        path=export["path"],
        config=own,
        variant=config.variant_for(component.name),
        declared=frozenset({*config.variant, *own.variant}),
        limits=_limits(component, export, own, config),
        construct=construct,
        call=call,
        causal=causal,
        mask=mask,
        boolean=frozenset(export.get("boolean") or ()),
        masks=_forms(own),
        insisted=insisted_on(export["call"]),
        unread=unread(export["call"], call) if component.several else {},
        methods=methods,
        generation=generation,
        generation_stub=_generation_stub(generation, methods, export, free),
        weights_output=own.weights_output,
        call_arguments=_call_arguments(component, export, own, call),
        further=told,
        by_position={
            **_by_position(component, export, own, construct, call),
            **dict(_methods_by_position(component, export, methods, generation, free)),
        },
        by_default=tuple(
            _by_default(
                component,
                export,
                own,
                plain,
                construct=construct,
                is_function=is_function,
                refused="defaults" in config.refused,
            )
        ),
        notes=(
            *_stands(component, own, stands=stands),
            *generation_notes,
            *_made_up(component, own),
            *_taken_for(component, own, construct),
            *(
                f"{name}, which {component.name} does not have, is {value} in its settings"
                for name, value in others.items()
            ),
            *_not_told_padding(component, call),
            *_not_passed(component, own, construct, config),
            *_not_called(component, methods, export, own),
            *(
                f"{name} of {component.name} is not judged: it takes no padding, which the whole takes"
                for name in blind
            ),
            *_without_masks(component, export, own),
        ),
    )
    bound = replace(bound, offers={**abilities(bound), "cached-call": takes_cache(export["call"], own.paths)})
    return replace(bound, exempted=exemptions(bound, export, causal=undeclared))


def _heads_of_another(component: Component, export: Mapping[str, Any]) -> str:
    """Return the argument of a constructor that counts heads, for a component that has one or none."""
    if _has_heads(component):
        return ""
    names = (parameter["name"] for parameter in export["construct"] or ())
    return next((name for name in names if meaning(name, ("num_heads",)) == "num_heads"), "")


def _by_position(
    component: Component, export: Mapping[str, Any], own: ComponentConfig, construct: Arguments, call: Arguments
) -> dict[str, Arguments]:  # fmt: skip
    """Return the arguments that callers of the contract pass by position and that are passed by name, or otherwise."""
    if own.parameters is not None:
        return {}  # a caller of the contract has no weights to pass
    sizes = [a.name for a in component.arguments if a.required]
    found = {
        "construct": by_position(construct, export["construct"], sizes),
        "call": by_position(call, export["call"], _required(component)),
    }
    return {key: arguments for key, arguments in found.items() if arguments is not None}


def _by_default(
    component: Component, export: Mapping[str, Any], own: ComponentConfig, plain: Iterable[tuple[str, Plain]],
    *, construct: Arguments, is_function: bool, refused: bool,
) -> Iterator[tuple[str, Plain]]:  # fmt: skip
    """Yield how it is constructed and called without what no caller of the contract passes, sizes of heads among it."""
    for key, bare in plain:
        found = bare.arguments
        if key == "construct":
            found = _construct(component, export, replace(own, construct=found), is_function=is_function)
        elif key == "call":
            found = _call(component, export, replace(own, call=found))
        yield key.removesuffix(".call"), replace(bare, arguments=found)
    if not is_function or own.factory:
        optional = {p["name"] for p in export["construct"] or () if not p["required"]}
        for name, value in construct.named.items():
            if name in optional and isinstance(value, Expression) and value.text in DERIVED:
                rest = {other: one for other, one in construct.named.items() if other != name}
                yield "construct", Plain(replace(construct, named=rest), f"{name} = {value.text}", refused=refused)


def _methods_by_position(
    component: Component, export: Mapping[str, Any], methods: Mapping[str, BoundMethod],
    generation: Generation | None, free: Mapping[str, Any] | None,
) -> Iterator[tuple[str, Arguments]]:  # fmt: skip
    """Yield the same for `generate` and for other methods, by their names."""
    described = export["methods"] or {}
    if generation is not None:
        signature = described.get(generation.method) if generation.method else (free or {}).get("call")
        required = [*(["model"] if generation.function else []), *(a.name for a in GENERATE if a.required)]
        placed = by_position(generation.call, signature, required)
        if placed is not None:
            yield "generate", placed
    for method in component.methods:
        bound = methods.get(method.name)
        if bound is None or not bound.name or ":" in bound.name:
            continue  # what a call returns besides, or a function, of which nothing is known
        required = [*(n for n in method.inputs if n not in MASKS), *(o.name for o in method.options if o.required)]
        placed = by_position(bound.call, described.get(bound.name), required)
        if placed is not None:
            yield f"methods.{method.name}", placed


def _required(component: Component) -> list[str]:
    """Return the inputs that callers of the contract cannot leave out."""
    return [name for name in component.inputs if name not in MASK_NAMES]


def _without_meaning(component: Component, variant: Variant) -> Iterator[str]:
    """Yield declared choices that the definition has for decoder-only models, and not for this component."""
    if component.name in SEVERAL_NAMES:
        for choice, known in (("placement", ("pre", "post")), ("norm_weight", ("scale",))):
            value = getattr(variant, choice)
            if value not in known:
                yield f"is declared with {choice} = {value}, which is a choice of TinyTransformerLM only"


def _made_by(export: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the description of a factory's product: its signature constructs; the call is unknown."""
    return {**export, "construct": export["call"], "call": None, "methods": None}


def _construct(
    component: Component, export: Mapping[str, Any], own: ComponentConfig, *, is_function: bool,
    unlimited: bool = False,
) -> Arguments:  # fmt: skip
    if is_function:
        return own.parameters or own.construct or Arguments()
    if own.construct is not None or own.globals is not None:
        return with_sizes(
            own.construct or Arguments(), export["construct"] or (), [a.name for a in component.arguments]
        )
    if export["construct"] is None:
        return Arguments((), {a.name: Expression(a.name) for a in component.arguments})
    names = [a.name for a in component.arguments] + (["kv_heads"] if _has_heads(component) else [])
    required = {a.name for a in component.arguments if a.required}
    single = _one_for_both(component, export["construct"])
    pairs = {name for both in single.values() for name in both}
    ends = takes_any(export["construct"]) or any(meaning(p["name"], ["block_size"]) for p in export["construct"])
    if unlimited and not ends:
        required -= {"block_size"}  # positions that are not a table have no end
    try:
        found = construct_from(export["construct"], [*(n for n in names if n not in pairs), *single], required - pairs)
        named = {n: _first_of(a, single) for n, a in found.named.items()}
        return replace(found, named=named)
    except SignatureMismatch as mismatch:
        raise _refused(component, export, "construct", mismatch, names) from None


_PAIRS: Mapping[str, tuple[str, str]] = {
    "vocab_size": ("src_vocab_size", "tgt_vocab_size"), "num_layers": ("num_encoder_layers", "num_decoder_layers"),
}  # fmt: skip
"""Sizes of an encoder-decoder that many constructors take once for both sides."""


def _one_for_both(component: Component, signature: Signature) -> dict[str, tuple[str, str]]:
    """Return the sizes of which a constructor takes one and the contract has two."""
    names = [a.name for a in component.arguments]
    return {
        single: both for single, both in _PAIRS.items()
        if both[0] in names and any(meaning(p["name"], [single]) for p in signature)
        and not any(meaning(p["name"], both) for p in signature)
    }  # fmt: skip


def _first_of(argument: Any, single: Mapping[str, tuple[str, str]]) -> Any:
    return Expression(single[argument.text][0]) if argument.text in single else argument


def _limits(component: Component, export: Mapping[str, Any], own: ComponentConfig, config: Config) -> SizeLimits:
    """Return what may be drawn: both sides of an encoder-decoder equal if its constructor takes one size for both."""
    declared = config.limits_for(component.name)
    if own.layout == "one sequence":
        declared = replace(declared, rank=3)  # the kit's inputs have a batch axis, over which it loops
    segmented = any(a.name == "num_segments" for a in component.arguments)
    if segmented and "num_segments" not in _construct_names(component, export, own):
        declared = SizeLimits({"num_segments": Range(2, 2)}).merged(declared)  # the contract's default
    if own.construct is not None and "mask" in own.construct.names() and declared.of("tokens").max is None:
        declared = SizeLimits({"tokens": Range(max=HELD_POSITIONS)}).merged(declared)
    if own.construct is not None or not export.get("construct"):
        return declared
    both = _one_for_both(component, export["construct"]).values()
    return SizeLimits({second: Range(equals=first) for first, second in both}).merged(declared)


def _construct_names(component: Component, export: Mapping[str, Any], own: ComponentConfig) -> frozenset[str]:
    """Return the sizes that its constructor is given."""
    is_function = export["kind"] == "function" and not own.factory
    return _construct(component, export, own, is_function=is_function).names()


def _call(component: Component, export: Mapping[str, Any], own: ComponentConfig) -> Arguments:
    if own.call is not None:
        return own.call
    inputs = component.inputs
    if component.several:
        return _call_of_several(component, export)
    required = {name for name in inputs if name != "mask"}
    if export["call"] is None and own.parameters is not None:
        return Arguments((Expression(PARAMETERS), *(Expression(name) for name in inputs if name != "mask")), {})
    if export["call"] is None:
        return Arguments(tuple(Expression(name) for name in inputs if name != "mask"), {})
    further = [name for name in ("mask", "causal", "positions") if name not in inputs]
    if "q" in inputs:  # attention on its own hides only what its mask says: a flag stays as it is by default
        further.remove("causal")
    try:
        if own.parameters is not None:
            return call_with(own.parameters, export["call"], (*inputs, *further), required)
        return call_from(export["call"], (*inputs, *further), required)
    except SignatureMismatch as mismatch:
        raise _refused(component, export, "call", mismatch, inputs) from None


def _call_of_several(component: Component, export: Mapping[str, Any]) -> Arguments:
    required = [name for name in component.inputs if name not in MASKS]
    if export["call"] is None:
        return Arguments(tuple(Expression(name) for name in required), {})
    if "segments" in component.inputs and not any(meaning(p["name"], ("segments",)) for p in export["call"]):
        with suppress(SignatureMismatch):
            return call_of(export["call"], [name for name in component.inputs if name != "segments"])
    try:
        return call_of(export["call"], component.inputs)
    except SignatureMismatch as mismatch:
        raise _refused(component, export, "call", mismatch, component.inputs) from None


def _forms(own: ComponentConfig) -> dict[str, MaskForm]:
    """Return how masks are passed: what is declared for the source's holds for the memory's, which are the same."""
    declared = dict(own.masks)
    for memory, source in (("memory_mask", "src_mask"), ("memory_padding", "src_padding")):
        if source in declared:
            declared.setdefault(memory, declared[source])
    return {**FORMS, **declared}


def _methods(
    component: Component, export: Mapping[str, Any], own: ComponentConfig, module: str | None
) -> Iterator[tuple[str, BoundMethod]]:
    """Yield how the existing methods of the contract are called; one that takes other arguments is left out."""
    described = export["methods"]
    if described is None:  # for a factory's product only declared calls are known; functions are passed the model
        named = {one.path or name: one.call for name, one in own.methods.items() if one.call}
        described = {path: None for path, call in named.items() if ":" not in path and "model" not in call.names()}
    for method in component.methods:
        declared = own.methods.get(method.name) or MethodConfig()
        if (standing := _standing_method(method, declared, export)) is not None:
            yield method.name, standing
            continue
        if method.beside is not None and declared.path is None and declared.call is None:
            place = method.beside if declared.output is None else declared.output
            yield method.name, BoundMethod("", _call(component, export, own), insisted_on(export["call"]), place)
            continue
        name = _place(method, declared, described, module)
        if name is None or (stub_of(export, name) and name != "generate"):
            continue
        is_function = ":" in name
        output = declared.output if declared.output is not None else _outputs(method)
        if declared.call is not None:
            insisted = frozenset[str]() if is_function else insisted_on(described[name])
            free = unread(described.get(name), declared.call)
            yield method.name, BoundMethod(name, declared.call, insisted, output, free)
            continue
        try:
            call = switched(call_of(described[name] or (), method.inputs, method.options), described[name] or ())
        except SignatureMismatch:
            continue
        free = unread(described[name], call)
        yield method.name, BoundMethod(name, call, insisted_on(described[name]), output, free)


def _without_padding(methods: Mapping[str, BoundMethod], own: ComponentConfig, call: Arguments) -> list[str]:
    """Return the halves that cannot hide padding, where the whole takes it apart from causality.

    Their masks are the whole's others, as in code around torch's modules, and not those of the contract.
    """
    paddings = {name for name in call.names() if name.endswith("padding")}
    halves = {name: method for name, method in methods.items() if name in {"encode", "decode"}} if paddings else {}
    undeclared = {
        name: method for name, method in halves.items() if (own.methods.get(name) or MethodConfig()).call is None
    }
    return sorted(name for name, method in undeclared.items() if not paddings & set(method.call.names()))


def _standing_method(method: Method, declared: MethodConfig, export: Mapping[str, Any]) -> BoundMethod | None:
    """Return how a method of the contract's name is called where another is declared; None if it can't be called."""
    methods = export["methods"] or {}
    described, path = methods.get(method.name), declared.path
    there = path is not None and (path in methods or ":" in path or declared.call is not None)
    if path == method.name or not there or described is None or stub_of(export, method.name):
        return None
    try:
        call = switched(call_of(described, method.inputs, method.options), described)
    except SignatureMismatch:
        return None
    return BoundMethod(method.name, call, insisted_on(described), _outputs(method), unread(described, call))


def _place(method: Method, declared: MethodConfig, described: Mapping[str, Any], module: str | None) -> str | None:
    """Return where a method of the contract is: its name, or with a colon that of a function, whose call is declared.

    A bare name that is not a method's is a function's in the implementation's module.
    """
    if declared.path is None:
        return next((name for name in (method.name, *method.further) if name in described), None)
    if declared.path in described:
        return declared.path
    path = declared.path if ":" in declared.path else f"{module or ''}:{declared.path}"
    return path if declared.call is not None else None


def _outputs(method: Method) -> Selector:
    return tuple(range(method.outputs)) if method.outputs > 1 else None


def _without_masks(component: Component, export: Mapping[str, Any], own: ComponentConfig) -> Iterator[str]:
    """Note that no mask is passed to a factory's product, since its call is unknown."""
    if export["call"] is None and own.factory and own.call is None and {"mask", "tgt_mask"} & set(component.inputs):
        said = "does not show how its product is called, so no mask is passed; declare it in conform.toml: call = […]"
        yield f"{component.name}: the factory {export['path']} {said}"


def _not_called(
    component: Component, methods: Mapping[str, BoundMethod], export: Mapping[str, Any], own: ComponentConfig
) -> Iterator[str]:
    """Note which of the generating methods exist but are not judged, because their call is unknown."""
    for method in component.methods:
        if method.name in methods:
            continue
        declared = own.methods.get(method.name) or MethodConfig()
        there = any(name in (export["methods"] or {}) for name in (method.name, *method.further))
        wanted = ", ".join((*method.inputs[:1], *(option.name for option in method.options if option.required)))
        problem = f"it is not called with {wanted}; say in conform.toml how it is called"
        if declared.path and declared.path not in (export["methods"] or {}):
            problem = f"{declared.path} is not a method; for a function, declare its call in conform.toml: call = […]"
        elif not method.options or not there or stub_of(export, method.name):
            continue
        yield f"{method.name} of {component.name} is not judged: {problem}"


def _has_heads(component: Component) -> bool:
    return any(a.name == "num_heads" for a in component.arguments)


def _sizes_of_others(component: Component, variant: Variant, construct: Arguments) -> dict[str, str]:
    """Return values for sizes that settings mention and this component does not have: one object serves all parts."""
    sizes = {a.name for a in component.arguments} | (derived_names(variant) if _has_heads(component) else set())
    unknown = construct.names() - sizes
    found = {name: value for name, value in _IN_SETTINGS.items() if name in unknown}
    settled = construct.settled(found).names()
    return {name: value for name, value in found.items() if name not in settled}


def _check_names(
    component: Component, variant: Variant, export: Mapping[str, Any], construct: Arguments, call: Arguments
) -> None:
    """Raise ExportMismatch if a declared argument depends on a size that this component does not have."""
    sizes = {a.name for a in component.arguments} | (derived_names(variant) if _has_heads(component) else set())
    inputs = {*component.inputs, "mask", "causal", *(() if "q" in component.inputs else ("positions", "position_ids"))}
    if component.several:
        inputs = {*component.inputs, *MASK_NAMES}
    further = {"constructed": {"dtype", "mask", *SOURCES}, "called": {*inputs, "T", PARAMETERS}}
    for what, arguments in (("constructed", construct), ("called", call)):
        known = sizes | further[what]
        passed = set_only(arguments, dict.fromkeys(known, 1))
        if absent := sorted(passed.names() - known):
            problem = f"is {what} with {', '.join(absent)}, which {component.name} does not have"
            advice = (f"it has {', '.join(sorted(known))}; give a number instead, or correct the name in conform.toml",)
            raise ExportMismatch(component.name, export["path"], export.get("source", ""), problem, advice)


def _check_complete(component: Component, export: Mapping[str, Any], own: ComponentConfig) -> None:
    """Raise ExportMismatch if a declared call leaves out an argument that has no default, and is no weight."""
    if own.call is None or own.parameters is not None:  # weights may be passed by their own names
        return
    lacking = left_out(export["call"] or (), own.call)
    if not lacking:
        return
    known = {name: meaning(name, [*component.inputs, "mask"]) or "…" for name in lacking}
    pairs = ", ".join(f'{name} = "{ours}"' for name, ours in known.items())
    problem = f"requires {', '.join(lacking)}, which `call` in conform.toml does not pass"
    lines = (f"pass what it requires: add {{ {pairs} }} to `call`", f"it takes ({_taken(export['call'])})")
    raise ExportMismatch(component.name, export["path"], export.get("source", ""), problem, lines)


def _taken(signature: Signature) -> str:
    return ", ".join(parameter["name"] for parameter in signature)


def _refused(
    component: Component, export: Mapping[str, Any], what: str, mismatch: SignatureMismatch, contract: Any
) -> ExportMismatch:
    """Propose the lines to declare; their values are left to the author."""
    pairs = [*_known(mismatch.known), *_known(mismatch.guessed())]
    lines = [f"{what} = {{ {', '.join(pairs)} }}"] if pairs else []
    if what == "construct" and any(name in CONFIGS for name in mismatch.unknown):
        name = next(name for name in mismatch.unknown if name in CONFIGS)
        given = ", ".join(f'{ours} = "{ours}"' for ours in mismatch.missing)
        lines = [f'construct.{name} = {{ object = "your.module:YourConfig", arguments = {{ {given} }} }}']
    signature = _taken(export["construct" if what == "construct" else "call"] or ())
    public = [name for name in contract if name != "kv_heads"]
    advice: tuple[str, ...] = (
        f"the contract has ({', '.join(public)}), yours has ({signature}); say in conform.toml how they correspond:",
        f"    [components.{component.name}]",
        *(f"    {line}" for line in lines),
    )
    if not lines:
        advice = (f"the contract has ({', '.join(public)}), yours takes nothing: it must take them to be judged",)
    return ExportMismatch(component.name, export["path"], export.get("source", ""), str(mismatch), advice)


def _known(pairs: Mapping[str, str]) -> list[str]:
    return [f'{theirs} = "{ours}"' for theirs, ours in pairs.items()]


def _mask(own: ComponentConfig, call: Arguments, described: Signature | None) -> MaskConfig:
    """Return how masks are passed: one is required if that is declared, or if its argument has no default."""
    mask = own.mask or MaskConfig()
    return replace(mask, required=True) if mask.kinds and insists(described or (), call, "mask") else mask


def _causal(
    component: Component, construct: Arguments, call: Arguments, mask: MaskConfig, *, declared: bool = False
) -> str:
    """Where the switch is: in the constructor, a mask or a flag at the call, or nowhere (then it is always on).

    A model that is called with a required mask gets the causal one, and so does one whose declared call has a mask.
    """
    if "ids" in component.inputs and "mask" in call.names() and (mask.required or declared):
        return "mask"
    if not any(a.name == "causal" for a in component.arguments) or {"causal", "mask"} & construct.names():
        return "construct"
    if "mask" in call.names():
        return "mask"
    return "flag" if "causal" in call.names() else "always"


def _not_told_padding(component: Component, call: Arguments) -> Iterator[str]:
    """Yield that a decoder has no argument for a padding mask of its target, or of its memory."""
    if not {"tgt_mask", "memory"} <= set(component.inputs):
        return
    if not TARGETS & call.names():
        yield f"{component.name} has no argument for a target padding mask: only the end can be padding"
    if not MEMORIES & call.names():
        yield f"{component.name} has no argument for a memory padding mask: it is for memories of one length"


def _not_passed(
    component: Component, own: ComponentConfig, construct: Arguments, config: Config
) -> Iterator[str]:  # fmt: skip
    """Yield that a declared constructor gets some size neither passed nor fixed: inputs show the model's width."""
    if own.construct is None or own.parameters is not None:
        return
    given = construct.names() | own.limits.sizes.keys() | config.limits.sizes.keys() | {"d_model"}
    given |= {"num_heads"} if "head_width" in given else set()
    given |= {"block_size"} if _needs_no_length(component, own, config) else set()
    for name in (a.name for a in component.arguments if a.required and a.name not in given):
        line = f'limits = {{ {name} = "…" }}'
        yield f"construct of {component.name} in conform.toml passes no {name}: if the code sets it, write {line}"


def _needs_no_length(component: Component, own: ComponentConfig, config: Config) -> bool:
    """Whether a model is told its longest input by a number of the file, or has positions without an end."""
    if config.variant_for(component.name).positions in _ENDLESS:
        return True
    assert own.construct is not None
    return any(meaning(name, ("block_size",)) for name in own.construct.argument_names())


def _made_up(component: Component, own: ComponentConfig) -> Iterator[str]:
    """Yield that a function whose weights have shapes only begins with the kit's numbers."""
    if own.parameters is not None and has_shapes(own.parameters):
        yield f"{component.name} makes no weights of its own: its initial numbers are the kit's"


def _taken_for(component: Component, own: ComponentConfig, construct: Arguments) -> Iterator[str]:
    """Yield which arguments of its constructor have names that are not usual for what they get."""
    found = {} if own.construct is not None else construct.named
    for theirs, value in found.items():
        if isinstance(value, Expression) and not meaning(theirs, [value.text, *_PAIRS]):
            said = f"{theirs} of {component.name}'s constructor is taken for {value.text}"
            yield f"{said}; construct in conform.toml says otherwise"


def _stands(component: Component, own: ComponentConfig, *, stands: bool) -> Iterator[str]:
    """Yield that the constructor's own switch is judged, if the file names another one besides it."""
    if stands:
        yield f"causal of {component.name}'s constructor is judged as it stands, not a {own.causal} of its call"


def _generation(
    component: Component, export: Mapping[str, Any], own: ComponentConfig, free: Mapping[str, Any] | None
) -> tuple[Generation | None, tuple[str, ...]]:
    """Return how the model generates; note if that is unknown, since generation is not judged then."""
    if not component.is_language_model:
        return None, ()
    if own.head is not None and own.generate is None:
        return None, ("generation is not judged: the head stands outside of the model; declare `generate` with a call",)
    config = own.generate or GenerateConfig()
    if (standing := _standing(export, config, free)) is not None:
        note = f"generate of {export['path']} is judged as it stands, not {config.path}, which conform.toml names"
        return standing, (note,)
    problem = f"{config.path} does not exist" if own.generate else ""
    generation: Generation | None = None
    try:
        generation = generation_of(config, export, free)
    except SignatureMismatch as mismatch:
        problem = f"it {mismatch}; say in conform.toml how it is called"
    unjudged = generation is None and problem
    return generation, (f"generation is not judged: {problem}",) if unjudged else ()


def _standing(export: Mapping[str, Any], config: GenerateConfig, free: Mapping[str, Any] | None) -> Generation | None:
    """Return how the model's own `generate` is called where another one is declared; None if it can't be called."""
    own, methods = GenerateConfig().path, export["methods"] or {}
    there = config.path in methods or (free is not None and config.path == free["path"])
    if config.path == own or own not in methods or not there or stub_of(export, own):
        return None
    try:
        return generation_of(GenerateConfig(), export, None)
    except SignatureMismatch:
        return None


def _call_arguments(
    component: Component, export: Mapping[str, Any], own: ComponentConfig, call: Arguments
) -> ArgumentNames:  # fmt: skip
    """Return the further arguments of a model's call, or an attention function's; others have none."""
    if component.export == "fused_attention":
        return flags_of(export["call"], own.paths)
    called = with_inside(export, export["call"])
    if component.name in _WITH_A_LOSS:
        return losses_of((called or ())[len(call.positional) :], call.named.keys())
    if component.export != "CausalLM":  # only profile paths asks for them
        return ArgumentNames()
    return call_arguments_of(called, export["construct"], export["methods"] or {}, own.paths)


def _generation_stub(
    generation: Generation | None, methods: Mapping[str, BoundMethod], export: Mapping[str, Any],
    free: Mapping[str, Any] | None,
) -> str:  # fmt: skip
    """Return the line that raises NotImplementedError if generation is a stub."""
    if generation is not None:
        return stub_of(export, generation.method) if generation.method else stub_of(free or {}, "")
    return stub_of(export, methods["generate"].name) if "generate" in methods else ""
