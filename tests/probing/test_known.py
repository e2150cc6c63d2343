"""A changed copy is bound like the original where it is built and called alike; what is new is found by a probe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from conformkit.conformance.defects import Defect, Patch, defects
from conformkit.conformance.diagnosis.witness import witness
from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine import implementation as engine
from conformkit.conformance.probing.known import Known
from conformkit.spec.variants import CANONICAL

FILE = "feed_forward.py"
MODEL = "return torch.relu(x) ** 2"
ALIKE = {
    "nothing changes": Patch(FILE, MODEL, MODEL),
    "an argument that nobody passes": Patch(
        FILE, "dropout: float = 0.0, *", "dropout: float = 0.0, scale: float = 1.0, *"
    ),
    "another activation": Patch(FILE, '"gelu": gelu,', '"gelu": silu,'),
    "weights in the wrong order": Patch(
        FILE, "hidden = self.activation(up) if", "hidden = self.activation(up.flip(-1)) if"
    ),
}
CHECKED = "check_rate(dropout)"
CALL = "def forward(self, x: Tensor) -> Tensor:"
OTHERWISE = {
    "another name": Patch(FILE, "self.up = nn.Linear(", "self.up = self.rising = nn.Linear("),
    "another shape": Patch(
        FILE, "self.down = nn.Linear(d_ff, d_model, b", "self.down = nn.Linear(d_ff, d_model + 1, b"
    ),
    "another argument": Patch(FILE, "d_ff: int, dropout: float = 0.0", "d_ff: int, rate: float = 0.0", "FeedForward"),
    "another input": Patch(FILE, CALL, "def forward(self, states: Tensor) -> Tensor:", "FeedForward"),
    "another result": Patch(FILE, "return y", "return y, hidden"),
    "another number format": Patch(FILE, "return y", "return y.float()"),
    "rounded to float32": Patch(FILE, "return y", "return y.float().double()"),
    "a refusal": Patch(
        FILE, CHECKED, f"{CHECKED}\n        if d_model % 2:\n            raise ValueError('an odd width')"
    ),
    "an error in each call": Patch(FILE, "check_width(x, self.d_model)", "raise RuntimeError"),
}


@pytest.fixture(scope="module")
def known(warm: LentFactory) -> Mapping[str, Known]:
    with witness([], {"FeedForward"}, variant=CANONICAL, warm=warm, tries=48) as judge:
        return judge.implementation.learned()


def bound(patch: Patch, warm: LentFactory, known: Mapping[str, Known] | None = None):
    defect: Defect = replace(defects()["ffn-act-silu"], patches=(patch,))
    with witness([defect], {"FeedForward"}, variant=CANONICAL, warm=warm, tries=48, known=known) as judge:
        (found,) = judge.implementation.bounds()
    return found


@pytest.fixture
def probed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of components for which a search was made."""
    names: list[str] = []
    probe = engine.probe

    def noted(subject, *arguments, **options):
        names.append(subject.name)
        return probe(subject, *arguments, **options)

    monkeypatch.setattr(engine, "probe", noted)
    return names


@pytest.mark.parametrize("case", ALIKE)
def test_what_is_built_and_called_alike_is_bound_without_a_search(
    case: str, warm: LentFactory, known: Mapping[str, Known], probed: list[str]
) -> None:
    found = bound(ALIKE[case], warm, known)
    assert probed == []
    searched = bound(ALIKE[case], warm)
    assert probed == ["FeedForward"]
    for name in ("construct", "call", "offers", "limits", "dtype", "precision", "fits", "weights_output"):
        assert getattr(found, name) == getattr(searched, name), name
    assert found.rules == known["FeedForward"].after.rules


@pytest.mark.parametrize("case", OTHERWISE)
def test_what_is_new_is_looked_for(case: str, warm: LentFactory, known: Mapping[str, Known], probed: list[str]) -> None:
    """Would break if a binding were taken over on trust: weights would be written where there are none."""
    bound(OTHERWISE[case], warm, known)
    assert probed == ["FeedForward"]
