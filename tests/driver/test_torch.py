"""Operations on an implementation in PyTorch."""

import numpy as np
import pytest
import torch
from torch import nn

from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.driver.worker.frameworks.torch import _cast_module

MODULES = """
    import torch
    from torch import nn

    class Linear(nn.Module):
        def __init__(self, width=3):
            super().__init__()
            self.w = nn.Parameter(torch.randn(width, width))
            self.frozen = nn.Parameter(torch.ones(width), requires_grad=False)
            self.unused = nn.Parameter(torch.ones(1))
            self.register_buffer("scale", torch.tensor(2.0))
            self.register_buffer("mask", torch.ones(2, dtype=torch.bool))
            self.loose = torch.ones(3)
            self.listed = [nn.Linear(2, 2)]
            self.dropout = nn.Dropout(0.5)
        def forward(self, x):
            return self.dropout(x @ self.w.T * self.scale * self.frozen)
        def hidden(self, x):
            return x

    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(5, 3)
            self.head = nn.Linear(3, 5, bias=False)
            self.head.weight = self.embedding.weight
        def forward(self, ids):
            return {"ids": ids, "logits": self.head(self.embedding(ids))}

    class Unfilled(nn.Module):
        def __init__(self):
            super().__init__()
            with torch.device("meta"):
                self.proj = nn.Linear(3, 3, bias=False)
                self.register_buffer("scale", torch.ones(3))
            self.to_empty(device="cpu")
            nn.init.eye_(self.proj.weight)
        def forward(self, x):
            return self.proj(x) * self.scale

    class Lazy(nn.Module):
        def __init__(self):
            super().__init__()
            self.proj = nn.LazyLinear(2)
        def forward(self, x):
            return self.proj(x)

    class Plain:
        def __init__(self):
            self.w = torch.eye(3, requires_grad=True)
            self.again = self.w
            self.parts = {"inner": nn.Linear(3, 3, bias=False), "table": torch.zeros(2, dtype=torch.int64)}
        def __call__(self, x):
            return self.parts["inner"](x @ self.w)

    class Rotary(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("freqs", torch.polar(torch.ones(2), torch.ones(2)))
        def forward(self, x):
            return torch.view_as_real(self.freqs).to(x.dtype)

    class Refuses(nn.Linear):
        def __init__(self):
            super().__init__(2, 2)
        def to(self, *args, **kwargs):
            raise NotImplementedError("float32 only")

    class Stubborn(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Dropout(0.5)
        def forward(self, x):
            self.inner.train()
            return x
"""


def build(session, name, **header):
    return session.request({"op": "build", "path": f"mypkg:{name}", "seed": 1, **header}).header


def call(session, handle, op="call", args=("x",), cotangent=None, header=None, **arrays):
    given = arrays if cotangent is None else {**arrays, "cotangent": cotangent}
    request = {"op": op, "handle": handle, "args": [{"$tensor": name} for name in args], **(header or {})}
    return session.request(request, given)


@pytest.fixture
def session(inside):
    return inside(MODULES)


def test_only_what_is_registered_counts_as_a_parameter(session):
    found = build(session, "Linear")["parameters"]
    assert {p["name"]: (p["kind"], p["trainable"]) for p in found} == {
        "w": ("parameter", True),
        "frozen": ("parameter", False),
        "unused": ("parameter", True),
        "scale": ("buffer", False),
        "mask": ("buffer", False),
    }


def test_a_module_is_cast_and_evaluates(session):
    built = build(session, "Linear", dtype="float64")
    assert {p["name"]: p["dtype"] for p in built["parameters"]}["w"] == "float64"
    x = np.arange(6.0).reshape(2, 3)
    weight = session.request({"op": "read", "handle": built["handle"], "names": ["w"]}).tensors["w"]
    reply = call(session, built["handle"], x=x)
    np.testing.assert_allclose(reply.tensors["out"], 2 * x @ weight.T, rtol=1e-14)
    assert reply.header["dtypes"] == {"out": "float64"}
    assert reply.header["requires_grad"]
    assert (reply.header["training"], reply.header["modes"]) == (False, [False])


def test_a_dtype_that_is_refused_is_reported_and_the_component_still_works(session):
    built = build(session, "Refuses", dtype="float64")
    assert built["dtype_refused"]["message"] == "float32 only"
    assert built["parameters"][0]["dtype"] == "float32"
    assert call(session, built["handle"], x=np.ones((1, 2), np.float32)).tensors["out"].shape == (1, 2)


def test_the_mode_is_set_for_the_call_and_reported_after_it(session):
    handle = build(session, "Linear")["handle"]
    x = np.ones((40, 3), np.float32)
    train = call(session, handle, x=x, header={"mode": "train", "seed": 3})
    assert (train.tensors["out"] == 0).any()
    assert train.header["training"]
    assert train.header["rng"][0] != train.header["rng"][1]
    left = call(session, handle, x=x, header={"mode": None})
    assert left.header["training"]
    assert not call(session, handle, x=x, header={"mode": "eval"}).header["training"]


def test_a_part_that_left_the_mode_shows(session):
    handle = build(session, "Stubborn")["handle"]
    assert call(session, handle, x=np.ones(1), header={"mode": "eval"}).header["modes"] == [False, True]


def test_dropout_repeats_with_its_seed(session):
    handle = build(session, "Linear")["handle"]
    x = np.ones((40, 3), np.float32)
    a, b, c = (call(session, handle, x=x, header={"mode": "train", "seed": s}).tensors["out"] for s in (1, 1, 2))
    assert (a == b).all()
    assert (a != c).any()


def test_the_build_repeats_with_its_seed(session):
    weights = [
        session.request({"op": "read", "handle": build(session, "Linear", seed=s)["handle"]}).tensors["w"]
        for s in (1, 1, 2)
    ]
    assert (weights[0] == weights[1]).all()
    assert (weights[0] != weights[2]).any()


def test_memory_that_nobody_filled_is_seen_whatever_stood_in_it(session):
    """Would break if a buffer left by `to_empty` were judged by what happens to be in memory, mostly zeros."""
    x = np.ones((2, 3), np.float32)
    marked = build(session, "Unfilled", marked=True)["handle"]
    assert np.isnan(call(session, marked, x=x).tensors["out"]).all()
    filled = build(session, "Linear", marked=True)["handle"]
    assert np.isfinite(call(session, filled, x=x).tensors["out"]).all()


def test_written_values_count_and_an_alias_is_written_once(session):
    built = build(session, "Tied", dtype="float64")
    assert {p["name"]: p["alias"] for p in built["parameters"]} == {
        "embedding.weight": None,
        "head.weight": "embedding.weight",
    }
    first = np.arange(15.0).reshape(5, 3)
    arrays = {"embedding.weight": first, "head.weight": -first}
    session.request({"op": "write", "handle": built["handle"]}, arrays)
    out = call(session, built["handle"], args=["ids"], ids=np.array([[1, 4]]))
    np.testing.assert_array_equal(out.tensors["out"], (first[[1, 4]] @ first.T)[None])


def test_writing_leaves_no_trace_in_the_graph_of_derivatives(session):
    handle = build(session, "Linear", dtype="float64")["handle"]
    session.request({"op": "write", "handle": handle}, {"w": np.eye(3)})
    parameters = session.request({"op": "parameters", "handle": handle}).header["parameters"]
    assert next(p for p in parameters if p["name"] == "w")["trainable"]


def test_gradients_reach_inputs_and_trainable_parameters_and_the_rest_is_reported(session):
    handle = build(session, "Linear", dtype="float64")["handle"]
    weight = session.request({"op": "read", "handle": handle, "names": ["w"]}).tensors["w"]
    x, c = np.arange(6.0).reshape(2, 3), np.array([[1.0, 0, 2], [0, -1, 0]])
    reply = call(session, handle, "vjp", x=x, cotangent=c, header={"wrt": ["x"], "parameters": True})
    np.testing.assert_allclose(reply.tensors["grad:x"], 2 * c @ weight)
    np.testing.assert_allclose(reply.tensors["param:w"], 2 * c.T @ x)
    assert reply.header["none"] == ["param:unused"]
    assert set(reply.tensors) == {"out", "grad:x", "param:w"}


def test_gradients_of_a_tied_parameter_are_summed_under_its_first_name(session):
    handle = build(session, "Tied", dtype="float64")["handle"]
    cotangent = np.ones((1, 2, 5))
    header = {"wrt": [], "parameters": True}
    reply = call(session, handle, "vjp", args=["ids"], ids=np.array([[1, 4]]), cotangent=cotangent, header=header)
    assert set(reply.tensors) == {"out", "param:embedding.weight"}


def test_an_output_that_depends_on_nothing_has_no_gradients_and_no_error(session):
    handle = build(session, "Rotary", dtype="float64")["handle"]
    header = {"wrt": ["x"], "parameters": True}
    reply = call(session, handle, "vjp", x=np.ones(2), cotangent=np.ones((2, 2)), header=header)
    assert reply.header["none"] == ["grad:x"]
    assert not reply.header["requires_grad"]


def test_a_cotangent_of_another_shape_than_the_output_is_reported(session):
    handle = build(session, "Linear", dtype="float64")["handle"]
    with pytest.raises(ImplementationFailure, match="expected"):
        call(session, handle, "vjp", x=np.ones((2, 3)), cotangent=np.ones(3), header={"wrt": ["x"]})


def test_infinite_outputs_do_not_spoil_the_gradient(inside):
    session = inside("""
        import torch
        def shift(x):
            return x + torch.tensor([float("inf"), 0.0])
    """)
    handle = build(session, "shift")["handle"]
    reply = call(session, handle, "vjp", x=np.ones(2), cotangent=np.array([0.0, 3.0]), header={"wrt": ["x"]})
    assert reply.tensors["grad:x"].tolist() == [0, 3]


def test_a_lazy_parameter_has_no_shape_before_the_first_call(session):
    built = build(session, "Lazy", dtype="float64")
    assert built["lazy"]
    assert [(p["shape"], p["lazy"]) for p in built["parameters"]] == [(None, True)] * 2
    call(session, built["handle"], x=np.ones((1, 3)))
    parameters = session.request({"op": "parameters", "handle": built["handle"]}).header["parameters"]
    assert [(p["name"], p["shape"], p["dtype"]) for p in parameters] == [
        ("proj.weight", [2, 3], "float64"),
        ("proj.bias", [2], "float64"),
    ]


def test_tensors_of_a_plain_object_are_found_cast_and_differentiated(session):
    built = build(session, "Plain", dtype="float64")
    assert {p["name"]: (p["kind"], p["trainable"], p["alias"]) for p in built["parameters"]} == {
        "w": ("array", True, None),
        "again": ("array", True, "w"),
        "parts.inner.weight": ("parameter", True, None),
        "parts.table": ("array", False, None),
    }
    assert {p["dtype"] for p in built["parameters"]} == {"float64", "int64"}
    reply = call(
        session, built["handle"], "vjp", x=np.ones((1, 3)), cotangent=np.ones((1, 3)),
        header={"wrt": ["x"], "parameters": True},
    )  # fmt: skip
    assert set(reply.tensors) == {"out", "grad:x", "param:w", "param:parts.inner.weight"}


def test_a_complex_table_survives_the_cast(session):
    # `.to(float64)` would drop the imaginary part
    handle = build(session, "Rotary", dtype="float64")["handle"]
    out = call(session, handle, x=np.ones(2)).tensors["out"]
    np.testing.assert_allclose(out, [[np.cos(1), np.sin(1)]] * 2, rtol=1e-6)
    read = session.request({"op": "read", "handle": handle})
    assert (read.header["left_out"], read.tensors) == (["freqs"], {})


class Cached(nn.Module):
    """Keeps keys in an attribute, as llama does: `to` copies nothing where the model has the format of its cache."""

    def __init__(self):
        super().__init__()
        self.linear, self.cache, self.angles = nn.Linear(2, 2), torch.zeros(4, 2), torch.arange(2.0)

    def forward(self, x):
        x = self.linear(x)
        self.cache = self.cache.to(x)
        self.cache[: len(x)] = x
        return self.cache[: len(x)] * self.angles


def test_an_empty_cache_has_the_format_of_its_model():
    """Would break if text that was written in inference mode kept the next call from writing, in float64 alone."""
    model = Cached()
    _cast_module(model, torch.float64)
    assert (model.cache.dtype, model.angles.dtype) == (torch.float64, torch.float32)  # numbers stay as they are
    x = torch.ones(3, 2, dtype=torch.float64)
    with torch.inference_mode():
        model(x)
    with torch.no_grad():
        assert model(x).shape == (3, 2)


def test_integers_have_no_derivatives(session):
    handle = build(session, "Tied")["handle"]
    with pytest.raises(ImplementationFailure, match="ids holds integers") as caught:
        call(
            session,
            handle,
            "vjp",
            args=["ids"],
            ids=np.array([[1]]),
            cotangent=np.ones((1, 1, 5)),
            header={"wrt": ["ids"]},
        )
    assert caught.value.kind == "request"


def test_a_strided_input_has_gaps_and_a_cast_one_its_dtype(inside):
    session = inside(
        "import torch\ndef f(x):\n    return x.stride(-1), torch.tensor(float(x.is_contiguous())), x.element_size()"
    )
    args = [{"$tensor": "x", "strided": True, "cast": "bfloat16"}]
    header = {"op": "call", "handle": build(session, "f")["handle"], "args": args, "output": [0, 1, 2]}
    reply = session.request(header, {"x": np.ones((2, 3))})
    assert [reply.tensors[name].item() for name in ("out", "out.1", "out.2")] == [4, 0, 2]


def test_a_method_other_than_forward_is_called(session):
    handle = build(session, "Linear")["handle"]
    assert call(session, handle, x=np.ones(4), header={"method": "hidden"}).tensors["out"].shape == (4,)
    with pytest.raises(ImplementationFailure, match="no method nothing"):
        call(session, handle, x=np.ones(4), header={"method": "nothing"})


def test_arguments_are_new_tensors_that_require_no_gradient(inside):
    session = inside("""
        import torch
        seen = []
        def forward(x):
            assert not x.requires_grad and torch.is_grad_enabled()
            seen.append(x)
            return float(len({t.data_ptr() for t in seen}))
    """)
    handle = build(session, "forward")["handle"]
    assert [call(session, handle, x=np.ones(2)).tensors["out"].item() for _ in range(3)] == [1, 2, 3]


CHOOSER = """
    import torch
    from torch import nn

    class Chooser(nn.Linear):
        def __init__(self):
            super().__init__(3, 4)
        def forward(self, x):
            return super().forward(x).argmax(-1)
        @torch.no_grad()
        def choose(self, x):
            return self(x)
"""


@pytest.mark.parametrize(("method", "kept"), [(None, True), ("choose", False)], ids=["with-gradients", "without"])
def test_values_kept_for_derivatives_are_reported_on_request(inside, method, kept):
    session = inside(CHOOSER)
    handle = build(session, "Chooser", dtype="float64")["handle"]
    headers = [{"method": method, "graph": asked} for asked in (True, False)]
    seen = [call(session, handle, x=np.ones((2, 3)), header=header).header["graph"] for header in headers]
    assert seen == [kept, False]


EXOTIC = """
    import torch
    from torch import nn

    class Quiet(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise RuntimeError("not for you")

    class Liar(torch.Tensor):
        @property
        def dtype(self):
            return "float128"

    values = {
        "subclass": torch.ones(2).as_subclass(Quiet), "parameter": nn.Parameter(torch.ones(2)),
        "half": torch.ones(2, dtype=torch.float16), "brain": torch.ones(2, dtype=torch.bfloat16),
        "byte": torch.ones(2, dtype=torch.uint8), "numpy": torch.ones(2).numpy(), "number": 1.0,
        "expanded": torch.ones(1).expand(2), "negated": torch.ones(2, dtype=torch.complex64).conj().imag + 1,
        "sparse": torch.eye(2).to_sparse(), "complex": torch.ones(2, dtype=torch.complex64),
        "quantised": torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
        "meta": torch.ones(2, device="meta"), "huge": torch.ones(1).expand(1 << 40),
        "nested": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    }
    def returns(which):
        return values[which]
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("which", "dtype"),
    [
        ("subclass", "float32"), ("parameter", "float32"), ("half", "float16"), ("brain", "bfloat16"),
        ("byte", "uint8"),
        ("numpy", "float32"), ("number", "float64"), ("expanded", "float32"), ("negated", "float32"),
    ],
)  # fmt: skip
def test_plain_tensors_come_back_whatever_they_are_wrapped_in(inside, which, dtype):
    session = inside(EXOTIC)
    reply = session.request({"op": "call", "handle": build(session, "returns")["handle"], "args": [which]})
    assert (reply.tensors["out"] == 1).all()
    assert reply.header["dtypes"]["out"] == dtype


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("which", ["sparse", "complex", "quantised", "meta", "huge", "nested"])
def test_a_tensor_without_plain_values_is_distinguished_from_an_exception(inside, which):
    session = inside(EXOTIC)
    with pytest.raises(ImplementationFailure) as caught:
        session.request({"op": "call", "handle": build(session, "returns")["handle"], "args": [which]})
    assert caught.value.kind == "output"
    assert "returned a" in caught.value.message


KEEPS = """
    import torch
    from torch import nn

    class Keeps(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(3))
            self.kept = None
        def forward(self, x):
            self.kept = {"last": [x * self.w]}
            return self.kept["last"][0].sum(-1)
"""


def test_what_keeps_the_results_of_its_last_call_is_copied_with_them(inside):
    session = inside(KEEPS)
    built = session.request({"op": "build", "path": "Keeps", "args": [], "kwargs": {}, "dtype": "float64", "seed": 0})
    handle = built.header["handle"]
    call = {"op": "call", "handle": handle, "args": [{"$tensor": "x"}], "kwargs": {}}
    session.request(call, {"x": np.arange(3.0)})
    other = session.request({"op": "copy", "handle": handle}).header["handle"]
    session.request({"op": "write", "handle": handle}, {"w": np.zeros(3)})
    assert session.request(call | {"handle": other}, {"x": np.arange(3.0)}).tensors["out"] == 3.0
    assert session.request(call | {"reset": True}, {"x": np.arange(3.0)}).tensors["out"] == 0.0
