"""Families of public checkpoints: which names their files have, and which variant their config.json describes."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import tomli_w

from conformkit.conformance.apps.port.problems import Unportable
from conformkit.conformance.binding.config import Config, parse_config
from conformkit.conformance.binding.messages import hint, nearest
from conformkit.conformance.binding.rules import Rule, parse_rule
from conformkit.conformance.driver.foreign import fits
from conformkit.conformance.text import one_line
from conformkit.spec.presets import LACKING, PRESETS
from conformkit.spec.variants import Variant

__all__ = ["Family", "families", "family", "family_of_class", "read_settings"]

_TABLES = ("variant", "limits", "sizes", "fixed", "choices", "only", "noted", "weights")
_SETTINGS = ("choices", "only", "noted")
_LIBRARY = "transformers"
_ALSO = {"neox": "gpt_neox", "pythia": "gpt_neox", "gpt_j": "gptj"}
_STYLES = {
    "vaswani": "it is a style, of which no files are published",
    "annotated": "it is a style, of which no files are published",
    "bert": "only language models that predict the next id are converted",
    "vit": "only language models that predict the next id are converted",
    "t5": "it is an encoder-decoder",
    "t5_v1_1": "it is an encoder-decoder",
    "codegen": "its files interleave queries, keys and values by the processors of its training",
}
"""Presets without files here, and why."""


@dataclass(frozen=True, slots=True)
class Family:
    """What is known about the checkpoints of one family; the tables are those of its file."""

    name: str
    path: str
    config: str
    ignored: tuple[str, ...]
    call: Mapping[str, Any]
    tables: Mapping[str, Mapping[str, Any]]
    parent: str = ""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Where canonical parameters are in its files."""
        return tuple(parse_rule(name, source) for name, source in self.tables["weights"].items() if source)

    def variant(self, settings: Mapping[str, Any]) -> Variant:
        """Return the variant that a config.json describes, by default the family's. Raises Unportable."""
        self._refuse(settings)
        found = dict(self.tables["variant"])
        for key, choice in self.tables["choices"].items():
            value = _looked_up(settings, key, choice.get("also", key))
            if value is None:
                continue
            known = choice.get("values")
            if "share_of" in choice:
                value = _share(value, settings, choice["share_of"])
            value = str(value).lower() if known is not None and isinstance(value, bool) else value
            if known is not None and value not in known:
                raise Unportable(
                    f"config.json: {key} is {value!r}, which the definition of {self.name} does not have",
                    advice=(f"it has {', '.join(known)}",),
                )
            found |= dict.fromkeys(choice["choices"], value if known is None else known[value])
        found |= {"norm_eps": float(found["norm_eps"])} if "norm_eps" in found else {}
        return Variant(**found)

    def sizes(self, settings: Mapping[str, Any]) -> dict[str, int]:
        """Return the sizes that a config.json names."""
        named = {size: settings.get(key) for key, size in self.tables["sizes"].items() if size}
        return {size: value for size, value in named.items() if isinstance(value, int) and not isinstance(value, bool)}

    def notes(self, settings: Mapping[str, Any]) -> tuple[str, ...]:
        """Return what a config.json says that no comparison here can show."""
        said = self.tables["noted"].items()
        return tuple(words.format(value=settings[key]) for key, words in said if settings.get(key) is not None)

    def declaration(self, variant: Variant) -> Config:
        """Return what a conform.toml would say about its class in transformers, in this variant."""
        if not self.path:
            raise Unportable(f"there is no class of {self.name} to compare with", advice=(f"--like {self.name}",))
        return parse_config(tomli_w.dumps(self._document(variant)), Path(f"{self.name}.toml"))

    def _refuse(self, settings: Mapping[str, Any]) -> None:
        for key, allowed in self.tables["only"].items():
            if not allowed:
                continue
            value = _looked_up(settings, key, key)
            value = allowed.get("absent") if value is None and settings else value
            if value is not None and value not in allowed["values"]:
                said = f"config.json: {key} is {value!r}" if _looked_up(settings, key, key) is not None else (
                    f"config.json does not say {key}, which is {value!r} then")  # fmt: skip
                raise Unportable(f"{said}: no variant of the definition has that")

    def _document(self, variant: Variant) -> dict[str, Any]:
        """Return what a conform.toml says."""
        model = {
            "path": self.path, "call": self.call, "output": "logits", "ignore": self.ignored,
            "construct": {"config": {"object": self.config, "arguments": self._arguments(variant)}},
            "weights": {rule.target: rule.source for rule in self.rules if not _without(rule, variant)},
        }  # fmt: skip
        return {
            "implementation": {"framework": "torch"}, "variant": variant.differences(), "limits": self.tables["limits"],
            "components": {"TinyTransformerLM": model},
        }  # fmt: skip

    def _arguments(self, variant: Variant) -> dict[str, Any]:
        found: dict[str, Any] = {key: size for key, size in self.tables["sizes"].items() if size}
        found |= {"bos_token_id": 0, "eos_token_id": "None", "attn_implementation": "'eager'"}
        for key, value in self.tables["fixed"].items():
            _put(found, key, value)
        for key, choice in self.tables["choices"].items():
            if not choice["choices"]:
                continue
            value = getattr(variant, choice["choices"][0])
            if "values" in choice:
                word = next(word for word, ours in choice["values"].items() if ours == value)
                value = word == "true" if set(choice["values"]) <= {"true", "false"} else f"'{word}'"
            if "share_of" in choice:
                value = f"round({value!r} * head_width)"
            _put(found, key, value)
            _put(found, choice.get("also", key), value)
        return found


def _without(rule: Rule, variant: Variant) -> bool:
    """Whether a variant has none of the parameters of a rule."""
    sizes = {"d_model": 1, "num_heads": 1, "kv_heads": 1, "head_width": 1, "d_ff": 1, "vocab_size": 1}
    from conformkit.spec.components import COMPONENTS  # noqa: PLC0415 - not needed to list families

    known = COMPONENTS["TinyTransformerLM"].parameters({**sizes, "num_layers": 1, "block_size": 1}, variant)
    return any(part.name.replace("{i}", "0") not in known for part in rule.parts)


def _share(value: Any, settings: Mapping[str, Any], of: list[str]) -> float:
    """Return a number of features as a share of a head's: `of` names the width of the model, the number of heads."""
    width, heads = (settings.get(key) for key in of)
    if not (isinstance(value, int) and isinstance(width, int) and isinstance(heads, int) and heads and width):
        raise Unportable(f"config.json: {value!r} features of each head are not available without {' and '.join(of)}")
    return value * heads / width


def _looked_up(settings: Mapping[str, Any], *keys: str) -> Any:
    """Return the first value that is there under one of these dotted keys."""
    for key in keys:
        value: Any = settings
        for part in key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is not None:
            return value
    return None


def _put(arguments: dict[str, Any], key: str, value: Any) -> None:
    first, _, rest = key.partition(".")
    if rest:
        _put(arguments.setdefault(first, {}), rest, value)
    else:
        arguments[first] = value


@cache
def families() -> dict[str, Family]:
    """Return all families by name."""
    folder = files(__package__) / "families"
    written = {
        entry.name.removesuffix(".toml"): tomllib.loads(entry.read_text(encoding="utf-8"))
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".toml")
    }
    return {name: _family(name, written) for name in written}


def _family(name: str, written: Mapping[str, Mapping[str, Any]]) -> Family:
    own = written[name]
    parent = _family(own["parent"], written) if "parent" in own else None
    inherited = parent.tables if parent else {table: {} for table in _TABLES}
    tables = {table: {**inherited[table], **own.get(table, {})} for table in _TABLES}
    tables["variant"] = {**PRESETS[name].differences(), **own.get("variant", {})}
    ignored = (*(parent.ignored if parent else ()), *own.get("ignored", ()))
    call = own.get("call", parent.call if parent else {})
    return Family(name, own.get("class", ""), own.get("config", ""), ignored, call, tables, own.get("parent", ""))


def family(name: str) -> Family:
    """Return a family by its name. Raises Unportable for one that is unknown, or that no variant expresses."""
    word = name.lower().replace("-", "_")
    word = _ALSO.get(word, word)
    found = families()
    if word in found:
        return found[word]
    known = f"families: {', '.join(found)}"
    if word in LACKING:
        raise Unportable(f"no variant of the definition expresses {name}: {LACKING[word]}", advice=(known,), usage=True)
    if word in PRESETS:
        why = _STYLES.get(word, "the names of its weights in files are not known here")
        raise Unportable(f"there are no files of {name} to convert: {why}", advice=(known,), usage=True)
    near = hint(nearest(word, found))
    raise Unportable(f"there is no family {name!r}{'; ' if near else ''}{near}", advice=(known,), usage=True)


def family_of_class(text: str) -> Family | None:
    """Return the family of `transformers:GPT2LMHeadModel`; None if the text names no class of that library.

    Raises Unportable for a class of it that is not known here.
    """
    module, colon, name = text.partition(":")
    if not colon or module.split(".")[0] != _LIBRARY:
        return None
    named = {one.path.rpartition(":")[2]: one for one in families().values() if one.path}
    if name in named:
        return named[name]
    near = hint(nearest(name, named))
    raise Unportable(
        f"{text} is not a class whose weights are known here{'; ' if near else ''}{near}",
        advice=(
            f"known: {', '.join(named)}",
            "for another class, write a conform.toml in a folder, with its path, and name the folder",
        ),
        usage=True,
    )


def read_settings(path: Path) -> dict[str, Any]:
    """Return a config.json. Raises Unportable."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise Unportable(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(found, dict):
        raise Unportable(f"{path} holds a {type(found).__name__}, expected an object with the settings of a model")
    huge = next((name for name, value in found.items() if isinstance(value, int) and not fits(value)), None)
    if huge is not None:
        raise Unportable(f"{path}: {one_line(huge, 80)} does not fit into 64 bits")
    return found
