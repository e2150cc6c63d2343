"""On the ghost device right code conforms, and code with tensors elsewhere does not, with its line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.driver.worker.frameworks.torch_ghost import TorchOnGhost
from conformkit.conformance.driver.worker.ghost import device
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.suite.registry import tests as suite
from conformkit.reference.seq2seq.tasks import COPY, learn, small_model, token_accuracy, written_accuracy
from conformkit.spec.clauses import Level, clauses_of
from tests.outcomes import Inputs, law
from tests.right.false_alarms import right_ones

if not device.why_not():
    device.ensure()  # at collection: torch counts devices when something is first differentiated
ROOT = Path(__file__).resolve().parents[2]


def _uses_torch(impl: Path) -> bool:
    """Whether a source imports torch: code in NumPy has no other device."""
    sources = impl.rglob("*.py") if impl.is_dir() else [impl]
    return any(
        re.search(r"^\s*(import|from) torch\b", source.read_text(encoding="utf-8"), re.MULTILINE) for source in sources
    )


SEED = int(os.environ.get("CONFORM_SEED", "0"))
"""Another one gives each right implementation another part of the law, and other draws: each night has its own."""
PARTS = 16
RIGHT = [Path(impl) for impl in right_ones() if impl != "conformkit.reference" and _uses_torch(Path(impl))]


@contextmanager
def judging(
    impl: str, warm: LentFactory, profile: str = "core", dtype: str = "", components: tuple[str, ...] | None = None
) -> Iterator[Judge]:
    request = RunRequest(impl=impl, profile=profile, dtype=dtype, device="ghost")
    with opened(request, warm, components=components) as (implementation, _):
        yield Judge(implementation, suite(profile), seed=SEED)


def broken(judge: Judge, profile: str = "core", part: int = 0, parts: int = 1) -> list[str]:
    """Return the binding clauses of the profile that are red; of several parts, in one, as if what they need held."""
    binding = [name for name, clause in clauses_of(profile).items() if clause.level is Level.MUST]
    ask = judge.result if parts == 1 else judge.alone
    judged = [ask(name) for name in binding[part::parts]]
    return [f"{result.clause.id}: {result.message}" for result in judged if result.verdict.red]


@pytest.mark.full(guard="test_some_clauses_hold_there", near=["conformance/driver/worker/ghost", "reference"])
@pytest.mark.parametrize(
    ("profile", "dtype"),
    [("core", ""), ("lm", ""), ("seq2seq", ""), ("core", "bfloat16"), ("lm", "bfloat16")],
    ids=lambda value: value or "declared",
)
def test_the_reference_conforms_there(profile: str, dtype: str, warm: LentFactory) -> None:
    """An encoder-decoder is judged in one number format: where its tensors are does not depend on that."""
    with judging("conformkit.reference", warm, profile, dtype) as judge:
        assert broken(judge, profile) == []


def inputs(number: int, impl: Path) -> Inputs:
    """Return what an implementation meets there."""
    met = law(clauses_of("core"))
    return replace(met, files=(impl,), texts=(*met.texts, f"part {number + SEED} of {PARTS}, seed {SEED}"))


@pytest.mark.full(guard="test_some_clauses_hold_there", near=["conformance/driver/worker/ghost"])
@pytest.mark.stored(inputs=inputs)
@pytest.mark.parametrize(("number", "impl"), list(enumerate(RIGHT)), ids=[impl.stem for impl in RIGHT])
def test_no_right_implementation_breaks_a_clause_there(number: int, impl: Path, warm: LentFactory) -> None:
    """Each meets a sixteenth of the law, each clause a sixteenth of them: on the CPU all are judged whole."""
    with judging(str(impl), warm) as judge:
        assert broken(judge, part=(number + SEED) % PARTS, parts=PARTS) == []


@pytest.mark.parametrize("impl", ["reference", "tests/right/scripted.py"], ids=["reference", "torchscript"])
def test_some_clauses_hold_there(impl: str, warm: LentFactory) -> None:
    with judging(str(ROOT / impl), warm, components=("MultiHeadAttention",)) as judge:
        for name in ("MHA-ORACLE", "MHA-DROPOUT-TRAIN", "GRAD-INPUT", "DET-COPY", "DEV-FOLLOW"):
            result = judge.alone(name)
            assert result.verdict is Verdict.PASS, result


def test_a_mask_that_is_made_on_the_cpu_is_found_with_its_line(warm: LentFactory, tmp_path: Path) -> None:
    file = tmp_path / "stubborn.py"
    file.write_text(
        "import torch\n"
        "def scaled_dot_product_attention(q, k, v, mask=None):\n"
        "    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5\n"
        "    seen = torch.ones(scores.shape[-2:], dtype=torch.bool) if mask is None else mask\n"
        "    return torch.softmax(scores.masked_fill(~seen, -1e9), dim=-1) @ v\n"
    )
    with judging(str(file), warm) as judge:
        result = judge.result("SDPA-OUT-SHAPE")
    assert (result.verdict, result.where) == (
        Verdict.ERROR,
        "stubborn.py:5 in scaled_dot_product_attention",
    )
    assert "at least two devices, ghost:0 and cpu" in result.message
    with opened(RunRequest(impl=str(file)), warm) as (implementation, _):
        found = Judge(implementation, suite("core"), seed=0).alone("DEV-FOLLOW")
    assert found.verdict is Verdict.FAIL
    assert "`ones`, `stubborn.py:4 in scaled_dot_product_attention`" in found.message


def test_ids_that_only_sampling_makes_on_the_cpu_are_found(warm: LentFactory, tmp_path: Path) -> None:
    """Would break if greedy texts alone were written there: they need no draw."""
    right = (ROOT / "examples" / "single_file.py").read_text(encoding="utf-8")
    made = "idx.new_tensor(new)[:, None]"
    wrong = f"({made} if temperature == 0 else torch.tensor(new)[:, None])"
    file = tmp_path / "sampled.py"
    file.write_text(right.replace(made, wrong), encoding="utf-8")
    with opened(RunRequest(impl=str(file)), warm) as (implementation, _):
        found = Judge(implementation, suite("core"), seed=0).alone("DEV-FOLLOW")
    assert found.verdict is Verdict.FAIL
    assert "sampling on another device" in found.message


def test_a_constructor_that_takes_a_device_may_rely_on_it(warm: LentFactory, tmp_path: Path) -> None:
    file = tmp_path / "placed.py"
    file.write_text(
        "import torch\n"
        "class FeedForward(torch.nn.Module):\n"
        "    def __init__(self, d_model, d_ff, device='cpu'):\n"
        "        super().__init__()\n"
        "        self.up, self.down = torch.nn.Linear(d_model, d_ff), torch.nn.Linear(d_ff, d_model)\n"
        "        self.device = device\n"
        "    def forward(self, x):\n"
        "        h = torch.nn.functional.gelu(self.up(x)) * torch.ones(1, dtype=x.dtype, device=self.device)\n"
        "        return self.down(h)\n"
    )
    with opened(RunRequest(impl=str(file)), warm) as (implementation, _):
        judge = Judge(implementation, suite("core"), seed=0)
        found = {name: judge.result(name).verdict for name in ("DEV-WRITTEN", "DEV-MOVES", "DEV-FOLLOW")}
    assert not [name for name, verdict in found.items() if verdict.red], found


def test_code_in_numpy_has_one_device(warm: LentFactory) -> None:
    with opened(RunRequest(impl=str(ROOT / "examples/numpy_only")), warm) as (implementation, _):
        judge = Judge(implementation, suite("core"), seed=0)
        devices = [name for name, clause in clauses_of("core").items() if clause.document == "devices"]
        assert {judge.result(name).verdict for name in devices} == {Verdict.NOT_APPLICABLE}


def test_the_command_takes_the_device_and_refuses_an_old_torch(tmp_path: Path) -> None:
    """The hooks are hidden from the worker by a module of this name that comes first."""
    (tmp_path / "old.py").write_text(
        "import sys, types\n"
        "import torch\n"
        "sys.modules['torch.utils.backend_registration'] = types.ModuleType('old')\n"
        "def scaled_dot_product_attention(q, k, v, mask=None):\n"
        "    return q\n"
    )
    command = [sys.executable, "-m", "conformkit.cli", "run", "--impl", "old.py", "--device", "ghost"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 4, done.stderr
    assert "not run: needs the device ghost, and torch" in done.stderr
    assert "Traceback" not in done.stderr
    command[-1] = "cpu"
    done = subprocess.run(
        [*command, "--only", "DEV", "--json", "-"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    found = {result["id"]: result["verdict"] for result in json.loads(done.stdout)["clauses"]}
    assert found["DEV-WRITTEN"] == "not applicable"


@pytest.mark.full(guard="test_a_batch_is_moved_to_the_model")
def test_an_encoder_decoder_learns_there() -> None:
    there, model = TorchOnGhost(), small_model(COPY)
    there.move(model)
    learn(model, COPY, COPY.updates)
    batch = COPY.batch(64, torch.Generator().manual_seed(999))
    assert token_accuracy(model, batch) > 0.95
    assert written_accuracy(model, batch) > 0.9


def test_a_batch_is_moved_to_the_model() -> None:
    there, model, other = TorchOnGhost(), small_model(COPY), small_model(COPY)
    other.load_state_dict(model.state_dict())
    there.move(model)
    batch = COPY.batch(8, torch.Generator().manual_seed(999))
    assert learn(model, COPY, 2, batch_size=4) == pytest.approx(learn(other, COPY, 2, batch_size=4), rel=1e-4)
    assert written_accuracy(model, batch) == pytest.approx(written_accuracy(other, batch))
