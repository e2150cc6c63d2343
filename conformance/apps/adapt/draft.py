"""The draft of conform.toml: tables, and comments for what is unsure."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conformkit.conformance.apps.adapt.proposal import Proposal
from conformkit.conformance.apps.adapt.toml_text import lines
from conformkit.conformance.engine.results import Undeclared
from conformkit.conformance.text import one_line

__all__ = ["Draft"]

_WIDTH = 116
_ELSEWHERE = {
    "ScaledDotProductAttention": "; if the code uses a function of its framework, declare it: "
    'path = "torch.nn.functional:scaled_dot_product_attention"',
}


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
    structure: Mapping[str, Any] = field(default_factory=dict)
    """Choices that are only visible in the number of parameters."""
    dtypes: Sequence[str] = ()
    """Number formats, if they are not the default."""

    def doubts(self) -> list[str]:
        """Return the doubts, one sentence each, with the component."""
        found = [f"{p.component}: {doubt}" for p in self.proposals for doubt in p.doubts]
        return [*found, *self._absent(), *self.left_out]

    def _absent(self) -> list[str]:
        texts = {name: why or f"nothing looks like it{_ELSEWHERE.get(name, '')}" for name, why in self.missing.items()}
        return [f"{name}: {text}" for name, text in texts.items()]

    def text(self) -> str:
        """Return the file."""
        head = [f"# Draft by conform adapt for {one_line(self.implementation, 80)}: read it before you rely on it."]
        head += [_comment(f"unsure: {absent}") for absent in self._absent()]
        own = {"framework": self.framework} | ({"dtypes": list(self.dtypes)} if self.dtypes else {})
        tables = [[*head, *lines("implementation", own)]]
        general = {**self.structure, **self._choices("variant")}
        if general:
            note = "# found in the numbers of its components; a choice that is not meant is a mistake"
            tables.append([note, *lines("variant", general)])
        tables += [self._component(proposal) for proposal in self.proposals]
        return "\n\n".join("\n".join(table) for table in tables) + "\n"

    def _choices(self, table: str) -> dict[str, Any]:
        return {c.choice: _stored(c.actual) for c in self.choices if c.table == table}

    def _component(self, proposal: Proposal) -> list[str]:
        own = self._choices(f"components.{proposal.component}.variant")
        table: Mapping[str, Any] = {**proposal.table, **({"variant": own} if own else {})}
        written = lines(f"components.{proposal.component}", table)
        end = written.index("") if "" in written else len(written)
        notes = [_comment(f"unsure: {doubt}") for doubt in proposal.doubts]
        notes += [f"# {line}" for line, _ in proposal.offered]
        return [*written[:end], *notes, *written[end:]]


def _stored(value: Any) -> Any:
    """Write numbers of heads as integers and expressions as strings."""
    return int(value) if isinstance(value, str) and value.isdigit() else value


def _comment(text: str) -> str:
    return textwrap.fill(one_line(text, 400), _WIDTH, initial_indent="# ", subsequent_indent="#   ")
