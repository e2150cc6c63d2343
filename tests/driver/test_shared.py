"""A warm process that several sessions share is replaced when it is lost, by whoever asks it next, for all of them."""

import pytest

from conformkit.conformance.driver.errors import StartError
from conformkit.conformance.driver.spawn.shared import SharedFactory


class Fake:
    """Makes workers with numbers of its own until it is lost."""

    note, torch = "", False

    def __init__(self, first):
        self.first, self.alive, self.reaped, self.closed, self.orders = first, True, [], False, 0

    def spawn(self, wire_fd, output_fd, memory):
        if not self.alive:
            raise StartError("it ended")
        self.orders += 1
        return self.orders - 1

    def spawned(self, order):
        return self.first + order

    def reap(self, pid, *, killed):
        self.reaped.append(pid)
        return 0

    def close(self):
        self.closed = True


def test_a_lost_one_is_replaced_once_for_all_who_share_it():
    made = [Fake(100), Fake(200)]
    shared = SharedFactory(made[0], lambda: made[1])
    old = shared.spawned(shared.spawn(0, 0, None))
    made[0].alive = False
    new = [shared.spawned(shared.spawn(0, 0, None)) for _ in range(2)]
    assert (old, new) == (100, [200, 201])
    assert made[0].closed
    for pid in (old, *new):  # a number means another process to each of them
        shared.reap(pid, killed=True)
    assert (made[0].reaped, made[1].reaped) == ([100], [200, 201])


def test_one_that_is_lost_while_it_is_asked_is_replaced_too():
    class Dying(Fake):
        def spawn(self, wire_fd, output_fd, memory):
            self.alive = False
            raise StartError("it ended")

    shared = SharedFactory(Dying(100), lambda: Fake(200))
    assert shared.spawned(shared.spawn(0, 0, None)) == 200


def test_without_a_way_to_make_another_it_stays_lost():
    shared = SharedFactory(Fake(100))
    shared._factory.alive = False
    with pytest.raises(StartError):
        shared.spawn(0, 0, None)
    assert not shared.alive


def test_after_the_end_no_other_is_made():
    shared = SharedFactory(Fake(100), lambda: pytest.fail("one more was made"))
    shared.close()
    shared._factory.alive = False
    with pytest.raises(StartError):
        shared.spawn(0, 0, None)
