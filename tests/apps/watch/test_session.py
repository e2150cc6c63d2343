"""A session on an attention in NumPy, which starts quickly; files are saved between its checks."""

from contextlib import closing
from itertools import count

import pytest

from conformkit.conformance.apps.watch.session import Superseded, WatchSession, broke, mended
from conformkit.conformance.apps.watch.snapshot import Lookout
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.request import RunRequest

ATTENTION = """
import numpy as np


def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v
"""
WRONG = ATTENTION.replace("np.sqrt(q.shape[-1])", "q.shape[-1]")
EXTRA = (
    "\n\nclass FeedForward:\n    def __init__(self, d_model, d_ff, dropout=0.0):\n        raise NotImplementedError\n"
)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "watched_code.py"
    path.write_text(ATTENTION + EXTRA)
    return path


@pytest.fixture
def session(source):
    request = RunRequest(impl=str(source), only=("SDPA", "FFN"), diagnose=False)
    with closing(WatchSession(request)) as found:
        yield found


def ignore(found):
    del found


def saved(session, source, text):
    source.write_text(text)
    return session.wait()


def test_a_save_is_judged_and_compared_with_the_state_before(session, source):
    first = session.judge(None, ignore)
    assert first.before is None
    changed = saved(session, source, WRONG + EXTRA)
    assert changed.definitions == ("scaled_dot_product_attention",)
    told = []
    second = session.judge(changed, told.append)
    assert {r.clause.id for r in broke(second.before, second.report.results)} == {"SDPA-SCALE"}
    (early,) = told
    assert {r.clause.component for r in early.results} == {"ScaledDotProductAttention"}
    third = session.judge(saved(session, source, ATTENTION + EXTRA), ignore)
    assert "SDPA-SCALE" in {r.clause.id for r in mended(third.before, third.report.results)}
    assert broke(third.before, third.report.results) == []
    (only_red,) = {r.clause.id for r in third.before.results if r.verdict.red}
    backwards = list(reversed(third.report.results))  # the cause comes before what it blocked, in any order
    assert mended(third.before, backwards)[0].clause.id == only_red


def test_one_warm_process_serves_all_runs_and_a_new_one_takes_its_place_when_it_has_ended(session, source):
    session.judge(None, ignore)
    kept = session._warm
    session.judge(saved(session, source, WRONG), ignore)
    assert session._warm is kept
    kept._factory.close()
    report = session.judge(saved(session, source, ATTENTION), ignore).report
    assert session._warm is not kept
    assert report.complete


def test_half_written_and_deleted_files_end_nothing(session, source):
    session.judge(None, ignore)
    with pytest.raises(LoadFailure, match="SyntaxError"):
        session.judge(saved(session, source, "def scaled_dot("), ignore)
    source.unlink()
    changed = session.wait()
    with pytest.raises(LoadFailure):
        session.judge(changed, ignore)
    again = saved(session, source, ATTENTION + EXTRA)
    assert again.silent  # as when it was judged last
    assert session.judge(again, ignore).report.complete


def test_a_save_during_a_run_ends_it(session, source, monkeypatch):
    monkeypatch.setattr("conformkit.conformance.apps.watch.session._LOOKS", 0.0)
    source.write_text(WRONG)
    with pytest.raises(Superseded):
        session.judge(None, ignore)
    assert session.wait().everything
    assert not session.judge(None, ignore).report.conforms


def test_code_that_always_changes_its_own_files_is_judged_to_the_end_at_last(session, monkeypatch):
    monkeypatch.setattr("conformkit.conformance.apps.watch.session._LOOKS", 0.0)
    changes = count()
    monkeypatch.setattr(Lookout, "look", lambda self: {self.root: str(next(changes)).encode()})
    for _ in range(3):
        with pytest.raises(Superseded):
            session.judge(None, ignore)
    assert session.judge(None, ignore).report.complete
    with pytest.raises(Superseded):  # a save ends the next one again
        session.judge(None, ignore)


def test_a_file_that_is_being_written_is_waited_for(source):
    lookout = Lookout(source)
    seen = lookout.look()
    pieces = ["def f", "def f():\n", "def f():\n    return 1\n"]

    def write_on(seconds):
        del seconds
        if pieces:
            source.write_text(pieces.pop(0))

    lookout.pause = write_on
    assert lookout.wait(seen)[source] == b"def f():\n    return 1\n"


def test_saving_an_unchanged_file_is_not_a_change(source):
    lookout = Lookout(source)
    seen = lookout.look()
    texts = [ATTENTION + EXTRA, WRONG]

    def write_on(seconds):
        del seconds
        if texts:
            source.write_text(texts.pop(0))

    lookout.pause = write_on
    assert lookout.wait(seen)[source] == WRONG.encode()
