"""What further profiles judge of code that was found: tools beside its model, and arguments of the model's call."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.binding.aliases import meaning
from conformkit.conformance.binding.call_arguments import ArgumentNames, call_arguments_of
from conformkit.conformance.binding.config import Config, parse_config
from conformkit.conformance.binding.lookups import targets
from conformkit.conformance.binding.path_config import PathsConfig
from conformkit.conformance.binding.toml_text import table_text
from conformkit.conformance.binding.tools import ToolMismatch
from conformkit.conformance.binding.translations import in_english
from conformkit.conformance.discovery.candidates import named
from conformkit.conformance.discovery.items import Item
from conformkit.conformance.discovery.meanings import is_settings
from conformkit.conformance.discovery.tools.finding import FoundTools, as_tool, found_tools, has_attributes
from conformkit.conformance.discovery.tools.roles import ROLES
from conformkit.conformance.discovery.tools.tables import table_of
from conformkit.conformance.driver.errors import DriverError
from conformkit.conformance.engine.declarations.not_judged import Unusable
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.results import Report
from conformkit.conformance.text import listed
from conformkit.spec.clauses import clauses_of
from conformkit.spec.components import COMPONENTS, component
from conformkit.spec.tools import TOOLS, ToolContract, tools_of

__all__ = ["Beside", "as_its_batches", "beside", "profile_of", "reported_as_found", "what_is_what"]

_MODEL = "TinyTransformerLM"
_DOCUMENTS: Mapping[str, str] = {
    "mask": "paths_padding", "positions": "paths_packing", "segments": "paths_packing", "cache": "paths_cache",
    "targets": "paths_loss",
}  # fmt: skip
"""By what a model's call takes besides ids, the document that says what becomes of it."""
_WRITING = ("decoding", "penalties")
"""Documents of profile lm about how a model generates."""
_OF_THE_CALLER = re.compile(r"label", re.IGNORECASE)
"""In names of targets that are the ids themselves by custom, which the model shifts."""
_ALONE = "one sequence"
"""How code is called that takes no batch."""
_ONE_TEXT = "it is not judged, for it is that of one text without a batch"
_MAX_NAMES = 8
"""How many names of what is not judged are told."""
_SOURCE, _TARGET = re.compile(r"src|source|(enc|encoder)_in"), re.compile(r"tgt|trg|target|(dec|decoder)_in")
"""How names of ids begin that are translated, and of those that they become."""
_OF_TRAINING = re.compile(
    r"dataset|loader|train|loss|entropy|optim|adam|sched|_lr|lr_|clip|batch|eval|estimate|sampl|"
    r"generate|generation|generator|beam|perplex|tokeniz|smooth|early_?stop|accumul"
)
"""In names of what belongs to training or writing."""
_IMAGES = {"img", "image", "images", "imgs", "pixel_values", "pixels", "img_size", "image_size", "patch_size"}
"""Names of arguments of what reads images."""
_SEGMENTS = {"token_type_ids", "segment_ids", "segments", "token_type", "segment_label", "segment"}
"""Names of arguments that number the two texts of a pair."""


@dataclass(frozen=True, slots=True)
class Beside:
    """What another profile judges of the same code: some of its clauses, with what was found as if it were declared."""

    profile: str
    clauses: frozenset[str]
    config: Config
    taken: Mapping[str, str] = field(default_factory=dict)
    """What was found for that profile alone, `module:Name` by component or tool."""
    near: Mapping[str, str] = field(default_factory=dict)
    """Why what looks like a tool is not judged, by tool."""
    lookalikes: Mapping[str, str] = field(default_factory=dict)
    """Those of `near` that cannot be judged, and look so much like that tool that nothing passes without them."""
    left: Sequence[str] = ()
    """Names of what trains or writes and was taken for nothing."""


def what_is_what(taken: Mapping[str, str]) -> str:
    """Say which definition each component was found to be, from `module:Name` by component."""
    names = {name: path.rpartition(":")[2] for name, path in taken.items()}
    said = [f"{own} is taken for {name}" for name, own in names.items() if own != name]
    same = [name for name, own in names.items() if own == name]
    return "; ".join([*said, *([f"{', '.join(same)} under the contract's name"] if same else [])])


def reported_as_found(report: Report, judged: Beside) -> Report:
    """Return the report of a run beside another with what it was about as found, not as declared."""
    notes = [f"found: {what_is_what(judged.taken)}"] if judged.taken else []
    notes += [f"unsure: {name}: {why}" for name, why in judged.near.items() if name not in judged.lookalikes]
    notes += [f"not judged, for nothing shows what they are: {listed(judged.left, _MAX_NAMES)}"] if judged.left else []
    line = "say in conform.toml how it is called, in [components.{}]; it is judged then"
    open_ = {name: Unusable(told, "", (line.format(name),)) for name, told in judged.lookalikes.items()}
    return replace(
        report, found=dict(judged.taken), notes=[*notes, *report.notes], accounted=True,
        unusable={**report.unusable, **open_},
    )  # fmt: skip


def profile_of(items: Collection[Item]) -> str:
    """Return the profile of the largest thing that these definitions are: a decoder alone where nothing else shows."""
    classes = [item for item in items if item.kind == "class"]
    for item in classes:
        wanted = {meaning(p["name"], ("src", "tgt")) for p in item.call or () if p["required"]}
        if {"src", "tgt"} <= wanted and (_called(item, "Transformer") or _translates(item)):
            return "seq2seq"
    takes = {p["name"] for item in classes for p in [*(item.call or ()), *(item.construct or ())]}
    held = {p["name"] for item in items if item.kind == "mapping" for p in item.construct or ()}
    if (takes | held) & _IMAGES and any(_called(item, "PatchEmbedding", "VisionTransformer") for item in classes):
        return "vit"
    if any("bert" in item.name.lower() for item in classes) or takes & _SEGMENTS:
        return "core" if any(_is_whole(item) and "bert" not in item.name.lower() for item in classes) else "encoder"
    return "finetune" if _tunes(items) else "core"


def _translates(item: Item) -> bool:
    """Whether its call takes a source and a target by these names, and its constructor a vocabulary or settings."""
    names = [p["name"].lower() for p in item.call or () if p["required"]]
    sides = any(map(_SOURCE.match, names)) and any(map(_TARGET.match, names))
    words = ("src_vocab_size", "tgt_vocab_size", "vocab_size")
    return sides and any(meaning(p["name"], words) or is_settings(p["name"]) for p in item.construct or ())


def _tunes(items: Collection[Item]) -> bool:
    """Whether there are losses that a model is tuned with, and no part of a model."""
    definitions = [item for item in items if item.kind in {"function", "class"}]
    playing = [(tool, item) for tool in tools_of("finetune").values() for item in definitions if _plays(tool, item)]
    played = {item.path for _, item in playing}
    others = [item for item in definitions if item.path not in played]
    if any(item.call is not None if item.kind == "class" else _called(item, *COMPONENTS) for item in others):
        return False
    losses = [(tool, item) for tool, item in playing if not tool.parts]  # batches are made in all kinds of training
    return any(item.kind == "class" or table_of(tool, ROLES[tool.name], item, {}) is not None for tool, item in losses)


def _plays(tool: ToolContract, item: Item) -> bool:
    return item.name == tool.name or ROLES[tool.name].calls(item.name)


def _called(item: Item, *components: str) -> bool:
    return any(named(component(name), item.name) for name in components)


def _is_whole(item: Item) -> bool:
    """Whether it is called as a language model is: with ids, and named like one."""
    ids = any(meaning(p["name"], ("ids",)) for p in (item.call or ())[:1])
    return ids and named(component(_MODEL), item.name)


def beside(
    implementation: Implementation, items: Sequence[Item], config: Config, taken: Mapping[str, str]
) -> Iterator[Beside]:  # fmt: skip
    """Yield what profiles besides the one that is judged say of what is there; `taken` is what was found for it."""
    lacking, own = implementation.lacking_tools("lm"), {item.path for item in items} - {*taken.values()}
    cut = [item for item in items if item.path in own and (_MODEL in taken or not item.data_set)]
    tools = found_tools(implementation, cut, lacking, "lm")  # of a file with another model, data sets hold pairs
    standing = implementation.standing_tools("lm", lacking)
    defined = {item.name: item.path for item in items if item.path in own}  # not what is imported from a library
    places = {name: defined.get(path.rpartition(":")[2]) for name, path in standing.items()}
    found = {name: path for name, path in places.items() if path is not None and _answers(implementation, name, path)}
    found |= {name: str(table["path"]) for name, table in tools.tables.items()}
    model = next((item for item in items if item.path == taken.get(_MODEL)), None)
    if model is not None:
        batches = {"path": found.get("get_batch"), **tools.tables.get("get_batch", {})}
        config = _with_shifts(implementation, config, model, batches)
    writes = {c.id for c in clauses_of("lm").values() if c.component == _MODEL and c.document in _WRITING}
    about = {c.id for c in clauses_of("lm").values() if c.component in found}
    taken_by = _taken_by(model, config) if model is not None else []
    alone = "cache" in taken_by and config.component(_MODEL).layout == _ALONE
    if about or model is not None:
        clauses = frozenset(about | (writes if model else set()))
        left = _left(items, {*found.values(), *taken.values()}, str(config.component(_MODEL).generate))
        near = {**tools.near, **({"the cache": _ONE_TEXT} if alone else {})}
        yield Beside("lm", clauses, _with_tools(config, tools), found, near, tools.lookalikes, left)
    documents = {_DOCUMENTS[what] for what in taken_by if what != "cache" or not alone}
    if documents:
        clauses = frozenset(c.id for c in clauses_of("paths").values() if c.document in documents)
        yield Beside("paths", clauses, config)


def _answers(implementation: Implementation, name: str, path: str) -> bool:
    """Whether what has a tool's name also has what the contract reads of it; what no file declares need not have it."""
    declared = implementation.config.tool(name)
    return bool(declared.path or declared.attributes) or has_attributes(implementation, TOOLS[name], {"path": path})


def _left(items: Sequence[Item], used: Collection[str], generate: str) -> list[str]:
    """Return the names of what trains or writes, and is not used; `generate` says how a model writes."""
    named = [item for item in items if item.kind in {"function", "class"} and item.path not in used]
    return [item.name for item in named if _trains(item.name) and item.name not in generate]


def _trains(name: str) -> bool:
    """Whether a name says, in whatever language, that something trains or writes."""
    return any(_OF_TRAINING.search(one.lower()) for one in (name, *in_english(name)))


def _with_tools(config: Config, tools: FoundTools) -> Config:
    text = "\n\n".join(table_text(name, table) for name, table in tools.tables.items())
    return replace(config, tools={**parse_config(text).tools, **config.tools})


def _taken_by(model: Item, config: Config) -> list[str]:
    takes = _arguments(model, config)
    return [what for what in _DOCUMENTS if getattr(takes, what) is not None]


def _arguments(model: Item, config: Config) -> ArgumentNames:
    return call_arguments_of(model.call, model.construct, {}, config.component(_MODEL).paths)


def as_its_batches(implementation: Implementation, items: Sequence[Item], config: Config) -> Config:
    """Return what is declared, for a run of profile paths alone: targets that its batches shift, the model does not."""
    model = next((item for item in items if item.path == targets(config)[_MODEL]), None)
    if model is None:
        return config
    lacking = implementation.lacking_tools("lm")
    found = found_tools(implementation, items, [name for name in lacking if name == "get_batch"], "lm").tables
    path = implementation.standing_tools("lm", lacking).get("get_batch")
    return _with_shifts(implementation, config, model, {"path": path, **found.get("get_batch", {})})


def _with_shifts(implementation: Implementation, config: Config, model: Item, batches: Mapping[str, Any]) -> Config:
    """Declare that the model does not shift its targets where the code makes batches in which they are shifted.

    `batches` is the table of `get_batch`, without a path if there is none. Targets called labels are the ids themselves
    by custom, whoever else shifts: nothing is declared about them.
    """
    own, taken = config.component(_MODEL), _arguments(model, config).targets
    paths = own.paths or PathsConfig()
    if taken is None or paths.shifts is not None or _OF_THE_CALLER.search(taken):
        return config
    if not batches.get("path") or not _shifted(implementation, batches):
        return config
    without = replace(own, paths=replace(paths, shifts=False))
    return replace(config, components={**config.components, _MODEL: without})


def _shifted(implementation: Implementation, table: Mapping[str, Any]) -> bool:
    """Whether the second part of a batch of consecutive numbers is the first one's, one later."""
    try:
        x, y = as_tool(implementation, "get_batch", table)(ids=np.arange(40), batch_size=2, block_size=4)
        return bool(np.array_equal(np.asarray(y), np.asarray(x) + 1))
    except (ToolMismatch, DriverError, ClauseFailure, ValueError, TypeError):
        return False
