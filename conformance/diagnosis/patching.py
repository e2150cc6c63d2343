"""A copy of the reference with a defect, as a separate package that the driver can load."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import tomli_w

from conformkit.conformance.binding.sizes import DERIVED
from conformkit.conformance.binding.toml_text import stored
from conformkit.conformance.defects import Patch
from conformkit.conformance.diagnosis.places import PatchError, place
from conformkit.spec.variants import BERT, CANONICAL, FREE, VIT, Variant

__all__ = ["PatchError", "patched", "reference_folder", "write_reference"]

_DEFAULT = re.compile(r"from conformkit\.spec\.variants import (CANONICAL|BERT|VIT), Variant\n")
"""The line by which a module of the reference gets the variant that it builds if none is given."""
_DEFAULTS = {"CANONICAL": CANONICAL, "BERT": BERT, "VIT": VIT}
_FOLDERS = ("encoder", "finetuning", "paths", "seq2seq", "vision")
_READ = re.compile(r"\w+(?: *(?://|\*) *\w+)*")
"""Expressions that the reference can evaluate; a declaration may hold others."""
_ANY_EXPRESSION = '''

def evaluate(expression: str, **sizes: int) -> int:
    """Return what any expression of a declaration is worth, where that is a size."""
    from conformkit.conformance.binding.expressions import evaluate as worth

    value = worth(expression.replace("//", "/"), sizes)
    if value < 1 or value != int(value):
        raise SizeError(expression, value, "a whole number of at least 1")
    return int(value)
'''


def write_reference(
    folder: Path, patches: Sequence[Patch] = (), variant: Variant | None = None, dtypes: Sequence[str] = (),
    declared: Variant | None = None, base: Variant = CANONICAL,
) -> Path:  # fmt: skip
    """Write the reference, patched and in a variant, into a new folder that is a package; return the folder.

    Its modules import each other relatively under the folder's own name; the variant is both what they build and what
    its conform.toml declares, unless another one is `declared`; `dtypes` are the number formats that it declares.
    `base` is canonical in the profile in which it is judged, and the variant if none is given. Raises PatchError.
    """
    variant = base if variant is None else variant
    sources = patched(patches)
    if not all(map(_READ.fullmatch, (getattr(variant, name) for name in DERIVED))):
        sources["sizes.py"] += _ANY_EXPRESSION
    for name in _FOLDERS:
        (folder / name).mkdir(parents=True)
    for name, text in sources.items():
        (folder / name).write_text(_own(text, folder.name, variant), encoding="utf-8")
    (folder / "conform.toml").write_text(_declaration(declared or variant, dtypes, base), encoding="utf-8")
    return folder


def patched(patches: Sequence[Patch], originals: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the texts of the reference's modules, or of these `originals`, by their path, patched one by one.

    Raises PatchError.
    """
    sources = dict(_sources(reference_folder()) if originals is None else originals)
    for patch in patches:
        sources[patch.file] = _patched(sources, patch)
    return sources


def reference_folder() -> Path:
    """Return the folder of the reference, which is not imported: the harness does without torch."""
    found = importlib.util.find_spec("conformkit.reference")
    if found is None or found.origin is None:
        raise PatchError("the bundled reference is not installed")
    return Path(found.origin).parent


def _sources(reference: Path) -> dict[str, str]:
    """Return the texts of its modules by their path; what trains it is left out."""
    files = sorted([*reference.glob("*.py"), *(file for name in _FOLDERS for file in reference.glob(f"{name}/*.py"))])
    return {file.relative_to(reference).as_posix(): file.read_text(encoding="utf-8") for file in files}


def _patched(sources: dict[str, str], patch: Patch) -> str:
    if patch.file not in sources:
        raise PatchError(f"the reference has no file {patch.file}, only {', '.join(sorted(sources))}")
    text = sources[patch.file]
    found = place(patch.file, text, patch.find, patch.at)
    return text[: found.start] + patch.replace + text[found.stop :]


def _own(text: str, package: str, variant: Variant) -> str:
    """Make a module import its neighbors from its own package, and build this variant if none is given."""
    text = text.replace("conformkit.reference", package)
    found = _DEFAULT.search(text)
    if found is None or variant == _DEFAULTS[found[1]]:
        return text
    given = ", ".join(f"{name}={value!r}" for name, value in variant.differences().items())
    imported = f"from conformkit.spec.variants import Variant\n\n{found[1]} = Variant({given})\n"
    return text.replace(found[0], imported)


def _declaration(variant: Variant, dtypes: Sequence[str], base: Variant) -> str:
    said = {**{name: getattr(variant, name) for name in FREE}, **variant.differences(base)}
    own = {"implementation": {"dtypes": list(dtypes)}} if dtypes else {}
    return tomli_w.dumps({**own, "variant": {name: stored(value) for name, value in said.items()}})
