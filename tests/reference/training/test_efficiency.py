"""What saves memory changes no result: attention in blocks, blocks computed again. Linear attention is as defined."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from conformkit.reference import TinyTransformerLM
from conformkit.reference.attention import scaled_dot_product_attention
from conformkit.reference.attention_maps import attention_maps
from conformkit.reference.chunked_attention import chunked_attention, place_chunks
from conformkit.reference.errors import ShapeError, SizeError
from conformkit.reference.kv_cache import continue_ids
from conformkit.reference.linear_attention import linear_attention, place_linear
from conformkit.reference.masks import causal_mask
from conformkit.reference.recomputation import recompute_blocks, recomputed
from conformkit.reference.training.config import TrainingConfig, TrainingConfigError, recipe, with_changes
from conformkit.reference.training.loop import train
from conformkit.reference.training.memory import memory_estimate
from conformkit.reference.training.progress import Silent
from conformkit.reference.training.run import Run
from conformkit.reference.training.session import begin
from conformkit.reference.training.sessions import begin_run
from conformkit.spec.variants import CANONICAL, Variant
from tests.needs import optional
from tests.reference.training.test_memory import peak
from tests.reference.variants import every_variant

SMALL = {
    "model.d_model": 16, "model.num_heads": 2, "model.num_layers": 2, "model.d_ff": 24, "model.dropout": 0.2,
    "training.steps": 4, "training.batch_size": 4, "training.eval_batches": 1, "training.eval_interval": 2,
    "optimizer.warmup": 1, "optimizer.floor": 0.0,
}  # fmt: skip
KINDS = {
    "text": {}, "written-out": {"speed.fused": False}, "pairs": {"data.pairs": 60, "model.attention_dropout": 0.2},
    "bert": {"data.vocab_size": 270, "model.block_size": 21}, "vit": {},
}  # fmt: skip
RECIPES = {"text": "tiny", "written-out": "tiny", "pairs": "reverse", "bert": "bert-tiny", "vit": "vit-digits"}


def rows(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def begun(kind: str, corpus: Path, place: Path, changes: dict[str, Any]) -> Run:
    if kind == "vit":
        optional("sklearn")
    own = {} if kind in {"pairs", "vit"} else {"data.corpus": str(corpus)}
    found: Run = begin_run(with_changes(recipe(RECIPES[kind]), {**SMALL, **own, **KINDS[kind], **changes}), place).run
    return found


def gradients(run: Run) -> tuple[Tensor, list[Tensor]]:
    """Return the loss of an update and the gradients that it was made with."""
    torch.manual_seed(7)
    loss, _ = run.update()
    return loss, [parameter.grad.clone() for parameter in run.model.parameters() if parameter.grad is not None]


MASKS: dict[str, Callable[[], Tensor | None]] = {
    "none": lambda: None,
    "boolean": lambda: rows(6, 9, seed=5) > -1,
    "padding": lambda: (torch.arange(9) < torch.tensor([[9], [4]]))[:, None, None, :],
    "added": lambda: rows(3, 6, 9, seed=6),
    "a row for each query": lambda: rows(6, 1, seed=7),
    "keys alone": lambda: torch.arange(9) > 2,
}


@pytest.mark.parametrize("size", [1, 2, 4, 6, 50])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("causal", [True, False], ids=["causal", "both sides"])
def test_attention_in_blocks_is_the_plain_one(size: int, mask: str, causal: bool) -> None:
    """Would break if a block had the mask, the keys or the causal limit of another."""
    results = []
    for blocks in (True, False):
        q, k, v = (x.requires_grad_() for x in (rows(2, 3, 6, 4), rows(2, 3, 9, 4, seed=1), rows(2, 3, 9, 5, seed=2)))
        given = MASKS[mask]()
        if blocks:
            out = chunked_attention(q, k, v, given, size=size, causal=causal)
        else:
            seen = causal_mask(6, 9) if causal else torch.ones(6, 9, dtype=torch.bool)
            added = torch.zeros(6, 9, dtype=torch.float64).masked_fill(~seen, -math.inf)
            if given is not None:
                added = added.masked_fill(~given, -math.inf) if given.dtype == torch.bool else added + given
            out = scaled_dot_product_attention(q, k, v, added)
        results.append((out, *torch.autograd.grad((out * rows(2, 3, 6, 5, seed=3)).sum(), (q, k, v))))
    for got, want in zip(*results, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("window", [1, 2, 5, 100])
@pytest.mark.parametrize("size", [1, 3, 4, 20])
def test_local_attention_in_blocks_is_the_windowed_one(window: int, size: int) -> None:
    q, k, v = rows(2, 7, 4), rows(2, 11, 4, seed=1), rows(2, 11, 4, seed=2)
    distance = torch.arange(4, 11)[:, None] - torch.arange(11)
    want = scaled_dot_product_attention(q, k, v, (distance >= 0) & (distance < window))
    torch.testing.assert_close(chunked_attention(q, k, v, size=size, causal=True, window=window), want)


def operations(work: Callable[[], object]) -> int:
    with FlopCounterMode(display=False) as counter:
        work()
    return counter.get_total_flops()


def test_local_attention_in_blocks_costs_as_much_for_each_position() -> None:
    """Would break if keys outside the window were multiplied and then hidden."""

    def cost(length: int, window: int) -> int:
        x = rows(1, length, 4)
        return operations(lambda: chunked_attention(x, x, x, size=8, causal=True, window=window))

    assert cost(256, 8) - cost(192, 8) == cost(128, 8) - cost(64, 8)
    assert cost(256, 0) > 3 * cost(128, 0)
    assert cost(256, 8) < cost(256, 0) / 6


def test_a_block_has_at_least_one_query_and_there_may_be_no_query() -> None:
    x = rows(2, 3, 4)
    with pytest.raises(SizeError, match="size"):
        chunked_attention(x, x, x, size=0)
    assert chunked_attention(x[:, :0], x, x, size=2).shape == (2, 0, 4)


@pytest.mark.parametrize("name", [name for name, one in every_variant().items() if not (one.score_cap or one.sinks)])
def test_a_model_in_blocks_is_the_same_model_in_every_variant(name: str) -> None:
    torch.manual_seed(3)
    model = (
        TinyTransformerLM(13, 160, 4, 2, 24, 9, variant=every_variant()[name]).double().eval()
    )  # parts of a head turn
    ids = torch.randint(13, (2, 9))
    want = model(ids)
    place_chunks(model, 4)
    torch.testing.assert_close(model(ids), want, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_in_blocks_has_the_same_losses_and_gradients(corpus: Path, tmp_path: Path, kind: str) -> None:
    still = {"model.dropout": 0.0, "model.attention_dropout": 0.0}
    plain = begun(kind, corpus, tmp_path / "plain", still)
    blocks = begun(kind, corpus, tmp_path / "blocks", {**still, "speed.chunk": 3})
    assert any(attention_in_blocks(blocks))
    (loss, own), (same, theirs) = gradients(plain), gradients(blocks)
    torch.testing.assert_close(same, loss, rtol=1e-5, atol=1e-6)
    for got, want in zip(theirs, own, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-5)


def attention_in_blocks(run: Run) -> list[bool]:
    return [getattr(module, "kernel", None) is not None for module in run.fast.modules()]


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_that_are_computed_again_have_the_same_gradients(corpus: Path, tmp_path: Path, kind: str) -> None:
    """Would break if dropout dropped other entries the second time; bit by bit, since the same is computed."""
    plain = begun(kind, corpus, tmp_path / "plain", {})
    again = begun(kind, corpus, tmp_path / "again", {"speed.recompute": True})
    (loss, own), (same, theirs) = gradients(plain), gradients(again)
    assert torch.equal(loss, same)
    assert all(torch.equal(got, want) for got, want in zip(theirs, own, strict=True))
    assert again.measured() == plain.measured()
    assert set(again.model.state_dict()) == set(plain.model.state_dict())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("changes", [{"speed.recompute": True}, {"speed.chunk": 16}], ids=["recompute", "chunk"])
def test_it_takes_less_memory_as_estimated(config: TrainingConfig, tmp_path: Path, changes: dict[str, Any]) -> None:
    large = with_changes(config, {
        "model.d_model": 32, "model.d_ff": 128, "model.block_size": 128, "model.num_heads": 4, "model.num_layers": 4,
        "training.batch_size": 8, "speed.fused": False,
    })  # fmt: skip
    taken, estimated = [], []
    for number, chosen in enumerate((large, with_changes(large, changes))):
        run = begin(chosen, tmp_path / f"run{number}").run
        estimated.append(memory_estimate(run))
        run.update()
        kept = 12 * sum(parameter.numel() for parameter in run.model.parameters())
        taken.append(kept + peak(run.update))
    assert taken[1] < 0.6 * taken[0]
    assert estimated[1] == pytest.approx(taken[1], rel=0.35)


def test_without_gradients_nothing_is_computed_again() -> None:
    calls = []
    with torch.no_grad():
        recomputed(lambda x: calls.append(x) or x, torch.ones(2, requires_grad=True))
    assert len(calls) == 1


def test_marking_blocks_twice_is_marking_them_once() -> None:
    model = TinyTransformerLM(5, 8, 2, 1, 8, 4)
    recompute_blocks(model)
    first = model.blocks[0].forward
    recompute_blocks(model)
    assert model.blocks[0].forward is first


def by_definition(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    """Return linear attention as it is written: a weight for each pair, φ(q)·φ(k), then their mean."""

    def features(x: Tensor) -> Tensor:
        return torch.where(x > 0, x + 1, x.exp())

    out = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=v.dtype)
    for t in range(q.shape[-2]):
        last = k.shape[-2] - q.shape[-2] + t + 1 if causal else k.shape[-2]
        weights = (features(q[..., t, None, :]) * features(k[..., :last, :])).sum(dim=-1)  # (…, last)
        out[..., t, :] = (weights[..., None] * v[..., :last, :]).sum(dim=-2) / weights.sum(dim=-1, keepdim=True)
    return out


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (5, 5), (64, 64), (130, 130), (3, 70), (66, 200)])
@pytest.mark.parametrize("causal", [True, False], ids=["causal", "both sides"])
def test_linear_attention_is_its_definition(queries: int, keys: int, causal: bool) -> None:
    """Would break if the sums lacked a block's keys, had a later one's, or were divided by another count."""
    q, k, v = rows(2, queries, 4), rows(2, keys, 4, seed=1), rows(2, keys, 3, seed=2)
    got = linear_attention(q, k, v, causal=causal)
    torch.testing.assert_close(got, by_definition(q, k, v, causal), rtol=1e-11, atol=1e-12)


def test_linear_attention_costs_as_much_for_each_position() -> None:
    def cost(length: int) -> int:
        x = rows(1, length, 4)
        return operations(lambda: linear_attention(x, x, x, causal=True))

    assert cost(512) - cost(384) == cost(256) - cost(128)


@pytest.fixture(params=[CANONICAL, Variant(positions="rotary", kv_heads="num_heads // 2")], ids=["canonical", "rotary"])
def linear(request: pytest.FixtureRequest) -> TinyTransformerLM:
    torch.manual_seed(4)
    model = TinyTransformerLM(13, 16, 4, 2, 24, 12, variant=request.param).double().eval()
    place_linear(model)
    return model


def test_a_cache_continues_a_linear_model_as_it_does_itself(linear: TinyTransformerLM) -> None:
    ids = torch.randint(13, (2, 3), generator=torch.Generator().manual_seed(1))
    assert torch.equal(continue_ids(linear, ids, 7, 0.0), continue_ids(linear, ids, 7, 0.0, use_cache=False))


def test_the_maps_of_a_linear_model_are_its_own_weights(linear: TinyTransformerLM) -> None:
    ids = torch.randint(13, (2, 6), generator=torch.Generator().manual_seed(1))
    layer = linear.blocks[0].attention
    given: list[Tensor] = []
    hook = layer.register_forward_pre_hook(lambda _, inputs: given.append(inputs[0]))
    linear(ids)
    hook.remove()
    weights = attention_maps(linear, ids)[0]  # (B, H, T, T)
    assert (weights.triu(1) == 0).all()
    values = layer.v(given[0]).unflatten(-1, (-1, layer.head_width)).transpose(1, 2)
    values = values.repeat_interleave(layer.num_heads // layer.kv_heads, dim=1)
    want = layer.out((weights @ values).transpose(1, 2).flatten(2))
    torch.testing.assert_close(layer(given[0]), want)


def test_a_linear_model_takes_no_mask(linear: TinyTransformerLM) -> None:
    with pytest.raises(ShapeError, match="the mask of linear attention"):
        linear.blocks[0].attention(rows(1, 4, 16), torch.ones(4, 4, dtype=torch.bool))


def test_a_linear_model_learns_and_comes_back_from_its_checkpoint(config: TrainingConfig, tmp_path: Path) -> None:
    session = begin(with_changes(config, {"model.attention": "linear"}), tmp_path / "run")
    before = session.run.measured()["loss"]
    train(session.run, session.folder, Silent())
    session.sample_best()
    assert session.run.measured()["loss"] < before
    again = begin_run(with_changes(config, {"model.attention": "softmax"}), tmp_path / "other").run
    assert again.measured()["loss"] != before


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"data.task": "copy"}, "softmax with data.task = 'copy'"),
        ({"speed.chunk": 2}, "softmax with speed.chunk = 2"),
        ({"variant.window": 3}, "variant.window = 3"), ({"variant.positions": "alibi"}, "variant.positions = 'alibi'"),
        ({"model.attention_dropout": 0.1}, "model.attention_dropout = 0.1"),
    ],
)  # fmt: skip
def test_linear_attention_is_refused_with_what_needs_a_softmax(
    config: TrainingConfig, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(TrainingConfigError, match=says):
        with_changes(config, {"model.attention": "linear", **changes})


def test_blocks_are_refused_with_capped_scores(config: TrainingConfig) -> None:
    with pytest.raises(TrainingConfigError, match=r"speed\.chunk is 4, expected 0 with variant\.score_cap"):
        with_changes(config, {"speed.chunk": 4, "variant.score_cap": 5.0})
