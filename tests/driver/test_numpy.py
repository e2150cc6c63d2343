"""Operations on an implementation in NumPy."""

import numpy as np
import pytest

from conformkit.conformance.driver.errors import ImplementationFailure

NESTED = """
    import numpy as np
    from collections import namedtuple
    from dataclasses import dataclass

    Pair = namedtuple("Pair", "left right")

    @dataclass(frozen=True)
    class Norm:
        gain: np.ndarray

    class Slotted:
        __slots__ = ("w", "unset")
        def __init__(self):
            self.w = np.zeros(2)

    class Model:
        def __init__(self, width=3):
            self.params = {"wq": np.eye(width), "bias": np.zeros(width), 7: np.zeros(1)}
            self.blocks = [Norm(np.ones(width)), Norm(np.ones(width))]
            self.pair = Pair(np.zeros(2), [np.zeros(3)])
            self.slotted = Slotted()
            self.table = np.arange(4)
            self.tied = self.params["wq"]
            self.turned = self.params["wq"].T
            self.floats = [1.0, 2.0]
            self.names = np.array(["a"])
            self.itself = self
            self.blocks.append(self.blocks)
        def forward(self, x):
            return x @ self.params["wq"] + self.params["bias"]
"""


def build(session, name="Model", **header):
    return session.request({"op": "build", "path": f"mypkg:{name}", **header}).header


def call(session, handle, **arrays):
    args = [{"$tensor": name} for name in arrays]
    return session.request({"op": "call", "handle": handle, "args": args}, arrays)


def test_arrays_are_found_wherever_an_object_keeps_them(inside):
    # floats in lists are not parameters, names are not numbers, and a cycle must not hang
    found = {p["name"]: p for p in build(inside(NESTED))["parameters"]}
    assert sorted(found) == [
        "blocks.0.gain", "blocks.1.gain", "pair.left", "pair.right.0", "params.7", "params.bias", "params.wq",
        "slotted.w", "table", "tied", "turned",
    ]  # fmt: skip
    assert found["params.wq"]["shape"] == [3, 3]
    assert found["params.wq"]["trainable"]
    assert not found["table"]["trainable"]


def test_an_array_under_a_second_name_is_an_alias_and_a_transposed_view_overlaps(inside):
    found = {p["name"]: p for p in build(inside(NESTED))["parameters"]}
    assert found["tied"]["alias"] == "params.wq"
    assert found["turned"]["alias"] is None
    assert {name: p["overlaps"] for name, p in found.items() if p["overlaps"]} == {
        "tied": "params.wq", "turned": "params.wq",
    }  # fmt: skip
    assert found["blocks.1.gain"]["alias"] is None


def test_a_cast_keeps_shared_memory_shared(inside):
    session = inside(NESTED)
    handle = build(session, dtype="float32")["handle"]
    drawn = np.arange(9, dtype=np.float32).reshape(3, 3)
    session.request({"op": "write", "handle": handle}, {"params.wq": drawn})
    reply = session.request({"op": "read", "handle": handle})
    assert reply.header["dtypes"]["params.wq"] == "float32"
    assert reply.header["dtypes"]["table"] == "int64"
    np.testing.assert_array_equal(reply.tensors["tied"], drawn)
    np.testing.assert_array_equal(reply.tensors["turned"], drawn.T)
    assert reply.header["dtypes"]["pair.right.0"] == "float32"
    assert reply.header["dtypes"]["blocks.0.gain"] == "float32"


def test_written_values_are_read_back_and_used(inside):
    session = inside(NESTED)
    handle = build(session)["handle"]
    session.request({"op": "write", "handle": handle}, {"params.wq": 2 * np.eye(3), "params.bias": np.ones(3)})
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(call(session, handle, x=x).tensors["out"], 2 * x + 1)


def test_a_read_only_array_is_replaced(inside):
    session = inside("""
        import numpy as np
        class Model:
            def __init__(self):
                self.w = np.broadcast_to(np.float64(1), (3,))
            def __call__(self, x):
                return x * self.w
    """)
    handle = build(session)["handle"]
    session.request({"op": "write", "handle": handle}, {"w": np.arange(3.0)})
    np.testing.assert_array_equal(call(session, handle, x=np.ones(3)).tensors["out"], np.arange(3.0))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [({"params.bias": np.ones(4)}, "has shape"), ({"nowhere": np.ones(3)}, "no array 'nowhere'")],
)
def test_what_cannot_be_written_is_our_mistake(inside, arrays, message):
    session = inside(NESTED)
    handle = build(session)["handle"]
    with pytest.raises(ImplementationFailure, match=message) as caught:
        session.request({"op": "write", "handle": handle}, arrays)
    assert caught.value.kind == "request"


def test_a_copy_does_not_share_arrays(inside):
    session = inside(NESTED)
    handle = build(session)["handle"]
    other = session.request({"op": "copy", "handle": handle}).header["handle"]
    session.request({"op": "write", "handle": handle}, {"params.bias": np.ones(3)})
    np.testing.assert_array_equal(session.request({"op": "read", "handle": other}).tensors["params.bias"], np.zeros(3))


def test_a_released_handle_is_gone(inside):
    session = inside(NESTED)
    handle = build(session)["handle"]
    session.request({"op": "release", "handle": handle})
    with pytest.raises(ImplementationFailure, match="no component"):
        session.request({"op": "parameters", "handle": handle})


def test_forward_comes_before_call(inside):
    session = inside("""
        class Model:
            def forward(self, x):
                return x + 1
            def __call__(self, x):
                return x + 2
        class Called:
            def __call__(self, x):
                return x + 2
    """)
    assert call(session, build(session)["handle"], x=np.zeros(1)).tensors["out"] == 1
    assert call(session, build(session, "Called")["handle"], x=np.zeros(1)).tensors["out"] == 2


def test_there_are_no_derivatives(inside):
    session = inside(NESTED)
    handle = build(session)["handle"]
    header = {"op": "vjp", "handle": handle, "args": [{"$tensor": "x"}], "wrt": ["x"], "parameters": True}
    with pytest.raises(ImplementationFailure) as caught:
        session.request(header, {"x": np.ones((1, 3)), "cotangent": np.ones((1, 3))})
    assert caught.value.kind == "unsupported"


def test_the_mode_is_switched_by_whatever_the_object_offers(inside):
    session = inside("""
        import numpy as np
        class Model:
            training = True
            def __call__(self, x):
                return x * self.training
        class Methods:
            def __init__(self):
                self.mode = "?"
            def train(self):
                self.mode = "train"
            def eval(self):
                self.mode = "eval"
            def __call__(self, x):
                return x * (self.mode == "train")
    """)
    for name in ("Model", "Methods"):
        handle = build(session, name)["handle"]
        for mode, wanted in (("train", 1), ("eval", 0)):
            header = {"op": "call", "handle": handle, "args": [{"$tensor": "x"}], "mode": mode}
            assert session.request(header, {"x": np.ones(1)}).tensors["out"] == wanted
    header = {"op": "call", "handle": build(session)["handle"], "args": [{"$tensor": "x"}]}
    assert session.request(header, {"x": np.ones(1)}).header["modes"] == [False]


RETURNS = """
    import numpy as np
    values = {
        "float": 1.5, "int": 3, "list": [[1, 2], [3, 4]], "half": np.float16([1.5]), "byte": np.uint8([3]),
        "long double": np.longdouble([1.5]), "matrix": np.matrix([[1.0]]), "scalar": np.float32(2),
        "complex": np.ones(2, complex), "object": np.array([None]), "text": np.array(["a"]), "none": None,
        "ragged": [[1.0], [1.0, 2.0]], "function": len, "empty list": [], "dict": {"a": 1},
    }
    def returns(which):
        return values[which]
"""


def returned(session, which):
    handle = build(session, "returns")["handle"]
    return session.request({"op": "call", "handle": handle, "args": [which]})


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize(
    ("which", "dtype", "shape"),
    [
        ("float", "float64", ()), ("int", "int64", ()), ("list", "int64", (2, 2)), ("half", "float16", (1,)),
        ("byte", "uint8", (1,)), ("long double", "longdouble", (1,)), ("matrix", "float64", (1, 1)),
        ("scalar", "float32", ()),
    ],
)  # fmt: skip
def test_numbers_of_any_kind_come_back_as_one_of_four_dtypes_and_name_their_own(inside, which, dtype, shape):
    reply = returned(inside(RETURNS), which)
    assert reply.tensors["out"].shape == shape
    assert reply.tensors["out"].dtype.name in {"float64", "float32", "int64"}
    assert reply.header["dtypes"]["out"] in {dtype, np.dtype(dtype).name}


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("which", ["complex", "object", "text", "none", "ragged", "function", "empty list", "dict"])
def test_a_value_that_is_not_numeric_is_distinguished_from_an_exception(inside, which):
    with pytest.raises(ImplementationFailure) as caught:
        returned(inside(RETURNS), which)
    assert caught.value.kind == "output"
    assert caught.value.message


SELECT = """
    import numpy as np
    from types import SimpleNamespace
    from collections import namedtuple
    a, b = np.zeros(1), np.ones(1)
    Out = namedtuple("Out", "hidden logits")
    values = {
        "tuple": (None, a, b), "dict": {"hidden": a, "logits": b}, "named": Out(a, b),
        "object": SimpleNamespace(h=a, logits=b),
        "nested": [{"x": (None, b)}], "bare": np.stack([a, b]), "pair": (a, None),
    }
    def select(which):
        return values[which]
"""


@pytest.mark.parametrize(
    ("which", "selector", "wanted"),
    [
        ("tuple", None, {"out": 0}), ("dict", None, {"out": 1}), ("named", None, {"out": 1}),
        ("object", None, {"out": 1}),
        ("nested", None, {"out": 1}), ("tuple", 2, {"out": 1}), ("dict", "hidden", {"out": 0}),
        ("object", "h", {"out": 0}),
        ("dict", 1, {"out": 1}), ("named", [1, 0], {"out": 1, "out.1": 0}), ("pair", [0, 1], {"out": 0}),
        ("pair", [0, 5], {"out": 0}), ("dict", ["logits", None, "hidden"], {"out": 1, "out.2": 0}),
    ],
)  # fmt: skip
def test_outputs_are_picked_by_index_key_or_attribute(inside, which, selector, wanted):
    session = inside(SELECT)
    handle = build(session, "select")["handle"]
    reply = session.request({"op": "call", "handle": handle, "args": [which], "output": selector})
    assert {name: int(array.squeeze()) for name, array in reply.tensors.items()} == wanted


@pytest.mark.parametrize(
    ("which", "selector"), [("bare", 0), ("tuple", 0), ("tuple", 9), ("dict", "x"), ("object", "x")]
)
def test_an_output_that_is_not_there_is_an_error(inside, which, selector):
    # `bare`: index 0 of an array is its first row, never an output
    session = inside(SELECT)
    handle = build(session, "select")["handle"]
    with pytest.raises(ImplementationFailure, match=r"returned .*output = ") as caught:
        session.request({"op": "call", "handle": handle, "args": [which], "output": selector})
    assert caught.value.kind == "output"


def test_the_structure_of_the_result_is_reported(inside):
    session = inside(SELECT)
    handle = build(session, "select")["handle"]
    reply = session.request({"op": "call", "handle": handle, "args": ["tuple"]})
    assert reply.header["structure"] == "tuple(None, ndarray, ndarray)"


def test_templates_build_objects_look_up_names_and_make_dtypes(inside):
    session = inside("""
        import numpy as np
        from dataclasses import dataclass
        @dataclass
        class Config:
            width: int
            extra: object = None
        class Model:
            def __init__(self, config, act, dtype, *, sizes):
                assert config.extra.width == 5 and sizes == {"a": [1, 2]} and act is np.tanh
                self.w = np.ones(config.width, dtype)
            def __call__(self, x):
                return x * self.w
    """)
    inner = {"$object": "mypkg:Config", "args": [5]}
    config = {"$object": "mypkg:Config", "kwargs": {"width": 2, "extra": inner}}
    header = {"args": [config, {"$name": "numpy:tanh"}, {"$dtype": "float32"}], "kwargs": {"sizes": {"a": [1, 2]}}}
    assert build(session, **header)["parameters"][0]["dtype"] == "float32"


def test_an_object_for_a_call_may_be_called_and_gives_a_part_in_the_format_of_the_component(inside):
    session = inside("""
        import numpy as np
        class Turns:
            def __init__(self, width):
                self.speed = np.ones(width, np.float32)
            def __call__(self, length):
                return {"cos": np.cos(self.speed * length), "both": (self.speed, length)}
            tables = __call__
        class Model:
            def __init__(self):
                self.w = np.ones(2)
            def __call__(self, cos, speed, one):
                assert cos.dtype == speed.dtype == one.dtype == np.float64
                return cos + speed + one
    """)
    handle = build(session)["handle"]
    turns = {"$object": "mypkg:Turns", "args": [2]}
    cos = {**turns, "then": {"args": [0]}, "output": "cos"}
    speed = {**turns, "output": "speed"}
    one = {**turns, "then": {"args": [0], "method": "tables"}, "output": "both.0"}
    header = {"op": "call", "handle": handle, "args": [cos, speed, one], "dtype": "float64"}
    np.testing.assert_array_equal(session.request(header).tensors["out"], [3.0, 3.0])
    with pytest.raises(ImplementationFailure, match="has no 'tan': it is a dict"):
        session.request({**header, "args": [{**cos, "output": "tan"}, speed, one]})


PLAIN = """
    import numpy as np
    import random
    def same(x, y):
        return float(x is y)
    def strides(x):
        return x.strides[-1] // x.itemsize, np.array(float(x.flags.c_contiguous))
    def kind(x):
        return x.itemsize
    def scale(x):
        x *= 2
        return x
    def draw(which):
        return {"random": random.random, "numpy": np.random.rand}[which]()
    def still(which):
        return 1.0
    class Counter:
        def __init__(self):
            self.count = np.zeros(1)
        def __call__(self):
            self.count += 1
            return self.count
        def twice(self):
            return self.count * 2
"""


def test_an_input_named_twice_is_one_array(inside):
    session = inside(PLAIN)
    handle = build(session, "same")["handle"]
    args = [{"$tensor": "x"}, {"$tensor": "x"}]
    assert session.request({"op": "call", "handle": handle, "args": args}, {"x": np.ones(2)}).tensors["out"] == 1


def test_a_strided_input_has_gaps_and_a_cast_one_its_dtype(inside):
    session = inside(PLAIN)
    args = [{"$tensor": "x", "strided": True}]
    header = {"op": "call", "handle": build(session, "strides")["handle"], "args": args, "output": [0, 1]}
    reply = session.request(header, {"x": np.ones((2, 3))})
    assert (reply.tensors["out"], reply.tensors["out.1"]) == (4, 0)
    header = {"op": "call", "handle": build(session, "kind")["handle"], "args": [{"$tensor": "x", "cast": "float16"}]}
    assert session.request(header, {"x": np.ones(2)}).tensors["out"] == 2


def test_an_argument_that_was_written_to_shows_in_its_echo_and_not_in_the_original(inside):
    session = inside(PLAIN)
    x = np.ones(2)
    handle = build(session, "scale")["handle"]
    header = {"op": "call", "handle": handle, "args": [{"$tensor": "x"}], "echo": True}
    assert session.request(header, {"x": x}).tensors["echo:x"].tolist() == [2, 2]
    assert x.tolist() == [1, 1]


@pytest.mark.parametrize("which", ["random", "numpy"])
def test_a_seed_repeats_draws_and_the_digest_shows_that_there_were_any(inside, which):
    session = inside(PLAIN)
    header = {"op": "call", "handle": build(session, "draw")["handle"], "args": [which]}
    first, again, other = (session.request({**header, "seed": seed}) for seed in (5, 5, 6))
    assert first.tensors["out"] == again.tensors["out"] != other.tensors["out"]
    assert first.header["rng"] == again.header["rng"]
    assert first.header["rng"][0] != first.header["rng"][1]
    still = session.request({**header, "handle": build(session, "still")["handle"]})
    assert still.header["rng"][0] == still.header["rng"][1]


def test_a_call_with_reset_leaves_no_trace_in_the_component(inside):
    session = inside(PLAIN)
    handle = build(session, "Counter")["handle"]
    header = {"op": "call", "handle": handle}
    assert [int(session.request({**header, "reset": True}).tensors["out"].item()) for _ in range(2)] == [1, 1]
    assert [int(session.request(header).tensors["out"].item()) for _ in range(2)] == [1, 2]
    assert session.request({**header, "method": "twice"}).tensors["out"] == 4


def test_a_batch_answers_each_request_and_continues_after_an_error(inside):
    session = inside(PLAIN)
    handle = build(session, "Counter")["handle"]
    requests = [
        ({"op": "call", "handle": handle}, {}),
        ({"op": "call", "handle": 99}, {}),
        ({"op": "write", "handle": handle}, {"count": np.array([7.0])}),
        ({"op": "call", "handle": handle}, {}),
    ]
    first, error, _, last = session.batch(requests)
    assert (first.tensors["out"].item(), last.tensors["out"].item()) == (1, 8)
    assert isinstance(error, ImplementationFailure)


@pytest.mark.parametrize("header", [{"op": "pass"}, {}, {"op": "call"}, {"op": "build"}])
def test_a_request_that_makes_no_sense_is_our_mistake(inside, header):
    with pytest.raises(ImplementationFailure) as caught:
        inside(PLAIN).request(header)
    assert caught.value.kind == "request"
