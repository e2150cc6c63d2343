"""Beam search compared with all continuations, and where greedy choice fails."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import nn

from conformkit.reference import TinyTransformerLM, beam_search
from conformkit.reference.errors import ShapeError, SizeError


def lm(vocabulary: int = 3, block_size: int = 6) -> TinyTransformerLM:
    torch.manual_seed(8)
    model = TinyTransformerLM(vocabulary, 8, 2, 1, 16, block_size).double().eval()
    with torch.no_grad():
        model.head.weight.mul_(4)  # logits large enough that ranks differ
    return model


@torch.no_grad()
def score(model: TinyTransformerLM, prompt: list[int], new: tuple[int, ...]) -> float:
    text, total = list(prompt), 0.0
    for number in new:
        logits = model(torch.tensor([text[-model.block_size :]]))[0, -1]
        total += float(logits.log_softmax(-1)[number])
        text.append(number)
    return total


@pytest.mark.parametrize("length", [2, 5])
def test_a_beam_as_wide_as_all_continuations_is_exhaustive(length: int) -> None:
    model, prompts = lm(), torch.randint(3, (2, length))
    ids, scores = beam_search(model, prompts, 3, 27)
    for row, prompt in enumerate(prompts.tolist()):
        every = {new: score(model, prompt, new) for new in itertools.product(range(3), repeat=3)}
        best = sorted(every, key=lambda new: -every[new])
        assert [tuple(beam[length:]) for beam in ids[row].tolist()] == best
        assert scores[row].tolist() == pytest.approx([every[new] for new in best])
        assert ids[row, :, :length].tolist() == [prompt] * 27


def ended_scores(model: TinyTransformerLM, prompt: list[int], end: int, alpha: float) -> dict[tuple[int, ...], float]:
    """Return the score of every continuation of at most 3 ids that ends where it first draws `end`, or at 3."""
    found = {}
    for count in (1, 2, 3):
        for new in itertools.product(range(3), repeat=count):
            if end not in new[:-1] and (count == 3 or new[-1] == end):
                found[new] = score(model, prompt, new) / count**alpha
    return found


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_ended_continuations_are_kept_scored_by_their_own_length_and_filled(alpha: float) -> None:
    model = lm()
    every = ended_scores(model, [1, 0], 2, alpha)
    best = sorted(every, key=lambda new: -every[new])
    ids, scores = beam_search(model, torch.tensor([[1, 0]]), 3, 27, alpha, eos_id=2)
    assert [tuple(beam[2:]) for beam in ids[0, : len(best)].tolist()] == [(*new, 2, 2)[:3] for new in best]
    assert scores[0, : len(best)].tolist() == pytest.approx([every[new] for new in best])
    assert scores[0, len(best) :].tolist() == [-math.inf] * (27 - len(best))


@pytest.mark.parametrize("eos_id", [None, 2])
def test_a_beam_of_one_is_greedy(eos_id: int | None) -> None:
    model, prompts = lm(), torch.randint(3, (5, 4))
    greedy = model.generate(prompts, 9, temperature=0, eos_id=eos_id)
    ids, _ = beam_search(model, prompts, 9, 1, eos_id=eos_id)
    assert torch.equal(ids[:, 0, : greedy.shape[1]], greedy)


class Scripted(nn.Module):
    """After 0 (the prompt): A = 0 with .5, B = 1 with .4; after A nothing is likely, after B one id is."""

    block_size = 3

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(1, 3)
        self.blocks = nn.ModuleList()

    def check_ids(self, ids: torch.Tensor) -> None:
        del ids

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        table = {0: [0.4, 0.3, 0.3], 1: [0.05, 0.9, 0.05], 2: [1 / 3] * 3}
        first = [0.5, 0.4, 0.1]
        rows = [first if len(row) == 1 else table[row[-1]] for row in ids.tolist()]
        return torch.tensor(rows).log()[:, None].expand(-1, ids.shape[1], -1)


def test_a_better_continuation_with_a_worse_start_is_found() -> None:
    ids, scores = beam_search(Scripted(), torch.tensor([[0]]), 2, 2)  # type: ignore[arg-type]
    assert ids[0, 0].tolist() == [0, 1, 1]
    assert scores[0].tolist() == pytest.approx([math.log(0.36), math.log(0.2)])


def test_an_ended_continuation_survives_beams_that_overtake_it_and_fall_back() -> None:
    class Trap(Scripted):
        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            steps = {1: [0.55, 0.05, 0.4], 2: [0.5, 0.49, 0.01], 3: [0.4, 0.4, 0.2]}
            rows = [steps[ids.shape[1]]] * len(ids)
            return torch.tensor(rows).log()[:, None].expand(-1, ids.shape[1], -1)

    ids, scores = beam_search(Trap(), torch.tensor([[0]]), 3, 2, eos_id=2)  # type: ignore[arg-type]
    assert ids[0, 0].tolist() == [0, 2, 2, 2]
    assert scores[0, 0].item() == pytest.approx(math.log(0.4))


def test_bad_sizes_are_refused_and_nothing_to_add_gives_the_prompt() -> None:
    model = lm()
    with pytest.raises(SizeError, match="beam_width is 0"):
        beam_search(model, torch.tensor([[0]]), 2, 0)
    with pytest.raises(ShapeError, match="prompt"):
        beam_search(model, torch.zeros(1, 0, dtype=torch.int64), 2, 2)
    ids, scores = beam_search(model, torch.tensor([[1, 2]]), 0, 2)
    assert ids.tolist() == [[[1, 2], [1, 2]]]
    assert scores.tolist() == [[0.0, -math.inf]]
