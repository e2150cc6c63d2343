"""Each known mistake breaks the clauses that it names, and a whole run on it fails if its file says so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from zlib import crc32

import pytest

from conformkit.conformance.defects import defects
from conformkit.conformance.diagnosis.measuring import named_with, red_with
from conformkit.conformance.diagnosis.patching import PatchError, patched
from conformkit.spec.clauses import clauses, clauses_of
from tests.outcomes import Inputs, law
from tests.shares import left_out, share
from tests.suite.judged_once import judged_once
from tests.tiers import sampled

EVERY = 40
"""In each document, one in this many is quick."""
TRAINED = ("TRAIN", "COPY")
"""Clauses that train a model: seconds each."""


def trains(mistake: str) -> bool:
    return any(clauses()[name].prefix in TRAINED for name in defects()[mistake].clauses)


def quick() -> list[str]:
    """Return some mistakes of each document."""
    cheap = sorted((defect.stem, name) for name, defect in defects().items() if not trains(name))
    return [name for _, group in groupby(cheap, key=lambda pair: pair[0]) for _, name in list(group)[::EVERY]]


def own(mistake: str) -> str:
    """Return the file of a mistake."""
    return f"conformance/defects/{defects()[mistake].stem}/{mistake}.toml"


def files(mistake: str) -> Iterator[str]:
    """Yield what makes a mistake quick: its own file, and unless it trains, the clauses that it names and the tests."""
    return iter([own(mistake)]) if trains(mistake) else near(mistake)


def near(mistake: str) -> Iterator[str]:
    """Yield what it depends on more than others do: with those, the file of the reference that it patches."""
    yield own(mistake)
    yield from (f"reference/{patch.file}" for patch in defects()[mistake].patches)
    for document in {clauses()[name].document for name in defects()[mistake].clauses}:
        yield from (f"spec/{document}.md", f"conformance/suite/test_{document}.py")


def inputs(mistake: str) -> Inputs:
    """Return what is judged: the clauses that it names and those they need, on the reference with its patch."""
    reference = patched(())
    return replace(law(defects()[mistake].clauses), files=(own(mistake), *(f"reference/{file}" for file in reference)))


@pytest.mark.stored(inputs=inputs)
@pytest.mark.parametrize("mistake", sampled(defects(), always=quick(), files=files, near=near, most=20))
def test_a_mistake_breaks_the_clauses_that_it_names(mistake, warm, session_folder):
    defect = defects()[mistake]
    assert set(judged_once(defect, warm, session_folder).red) == set(defect.clauses)


def test_a_mistake_that_is_red_for_a_missing_name_is_refused(warm):
    """Would break if a patch that uses a name which its file lacks counted as caught."""
    known = defects()["sdpa-no-scale"]
    broken = replace(known, patches=(replace(known.patches[0], replace="missing @ k"),))
    with pytest.raises(PatchError, match="sdpa-no-scale breaks SDPA-SCALE by a name that is missing"):
        named_with(broken, warm)


def in_the_sample(mistake: str) -> bool:
    """Return whether a whole run on it is tried; a new mistake moves no other one in or out."""
    return clauses()[defects()[mistake].clauses[0]].profile == "core" and crc32(mistake.encode()) % 60 == 0


RECORDED = sorted(filter(in_the_sample, defects()))


def whole(mistake: str) -> Inputs:
    """Return what is judged in a whole run: all of core, of clauses about every size its share."""
    met = law(clauses_of("core"))
    return replace(met, files=inputs(mistake).files, texts=(*met.texts, share(mistake, "core")))


@pytest.mark.full(guard="test_a_mistake_breaks_the_clauses_that_it_names")
@pytest.mark.stored(inputs=whole)
@pytest.mark.parametrize("mistake", [pytest.param(name, marks=pytest.mark.full(near=[own(name)])) for name in RECORDED])
def test_a_whole_run_is_red_where_the_mistakes_file_says_so_and_nowhere_else(mistake, warm):
    defect = defects()[mistake]
    without = {*left_out(mistake, "core")} - {*defect.clauses}
    assert set(red_with(defect, warm, without=without)) == {*defect.clauses, *defect.also} - without
