"""What tests cost decides which are quick and how a run is split."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from . import costs
from .costs import Costs, longest_first, part, recorded
from .tiers import Collected, dear_ones_leave

COSTS = Costs({"a.py::test_many": 0.1}, {"a.py::test_dear": 2.0, "a.py::test_worse": 9.0, "b.py::test_only": 2.0})


class Item:
    """As much of a collected test as the tiers look at."""

    def __init__(self, nodeid, guard=None, *more):
        self.nodeid = nodeid
        self.marks = [*more] if guard is None else [pytest.mark.full(guard=guard).mark, *more]

    def iter_markers(self, name):
        return [mark for mark in self.marks if mark.name == name]

    def get_closest_marker(self, name):
        return next(iter(self.iter_markers(name)), None)

    def add_marker(self, mark, append=True):
        self.marks.insert(len(self.marks) if append else 0, mark.mark)


def tiers(*items, staying=()):
    dear_ones_leave(items, COSTS, staying)
    return Collected.of(items)


def test_a_dear_test_leaves_the_quick_tier_and_names_its_neighbor():
    """Would break if dear tests stayed, or left without a guard."""
    found = tiers(*map(Item, ["a.py::test_far", "a.py::test_dear", "a.py::test_next", "a.py::test_x"]))
    assert found.full == {"a.py::test_dear": "test_far"}
    assert found.unguarded() == []


def test_a_dear_test_that_a_change_concerns_is_quick():
    assert tiers(Item("a.py::test_x"), Item("a.py::test_dear"), staying={"a.py::test_dear"}).full == {}


def test_a_case_that_a_change_concerns_is_quick_whatever_it_takes():
    """Would break if a right package of 9 s that somebody changed were first judged in CI."""
    concerned = Item("a.py::test_worse", None, pytest.mark.concerned.mark)
    assert tiers(Item("a.py::test_x"), concerned).full == {}


def test_the_last_quick_test_of_a_file_stays():
    """Would break if a file could lose all of its quick tests for two seconds."""
    assert tiers(Item("a.py::test_x"), Item("b.py::test_only")).full == {}


def test_a_guard_stays_unless_it_takes_too_long():
    """Would break if a test were left out whose guard is left out."""
    items = [Item("a.py::test_x"), Item("a.py::test_all", guard="test_dear"), Item("a.py::test_dear")]
    assert tiers(*items).full == {"a.py::test_all": "test_dear"}
    items = [Item("a.py::test_x"), Item("a.py::test_all", guard="test_worse"), Item("a.py::test_worse")]
    assert tiers(*items).full == {"a.py::test_all": "test_x", "a.py::test_worse": "test_x"}


def test_a_guard_that_does_not_exist_is_not_replaced():
    """Would break if a misspelt guard were mended in silence."""
    assert tiers(Item("a.py::test_x"), Item("a.py::test_all", guard="test_gone")).unguarded() == ["a.py::test_all"]


def test_without_a_quick_test_in_its_file_the_guard_is_of_the_folder():
    found = tiers(Item("f/c.py::test_x"), Item("f/b.py::test_dearest"), staying=())
    assert found.full == {}
    dear_ones_leave(
        items := [Item("f/c.py::test_x"), Item("f/b.py::test_dearest")], Costs({}, {"f/b.py::test_dearest": 50.0}), ()
    )
    assert Collected.of(items).full == {"f/b.py::test_dearest": "test_x"}


def test_parts_hold_each_test_once_and_take_equally_long():
    """Would break if a part left out a test, or all dear tests came together."""
    tests = [f"a.py::test_{number}" for number in range(40)]
    known = Costs({test: 0.2 + number for number, test in enumerate(tests)}, {})
    parts = [part(tests, known, f"{number}/3") for number in (1, 2, 3)]
    assert sorted(test for one in parts for test in one) == sorted(tests)
    loads = [sum(map(known.of, one)) for one in parts]
    assert max(loads) - min(loads) < 0.05 * sum(loads)
    assert part(tests[::-1], known, "1/3") == parts[0]


def test_cheap_cases_of_a_test_stay_together():
    cases = [f"a.py::test_cheap[{number}]" for number in range(50)]
    parts = [part([*cases, "a.py::test_x"], Costs({}, {}), f"{number}/2") for number in (1, 2)]
    assert set(cases) in parts


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_each_process_begins_with_the_longest(processes):
    """Would break if the longest test could begin last, alone, or if a test ran twice or never."""
    tests = [f"a.py::test_{number}" for number in range(30)]
    known = Costs({}, {"a.py::test_29": 90.0, "a.py::test_28": 80.0, "a.py::test_14": 70.0, "a.py::test_3": 1.0})
    order = longest_first(tests, known, processes)
    assert sorted(order) == list(range(30))
    begins = [order[number * 30 // processes] for number in range(processes)]
    assert begins == [29, 28, 14][:processes]
    short = [number for number in order if number not in {29, 28, 14}]
    assert short == sorted(short)


def test_few_tests_are_all_run_though_all_are_long():
    tests = [f"a.py::test_{number}" for number in range(4)]
    known = Costs({}, dict.fromkeys(tests, 90.0))
    assert all(sorted(longest_first(tests[:n], known, 3)) == list(range(n)) for n in range(5))


@pytest.mark.parametrize("wrong", ["0/3", "4/3", "2", "a/b", "-1/3"])
def test_a_part_that_is_none_is_refused(wrong):
    with pytest.raises(pytest.UsageError, match="--part"):
        part([], COSTS, wrong)


def test_what_has_grown_is_told_whatever_the_machine():
    """Would break if a slow machine counted as growth, or growth went unseen on one."""
    slow = {f"a.py::test_{number}": 40.0 for number in range(12)}
    known = Costs(dict.fromkeys(slow, 10.0), {})
    assert known.grown(slow) == []
    assert known.grown({**slow, "a.py::test_3": 90.0}) == ["a.py::test_3: 22.5 s, recorded 10.0 s"]


def test_what_is_measured_replaces_what_was_recorded_of_it():
    """Would break if a part of the tests made the run forget the others, or a renamed test stayed dear."""
    new = COSTS.with_({"a.py::test_many[x]": 5.0, "a.py::test_many[y]": 0.3, "a.py::test_worse": 0.2})
    assert new.dear == {"a.py::test_dear": 2.0, "b.py::test_only": 2.0, "a.py::test_many[x]": 5.0}
    assert new.families == {"a.py::test_many": 0.3, "a.py::test_worse": 0.2}


def test_dear_cases_stay_dear_where_the_quick_ones_are_measured_alone():
    """Would break if a record of the quick tests brought the cases back that had left them."""
    known = Costs({}, {"a.py::test_many[x]": 5.0, "a.py::test_many[y]": 2.0})
    assert known.with_({"a.py::test_many[y]": 0.1}, quick_alone=True).dear == {"a.py::test_many[x]": 5.0}


def test_small_families_of_quick_cases_have_no_entry():
    """Would break if the file held each test, or a family of cases of a tenth of a second counted as nothing."""
    cases = {f"a.py::test_some[{number}]": 0.1 for number in range(5)} | {"a.py::test_quick": 0.05}
    assert Costs({}, {}).with_(cases).families == {"a.py::test_some": 0.1}


def test_costs_are_read_as_they_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr(costs, "FILE", tmp_path / "costs.json")
    COSTS.write()
    assert recorded() == COSTS


def test_a_run_measures_with_its_fixtures():
    watch = costs.Watch(write=False)
    for seconds in (1.0, 2.0, 0.5):
        watch.pytest_runtest_logreport(SimpleNamespace(nodeid="a.py::test_x", duration=seconds))
    assert watch._measured == {"a.py::test_x": 3.5}
