"""Known mistakes, each a small patch to the reference: one file a defect, in a folder for each document of the law.

A file `<stem>/<id>.toml` holds

    title = "the scores are not divided by √d_k"
    common = "often"                              # often, sometimes, rarely
    clauses = ["SDPA-SCALE"]                      # what this mistake breaks, however it is made; each must fail
    also = ["…"]                                  # what fails beside them as a consequence of this patch, if anything
    sources = ["handout §4.2", "…"]
    twins = ["…"]                                 # others that no clause tells apart from it, if any: named together
    variant = { norm = "rmsnorm" }                # the choices under which it shows; canonical when absent

    [hint]                                        # one step more each
    symptom = "the weights are too sharp, and sharper the wider the keys are"
    area = "between the dot products and the softmax"
    mistake = "divide the scores by math.sqrt(k.shape[-1])"

    [[patch]]
    file = "block.py"                             # a file of the reference
    at = "TransformerBlock.forward"               # a function, method or class in it; the whole file when absent
    find = "…"                                    # occurs exactly once there, comments and docstrings not counted
    replace = "…"
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from conformkit.conformance.defects.facts import places
from conformkit.conformance.engine.hint import Hint
from conformkit.spec.profiles import PROFILES
from conformkit.spec.variants import BASES, CANONICAL, Variant

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = ["Defect", "Patch", "defect", "defects"]

COMMON = ("often", "sometimes", "rarely")
_BASES = {
    stem: BASES[name]
    for name in BASES
    for stem in PROFILES[name].documents
    if stem not in PROFILES["seq2seq"].documents
}
"""By folder, the canonical choices where they are not those of core."""


@dataclass(frozen=True, slots=True)
class Patch:
    """Replace `find`, which occurs exactly once in `file` of the reference, or in the definition `at` there."""

    file: str
    find: str
    replace: str
    at: str = ""
    """The dotted name of a function, method or class, such as `MultiHeadAttention.forward`."""


@dataclass(frozen=True, slots=True)
class Defect:
    """A known mistake."""

    id: str
    stem: str
    """The document of the law that it concerns most."""
    title: str
    common: str
    clauses: tuple[str, ...]
    sources: tuple[str, ...]
    hint: Hint
    patches: tuple[Patch, ...]
    also: tuple[str, ...] = ()
    """Clauses that fail beside those, since this patch breaks what they say, too."""
    twins: tuple[str, ...] = ()
    """Other mistakes that fail in the same words; one of each pair says so. See `twins.twins_of`."""
    variant: Variant = CANONICAL
    base: Variant = CANONICAL
    """What is canonical where it is judged."""

    @property
    def choices(self) -> dict[str, Any]:
        """The choices that it needs and that are not canonical, by name."""
        return self.variant.differences(self.base)


@cache
def defects() -> dict[str, Defect]:
    """Return all defects by id, in the order of their files."""
    return {name: _read(*place) for name, place in places().items()}


@cache
def defect(name: str) -> Defect | None:
    """Return one defect, without reading the others; None when there is none of that id."""
    place = places().get(name)
    return _read(*place) if place is not None else None


def _how_common(word: str) -> str:
    if word not in COMMON:
        raise ValueError(f"common is {word!r}, expected one of {', '.join(COMMON)}")
    return word


def _read(stem: str, file: Traversable) -> Defect:
    base = _BASES.get(stem, CANONICAL)
    try:
        data: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
        return Defect(
            id=file.name.removesuffix(".toml"),
            stem=stem,
            title=data.pop("title"),
            common=_how_common(data.pop("common")),
            clauses=tuple(data.pop("clauses")),
            sources=tuple(data.pop("sources")),
            hint=Hint(**data.pop("hint")),
            patches=tuple(Patch(**patch) for patch in data.pop("patch")),
            also=tuple(data.pop("also", ())),
            twins=tuple(data.pop("twins", ())),
            variant=base.but(**data.pop("variant", {})),
            base=base,
        )
    except KeyError as error:
        raise ValueError(f"defects/{stem}/{file.name}: {error.args[0]} is missing") from error
    except (TypeError, ValueError) as error:
        raise ValueError(f"defects/{stem}/{file.name}: {error}") from error
