"""Which slip gives the numbers of a wrong result is found by trying, and never made up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest

from conformkit.conformance.assertions.experiments import experiment
from conformkit.conformance.assertions.observed import Observed
from conformkit.conformance.assertions.steps import Slip, operations, slips, with_slip
from conformkit.conformance.driver.errors import ImplementationFailure, WorkerLost
from conformkit.conformance.findings.altered import Altered
from conformkit.spec import multi_head_attention
from conformkit.spec.arrays import Array
from conformkit.spec.components import component

_SIZES = {
    "vocab_size": 7, "d_model": 4, "num_heads": 2, "kv_heads": 2, "head_width": 2, "num_layers": 2, "d_ff": 5,
    "block_size": 6, "max_len": 6, "num_segments": 2, "pad_id": 0, "causal": True,
}  # fmt: skip
Arrays = Mapping[str, Array]


class Case:
    """A component of the definition with drawn weights, and one call of it."""

    def __init__(
        self, name: str, sizes: Mapping[str, int] | None = None, method: str | None = None, **inputs: Array
    ) -> None:
        self.component, self.inputs, self.sizes = component(name), inputs, {**_SIZES, **(sizes or {})}
        draws = np.random.default_rng(3)
        parameters = self.component.parameters(self.sizes, self.component.base)
        drawn = {name: draws.normal(size=one.shape) for name, one in parameters.items()}
        self.weights = {n: 1 + 0.1 * array if "norm" in n and "weight" in n else array for n, array in drawn.items()}
        self._forward = self.component.method(method).forward if method else self.component.forward

    def right(self, weights: Arrays, inputs: Arrays) -> Array:
        assert self._forward is not None
        return self._forward(weights, inputs, self.sizes, self.component.base)

    def said(self, got: Array) -> str:
        call = Observed(got, self.inputs, frozenset({"mask"}), weights=self.weights, defined=self.right)
        return str(experiment(got, self.right(self.weights, self.inputs), 1e-9, [call]) or "")


def _x(*shape: int) -> Array:
    return np.random.default_rng(1).normal(size=shape)


def _ids(*shape: int) -> Array:
    return np.random.default_rng(1).integers(1, 7, shape)


def _bert(method: str | None = None) -> Case:
    return Case("BertModel", method=method, ids=_ids(2, 5), segments=_ids(2, 5) % 2)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"norm1.bias": np.zeros_like}, "without `norm1.bias`"),
        ({"attention.q.weight": np.transpose}, "with `attention.q.weight` transposed"),
        ({"norm2.weight": np.ones_like}, "without `norm2.weight`"),
    ],
    ids=["bias-missing", "transposed", "scale-missing"],
)
def test_a_slip_with_one_weight_is_said(changed: Mapping[str, Any], said: str) -> None:
    """A bias that is never added would have no name at all where no known mistake is like it."""
    case = Case("TransformerBlock", x=_x(2, 5, 4))
    weights = {name: changed.get(name, np.asarray)(array) for name, array in case.weights.items()}
    assert case.said(case.right(weights, case.inputs)) == f"it is what it should be {said}"


def test_two_parts_that_are_exchanged_are_both_said() -> None:
    """One of two names alone would send people to the wrong line."""
    case = Case("MultiHeadAttention", x=_x(2, 5, 4))
    mine, theirs = "q.weight", "k.weight"
    weights = {**case.weights, mine: case.weights[theirs], theirs: case.weights[mine]}
    assert case.said(case.right(weights, case.inputs)) in {
        "it is what it should be with `k` and `q` exchanged", "it is what it should be with `q` and `k` exchanged",
    }  # fmt: skip


def test_of_two_parts_the_one_that_is_used_twice_is_said() -> None:
    """Where attention is silent, its norm shows nowhere: one norm for both halves is not two that are exchanged."""
    case = Case("TransformerBlock", x=_x(2, 5, 4))
    silent = {name: array * (not name.startswith("attention.out")) for name, array in case.weights.items()}
    case.weights = silent
    norm = {f"norm2.{last}": silent[f"norm1.{last}"] for last in ("weight", "bias")}
    got = case.right({**silent, **norm}, case.inputs)
    assert case.said(got) == "it is what it should be with `norm1` in place of `norm2`"


def test_a_pooler_that_is_not_applied_is_said() -> None:
    """Only the step that reads the first position has what the map would read."""
    case = _bert("pool")
    hidden = _bert().right(case.weights, case.inputs)
    assert case.said(np.tanh(hidden[:, 0])) == "it is what it should be without `pooler`"


def test_another_activation_of_a_pooler_is_said() -> None:
    """Would break if only activations between two maps were tried: the pooler's is the last step."""
    case = _bert("pool")
    slip = next(
        s for s in slips(operations(case.right, case.weights, case.inputs)) if s.function == "ReLU" and s.takes == 0
    )
    wrong = with_slip(case.right, case.weights, case.inputs, slip)
    assert case.said(wrong) == "it is what it should be with ReLU in place of tanh after `pooler`"


@pytest.mark.parametrize(
    "said",
    [
        "without what `layers.….attention.out` is added to",
        "without what follows the map by `layers.….feed_forward.up`",
        "without `layers.….norm1`",
        "with the opposite sign of `layers.….attention.out`",
        "with ReLU in place of the activation after `layers.….feed_forward.up`",
    ],
)
def test_a_slip_in_the_steps_is_said_in_every_layer(said: str) -> None:
    """A shortcut, an activation or a norm that is missing in each of two layers is one slip, not two."""
    case = _bert()
    slip = next(
        one for one in slips(operations(case.right, case.weights, case.inputs)) if one.change.told(one.names) == said
    )
    wrong = with_slip(case.right, case.weights, case.inputs, slip)
    assert case.said(wrong) == f"it is what it should be {said}"


def _normalized(shares: Array) -> Array:
    return shares / shares.sum(axis=-1, keepdims=True)


def _share(scores: Array) -> Array:
    return _normalized(np.exp(scores))


_TRI = np.tri(5, dtype=np.bool_)
_ATTENTIONS: Mapping[str, Callable[[Array], Array]] = {
    "scores are limited to ±1": lambda it: _share(np.where(_TRI, it.clip(-1, 1), -np.inf)),
    "0.01 is added to each exponential": lambda it: _normalized(
        _TRI * np.exp(it - np.where(_TRI, it, -np.inf).max(axis=-1, keepdims=True)) + 0.01
    ),
    "1 is added to the sum of the exponentials": lambda it: (
        (e := np.exp(np.where(_TRI, it, -np.inf))) / (1 + e.sum(axis=-1, keepdims=True))
    ),
    "1 is added to the sum of the exponentials, after their maximum is subtracted": lambda it: (
        (w := _share(np.where(_TRI, it, -np.inf))) / (1 + w.max(axis=-1, keepdims=True))
    ),
    "the mask is applied after the softmax": lambda it: _share(it) * _TRI,
    "the mask is applied after the softmax, and the rest is divided by its sum + 0.1": lambda it: (
        (w := _share(it) * _TRI) / (w.sum(axis=-1, keepdims=True) + 0.1)
    ),
    "hidden scores are 0, not −∞": lambda it: _share(it * _TRI),
    "hidden scores are −10, not −∞": lambda it: _share(np.where(_TRI, it, -10.0)),
    "the first position also sees the second": lambda it: _share(np.where(_TRI[[1, 1, 2, 3, 4]], it, -np.inf)),
    "each position also sees the next one": lambda it: _share(np.where(np.tri(5, k=1) > 0, it, -np.inf)),
    "nothing is hidden": _share,
}
"""Weights of attention made of scores (B, H, 5, 5), each with one slip that is written as people write it."""


_HEADS = np.array([0, 2, 0, 2])
_SUMS: Mapping[str, Callable[[Array, Array], Array]] = {
    **{said: lambda it, v, of=of: of(it) @ v for said, of in _ATTENTIONS.items()},
    "values are in reverse order": lambda it, v: _share(np.where(_TRI, it, -np.inf)) @ v[..., ::-1, :],
    "keys are one place early": lambda it, v: _share(np.where(_TRI, np.roll(it, -1, axis=-1), -np.inf)) @ v,
    "values of 2 groups are tiled, not repeated": lambda it, v: _share(np.where(_TRI, it, -np.inf)) @ v[:, _HEADS],
}


@pytest.mark.parametrize("said", _SUMS)
@pytest.mark.parametrize("name", ["MultiHeadAttention", "TransformerBlock"])
def test_what_is_done_to_scores_masks_weights_and_values_is_said(
    name: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would break for each limit, constant, mask or order that is not tried: no weight or input gives the numbers."""
    grouped = {"num_heads": 4, "d_model": 8, "d_ff": 5} if "groups" in said else {}
    case = Case(name, grouped, x=_x(2, 5, 8 if grouped else 4))

    def attend(q: Array, k: Array, v: Array, mask: Array, **_: Any) -> Array:
        del mask
        return _SUMS[said](q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]), v)

    with monkeypatch.context() as other:
        other.setattr(multi_head_attention, "scaled_dot_product_attention", attend)
        wrong = case.right(case.weights, case.inputs)
    assert case.said(wrong) == f"it is what it should be if {said}"


@pytest.mark.parametrize("name", ["TransformerBlock", "BertModel", "TinyTransformerLM"])
def test_noting_the_steps_changes_no_number(name: str) -> None:
    """A definition that gave something else when its steps are noted would explain what nobody did."""
    ids, x = {"ids": _ids(2, 5)}, {"x": _x(2, 5, 4)}
    case = Case(name, **(x if name == "TransformerBlock" else ids | ({"segments": ids["ids"] % 2})))
    nothing = Slip(("no such step", "", 0), Altered.ABSENT, ())
    got = with_slip(case.right, case.weights, case.inputs, nothing)
    assert got == pytest.approx(case.right(case.weights, case.inputs), rel=1e-12)


def test_numbers_that_no_slip_gives_are_not_explained() -> None:
    """What fits nearly must not be said: it would be a guess."""
    case = Case("TransformerBlock", x=_x(2, 5, 4))
    right = case.right(case.weights, case.inputs)
    assert not case.said(right + 0.1 * _x(2, 5, 4))
    without = {**case.weights, "norm1.bias": 0 * case.weights["norm1.bias"]}
    assert not case.said(case.right(without, case.inputs) + 1e-3 * _x(2, 5, 4))


class Code:
    """A function as the code under test, which may be called again: rows are summed over positions."""

    def __init__(self, function: Any, **given: Array) -> None:
        self.function, self.given, self.asked = function, given, 0

    def again(self, given: Arrays) -> Array:
        self.asked += 1
        return np.asarray(self.function(**given))

    def said(self, want: Array, *, rows: Any = ..., steady: bool = True) -> str:
        out = self.again(self.given)
        call = Observed(out, self.given, frozenset({"mask"}), self.again, steady)
        return str(experiment(out[rows], want[rows], 1e-9, [call]) or "")


def _summed(x: Array, mask: Array | None = None) -> Array:
    return x * (1 if mask is None else mask[..., None]) + 1.0


def test_an_argument_without_effect_is_said() -> None:
    """A mask that is taken and not used looks like any wrong number."""
    x, mask = _x(3, 5, 4), np.arange(5) < np.array([[5], [3], [2]])
    code = Code(lambda x, mask=None: _summed(x), x=x, mask=mask)
    assert code.said(_summed(x, mask), rows=np.s_[1:]) == "the same comes out without mask: it has no effect"


def test_an_argument_that_need_not_have_an_effect_is_not_said() -> None:
    """With silent sublayers a mask changes nothing in right code: a missing scale would be called a missing mask."""
    x, mask = _x(3, 5, 4), np.tri(5, dtype=np.bool_)
    case = Case("MultiHeadAttention", x=x, mask=mask)
    silent = {**case.weights, "out.weight": 0 * case.weights["out.weight"]}
    call = Observed(x, case.inputs, frozenset({"mask"}), lambda given: given["x"], weights=silent, defined=case.right)
    assert experiment(x, case.right(silent, case.inputs) + 1.0, 1e-9, [call]) is None


def test_an_inverted_argument_is_said() -> None:
    """A mask with the other convention gives the right result for the opposite mask."""
    x, mask = _x(3, 5, 4), np.arange(5) < np.array([[5], [3], [2]])
    code = Code(lambda x, mask=None: _summed(x, ~mask), x=x, mask=mask)
    assert code.said(_summed(x, mask)) == "what it should be comes out with mask inverted"


def test_a_row_that_is_right_alone_is_said() -> None:
    """A mean over the batch is seen only in a batch."""
    x = _x(3, 5, 4)
    code = Code(lambda x: x - x.mean(axis=0) * (len(x) > 1), x=x)
    assert code.said(x) == "what it should be comes out for a row that is alone in its batch"


def test_a_result_that_changes_from_call_to_call_is_said() -> None:
    """What a call leaves behind is no matter of the arguments."""
    code = Code(lambda x: x + code.asked, x=_x(2, 3, 4))
    assert code.said(code.given["x"]) == "the same call gives something else the second time"


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        (5, "it changes with later ids, which it must not see"),
        (None, "it changes with ids that the mask hides, which it must not see"),
        (1, "it does not change with the ids before it"),
    ],
    ids=["later", "hidden", "nothing-before"],
)
def test_what_a_wrong_row_of_a_causal_model_sees_is_said(ends: int | None, said: str) -> None:
    """A mask that replaces the causal one, or hides nothing, was told by its numbers alone."""
    ids, mask = _ids(2, 5), np.array([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]])
    table, alone = _x(8, 4), np.eye(5)
    seen = np.tri(5) if ends is None else alone if ends == 1 else np.ones((5, 5))

    def call(ids: Array, mask: Array | None = None) -> Array:
        shown = seen[None] * (1 if mask is None or ends is None else np.maximum(mask[:, None], alone))
        return shown @ table[ids] + np.arange(5)[:, None]

    given = {"ids": ids, "mask": mask}
    want = (np.tri(5) * np.maximum(mask[:, None], alone)) @ table[ids] + np.arange(5)[:, None] + 1e-3
    observed = Observed(call(**given), given, frozenset(), lambda given: call(**given), causal=True)
    rows = np.s_[1, 3:4] if ends is None else np.s_[0, 3:4]
    assert str(experiment(call(**given)[rows], want[rows], 1e-9, [observed])) == said


def test_a_call_that_fills_a_cache_is_not_made_again_as_it_was() -> None:
    """It would be longer the second time, and be called unsteady."""
    code = Code(lambda x: x + code.asked, x=_x(2, 3, 4))
    assert "second time" not in code.said(code.given["x"], steady=False)


def test_an_experiment_that_fails_tells_nothing() -> None:
    """Code that refuses a call without a mask must not turn a failure into a traceback."""

    def strict(x: Array, mask: Array | None = None) -> Array:
        if mask is None or not mask[0, 0] or len(x) < 3:
            raise RuntimeError
        return x * 3.0 + np.arange(4)

    code = Code(strict, x=_x(3, 5, 4), mask=np.arange(5) < np.array([[5], [3], [2]]))
    assert not code.said(_x(3, 5, 4) + 7)


@pytest.mark.parametrize(
    ("trouble", "calls"),
    [(ImplementationFailure("exception", "ValueError", "no"), 5), (WorkerLost("timeout", "20 s"), 1)],
    ids=["refused", "lost"],
)
def test_code_that_is_lost_in_an_experiment_is_not_called_again(trouble: Exception, calls: int) -> None:
    """A call that never ends would cost its time limit once for each experiment."""

    def code(x: Array) -> Array:
        if counted.asked > 1:
            raise trouble
        return x + 7.0

    counted = Code(code, x=_x(3, 5, 4))
    assert not counted.said(_x(3, 5, 4) ** 2)
    assert counted.asked == 1 + calls


def test_methods_are_worked_out_with_their_own_definition() -> None:
    """The call's definition for a method's result would never agree."""
    pooled = _bert("pool")
    assert partial(pooled.right, pooled.weights)(pooled.inputs).shape == (2, 4)


@pytest.mark.parametrize("kind", [np.bool_, np.int64, np.complex128, np.str_])
def test_what_is_no_array_of_numbers_costs_no_verdict(kind: type) -> None:
    """Would break if truth values were subtracted: an error of the kit in place of a failure."""
    got, want = np.array([[0, 1], [1, 0]]).astype(kind), np.array([[0, 1], [1, 1]]).astype(kind)
    call = Observed(got, {"x": _x(2, 2)}, frozenset())
    assert experiment(got, want, 0.0, [call]) is None
