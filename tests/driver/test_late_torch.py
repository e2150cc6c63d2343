"""Torch whose rest is loaded late does what an ordinary torch does, and loads nothing where that is not needed."""

from __future__ import annotations

import functools
import importlib
import json
import re
import socket
import subprocess
import sys
import types
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from conformkit.conformance.driver.worker import late_torch, zygote

_ROOT = Path(__file__).resolve().parents[2]

_NOT_NEEDED = {
    "modules": "torch.nn.Transformer(8, 2, 1, 1, 8)(torch.ones(2, 1, 8), torch.ones(2, 1, 8)).shape",
    "attention": "F.scaled_dot_product_attention(*[torch.ones(1, 2, 3, 4)] * 3, is_causal=True).tolist()",
    "derivatives": "F.gelu(torch.ones(2, requires_grad=True)).sum().backward()",
    "symbolic trace": "torch.fx.symbolic_trace(torch.nn.ReLU()).code",
}
_NEEDED = {
    "broadcast shapes": "torch.broadcast_shapes((2, 1), (3,))",
    "distributions": "torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2)).batch_shape",
    "attribute": "torch._refs.softmax(torch.ones(2), 0)",
    "from torch": "__import__('torch', fromlist=['_decomp'])._decomp.__spec__.origin",
    "module": "importlib.import_module('torch._prims').__spec__.origin",
    "module that it brings along": "importlib.import_module('torch.utils._content_store').__spec__.origin",
    "operators": "torch.ops.prims.iota(3, start=0, step=1, dtype=torch.int64, device='cpu', requires_grad=False)",
    "decompose": "torch.ops.aten.silu_backward.default.decompose(torch.ones(2), torch.ones(2))",
    "made on meta": "torch.nn.Linear(3, 4, device='meta')(torch.ones(2, 3, device='meta')).cumsum(0).stride()",
    "moved to meta": "torch.nn.LayerNorm(3).to('meta').weight",
    "indices on meta": "torch.tril_indices(3, 3, device='meta')",
    "meta by default": "[torch.set_default_device('meta'), torch.rand(3).softmax(0)][1]",
    "fake tensors": "[torch._subclasses.fake_tensor.FakeTensorMode().static_shapes, torch.ones(1)]",
    "functionalize": "torch.func.functionalize(lambda x: x.add_(1).softmax(0))(torch.ones(3))",
    "dispatcher": "proxy.make_fx(lambda x: F.silu(x))(torch.ones(3)).code",
    "symbolic dispatcher": "proxy.enable_python_dispatcher().__class__.__name__",
    "forward derivatives": "torch.func.jvp(F.gelu, (torch.ones(2),), (torch.ones(2),))",
    "compile": "torch.compile(torch.nn.Softmax(0), backend='eager')(torch.ones(2))",
    "other defaults": "[torch.set_default_dtype(torch.float64), torch.broadcast_shapes((1,)), torch.ones(1).dtype]",
}
_PROGRAM = """
import importlib, json, os, sys
late, cases = json.loads(sys.argv[1])
if late:
    from conformkit.conformance.driver.worker.late_torch import import_torch
    import_torch()
import torch
F, proxy = torch.nn.functional, torch.fx.experimental.proxy_tensor
found = {}
for name, text in cases.items():
    ours, theirs = os.pipe()
    if not os.fork():
        try:
            before = "torch._meta_registrations" in sys.modules
            value = str(eval(text))
        except BaseException as error:
            value = repr(error)
        found = before, value, "torch._meta_registrations" in sys.modules, type(sys.meta_path[0]).__name__
        os.write(theirs, json.dumps(found).encode())
        os._exit(0)
    os.close(theirs)
    found[name] = json.loads(os.read(ours, 65536))
    os.wait()
if late:
    importlib.import_module("torch._meta_registrations")
has, names = torch._C._dispatch_has_kernel_for_dispatch_key, torch._C._dispatch_get_all_op_names()
found["kernels"] = {name: [key for key in ("Meta", "CPU") if has(name, key)] for name in names}
found["torch"] = sorted(vars(torch))
print(json.dumps(found))
"""


@functools.cache
def _found(*, late: bool) -> dict[str, list[object]]:
    argument = json.dumps([late, {**_NOT_NEEDED, **_NEEDED}])
    command = [sys.executable, "-W", "ignore", "-c", _PROGRAM, argument]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_the_pinned_release_has_been_tried():
    pinned = re.search(r"^torch==(.+)$", (_ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert pinned is not None
    assert pinned[1].startswith(late_torch._TRIED), "add it to _TRIED once the tests marked full pass with it"


def test_a_module_that_is_there_by_then_is_not_executed_again(monkeypatch):
    asked, made = [], types.ModuleType("torch.made_up")
    made.__spec__ = known = ModuleSpec("torch.made_up", None)
    whole = types.ModuleType("torch")
    whole.__path__ = []
    monkeypatch.setitem(sys.modules, "torch", whole)
    monkeypatch.delitem(sys.modules, "torch.made_up", raising=False)

    def load():
        asked.append(1)
        sys.modules["torch.made_up"] = made

    monkeypatch.setattr(sys, "meta_path", [late_torch._Finder(load), *sys.meta_path])
    assert importlib.import_module("torch.made_up") is made
    assert made.__spec__ is known
    assert asked == [1]


def test_a_process_that_forks_many_workers_loads_the_rest_once_and_for_all(monkeypatch):
    """Would break if each submission of a class that trains loaded it anew, or each run before it is needed."""
    done: list[str] = []
    monkeypatch.setattr(late_torch, "complete", lambda: done.append("complete"))
    monkeypatch.setattr(zygote._Zygote, "_fork", lambda _self, _descriptors, _request: done.append("fork"))
    monkeypatch.setattr(zygote._Zygote, "_introduce", lambda _self, _pid: None)
    monkeypatch.setattr(zygote._Zygote, "_kill_orphans", lambda _self: None)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        for _ in range(18):
            ours.send(b'{"do": "fork"}')
        ours.shutdown(socket.SHUT_WR)
        zygote._Zygote(theirs, sandboxed=False).serve([])
    assert done == ["fork"] * 16 + ["complete"] + ["fork"] * 2


def test_nothing_is_loaded_late_of_a_release_that_was_imported_whole(monkeypatch):
    """Would break if the process that forks workers ended where torch has no such module."""
    monkeypatch.setattr(late_torch, "_LATE", "torch.no_such_module")
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    late_torch.complete()


needs_a_tried_release = pytest.mark.skipif(not late_torch._tried(), reason="imported whole: nobody has tried it")


@needs_a_tried_release
@pytest.mark.full(guard="test_a_module_that_is_there_by_then_is_not_executed_again")
@pytest.mark.parametrize("name", [*_NOT_NEEDED, *_NEEDED])
def test_what_needs_the_rest_loads_it_and_gives_what_torch_gives(name):
    before, value, loaded, first = _found(late=True)[name]
    assert before is False
    assert value == _found(late=False)[name][1]
    assert loaded is (name in _NEEDED)
    assert (first == "_Finder") is not loaded


@needs_a_tried_release
@pytest.mark.full(guard="test_the_pinned_release_has_been_tried")
@pytest.mark.parametrize("what", ["kernels", "torch"])
def test_once_loaded_all_is_as_after_an_ordinary_import(what):
    assert _found(late=True)[what] == _found(late=False)[what]
