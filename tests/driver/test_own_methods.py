"""Which methods an object's author wrote: `list.clear` empties a cache, and does not reset it."""

from array import array
from collections import OrderedDict, UserDict, UserList, deque

import numpy as np
import pytest

from conformkit.conformance.driver.worker.exports import defines


class Plain:
    def clear(self):
        pass


class Layers(list):
    pass


class Resets(list):
    def clear(self):
        self[:] = [None] * len(self)


class Inherits(Resets):
    pass


def with_own():
    cache = Layers()
    cache.clear = lambda: None
    return cache


@pytest.mark.parametrize(
    "cache", [[], {}, set(), deque(), OrderedDict(), UserList(), UserDict(), bytearray(), Layers(), array("d")],
    ids=lambda cache: type(cache).__name__,
)  # fmt: skip
def test_what_a_container_brings_along_is_not_its_authors(cache):
    """A cache that was a list of layers failed once: it was emptied, and its model had no layer to read."""
    assert not defines(cache, "clear")


@pytest.mark.parametrize("cache", [Plain(), Resets(), Inherits(), with_own()], ids=["plain", "over", "under", "object"])
def test_what_its_author_wrote_counts(cache):
    assert defines(cache, "clear")


@pytest.mark.parametrize("name", ["select", "gather", "index_select", "reset"])
def test_what_a_tensor_can_do_is_no_way_to_reorder_texts(name):
    import torch

    assert not defines(torch.zeros(2), name)
    assert not defines(np.zeros(2), name)
