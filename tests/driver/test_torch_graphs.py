"""Modules that torch compiles and exports, in the worker."""

import numpy as np
import pytest

from conformkit.conformance.driver.errors import ImplementationFailure

MODULES = """
    import torch
    from torch import nn

    class Answer:
        def __init__(self, logits):
            self.logits, self.words = logits, "no tensor"

    class Doubled(nn.Module):
        kept = None
        def forward(self, x):
            return x * 2 if torch.compiler.is_compiling() else x + x
        def hidden(self, x):
            return x - 1

    class Keeps(Doubled):
        def forward(self, x):
            self.kept = torch.arange(x.shape[1])
            return Answer(x * 2 + 0 * self.kept)

    class Broken(Doubled):
        def forward(self, x):
            y = x * 2
            torch._dynamo.graph_break()
            return y + 1

    class Looks(Doubled):
        def forward(self, x):
            return x if x.sum().item() > 0 else -x

    class Raises(Doubled):
        def forward(self, x):
            if torch.compiler.is_compiling():
                raise ValueError("not here")
            return x

    class Refuses(Doubled):
        def forward(self, x):
            raise ValueError("not this")

    def shift(x):
        return x + 1
"""
HEADER = {"args": [{"$tensor": "x"}]}


@pytest.fixture
def session(inside):
    return inside(MODULES)


def built(session, path):
    return session.request({"op": "build", "path": f"mypkg:{path}"}).header["handle"]


def recorded(session, path, way, x, **header):
    request = {"op": "record", "handle": built(session, path), "way": way, **HEADER, **header}
    return session.request(request, {"x": x}).header


def called(session, handle, x, **header):
    request = {"op": "call", "handle": handle, "mode": "eval", **HEADER, **header}
    return session.request(request, {"x": x}).tensors["out"]


def graphs(session, handle):
    return session.request({"op": "ask", "handle": handle, "attribute": "graphs"}).header["value"]


def test_a_compiled_module_counts_its_graphs(session):
    """Would break if a break of the graph, or a recompilation, were not told from one graph for all."""
    whole, broken = (recorded(session, name, "compiled", np.ones((2, 3)))["handle"] for name in ("Doubled", "Broken"))
    assert called(session, whole, np.ones((2, 3))).tolist() == [[2.0] * 3] * 2
    assert called(session, broken, np.ones((2, 3))).tolist() == [[3.0] * 3] * 2
    assert (graphs(session, whole), graphs(session, broken)) == (1, 2)
    called(session, whole, np.ones((2, 4)))
    called(session, whole, np.ones((2, 5)))
    assert graphs(session, whole) == 2


def test_another_method_than_forward_is_compiled_and_not_exported(session):
    handle = recorded(session, "Doubled", "compiled", np.ones((2, 3)), method="hidden")["handle"]
    assert called(session, handle, np.ones((2, 3)), method="hidden").tolist() == [[0.0] * 3] * 2
    with pytest.raises(ImplementationFailure, match="method hidden is called") as caught:
        recorded(session, "Doubled", "exported", np.ones((2, 3)), method="hidden")
    assert caught.value.kind == "unsupported"


def test_an_exported_module_takes_other_extents_and_leaves_the_module_as_it_was(session):
    """Would break if a tensor without values stayed in the module, or if a result of its own class could not pass."""
    header = recorded(session, "Keeps", "exported", np.ones((2, 3)), output="logits")
    assert header["closed"] == ""
    assert called(session, header["handle"], np.ones((4, 5)), output="logits").tolist() == [[2.0] * 5] * 4
    first = header["handle"] - 1
    assert called(session, first, np.ones((1, 2)), output="logits").tolist() == [[2.0] * 2]
    held = session.request({"op": "read", "handle": first})
    assert held.tensors == {}


@pytest.mark.parametrize(
    ("path", "way", "why"),
    [
        ("Looks", "exported", "GuardOnDataDependent|data-dependent"),
        ("Raises", "exported", "not here"),
        ("shift", "compiled", "no nn.Module"),
        ("shift", "exported", "no nn.Module"),
    ],
)
def test_what_cannot_be_recorded_is_no_exception_of_the_code(session, path, way, why):
    """Would break if a limit of torch's tools counted as a mistake of the code."""
    with pytest.raises(ImplementationFailure, match=why) as caught:
        recorded(session, path, way, np.ones((2, 3)))
    assert caught.value.kind == "unsupported"


def test_what_raises_while_it_is_compiled_is_no_exception_of_the_code(session):
    handle = recorded(session, "Refuses", "compiled", np.ones((2, 3)))["handle"]
    with pytest.raises(ImplementationFailure, match="cannot be compiled here: ValueError: not this") as caught:
        called(session, handle, np.ones((2, 3)))
    assert caught.value.kind == "unsupported"


def test_numpy_records_nothing(inside):
    session = inside("""
        class Doubled:
            def __call__(self, x):
                return x + x
    """)
    with pytest.raises(ImplementationFailure, match="NumPy records no graphs"):
        recorded(session, "Doubled", "compiled", np.ones((2, 3)))
