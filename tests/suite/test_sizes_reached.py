"""In each run, at any seed, each component meets sizes beyond the numbers that fast paths and tables are made for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import pytest

from conformkit.conformance.assertions.checks import gathering
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.providers import provide
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.evidence import at_sizes
from conformkit.conformance.suite import registry
from conformkit.spec.clauses import clauses_of

LENGTHS, WIDTHS = (128, 256, 512), (32, 64, 128)
MARKS: Mapping[str, tuple[int, ...]] = {
    "d_model": (64, 128), "head_width": WIDTHS, "d_k": WIDTHS, "d_v": WIDTHS, "num_heads": (8,),
    "tokens": LENGTHS, "keys": LENGTHS, "prompt": LENGTHS, "block_size": LENGTHS, "max_len": LENGTHS,
    "batch": (16,), "vocab_size": (256,), "src_vocab_size": (256,), "tgt_vocab_size": (256,), "top_k": (50,),
    "num_layers": (4,), "num_encoder_layers": (4,), "num_decoder_layers": (4,), "d_ff": (256,),
}  # fmt: skip
SEEDS = range(20)


@pytest.fixture(scope="module", params=["core", "lm", "seq2seq"])
def profile_and_reference(request, warm) -> Iterator[tuple[str, Implementation]]:
    impl = RunRequest(impl="conformkit.reference", profile=request.param)
    with opened(impl, LentFactory(warm)) as (implementation, _):
        yield request.param, implementation


def with_width(case):
    """Return the sizes of a case, the width among them where it follows from the heads."""
    heads = {"num_heads", "head_width"} <= case.keys()
    return {**case, "d_model": case["num_heads"] * case["head_width"]} if heads else case


def test_each_component_meets_sizes_beyond_each_mark(profile_and_reference, monkeypatch):
    """Would break if cases of some seed were all cheap ones: a mask for 512 positions would then pass now and then."""
    profile, reference = profile_and_reference
    cases: list[Mapping[str, int]] = []
    monkeypatch.setattr(at_sizes._Trials, "_tried", lambda _trials, sizes: cases.append(with_width(dict(sizes))))
    missed = set()
    for seed in SEEDS:
        largest: dict[tuple[str, str], int] = defaultdict(int)
        ends: dict[tuple[str, str], int] = defaultdict(int)
        for clause in (c for c in clauses_of(profile).values() if c.sizes):
            cases.clear()
            test = registry.tests(profile)[clause.id]
            draw = Draw(seed, clause.id, domain=clause.sizes, exact=clause.generates)
            with gathering(*reference.accuracy(clause.component)):
                test(**provide(registry.arguments(test), reference, draw))
            for name, (_, end) in clause.sizes.items():
                ends[clause.component, name] = max(end, ends[clause.component, name])
            for name in {name for case in cases for name in case}:
                most = max(case.get(name, 0) for case in cases)
                largest[clause.component, name] = max(most, largest[clause.component, name])
        missed |= {
            (component, name, mark)
            for (component, name), end in ends.items()
            for mark in MARKS.get(name, ())
            if mark < end and largest[component, name] <= mark
        }
    assert missed == set()
