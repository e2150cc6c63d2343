"""Errors that end a run without a report, as a sentence and an exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from conformkit.cli.exits import Exit, fail, wrong
from conformkit.conformance.binding.toml_nodes import ConfigError
from conformkit.conformance.driver.errors import DeviceUnavailable, IsolationUnavailable
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.text import one_line, plain
from conformkit.spec.clauses import UnknownClauseError

__all__ = ["explained"]


@contextmanager
def explained(impl: str) -> Iterator[None]:
    """Turn the expected exceptions of a run into exit codes; others pass through."""
    try:
        yield
    except LoadFailure as error:
        where = f"where:   {error.where}" if error.where else ""
        printed = f"printed: {plain(error.output, 600).strip()}" if error.output else ""
        fail(Exit.NOT_LOADED, f"{one_line(impl, 200)} cannot be judged: {error.problem}", where, printed, *error.advice)
    except ConfigError as error:
        line = f", line {error.line}" if error.line else ""
        fail(Exit.NOT_LOADED, f"{error.path}{line}: {error.problem}", error.advice)
    except UnknownClauseError as error:
        wrong("--only", f"{error}.")
    except KeyboardInterrupt:
        fail(Exit.INTERRUPTED, "stopped before any clause was judged")
    except (DeviceUnavailable, IsolationUnavailable) as error:
        fail(Exit.NO_ISOLATION, str(error), *error.advice)
