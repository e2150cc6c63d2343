import pytest

from conformkit.conformance.apps.grade.choice import choose
from conformkit.conformance.apps.grade.unpack import Unreadable
from conformkit.conformance.binding.config import Config
from conformkit.conformance.binding.toml_nodes import ConfigError

from .conftest import fill

SDPA = "def scaled_dot_product_attention(q, k, v, mask=None): ...\n"
MHA = "class MultiHeadAttention: ...\n"
BOTH = SDPA + MHA
DECLARED = '[components.FeedForward]\npath = "mine.layers:Mlp"\n'


@pytest.mark.parametrize(
    ("content", "path", "module"),
    [
        ({"solution.py": BOTH}, "solution.py", None),
        ({"my solution.py": BOTH}, "my solution.py", None),
        ({"solution.py": BOTH, "helpers.py": "x = 1\n"}, "", "solution"),
        ({"hw3": {"solution.py": BOTH, "data.py": ""}}, "hw3", "solution"),
        ({"attention.py": SDPA, "heads.py": MHA}, "", None),
        ({"hw3": {"attention.py": SDPA, "heads.py": MHA}}, "hw3", None),
        ({"pkg": {"__init__.py": "", "a.py": BOTH}}, "pkg", None),
        ({"__init__.py": "", "a.py": BOTH}, "", None),
        ({"repo": {"setup.py": "", "src": {"pkg": {"__init__.py": "", "a.py": BOTH}}}}, "repo/src/pkg", None),
        ({"pkg": {"__init__.py": "", "a.py": BOTH}, "tools.py": ""}, "", "pkg"),
        ({"pkg": {"__init__.py": "", "a.py": SDPA}, "all.py": BOTH}, "", "all"),
        ({"deep": {"a.py": BOTH}, "b.py": BOTH}, "", "b"),
        ({"a.py": "import torch\n", "b.py": ""}, "", None),
        ({"a.py": "exit()\n"}, "a.py", None),
        ({"mine": {"layers.py": "class Mlp: ..."}, "conform.toml": DECLARED}, "mine", None),
        ({"mine": {"layers.py": ""}, "other.py": BOTH, "conform.toml": DECLARED}, "mine", None),
    ],
    ids=[
        "file", "file with blanks", "file and helpers", "the same in a folder", "loose files", "those in a folder",
        "package", "package without a folder", "src layout", "package and helpers", "file with more than the package",
        "shallow one first", "nothing found", "nothing found in a file", "declared", "declared beats found",
    ],
)  # fmt: skip
def test_the_implementation_is_where_the_names_of_the_contract_are(tmp_path, content, path, module):
    root = tmp_path / "anna"
    fill(root, content)
    found = choose(root)
    assert (found.path, found.config.module) == (root / path, module)


def test_another_file_with_the_same_names_is_mentioned(tmp_path):
    fill(tmp_path / "anna", {"a.py": BOTH, "b.py": BOTH})
    assert choose(tmp_path / "anna").notes == ('"b.py" holds the same names and was not judged',)


@pytest.mark.parametrize(
    ("named", "path", "module"),
    [
        ("b", "", "b"),
        ("b.py", "", "b"),
        ("src/c.py", "src/c.py", None),
        ("src.c", "src/c.py", None),
        ("c", "src/c.py", None),
    ],
)
def test_the_policy_may_name_it(tmp_path, named, path, module):
    root = tmp_path / "anna"
    fill(root, {"a.py": BOTH, "b.py": BOTH, "src": {"c.py": BOTH}})
    found = choose(root, named)
    assert (found.path, found.config.module) == (root / path, module)


def test_a_submission_without_what_the_policy_names_says_what_it_has(tmp_path):
    fill(tmp_path / "anna", {"a.py": BOTH})
    with pytest.raises(Unreadable, match=r'it has no solution; it has "a\.py"'):
        choose(tmp_path / "anna", "solution")
    fill(tmp_path / "ben", {"a.txt": ""})
    with pytest.raises(Unreadable, match="no Python file"):
        choose(tmp_path / "ben")


def test_conform_toml_is_looked_for_within_the_submission_only(tmp_path):
    (tmp_path / "conform.toml").write_text("broken", encoding="utf-8")
    fill(tmp_path / "anna", {"repo": {"pkg": {"__init__.py": BOTH}, "conform.toml": "[limits]\nd_model = 4\n"}})
    assert choose(tmp_path / "anna").config.limits.of("d_model").max == 4
    fill(tmp_path / "ben", {"a.py": BOTH})
    assert choose(tmp_path / "ben").config == Config()
    assert choose(tmp_path / "anna", own_config=False).config.limits.of("d_model").max is None


def test_a_conform_toml_that_is_a_link_or_broken_is_an_error(tmp_path):
    fill(tmp_path / "anna", {"a.py": BOTH, "conform.toml": "[limit]\n"})
    with pytest.raises(ConfigError, match="line 1"):
        choose(tmp_path / "anna")
