"""Each known mistake of a conversion changes what a model says, and its numbers are named by their own file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from conformkit.conformance.apps.port import mistake as mistake_module
from conformkit.conformance.apps.port.mistake import Mistake, Right, mistakes
from conformkit.conformance.apps.port.moves import planned
from conformkit.conformance.apps.port.naming import explained
from conformkit.conformance.apps.port.patched import patched
from conformkit.conformance.apps.port.proof import WHOLE, drawn_weights
from conformkit.conformance.apps.port.replay import Alteration, Replay, change_of
from conformkit.spec.arrays import Array
from conformkit.spec.components import COMPONENTS
from conformkit.spec.presets import PRESETS
from conformkit.spec.variants import CANONICAL, FAMOUS, Variant
from tests.tiers import sampled

LANGUAGE_MODEL = COMPONENTS["TinyTransformerLM"]
IDS = np.random.default_rng(0).integers(0, 13, size=(2, 18))
SIZES = {"vocab_size": 13, "d_model": 24, "num_heads": 4, "d_ff": 28, "num_layers": 3, "block_size": 20}
LLAMA = FAMOUS["llama"].but(kv_heads="num_heads // 2")
PAIRS = LLAMA.but(rotary_layout="pairs", qkv_bias=True)
PART = LLAMA.but(rotary_fraction=0.5)
NEOX = FAMOUS["gpt2"].but(placement="parallel_two_norms")
GPT2 = FAMOUS["gpt2"].but(tied=False)
LIMITED = PRESETS["gpt_oss"].but(kv_heads="num_heads // 2", head_width="d_model // num_heads", gate_limit=0.7)


@dataclass(frozen=True)
class Scene:
    """A conversion: both variants, and sizes that differ from the usual ones."""

    theirs: Variant
    ours: Variant
    kv: tuple[int, int] = (4, 4)
    more: tuple[tuple[str, int], ...] = ()


WIDE = (("d_model", 48),)
EIGHT = (("d_model", 32),)
SCENES = {
    "gpt2": Scene(GPT2, GPT2),
    "tied": Scene(FAMOUS["gpt2"], FAMOUS["gpt2"]),
    "canonical": Scene(CANONICAL, CANONICAL),
    "llama": Scene(LLAMA, LLAMA, (2, 2)),
    "pairs": Scene(PAIRS, PAIRS, (2, 2)),
    "qwen": Scene(FAMOUS["qwen"], FAMOUS["qwen"], (2, 2)),
    "to-pairs": Scene(LLAMA.but(qkv_bias=True), PAIRS, (2, 2)),
    "to-halves": Scene(PAIRS, LLAMA.but(qkv_bias=True), (2, 2)),
    "expanded": Scene(LLAMA, LLAMA, (2, 4)),
    "groups-of-three": Scene(LLAMA, LLAMA, (2, 2), (("num_heads", 6), ("d_model", 36))),
    "scaled": Scene(FAMOUS["gemma"].but(tied=False), FAMOUS["gemma"].but(tied=False), (2, 2)),
    "wide": Scene(LLAMA, LLAMA, (2, 2), WIDE),
    "wide-to-pairs": Scene(LLAMA, LLAMA.but(rotary_layout="pairs"), (2, 2), WIDE),
    "wide-to-halves": Scene(LLAMA.but(rotary_layout="pairs"), LLAMA, (2, 2), WIDE),
    "part-to-halves": Scene(PART.but(rotary_layout="pairs"), PART, (2, 2), WIDE),
    "part-to-pairs": Scene(PART, PART.but(rotary_layout="pairs"), (2, 2), EIGHT),
    "qwen3-to-pairs": Scene(PRESETS["qwen3"], PRESETS["qwen3"].but(rotary_layout="pairs"), (2, 2)),
    "wide-heads": Scene(LLAMA.but(head_width="8"), LLAMA.but(head_width="8"), (2, 2)),
    "one-norm": Scene(PRESETS["falcon"], PRESETS["falcon"], (1, 1)),
    "deep": Scene(CANONICAL, CANONICAL, (4, 4), (("num_layers", 12),)),
    "gemma2": Scene(PRESETS["gemma2"], PRESETS["gemma2"], (2, 2)),
    "offset-to-scale": Scene(PRESETS["gemma2"], PRESETS["gemma2"].but(norm_weight="scale"), (2, 2)),
    "gemma3-to-scale": Scene(PRESETS["gemma3"], PRESETS["gemma3"].but(norm_weight="scale"), (2, 2)),
    "olmo2": Scene(PRESETS["olmo2"], PRESETS["olmo2"]),
    "olmo2-grouped": Scene(PRESETS["olmo2"], PRESETS["olmo2"], (2, 2)),
    "experts": Scene(LLAMA.but(experts=4), LLAMA.but(experts=4), (2, 2)),
    "bloom": Scene(PRESETS["bloom"], PRESETS["bloom"]),
    "limited": Scene(LIMITED, LIMITED, (2, 2)),
    "sinks": Scene(LLAMA.but(sinks=True, qkv_bias=True), LLAMA.but(sinks=True, qkv_bias=True), (2, 2)),
    "part": Scene(LLAMA.but(rotary_fraction=0.5), LLAMA.but(rotary_fraction=0.5), (2, 2)),
    "quarter": Scene(LLAMA, LLAMA, (2, 2), EIGHT),
    "untied-post": Scene(GPT2.but(placement="post"), GPT2.but(placement="post")),
    "scaled-rotary": Scene(LLAMA.but(rotary_scaling="linear"), LLAMA.but(rotary_scaling="linear"), (2, 2)),
    "parallel": Scene(NEOX, NEOX),
    "alibi": Scene(PRESETS["bloom"].but(embedding_norm=False), PRESETS["bloom"].but(embedding_norm=False)),
    "qwen3": Scene(PRESETS["qwen3"], PRESETS["qwen3"], (2, 2)),
    "windowed": Scene(LLAMA.but(window=4), LLAMA.but(window=4), (2, 2)),
    "three-heads": Scene(PRESETS["bloom"], PRESETS["bloom"], (3, 3), (("num_heads", 3),)),
    "two-bases": Scene(PRESETS["gemma3"], PRESETS["gemma3"], (2, 2), (("num_layers", 7),)),
    "even": Scene(LLAMA.but(window=4, window_layers="even"), LLAMA.but(window=4, window_layers="even"), (2, 2)),
    "odd": Scene(LLAMA.but(window=4, window_layers="odd"), LLAMA.but(window=4, window_layers="odd"), (2, 2)),
    "post": Scene(FAMOUS["vaswani"].but(tied=False), FAMOUS["vaswani"].but(tied=False)),
}  # fmt: skip


@cache
def right(scene: Scene) -> Right:
    base = {**SIZES, **dict(scene.more)}
    own = scene.ours.head_width
    base["head_width"] = int(own) if own.isdecimal() else base["d_model"] // base["num_heads"]
    sizes, own = ({**base, "kv_heads": heads} for heads in scene.kv)
    plan = planned(scene.theirs, scene.ours, sizes, own)
    drawn = drawn_weights(LANGUAGE_MODEL.parameters(sizes, scene.theirs), 0)
    for name in drawn:
        if name.endswith("bias"):
            drawn[name] = np.random.default_rng(crc32(name.encode())).standard_normal(drawn[name].shape) * 0.4
    ours = {name: plan.array(name, drawn.__getitem__).astype(np.float64) for name in plan.parameters}
    return Right(plan, drawn.__getitem__, ours.__getitem__, (scene.theirs, scene.ours), sizes, own)


def made(mistake: Mistake) -> Iterator[tuple[Right, dict[str, Array]]]:
    """Yield each conversion in which a mistake changes numbers, with all that it makes of them."""
    for scene in SCENES.values():
        one = right(scene)
        if not mistake.possible(one):
            continue
        weights = {name: one.ours(name).astype(np.float64) for name in one.parameters}
        changed = {n: np.where(np.isnan(a), 0.25, a) for n, a in mistake.weights(one)}
        if any(not np.array_equal(a, weights[n]) for n, a in changed.items()):
            yield one, {**weights, **changed}


def says(one: Right, weights: Any, variant: Variant) -> Array:
    return LANGUAGE_MODEL.forward(weights, {"ids": IDS}, one.own, variant)


WEIGHTS = [name for name, mistake in mistakes().items() if not mistake.of_code]
CODE = [name for name, mistake in mistakes().items() if mistake.of_code]


FOLDER = Path(mistake_module.__file__).parent / "mistakes"


def files(name: str) -> list[Path]:
    return [FOLDER / f"{name}.toml"]


@pytest.mark.parametrize("name", sampled(WEIGHTS, always=["qkv-per-head-read-flat"], files=files, most=2))
def test_a_mistake_with_weights_is_caught_and_named(name: str) -> None:
    mistake, named = mistakes()[name], []
    for one, wrong in made(mistake):
        weights = {n: one.ours(n) for n in one.parameters}
        truth, said = says(one, weights, one.variants[1]), says(one, wrong, one.variants[1])
        if float(np.abs(truth - said).max() / np.abs(truth).max()) < 1e-6:
            continue
        named.append([entry.id for entry in explained(one, wrong.__getitem__, list(one.parameters))])
        if name in named[-1]:
            return
    assert named, "no conversion shows it"
    pytest.fail(f"named as {named}")


def test_a_patch_of_a_known_mistake_is_about_a_text_that_a_formula_has_once() -> None:
    for mistake in mistakes().values():
        with patched(mistake.patches):
            pass


def test_a_formula_computes_as_before_behind_a_patch() -> None:
    one = right(SCENES["llama"])
    weights = {n: one.ours(n).astype(np.float64) for n in one.parameters}
    before = says(one, weights, one.variants[1])
    with patched(mistakes()["values-rotated"].patches):
        assert not np.allclose(says(one, weights, one.variants[1]), before)
    np.testing.assert_array_equal(says(one, weights, one.variants[1]), before)


ALWAYS = ["gelu-exact", "query-norm-missing-in-code"]


@pytest.mark.parametrize("name", sampled(CODE, always=ALWAYS, files=files, most=1))
def test_a_mistake_of_the_code_is_caught_and_named_by_replay(name: str) -> None:
    mistake, named = mistakes()[name], []
    for scene in SCENES.values():
        one = right(scene)
        change = change_of(mistake, one)
        same = one.variants[1].but(**change.choices) == one.variants[1]
        if not mistake.possible(one) or (same and not change.patches):
            continue
        weights = {n: one.ours(n).astype(np.float64) for n in one.parameters}
        try:
            with patched(change.patches):
                said = says(one, weights, one.variants[1].but(**change.choices))
        except (KeyError, IndexError, ValueError):
            continue
        truth = says(one, weights, one.variants[1])
        if not np.isfinite(said).all() or float(np.abs(truth - said).max() / np.abs(truth).max()) < 1e-5:
            continue
        trial = Replay(weights, one.own, IDS, {WHOLE: said})
        assert not trial.explains(one.variants[1], Alteration())
        changes = {m.id: change_of(m, one) for m in mistakes().values() if m.possible(one) and m.of_code}
        named.append([n for n, c in changes.items() if not c.empty and trial.explains(one.variants[1], c)])
        if name in named[-1]:
            assert len(named[-1]) <= 3, f"told apart from none of {named[-1]}"
            return
    assert named, "no conversion shows it"
    pytest.fail(f"named as {named}")
