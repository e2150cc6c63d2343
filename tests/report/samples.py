"""Reports that tests render: one with entries of every kind, and one in which everything is hostile."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

from conformkit.conformance.assertions.excerpts import Excerpt
from conformkit.conformance.binding.declarations import Excuse
from conformkit.conformance.engine.declarations.not_judged import Unusable
from conformkit.conformance.engine.hint import Hint
from conformkit.conformance.engine.results import (
    Certainty,
    DifferingPart,
    LooksLike,
    Report,
    Result,
    Undeclared,
    Verdict,
)
from conformkit.conformance.findings.finding import Finding, Kind
from conformkit.conformance.findings.setting import Setting
from conformkit.spec.clauses import Clause, Level

__all__ = ["HOSTILE", "hostile", "make_report", "make_result", "telling"]

CLAUSE = Clause(
    id="SDPA-SCALE", title="scores are divided by the square root of the key width",
    normative="Every score MUST be the dot product divided by √d_k.", why="unscaled, the softmax saturates",
    fix="divide the scores by math.sqrt(k.shape[-1])", level=Level.MUST, evidence=("oracle",), profile="core",
    since="1.0", source="Vaswani et al. 2017, §3.2.1", component="ScaledDotProductAttention", document="attention",
    line=5, applies={}, needs=("SDPA-SHAPE",),
)  # fmt: skip

EXCERPT = Excerpt(
    got=((1.75, 0.0, math.nan), (-0.5, 1.0, 2.0)), want=((1.5, 0.0, 1.0), (-0.5, 1.0, 2.0)), allowed=1e-6,
    shape=(4, 2, 3), at=(3, 0, 2), first=(0, 0),
)  # fmt: skip

LEAK = Excerpt(
    got=((0.5, 0.5), (0.25, 0.75)), want=((0.5, 0.0), (0.25, 0.75)), allowed=0.0, shape=(2, 2), at=(0, 1), first=(0, 0),
    hidden=((False, True), (False, False)),
)  # fmt: skip

HOSTILE = (
    "<script>document.title='ran'</script><img src=http://127.0.0.1:9/x onerror=\"document.title='ran'\">"
    "\"'><svg/onload=document.title='ran'> </pre></style></title><!-- {{ 7*7 }} {% raw %}\n"
    "```\n# Heading\n| a | b |\n[link](http://127.0.0.1:9) @everyone #1 $x$ ``\n"
    "::error file=x::forged\n::add-mask::pass\r\n\x1b[31mred\u202egnp.exe\x00" + "long" * 60
)
"""Text that tries to break out of every format."""


def make_result(verdict: Verdict = Verdict.PASS, clause_id: str = "SDPA-SCALE", **changes: Any) -> Result:
    """Return a result on a made-up clause; fields of both can be given, and a finding as `message` and `details`."""
    of_clause = {
        name: changes.pop(name) for name in ("level", "component", "title", "line", "document") if name in changes
    }
    if "message" in changes or "details" in changes:
        said, notes = changes.pop("message", ""), changes.pop("details", ())
        changes["finding"] = _found(said, tuple(notes))
    return Result(replace(CLAUSE, id=clause_id, **of_clause), verdict, **changes)


def _found(said: str, notes: tuple[str, ...]) -> Finding:
    """Return a finding from a message: an exception, with its setting, or something that is untrue."""
    raised = re.fullmatch(r"it raised (\w+): (.*)", said, re.DOTALL)
    if raised is None:
        return Finding(Kind.UNTRUE, said, notes=notes, verbatim=True)
    settings = [Setting.of(line.removeprefix("with ")) for line in notes if line.startswith("with ")]
    rest = tuple(line for line in notes if not line.startswith("with "))
    return Finding(
        Kind.RAISED, "", notes=rest, setting=settings[0] if settings else None, error=raised[1], said=raised[2]
    )


def make_report(*results: Result, **changes: Any) -> Report:
    """Return a report of these results; every field can be given."""
    facts: dict[str, Any] = {
        "implementation": "mypkg", "location": "/home/me/mypkg", "framework": "torch 2.13.0", "profile": "core",
        "level": Level.MUST, "seed": 7, "isolation": "process", "device": "cpu", "variant": {"norm": "rmsnorm"},
        "complete": True, "seconds": 2.5,
    }  # fmt: skip
    return Report(results=list(results), **{**facts, **changes})


def hostile() -> Report:
    """A report in which everything that an implementation controls is hostile."""
    return make_report(
        make_result(),
        make_result(
            Verdict.FAIL, "SDPA-EVIL", message=HOSTILE, details=(HOSTILE, HOSTILE), output=HOSTILE, where=HOSTILE
        ),
        make_result(Verdict.ERROR, "SDPA-SOFT", message=HOSTILE, level=Level.SHOULD),
        make_result(Verdict.NOT_RUN, "SDPA-NOT", reason=HOSTILE),
        make_result(Verdict.BLOCKED, "SDPA-BLOCKED", reason=HOSTILE, blocked_by="SDPA-EVIL"),
        implementation=HOSTILE, location=HOSTILE, framework=HOSTILE, notes=[HOSTILE], missing=[HOSTILE],
        unusable={HOSTILE: Unusable(HOSTILE, HOSTILE, (HOSTILE,))},
        excuses=[Excuse("weights", HOSTILE, HOSTILE, HOSTILE)],
        variant={HOSTILE: HOSTILE}, parts={"TransformerBlock": DifferingPart("attention", HOSTILE)},
    )  # fmt: skip


def telling() -> Report:
    """A report in which every kind of entry occurs."""
    likely = LooksLike(
        "sdpa-no-scale", "the scores are not divided by √d_k", Certainty.EXACT, (),
        Hint("the weights are too sharp", "between products and softmax", "divide by math.sqrt(k.shape[-1])"),
    )  # fmt: skip
    return make_report(
        *(make_result(verdict, f"SDPA-V{n}", line=n, reason="" if verdict.red else "a reason", blocked_by="SDPA-V1")
          for n, verdict in enumerate(Verdict)),
        make_result(Verdict.FAIL, "SDPA-SCALE", line=90, message="output[0] is 1.75, expected 1.5",
                    details=("24 of 24 differ",), distance=12.5, excerpt=EXCERPT, looks_like=(likely,),
                    output="debug\n"),
        make_result(Verdict.ERROR, "SDPA-LINE", line=91, component="PositionalEncoding",
                    message="it raised ValueError: no",
                    where="mypkg/attention.py:2 in forward"),
        make_result(Verdict.FAIL, "SDPA-SOFT", line=92, level=Level.SHOULD, message="not finite", excerpt=LEAK),
        notes=["weights bound by name"], missing=["FeedForward"], skipped=["SelfAttention"],
        unusable={"AdamW": Unusable("AdamW is not available", "conform.toml, line 3", ("mend it",))},
        only=("SDPA",), pages="https://course.example/law/",
        undeclared=[Undeclared("FeedForward", "activation", "gelu", "relu", "variant", 'activation = "relu"')],
        parts={"PositionalEncoding": DifferingPart("table", "table is the first part that differs: off by 0.52")},
    )  # fmt: skip
