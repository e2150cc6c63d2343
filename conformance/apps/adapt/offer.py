"""What `conform adapt` would find, for a run in which nothing binds."""

from __future__ import annotations

import shlex
from dataclasses import replace

from conformkit.conformance.apps.adapt.adapt import draft
from conformkit.conformance.binding.config import Config
from conformkit.conformance.discovery.drafting import looked_for
from conformkit.conformance.driver.errors import DriverError
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.text import count
from conformkit.spec.profiles import named_profile
from conformkit.spec.tools import tools_of

__all__ = ["offer"]


def offer(request: RunRequest) -> str:
    """Return a sentence that says how much a draft finds, and the command that writes it; nothing if it finds nothing.

    The implementation's components are built and called for that, in a worker of the request's isolation.
    """
    if not named_profile(request.profile).searched:
        return ""
    try:
        found = draft(replace(request, config=Config(), only=(), without=()), {})
    except (LoadFailure, DriverError):
        return ""
    if not found.finds_something:
        return ""
    words = ["conform", "adapt", request.impl, *named_profile(request.profile).option]
    tools, many = tools_of(request.profile), len(found.proposals) + len(found.tools.tables)
    asked = count(len(looked_for(request.profile)) + len(tools), "part" if tools else "component")
    return f"conform adapt finds {many} of {asked} here: {shlex.join(words)} > conform.toml"
