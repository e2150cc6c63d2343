"""Open an implementation as its author has it: what nothing declares is looked for first, for this opening only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace

from conformkit.conformance.discovery.abilities import as_its_batches
from conformkit.conformance.discovery.completing import Completed, completed
from conformkit.conformance.discovery.drafting import definitions
from conformkit.conformance.driver.client.head_start import HeadStart
from conformkit.conformance.driver.location import Location
from conformkit.conformance.driver.spawn.warm import WorkerFactory
from conformkit.conformance.engine.finding import Located
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.loading import opened, prepared, unbound
from conformkit.conformance.engine.request import RunRequest
from conformkit.spec.profiles import named_profile

__all__ = ["looked_through", "opened_as_found"]


@contextmanager
def looked_through(
    request: RunRequest, located: Located, warm: WorkerFactory | None, wanted: Collection[str] | None,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[tuple[Located, Completed | None]]:  # fmt: skip
    """Yield what is declared, with what was found besides; None where nothing was to be found.

    `wanted` are the components that are needed, all if it is None; `tell` hears what is being looked for.
    Raises LoadFailure, ConfigError, IsolationUnavailable.
    """
    if not request.discover or request.forbid_kit_imports or request.isolation == "none":
        yield located, None
        return
    tell("importing")
    with unbound(request, warm, located) as (implementation, location):
        found = completed(implementation, location, request, wanted, tell)
        config = located.config if found is None else found.config
        if named_profile(request.profile).further_arguments:
            config = as_its_batches(implementation, definitions(implementation), config)
    yield replace(located, config=config), found


@contextmanager
def opened_as_found(
    request: RunRequest, start: HeadStart | None = None, wanted: Collection[str] | None = None
) -> Iterator[tuple[Implementation, Location]]:
    """Load and bind the implementation, or what of it is wanted; end its worker in any case.

    Raises LoadFailure, ConfigError, IsolationUnavailable.
    """
    with (
        prepared(request, start) as (place, warm),
        looked_through(request, place, warm, wanted) as (located, _),
        opened(request, warm, located=located) as both,
    ):
        yield both
