"""The form in which a model takes a mask of padding is the one that hides: it is found by calls."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np
import pytest

from conformkit.conformance.assertions.checks import NotApplicable
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence import padded_texts

IDS = np.array([[3, 1, 4], [1, 5, 2]])


@dataclass
class Model:
    """Logits are sums of the ids that a mask shows; in all but one form the mask is not read."""

    read: str
    refused: str = ""
    padding: bool = True
    form: str = ""
    precision: str = "float64"
    bound: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(causal="always", dtype="float64"))
    instance: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(sizes={"vocab_size": 7}))

    @property
    def call_arguments(self):
        return SimpleNamespace(mask="mask", mask_forms=("ones", "hidden", "added"), mask_is_padding=self.padding)

    def requires(self, what):
        assert what == "mask"

    def __call__(self, ids, mask=None):
        if mask is not None and self.form == self.refused:
            raise ImplementationFailure("exception", "TypeError", "not this form")
        shown = mask if mask is not None and self.form == self.read else np.ones(ids.shape)
        return np.cumsum(ids * shown, axis=1)[..., None] + 1.0


@pytest.fixture
def found(monkeypatch):
    """Return what finds the form of a model."""
    monkeypatch.setattr(padded_texts, "placed", lambda path, _draw: path)
    monkeypatch.setattr(padded_texts, "built", lambda model, _draw: model)
    monkeypatch.setattr(padded_texts, "draw_ids", lambda *_: IDS)
    monkeypatch.setattr(padded_texts, "own_tolerance", lambda _: 1e-9)

    def form(**about):
        return padded_texts.masked(Model(**about), Draw(0, "mask")).form

    return form


@pytest.mark.parametrize("read", ["ones", "hidden", "added"])
def test_the_form_that_hides_is_taken(found, read):
    """Would break if the first form were taken, which this model does not read."""
    assert found(read=read) == read
    assert found(read=read, padding=False) == read


@pytest.mark.parametrize(
    ("precision", "filled", "dtype"),
    [("float32", -np.inf, "float32"), ("float32", 0.0, "float64"), ("float64", -np.inf, "float64")],
)
def test_padding_is_judged_in_float32_where_only_float64_overflows(monkeypatch, precision, filled, dtype):
    """Without a key a row is NaN in float64 where float32 weights are filled with the least float64; users see none."""

    class Filled(Model):
        def __call__(self, ids, mask=None, positions=None):
            got = super().__call__(ids, mask)
            if positions is not None and self.bound.dtype == "float64" and filled:
                got[:, :2] = np.nan
            return got

    def built(model, _draw, *, dtype="float64"):
        return replace(model, bound=SimpleNamespace(causal="always", dtype=dtype))

    monkeypatch.setattr(padded_texts, "placed", lambda path, _draw: path)
    monkeypatch.setattr(padded_texts, "built", built)
    monkeypatch.setattr(padded_texts, "draw_ids", lambda *_: np.arange(10).reshape(2, 5))
    monkeypatch.setattr(padded_texts, "batch", lambda *_: 2)
    monkeypatch.setattr(padded_texts, "own_tolerance", lambda _: 1e-9)
    assert padded_texts.masked(Filled(read="ones", precision=precision), Draw(0, "mask")).bound.dtype == dtype


def test_a_form_that_is_refused_is_passed_over(found):
    assert found(read="hidden", refused="ones") == "hidden"
    assert found(read="none", refused="ones") == "hidden"


def test_a_mask_of_padding_that_hides_nothing_is_judged_in_its_first_form(found):
    assert found(read="none") == "ones"


def test_another_mask_that_hides_nothing_is_not_judged(found):
    with pytest.raises(NotApplicable, match="does not say which ids of a batch"):
        found(read="none", padding=False)


def test_a_mask_that_makes_a_model_causal_is_not_judged(monkeypatch):
    model = Model(read="ones", bound=SimpleNamespace(causal="mask"))
    monkeypatch.setattr(padded_texts, "placed", lambda path, _draw: path)
    monkeypatch.setattr(padded_texts, "built", lambda model, _draw: model)
    with pytest.raises(NotApplicable, match="is what makes it causal"):
        padded_texts.masked(model, Draw(0, "mask"))
