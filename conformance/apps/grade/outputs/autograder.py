"""A Gradescope autograder as a zip: the policy, the versions to grade with, and two scripts."""

from __future__ import annotations

import io
import tomllib
import zipfile
from importlib import metadata
from importlib.resources import files
from pathlib import Path, PurePosixPath

from conformkit.conformance.apps.grade.outputs.student import TEMPLATES
from conformkit.conformance.apps.grade.outputs.wheel import wheel
from conformkit.conformance.apps.grade.policy_file import parse_policy
from conformkit.conformance.versions import kit_version

__all__ = ["KitUnusable", "autograder"]

_SCRIPTS = {"setup.sh": "setup.sh", "run_autograder": "run_autograder.sh"}
_PACKAGES = (".whl", ".tar.gz")
_PINNED = ("torch", "numpy")
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Date of every file: the same policy and versions give the same bytes."""


class KitUnusable(ValueError):
    """The kit to install is neither a package file nor a requirement."""


def autograder(policy: Path, kit: str = "", isolation: str = "") -> bytes:
    """Return the zip for a policy file.

    `kit` is what pip installs: a requirement, or a wheel or source package, which is added to the zip; by default a
    wheel of the kit that runs here. Raises ConfigError if the policy can't be used, KitUnusable.
    """
    text = policy.read_text(encoding="utf-8")
    parse_policy(text, policy)
    members = {"policy.toml": text.encode(), **_beside(text, policy), **_installed(kit)}
    members["options.txt"] = f"--isolation={isolation}\n".encode() if isolation else b""
    for name, template in _SCRIPTS.items():
        members[name] = files(TEMPLATES).joinpath(template).read_bytes()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(members.items()):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if name in _SCRIPTS else 0o100644) << 16
            archive.writestr(entry, data)
    return stream.getvalue()


def _beside(text: str, policy: Path) -> dict[str, bytes]:
    """Return the conform.toml that the policy names, under the path given there."""
    named = tomllib.loads(text).get("conform", "")
    if not named:
        return {}
    inside = PurePosixPath(named)
    if inside.is_absolute() or ".." in inside.parts or str(inside) in {"policy.toml", *_SCRIPTS}:
        raise KitUnusable(f"the policy's conform = {named!r} leads out of its folder; put the file next to the policy")
    return {str(inside): (policy.parent / named).read_bytes()}


def _installed(kit: str) -> dict[str, bytes]:
    """Return requirements.txt, and the package that it names if that is a file."""
    pins = [f"{name}=={metadata.version(name).partition('+')[0]}" for name in _PINNED]
    if kit.endswith(_PACKAGES):
        file = Path(kit)
        if not file.is_file():
            raise KitUnusable(f"there is no file {kit}; build one with: pip wheel --no-deps -w dist .")
        return {"requirements.txt": _lines(f"./{file.name}", *pins), file.name: file.read_bytes()}
    if not kit:
        name, data = wheel()
        return {"requirements.txt": _lines(f"./{name}", *pins), name: data}
    requirement = kit
    if not requirement[0].isalpha() or any(not c.isprintable() for c in requirement):
        raise KitUnusable(
            f"{requirement!r} is not a requirement; give one such as conformkit=={kit_version()}, or a wheel"
        )
    return {"requirements.txt": _lines(requirement, *pins)}


def _lines(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
