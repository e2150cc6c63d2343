"""Names that people give to tools and their arguments lead to those of the contract."""

from __future__ import annotations

import re

import pytest

from conformkit.conformance.discovery.tools.roles import ROLES, Role, folded
from conformkit.spec.tools import TOOLS


@pytest.mark.parametrize("tool", ROLES)
def test_a_tool_is_called_by_the_contracts_name(tool: str) -> None:
    """Would break if an edit of a pattern lost the plainest name of all, in either way to write it."""
    assert ROLES[tool].calls(tool)
    assert ROLES[tool].calls(folded(tool))


@pytest.mark.parametrize("tool", [name for name, role in ROLES.items() if role.spellings])
def test_each_spelling_means_one_argument_however_it_is_written(tool: str) -> None:
    """Would break if a spelling stood under two arguments, with underscores, or meant something else by its words."""
    role = ROLES[tool]
    wanted = sorted(role.spellings)
    for name, spellings in role.spellings.items():
        for spelling in spellings:
            assert spelling == folded(spelling)
            assert role.meant(spelling, wanted) == role.meant(spelling.upper(), wanted) == name, spelling
            assert role.meant(f"_{spelling}", [other for other in wanted if other != name]) != name


@pytest.mark.parametrize("tool", ROLES)
def test_the_contracts_own_name_wins_over_spellings(tool: str) -> None:
    """Would break if an argument that is called as in the law were taken for one that others call so."""
    wanted = sorted({*ROLES[tool].spellings, "step", "total", "ids", "mask", "text"})
    for name in wanted:
        assert ROLES[tool].meant(name.replace("_", "").title(), wanted) == name


def test_each_role_is_a_tool_of_the_law() -> None:
    assert ROLES.keys() <= TOOLS.keys()


@pytest.mark.parametrize(
    ("theirs", "wanted", "meant"),
    [
        ("batch_size", "batch_size block_size", "batch_size"), ("BatchSize", "block_size batch_size", "batch_size"),
        ("bsz", "block_size batch_size", "batch_size"), ("context_length", "batch_size block_size", "block_size"),
        ("bsz", "block_size", None), ("nothing_like_it", "batch_size block_size", None),
    ],
)  # fmt: skip
def test_an_argument_means_what_its_words_say_of_what_is_wanted(theirs: str, wanted: str, meant: str | None) -> None:
    """Would break if the first wanted argument were taken whatever an argument is called."""
    role = Role(re.compile("batch"), {"batch_size": ("bsz",), "block_size": ("contextlength",)})
    assert role.meant(theirs, wanted.split()) == meant


def test_a_vague_name_is_another_tools_too() -> None:
    sure, vague = Role(re.compile("^clip")), Role(re.compile("^step"), vague=re.compile("^step$"))
    assert sure.says_which("clip_it")
    assert vague.says_which("step_all")
    assert not vague.says_which("Step")
    assert vague.calls("step")
    assert not vague.calls("a_step")
