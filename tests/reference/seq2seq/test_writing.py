"""Generation, with and without caches, follows the logits; beam search is compared with enumerated targets."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch.testing import assert_close

from conformkit.reference import Transformer, create_padding_mask, shift_right
from conformkit.reference.errors import ShapeError, SizeError, TokenError
from conformkit.reference.seq2seq.caches import DecoderCache, cached_logits
from conformkit.spec.variants import CANONICAL, FAMOUS, Variant

VARIANTS = {
    "canonical": CANONICAL, "post": CANONICAL.but(placement="post"), "rotary": CANONICAL.but(positions="rotary"),
    "learned": CANONICAL.but(positions="learned", embedding_norm=True), "llama": FAMOUS["llama"],
    "no-projection": CANONICAL.but(output_projection=False), "vaswani": FAMOUS["vaswani"],
}  # fmt: skip
SRC = torch.tensor([[3, 4, 5, 6, 7, 8], [9, 10, 11, 0, 0, 0], [12, 1, 2, 5, 0, 0]])
TGT = torch.tensor([[1, 3, 4, 5, 6, 2, 1], [1, 12, 11, 0, 0, 0, 0], [1, 7, 0, 9, 4, 4, 4]])


def model(variant: Variant = CANONICAL, vocabulary: int = 13) -> Transformer:
    torch.manual_seed(5)
    ours = Transformer(13, vocabulary, 16, 4, 2, 3, 24, 9, 0.5, variant=variant).double().eval()
    with torch.no_grad():
        ours.head.weight.mul_(4)  # logits large enough that ranks differ
    return ours


def after(ours: Transformer, src: list[int], written: tuple[int, ...]) -> torch.Tensor:
    """Return the log-probabilities of the next id by the model as a whole, without any cache."""
    logits = ours(torch.tensor([src]), torch.tensor([[1, *written]]))[0, -1]
    return logits.log_softmax(-1).detach()


@torch.no_grad()
def scored(ours: Transformer, src: list[int], targets: list[tuple[int, ...]]) -> dict[tuple[int, ...], float]:
    """Return the log-probability of each target; all are of one length."""
    wanted = torch.tensor(targets)
    log_p = ours(torch.tensor([src] * len(targets)), shift_right(wanted, 1)).log_softmax(-1)
    sums = log_p.gather(-1, wanted[..., None]).sum((1, 2))
    return dict(zip(targets, sums.tolist(), strict=True))


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("pieces", [(7,), (2, 4, 1), (1,) * 7], ids=["whole", "pieces", "single"])
@torch.no_grad()
def test_cached_logits_are_those_of_the_whole_target_in_any_pieces(name: str, pieces: tuple[int, ...]) -> None:
    ours = model(VARIANTS[name])
    mask = create_padding_mask(SRC)
    cache = DecoderCache(ours, ours.encode(SRC), mask)
    got = torch.cat([cached_logits(ours, part, cache) for part in TGT.split(pieces, dim=1)], dim=1)
    assert_close(got, ours(SRC, TGT), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("variant", "heads"), [("canonical", 4), ("llama", 1)])
@torch.no_grad()
def test_the_past_grows_and_the_memory_is_projected_once(variant: str, heads: int) -> None:
    ours = model(VARIANTS[variant])
    cache = DecoderCache(ours, ours.encode(SRC), create_padding_mask(SRC))
    first = [(cross.k, cross.v) for cross in cache.cross]
    for step in (1, 2, 3):
        cached_logits(ours, TGT[:, step - 1 : step], cache)
        assert [(past.k.shape, past.v.shape) for past in cache.past] == [((3, heads, step, 4),) * 2] * 3
    assert all(cross.k is k and cross.v is v for cross, (k, v) in zip(cache.cross, first, strict=True))
    assert first[0][0].shape == (3, heads, 6, 4)


@torch.no_grad()
def test_a_target_beyond_max_len_is_refused_and_the_cache_stays() -> None:
    ours = model()
    cache = DecoderCache(ours, ours.encode(SRC), create_padding_mask(SRC))
    cached_logits(ours, TGT, cache)
    with pytest.raises(ShapeError, match="the length of the target is 10, expected at most max_len = 9"):
        cached_logits(ours, TGT[:, :3], cache)
    assert cache.length == cache.past[2].length == 7


@pytest.mark.parametrize("use_cache", [False, True])
def test_greedy_takes_the_most_probable_id_given_all_before(use_cache: bool) -> None:
    ours = model()
    got = ours.generate(SRC, 9, bos_id=1, use_cache=use_cache)
    assert got.shape == (3, 9)
    for row, src in zip(got.tolist(), SRC.tolist(), strict=True):
        assert row == [int(after(ours, src, tuple(row[:place])).argmax()) for place in range(9)]


@pytest.mark.parametrize("name", VARIANTS)
def test_the_same_ids_are_drawn_with_and_without_a_cache(name: str) -> None:
    ours = model(VARIANTS[name])
    drawn = []
    for use_cache in (False, True):
        torch.manual_seed(0)
        drawn.append(ours.generate(SRC, 9, 1, temperature=2.0, top_k=7, top_p=0.9, use_cache=use_cache))
    assert torch.equal(*drawn)


@pytest.mark.parametrize("use_cache", [False, True])
def test_padding_of_the_source_is_hidden_while_writing(use_cache: bool) -> None:
    ours = model()
    alone = ours.generate(SRC[1:2, :3], 9, 1, use_cache=use_cache)
    assert torch.equal(ours.generate(SRC, 9, 1, use_cache=use_cache)[1:2], alone)
    hidden = ours.generate(SRC[:1], 9, 1, src_mask=create_padding_mask(torch.tensor([[1, 1, 1, 0, 0, 0]])))
    assert torch.equal(hidden, ours.generate(SRC[:1, :3], 9, 1))


@pytest.mark.parametrize("use_cache", [False, True])
def test_a_row_ends_at_its_end_id_and_others_go_on(use_cache: bool) -> None:
    ours = model()
    sources = torch.randint(1, 13, (8, 6), generator=torch.Generator().manual_seed(2))
    endless = ours.generate(sources, 9, 1)
    end = int(endless[0, 2])
    got = ours.generate(sources, 9, 1, eos_id=end, use_cache=use_cache)
    for row, whole in zip(got.tolist(), endless.tolist(), strict=True):
        stop = whole.index(end) + 1 if end in whole else 9
        assert row == (whole[:stop] + [0] * 9)[: got.shape[1]]
    assert any(end not in row for row in endless.tolist())
    assert got.shape == (8, 9)
    assert ours.generate(sources[:1], 9, 1, eos_id=end).shape[1] == endless[0].tolist().index(end) + 1


def test_writing_leaves_every_mode_as_it_was_and_drops_nothing() -> None:
    ours = model().train()
    ours.encoder.eval()
    assert torch.equal(ours.generate(SRC, 5, 1), ours.generate(SRC, 5, 1))
    ours.beam_search(SRC, 3, 1, 2)
    assert ours.training
    assert not ours.encoder.layers[0].training


@pytest.mark.parametrize("name", ["canonical", "rotary", "vaswani"])
def test_a_beam_as_wide_as_all_targets_is_exhaustive(name: str) -> None:
    ours = model(VARIANTS[name], vocabulary=3)
    ids, scores = ours.beam_search(SRC, 3, 1, 27)
    for row, src in enumerate(SRC.tolist()):
        every = scored(ours, src, list(itertools.product(range(3), repeat=3)))
        found = [tuple(beam) for beam in ids[row].tolist()]
        assert sorted(found) == sorted(every)
        assert scores[row].tolist() == pytest.approx([every[target] for target in found])
        assert scores[row].tolist() == pytest.approx(sorted(every.values(), reverse=True))


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_ended_targets_are_kept_scored_by_their_own_length_and_filled(alpha: float) -> None:
    ours = model(vocabulary=3)
    every: dict[tuple[int, ...], float] = {}
    for count in (1, 2, 3):
        targets = [target for target in itertools.product(range(3), repeat=count) if 2 not in target[:-1]]
        ended = [target for target in targets if count == 3 or target[-1] == 2]
        found = scored(ours, SRC[2].tolist(), ended)
        every |= {target: log_p / count**alpha for target, log_p in found.items()}
    best = sorted(every, key=lambda target: -every[target])
    ids, scores = ours.beam_search(SRC, 3, 1, 27, alpha, eos_id=2)
    assert [tuple(beam) for beam in ids[2, : len(best)].tolist()] == [(*target, 0, 0)[:3] for target in best]
    assert scores[2, : len(best)].tolist() == pytest.approx([every[target] for target in best])
    assert scores[2, len(best) :].tolist() == [-math.inf] * (27 - len(best))


@pytest.mark.parametrize("eos_id", [None, 2])
def test_a_beam_of_one_is_greedy(eos_id: int | None) -> None:
    ours = model(vocabulary=5)
    greedy = ours.generate(SRC, 9, 1, eos_id=eos_id)
    ids, _ = ours.beam_search(SRC, 9, 1, 1, eos_id=eos_id)
    assert torch.equal(ids[:, 0, : greedy.shape[1]], greedy)


def test_a_narrow_beam_has_the_scores_of_its_targets_and_they_are_distinct() -> None:
    ours = model()
    ids, scores = ours.beam_search(SRC, 6, 1, 4, length_penalty=1.0)
    for row, src in enumerate(SRC.tolist()):
        targets = [tuple(beam) for beam in ids[row].tolist()]
        assert len(set(targets)) == 4
        every = scored(ours, src, targets)
        assert scores[row].tolist() == pytest.approx([every[target] / 6 for target in targets])
        assert scores[row].tolist() == sorted(scores[row].tolist(), reverse=True)
        alone, _ = ours.beam_search(torch.tensor([[number for number in src if number]]), 6, 1, 4, length_penalty=1.0)
        assert torch.equal(alone[0], ids[row])


class Scripted(Transformer):
    """An encoder-decoder whose logits are a table: after A half the mass is lost at once, after B most stays."""

    def __init__(self) -> None:
        super().__init__(4, 4, 4, 1, 0, 0, 4, 3, variant=Variant(positions="none", final_norm=False, head_bias=False))
        table = torch.tensor([[0.5, 0.4, 0.1, 1e-9], [0.3, 0.3, 0.4, 1e-9], [0.05, 0.9, 0.05, 1e-9]]).log()
        with torch.no_grad():
            self.tgt_embedding.weight.copy_(torch.eye(4))
            self.head.weight.copy_(torch.stack([table[1], table[2], table[1], table[0]]).T)


def test_a_better_target_with_a_worse_start_is_found() -> None:
    ids, scores = Scripted().beam_search(torch.tensor([[1]]), 2, bos_id=3, beam_width=2)
    assert ids[0, 0].tolist() == [1, 1]
    assert scores[0].tolist() == pytest.approx([math.log(0.36), math.log(0.2)])
    assert Scripted().generate(torch.tensor([[1]]), 2, bos_id=3).tolist() == [[0, 2]]


def test_what_cannot_be_written_is_refused() -> None:
    ours = model()
    with pytest.raises(SizeError, match="max_new_tokens is 10, expected at most max_len = 9"):
        ours.generate(SRC, 10, 1)
    with pytest.raises(TokenError, match="bos_id is 13"):
        ours.generate(SRC, 2, 13)
    with pytest.raises(TokenError, match="eos_id is -1"):
        ours.beam_search(SRC, 2, 1, 2, eos_id=-1)
    with pytest.raises(SizeError, match="temperature is -1"):
        ours.generate(SRC, 2, 1, temperature=-1)
    with pytest.raises(SizeError, match="beam_width is 0"):
        ours.beam_search(SRC, 2, 1, 0)
    assert ours.generate(SRC, 0, 1).shape == (3, 0)
    assert ours.beam_search(SRC, 0, 1, 2)[1].tolist() == [[0.0, -math.inf]] * 3
