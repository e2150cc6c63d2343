"""Generation with the cache equals generation without, for every kind of position and norm; end ids."""

from __future__ import annotations

import pytest
import torch

from conformkit.reference import TinyTransformerLM
from conformkit.reference.errors import ShapeError
from conformkit.reference.kv_cache import KVCache, cached_logits
from conformkit.spec.presets import PRESETS
from conformkit.spec.variants import CANONICAL, FAMOUS, Variant

NEWER = {name: PRESETS[name] for name in ("gemma2", "olmo", "olmo2", "falcon")}
TWO_NORMS = CANONICAL.but(placement="parallel_two_norms")
VARIANTS = {
    "canonical": CANONICAL, "no-positions": CANONICAL.but(positions="none"), "two-norms": TWO_NORMS, **FAMOUS, **NEWER,
}  # fmt: skip


def lm(variant: Variant = CANONICAL) -> TinyTransformerLM:
    torch.manual_seed(7)
    return TinyTransformerLM(19, 16, 4, 2, 24, 10, 0.5, variant=variant).double().eval()


def ids(rows: int, length: int) -> torch.Tensor:
    return torch.randint(19, (rows, length), generator=torch.Generator().manual_seed(length))


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("pieces", [(10,), (3, 4, 3), (1,) * 10], ids=["whole", "pieces", "single"])
def test_logits_are_the_same_in_any_pieces(name: str, pieces: tuple[int, ...]) -> None:
    model, text = lm(VARIANTS[name]), ids(3, 10)
    cache = KVCache(2)
    got = torch.cat([cached_logits(model, part, cache) for part in text.split(pieces, dim=1)], dim=1)
    torch.testing.assert_close(got, model(text), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("variant", ["canonical", "llama"])
def test_the_cache_holds_one_row_a_position_and_key_value_head(variant: str) -> None:
    model, cache = lm(VARIANTS[variant]), KVCache(2)
    cached_logits(model, ids(3, 7), cache)
    heads = 1 if variant == "llama" else 4
    assert [(layer.k.shape, layer.v.shape) for layer in cache.layers] == [((3, heads, 7, 4),) * 2] * 2
    assert cache.length == 7


def test_a_text_beyond_block_size_is_refused_and_the_cache_stays() -> None:
    model, cache = lm(), KVCache(2)
    cached_logits(model, ids(1, 8), cache)
    with pytest.raises(ShapeError, match="the length of the text is 11, expected at most block_size = 10"):
        cached_logits(model, ids(1, 3), cache)
    assert cache.length == cache.layers[1].length == 8


@pytest.mark.parametrize("length", [1, 6, 10, 13])
@pytest.mark.parametrize("options", [{"temperature": 0}, {"top_k": 5, "top_p": 0.9}], ids=["greedy", "drawn"])
def test_the_same_ids_with_and_without_also_beyond_block_size(length: int, options: dict[str, float]) -> None:
    model, prompt = lm(FAMOUS["llama"]), ids(3, length)
    torch.manual_seed(0)
    without = model.generate(prompt, 12, **options)
    torch.manual_seed(0)
    assert torch.equal(model.generate(prompt, 12, **options, use_cache=True), without)


@pytest.mark.parametrize("use_cache", [False, True])
def test_a_row_ends_at_its_end_id_and_others_go_on(use_cache: bool) -> None:
    model, prompt = lm(), ids(4, 3)
    endless = model.generate(prompt, 15, temperature=0)
    end = int(endless[0, 5])
    got = model.generate(prompt, 15, temperature=0, eos_id=end, use_cache=use_cache)
    for row, whole in zip(got.tolist(), endless.tolist(), strict=True):
        drawn = whole[3:]
        stop = drawn.index(end) + 1 if end in drawn else len(drawn)
        assert row == (whole[: 3 + stop] + [end] * 15)[: got.shape[1]]
    assert got.shape[1] < 18 or any(end not in row[3:] for row in endless.tolist())


def test_an_end_id_in_the_prompt_ends_nothing_and_nothing_follows_the_last_end() -> None:
    model = lm()
    prompt = torch.tensor([[4, 5]])
    first = int(model.generate(prompt, 1, temperature=0)[0, 2])
    assert model.generate(prompt, 9, temperature=0, eos_id=first).tolist() == [[4, 5, first]]
    never = model.generate(prompt, 3, temperature=0, eos_id=4)
    assert never.shape[1] == 5 or never[0, -1] == 4


def test_a_second_call_does_not_depend_on_the_first_and_modes_are_restored() -> None:
    model = lm().train()
    first = model.generate(ids(2, 4), 3, temperature=0, use_cache=True)
    model.generate(ids(2, 6), 3, temperature=0, use_cache=True)
    assert torch.equal(model.generate(ids(2, 4), 3, temperature=0, use_cache=True), first)
    assert model.training
