"""What a notebook has just defined is judged where it lives, under the contract's names."""

import sys
from dataclasses import FrozenInstanceError
from typing import get_type_hints

import pytest
import torch

from conformkit.conformance import check
from conformkit.conformance.api.checking import ShownReport
from conformkit.conformance.api.embed import parametrize_with_clauses
from conformkit.conformance.engine.request import RunOptions, RunRequest
from conformkit.spec.clauses import Level
from tests.report.samples import hostile


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
    own = {"impl", "limit"}  # the code, and what is set where a run of several profiles hands its time on
    assert of_options == {name: kind for name, kind in of_request.items() if name not in own}


def test_a_report_is_a_value():
    report = check(scaled_dot_product_attention, only=SCALE)
    with pytest.raises(FrozenInstanceError):
        report.results = []


class NarrowAttention(torch.nn.Module):
    """Right, except that the scores are divided by the root of all features."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads = num_heads
        self.q, self.k, self.v, self.o = (torch.nn.Linear(d_model, d_model, bias=False) for _ in range(4))

    def forward(self, x, mask=None):
        split = [p(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in (self.q, self.k, self.v)]
        scores = split[0] @ split[1].transpose(-2, -1) / x.shape[-1] ** 0.5
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1) if mask is None else ~mask
        return self.o((scores.masked_fill(hidden, -1e9).softmax(-1) @ split[2]).transpose(1, 2).flatten(2))


@pytest.fixture(scope="module")
def attention_report():
    return check({"MultiHeadAttention": NarrowAttention}, seed=3)


def test_a_class_is_judged_by_the_clauses_about_it_and_nothing_is_missing(attention_report):
    assert {result.clause.component for result in attention_report.results} == {"MultiHeadAttention", "all"}
    assert attention_report.missing == []
    assert "missing" not in str(attention_report)
    verdict = repr(attention_report).partition(": ")[2]
    assert verdict.startswith('{"MultiHeadAttention": NarrowAttention} does not conform')


def test_the_verdict_is_about_the_class_alone():
    """Would break if a right function did not conform because no model stands next to it."""
    report = check(scaled_dot_product_attention, diagnose=False)
    assert report.conforms, str(report)
    assert "scaled_dot_product_attention conforms to what core asks of it (spec" in repr(report)


def test_a_report_prints_as_in_a_terminal_and_its_repr_is_the_verdict(attention_report):
    text = str(attention_report)
    assert "FAIL MHA-SCALE-DHEAD · " in text
    assert len(text.splitlines()) < 80
    assert repr(attention_report).count("\n") == 0
    assert "does not conform" in repr(attention_report)
    assert len(attention_report.text(warnings=True)) > len(text)


def test_the_call_to_judge_a_clause_again_can_be_pasted(attention_report):
    line = next(line for line in str(attention_report).splitlines() if "MHA-SCALE-DHEAD" in line and "again" in line)
    call = line.partition("again:")[2].strip()
    again = eval(call)
    assert [result.clause.id for result in again.results] == ["MHA-SCALE-DHEAD"]
    assert again.results[0].message == attention_report.results[_place(attention_report, "MHA-SCALE-DHEAD")].message


def _place(report, clause_id):
    return [result.clause.id for result in report.results].index(clause_id)


def test_a_notebook_shows_html_without_style_script_or_markup_from_the_code(attention_report):
    page = attention_report._repr_html_()
    assert page.startswith("<div>")
    assert "<summary><b>FAIL MHA-SCALE-DHEAD</b>" in page
    assert "check({&#34;MultiHeadAttention&#34;: NarrowAttention}, only=" in page
    assert "<style" not in page
    assert "<script" not in page


def test_html_for_notebooks_escapes_what_an_implementation_says():
    page = ShownReport.of(hostile())._repr_html_()
    assert "<script" not in page
    assert "<img" not in page
    assert "</pre></style>" not in page


def test_a_level_may_be_given_as_a_word():
    assert check(scaled_dot_product_attention, only=SCALE, level="SHOULD").level is Level.SHOULD


def test_a_class_of_a_notebook_is_its_own(monkeypatch):
    """Would break if a class whose module has no file, as in a kernel, were taken for one of a library."""
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    made = type("FeedForward", (FeedForward,), {"__module__": "__main__"})
    assert [result.verdict for result in check(made, only=("FFN-SHAPE",)).results] == ["pass"]
