"""What a run looks for by itself: components that nothing declares, and that are called otherwise than the contract's.

A file wins: what it declares is not looked for, and half a file is completed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from conformkit.conformance.binding.config import ComponentConfig, Config, parse_config
from conformkit.conformance.diagnosis.looked_for import STACKS
from conformkit.conformance.discovery.abilities import Beside, beside, what_is_what
from conformkit.conformance.discovery.checking import failing, is_open, without_a_pass
from conformkit.conformance.discovery.draft import OF_FRAMEWORKS, Draft, absence
from conformkit.conformance.discovery.drafting import definitions, drafted, looked_for, other_parts
from conformkit.conformance.driver.location import Location
from conformkit.conformance.engine.declarations.not_judged import Unusable
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.implementation import Implementation, OutOfTime
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Certainty, DifferingPart, Report, Result, Verdict
from conformkit.conformance.text import listed
from conformkit.spec.components import PARTS, components_of
from conformkit.spec.profiles import SEARCHED_PROFILES, named_profile

__all__ = ["Completed", "completed", "set_aside"]

_MAX_DOUBTS = 6
"""How many doubts about one implementation are told."""
_HEADS, _SCALE = "MultiHeadAttention", "MHA-SCALE-DHEAD"
_RELATIVE = re.compile(r"^t5|relative|bucket")
"""In names of code as T5's, which adds a bias by the distance of positions to scores that nothing divides."""
_OF_T5 = "its scores are not divided by the root of a head's width: T5's are not either, and otherwise it is a mistake"


@dataclass(frozen=True, slots=True)
class Completed:
    """What was found and is declared for this run only."""

    draft: Draft
    config: Config
    """With what a file declares."""
    beside: Sequence[Beside] = ()
    """What further profiles judge, where that is asked for."""
    apart: Mapping[str, str] = field(default_factory=dict)
    """Parts that are something else than the contract's, and why: they are judged in the whole that has them."""

    def taken(self) -> dict[str, str]:
        """Return what each component was found to be, `module:Name`."""
        bound = [p for p in self.draft.judged() if p.component in self.config.components]
        found = {p.component: str(p.table["path"]) for p in bound}
        return found | {name: str(table["path"]) for name, table in self.draft.tools.tables.items()}

    def notes(self, request: RunRequest) -> list[str]:
        """Return what was taken for what, what is unsure about it, and how it becomes firm."""
        taken = self.taken()
        doubts = [f"unsure: {p.component}: {doubt}" for p in self.draft.judged() for doubt in p.doubts if p.matched]
        doubts += [f"unsure: {name}: {why}" for name, why in (*self.apart.items(), *self.draft.tools.near.items())]
        doubts = [*([f"unsure: {self.draft.ended}"] if self.draft.ended else []), *doubts]
        named = named_profile(request.profile).option
        words = shlex.join(["conform", "adapt", request.impl, *named, "--out", "conform.toml"])
        found = [f"found: {what_is_what(taken)}; to make it firm: {words}"] if taken else []
        return [*found, *self._seen(), *doubts[:_MAX_DOUBTS]]

    def _seen(self) -> list[str]:
        """Return what calls showed to be wrong, each once, with the first part that it was seen in."""
        told: dict[str, str] = {}
        for proposal in self.draft.judged():
            for sentence in proposal.seen() if proposal.component in self.config.components else ():
                told.setdefault(sentence, proposal.component)
        return [f"found: in {name}, {sentence}" for sentence, name in told.items()][:_MAX_DOUBTS]

    def located(self, report: Report) -> Report:
        """Return the report with what calls showed to be wrong as the first part that differs, where clauses fail.

        There, no guess is shown beside it.
        """
        red = {result.clause.component for result in report.failures()}
        wrong = {p.component: p.mistakes[0] for p in self.draft.judged() if p.mistakes and p.component in red}
        parts = {name: DifferingPart(mistake.path, mistake.told) for name, mistake in wrong.items()}
        results = [
            _without_a_guess(result) if result.clause.component in wrong else result for result in report.results
        ]
        return replace(report, results=results, parts={**report.parts, **parts})

    def accounts_for_all(self, request: RunRequest) -> bool:
        """Whether every definition has been taken for something; in lm any function may be a part that lacks."""
        return named_profile(request.profile).has_parts and not self.draft.idle

    def absent(self, missing: Collection[str], *, asked: bool) -> dict[str, Unusable]:
        """Return why what is required and was not found cannot be judged, and what to declare.

        A part of what was found is judged inside it: where it is wrong, that is red. Code in which every definition
        has been taken for something does not have the rest; `asked`: that was asked for by name.
        """
        if not asked and not self.draft.idle:
            missing = [name for name in missing if self.draft.missing.get(name)]
        within = {part for name in self.taken() for part in PARTS.get(name, ())}
        open_ = [name for name in missing if name not in within]
        alike = [name for name in open_ if not self.draft.missing.get(name)]
        together = {name: not_found(alike) for name in alike if len(alike) > 1}
        return {name: together.get(name) or self._absent(name) for name in open_}

    def called_otherwise(self, request: RunRequest) -> dict[str, Unusable]:
        """Return the tools of which there is one of that name, and nothing shows how it is called: no pass without it.

        Profile lm has so many, each of them optional, that most code has one of another kind.
        """
        profile = named_profile(request.profile)
        if profile.parts_stand_alone and not request.only:
            return self._unclear_tools()
        own = self.draft.tools.namesakes if profile.has_parts and not request.only else {}
        line = "say in conform.toml how it is called, in [components.{}]; it is judged then"
        return {
            name: Unusable(
                f"{path} has its name, and arguments that the contract does not have", "", (line.format(name),)
            )
            for name, path in own.items()
        }

    def _unclear_tools(self) -> dict[str, Unusable]:
        """Return what looks like a tool and was taken for none: where parts are no whole, it is all that is there."""
        taken = set(self.taken().values())
        line = "say in conform.toml how it is called, in [components.{}]; it is judged then"
        near = {name: told for name, told in self.draft.tools.near.items() if told.partition(" ")[0] not in taken}
        return {name: Unusable(told, "", (line.format(name),)) for name, told in near.items()}

    def _absent(self, name: str) -> Unusable:
        why = absence(name, self.draft.missing.get(name, ""))
        prefix = _prefix_of(name)
        line = f'say where it is in conform.toml: [components.{name}] path = "yourpackage.module:name"'
        return Unusable(f"{name} was not found: {why}", "", (line, f"or judge only what is there: --without {prefix}"))

    def unclear(self, report: Report) -> dict[str, Unusable]:
        """Return the components that are chosen by name alone, and whose failures no known mistake explains."""
        open_ = [p for p in self.draft.judged() if is_open(p) and p.component in self.taken()]
        found = {}
        for name, why in failing(open_, report):
            path = self.taken()[name]
            line = f'if it is meant to be one, declare it in conform.toml: [components.{name}] path = "{path}"'
            found[name] = Unusable(f"{_doubtful(path, name)}: {why}", "", (line,))
        if self._is_like_t5() and [r.clause.id for r in report.failures() if r.clause.component == _HEADS] == [_SCALE]:
            own = f'[components.{_HEADS}] path = "{self.taken()[_HEADS]}"'
            line = f"if its scores are to be divided, say so in conform.toml: {own}; it is red then"
            found[_HEADS] = Unusable(_OF_T5, "", (line,))
        for proposal in self.draft.judged():
            if proposal.left_open[0] and proposal.component in self.taken():
                why, line = proposal.left_open
                found[proposal.component] = Unusable(f"{proposal.component}: {why}", "", (line,))
        for name in without_a_pass(self.draft.tools.tables, report):
            path = self.taken()[name]
            line = f"say in conform.toml how it is called, in [components.{name}]; it is judged then"
            found[name] = Unusable(f"{_doubtful(path, name)}: no clause about it holds", "", (line,))
        return found

    def _is_like_t5(self) -> bool:
        """Whether attention was found in code that has, by its names, biases by relative position."""
        names = [path.rpartition(":")[2].lower() for path in (*self.draft.idle, *self.taken().values())]
        return _HEADS in self.taken() and any(_RELATIVE.search(name) for name in names)


def completed(
    implementation: Implementation, location: Location, request: RunRequest, wanted: Collection[str] | None,
    tell: Callable[[str], None] = lambda _: None,
) -> Completed | None:  # fmt: skip
    """Look for what is asked for and neither declared nor there under the contract's names; None if nothing is lacking.

    `implementation` is imported and not bound; `wanted` are the components that are needed, all if it is None.
    """
    if not named_profile(request.profile).searched:
        return None
    file = implementation.config
    fitting = implementation.fitting(request.profile)
    tools = [name for name in implementation.lacking_tools(request.profile) if wanted is None or name in wanted]
    lacking = _lacking(fitting, implementation, request.profile, wanted) or sorted(implementation.renamed)
    if not lacking and not tools:
        return None
    parts = set(looked_for(request.profile) if wanted is None else wanted) if lacking else set[str]()
    if file.path is not None:
        parts -= fitting
    paths = {name: own.path for name, own in file.components.items() if name in parts and own.path is not None}
    try:
        found = drafted(implementation, location, request, paths, parts, tell, tools)
    except (LoadFailure, OutOfTime):  # trying ends its process or takes too long, or a path of the file is wrong
        if fitting:
            return None
        raise
    apart = other_parts(found, fitting=fitting & parts)
    found = found.leaving_out(apart)
    alone = named_profile(request.profile).parts_stand_alone  # there, what looks like a part may be all that there is
    if not found.finds_something and not (alone and found.tools.near):
        return None
    whole = Completed(found, _merged(parse_config(found.text()), file, fitting), apart=apart)
    if not request.widens:
        return whole
    tell(f"looking for what else is there, {len(whole.taken())} found")
    more = beside(implementation, definitions(implementation), whole.config, whole.taken())
    return replace(whole, beside=list(more))


def _without_a_guess(result: Result) -> Result:
    known = result.looks_like
    return replace(result, looks_like=()) if known and known[0].certainty is Certainty.UNSURE else result


def _doubtful(path: str, name: str) -> str:
    """Say of a definition that it may not be what it was taken for."""
    own = path.rpartition(":")[2]
    if own == name:
        return f"it is not certain that {name} is built and called as it is meant to be"
    return f"{own} may be {name}, or something else"


def _prefix_of(name: str) -> str:
    """Return the prefix of a component's clauses."""
    return next(c.prefix for profile in SEARCHED_PROFILES for c in components_of(profile).values() if c.name == name)


def _lacking(
    fitting: Collection[str], implementation: Implementation, profile: str, wanted: Collection[str] | None
) -> list[str]:
    """Return the required components that are not there, and not part of a whole that is, and is wanted as well."""
    if not named_profile(profile).has_parts:
        return [name for name in looked_for(profile) if name not in fitting and (wanted is None or name in wanted)]
    wholes = {name for name in fitting if name not in STACKS and (wanted is None or name in wanted)}
    within = {part for name in wholes for part in PARTS.get(name, ())}
    required = [c.name for c in components_of(profile).values() if c.required and (wanted is None or c.name in wanted)]
    return [
        name for name in required if name not in fitting and name not in within and not implementation.excused(name)
    ]


def _merged(found: Config, file: Config, fitting: Collection[str]) -> Config:
    """Return what was found with what a file declares over it, line by line."""
    if file.path is None and not file.components:
        return replace(found, path=None, dtypes=_dtypes(file, found), refused=file.refused, lines={})
    components = {name: own for name, own in found.components.items() if name not in fitting}
    components |= {
        name: _over(components[name], own) if name in components else own for name, own in file.components.items()
    }
    return replace(
        file, components=components, tools={**found.tools, **file.tools}, variant={**found.variant, **file.variant},
        framework=file.framework or found.framework, dtypes=_dtypes(file, found),
    )  # fmt: skip


def _dtypes(file: Config, found: Config) -> tuple[str, ...]:
    """Return what a file says about number formats, else what was found."""
    return found.dtypes if file.dtypes == Config().dtypes else file.dtypes


def _over(found: ComponentConfig, own: ComponentConfig) -> ComponentConfig:
    usual = ComponentConfig(own.name)
    said = {f.name: getattr(own, f.name) for f in fields(own) if getattr(own, f.name) != getattr(usual, f.name)}
    return replace(found, **said)


def not_found(names: Sequence[str]) -> Unusable:
    """Return why several components cannot be judged that nothing looks like, and what to declare: one text for all."""
    example = f'[components.{names[0]}] path = "yourpackage.module:name"'
    further = [
        f"{name} may be a function of the framework: {OF_FRAMEWORKS[name]}" for name in names if name in OF_FRAMEWORKS
    ]
    prefixes = ",".join(map(_prefix_of, names))
    leaving = f"or judge only what is there: --without {prefixes}"
    advice = (f"say where each is in conform.toml: {example}", *further, leaving)
    return Unusable(f"{listed(names)} were not found: nothing looks like them", "", advice)


def set_aside(results: Sequence[Result], unclear: Collection[str]) -> list[Result]:
    """Return the results on unclear components that fail, and those that they block, as not run."""
    failed = [r for r in results if r.verdict.red or r.verdict is Verdict.BLOCKED]
    red = {r.clause.id for r in failed if _is_about(r, unclear)}
    left = [r for r in failed if r.clause.id in red or (r.verdict is Verdict.BLOCKED and r.blocked_by in red)]
    why = "it is not certain that what was found is this component"
    return [Result(r.clause, Verdict.NOT_RUN, reason=why, tried=False) for r in left]


def _is_about(result: Result, unclear: Collection[str]) -> bool:
    """Whether a result is about one of these components; a clause about all of them says in which one it fails."""
    found = result.finding
    if result.clause.component == "all" and found is not None:
        return any(found.mentions(name) for name in unclear)
    return result.clause.component in unclear
