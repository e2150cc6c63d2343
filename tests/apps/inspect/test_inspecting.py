"""What `conform inspect` detects: each mistake that it is made for, in a small model, and nothing in right ones."""

import dataclasses
import json
import math
import sys

import jsonschema
import numpy as np
import pytest

from conformkit.conformance.apps.inspect.inspect import InspectionFailed, InspectRequest, inspect
from conformkit.conformance.apps.inspect.inspection import Part
from conformkit.conformance.apps.inspect.json_form import as_json, schema
from conformkit.conformance.apps.inspect.terminal import write
from conformkit.conformance.defects import Patch
from conformkit.conformance.diagnosis.patching import write_reference
from conformkit.conformance.driver.client.interface import Reply
from conformkit.conformance.driver.client.replies import check_reply
from conformkit.conformance.driver.errors import ProtocolError
from conformkit.conformance.driver.worker.frameworks.numpy import Numpy
from conformkit.conformance.driver.worker.observing import Notes
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.report.terminal import console
from conformkit.spec.variants import CANONICAL

RESIDUAL = "            x = x + self.attention(self.norm1(x), mask)"
UP = "        up = self.up(x)  # (…, F)"
SCORES = "scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)  # (…, Tq, Tk)"


@pytest.fixture
def seen(tmp_path):
    """Return a function that inspects the reference with something replaced in it."""

    def look(file="", find="", replace="", variant=CANONICAL, **options):
        patches = [Patch(file, find, replace)] if file else []
        folder = write_reference(tmp_path / "mine", patches, variant)
        return inspect(InspectRequest(str(folder), isolation="none", **options))

    return look


def problems(found):
    return [f"{item.place}: {item.problem}" for item in found.conspicuous]


def test_nothing_stands_out_in_the_reference_and_every_part_is_there(seen):
    found = seen()
    assert problems(found) == []
    parts = {part.name: part for part in found.parts}
    assert parts["blocks.0.feed_forward.up"].shape == (5, 20, 192)
    assert parts[""].shape == (5, 20, 65)
    assert (parts["blocks.3.feed_forward"].dead, parts["blocks.3.feed_forward"].units) == (0, 192)
    weights = {weight.name: weight for weight in found.weights}
    assert weights["blocks.0.attention.q.weight"].count == 48 * 48
    assert all(weight.gradient > 0 for weight in found.weights)
    assert [heads.part for heads in found.heads] == [f"blocks.{n}.attention" for n in range(4)]
    assert all(len(heads.entropy) == 3 and min(heads.entropy) > 1.9 for heads in found.heads)
    assert found.loss == pytest.approx(math.log(65), abs=0.5)


def test_the_entropy_is_that_of_the_weights(seen):
    found = seen("attention.py", SCORES, "scores = 0.0 * (q @ k.transpose(-2, -1))", component="MultiHeadAttention")
    (heads,) = found.heads
    assert heads.most == pytest.approx(sum(math.log(t) for t in range(1, 21)) / 20)
    assert heads.entropy == pytest.approx([heads.most] * 3)
    assert problems(found)[0] == "the whole: heads 0, 1, 2: all positions have equal weights"


MASKED = "        if self.causal:"


def test_a_mask_that_does_not_reach_the_scores_is_a_leak(seen):
    found = seen("multi_head_attention.py", MASKED, "        if self.causal and self.num_heads > 9:")
    first = problems(found)[0]
    assert first.startswith("blocks.0.attention: heads 0, 1, 2: 0.")
    assert first.endswith("of the weight is on later positions")


def test_the_distance_is_that_of_the_weights(seen):
    found = seen("attention.py", SCORES, "scores = 0.0 * (q @ k.transpose(-2, -1))", component="MultiHeadAttention")
    (heads,) = found.heads
    assert heads.distance == pytest.approx([sum(t / 2 for t in range(20)) / 20] * 3)  # equal weights on 0 … t
    assert heads.future == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("component", ["Transformer", "DecoderLayer", "EncoderLayer", "CrossAttention"])
def test_an_encoder_decoder_is_inspected_and_nothing_stands_out(seen, component):
    found = seen(component=component, tokens=7)
    assert problems(found) == []
    assert found.component == component
    assert all(weight.gradient is not None for weight in found.weights)
    kinds = {heads.part.rpartition(".")[2] for heads in found.heads}
    assert kinds == {
        "Transformer": {"attention", "self_attention", "cross_attention"},
        "DecoderLayer": {"self_attention", "cross_attention"}, "EncoderLayer": {"attention"}, "CrossAttention": {""},
    }[component]  # fmt: skip
    if component == "Transformer":
        assert found.loss == pytest.approx(math.log(65), abs=0.5)
        assert {weight.owner.partition(".")[0] for weight in found.weights} >= {"encoder", "decoder", "head"}


@pytest.mark.parametrize("component", ["BertForPreTraining", "VisionTransformer"])
def test_an_encoder_alone_is_inspected_and_nothing_stands_out(component):
    found = inspect(InspectRequest("conformkit.reference", component=component, tokens=7, isolation="none"))
    assert problems(found) == []
    assert len(found.heads) == 4
    assert all(len(heads.distance) == 3 for heads in found.heads)


def test_a_part_of_an_encoder_decoder_that_no_gradient_reaches_is_named(seen):
    find = "            x = x + self.cross_attention(self.norm2(x), memory, memory, memory_mask)"
    replace = "            x = x + self.cross_attention(self.norm2(x), memory, memory, memory_mask).detach()"
    found = seen("seq2seq/decoder.py", find, replace, component="DecoderLayer")
    assert any("cross_attention.q.weight" in line and "no gradient arrives" in line for line in problems(found))


def test_relu_units_that_are_dead_are_counted(seen):
    found = seen("feed_forward.py", UP, "        up = self.up(x) - 10.0 * (torch.arange(self.up.out_features) < 100)",
                 CANONICAL.but(activation="relu"))  # fmt: skip
    assert "blocks.0.feed_forward: 100 of 192 units are 0 at every position: dead" in problems(found)


def test_gelu_units_that_are_dead_are_counted(seen):
    found = seen("feed_forward.py", UP, "        up = self.up(x) - 20.0")
    assert "blocks.2.feed_forward: 192 of 192 units are 0 at every position: dead" in problems(found)


def test_a_residual_added_twice_explodes(seen):
    found = seen("block.py", RESIDUAL, "            x = x + x + self.attention(self.norm1(x), mask)")
    assert problems(found)[0].startswith("blocks.0 … blocks.3: the output grows from ")


def test_weights_that_start_huge_explode(seen):
    found = seen("feed_forward.py", UP, "        up = 1e6 * self.up(x)")
    assert any("its output reaches" in line and "explodes" in line for line in problems(found))


def test_a_head_without_entropy_is_named(seen):
    sharp = "scores = q @ k.transpose(-2, -1) * torch.tensor([1.0, 1e4, 1.0])[:, None, None]"
    found = seen("attention.py", SCORES, sharp, component="MultiHeadAttention")
    assert problems(found) == ["the whole: head 1: entropy near 0, each query attends to one position only"]


def test_parameters_that_no_gradient_reaches_are_listed(seen):
    found = seen("block.py", RESIDUAL, "            x = x + self.attention(self.norm1(x), mask).detach()")
    (line,) = problems(found)
    assert line == (
        "parameters blocks.0.attention.q.weight, blocks.0.attention.k.weight, blocks.0.attention.v.weight, "
        "blocks.0.attention.out.weight and 20 more: no gradient arrives"
    )


def test_a_gradient_of_zero_is_another_thing_than_none(seen):
    found = seen("block.py", RESIDUAL, "            x = x + 0.0 * self.attention(self.norm1(x), mask)")
    assert any("the gradient is exactly 0" in line for line in problems(found))


def test_a_stream_that_is_replaced_lets_the_gradient_vanish(seen):
    found = seen("block.py", RESIDUAL, "            return 0.05 * self.feed_forward(self.attention(x, mask))")
    assert any(line.startswith("blocks: the gradient falls from ") for line in problems(found))


def test_the_first_part_that_is_not_finite_is_named_alone(seen):
    found = seen("feed_forward.py", UP, "        up = self.up(x) / (self.up(x) > 9).float().mean()")
    assert problems(found) == ["blocks.0.feed_forward.dropout: 19200 of 19200 numbers are NaN or infinite, here first"]


@pytest.mark.full(guard="test_parameters_that_no_gradient_reaches_are_listed")
def test_an_overconfident_untrained_model_is_reported_with_its_loss(seen):
    found = seen("model.py", "logits: Tensor = self.head(x)", "logits: Tensor = 40.0 * self.head(x)")
    assert problems(found)[-1].startswith("logits: the loss on uniformly drawn ids is ")


def test_numpy_shows_parts_entropy_and_dead_units_and_no_gradients(tmp_path):
    text = (
        "import numpy as np\n"
        "class MLP:\n"
        "    def __init__(self, d_model, d_ff):\n"
        "        self.W1, self.W2 = np.random.randn(d_model, d_ff), np.random.randn(d_ff, d_model)\n"
        "        self.b1 = np.where(np.arange(d_ff) < 60, -1e3, 0.0)\n"
        "    def __call__(self, x):\n"
        "        return np.maximum(0, x @ self.W1 + self.b1) @ self.W2\n"
        "FeedForward = MLP\n"
    )
    (tmp_path / "mine.py").write_text(text)
    found = inspect(InspectRequest(str(tmp_path / "mine.py"), isolation="none"))
    assert (found.component, found.differentiated) == ("FeedForward", False)
    assert problems(found) == ["the whole: 60 of 192 units are 0 at every position: dead"]


def test_arrays_and_classes_of_numpy_are_as_before_once_it_was_called():
    class Linear:
        def __init__(self):
            self.weight = np.eye(3)

        def __call__(self, x):
            return x @ self.weight

    component, call, notes = Linear(), Linear.__call__, Notes(2, 5)
    weight = component.weight
    with Numpy().observed(component, notes):
        component(np.ones((2, 3)))
    assert component.weight is weight
    assert Linear.__call__ is call
    assert notes.header()["parts"][0]["shape"] == [2, 3]


def test_sizes_seed_and_component_are_the_requested_ones(seen):
    found = seen(component="TransformerBlock", sizes={"d_model": 24, "num_heads": 4}, batch=2, tokens=7, seed=3)
    assert (found.component, found.inputs, found.seed) == ("TransformerBlock", (2, 7, 24), 3)
    assert len(found.heads[0].entropy) == 4


def test_what_it_raises_is_a_sentence_with_its_line(seen):
    with pytest.raises(InspectionFailed, match="raised IndexError: far") as caught:
        seen("block.py", RESIDUAL, '            raise IndexError("far")')
    assert "block.py" in caught.value.where


def test_a_size_that_it_refuses_is_a_sentence(seen):
    with pytest.raises(InspectionFailed, match="d_model"):
        seen(component="MultiHeadAttention", sizes={"d_model": 25})


def test_a_component_that_is_not_exported_is_named_with_those_that_are(tmp_path):
    (tmp_path / "mine.py").write_text("def scaled_dot_product_attention(q, k, v, mask=None): return v\n")
    with pytest.raises(LoadFailure, match="exports no FeedForward") as caught:
        inspect(InspectRequest(str(tmp_path / "mine.py"), component="FeedForward", isolation="none"))
    assert caught.value.advice == ("it exports ScaledDotProductAttention",)


@pytest.mark.parametrize(
    "spoil",
    [
        {"rms": float("inf")},
        {"rms": -1.0},
        {"rms": "1"},
        {"dead": True},
        {"shape": [-1]},
        {"name": 3},
    ],
    ids=["infinite", "negative", "text", "flag", "extent", "name"],
)
def test_a_reply_with_improper_numbers_is_refused(spoil):
    part = {
        "name": "",
        "kind": "X",
        "shape": [1],
        "rms": 1.0,
        "largest": 1,
        "broken": 0,
        "calls": 1,
        "dead": 0,
        "units": 0,
    }
    header = {"seq": 1, "ok": True, "attention": [], "parts": [part]}
    check_reply({"op": "trace"}, 1, Reply(header, {"out": None}))
    with pytest.raises(ProtocolError, match="no proper parts"):
        check_reply({"op": "trace"}, 1, Reply({**header, "parts": [part | spoil]}, {"out": None}))


def test_json_satisfies_the_schema_whatever_is_found(seen):
    found = seen("feed_forward.py", UP, "        up = self.up(x) / 0.0")
    data = json.loads(as_json(found))
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(data, schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data | {"parts": [{}]}, schema())


def test_the_table_fits_sixty_columns_and_hostile_names_are_text(seen, capsys):
    found = seen()
    hostile = Part("a" * 70 + "[red]\x1b[31m", "X", (5, 20, 48), 1.0, 1.0, 0, 1, 0, 0)
    write(dataclasses.replace(found, parts=[*found.parts, hostile]), console(sys.stdout, "never", 60))
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 60
    assert "\x1b" not in text
    assert "[red]" in text.replace("\n", "")
    assert "Nothing stands out" in text
