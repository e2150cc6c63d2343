"""What a failure says besides its numbers: the mistake that it looks like, how to fix it, why, and the line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from conformkit.conformance.engine.known_errors import known_error
from conformkit.conformance.engine.results import Certainty, LooksLike, Report, Result, Verdict
from conformkit.conformance.findings.finding import Kind
from conformkit.conformance.text import one_line
from conformkit.spec.components import PARTS

__all__ = ["advice", "briefly", "certainly", "facts", "is_named", "labelled", "leads", "likely_cause", "same_cause"]

_NAMED_MISTAKES = 3
"""Maximum number of matching known mistakes to name."""

_NOT_FINITE = (
    "find the first step whose result is NaN or infinite: print `x.isfinite().all()` after each; a softmax over a row "
    "in which every key is hidden gives NaN: a causal mask hides what comes after a position, not the position itself"
)
"""Advice where a NaN came out and the clause is about something else."""
_ENDLESS = (
    "look for a loop that never ends, such as `while True` without a `break` that is reached, and for work that is "
    "done again for every position or row"
)
"""Advice where a call took longer than its limit."""
_OF_THE_CODE = {
    "ModuleNotFoundError": "make the import work where the code is judged: install it, or import what is beside it",
    "ImportError": "import a name that the module has",
    "NameError": "define the name before it is used, or correct how it is written",
    "AttributeError": "look at what has no such attribute: another type arrived there than the code expects",
}
"""Advice where an error of Python's was raised, of which the clause does not speak."""
_IN_SHAPES = re.compile(r"shape|size of tensor|broadcast|dimension|inner dimensions", re.IGNORECASE)
_SHAPES = "look at the shapes in the line that raises, at the sizes that are named above"
"""Advice where arrays do not fit, and no known error is the reason."""
_PERHAPS = "perhaps: "
"""Before a symptom that stands for a mistake that is likely, and not sure."""
_SPEAKS_OF_NAN = re.compile(r"NaN|infini|finite|-inf", re.IGNORECASE)


def advice(result: Result, hints: int) -> list[tuple[str, str]]:
    """Return the cause as labelled lines; a higher level of hints (1 to 3) tells more. Below 3, no guess is shown."""
    known = result.looks_like
    if hints < 3:
        if not known or not _sure(known):
            return []
        label = "hint:" if known[0].certainty is Certainty.EXACT else "perhaps:"
        return [(label, known[0].hint.symptom), ("look at:", known[0].hint.area)][:hints]
    fix = _fix(known) if known and _sure(known) else _own_fix(result)
    return [*([("looks like:", _likeness(known))] if known else []), ("fix:", fix)]


def _own_fix(result: Result) -> str:
    """Return the fix of a clause, unless the failure is of a kind that it does not speak of."""
    named = known_error(result)
    if named is not None:
        return named.fix
    if result.verdict is Verdict.TIMEOUT:
        return _ENDLESS
    found = result.finding
    if result.verdict is Verdict.ERROR and found is not None and found.error in _OF_THE_CODE:
        return _OF_THE_CODE[found.error]
    if result.verdict is Verdict.ERROR and found is not None and _IN_SHAPES.search(found.said):
        return _SHAPES
    if found is not None and found.of > 1 and found.relation is not None and found.relation.advice:
        return found.relation.advice  # of a single number, the clause knows more than a factor says
    odd = found is not None and found.kind is Kind.NOT_FINITE
    return _NOT_FINITE if odd and not _SPEAKS_OF_NAN.search(result.clause.fix) else result.clause.fix


def likely_cause(report: Report, result: Result) -> list[tuple[str, str]]:
    """Return what stands below the name of a mistake and above the evidence: its fix, where it is not a guess.

    What the heading says already is not said again. Above an exception stands nothing.
    """
    said = ("looks like:", briefly(report, result).removeprefix(_PERHAPS))
    return [(label, text) for label, text in _named(report, result) if label not in said and text not in said]


def _named(report: Report, result: Result) -> list[tuple[str, str]]:
    """Return the mistake that it looks like, and its fix, where that is not a guess."""
    known = result.looks_like
    if not known or result.verdict is Verdict.ERROR:
        return []
    return advice(result, report.hints) if _sure(known) or report.hints < 3 else []


def same_cause(report: Report, results: Sequence[Result]) -> dict[str, str]:
    """Return which failures have the cause of an earlier one: the id of that one, by theirs.

    The cause is the known mistake, or the line that raised the same type of exception.
    """
    first: dict[tuple[str, ...], str] = {}
    found: dict[str, str] = {}
    for result in results:
        causes = list(_causes_of(result, report.hints))
        earlier = next((first[cause] for cause in causes if cause in first), "")
        if earlier:
            found[result.clause.id] = earlier
        for cause in causes:
            first.setdefault(cause, earlier or result.clause.id)
    return found


def _causes_of(result: Result, hints: int) -> Iterator[tuple[str, ...]]:
    known = result.looks_like
    if result.verdict is Verdict.ERROR and result.where:
        yield ("error", result.where, result.finding.error if result.finding is not None else "")
    if hints >= 3 and known and _sure(known):
        yield tuple(sorted({like.defect for like in known}))


def facts(report: Report, result: Result) -> list[tuple[str, str]]:
    """Return labelled lines about a red clause that stand below its numbers and its cause."""
    level = "" if report.breaks(result) else f"{result.clause.level}: a warning, which does not change the verdict"
    raised = result.verdict is Verdict.ERROR  # then one's own line is worth more than a clause's general reason
    where = ("where:", one_line(result.where))
    guesses = [] if likely_cause(report, result) else advice(result, report.hints)
    known = known_error(result)
    why = "" if known is not None and known.foreign else result.clause.why  # the clause is about something else
    found = [*([where] if raised else []), *guesses, ("level:", level), ("why:", why)]
    return [(label, fact) for label, fact in [*found, *([] if raised else [where])] if fact]


def labelled(report: Report, result: Result) -> list[tuple[str, str]]:
    """Return all of it, for formats that begin with the message."""
    return [*_named(report, result), *facts(report, result)]


_MUCH, _BRIEF = 2000, 200


def briefly(report: Report, result: Result) -> str:
    """Return one line that says what is wrong: the mistake where it is known, else the message."""
    known = result.looks_like
    if known and _sure(known):
        doubt = "" if known[0].certainty is Certainty.EXACT else _PERHAPS
        return _mistakes(known)[0][0] if report.hints >= 3 else f"{doubt}{known[0].hint.symptom}"
    words = one_line(_in_words(result) or result.reason or result.clause.title, _MUCH)
    return words if len(words) <= _BRIEF else f"{words[: _BRIEF - 1]}…"


def _in_words(result: Result) -> str:
    """Return what the numbers say, where they say something; else the first of them."""
    found = result.finding
    if found is None or found.verbatim or not found.explained:
        return result.message
    size = f" ({result.threshold})" if result.threshold else ""
    return (
        f"{found.label}: {found.relation}{size}" if found.kind is Kind.NUMBERS else f"{found.label}; {found.relation}"
    )


def is_named(result: Result) -> bool:
    """Whether it is known which mistake it is, for all but exceptions, of which one's own line says more."""
    return bool(result.looks_like) and _sure(result.looks_like) and result.verdict is not Verdict.ERROR


def leads(report: Report) -> dict[str, str]:
    """Return where to look first, by component: of those with a failure that no known mistake surely explains.

    Not where a component that it is made of has failed: that comes first.
    """
    unnamed = {r.clause.component for r in report.failures() if report.breaks(r) and not is_named(r)}
    broken = {r.clause.component for r in report.failures() if report.breaks(r)}
    unnamed = {name for name in unnamed if broken.isdisjoint(_below(name))}
    return {name: part.sentence for name, part in report.parts.items() if report.hints > 1 and name in unnamed}


def _below(name: str) -> set[str]:
    """Return all that a component is made of: what is wrong there is wrong in it, too."""
    parts = set(PARTS.get(name, ()))
    return parts.union(*map(_below, parts))


def certainly(result: Result) -> str:
    """Return, to end a sentence about a named failure, how certain its name is."""
    exact = result.looks_like[0].certainty is Certainty.EXACT
    return ": this mistake gives exactly these numbers" if exact else ": this mistake fails in the same way"


def _sure(known: Sequence[LooksLike]) -> bool:
    return known[0].certainty is not Certainty.UNSURE


def _likeness(found: Sequence[LooksLike]) -> str:
    titles = [title for title, _ in _mistakes(found)]
    who, s = ("each of these mistakes" if len(titles) > 1 else "this mistake"), "s"
    if found[0].together_with:
        who, s = "together, these mistakes", ""
    how = {
        Certainty.EXACT: f"{who} reproduce{s} your numbers exactly",
        Certainty.LIKELY: f"{who} fail{s} in the same way",
        Certainty.UNSURE: f"unsure: {who} fail{s} in a similar way; check whether your code does that",
    }[found[0].certainty]
    if _sure(found):
        titles = _numbered(titles)
    if found[0].together_with:
        return f"{', and '.join(titles)} ({how})"
    return f"{', or '.join(titles)} ({how})"


def _fix(found: Sequence[LooksLike]) -> str:
    """Return how to fix the mistakes that a failure looks like, numbered if there are several."""
    fixes = [" or ".join(fixes) for _, fixes in _mistakes(found)]
    return "; ".join(_numbered(fixes))


def _mistakes(found: Sequence[LooksLike]) -> list[tuple[str, list[str]]]:
    """Return the distinct titles of the first known mistakes, with how to fix each."""
    fixes: dict[str, list[str]] = {}
    for like in found:
        known = fixes.setdefault(like.title, [])
        known += [like.hint.mistake] if like.hint.mistake not in known else []
    return list(fixes.items())[:_NAMED_MISTAKES]


def _numbered(texts: Sequence[str]) -> list[str]:
    return [f"{n}) {text}" for n, text in enumerate(texts, 1)] if len(texts) > 1 else list(texts)
