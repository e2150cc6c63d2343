"""Of two known mistakes that fail alike on all clauses that they name, each says so: a report then names both."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import pytest

from conformkit.conformance.defects import defects
from conformkit.conformance.defects.twins import twins_of
from conformkit.spec.clauses import clauses
from tests.outcomes import law
from tests.suite.judged_once import judged_once
from tests.suite.test_known_mistakes import inputs as of_mistake
from tests.suite.test_known_mistakes import trains


def component(defect):
    """Return what a known mistake shows in first: those that fail alike agree in it, whatever document they are in."""
    return clauses()[defect.clauses[0]].component


COMPONENTS = sorted({component(defect) for name, defect in defects().items() if not trains(name)})


def groups(of, warm, session):
    """Return the known mistakes of a component by what their failures say, under one variant."""
    found = defaultdict(set)
    for name, defect in defects().items():
        if component(defect) == of and not trains(name):
            found[defect.variant, judged_once(defect, warm, session).failures].add(name)
    return found.values()


def inputs(of):
    """Return what the words of all mistakes of a component depend on: what each depends on, and who are its twins."""
    names = [name for name, defect in defects().items() if component(defect) == of and not trains(name)]
    named = law({clause for name in names for clause in defects()[name].clauses})
    files = {file for name in names for file in of_mistake(name).files}
    twins = tuple(f"{name}: {twins_of(name)}" for name in names)
    return replace(named, files=tuple(sorted(files)), texts=(*named.texts, *twins))


@pytest.mark.stored(inputs=inputs)
@pytest.mark.full(guard="test_the_mistakes_of_one_small_component_that_fail_alike_are_twins")
@pytest.mark.parametrize("of", COMPONENTS)
def test_mistakes_that_fail_alike_are_twins(of, warm, session_folder):
    found = groups(of, warm, session_folder)
    undeclared = [sorted(group) for group in found if not group <= {min(group), *twins_of(min(group))}]
    assert undeclared == []


def test_the_mistakes_of_one_small_component_that_fail_alike_are_twins(warm, session_folder):
    together = {frozenset(group) for group in groups("create_masks", warm, session_folder) if len(group) > 1}
    assert together == {frozenset({name, *twins_of(name)}) for name in defects() if twins_of(name)} & together
    assert frozenset({"pad-masks-either", "pad-masks-not-causal"}) in together
