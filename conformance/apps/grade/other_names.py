"""What a submission calls otherwise than the assignment asks: told to its author, or judged all the same."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from conformkit.conformance.binding.config import ComponentConfig, Config
from conformkit.conformance.binding.toml_nodes import ConfigError
from conformkit.conformance.discovery.opening import looked_through
from conformkit.conformance.driver.errors import DriverError
from conformkit.conformance.engine.boundary import NOT_ITS_FAULT
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.loading import prepared
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.text import one_line
from conformkit.spec.components import component
from conformkit.spec.profiles import named_profile

__all__ = ["other_names", "renamed", "told_names"]

_SECONDS = 60.0


def other_names(request: RunRequest, missing: Collection[str]) -> dict[str, str]:
    """Return what looks like the missing components, `module:Name` by component; nothing where nothing does."""
    if not named_profile(request.profile).searched or request.isolation == "none" or not missing:
        return {}
    asked = replace(request, forbid_kit_imports=False, discover=True, diagnose=False, seconds=_SECONDS)
    try:
        with prepared(asked, None) as (place, warm), looked_through(asked, place, warm, missing) as (_, found):
            taken = found.taken() if found is not None else {}
    except NOT_ITS_FAULT:
        raise
    except (LoadFailure, ConfigError, DriverError):  # a submission that ends whatever looks at it
        return {}
    return {name: path for name, path in taken.items() if name in missing}


def renamed(config: Config, found: Mapping[str, str]) -> Config:
    """Return a configuration in which these components are what was found: names alone, no calls and no choices."""
    own = {name: replace(config.components.get(name, ComponentConfig(name)), path=path) for name, path in found.items()}
    return replace(config, components={**config.components, **own})


def told_names(found: Mapping[str, str], *, judged: bool) -> list[str]:
    """Return what to tell the author, a line each."""
    asks = "judged as that" if judged else "the assignment asks for the latter name, so it is not judged"
    return [
        f"`{one_line(path.rpartition(':')[2], 80)}` looks like {component(name).export}: {asks}"
        for name, path in found.items()
    ]
