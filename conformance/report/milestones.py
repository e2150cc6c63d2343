"""The progress of an implementation from attention to generation, and what comes next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from conformkit.conformance.engine.results import Report, Result, Verdict
from conformkit.spec.clauses import Clause, clauses
from conformkit.spec.components import COMPONENTS, SEVERAL_NAMES, component, is_component
from conformkit.spec.profiles import named_profile

__all__ = ["MILESTONES", "Milestone", "State", "Step", "milestone_of", "milestones", "next_step"]

MILESTONES = (
    "attention", "multi-head", "positions", "block", "encoder", "decoder", "model", "training", "generation",
)  # fmt: skip
"""In the order in which one builds a transformer."""

_BY_COMPONENT: Mapping[str, str] = {
    "ScaledDotProductAttention": "attention", "SelfAttention": "attention", "MultiHeadAttention": "multi-head",
    "PositionalEncoding": "positions", "FeedForward": "block", "TransformerBlock": "block",
    "CrossAttention": "multi-head", "TokenEmbedding": "positions", "EncoderLayer": "encoder", "Encoder": "encoder",
    **dict.fromkeys(("create_padding_mask", "create_causal_mask", "create_masks"), "attention"),
    "DecoderLayer": "decoder", "Decoder": "decoder", "Transformer": "model",
    "BertEmbeddings": "positions", "BertModel": "encoder", "BertForPreTraining": "model",
    "PatchEmbedding": "positions", "VisionTransformer": "model",
    "TinyTransformerLM": "model", "all": "model", "generate": "generation", "beam_search": "generation",
}  # fmt: skip
_BY_DOCUMENT: Mapping[str, str] = {
    **dict.fromkeys(("gradients", "initialization", "modes", "training", "learning", "seq2seq_training"), "training"),
    **dict.fromkeys(("generation", "sampling", "decoding", "seq2seq_generation", "seq2seq_decoding"), "generation"),
}


class State(StrEnum):
    """The state of a milestone."""

    DONE = "done"
    BROKEN = "broken"
    BLOCKED = "blocked"
    """By a clause of an earlier milestone, or not run."""
    UNJUDGED = "not judged"
    """Something of it cannot be judged, was not reached in time, or is left out though required or not confirmed."""
    UNFINISHED = "not implemented"
    """Something it needs is a stub, or is required and missing."""
    LEFT_OUT = "left out"
    """Nothing of it exists, and nothing of it is required."""


@dataclass(frozen=True, slots=True)
class Milestone:
    """One milestone, with the results of this run."""

    name: str
    state: State
    results: tuple[Result, ...]
    lacking: tuple[str, ...]
    """Components, tools or generation that are required or exported, and not implemented."""

    @property
    def passed(self) -> int:
        """Number of its clauses that pass."""
        return sum(result.verdict is Verdict.PASS for result in self.results)


@dataclass(frozen=True, slots=True)
class Step:
    """What to do next: implement `name`, whose first clauses begin with `prefix`, or fix the clause `broken`.

    With `declared`, something that conform.toml names is not available.
    """

    milestone: str
    name: str = ""
    where: str = ""
    required: bool = True
    prefix: str = ""
    profile: str = "core"
    broken: Clause | None = None
    declared: bool = False

    @property
    def only(self) -> str:
        """What to judge again: a clause, or the first word of several."""
        return self.broken.id if self.broken is not None else self.prefix


def milestone_of(clause: Clause) -> str:
    """Return the milestone of a clause; clauses about all components belong to the model."""
    if clause.applies.get("generate") == "yes":
        return "generation"
    known = clause if clause.document else clauses().get(clause.id, clause)  # a stored report names no document
    return _BY_DOCUMENT.get(known.document) or _of_name(clause.component)


def milestones(report: Report) -> list[Milestone]:
    """Return the milestones that have results or missing parts, in order."""
    of_each: dict[str, list[Result]] = {name: [] for name in MILESTONES}
    for result in report.results:
        of_each[milestone_of(result.clause)].append(result)
    lacking: dict[str, list[str]] = {name: [] for name in MILESTONES}
    for name in _lacking(report):
        lacking[_of_name(name)].append(name)
    about = [(name, found, lacking[name]) for name, found in of_each.items()]
    return [_milestone(report, *parts) for parts in about if parts[1] or parts[2]]


def next_step(report: Report) -> Step | None:
    """Return what to do next; None if everything conforms.

    Within a milestone, failures come before missing parts. After a selected part that conforms, the next stub follows.
    """
    if report.conforms:
        return _beyond(report)
    for milestone in milestones(report):
        broken = next((r.clause for r in milestone.results if r.verdict.red and report.breaks(r)), None)
        if broken is not None:
            return Step(milestone.name, profile=report.profile, broken=broken)
        if milestone.lacking:
            return _implement(report, milestone)
    return None


def _beyond(report: Report) -> Step | None:
    """Return what to implement after a selected part that conforms, if some export is a stub."""
    name = next((name for name in (*COMPONENTS, *SEVERAL_NAMES) if name in report.stubs), "")
    if not report.only or not name:
        return None
    return _implement(report, Milestone(_of_name(name), State.UNFINISHED, (), (name,)))


def _lacking(report: Report) -> list[str]:
    """Return what is required or exported but not implemented, in the selected part of the profile."""
    names = list(dict.fromkeys((*report.missing, *report.stubs)))
    about = {r.clause.component for r in report.results} | {"generate"} & {_generates(r) for r in report.results}
    return [name for name in names if not report.only or name in about]


def _generates(result: Result) -> str:
    return "generate" if result.clause.applies.get("generate") == "yes" else ""


def _of_name(name: str) -> str:
    return _BY_COMPONENT.get(name, "training")  # tools: data, loss, optimizer, reports


def _milestone(report: Report, name: str, results: Sequence[Result], lacking: Sequence[str]) -> Milestone:
    return Milestone(name, _state(report, results, lacking), tuple(results), tuple(lacking))


def _state(report: Report, results: Sequence[Result], lacking: Sequence[str]) -> State:
    breaking = [r for r in results if report.breaks(r)]
    if any(r.verdict.red for r in breaking):
        return State.BROKEN
    absent = {*report.missing, *report.stubs}
    if lacking or any(r.verdict is Verdict.NOT_IMPLEMENTED and r.clause.component in absent for r in results):
        return State.UNFINISHED
    if any(r.verdict is Verdict.NOT_RUN and _left_unjudged(report, r) for r in breaking):
        return State.UNJUDGED
    if breaking:
        return State.BLOCKED
    return State.DONE if any(r.verdict is Verdict.PASS for r in results) else State.LEFT_OUT


def _left_unjudged(report: Report, result: Result) -> bool:
    return result.clause.component in report.unusable or report.unreached(result)


def _implement(report: Report, milestone: Milestone) -> Step:
    order = [*COMPONENTS, *SEVERAL_NAMES, *(result.clause.component for result in report.results)]
    name = min(milestone.lacking, key=lambda n: order.index(n) if n in order else len(order))
    part = component(name) if is_component(name) else None
    prefix = part.prefix if part is not None else _prefix(milestone, name)
    profile = named_profile(report.profile).parts_from if name in COMPONENTS else report.profile
    where, declared = report.stubs.get(name, ""), name in report.unusable
    return Step(milestone.name, name, where, _required(name, report), prefix, profile, declared=declared)


def _required(name: str, report: Report) -> bool:
    return name in report.missing or (is_component(name) and component(name).required)


def _prefix(milestone: Milestone, name: str) -> str:
    """Return the id prefix of the clauses that need it."""
    own = [r.clause for r in milestone.results if name in {r.clause.component, _generates(r)}]
    return next((clause.prefix for clause in (*own, *(r.clause for r in milestone.results))), "")
