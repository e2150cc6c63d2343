"""Names that people give to tools and their arguments lead to those of the contract."""

from __future__ import annotations

import pytest

from conformkit.conformance.discovery.tools.roles import ROLES, folded
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
