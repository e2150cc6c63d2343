"""Tests of what profiles answer: no other file compares their names."""

from __future__ import annotations

import ast
from pathlib import Path

from conformkit.spec.clauses import STEMS, clauses_of
from conformkit.spec.components import PARTS, components_of
from conformkit.spec.profiles import MILESTONE_PROFILES, PROFILES, named_profile

ROOT = Path(__file__).parents[2]
SCAFFOLD = "conformance/apps/scaffold/scaffold.py"


def compared(tree: ast.AST) -> list[int]:
    """Return the lines on which a profile is compared with names written out."""
    return [
        node.lineno for node in ast.walk(tree) if isinstance(node, ast.Compare)
        and ast.unparse(node.left).rpartition(".")[2] == "profile"
        and any(isinstance(part, ast.Constant) and part.value in PROFILES for part in ast.walk(node))
    ]  # fmt: skip


def test_a_comparison_with_a_name_is_seen() -> None:
    """Catches a reader that finds nothing whatever is written."""
    for text in ("request.profile == 'lm'", "profile not in {'core', 'lm'}", "self.request.profile != 'core'"):
        assert compared(ast.parse(text)) == [1], text
    assert not compared(ast.parse("tool.profile == profile or profile in PROFILES"))


def test_no_file_that_judges_compares_the_name_of_a_profile() -> None:
    """Catches a profile that behaves in one place as its name was known to, when the next one is added."""
    files = [path for top in ("conformance", "cli") for path in (ROOT / top).rglob("*.py")]
    found = {str(path.relative_to(ROOT)): compared(ast.parse(path.read_text(encoding="utf-8"))) for path in files}
    assert len(files) > 400
    assert [name for name, lines in found.items() if lines] == [SCAFFOLD], "a package is written for each profile"


def test_no_file_that_judges_asks_whether_a_component_is_called_like_the_language_model() -> None:
    """Catches code that would treat a second language model as a layer."""
    files = [
        path for top in ("conformance", "cli") for path in (ROOT / top).rglob("*.py") if path.parent.name != "suite"
    ]
    named = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in files for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare) and len(node.comparators) == 1 and not isinstance(node.ops[0], ast.In)
        and ast.unparse(node.comparators[0]) == "'TinyTransformerLM'"
    ]  # fmt: skip
    assert named == []


def test_the_models_of_a_profile_contain_what_it_is_about() -> None:
    """Catches a profile whose mistakes are tried in a reference that lacks some of its parts."""
    for profile in PROFILES.values():
        held = set(profile.models).union(*(PARTS[model] for model in profile.models))
        parts = {name for name, one in components_of(profile.name).items() if one.profile == profile.name}
        assert parts - held - {"SelfAttention"} == set(), profile.name


def test_every_document_belongs_to_a_profile_that_does_not_select() -> None:
    """Catches a document that is read only where a checkpoint names it, and a checkpoint that owns one."""
    for name in (*MILESTONE_PROFILES, "model"):
        assert PROFILES[name].selects
        assert set(PROFILES[name].documents) <= set(STEMS)
    assert {"core", "lm"} <= {clause.profile for name in ("core", "lm") for clause in clauses_of(name).values()}


def test_several_profiles_are_one_of_all_their_documents() -> None:
    """Catches a run of two profiles that is taken for the first of them."""
    both = named_profile("lm,paths")
    assert both.documents == (*PROFILES["lm"].documents, *PROFILES["paths"].documents)
    assert both.option == ["--profile", "lm,paths"]
    assert both.has_parts
    assert (named_profile("core").option, named_profile("lm").parts_from) == ([], "core")
