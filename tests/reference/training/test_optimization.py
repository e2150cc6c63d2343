"""AdamW, clipping and decay groups against PyTorch's own and by hand; the two schedules."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from conformkit.reference import AdamW, TinyTransformerLM, clip_grad_norm, cosine_schedule, inverse_sqrt_schedule
from conformkit.reference.errors import SizeError
from conformkit.reference.optimization import decay_groups

OPTIONS = {"lr": 0.03, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.2}


def pair() -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    source = torch.Generator().manual_seed(4)
    values = [torch.randn(shape, generator=source, dtype=torch.float64) for shape in ((3, 4), (5,), (2, 1))]
    return [nn.Parameter(v.clone()) for v in values], [nn.Parameter(v.clone()) for v in values]


def give_gradients(round_: int, *groups: list[nn.Parameter]) -> None:
    source = torch.Generator().manual_seed(100 + round_)
    for number, parameters in enumerate(zip(*groups, strict=True)):
        gradient = torch.randn(parameters[0].shape, generator=source, dtype=torch.float64) * 10.0 ** (2 * number - 4)
        for parameter in parameters:
            # the last one has no gradient at first, so that the counts of updates differ
            parameter.grad = None if number == 2 and round_ < 2 else gradient.clone()


def test_five_updates_are_those_of_pytorch() -> None:
    ours, theirs = pair()
    mine = AdamW(ours, **OPTIONS)
    reference = torch.optim.AdamW(theirs, **OPTIONS)
    for round_ in range(5):
        give_gradients(round_, ours, theirs)
        mine.step()
        reference.step()
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-13, atol=1e-15)


def test_loaded_state_continues_as_if_never_interrupted() -> None:
    ours, copies = pair()
    mine = AdamW([{"params": ours[:1], "lr": 0.1}, {"params": ours[1:], "weight_decay": 0.0}])
    other = AdamW([{"params": copies[:1], "lr": 0.7}, {"params": copies[1:]}])
    for round_ in range(3):
        give_gradients(round_, ours)
        mine.step()
    with torch.no_grad():
        for a, b in zip(copies, ours, strict=True):
            a.copy_(b)
    other.load_state_dict(mine.state_dict())
    for round_ in range(3, 6):
        give_gradients(round_, ours, copies)
        mine.step()
        other.step()
    assert all(torch.equal(a, b) for a, b in zip(ours, copies, strict=True))


def test_zero_grad_forgets() -> None:
    ours, _ = pair()
    give_gradients(3, ours)
    AdamW(ours).zero_grad()
    assert all(parameter.grad is None for parameter in ours)


@pytest.mark.parametrize(
    "options",
    [{"lr": -1.0}, {"lr": math.nan}, {"eps": -1e-8}, {"weight_decay": -0.1}, {"betas": (0.9, 1.0)}],
    ids=["lr", "nan", "eps", "decay", "betas"],
)
def test_an_option_out_of_range_is_refused_by_name(options: dict[str, float]) -> None:
    with pytest.raises(SizeError, match=next(iter(options))):
        AdamW(pair()[0], **options)


def test_no_parameters_and_the_same_one_twice_are_refused() -> None:
    ours, _ = pair()
    with pytest.raises(SizeError, match="at least 1"):
        AdamW([])
    with pytest.raises(SizeError, match="once"):
        AdamW([{"params": ours}, {"params": ours[:1]}])


def test_clipping_scales_all_gradients_by_one_factor() -> None:
    a, b = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1))
    a.grad, b.grad = torch.tensor([3.0, 0.0]), torch.tensor([4.0])
    assert clip_grad_norm([a, b, nn.Parameter(torch.zeros(1))], 1.0).item() == pytest.approx(5)
    assert a.grad.tolist() == pytest.approx([0.6, 0])
    assert b.grad.tolist() == pytest.approx([0.8])
    assert clip_grad_norm([a, b], 2.0).item() == pytest.approx(1)
    assert a.grad.tolist() == pytest.approx([0.6, 0])


def test_gradients_of_zero_and_none_are_clipped_to_themselves() -> None:
    zero, none = nn.Parameter(torch.zeros(3)), nn.Parameter(torch.zeros(1))
    zero.grad = torch.zeros(3)
    assert clip_grad_norm([zero], 1.0).item() == 0
    assert zero.grad.tolist() == [0, 0, 0]
    assert clip_grad_norm([none], 1.0).item() == 0
    with pytest.raises(SizeError, match="max_norm"):
        clip_grad_norm([zero], 0.0)


def test_vectors_are_not_decayed_and_each_parameter_is_in_one_group() -> None:
    lm = TinyTransformerLM(11, 8, 2, 1, 16, 4)
    matrices, vectors = decay_groups(lm, 0.1)
    assert {p.ndim for p in matrices["params"]} == {2}
    assert {p.ndim for p in vectors["params"]} == {1}
    assert (matrices["weight_decay"], vectors["weight_decay"]) == (0.1, 0.0)
    assert len(matrices["params"]) + len(vectors["params"]) == len(list(lm.parameters()))


@pytest.mark.parametrize(
    ("step", "want"), [(0, 0.0), (250, 1.5e-4), (500, 3e-4), (5250, 1.65e-4), (10000, 3e-5), (99999, 3e-5)]
)
def test_cosine_rises_falls_and_stays(step: int, want: float) -> None:
    assert cosine_schedule(step, 3e-4, 3e-5, 500, 10000) == pytest.approx(want, rel=1e-12, abs=0)


def test_cosine_without_warm_up_starts_at_the_peak() -> None:
    assert cosine_schedule(0, 1.0, 0.1, 0, 10) == 1.0
    assert cosine_schedule(5, 1.0, 0.1, 5, 5) == 0.1
    with pytest.raises(SizeError, match="step"):
        cosine_schedule(-1, 1.0, 0.1, 0, 10)


@pytest.mark.parametrize(
    ("step", "d_model", "warmup", "want"),
    [(0, 512, 4000, 0.0), (1, 512, 4000, 1.746928e-7), (4000, 512, 4000, 6.987712e-4), (400, 64, 100, 6.25e-3)],
)
def test_the_inverse_root_is_the_papers(step: int, d_model: int, warmup: int, want: float) -> None:
    assert inverse_sqrt_schedule(step, d_model, warmup) == pytest.approx(want, rel=1e-6, abs=0)
