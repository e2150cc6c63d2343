"""What cannot be judged is told in a sentence that fits it; no more workers are made than have something to do."""

from contextlib import contextmanager

import pytest

from conformkit.conformance.opening import LoadFailure
from conformkit.conformance.parallel import judge_in_parallel
from conformkit.conformance.run_request import RunRequest
from conformkit.conformance.runner import run
from conformkit.spec.clauses import select


@pytest.mark.parametrize(
    ("files", "named", "problem", "advice"),
    [
        ({}, "", "there is no Python file in ", "conform init"),
        ({"readme.md": "#"}, "", "there is no Python file in ", "conform init"),
        ({"work.ipynb": "{}"}, "work.ipynb", "^work.ipynb is no Python file$", "check"),
        ({"data.json": "{}"}, "data.json", "^data.json is no Python file$", ""),
        ({"x.py": "y = 1"}, "x.py", "exports none of the contract's components", "looked for"),
    ],
    ids=["empty-folder", "no-python", "notebook", "data", "nothing-of-it"],
)
def test_what_holds_no_implementation_is_told(tmp_path, files, named, problem, advice):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(LoadFailure, match=problem) as caught:
        run(RunRequest(impl=str(tmp_path / named)))
    assert advice in " ".join(caught.value.advice)


def test_no_worker_is_made_that_would_find_nothing_to_do():
    made = []

    @contextmanager
    def another():
        made.append(1)
        yield None

    judge_in_parallel([], None, another, processes=9, seed=0, profile="core", tell=made.append)
    clauses = [clause for clause in select((), "core") if clause.document == "attention"]
    with pytest.raises(AttributeError):  # there is nothing to judge them on
        judge_in_parallel(clauses, None, another, processes=9, seed=0, profile="core", tell=made.append)
    assert made == []
