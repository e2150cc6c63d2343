"""The draft of conform.toml: tables, and comments for what is unsure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from conformkit.conformance.binding.toml_text import lines, stored
from conformkit.conformance.discovery.proposal import Proposal
from conformkit.conformance.discovery.tools.finding import FoundTools
from conformkit.conformance.engine.results import Undeclared
from conformkit.conformance.text import one_line
from conformkit.spec.presets import preset_of
from conformkit.spec.variants import FREE, Variant

__all__ = ["OF_FRAMEWORKS", "Draft", "absence"]

_WIDTH = 116
OF_FRAMEWORKS = {"ScaledDotProductAttention": 'path = "torch.nn.functional:scaled_dot_product_attention"'}
"""How to declare what code may take from its framework."""


@dataclass(frozen=True, slots=True)
class Draft:
    """Findings about an implementation."""

    implementation: str
    framework: str
    proposals: Sequence[Proposal]
    choices: Sequence[Undeclared]
    missing: Mapping[str, str]
    """Components without a candidate, with the reason why the nearest object does not fit, if there is one."""
    left_out: Sequence[str]
    structure: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    """Choices that are only visible in the number of parameters, each with its component."""
    dtypes: Sequence[str] = ()
    """Number formats, if they are not the default."""
    without: Mapping[str, str] = field(default_factory=dict)
    """Components that the draft leaves out of the run, with the reason."""
    failing: frozenset[str] = frozenset()
    """Those of them that were judged, and whose clauses failed."""
    whole: Variant | None = None
    """The variant whose numbers the whole model gives."""
    tools: FoundTools = field(default_factory=FoundTools)
    """Functions and classes besides the model."""
    idle: Sequence[str] = ()
    """Paths of definitions that nothing was taken for and that may be more than a helper."""
    inside: Mapping[str, str] = field(default_factory=dict)
    """Components of whose name there is a class that is called otherwise, with the right whole that calls it."""
    ended: str = ""
    """Why the search ended early, and with what; nothing where it did not."""

    @property
    def finds_something(self) -> bool:
        """Whether it declares anything."""
        return bool(self.proposals or self.tools.tables)

    def judged(self) -> list[Proposal]:
        """Return the proposals that are not left out."""
        return [proposal for proposal in self.proposals if proposal.component not in self.without]

    def leaving_out(self, more: Mapping[str, str], failing: Iterable[str] = ()) -> Draft:
        """Return the draft without these components, by name with the reason; of some the clauses failed."""
        return replace(self, without={**self.without, **more}, failing=self.failing.union(failing))

    def doubts(self) -> list[str]:
        """Return the doubts, one sentence each, with the component."""
        found = [f"{p.component}: {doubt}" for p in self.proposals for doubt in p.doubts]
        near = [f"{name}: {why}" for name, why in self.tools.near.items()]
        early = [self.ended] if self.ended else []
        return [*early, *found, *self._absent(), *map(self._left_out, self.without), *near, *self.left_out]

    def _absent(self) -> list[str]:
        lacking = {name: why for name, why in self.missing.items() if name not in self.without}
        return [f"{name}: {absence(name, why)}" for name, why in lacking.items()]

    def _left_out(self, name: str) -> str:
        return f"{name}: left out of the run, {self.without[name]}"

    def text(self) -> str:
        """Return the file."""
        head = [f"# Draft by conform adapt for {one_line(self.implementation, 80)}: read it before you rely on it."]
        head += [_comment(f"unsure: {absent}") for absent in self._absent()]
        own = {"framework": self.framework} | ({"dtypes": list(self.dtypes)} if self.dtypes else {})
        tables = [[*head, *lines("implementation", own)]]
        general = {**self._counted(), **self._choices("variant")}
        if self.whole is not None and (preset := preset_of(self.whole)) and self._is_all(general, self.whole):
            general = {"like": preset[0], **{choice: stored(value) for choice, value in preset[1].items()}}
        if general:
            note = "# found in the numbers of its components; a choice that is not meant is a mistake"
            tables.append([note, *lines("variant", general)])
        tables += [self._component(proposal) for proposal in self.proposals]
        tables += [self._skipped(name) for name in self.without if name not in self._proposed()]
        tables += [lines(f"components.{name}", table) for name, table in self.tools.tables.items()]
        return "\n\n".join("\n".join(table) for table in tables) + "\n"

    @staticmethod
    def _is_all(general: Mapping[str, Any], whole: Variant) -> bool:
        """Whether these are the choices of the whole model, but for those that need no declaration."""
        own = {choice: stored(value) for choice, value in whole.differences().items()}
        return own.keys() - set(FREE) <= general.keys() and all(own.get(c) == v for c, v in general.items())

    def _proposed(self) -> set[str]:
        return {proposal.component for proposal in self.proposals}

    def _counted(self) -> dict[str, Any]:
        """Return the choices that only numbers of parameters show, of components that are judged."""
        return {choice: value for choice, (name, value) in self.structure.items() if name not in self.without}

    def _skipped(self, name: str) -> list[str]:
        left = {"skip": True} if name in self.inside else {"unconfirmed": True}
        return [*lines(f"components.{name}", left), _comment(f"unsure: {self.without[name]}")]

    def _choices(self, table: str) -> dict[str, Any]:
        return {c.choice: stored(c.actual) for c in self.choices if c.table == table}

    def _component(self, proposal: Proposal) -> list[str]:
        own = self._choices(f"components.{proposal.component}.variant")
        out = proposal.component in self.without
        table: Mapping[str, Any] = {
            **({"unconfirmed": True} if out else {}),
            **proposal.table,
            **({"variant": own} if own else {}),
        }
        written = lines(f"components.{proposal.component}", table)
        end = written.index("") if "" in written else len(written)
        notes = [_comment(f"unsure: left out of the run, {self.without[proposal.component]}")] if out else []
        notes += [_comment(f"unsure: {doubt}") for doubt in proposal.doubts]
        notes += [f"# {line}" for line, _ in proposal.offered]
        return [*written[:end], *notes, *written[end:]]


def absence(name: str, why: str, whole: str = "") -> str:
    """Return why a component without a candidate is missing, and what may be declared.

    `whole` is a component that contains it and gives the definition's numbers.
    """
    seen = f"not seen on its own, only inside {whole} (written inline?)" if whole else "nothing looks like it"
    own = (
        f"; if the code uses a function of its framework, declare it: {OF_FRAMEWORKS[name]}"
        if name in OF_FRAMEWORKS
        else ""
    )
    return why or f"{seen}{own}"


def _comment(text: str) -> str:
    return textwrap.fill(one_line(text, 400), _WIDTH, initial_indent="# ", subsequent_indent="#   ")
