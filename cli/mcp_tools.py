"""`conform serve --mcp`: the judge as tools of the Model Context Protocol, on its official SDK.

A model that calls them reads every word, so results are short, and they show no drawn or expected number: those would
be copied into the code.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import typer
from anyio import to_thread
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from conformkit.cli.explain import page
from conformkit.cli.spec import listing
from conformkit.conformance.api.judging import JudgePool
from conformkit.conformance.api.judgment import Failure, Judgment
from conformkit.conformance.api.serving import request_of
from conformkit.conformance.apps.repro.reproduce import reproduce
from conformkit.conformance.binding.toml_nodes import ConfigError
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.text import plain
from conformkit.conformance.versions import kit_version
from conformkit.spec.clauses import UnknownClauseError, clause, clauses, select
from conformkit.spec.profiles import named_profile

__all__ = ["tools_of"]

_SHOWN = 5
"""Failures that are shown; mending them often mends others."""
_WIDTH = 100
_ABOUT = (
    "Judges hand-written transformers: attention, blocks, language models, encoder-decoders, losses, optimizers. Call "
    "`judge` on the code, mend the first failure, and call it again; only the outcome `conforms` is a pass."
)


def tools_of(judges: JudgePool, isolation: str) -> MCPServer[Any]:
    """Return a server with the tools judge, explain, repro and spec. `judges` must be open while it runs."""
    server: MCPServer[Any] = MCPServer("conformkit", instructions=_ABOUT, version=kit_version())

    @server.tool()
    async def judge(
        code: str = "",
        files: dict[str, str] | None = None,
        path: str = "",
        profile: str = "",
        only: str = "",
        stop: bool = False,
    ) -> dict[str, Any]:
        """Judge one of: `code`, the text of a Python file; `files`, a package as names and texts; `path`, on this disk.

        `profile` is core (the default), lm, paths, seq2seq, encoder, vit or finetune; `only` names clauses or
        components, separated by commas; `stop` ends at the first failure, which is faster.
        """
        given = {"code": code, "files": files, "path": path, "profile": profile, "only": only, "stop": stop}
        try:
            candidate, options = request_of({name: value for name, value in given.items() if value})
            return _told(await judges.judged(candidate, **options))
        except (ValueError, TypeError) as error:
            raise ToolError(plain(str(error))) from None

    @server.tool()
    def explain(name: str) -> str:
        """Explain a clause (SDPA-SCALE), a known mistake or a point on which sources err (ERR-07)."""
        try:
            return "\n".join(page(name, _WIDTH))
        except typer.BadParameter as error:
            raise ToolError(error.message) from None

    @server.tool()
    def spec(prefix: str = "") -> str:
        """List the clauses whose ids begin with a prefix (SDPA, MHA-SCALE); without one, the documents of the law."""
        try:
            return "\n".join(listing(select((prefix,)), _WIDTH)) if prefix else "\n".join(_documents())
        except UnknownClauseError as error:
            raise ToolError(str(error)) from None

    @server.tool()
    async def repro(clause_id: str, path: str) -> str:
        """Return a script that shows why a clause fails for the code at `path`, and that runs without this judge."""
        return await to_thread.run_sync(_script, clause_id, path, isolation)

    return server


def _told(found: Judgment) -> dict[str, Any]:
    """Return what a model reads of a verdict."""
    first = [_failed(each) for each in found.failures[:_SHOWN]]
    told = {
        "outcome": found.outcome.value, "verdict": found.sentence, "score": round(found.score, 3), "failures": first,
        "more_failures": max(0, len(found.failures) - _SHOWN), "advice": list(found.advice),
    }  # fmt: skip
    return {name: value for name, value in told.items() if value or name in {"outcome", "verdict", "score"}}


def _failed(failure: Failure) -> dict[str, str]:
    names = "; ".join(str(name["title"]) for name in failure.names)
    told = {
        "clause": failure.clause, "rule": failure.rule, "level": failure.level, "what": failure.what,
        "fix": failure.fix, "looks_like": names, "at": f"{failure.file}:{failure.line}" if failure.file else "",
    }  # fmt: skip
    return {name: value for name, value in told.items() if value}


def _documents() -> Sequence[str]:
    """Return a line for each document of the law."""
    found = groupby(clauses().values(), lambda one: (one.document, one.component))
    return [f"{document} · {component} ({len(list(group))} clauses)" for (document, component), group in found]


def _script(clause_id: str, path: str, isolation: str) -> str:
    """Return the script, or why there is none. Raises ToolError."""
    try:
        name = clause(clause_id).id
        profile = named_profile(clause(name).profile).parts_from
        request = RunRequest(path, profile=profile, isolation=isolation, discover=True)
        found = reproduce(request, name, Path.cwd(), "")
    except UnknownClauseError as error:
        raise ToolError(f"{error}; the tool `spec` lists clauses") from None
    except (LoadFailure, ConfigError) as error:
        raise ToolError(plain(str(error))) from None
    if found.script is None:
        return f"{name}: {found.result.verdict.value}; {plain(found.reason or found.result.message)}"
    if found.script.arrays:
        return f"{name}: its inputs are too large to print; run conform repro {name} --impl {path}"
    return found.script.text
