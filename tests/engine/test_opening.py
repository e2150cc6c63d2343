"""A specific sentence says what cannot be judged; no more workers are started than there is work for."""

from contextlib import contextmanager

import pytest

from conformkit.conformance.binding.config import Config
from conformkit.conformance.driver.location import locate
from conformkit.conformance.engine.ambiguous_folder import obstacle
from conformkit.conformance.engine.finding import LoadFailure, find
from conformkit.conformance.engine.parallel import judge_in_parallel
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.runner import run
from conformkit.spec.clauses import select
from conformkit.spec.components import components_of
from tests.engine.conftest import ATTENTION


@pytest.mark.parametrize(
    ("files", "named", "problem", "advice"),
    [
        ({}, "", "there is no Python file in ", "conform init"),
        ({"readme.md": "#"}, "", "there is no Python file in ", "conform init"),
        ({"work.ipynb": "{}"}, "work.ipynb", "^work.ipynb defines no class and no function$", "check"),
        ({"data.json": "{}"}, "data.json", "^data.json is no Python file$", ""),
        ({"work.zip": "PK", "work.py": "y = 1"}, "work.zip", "^work.zip is no Python file; it is an archive", ""),
        ({"x.py": "get_ipython()"}, "x.py", "name 'get_ipython' is not defined", "commands of a notebook"),
        ({"x.py": "y = 1"}, "x.py", "exports none of the contract's components", "looked for"),
        ({"x.py": "y = 1"}, "x.py", "exports none of the contract's components", "conform adapt "),
    ],
    ids=[
        "empty-folder",
        "no-python",
        "notebook",
        "data",
        "archive",
        "exported-notebook",
        "nothing-of-it",
        "other-names",
    ],
)
def test_a_folder_without_an_implementation_is_reported(tmp_path, files, named, problem, advice):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(LoadFailure, match=problem) as caught:
        run(RunRequest(impl=str(tmp_path / named)))
    assert advice in " ".join(caught.value.advice)


def test_what_only_asks_for_alone_was_looked_for(tmp_path):
    """Catches a list of all components where one was asked for, and no word of what else there may be."""
    (tmp_path / "x.py").write_text("y = 1")
    with pytest.raises(LoadFailure) as caught:
        run(RunRequest(impl=str(tmp_path / "x.py"), only=("SDPA",)))
    assert caught.value.advice[0] == "looked for scaled_dot_product_attention"
    assert "without --only" in caught.value.advice[1]


def test_no_worker_is_made_that_would_find_nothing_to_do():
    made = []

    @contextmanager
    def another():
        made.append(1)
        yield None

    judge_in_parallel([], None, another, processes=9, seed=0, profile="core", tell=made.append)
    clauses = [clause for clause in select((), "core") if clause.document == "attention"]
    told = []
    judge_in_parallel(clauses, None, another, processes=9, seed=0, profile="core", tell=told.append)
    assert {result.verdict for result in told} == {"not run"}  # nothing to judge them with
    assert made == []


@pytest.mark.parametrize(("profile", "first"), [("lm", ["training", "learning"]), ("seq2seq", ["seq2seq_training"])])
def test_what_trains_a_model_is_begun_first(profile, first):
    """Would break if the longest documents were begun last, when the other worker had nothing left to do."""
    told = []
    clauses = list(select((), profile))
    judge_in_parallel(clauses, None, None, processes=1, seed=0, profile=profile, tell=told.append)
    documents = list(dict.fromkeys(result.clause.document for result in told))
    assert documents[: len(first)] == first
    assert sorted(result.clause.id for result in told) == sorted(clause.id for clause in clauses)


_METHODS_ALONE = """
def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / k.size(-1) ** 0.5
    return scores.softmax(-1) @ v
"""
_BROKEN = """
import numpy as np

def scaled_dot_product_attention(q, k, v, mask=None):
    raise ValueError(np.pi)


class FeedForward:
    def __init__(self, d_model, d_ff):
        self.w = np.ones((d_model, d_model))

    def __call__(self, x):
        return x @ self.w
"""


@pytest.mark.parametrize(
    ("text", "guessed"),
    [
        (_METHODS_ALONE, False),  # methods that tensors alone have: torch
        (_BROKEN.replace("import numpy as np", "np = None"), True),
        (_BROKEN.partition("class")[0], True),
        (_BROKEN, False),  # some of it runs
        ("import numpy as np\n" + ATTENTION, False),  # nothing raises
    ],
    ids=["methods-of-tensors", "imports-neither", "nothing-runs", "some-runs", "runs"],
)
def test_a_guessed_framework_is_reported_if_it_may_be_wrong(tmp_path, text, guessed):
    (tmp_path / "own.py").write_text(text)
    only = ("SDPA-OUT-SHAPE", "FFN-SHAPE")
    notes = " ".join(run(RunRequest(impl=str(tmp_path / "own.py"), only=only, diagnose=False)).notes)
    assert ("NumPy was guessed, since no source of it imports torch" in notes) is guessed
    assert ('framework = "torch"' in notes) is guessed


def test_a_declared_framework_is_not_a_guess(tmp_path):
    (tmp_path / "own.py").write_text(_METHODS_ALONE)
    declared = Config(framework="numpy")
    request = RunRequest(impl=str(tmp_path / "own.py"), only=("SDPA-OUT-SHAPE",), config=declared, diagnose=False)
    assert not run(request).notes


@pytest.mark.parametrize(
    "given", [{"dtype": "bfloat16"}, {"config": Config(dtypes=("bfloat16",))}], ids=["asked", "declared"]
)
def test_a_format_that_the_framework_lacks_is_refused_in_one_sentence(attention_file, given):
    with pytest.raises(LoadFailure, match="with dtypes bfloat16: NumPy has no dtype bfloat16") as caught:
        run(RunRequest(impl=str(attention_file), **given))
    assert "--dtype" in caught.value.advice[0]


def test_another_declared_format_takes_the_place_of_one_that_the_framework_lacks(attention_file):
    config = Config(dtypes=("bfloat16", "float32"))
    report = run(RunRequest(impl=str(attention_file), only=("SDPA-SCALE",), config=config))
    assert [result.verdict for result in report.results] == [Verdict.PASS]


_THREE = "class MultiHeadAttention: ...\nclass TransformerBlock: ...\nclass TinyTransformerLM: ...\n"
_OTHER = _THREE + "x = 1\n"


@pytest.mark.parametrize(
    "files",
    [
        {"a/mine.py": _THREE, "b/mine.py": _OTHER},
        {
            "one/src/a/__init__.py": "",
            "one/src/a/x.py": _THREE,
            "two/src/b/__init__.py": "",
            "two/src/b/y.py": _THREE + "\n",
        },
    ],
    ids=["folders", "packages"],
)
def test_a_folder_with_several_implementations_is_refused(tmp_path, files):
    _lay_out(tmp_path, files)
    with pytest.raises(LoadFailure, match="both define MultiHeadAttention, TransformerBlock and 1 more") as caught:
        run(RunRequest(impl=str(tmp_path)))
    assert "name the folder" in caught.value.advice[0]


def test_the_whole_disk_is_not_an_implementation():
    with pytest.raises(LoadFailure, match="whole disk"):
        run(RunRequest(impl="/"))


@pytest.mark.parametrize(
    "files",
    [
        {"src/pkg/__init__.py": "", "src/pkg/model.py": _THREE,
         "src/pkg/fast/__init__.py": "", "src/pkg/fast/model.py": _OTHER},
        {"model.py": _THREE, "old/model.py": _OTHER},
        {"model.py": _THREE, "model_2.py": _OTHER},
        {"a/model.py": _THREE, "b/model.py": _THREE},
        {"encoder/block.py": "class TransformerBlock: ...\nclass FeedForward: ...",
         "decoder/block.py": "class FeedForward: ...\nclass TransformerBlock: ...", "model.py": "import encoder"},
        {"pkg/__init__.py": _THREE, "old/__init__.py": _OTHER, "__init__.py": ""},
    ],
    ids=["within-a-package", "older-below", "beside-each-other", "the-same", "two-parts", "package"],
)  # fmt: skip
def test_one_implementation_and_other_files_are_not_several_implementations(tmp_path, files):
    _lay_out(tmp_path, files)
    exports = [component.export for component in components_of("core").values()]
    assert obstacle(locate(str(tmp_path)), exports) == ""


def test_a_folder_of_which_a_declaration_names_the_parts_is_not_searched(tmp_path):
    _lay_out(tmp_path, {"a/mine.py": _THREE, "b/mine.py": _OTHER})
    paths = "".join(f'[components.{name}]\npath = "b.mine:{name}"\n' for name in
                    ("MultiHeadAttention", "TransformerBlock", "TinyTransformerLM"))  # fmt: skip
    (tmp_path / "conform.toml").write_text(paths)
    with pytest.raises(LoadFailure, match=r"b\.mine:MultiHeadAttention does not take d_model"):
        run(RunRequest(impl=str(tmp_path)))


def _lay_out(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


_ANOTHER = """
import numpy as np


class SelfAttention:
    def __init__(self, config):
        self.heads = config["heads"]
        rng = np.random.default_rng(0)
        self.q, self.k, self.v, self.out = (rng.normal(size=(config["width"],) * 2) for _ in range(4))

    def __call__(self, x):
        size, length, width = x.shape
        q, k, v = ((x @ w.T).reshape(size, length, self.heads, -1).swapaxes(1, 2) for w in (self.q, self.k, self.v))
        scores = np.where(np.tri(length, dtype=bool), q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return (weights @ v).swapaxes(1, 2).reshape(size, length, width) @ self.out.T
"""
_AS_ANOTHER = """
[components.MultiHeadAttention]
path = "SelfAttention"
causal = "always"

[components.MultiHeadAttention.construct.config]
width = "d_model"
heads = "num_heads"
"""


def test_what_is_declared_to_be_another_component_is_not_refused_for_its_name(tmp_path):
    (tmp_path / "own.py").write_text(_ANOTHER)
    (tmp_path / "conform.toml").write_text(_AS_ANOTHER)
    report = run(RunRequest(impl=str(tmp_path / "own.py"), only=("MHA-ORACLE", "SA-SHAPE"), diagnose=False))
    assert {r.clause.id: r.verdict for r in report.results} == {
        "MHA-ORACLE": Verdict.PASS, "SA-SHAPE": Verdict.NOT_IMPLEMENTED,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("begins", "read"),
    [("", False), ("from other import Attention\n", True)],
    ids=["another file", "one that it imports"],
)
def test_a_declaration_about_another_file_is_not_read(tmp_path, begins, read):
    """Would break if a wrong file ended with a pass: that beside it, which conform.toml names, was judged instead."""
    (tmp_path / "other.py").write_text("class Attention: ...\n")
    (tmp_path / "mine.py").write_text(f"{begins}class Mine: ...\n")
    path = tmp_path / "conform.toml"
    path.write_text('[components.MultiHeadAttention]\npath = "other:Attention"\n')
    found = find(RunRequest(str(tmp_path / "mine.py")))
    assert ("MultiHeadAttention" in found.config.components) == read
    assert any("is about other, not about mine.py" in note for note in found.notes) == (not read)
    for request in (RunRequest(str(tmp_path / "other.py")), RunRequest(str(tmp_path / "mine.py"), config=path)):
        assert find(request).config.path == path
