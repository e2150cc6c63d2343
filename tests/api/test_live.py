"""What a notebook has just defined is judged where it lives, under the contract's names."""

import sys
from dataclasses import FrozenInstanceError
from typing import get_type_hints

import pytest
import torch

from conformkit.conformance import check
from conformkit.conformance.api.embed import parametrize_with_clauses
from conformkit.conformance.engine.request import RunOptions, RunRequest


def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9) if mask.dtype is torch.bool else scores + mask
    return torch.softmax(scores, dim=-1) @ v


def unscaled(q, k, v, mask=None):
    return scaled_dot_product_attention(q * q.shape[-1] ** 0.5, k, v, mask)


class FeedForward(torch.nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.up, self.down = torch.nn.Linear(d_model, d_ff), torch.nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.down(torch.nn.functional.gelu(self.up(x)))


SCALE = ("SDPA-SCALE",)


def test_a_function_of_the_contracts_name_is_judged():
    report = check(scaled_dot_product_attention, only=SCALE)
    assert [result.verdict for result in report.results] == ["pass"]
    assert (report.isolation, report.framework.split()[0]) == ("none", "torch")


def test_a_mapping_gives_an_object_its_name():
    report = check({"scaled_dot_product_attention": unscaled}, only=SCALE)
    assert [result.verdict for result in report.results] == ["fail"]


def test_a_class_is_constructed_as_in_a_run():
    report = check(FeedForward, only=("FFN-ORACLE", "FFN-HIDDEN"))
    assert {result.verdict for result in report.results} == {"pass"}


def test_nothing_of_it_stays_behind():
    before = set(sys.modules)
    check(scaled_dot_product_attention, only=("SDPA-OUT-SHAPE",))
    assert not {name for name in set(sys.modules) - before if name.startswith("conform_live")}


def test_a_name_outside_the_contract_is_reported_with_the_nearest_one():
    class MultiheadAttention(torch.nn.Module):
        pass

    with pytest.raises(ValueError, match=r"check\(\{'MultiHeadAttention': …\}\)"):
        check(MultiheadAttention)


def test_a_live_object_has_no_other_isolation():
    with pytest.raises(ValueError, match="put it into a file"):
        check(unscaled, isolation="process")


def test_a_notebook_shows_the_report():
    report = check({"scaled_dot_product_attention": unscaled}, only=SCALE)
    assert "SDPA-SCALE" in report._repr_markdown_()


@pytest.mark.parametrize(
    ("only", "missing"),
    [
        (("SDPA",), []),
        (("SDPA", "GEN"), ["TinyTransformerLM"]),
        (("SDPA", "BLOCK"), ["TransformerBlock"]),
        (("SDPA", "BLOCK-STACK-DISTINCT"), ["TinyTransformerLM"]),
        (("SDPA", "NUM"), []),
    ],
    ids=["its-own", "model", "block", "one-clause", "everything-that-is-there"],
)
def test_what_clauses_are_about_must_be_there(only, missing):
    report = check(scaled_dot_product_attention, only=only, diagnose=False)
    assert report.missing == missing
    assert not (missing and report.conforms)


def test_an_option_that_is_not_there_is_named_with_the_nearest():
    with pytest.raises(TypeError, match=r"check\(\) got an unexpected keyword argument 'profil'; nearest: profile"):
        check(scaled_dot_product_attention, profil="core")
    with pytest.raises(TypeError, match=r"parametrize_with_clauses\(\) .* 'xyzzy'; options: profile, level, only"):
        parametrize_with_clauses("mypkg", xyzzy=1)


def test_options_are_the_fields_of_a_request_and_have_their_types():
    of_request, of_options = get_type_hints(RunRequest), get_type_hints(RunOptions)
    assert of_options == {name: kind for name, kind in of_request.items() if name != "impl"}


def test_a_report_is_a_value():
    report = check(scaled_dot_product_attention, only=SCALE)
    with pytest.raises(FrozenInstanceError):
        report.results = []
