"""What each key of conform.toml can do: a renaming changes nothing that is judged, an excuse can hide a mistake.

The table KIND_OF_KEY says it of every key. Excuses are told in the head of every report, and a policy says which of
them count in grading: by default none that changes arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from conformkit.conformance.assertions.formats import HALF
from conformkit.conformance.binding.arguments import Arguments
from conformkit.conformance.binding.config import ComponentConfig, Config
from conformkit.conformance.binding.factors import FACTORS
from conformkit.conformance.binding.limits import Range, SizeLimits
from conformkit.conformance.binding.parameters import made_with
from conformkit.conformance.binding.passed import ORDER, kinds_of, shown
from conformkit.conformance.binding.rules import WEIGHT, StoredPart
from conformkit.conformance.binding.toml_text import choice_line
from conformkit.conformance.binding.tool_config import ToolConfig
from conformkit.spec.components import LOGITS, base_of
from conformkit.spec.tools import TOOLS

__all__ = ["CHANGING", "KINDS", "KIND_OF_KEY", "RENAMING", "Excuse", "excuses", "is_first"]

RENAMING = ""
"""Instead of a kind of excuse."""
KINDS: Mapping[str, str] = {
    "weights": "numbers by which weights are multiplied, or that are added to them",
    **{name: factor.words for name, factor in FACTORS.items()},
    "factors": "arguments that are computed from sizes, such as a scale, or are not what the contract passes",
    "further": "arguments with a default that get what no caller of the contract passes",
    "defaults": "constants in place of a default with which the code gives other numbers",
    "computed": "flags in other words, such as bidirectional = not causal, other counts of ids, and widths of heads",
    "constants": "arguments that are constants, or objects made for a call",
    "ignore": "trainable parameters that are neither written nor compared",
    "path": "another object than the one that stands under the contract's name",
    "output": "a result other than the first one, where there are several",
    "layout": "calls for one sequence each of code that takes batches too, and gives other numbers for them",
    "masks": "what True in a mask means, and kinds of masks that are not taken",
    "causal": "that it always hides later positions, or never",
    "generate": "generation by another function or method, without some options, or by sampling alone",
    "variant": "choices that differ from the canonical variant",
    "limits": "sizes that are not tried",
    "dtypes": "number formats that are not tried",
    "skip": "components that are left out",
}
"""The kinds of excuses, and what each of them declares."""
CHANGING = frozenset({"weights", *FACTORS, "factors", "further", "defaults", "ignore", "layout", "output", "path"})
"""Kinds that change which numbers are compared. The others leave out, or say what a number stands for."""

_CALLED = {"construct": "constants", "call": "constants", "parameters": "constants"}
_PART = {"path": "path", "skip": "skip", "factory": RENAMING, **_CALLED, "output": "output", "others": RENAMING}
_METHODS = {"methods.path": "generate", "methods.call": "constants", "methods.output": "output"}
_COMPONENT: Mapping[str, str] = {
    **_PART, **_METHODS, "unconfirmed": "skip", "globals": "defaults",
    "weights_output": RENAMING, "layout": "layout", "causal": "causal",
    "mask.kinds": "masks", "mask.true": "masks", "mask.shape": RENAMING, "mask.required": RENAMING,
    "masks.kind": RENAMING, "masks.true": "masks", "masks.shape": RENAMING,
    "variant": "variant", "limits": "limits", "ignore": "ignore", "weights": "weights",
    "generate.path": "generate", "generate.call": "constants", "generate.greedy": "generate",
    "generate.options": "generate", "generate.returns": RENAMING, "generate.prompts": "layout", "head": "constants",
    **{f"paths.{key}": RENAMING for key in (
        "mask", "mask_form.kind", "mask_form.shape",
        "positions", "segments", "restarts", "cache", "use_cache", "cache_output", "crop", "reset",
        "reorder", "targets", "shifts", "loss_output", "weights", "kernels",
        "causal", "causal_alignment", "scale", "dropout", "grouped",
    )},
    "paths.mask_form.true": "masks", "paths.new_cache": "constants",
}  # fmt: skip
_TOOL: Mapping[str, str] = {
    **{key: kind for key, kind in (_PART | _METHODS).items() if key not in {"others", "parameters"}},
    "methods.path": RENAMING, "mask.kind": RENAMING, "mask.true": "masks", "mask.shape": RENAMING,
    "arrays": RENAMING, "attributes": RENAMING, "globals": "defaults", "limits": "limits",
    "logits": "factors", "reduction": "factors", "stride": "variant",
}  # fmt: skip
KIND_OF_KEY: Mapping[str, str] = {
    "implementation.framework": RENAMING, "implementation.module": "path", "implementation.dtypes": "dtypes",
    "variant": "variant", "limits": "limits",
    **{f"components.{key}": kind for key, kind in _COMPONENT.items()},
    **{f"tools.{key}": kind for key, kind in _TOOL.items()},
}  # fmt: skip
"""By key, the kind of excuse that it can be; empty for a renaming. `tools` are tables of tools under `components`.

Within a key, what only renames is none: a path of weights, an argument that is a size, the first of several outputs.
"""
_MOST_WORDS = 200


@dataclass(frozen=True, slots=True)
class Excuse:
    """One declaration that can hide a mistake."""

    kind: str
    key: str
    """The key that declares it, `components.MultiHeadAttention.weights`."""
    component: str
    """The component or tool; empty for all of them."""
    words: str
    coarse: bool = False
    """Whether it lets numbers be off by percents: only half precision is judged."""
    instead: str = ""
    """Of constants: the arguments that get one in place of their default."""

    @property
    def arithmetic(self) -> bool:
        """Whether it changes which numbers are compared, or how closely."""
        return self.coarse or self.kind in CHANGING


def excuses(config: Config) -> Iterator[Excuse]:
    """Yield what a file declares beyond renamings.

    Whether ignored parameters are trainable, and whether there are several outputs, is known only after a trial: both
    are yielded, for whoever has tried it to leave out. Further arguments are known only with signatures (further.py).
    """
    if tuple(config.dtypes) != Config().dtypes:
        sentence = f"judged in {', '.join(config.dtypes)} only"
        yield Excuse("dtypes", "implementation.dtypes", "", sentence, coarse=set(config.dtypes) <= set(HALF))
    yield from _of_variant(config.variant, "", "variant")
    yield from _of_limits(config.limits, "", "limits")
    for name, own in config.components.items():
        yield from _of_component(name, own)
    for name, tool in config.tools.items():
        yield from _of_tool(name, tool)


def _of_component(name: str, own: ComponentConfig) -> Iterator[Excuse]:
    place = f"components.{name}"
    yield from _of_part(name, own)
    yield from _of_globals(name, own.globals)
    yield from _of_arguments(name, f"{place}.parameters", made_with(own.parameters), f"the weights of {name} are made")
    yield from _of_variant(own.variant, name, f"{place}.variant")
    yield from _of_limits(own.limits, name, f"{place}.limits")
    for rule in own.weights:
        for part in rule.parts:
            yield from _of_weight(name, rule.target, part)
    if own.ignore:
        sentence = f"parameters of {name} that are neither written nor compared: {', '.join(own.ignore)}"
        yield Excuse("ignore", f"{place}.ignore", name, sentence[:_MOST_WORDS])
    yield from _of_layout(name, own)
    if own.mask is not None and set(own.mask.kinds) != {"bool", "float"}:
        kinds = " and ".join(own.mask.kinds) or "no"
        yield Excuse("masks", f"{place}.mask.kinds", name, f"{name} takes {kinds} masks only")
    hiding = [mask for mask, form in own.masks.items() if form.hides]
    if own.mask is not None and own.mask.form.hides:
        hiding.append("mask")
    if hiding:
        yield Excuse("masks", f"{place}.mask.true", name, f"True hides in {', '.join(hiding)} of {name}")
    if own.paths is not None and own.paths.mask_form.hides:
        yield Excuse(
            "masks", f"{place}.paths.mask_form.true", name, f"True hides in {own.paths.mask or 'the mask'} of {name}"
        )
    if own.paths is not None:
        yield from _of_arguments(name, f"{place}.paths.new_cache", own.paths.new_cache, "a cache is made")
    yield from _of_generation(name, own)
    if own.head is not None:
        made = own.head if isinstance(own.head, str) else "an object"
        yield Excuse(
            "constants", f"{place}.head", name, f"the head of {name} stands outside of it: {made}"[:_MOST_WORDS]
        )


def _of_globals(name: str, globals_: Arguments | None) -> Iterator[Excuse]:
    """Yield the globals that get something else than an argument: nobody who imports the code sets them."""
    given = [(place, value) for place, kind, value in kinds_of(globals_) if kind] if globals_ is not None else []
    if given:
        listing = ", ".join(f"{place} = {shown(value)}" for place, value in given)
        yield Excuse("defaults", f"components.{name}.globals", name, f"{name} is judged with {listing}"[:_MOST_WORDS])


def _of_layout(name: str, own: ComponentConfig) -> Iterator[Excuse]:
    place = f"components.{name}"
    if own.layout == "one sequence":
        sentence = f"{name} takes batches, with other numbers, and is called for one sequence after the other"
        yield Excuse("layout", f"{place}.layout", name, sentence)
    if own.causal in {"always", "never"}:
        yield Excuse("causal", f"{place}.causal", name, f"{name} {own.causal} hides later positions")


def _of_generation(name: str, own: ComponentConfig) -> Iterator[Excuse]:
    place = f"components.{name}"
    for method, declared in own.methods.items():
        if declared.path and declared.path != method:
            sentence = f"{method} of {name} is {declared.path}"
            yield Excuse("generate", f"{place}.methods.{method}.path", name, sentence)
        yield from _of_arguments(name, f"{place}.methods.{method}.call", declared.call, f"{method} is called")
    if own.generate is None:
        return
    if own.generate.path != "generate":
        yield Excuse("generate", f"{place}.generate.path", name, f"text is generated by {own.generate.path}")
    if own.generate.options is not None:
        offered = ", ".join(own.generate.options) or "none"
        yield Excuse("generate", f"{place}.generate.options", name, f"options of generation: {offered}")
    if own.generate.prompts != "batch":
        yield Excuse("layout", f"{place}.generate.prompts", name, "text is generated for one prompt at a time")
    if own.generate.greedy is False:
        yield Excuse(
            "generate",
            f"{place}.generate.greedy",
            name,
            "its generate only samples",
        )
    elif own.generate.greedy is not None:
        yield from _of_arguments(name, f"{place}.generate.greedy", own.generate.greedy, "greedy text is asked for")
    yield from _of_arguments(name, f"{place}.generate.call", own.generate.call, "generate is called")


def _of_tool(name: str, own: ToolConfig) -> Iterator[Excuse]:
    yield from _of_part(name, own)
    yield from _of_globals(name, own.globals)
    if own.logits:
        yield Excuse("factors", f"components.{name}.logits", name, f"{name} takes {own.logits} in place of logits")
    if own.reduction:
        sentence = f"{name} returns the {own.reduction}, which is divided by the number of targets that count"
        yield Excuse("factors", f"components.{name}.reduction", name, sentence)
    if own.stride is not None:
        yield Excuse("variant", f"components.{name}.stride", name, f"windows of {name} do not begin at each id")
    if own.limits:
        numbers = ", ".join(f"{argument} = {value}" for argument, value in own.limits.items())
        yield Excuse("limits", f"components.{name}.limits", name, f"{name} is judged with {numbers}"[:_MOST_WORDS])
    if own.mask is not None and own.mask.hides:
        yield Excuse("masks", f"components.{name}.mask.true", name, f"True hides in the masks of {name}")
    for method, declared in own.methods.items():
        yield from _of_arguments(name, f"components.{name}.methods.{method}.call", declared.call, f"{method} is called")


def _of_part(name: str, own: ComponentConfig | ToolConfig) -> Iterator[Excuse]:
    place = f"components.{name}"
    if own.skip:
        yield Excuse("skip", f"{place}.skip", name, f"{name} is left out")
    elif isinstance(own, ComponentConfig) and own.unconfirmed:
        yield Excuse("skip", f"{place}.unconfirmed", name, f"{name} is left out, not confirmed by its draft")
    if not is_first(own.output, name):
        yield Excuse("output", f"{place}.output", name, f"the output of {name} is {own.output!r} of what it returns")
    yield from _of_arguments(name, f"{place}.construct", own.construct, f"{name} is constructed")
    yield from _of_arguments(name, f"{place}.call", own.call, f"{name} is called")


def is_first(output: Any, component: str) -> bool:
    """Whether a selector takes what would be taken without one: the first results, or the logits of a model.

    Nobody takes a dictionary for what a tool returns: the names of its entries are renamings, places are not.
    """
    if component in TOOLS:
        chosen = output if isinstance(output, tuple) else (output,)
        places = [str(one).partition(".")[0] for one in chosen if str(one)[:1].isdigit()]
        return places == list(map(str, range(len(places))))
    first = (output[0] if output else None) if isinstance(output, tuple) else output
    return first in {None, 0, "0"} or (first == "logits" and component in LOGITS)


def _of_weight(name: str, target: str, part: StoredPart) -> Iterator[Excuse]:
    if part.expression == WEIGHT:
        return
    key = f"components.{name}.weights"
    if part.factor:
        yield Excuse(part.factor, key, name, f"{FACTORS[part.factor].words} ({part.factor} in {name}, {target})")
        return
    sentence = f"{target} of {name} holds {part.text}: numbers are judged as if the code undid that"
    yield Excuse("weights", key, name, sentence[:_MOST_WORDS])


def _of_variant(variant: Mapping[str, Any], name: str, key: str) -> Iterator[Excuse]:
    of = f" of {name}" if name else ""
    canonical = base_of(name)
    for choice, value in variant.items():
        if value != getattr(canonical, choice):
            yield Excuse("variant", key, name, f"the variant{of} has {choice_line(choice, value)}")


def _of_limits(limits: SizeLimits, name: str, key: str) -> Iterator[Excuse]:
    of = f" of {name}" if name else ""
    lines = [f"{size} {_bounds(limit)}" for size, limit in limits.sizes.items()]
    lines += [f"rank {limits.rank}"] if limits.rank is not None else []
    if lines:
        yield Excuse("limits", key, name, f"sizes{of} are limited: {', '.join(lines)}"[:_MOST_WORDS])


def _bounds(limit: Range) -> str:
    if limit.equals is not None:
        return f"= {limit.equals}"
    if limit.min == limit.max is not None:
        return f"= {limit.min}"
    low, high = (f"from {limit.min}" if limit.min else "", f"to {limit.max}" if limit.max else "")
    return " ".join(
        said for said in (low, high, f"in multiples of {limit.multiple_of}" if limit.multiple_of else "") if said
    )


def _of_arguments(name: str, key: str, arguments: Arguments | None, how: str) -> Iterator[Excuse]:
    """Yield arguments that are excuses, one excuse for each kind."""
    if arguments is None:
        return
    told: dict[str, list[str]] = {kind: [] for kind in ORDER}
    for argument, kind, value in kinds_of(arguments):
        if kind:
            told[kind].append(f"{argument} = {shown(value)}" if isinstance(argument, str) else shown(value))
    for kind, lines in told.items():
        if lines:
            yield Excuse(kind, key, name, f"{how} with {', '.join(lines)}"[:_MOST_WORDS])
