"""The device that exists in name only behaves as a GPU does: what it refuses, what it keeps, and its numbers."""

from __future__ import annotations

import copy
import io
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from conformkit.conformance.driver.worker.frameworks.base import NoGhostError, UnsupportedError
from conformkit.conformance.driver.worker.frameworks.torch_ghost import TorchOnGhost
from conformkit.conformance.driver.worker.ghost import device, watching
from conformkit.conformance.driver.worker.ghost.rules import MixedDevices
from conformkit.conformance.driver.worker.ghost.tensor import GhostTensor, values_of
from conformkit.conformance.driver.worker.templates import Filler
from tests.needs import without

pytestmark = without("GHOST", device.why_not())
if not device.why_not():
    device.ensure()  # at collection: torch counts devices when something is first differentiated


@pytest.fixture(scope="module")
def there():
    return TorchOnGhost()


@pytest.fixture
def x(there):
    return there.tensor(np.arange(6.0).reshape(2, 3), cast="float32", strided=False)


def _assigned(x, c):
    x[0] = c[0]
    return x


MIXED = {
    "sum": lambda x, c: x + c,
    "sum-the-other-way": lambda x, c: c + x,
    "product": lambda x, c: x @ c.T,
    "in-place-on-the-cpu": lambda x, c: c.add_(x),
    "joined": lambda x, c: torch.cat([x, c]),
    "chosen": lambda x, c: torch.where(c > 0, x, x),
    "hidden": lambda x, c: x.masked_fill(c > 0, 0.0),
    "cpu-indexed-from-there": lambda x, c: c[(x > 0).long()],
    "rows-of-a-table": lambda x, c: F.embedding(torch.tensor([0, 1]), x),
    "attention": lambda x, c: F.scaled_dot_product_attention(x, x, x, attn_mask=torch.ones(2, 2, dtype=torch.bool)),
    "assigned-by-flags": lambda x, c: x.__setitem__(x > 0, torch.ones(5)),
}
ALLOWED = {
    "a-number-of-the-cpu": (lambda x, c: x * torch.tensor(2.0), [[0, 2, 4], [6, 8, 10]]),
    "indices-of-the-cpu": (lambda x, c: x[torch.tensor([1])], [[3, 4, 5]]),
    "flags-of-the-cpu": (lambda x, c: x[torch.tensor([False, True])], [[3, 4, 5]]),
    "copied-there": (lambda x, c: x.copy_(c), [[1, 1, 1], [1, 1, 1]]),
    "copied-here": (lambda x, c: c.copy_(x), [[0, 1, 2], [3, 4, 5]]),
    "assigned-by-slices": (_assigned, [[1, 1, 1], [3, 4, 5]]),
    "filled-with-a-number-of-the-cpu": (
        lambda x, c: x.masked_fill(x > 3, torch.tensor(9.0)),
        [[0, 1, 2], [3, 9, 9]],
    ),
}


@pytest.mark.parametrize("mix", MIXED)
def test_tensors_of_two_devices_do_not_mix(x, mix):
    with pytest.raises((MixedDevices, RuntimeError), match=r"ghost:0"):
        MIXED[mix](x, torch.ones(2, 3))


@pytest.mark.parametrize("name", ALLOWED)
def test_numbers_indices_and_copies_may_come_from_the_cpu(x, name):
    mix, wanted = ALLOWED[name]
    assert values_of(mix(x, torch.ones(2, 3))).tolist() == wanted


FACTORIES = {
    "arange": lambda d: torch.arange(2, 8, 2, device=d),
    "full": lambda d: torch.full((3,), 2.5, device=d),
    "ones": lambda d: torch.ones(3, device=d),
    "eye": lambda d: torch.eye(3, device=d),
    "tensor": lambda d: torch.tensor([1.0, 2.0, 3.0], device=d),
    "linspace": lambda d: torch.linspace(0, 1, 3, device=d),
    "rows-below": lambda d: torch.tril_indices(3, 3, device=d),
    "permutation": lambda d: torch.randperm(3, device=d),
    "normal": lambda d: torch.randn(3, device=d),
    "moved": lambda d: torch.ones(3).to(d),
    "like": lambda d: torch.zeros_like(torch.ones(3, device=d)),
    "layer": lambda d: nn.Linear(3, 3, device=d).weight.detach(),
}


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize("name", FACTORIES)
def test_what_is_made_there_is_there_and_equals_the_cpus(name):
    torch.manual_seed(0)
    made = FACTORIES[name]("ghost")
    torch.manual_seed(0)
    wanted = FACTORIES[name]("cpu")
    assert (str(made.device), made.shape, made.dtype) == ("ghost:0", wanted.shape, wanted.dtype)
    assert torch.equal(made.cpu(), wanted)


class _Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class _Rotation(nn.Module):
    """Neighboring features turned as complex numbers, and a product with a conjugate."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        pairs = torch.view_as_complex(self.linear(x).unflatten(-1, (-1, 2)))  # (…, 4)
        angles = torch.arange(4.0, device=x.device)
        turned = torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)
        return turned + (pairs * pairs.conj()).real.repeat_interleave(2, dim=-1) - pairs.conj().imag.mean()


MODULES = {
    "encoder-layer": lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
    "lstm": lambda: nn.LSTM(8, 5, num_layers=2, bidirectional=True, batch_first=True),
    "gru": lambda: nn.GRU(8, 5, bidirectional=True, batch_first=True),
    "norms": lambda: nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8), nn.RMSNorm(8), nn.GELU()),
    "attention": _Attention,
    "complex-numbers": _Rotation,
}


@pytest.mark.parametrize("name", MODULES)
def test_two_steps_of_training_give_what_they_give_on_the_cpu(there, name):
    torch.manual_seed(0)
    here = MODULES[name]()
    moved = copy.deepcopy(here)
    there.move(moved)
    data = torch.randn(2, 4, 8)
    losses = [[_step(module, place) for _ in range(2)] for module, place in ((here, data), (moved, data.to("ghost")))]
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)


def _step(module, data):
    module.train()
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
    out = module(data)
    loss = ((out[0] if isinstance(out, tuple) else out)[..., ::2] - 0.5).square().mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
    optimizer.step()
    return loss.item()


class Turns(nn.Module):
    """Makes a table of the numbers of positions, with a buffer that lies where it was built."""

    def __init__(self):
        super().__init__()
        self.register_buffer("speed", torch.ones(3), persistent=False)

    def forward(self, x):
        return x * self.speed


def test_what_makes_a_table_for_a_call_is_there_before_it_is_called(there):
    """Would break if code that gets its tables from the model were red for where conform.toml builds them."""
    filler = Filler(there, {"x": np.ones((2, 3), np.float32)}, {"theirs:Turns": Turns}.__getitem__)
    made = filler.fill({"$object": "theirs:Turns", "then": {"args": [{"$tensor": "x"}]}})
    assert made.device == filler.fill({"$tensor": "x"}).device


def test_tied_weights_stay_tied_and_an_optimizer_keeps_its_parameters(there):
    model = nn.ModuleDict({"words": nn.Embedding(5, 3), "head": nn.Linear(3, 5, bias=False)})
    model["head"].weight = model["words"].weight
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    there.move(model)
    assert model["head"].weight is model["words"].weight
    assert optimizer.param_groups[0]["params"][0] is model["words"].weight
    assert isinstance(model["head"].weight, nn.Parameter)


@pytest.mark.parametrize("placed", [True, False], ids=["made-there", "moved"])
def test_lazy_layers_learn_their_width_there(there, x, placed):
    layers = nn.Sequential(nn.LazyLinear(4, device="ghost" if placed else None), nn.LazyBatchNorm1d())
    weight = layers[0].weight
    there.move(layers)
    copied = copy.deepcopy(layers).double()
    layers(x).sum().backward()
    assert layers[0].weight is weight
    assert (weight.shape, weight.grad.shape, str(layers[1].running_mean.device)) == ((4, 3), (4, 3), "ghost:0")
    assert copied(x[:, :2].double()).dtype is torch.float64


@pytest.mark.parametrize("wrong", [3, -1])
def test_an_id_outside_raises_there_too(there, x, wrong):
    ids = torch.tensor([0, wrong], device="ghost")
    with pytest.raises(RuntimeError, match="Class values must be"):
        F.one_hot(ids, 3)
    with pytest.raises(IndexError):
        F.embedding(ids, x)
    with pytest.raises((IndexError, RuntimeError), match="out of"):
        x.gather(1, ids[None])


def test_a_checkpoint_is_loaded_where_it_is_asked_for(there):
    module = nn.Linear(2, 2)
    there.move(module)
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    places = {}
    for place in (None, "cpu"):
        file.seek(0)
        places[place] = str(torch.load(file, map_location=place)["weight"].device)
    assert places == {None: "ghost:0", "cpu": "cpu"}


def test_arrays_of_numpy_are_refused_and_numbers_are_read(x):
    for read in (x.numpy, lambda: np.asarray(x)):
        with pytest.raises(TypeError, match=r"Use Tensor\.cpu"):
            read()
    assert x.cpu().numpy().sum() == x.sum().item() == 15.0
    assert f"{x.sum():.1f}" == "15.0"
    assert x.tolist()[1] == [3.0, 4.0, 5.0]


def test_inference_mode_works_and_shapes_may_change_in_place(x):
    with torch.inference_mode():
        assert values_of(x[:, 1:].reshape(4)).tolist() == [1, 2, 4, 5]
        assert str(x.view(6).detach().device) == "ghost:0"
        y = x.mul(2).add_(torch.tensor([1.0], device="ghost"))
        y[0] = 0.0
    assert values_of(y).tolist() == [[0, 0, 0], [7, 9, 11]]
    x.transpose_(0, 1)
    assert (x.shape, x.stride()) == ((3, 2), (1, 3))


def test_random_numbers_need_a_generator_of_the_device(there):
    own = torch.Generator(device="ghost").manual_seed(3)
    drawn = torch.rand(4, device="ghost", generator=own)
    assert torch.equal(drawn.cpu(), torch.rand(4, generator=torch.Generator().manual_seed(3)))
    assert isinstance(own, torch.Generator)
    with pytest.raises(RuntimeError, match="Expected a 'ghost' device type for generator but found 'cpu'"):
        torch.rand(4, device="ghost", generator=torch.Generator())


def test_autocast_lowers_products_and_not_sums(there, x):
    layer = nn.Linear(3, 2)
    there.move(layer)
    with torch.autocast("ghost", torch.bfloat16):
        assert layer(x).dtype is torch.bfloat16
        assert torch.softmax(layer(x), dim=-1).dtype is torch.float32
        assert torch.relu(layer(x)).dtype is torch.bfloat16  # what is in neither list takes what it is given
        assert torch.relu(x).dtype is torch.float32
        assert (x.double() @ x.double().T).dtype is torch.float64
    assert layer(x).dtype is torch.float32


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_scripted_modules_move_as_well(there, x):
    layer = torch.jit.script(nn.Linear(3, 2))
    there.move(layer)
    assert isinstance(layer(x), GhostTensor)


@pytest.mark.parametrize(
    ("name", "arguments", "options", "said"),
    [
        ("cpu", (torch.zeros(1),), {}, "'cpu'"), ("cuda", (torch.zeros(1),), {}, "'cuda'"), ("cpu", (), {}, ""),
        ("cpu", ("not a tensor",), {}, ""), ("sum", (torch.zeros(1),), {}, ""),
        ("zeros", (3,), {"device": "cuda:1"}, "'cuda:1'"), ("zeros", (3,), {"device": torch.device("cpu")}, "cpu"),
        ("zeros", (3,), {"device": "ghost"}, ""), ("to", (torch.zeros(1), "cpu"), {}, "'cpu'"),
        ("add", (torch.zeros(1), "cpu"), {}, ""),
    ],
)  # fmt: skip
def test_a_device_that_a_call_names_is_found(name, arguments, options, said):
    """Would break if `x.cpu()` were told as a tensor from nowhere, or a text that is no device as one."""
    assert watching._named(SimpleNamespace(__name__=name), arguments, options) == said


def test_cuda_is_still_not_there(there):
    assert not torch.cuda.is_available() or torch.version.cuda


def test_a_torch_without_hooks_is_refused(monkeypatch):
    monkeypatch.setattr(device, "why_not", lambda: "torch 2.6.0 has no hooks for a device that is written in Python")
    with pytest.raises(NoGhostError, match=r"not run: needs the device ghost, and torch 2\.6\.0 has no hooks"):
        TorchOnGhost()


def test_nothing_heavy_is_imported():
    """Would break if the first operation imported torch's distributed tensors: that takes half as long as torch."""
    code = (
        "import os, sys, torch\n"
        "from conformkit.conformance.driver.worker.ghost import device\n"
        "device.ensure()\n"
        "(torch.ones(2, 2, device='ghost', requires_grad=True) @ torch.ones(2, 2, device='ghost')).sum().backward()\n"
        "heavy = 'sympy', 'torch._dynamo', 'torch.distributed.tensor'\n"
        "print([name for name in heavy if name in sys.modules], flush=True)\n"
        "os._exit(0)\n"  # as a worker ends: torch's thread of the device may still be giving back what it held
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class _Told(nn.Module):
    """Keeps a table in a plain attribute; its settings name a device, which its constructor reads or not."""

    def __init__(self, settings):
        super().__init__()
        self.settings = settings
        self.table = torch.ones(3, device=settings.device)

    def forward(self, x):
        return x + self.table


class _Untold(_Told):
    def __init__(self, settings):
        nn.Module.__init__(self)
        self.settings, self.table = settings, torch.ones(3)


@pytest.mark.parametrize(
    ("kind", "error"), [(_Told, UnsupportedError), (_Untold, watching.LeftBehind)], ids=["reads-it", "has-it"]
)
def test_what_is_made_on_a_device_that_was_told_need_not_move(there, x, kind, error):
    """Catches code that is built for a device, red for its table, and a forgotten buffer excused by its settings."""
    model = kind(SimpleNamespace(device="cpu"))
    there.move(model)
    with pytest.raises(error), there.watched(model, "devices", lambda path: path):
        model(x)
