"""The first part that differs is the patched one, in every variant; right code has none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from conformkit.conformance.defects import Patch, defects
from conformkit.conformance.diagnosis.parts import first_difference, locate
from conformkit.conformance.diagnosis.patching import write_reference
from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Result, Verdict
from conformkit.conformance.findings.finding import stated
from conformkit.spec.clauses import Level, clause
from conformkit.spec.variants import CANONICAL, FAMOUS, Variant
from tests.tiers import sampled

MODEL, BLOCK, HEADS = "TinyTransformerLM", "TransformerBlock", "MultiHeadAttention"
POST = CANONICAL.but(placement="post")
ROTARY = CANONICAL.but(positions="rotary")
LEARNED_RMS = CANONICAL.but(positions="learned", norm="rmsnorm")
Load = Callable[..., Implementation]

OF_THE_MODEL = {
    "emb-one-row-off": "embedding", "emb-pad-zeroed": "embedding", "emb-scale-missing": "embedding",
    "emb-scale-undeclared": "embedding", "pe-missing": "positions", "pe-from-one": "positions",
    "pe-base-e": "positions", "pe-sincos-swapped": "positions", "lpe-zero-index": "positions",
    "rope-and-sinusoids": "positions", "pe-added-after-blocks": "positions",
    "lm-positions-dropped-long": "positions", "lm-noncausal": "blocks.0.attention",
    "lm-second-block-noncausal": "blocks.2.attention", "lm-mask-four-blocks": "blocks.4.attention",
    "rope-missing": "blocks.0.attention", "mha-wo-unused": "blocks.0.attention",
    "ffn-gelu-tanh": "blocks.0.feed_forward", "ffn-gate-both": "blocks.0.feed_forward",
    "block-second-norm-missing": "blocks.0.norm2", "block-ln-reused": "blocks.0.norm2",
    "block-post-one-norm": "blocks.0.norm1", "block-no-residuals": "blocks.0.residual",
    "block-double-residual": "blocks.0.residual", "block-residual-normed": "blocks.0.residual",
    "lm-last-block-unused": "blocks.2", "lm-blocks-reversed": "blocks", "lm-final-norm-unused": "norm",
    "lm-eval-no-norm": "norm", "ln-eps-missing": "norm", "ln-affine-before-normalizing": "norm",
    "lm-log-softmax": "head", "lm-head-bias-scaled": "head", "lm-logits-scaled": "head",
    "tie-inverse-scale": "head", "lm-shift-output": "output", "gen-argmin": "generate",
}  # fmt: skip
OF_THE_BLOCK = {
    "sdpa-no-scale": "attention", "mask-strict": "attention", "mha-head-order": "attention",
    "gqa-repeat-keys": "attention", "rope-on-v": "attention", "block-noncausal": "attention",
    "block-attention-scaled": "attention", "block-residual-minus": "attention", "ffn-act-wrong": "feed_forward",
    "ffn-no-act": "feed_forward", "ffn-gate-sigmoid": "feed_forward", "ffn-over-time": "feed_forward",
    "block-sublayer-scaled": "feed_forward", "ln-eps-1e-6": "norm1", "ln-unbiased": "norm1", "ln-no-mean": "norm1",
    "ln-shift-forgotten": "norm1", "ln-affine-before-normalizing": "norm1", "ln-over-seq": "norm1",
    "rms-no-root": "norm1", "rms-gamma-unused": "norm1", "rms-eps-outside": "norm1",
    "block-second-norm-missing": "norm2", "block-double-norm-ffn": "norm2", "block-post-one-norm": "norm1",
    "block-post-norms-swapped": "norm2", "block-no-residual-ffn": "residual", "block-residual-halved": "residual",
    "block-parallel": "residual", "block-ffn-first": "residual", "block-second-residual-input": "residual",
    "block-post-no-residual": "residual",
}  # fmt: skip
OF_THE_HEADS = {
    "mha-kv-same": "v", "mha-wo-unused": "out", "mha-head-order": "heads", "mha-interleaved-merge": "heads",
    "gqa-heads-tiled": "heads", "mha-never-causal": "mask", "mha-mask-one-ahead": "mask", "mha-queries-as-keys": "k",
    "mha-own-no-scale": "scale", "mha-scale-dmodel": "scale", "rope-sign": "scores",
    "mha-local-window-of-64": "mask", "mha-heads-beyond-eight-repeat": "heads", "mask-strict": "mask",
}  # fmt: skip
VARIANTS = {
    "canonical": CANONICAL, "post": POST, "rotary": ROTARY, "learned": CANONICAL.but(positions="learned"), **FAMOUS,
    "bare": CANONICAL.but(output_projection=False, final_norm=False, norm_bias=False, head_bias=False),
}  # fmt: skip


BLOCKS = "TransformerBlock(d_model, num_heads, d_ff, dropout, variant=variant) for _ in range(num_layers)"
"""Where the reference's model makes its blocks."""


@pytest.fixture(scope="module")
def unchanged(warm: LentFactory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Load]:
    """Return a function that loads one component of the reference as it is, once."""
    with ExitStack() as stack:

        @cache
        def loaded(component: str, variant: Variant) -> Implementation:
            folder = write_reference(tmp_path_factory.mktemp("unchanged") / "mine", (), variant)
            return stack.enter_context(loading(folder, warm, component))[0]

        yield loaded


@pytest.fixture
def load(warm: LentFactory, unchanged: Load, tmp_path: Path) -> Iterator[Load]:
    """Return a function that loads one component of the reference, patched and in a variant."""
    with ExitStack() as stack:

        def loaded(component: str, patches: Sequence[Patch] = (), variant: Variant = CANONICAL) -> Implementation:
            if not patches:
                return unchanged(component, variant)
            folder = write_reference(tmp_path / "mine", patches, variant)
            return stack.enter_context(loading(folder, warm, component))[0]

        yield loaded


def loading(folder: Path, warm: LentFactory, component: str) -> Any:
    return opened(RunRequest(impl=str(folder), tries=1), warm, components={component})


@pytest.fixture
def named(load: Load) -> Callable[..., str | None]:
    """Return a function that patches one component of the reference and names the first part that differs."""

    def name(component: str, patches: Sequence[Patch], variant: Variant = CANONICAL, seed: int = 0) -> str | None:
        part = first_difference(load(component, patches, variant).subject(component), seed)
        return part and part.path

    return name


class TestEachPartIsNamed:
    @pytest.mark.parametrize("defect", sampled(OF_THE_MODEL, always=list(OF_THE_MODEL)[::18]))
    def test_of_the_model(self, named, defect):
        assert named(MODEL, defects()[defect].patches, defects()[defect].variant) == OF_THE_MODEL[defect]

    @pytest.mark.parametrize("defect", sampled(OF_THE_BLOCK, always=list(OF_THE_BLOCK)[::18]))
    def test_of_the_block(self, named, defect):
        assert named(BLOCK, defects()[defect].patches, defects()[defect].variant) == OF_THE_BLOCK[defect]

    @pytest.mark.parametrize("defect", sampled(OF_THE_HEADS, always=list(OF_THE_HEADS)[::6]))
    def test_of_attention(self, named, defect):
        assert named(HEADS, defects()[defect].patches, defects()[defect].variant) == OF_THE_HEADS[defect]

    @pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.full) for seed in (2, 3))])
    @pytest.mark.parametrize(
        "defect",
        sampled(["pe-missing", "ffn-gelu-tanh", "block-residual-normed", "ln-eps-missing"], always=["pe-missing"]),
    )
    def test_whatever_the_seed(self, named, defect, seed):
        assert named(MODEL, defects()[defect].patches, seed=seed) == OF_THE_MODEL[defect]


class TestInOneBlockOnly:
    @pytest.mark.parametrize(
        ("change", "part"),
        [
            ("activation='relu'", "feed_forward"),
            ("norm_eps=0.01", "norm1"),
            ("norm_deviation='sample'", "norm1"),
            ("positions='rotary'", "attention"),
        ],
        ids=["activation", "eps", "deviation", "rotary"],
    )
    @pytest.mark.parametrize("block", [*(pytest.param(block, marks=pytest.mark.full) for block in (0, 1)), 2])
    def test_its_number_is_in_the_name(self, named, block, change, part):
        made = BLOCKS.replace("variant=variant", f"variant=variant.but({change}) if i == {block} else variant")
        patch = Patch("model.py", BLOCKS, made.replace("for _ in", "for i in"))
        assert named(MODEL, [patch]) == f"blocks.{block}.{part}"

    @pytest.mark.parametrize(("change", "part"), [("activation='relu'", "feed_forward"), ("norm_eps=0.1", "norm1")])
    @pytest.mark.parametrize("variant", [pytest.param(POST, marks=pytest.mark.full), LEARNED_RMS], ids=["post", "rms"])
    def test_in_other_variants_too(self, named, variant, change, part):
        made = BLOCKS.replace("variant=variant", f"variant=variant.but({change}) if i == 1 else variant")
        patch = Patch("model.py", BLOCKS, made.replace("for _ in", "for i in"))
        assert named(MODEL, [patch], variant) == f"blocks.1.{part}"


@pytest.mark.parametrize("component", [HEADS, BLOCK, MODEL])
@pytest.mark.parametrize("variant", sampled(VARIANTS, always=["llama"]))
def test_nothing_of_the_reference_differs(named, component, variant):
    assert named(component, (), VARIANTS[variant]) is None


@pytest.mark.parametrize("variant", sampled(["post", "rotary", "bare"], always=["rotary"]))
@pytest.mark.parametrize("defect", ["sdpa-no-scale", "mha-head-order"])
def test_attention_is_named_in_every_variant(named, defect, variant):
    assert named(BLOCK, defects()[defect].patches, VARIANTS[variant]) == "attention"


@pytest.mark.parametrize("variant", sampled(["post", "rotary", "llama", "gpt2", "bert", "vaswani"], always=["llama"]))
@pytest.mark.parametrize(
    ("defect", "part"),
    [
        ("sdpa-no-scale", "blocks.0.attention"),
        ("lm-second-block-noncausal", "blocks.2.attention"),
        ("emb-one-row-off", "embedding"),
        ("lm-embedding-normalized", "embedding"),
        ("lm-log-softmax", "head"),
    ],
)
def test_parts_of_the_model_are_named_in_every_variant(named, defect, part, variant):
    assert named(MODEL, defects()[defect].patches, VARIANTS[variant]) == part


class TestNothingIsNamed:
    """Cases in which no part can be identified."""

    def test_where_two_calls_differ(self, named):
        assert named(MODEL, defects()["lm-random-eval"].patches) is None

    def test_where_the_weights_are_not_those_of_the_definition(self, named):
        assert named(BLOCK, defects()["block-shared-ln"].patches) is None

    def test_where_it_raises(self, named):
        last = "logits: Tensor = self.head(x)"
        assert named(MODEL, [Patch("model.py", last, f"{last} if ids[0, 0] else None")]) is None

    def test_of_what_has_no_parts(self, load):
        assert first_difference(load("FeedForward").subject("FeedForward"), 0) is None


def failed(name: str, verdict: Verdict = Verdict.FAIL) -> Result:
    return Result(clause(name), verdict, stated("it does not"))


class TestLocate:
    @pytest.fixture
    def without_positions(self, load):
        return load(MODEL, defects()["pe-missing"].patches)

    def test_what_a_clause_about_values_is_about_is_looked_at(self, without_positions):
        part = locate(without_positions, [failed("LM-ORACLE")])[MODEL]
        assert part.path == "positions"
        assert re.search(r"start with positions: .* off by \d\.\d+", part.sentence)

    def test_the_factor_of_embeddings_is_told(self, load):
        """Would break if a scaled embedding were only called wrong."""
        doubled = load(MODEL, defects()["emb-entered-twice"].patches)
        assert locate(doubled, [failed("LM-ORACLE")])[MODEL].sentence.endswith("embeddings multiplied by 2")

    @pytest.mark.parametrize(
        "results",
        [[], [failed("LM-ORACLE", Verdict.PASS)], [failed("BLOCK-ORACLE")], [failed("LM-OVERLONG")]],
        ids=["nothing", "green", "another-component", "not-about-values"],
    )
    def test_nothing_else_is(self, without_positions, results):
        assert locate(without_positions, results) == {}

    def test_text_that_is_wrong_after_right_logits_is_generates(self, load):
        right = load(MODEL)
        assert locate(right, [failed("GEN-CROP")])[MODEL].path == "generate"

    def test_text_after_logits_that_are_no_numbers_is_not_generates(self, load):
        """Would break if logits in which no part is found because they are NaN were called correct."""
        wrong = load(MODEL, defects()["mha-softmax-heads-nan"].patches)
        assert MODEL not in locate(wrong, [failed("GEN-CROP")])

    @pytest.mark.parametrize(("level", "found"), [(Level.MUST, set()), (Level.SHOULD, {MODEL})])
    def test_what_only_warns_has_no_part(self, load, level, found):
        """Would break if a report without a failure about text said which clauses about text fail."""
        assert set(locate(load(MODEL), [failed("GEN-TEMP-NEGATIVE")], level=level)) == found

    @pytest.mark.parametrize("defect", ["kv-position-zero", "kv-stale"])
    def test_text_that_is_right_without_a_cache_is_the_caches(self, load, defect):
        cached = Patch("model.py", "use_cache: bool = False,", "use_cache: bool = True,")
        wrong = load(MODEL, [cached, *defects()[defect].patches])
        assert locate(wrong, [failed("GEN-AUTOREGRESSIVE")])[MODEL].path == "generate.cache"
