"""On hidden draws, nothing that a submission sees leaks, however it tries."""

import pytest

from conformkit.conformance.apps.grade.grade import GradeRequest, grade
from conformkit.conformance.apps.grade.policy_file import parse_policy
from conformkit.conformance.apps.grade.store import FILE

from .conftest import POLICY

# The mark is assembled at run time: the source itself may be quoted.
TALKING = """
import os
import sys
import warnings

import numpy as np

MARK = "SE" + "EN"


class Telling(np.ndarray):
    pass


def scaled_dot_product_attention(q, k, v, mask=None):
    seen = f"{MARK}{np.ravel(q)[0]:.9f}"
    print(seen)
    print(seen, file=sys.stderr)
    os.write(1, seen.encode())
    warnings.warn(seen)
    os.environ[seen] = seen
    globals()[seen] = seen
    scaled_dot_product_attention.__doc__ = scaled_dot_product_attention.__qualname__ = seen
    Telling.__name__ = Telling.__qualname__ = seen
    %s
"""
WAYS = {
    "message": "raise ValueError(seen)",
    "type": "raise type(seen, (Exception,), {'__module__': seen})()",
    "note": "error = ValueError(); error.add_note(seen); raise error",
    "cause": "raise ValueError() from KeyError(seen)",
    "exit": "raise SystemExit(seen)",
    "file": "exec(compile('raise ValueError', f'{seen}.py', 'exec'))",
    "function": "exec(f'def {seen.replace(chr(46), chr(95)).replace(chr(45), chr(95))}(): raise ValueError\\n' + "
    "seen.replace(chr(46), chr(95)).replace(chr(45), chr(95)) + '()')",
    "returned class": "return np.zeros(q.shape[:-1] + v.shape[-1:]).view(Telling)",
    "returned text": "return seen",
    "returned key": "return {seen: seen}",
    "dtype": "return np.zeros(q.shape[:-1] + v.shape[-1:], dtype=[(seen, 'f8')])",
    "death": "sys.stderr.flush(); os._exit(3)",
}


QUICK = ("message", "returned class", "death")
"""One of each kind: an exception, a value, an end."""


@pytest.mark.parametrize(
    ("chosen", "open_draws"),
    [
        pytest.param(QUICK, False, id="hidden"),
        pytest.param(tuple(WAYS), False, id="all-hidden", marks=pytest.mark.full),
        pytest.param(tuple(WAYS), True, id="open", marks=pytest.mark.full),
    ],
)
def test_what_a_submission_saw_reaches_no_output(submissions, tmp_path, chosen, open_draws):
    """With open draws the same submissions are quoted: they do leak."""
    ways = {f"{way.replace(' ', '-')}__py": TALKING % WAYS[way] for way in chosen}
    seed = "3" if open_draws else '"hidden"'
    policy = parse_policy(POLICY.replace("seed = 3", f"seed = {seed}").replace("hints = 0", "hints = 3"))
    told = []
    summary = grade(GradeRequest(submissions(**ways), policy, tmp_path / "out", workers=2), told.append)
    assert [found.outcome.value for found in summary.grades] == ["judged"] * len(chosen)
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert {FILE, "grades.csv", "junit.xml", "overview.html", "message.log"} <= {path.name for path in files}
    quoting = {str(path.relative_to(tmp_path)) for path in files if b"SEEN" in path.read_bytes()}
    quoting |= {"progress"} if "SEEN" in str(told) else set()
    assert bool(quoting) == open_draws, quoting
