"""The prompt after which penalties show most is the one that is taken."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from conformkit.conformance.assertions.checks import NotApplicable
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence import penalized_text
from conformkit.conformance.evidence.penalized_text import loud

LOGITS = np.array([2.0, -2.0, 0.1, -0.1, 0.2, -0.2])
"""Of ids 0 and 1, a penalty shows in both directions; each other pair is weaker in one."""


class Model:
    """Gives each instance its own factor of `LOGITS`, or refuses sizes."""

    def __init__(self, most: int = 12, vocabulary: int = 6) -> None:
        self.most, self.vocabulary, self.gains = most, vocabulary, []

    def tokens(self, count: int) -> int:
        return min(count, self.most)

    def build(self, **_: int) -> SimpleNamespace:
        instance = SimpleNamespace(sizes={"vocab_size": self.vocabulary, "block_size": self.most}, gain=0.0)

        def scatter(_: Draw, *, gain: float) -> None:
            self.gains.append(gain)
            instance.gain = gain

        instance.scatter = scatter
        return instance


@pytest.fixture(autouse=True)
def logits(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(instance: SimpleNamespace, prompts: np.ndarray) -> np.ndarray:
        return np.tile(LOGITS[: instance.sizes["vocab_size"]], (len(prompts), 1)) * instance.gain / 2.0

    monkeypatch.setattr(penalized_text, "read_logits", read)


def test_ids_stand_where_the_letters_do_and_theirs_are_the_loudest() -> None:
    """Would break if ids with logits of one sign were taken: a rule that is wrong for the other one would pass."""
    model = Model()
    instance, prompt = loud(model, Draw(0, "loud"), "abab", gain=1.0)
    assert {int(prompt[0]), int(prompt[1])} == {0, 1}
    assert prompt.tolist() == [*prompt[:2], *prompt[:2]]
    assert (len(model.gains), instance.gain) == (3, max(model.gains))


def test_one_id_is_followed_by_any_other() -> None:
    model = Model()
    instance, prompt = loud(model, Draw(0, "loud"), "aaa", gain=1.0)
    assert len(set(prompt.tolist())) == 1
    assert instance.gain == min(model.gains)  # the flattest


@pytest.mark.parametrize(("most", "vocabulary"), [(3, 6), (11, 6), (12, 2)], ids=["prompt", "text", "vocabulary"])
def test_a_model_without_room_for_such_a_text_is_not_judged(most: int, vocabulary: int) -> None:
    with pytest.raises(NotApplicable):
        loud(Model(most, vocabulary), Draw(0, "loud"), "abab")
