"""The law's form: what the parser accepts, its errors, and that every document follows the rules."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from conformkit.conformance.suite import registry
from conformkit.spec import clauses as law
from conformkit.spec.clauses import (
    STEMS,
    Clause,
    ClauseSyntaxError,
    Level,
    UnknownClauseError,
    clause,
    clauses,
    parse,
    profiles_of,
    select,
)
from conformkit.spec.components import FURTHER, is_component
from conformkit.spec.encoder_components import ENCODER
from conformkit.spec.profiles import PROFILES
from conformkit.spec.seq2seq_components import SEQ2SEQ
from conformkit.spec.tools import TOOLS
from conformkit.spec.variants import Variant, choices

ABILITIES = {
    "gradients", "dropout", "modes", "causal-on", "causal-off", "masks", "bool-masks", "float-masks", "weights",
    "weights-bound", "any-rank", "own-values", "target-masks", "memory-masks", "pad-id", "float32", "float64",
    "segments-optional",
    "generate", "greedy", "samples", "temperature", "top-k", "top-p", "eos-id", "use-cache", "beam-eos-id",
    *(argument.name.replace("_", "-") for argument in FURTHER),
    *(method.name for component in (*SEQ2SEQ.values(), *ENCODER.values()) for method in component.methods),
    *(name.replace("_", "-") for tool in TOOLS.values() for name in tool.optional()),
}  # fmt: skip
"""The abilities of an implementation, as binding and probe determine them."""

ONE = """\
# Attention

A short introduction.

Component: ScaledDotProductAttention.

## Scores

### SDPA-SCALE
Scores are divided by the square root of the key width.
Normative: every score MUST equal the dot product
divided by √d_k.
Why: unscaled, the softmax saturates.
Fix: divide by math.sqrt(k.shape[-1]).
Applies: positions = sinusoidal|learned, gradients = yes
Needs: SDPA-OUT-SHAPE, SDPA-FORMULA.
Evidence: oracle, golden. Level: MUST. Profile: core. Since: 1.0. Source: Vaswani et al. 2017,
§3.2.1. Private: handout §4.2.
"""

BARE = """\
Why: because.
Fix: mend it.
Evidence: property. Level: SHOULD. Profile: lm. Since: 1.1. Source: X.
"""


def parsed(text: str) -> list[Clause]:
    return list(parse("some_stem", text))


# --- the parser -------------------------------------------------------------------------------------------------------


def test_every_field_is_read() -> None:
    (found,) = parsed(ONE)
    assert found == Clause(
        id="SDPA-SCALE",
        title="Scores are divided by the square root of the key width.",
        normative="every score MUST equal the dot product divided by √d_k.",
        why="unscaled, the softmax saturates.",
        fix="divide by math.sqrt(k.shape[-1]).",
        level=Level.MUST,
        evidence=("oracle", "golden"),
        profile="core",
        since="1.0",
        source="Vaswani et al. 2017, §3.2.1.",
        component="ScaledDotProductAttention",
        document="some_stem",
        line=9,
        applies={"positions": "sinusoidal|learned", "gradients": "yes"},
        needs=("SDPA-OUT-SHAPE", "SDPA-FORMULA"),
        private="handout §4.2.",
    )
    assert found.prefix == "SDPA"


def test_a_clause_ends_at_the_next_heading_or_component() -> None:
    body = "The fact.\nNormative: it MUST hold.\n" + BARE
    first, second, third = (f"### {name}\n{body}" for name in ("A-ONE", "A-TWO", "B-ONE"))
    found = parsed(f"Component: A\n{first}\n## More\n\nProse between.\n{second}Component: B\n\n{third}")
    assert [(c.id, c.component, c.line) for c in found] == [("A-ONE", "A", 2), ("A-TWO", "A", 12), ("B-ONE", "B", 20)]
    assert {c.source for c in found} == {"X."}
    assert {c.level for c in found} == {Level.SHOULD}


def test_paragraphs_may_be_wrapped_anywhere_but_after_the_title() -> None:
    text = "Component: A\n### A-ONE\nThe fact.\n\nNormative: it\n  MUST hold,\n\nalways.\n" + BARE
    assert parsed(text)[0].normative == "it MUST hold, always."


def test_without_conditions_and_needs_both_are_empty() -> None:
    (found,) = parsed("Component: all\n### A-ONE\nThe fact.\nNormative: it MUST hold.\n" + BARE)
    assert found.applies == {}
    assert found.needs == ()


BROKEN = {
    "no component": ("### A-ONE\nFact.\n", 1, "the line 'Component: …' is missing before the first clause"),
    "component too late": ("# T\n\n### A-ONE\nFact.\nComponent: A\n", 3, "the line 'Component: …' is missing"),
    "empty document": ("", 1, "the line 'Component: …' is missing"),
    "no clause": ("# Title\n\nProse.\n", 1, "the line 'Component: …' is missing"),
    "id in lower case": ("Component: A\n\n### a-one\nFact.\n", 3, "a clause begins with '### AN-ID', not '### a-one'"),
    "id of one word": ("Component: A\n### ONE\nFact.\n", 2, "a clause begins with '### AN-ID', not '### ONE'"),
    "words after the id": ("Component: A\n### A-ONE is it\nFact.\n", 2, "a clause begins with"),
    "nothing below": ("Component: A\n### A-ONE\n", 2, "A-ONE: Evidence, Fix, Normative, Why is missing"),
    "a field missing": ("Component: A\n### A-ONE\nFact.\n" + BARE, 2, "A-ONE: Normative is missing"),
    "a field twice": (
        "Component: A\n### A-ONE\nFact.\nNormative: a.\nNormative: b.\n" + BARE,
        2,
        "A-ONE: unexpected paragraph 'Normative: b.'",
    ),
    "a title of two lines": (
        "Component: A\n### A-ONE\nA fact that\ngoes on.\nNormative: a.\n" + BARE,
        2,
        "A-ONE: unexpected paragraph 'goes on.'",
    ),
    "an unknown level": (
        "Component: A\n### A-ONE\nFact.\nNormative: a.\n" + BARE.replace("SHOULD", "OUGHT"),
        2,
        "A-ONE: the line of facts is not",
    ),
    "facts in another order": (
        "Component: A\n### A-ONE\nFact.\nNormative: a.\nWhy: b.\nFix: c.\nEvidence: x. Profile: core. Level: MUST.\n",
        2,
        "A-ONE: the line of facts is not",
    ),
    "a condition without a value": (
        "Component: A\n### A-ONE\nFact.\nNormative: a.\nApplies: pre\n" + BARE,
        2,
        "a condition reads 'name = value', not 'pre'",
    ),
    "the second of two": (
        "Component: A\n### A-ONE\nFact.\nNormative: a.\n" + BARE + "\n### A-TWO\nFact.\n" + BARE,
        9,
        "A-TWO: Normative is missing",
    ),
}


@pytest.mark.parametrize(("text", "line", "problem"), BROKEN.values(), ids=list(BROKEN))
def test_errors_of_form_name_the_line_and_the_problem(text: str, line: int, problem: str) -> None:
    with pytest.raises(ClauseSyntaxError) as raised:
        parsed(text)
    assert (raised.value.document, raised.value.line) == ("some_stem", line)
    assert problem in raised.value.problem
    assert str(raised.value).startswith(f"some_stem.md, line {line}: ")


def test_an_id_defined_twice_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    body = "The fact.\nNormative: it MUST hold.\n" + BARE
    (tmp_path / "one.md").write_text(f"Component: A\n### A-ONE\n{body}", encoding="utf-8")
    (tmp_path / "two.md").write_text(f"Component: A\n\n### A-ONE\n{body}", encoding="utf-8")
    monkeypatch.setattr(law, "STEMS", ("one", "two"))
    monkeypatch.setattr(law, "files", lambda _package: tmp_path)
    with pytest.raises(ClauseSyntaxError, match=r"two\.md, line 3: A-ONE is defined twice"):
        clauses.__wrapped__()


# --- finding clauses --------------------------------------------------------------------------------------------------


def test_a_prefix_selects_whole_words_in_the_order_of_the_law() -> None:
    found = [c.id for c in select(("block", "FFN-"))]
    assert found[0] == "FFN-SHAPE"
    assert found[-1] == "BLOCK-STACK-DISTINCT"
    assert {i.partition("-")[0] for i in found} == {"FFN", "BLOCK"}
    assert select(()) == tuple(clauses().values())
    assert [c.id for c in select(("sdpa-scale",))] == ["SDPA-SCALE"]


def test_a_components_name_selects_all_clauses_about_it() -> None:
    found = select(("ScaledDotProductAttention",), "core")
    assert {item.component for item in found} == {"ScaledDotProductAttention"}
    assert len({item.prefix for item in found}) > 1
    with pytest.raises(UnknownClauseError):
        select(("all",))


@pytest.mark.parametrize("wanted", ["FF", "SDPA-SCAL", "NOTHING", ""])
def test_an_unknown_prefix_is_refused(wanted: str) -> None:
    with pytest.raises(UnknownClauseError, match="no clause is called"):
        select((wanted,))


def test_an_unknown_clause_suggests_the_nearest() -> None:
    with pytest.raises(UnknownClauseError) as raised:
        clause("FFN-SHAEP")
    assert raised.value.nearest[0] == "FFN-SHAPE"
    assert str(raised.value).startswith("no clause is called FFN-SHAEP; nearest: FFN-SHAPE")


@pytest.mark.parametrize(
    ("words", "profiles"),
    [((), "core"), (("MHA",), "core"), (("TRAIN", "MHA"), "core,lm"), (("PATH", "DEC"), "seq2seq,paths")],
    ids=str,
)
def test_words_are_about_the_profiles_that_contain_them(words: tuple[str, ...], profiles: str) -> None:
    assert profiles_of(words) == profiles


def test_a_word_with_clauses_in_core_and_elsewhere_is_about_core() -> None:
    assert {item.profile for item in select(("TinyTransformerLM",))} > {"core"}
    assert profiles_of(("TinyTransformerLM",)) == "core"


# --- the documents ----------------------------------------------------------------------------------------------------

FORBIDDEN = re.compile(r"\b(should|test that|correctly|works|properly)\b", re.IGNORECASE)
EVIDENCE = {"oracle", "golden", "property", "statistics"}


def offenders(holds: Callable[[Clause], object]) -> list[str]:
    return [found.id for found in clauses().values() if not holds(found)]


def test_titles_are_short_sentences() -> None:
    assert offenders(lambda c: 0 < len(c.title) < 80) == []
    assert offenders(lambda c: c.title.endswith(".") and (c.title[0].isupper() or not c.title[0].isalpha())) == []


def test_titles_state_facts() -> None:
    assert offenders(lambda c: not FORBIDDEN.search(c.title)) == []


def test_no_component_has_two_clauses_of_one_title() -> None:
    counted = Counter((c.component, c.title.casefold()) for c in clauses().values())
    assert [title for title, count in counted.items() if count > 1] == []


def test_the_normative_line_says_the_level() -> None:
    assert offenders(lambda c: re.search(rf"\b{c.level}\b", c.normative)) == []


def test_prohibitions_use_must_not() -> None:
    """'No weight MUST change' only says that none has to: it allows what it is meant to forbid."""
    forbids = re.compile(
        r"(?:^|[,;:] (?:and )?)(?:no|nothing|none|only)\b[^,;:]*\b(?:MUST|SHOULD)\b(?! NOT)", re.IGNORECASE
    )
    assert offenders(lambda c: not forbids.search(c.normative)) == []


def test_no_part_of_a_clause_is_empty() -> None:
    assert offenders(lambda c: all(text.strip() for text in (c.normative, c.why, c.fix, c.source))) == []


def test_facts_are_of_known_kinds() -> None:
    assert offenders(lambda c: set(c.evidence) <= EVIDENCE) == []
    assert offenders(lambda c: c.profile in {"core", "lm", "seq2seq", "encoder", "vit", "paths", "finetune"}) == []
    assert offenders(lambda c: c.since <= law.SPEC_VERSION) == []
    assert offenders(lambda c: c.component == "all" or is_component(c.component) or c.component in TOOLS) == []
    assert offenders(lambda c: c.document in PROFILES[c.profile].documents) == []


def test_a_profile_may_take_some_of_the_clauses_of_its_documents() -> None:
    own, core = law.clauses_of("model"), law.clauses_of("core")
    about = {"TransformerBlock", "TinyTransformerLM", "all"}
    assert own == {name: one for name, one in core.items() if one.component in about}
    assert {c.id for c in law.select(("NUM",), "model")} < {c.id for c in law.select(("NUM",), "core")}


def test_clauses_about_every_component_have_no_conditions() -> None:
    assert offenders(lambda c: c.component != "all" or not c.applies) == []


def test_conditions_are_choices_or_abilities() -> None:
    known = {f.name for f in fields(Variant)} | ABILITIES
    assert offenders(lambda c: set(c.applies) <= known) == []
    assert offenders(lambda c: all(value in admissible(name, value) for name, value in each_value(c))) == []


def each_value(found: Clause) -> Iterator[tuple[str, str]]:
    for name, values in found.applies.items():
        for value in values.removeprefix("not ").split("|"):
            yield name, value.strip()


def admissible(name: str, value: str) -> set[str]:
    """The values that a condition may name; any value if the choice is open."""
    if name in ABILITIES:
        return {"yes", "no"}
    kind: Any = choices()[name]
    if kind is bool:
        return {"true", "false"}
    return {str(k) for k in kind} if isinstance(kind, tuple) else {value}


def test_needs_exist_once() -> None:
    assert offenders(lambda c: set(c.needs) <= set(clauses())) == []
    assert offenders(lambda c: len(set(c.needs)) == len(c.needs)) == []


def test_what_is_binding_needs_nothing_that_is_not() -> None:
    assert offenders(lambda c: c.level is not Level.MUST or all(clause(n).level is Level.MUST for n in c.needs)) == []


def test_no_clause_needs_itself_in_the_end() -> None:
    assert offenders(lambda c: c.id not in everything_needed(c)) == []


def everything_needed(found: Clause) -> set[str]:
    seen: set[str] = set()
    ahead = list(found.needs)
    while ahead:
        needed = ahead.pop()
        if needed not in seen:
            seen.add(needed)
            ahead += clause(needed).needs
    return seen


def test_every_clause_has_a_test_and_every_test_a_clause() -> None:
    assert set(registry.tests()) == set(clauses())


def test_each_clause_is_tested_next_to_its_document() -> None:
    for clause_id, test in registry.tests().items():
        assert test.__module__.endswith(f".suite.test_{clauses()[clause_id].document}"), clause_id


def test_every_document_is_listed() -> None:
    folder = Path(law.__file__).parent
    assert {path.stem for path in folder.glob("*.md")} == {*STEMS, "errata", "sources"}  # two that contain no clauses
    modules = {path.stem.removeprefix("test_") for path in (folder.parent / "conformance" / "suite").glob("test_*.py")}
    assert modules == set(STEMS)


@pytest.mark.parametrize("stem", STEMS)
def test_fields_stand_in_the_agreed_order(stem: str) -> None:
    order = ["Normative", "Why", "Fix", "Applies", "Needs", "Evidence"]
    text = (Path(law.__file__).parent / f"{stem}.md").read_text(encoding="utf-8")
    for block in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        found = re.findall(rf"^({'|'.join(order)}): ", block, flags=re.MULTILINE)
        assert found == sorted(found, key=order.index), block.partition("\n")[0]
