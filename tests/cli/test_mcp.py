"""A model reaches the judge by the Model Context Protocol: tried with the SDK's own client."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CallToolResult, TextContent

from conformkit.cli.mcp_tools import tools_of
from conformkit.conformance.api.judgment import Failure, Judgment
from conformkit.conformance.report.score import RunOutcome

NAMES = ({"title": "the scores are not divided by √d_k", "certainty": "exact"}, {"title": "another"})
FAILURE = Failure(
    "SDPA-SCALE", "rule", "MUST", "ScaledDotProductAttention", "fail", "what", "mend it", "a.py", 3, NAMES,
    {"got": [1.25], "want": [0.5]},
)  # fmt: skip
VERDICT = Judgment("candidate", RunOutcome.FAILS, "1 of 2 fails", 0.5, {"X": 0.5}, (FAILURE,) * 7, seed=3)
WRONG = """import numpy as np

def scaled_dot_product_attention(q, k, v, mask=None):
    s = q @ np.swapaxes(k, -1, -2)
    if mask is not None:
        s = np.where(mask, s, -np.inf)
    weights = np.exp(s - s.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v
"""


class Judges:
    """Answers what it is given; `asked` is what was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, dict[str, Any]]] = []

    async def judged(self, code: Any, **options: Any) -> Judgment:
        if options.get("profile") == "cor":
            raise ValueError("profile 'cor' is not one of core")
        self.asked.append((code, options))
        return VERDICT


def called(tool: str, judges: Any = None, /, **arguments: Any) -> CallToolResult:
    async def call() -> CallToolResult:
        async with Client(tools_of(judges or Judges(), "process")) as client:
            return await client.call_tool(tool, arguments)

    return anyio.run(call)


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def test_a_verdict_is_short_and_tells_no_number_to_copy() -> None:
    """Would break if all failures, or what was expected, came back, or the name of the mistake did not."""
    judges = Judges()
    found = called("judge", judges, code="import numpy", only="SDPA", stop=True).structured_content
    assert judges.asked == [("import numpy\n", {"only": "SDPA", "stop": True})]
    assert found is not None
    assert (found["outcome"], found["score"], len(found["failures"]), found["more_failures"]) == ("fails", 0.5, 5, 2)
    assert found["failures"][0] == {
        "clause": "SDPA-SCALE", "rule": "rule", "level": "MUST", "what": "what", "fix": "mend it",
        "looks_like": "the scores are not divided by √d_k; another", "at": "a.py:3",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("judge", {}, "give one of code, files, path, not none"),
        ("judge", {"code": "x", "path": "y"}, "give one of code, files, path, not code and path"),
        ("judge", {"code": "x", "profile": "cor"}, "profile 'cor' is not one of core"),
        ("explain", {"name": "SDPA-SCAL"}, "nearest: SDPA-SCALE"), ("spec", {"prefix": "XYZ"}, "XYZ"),
        ("repro", {"clause_id": "XYZ", "path": "a.py"}, "the tool `spec` lists clauses"),
        ("repro", {"clause_id": "SDPA-SCALE", "path": "nowhere.py"}, "nowhere.py"),
    ],
)  # fmt: skip
def test_a_wrong_call_is_answered_with_what_is_wrong(name: str, arguments: dict[str, str], says: str) -> None:
    result = called(name, **arguments)
    assert result.is_error
    assert says in text_of(result)


def test_the_law_is_read_clause_by_clause() -> None:
    assert "multi_head_attention · MultiHeadAttention (" in text_of(called("spec"))
    assert "SDPA-SCALE" in text_of(called("spec", prefix="SDPA-SC"))
    assert "fix" in text_of(called("explain", name="SDPA-SCALE"))


def test_the_command_serves_a_client_over_its_streams(tmp_path: Path) -> None:
    """Would break if anything but the protocol were printed, or a verdict gave away what was drawn or expected."""
    (tmp_path / "attention.py").write_text(WRONG, encoding="utf-8")
    command = [sys.executable, "-P", "-m", "conformkit.cli", "serve", "--mcp", "--isolation", "process"]
    server = StdioServerParameters(command=command[0], args=command[1:], cwd=tmp_path)

    async def talk() -> tuple[CallToolResult, CallToolResult, list[str]]:
        async with Client(stdio_client(server)) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            red = await client.call_tool("judge", {"path": "attention.py", "only": "SDPA"})
            script = await client.call_tool("repro", {"clause_id": "SDPA-SCALE", "path": "attention.py"})
            return red, script, names

    red, script, names = anyio.run(talk)
    assert names == ["judge", "explain", "spec", "repro"]
    assert red.structured_content is not None
    failure = red.structured_content["failures"][0]
    assert (red.structured_content["outcome"], failure["clause"]) == ("fails", "SDPA-SCALE")
    assert "not divided" in failure["looks_like"]
    assert "import numpy as np" in text_of(script)
