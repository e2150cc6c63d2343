"""The sentences that every form of a report shares: the verdict, the counts, the groups of what did not run."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from conformkit.conformance.assertions.extents import overall
from conformkit.conformance.binding.declarations import Excuse
from conformkit.conformance.engine.declarations.not_judged import Unusable
from conformkit.conformance.engine.results import Report, Result, Undeclared, Verdict
from conformkit.conformance.report.baseline import standing
from conformkit.conformance.report.milestones import Milestone, State, Step, milestones, next_step
from conformkit.conformance.text import count, listed, one_line
from conformkit.conformance.versions import SPEC_VERSION
from conformkit.spec.clauses import STEMS, Clause, Level, clauses
from conformkit.spec.components import PARTS, base_of, is_component
from conformkit.spec.profiles import named_profile
from conformkit.spec.variants import described

__all__ = [
    "HIDDEN",
    "WARNING",
    "WayForward",
    "address",
    "command",
    "counted",
    "draft_command",
    "each_once",
    "excuse_lines",
    "failures",
    "in_order",
    "is_little",
    "ledger_line",
    "next_line",
    "obstacles",
    "page_of",
    "scope",
    "seed_line",
    "share",
    "shown_verdict",
    "sizes_line",
    "told_excuses",
    "undeclared_line",
    "unjudged",
    "variant_line",
    "verdict_line",
    "warned",
    "warns",
    "way",
    "within",
]

WARNING = "warning"
"""The word for a red clause that changes no verdict."""
_NAMED = 6
"""Maximum number of prefixes to name; a longer list becomes a number of clauses."""

_SIZES = {
    "d_model": "d_model", "num_heads": "heads", "head_width": "head width", "d_ff": "d_ff", "num_layers": "layers",
    "num_encoder_layers": "encoder layers", "num_decoder_layers": "decoder layers", "vocab_size": "vocabulary",
    "src_vocab_size": "source vocabulary", "tgt_vocab_size": "target vocabulary", "tokens": "T", "keys": "Tk",
    "batch": "batch", "new_ids": "new ids", "top_k": "top-k",
}  # fmt: skip
"""How sizes are called, in the order in which they are listed."""

_OF_CALLS = {"further", "defaults", "layout"}
"""Kinds of excuses that are about how something is called, not about numbers."""
_UNFOLDED = 3
"""So many limits and settings that a run found are shown."""
_PARTS = 12
"""Maximum number of missing parts or stubs to name."""

HIDDEN = (
    "the inputs of this run are hidden, so no numbers are shown; without the hidden seed, the same clause uses public "
    "inputs and shows all numbers"
)


def each_once(unusable: Mapping[str, Unusable]) -> Iterable[tuple[Unusable, str]]:
    """Return what is said of several components once, each with the first of them."""
    told: dict[Unusable, str] = {}
    for name, why in unusable.items():
        told.setdefault(why, name)
    return told.items()


def verdict_line(report: Report) -> str:
    """Return the one sentence that answers the question, with its counts, and what a baseline makes of it."""
    return "; ".join([_verdict(report), *standing(report)])


def _verdict(report: Report) -> str:
    name = one_line(report.implementation, 200)
    whole = report.conforms and not is_little(report)
    law = f"{scope(report)}{share(report) if whole else ''} (spec {SPEC_VERSION})"
    if not report.conforms:
        verdict = _unclear(report) if (report.unusable or report.late) and not report.wrong else "does not conform to"
        return "; ".join([f"{name} {verdict} {law}: {'; '.join(obstacles(report))}", *_not_there(report)])
    ledger = report.ledger()
    if is_little(report):
        absent, asked = report.absent()
        begin = f"{name}: nothing wrong found in {asked - len(absent)} of {count(asked, 'part')} of {law}"
        return "; ".join([begin, *_not_there(report), "to judge only what is there, select it with --only"])
    if report.excuses or report.exempted():
        judged, binding = report.coverage()
        found = bool(report.excuses or report.found) and all(_was_found(report, excuse) for excuse in report.excuses)
        what = "what was found" if found else "what it declares"
        within = f"{name} conforms to {law} within {what}: {judged} of {count(binding, 'binding clause')} "
        judgement = f"{within}{'was' if judged == 1 else 'were'} judged"
        warned = [count(len(report.failures()), "warning")] if report.failures() else []
        return "; ".join([", ".join([judgement, *warned]), *_not_there(report)])
    rest = [f"{ledger[v]} {v.value}" for v in (Verdict.NOT_APPLICABLE, Verdict.NOT_IMPLEMENTED) if ledger[v]]
    warnings = len(report.failures())
    if warnings:
        rest.append(count(warnings, "warning"))
    passes = "passes" if ledger["clauses"] == 1 else "pass"
    passed = f"{ledger[Verdict.PASS]} of {count(ledger['clauses'], 'clause')} {passes}"
    return "; ".join([", ".join([f"{name} conforms to {law}: {passed}", *rest]), *_not_there(report)])


def is_little(report: Report) -> bool:
    """Whether nothing is wrong, but most of what was asked for is neither there nor inside what is.

    That is most of the parts, with most of the clauses: a model counts for more than a mean of losses. Code of which
    everything was judged is no part of something larger.
    """
    alone = report.only or report.accounted or named_profile(report.profile).parts_stand_alone
    if not report.conforms or report.live or alone:
        return False
    absent, asked = report.absent()
    lacking = set(absent) - within(report)
    clauses_about = sum(result.clause.component in lacking for result in report.results)
    return 2 * len(lacking) > asked and 2 * clauses_about > len(report.results)


def share(report: Report) -> str:
    """Return how many of the parts that were asked for are there, ` in 2 of 9 parts`; nothing if all are."""
    absent, asked = report.absent()
    return f" in {asked - len(absent)} of {count(asked, 'part')}" if absent else ""


def _unclear(report: Report) -> str:
    """Return how much could not be judged, where nothing that was judged is wrong."""
    judged, _ = report.coverage()
    return "is judged only in part by" if judged else "could not be judged by"


def _not_there(report: Report) -> list[str]:
    """Return the parts that were asked for and are not judged, though they are not required or are left out."""
    named = {*report.missing, *report.stubs, *report.skipped, *report.unusable}
    absent = [name for name in report.absent()[0] if name not in named]
    inside = within(report)
    inline = [name for name in absent if name in inside]
    absent = [name for name in absent if name not in inside]
    found = [f"not seen on their own, written inline?: {_parts(inline, _PARTS)}"] if inline else []
    found += [f"not implemented: {_parts(absent, _PARTS)}"] if absent else []
    left = [name for name in report.skipped if name not in report.unusable]
    return found + ([f"{_left_out(report)}: {_parts(left, _PARTS)}"] if left else [])


def _left_out(report: Report) -> str:
    """Say who left parts out: the run may have itself, where it found parts, and a file need not be there then."""
    return "left out of the run" if report.found else "left out by conform.toml"


def within(report: Report) -> set[str]:
    """Return the parts of the wholes that are judged and conform."""
    passed = {r.clause.component for r in report.results if r.verdict is Verdict.PASS}
    passed -= {r.clause.component for r in report.results if report.breaks(r)}
    return {part for name in passed for part in PARTS.get(name, ())}


def draft_command(report: Report) -> str:
    """Return the command that drafts a conform.toml; nothing where one declares something, or there are no drafts."""
    declared = report.variant or report.excuses or report.skipped
    if declared or report.live or report.hidden or report.own_name or not named_profile(report.profile).searched:
        return ""
    words = ["conform", "adapt", one_line(report.implementation, 400), *named_profile(report.profile).option]
    return shlex.join(words)


def scope(report: Report) -> str:
    """Return what was asked for: the profile, or the part of it."""
    left_out = f" without {', '.join(one_line(prefix, 60) for prefix in report.without)}" if report.without else ""
    profile = one_line(report.profile, 40) + left_out
    if not report.only:
        return profile
    if len(report.only) > _NAMED and report.live:
        return f"what {profile} asks of it"
    if len(report.only) > _NAMED:
        return f"{count(len(report.results), 'clause')} of {profile}"
    return f"{', '.join(one_line(prefix, 60) for prefix in report.only)} of {profile}"


def obstacles(report: Report, most: int = _PARTS) -> list[str]:
    """Return what keeps the implementation from conforming, most important first; empty if it conforms.

    Names at most `most` missing parts and stubs, then the number of the others; with 0, only their number.
    """
    broken = [r for r in report.results if report.breaks(r)]
    blocked = sum(r.verdict is Verdict.BLOCKED for r in broken)
    not_run = sum(r.verdict is Verdict.NOT_RUN for r in broken)
    unfinished = sum(r.unfinished for r in broken)
    taken = sum(bool(r.exempted_by) and not r.verdict.red and r.verdict is not Verdict.NOT_RUN for r in broken)
    red = len(broken) - blocked - not_run - unfinished - taken
    fail = "fails" if red == 1 else "fail"
    found = [f"{red} of {count(len(report.results), 'clause')} {fail}"] if red else []
    found += [f"{blocked} blocked"] if blocked else []
    found += [f"{not_run} not run"] if not_run else []
    found += [f"{taken} skipped in full or in part because of conform.toml"] if taken else []
    declared = report.computed() if report.strict else []
    replaced, called = [f for f in declared if f.kind == "path"], sum(f.kind in _OF_CALLS for f in declared)
    computed = len(declared) - len(replaced) - called
    found += [f"{count(computed, 'declaration')} of values that belong in the code"] if computed else []
    found += [f"{count(called, 'declaration')} of calls that are not the contract's"] if called else []
    found += [f"not judged as it stands: {_parts([f.component for f in replaced], most)}"] if replaced else []
    stubs, absent = _stubs(report, broken), [name for name in report.missing if name not in report.stubs]
    found += [f"not implemented yet: {_parts(stubs, most)}"] if stubs else []
    found += [f"missing: {_parts(absent, most)}"] if absent else []
    left = [name for name in report.unusable if name in report.skipped]
    lost = [name for name in report.unusable if name not in left]
    found += [f"cannot be judged: {_parts(lost, most)}"] if lost else []
    found += [f"{_left_out(report)}, so not judged: {_parts(left, most)}"] if left else []
    if report.late:
        found.append(one_line(report.late, 200))
    elif not report.complete:
        found.append(f"the run is incomplete, {count(len(report.results), 'clause')} judged")
    elif not report.ledger()[Verdict.PASS]:
        found.append("no clause passed")
    return found


def _stubs(report: Report, broken: Sequence[Result]) -> list[str]:
    """Return what is exported but not implemented, and keeps the implementation from conforming.

    A clause about generation belongs to the model, which may exist without it.
    """
    about = [r.clause.component for r in broken if r.unfinished]
    if "generate" in report.stubs:
        about = [name if name in report.stubs else "generate" for name in about]
    return list(dict.fromkeys([*about, *(name for name in report.missing if name in report.stubs)]))


def _parts(names: Sequence[str], most: int) -> str:
    return listed([one_line(name, 80) for name in names], most) if most else count(len(names), "part")


def excuse_lines(report: Report) -> list[str]:
    """Return what conform.toml declares beyond renamings, one line each; choices have a line of their own."""
    return [line for _, line in told_excuses(report)]


def told_excuses(report: Report, *, folded: bool = False) -> list[tuple[str, str]]:
    """Return the same lines, each after whether it is `declared`, or was `found` by the run itself.

    `folded`: of what was found, and changes no number that is compared, one line says how much there is.
    """
    others = [one for one in report.excuses if one.kind != "variant"]
    minor = [one for one in others if _was_found(report, one) and not one.arithmetic]
    minor = minor if folded and len(minor) > _UNFOLDED else []
    lines = [
        ("found" if _was_found(report, one) else "declared", one_line(one.words, 400))
        for one in others if one not in minor
    ]  # fmt: skip
    if minor:
        parts = list(dict.fromkeys(one.component for one in minor if one.component))
        lines.append(("found", f"{count(len(minor), 'limit')} and settings of {_parts(parts, 3)}; -v lists them"))
    return lines


def variant_line(report: Report) -> str:
    """Return the choices, each once: those of a component only where they are not those of the whole."""
    choices = report.variant.items()
    own = {name: value for name, value in choices if report.variant.get(name.rpartition(".")[2]) != value}
    whole = {name: value for name, value in choices if "." not in name}
    return ", ".join(f"{name} = {value}" for name, value in sorted({**own, **whole}.items()))


def _was_found(report: Report, excuse: Excuse) -> bool:
    """Whether a run found by itself what it takes as declared; what is about all parts, as they were."""
    about = [one.component for one in report.excuses if one.component] if not excuse.component else [excuse.component]
    return bool(report.found) and all(name in report.found for name in about)


def seed_line(report: Report) -> str:
    """Return the seed, or `hidden`: the seed of hidden draws is not disclosed."""
    return "hidden" if report.hidden else f"{report.seed}{' (drawn)' if report.drawn else ''}"


def sizes_line(report: Report) -> str:
    """Return the sizes that were tried, over all components: `d_model 4–768, T 1–600`; nothing without calls.

    Those of tools are in the JSON report: a tokenizer's text is longer than any that a model reads.
    """
    found = overall({name: sizes for name, sizes in report.extents().items() if is_component(name)})
    shown = [(label, found[name]) for name, label in _SIZES.items() if name in found]
    return ", ".join(f"{label} {least}" + (f"–{most}" if most > least else "") for label, (least, most) in shown)


def ledger_line(report: Report) -> str:
    """Return the number of clauses and the number with each verdict; warnings are counted apart."""
    parts = [count(number, word) if word == WARNING else f"{number} {word}" for word, number in counted(report).items()]
    return ": ".join([count(len(report.results), "clause"), *([", ".join(parts)] if parts else [])])


def counted(report: Report) -> dict[str, int]:
    """Return how many clauses have each verdict that there is; warnings are counted apart."""
    words = Counter(shown_verdict(report, result) for result in report.results)
    return {word: words[word] for word in (*(verdict.value for verdict in Verdict), WARNING) if words[word]}


def warned(report: Report) -> frozenset[str]:
    """Return the clauses that are warnings."""
    return frozenset(result.clause.id for result in report.results if warns(report, result))


def shown_verdict(report: Report, result: Result) -> str:
    """Return the word for a verdict: a red one that changes nothing is a warning."""
    return WARNING if warns(report, result) else result.verdict.value


def warns(report: Report, result: Result) -> bool:
    """Whether a result is red and not binding: a warning, which changes no verdict and is counted apart."""
    return result.verdict.red and not report.breaks(result)


def command(report: Report, clause_id: str, extra: Sequence[str] = ()) -> str:
    """Return the command line that judges this clause again, on the same inputs unless those are hidden.

    An instructor hides draws and sets the sandbox; a student repeats the clause at home without either. For live
    objects it is a call that can be pasted into the next cell.
    """
    if report.live:
        return _call(report, clause_id)
    words = ["conform", "run", "--impl", one_line(report.own_name or report.implementation, 400), "--only", clause_id]
    words += ["--seed", str(report.seed)] if report.seed else []
    words += named_profile(report.profile).option
    words += ["--level", report.level.value] if report.level is not Level.MUST else []
    at_home = report.hidden or report.own_name
    words += ["--isolation", report.isolation] if report.isolation != "process" and not at_home else []
    words += ["--device", report.device] if report.device != "cpu" else []
    words += ["--dtype", report.dtype] if report.dtype else []
    return shlex.join([*words, *extra])


def _call(report: Report, clause_id: str) -> str:
    options = [f'only=("{clause_id}",)']
    options += [f"seed={report.seed}"] if report.seed else []
    options += [f'profile="{report.profile}"'] if named_profile(report.profile).option else []
    options += [f'level="{report.level}"'] if report.level is not Level.MUST else []
    options += [f'device="{report.device}"'] if report.device != "cpu" else []
    options += [f'dtype="{report.dtype}"'] if report.dtype else []
    return f"check({one_line(report.implementation, 400)}, {', '.join(options)})"


def address(clause: Clause) -> str:
    """Return the path of a clause, relative to the folder of the pages."""
    return f"law/{clause.document}.html#{clause.id.lower()}"


def page_of(report: Report, clause_id: str) -> str:
    """Return the address of a clause's page; empty if the report has no pages."""
    known = clauses().get(clause_id) if report.pages else None
    return f"{one_line(report.pages, 400).rstrip('/')}/{address(known)}" if known else ""


@dataclass(frozen=True, slots=True)
class WayForward:
    """The progress of an unfinished implementation, what to do next, and the command that judges that."""

    milestones: tuple[Milestone, ...]
    next: str
    again: str

    @property
    def so_far(self) -> str:
        """The states of the milestones, in one line."""
        by_state: dict[State, list[str]] = {}
        for milestone in self.milestones:
            by_state.setdefault(milestone.state, []).append(milestone.name)
        shown = {State.BROKEN: "not right yet"}
        return "; ".join(f"{', '.join(names)}: {shown.get(state, state.value)}" for state, names in by_state.items())


def way(report: Report) -> WayForward | None:
    """Return the progress; None if everything that is required or exported is implemented."""
    step = next_step(report) if report.missing or report.stubs else None
    if step is None:
        return None
    again = command(replace(report, profile=step.profile), step.only)
    return WayForward(tuple(milestones(report)), next_line(step), again)


def next_line(step: Step) -> str:
    """Return what to do next."""
    if step.broken is not None:
        return f"fix {step.broken.id}: {one_line(step.broken.title, 200).rstrip('.')}"
    if step.declared:
        return f"correct what conform.toml says of {one_line(step.name, 80)}, as told above"
    place = f" ({one_line(step.where, 300)})" if step.where else ""
    choice = "" if step.required else "; it is optional: delete its export to skip it"
    return f"implement {one_line(step.name, 80)}{place}{choice}"


def undeclared_line(found: Undeclared) -> str:
    """Return a sentence that names the choice, and what to write into conform.toml if it is meant."""
    actual, declared = (described(found.choice, value) for value in (found.actual, found.declared))
    canonical = found.declared == getattr(base_of(found.component), found.choice)
    known = f"the canonical variant is {declared}" if canonical else f"the declared variant is {declared}"
    advice = f"declare `{found.line}` under [{found.table}] in conform.toml, or change it"
    return f"{found.component}: this is {actual}, {known}: {advice}"


def in_order(report: Report) -> list[Result]:
    """Return the results in the order of the law."""
    documents = {stem: number for number, stem in enumerate(STEMS)}
    last = len(documents)
    return sorted(
        report.results,
        key=lambda r: (documents.get(r.clause.document, last), r.clause.document, r.clause.line, r.clause.id),
    )


def failures(report: Report) -> list[Result]:
    """Return the red results: binding ones first, in the order of the law."""
    return sorted((r for r in in_order(report) if r.verdict.red), key=lambda r: not report.breaks(r))


def unjudged(report: Report) -> list[tuple[Verdict, str, list[str]]]:
    """Return what was not judged although it applies: verdict, cause and ids, one entry per cause."""
    causes: dict[Verdict, Callable[[Result], str]] = {
        Verdict.BLOCKED: lambda r: r.blocked_by or r.reason or "an earlier clause",
        Verdict.NOT_IMPLEMENTED: lambda r: r.reason or r.clause.component,
        Verdict.NOT_RUN: lambda r: r.reason or r.clause.component,
    }
    ordered = in_order(report)
    return [
        (verdict, cause, ids)
        for verdict, told in causes.items()
        for cause, ids in _groups([r for r in ordered if r.verdict is verdict], told).items()
    ]


def _groups(results: Sequence[Result], cause: Callable[[Result], str]) -> dict[str, list[str]]:
    """Return the ids of the clauses by cause, causes in order of first appearance."""
    found: dict[str, list[str]] = {}
    for result in results:
        found.setdefault(cause(result), []).append(result.clause.id)
    return found
