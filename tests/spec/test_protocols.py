"""What type checkers, and isinstance, learn from the Protocols of the contract."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from torch import nn

import conformkit.spec as law
from conformkit import reference
from conformkit.spec.components import COMPONENTS, SEVERAL_NAMES, component
from conformkit.spec.tools import FUNCTION, TOOLS

ROOT = Path(__file__).resolve().parents[2]

BUILT = [name for name in (*COMPONENTS, *SEVERAL_NAMES) if name != "ScaledDotProductAttention"]
CLASSES = {
    **{name: f"{name}Constructor[{name}Module[Tensor]]" for name in (*BUILT, "LabelSmoothingLoss")},
    **{name: f"{name}Constructor[{name}]" for name in ("CharTokenizer", "BPETokenizer")},
    "AdamW": "AdamWConstructor[Tensor]",
}
"""The annotation for each class of the contract, in PyTorch."""
FUNCTIONS = {
    "scaled_dot_product_attention": "ScaledDotProductAttention[Tensor]",
    "train_val_split": "TrainValSplit[Tensor]",
    "get_batch": "GetBatch[Tensor]",
    "sliding_windows": "SlidingWindows[Tensor]",
    "cross_entropy": "CrossEntropy[Tensor]",
    "balance_loss": "BalanceLoss[Tensor]",
    "perplexity": "Perplexity[Tensor]",
    "bits_per_character": "BitsPerCharacter[Tensor]",
    "clip_grad_norm": "ClipGradNorm[Tensor]",
    "cosine_schedule": "CosineSchedule",
    "inverse_sqrt_schedule": "InverseSqrtSchedule",
    "train_step": "TrainStep[Tensor]",
    "evaluate": "Evaluate[Tensor]",
    "save_checkpoint": "SaveCheckpoint",
    "load_checkpoint": "LoadCheckpoint",
    "beam_search": "BeamSearch[Tensor]",
    "exponential_moving_average": "ExponentialMovingAverage[Tensor]",
    "rolling_mean": "RollingMean[Tensor]",
    "attention_entropy": "AttentionEntropy[Tensor]",
    "fit_power_law": "FitPowerLaw",
    "create_padding_mask": "CreatePaddingMask[Tensor]",
    "create_causal_mask": "CreateCausalMask[Tensor]",
    "create_masks": "CreateMasks[Tensor]",
    "shift_right": "ShiftRight[Tensor]",
    "collate": "Collate[Tensor]",
    "mask_tokens": "MaskTokens[Tensor]",
    "collate_answers": "CollateAnswers[Tensor]",
    "answer_loss": "AnswerLoss[Tensor]",
    "sequence_log_probs": "SequenceLogProbs[Tensor]",
    "reward_loss": "RewardLoss[Tensor]",
    "dpo_loss": "DpoLoss[Tensor]",
    "group_advantages": "GroupAdvantages[Tensor]",
    "policy_loss": "PolicyLoss[Tensor]",
    "kl_estimate": "KlEstimate[Tensor]",
}
"""The annotation for each function."""

HEAD = """
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

import conformkit.spec as law
from conformkit import reference
from conformkit.spec import *

Floats = NDArray[np.float64]

class Attend:
    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0, causal: bool = True) -> None: ...
    def __call__(self, inputs: Floats) -> Floats: ...
class OtherArgument(Attend):
    def __init__(self, d_model: int, n_head: int, dropout: float = 0.0, causal: bool = True) -> None: ...
class OtherType(Attend):
    def __init__(self, d_model: str, num_heads: int, dropout: float = 0.0, causal: bool = True) -> None: ...
class NeverCausal(Attend):
    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0) -> None: ...
class OneMore(Attend):
    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0, causal: bool = True, *, bias: bool) -> None: ...
class OneMoreOption(Attend):
    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0, causal: bool = True, bias: bool = False) -> None: ...

class Block:
    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, causal: bool = True) -> None: ...
    def __call__(self, x: str) -> None: ...
class ModuleCalled(nn.Module):
    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, causal: bool = True) -> None: ...
    def __call__(self, x: str) -> None: ...
class ModuleForward(nn.Module):
    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, causal: bool = True) -> None: ...
    def forward(self, x: str) -> None: ...
class ModuleBlock(nn.Module):
    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, causal: bool = True) -> None: ...
    def forward(self, hidden: Tensor, mask: Tensor | None = None) -> Tensor: ...

def attend(queries: Floats, keys: Floats, values: Floats, mask: NDArray[Any] | None = None) -> Floats: ...
def attend_and_tell(q: Floats, k: Floats, v: Floats, mask: Floats | None = None) -> tuple[Floats, Floats]: ...
def attend_unmasked(q: Floats, k: Floats, v: Floats) -> Floats: ...
def attend_always_masked(q: Floats, k: Floats, v: Floats, mask: Floats) -> Floats: ...
def attend_hidden(q: Floats, k: Floats, v: Floats, hidden: Floats | None = None) -> Floats: ...
def mean_loss(logits: Floats, targets: NDArray[Any], ignore_index: int = -100, label_smoothing: float = 0.0) -> np.floating[Any]: ...
"""  # noqa: E501 - a stub a line

NUMPY = "MultiHeadAttentionConstructor[MultiHeadAttention[Floats]]"
ACCEPTED = [
    *((kind, f"reference.{name}") for name, kind in (CLASSES | FUNCTIONS).items()),
    ("TransformerBlock[Tensor]", "reference.TransformerBlock(8, 2, 32)"),
    ("TransformerBlockModule[Tensor]", "reference.TransformerBlock(8, 2, 32)"),
    ("TransformerBlockConstructor[TransformerBlockModule[Tensor]]", "ModuleBlock"),
    ("TinyTransformerLMModule[Tensor]", "reference.TinyTransformerLM(5, 8, 2, 1, 32, 4)"),
    ("law.MultiHeadAttentionConstructor[law.MultiHeadAttention[Floats]]", "Attend"),
    ("Perplexity[float]", "reference.perplexity"),
    *((NUMPY, name) for name in ("Attend", "OneMoreOption")),
    *(("ScaledDotProductAttention[Floats]", name) for name in ("attend", "attend_and_tell")),
    ("CrossEntropy[Floats]", "mean_loss"),
    # Limits, told in docs/static.md: a call of a module has any type, and an instance does not know its constructor.
    ("TransformerBlock[Tensor]", "ModuleForward(8, 2, 32)"),
    ("MultiHeadAttentionModule[Tensor]", "nn.Linear(8, 8)"),
]
REFUSED = [
    *(("int", f"reference.{name}") for name in CLASSES | FUNCTIONS),  # if it were Any, it would fit everything
    *((kind, "nn.Linear") for kind in (CLASSES | FUNCTIONS).values()),
    *((kind, "nn.Linear(8, 8)") for kind in FUNCTIONS.values()),
    *((kind, "nn.MultiheadAttention") for kind in CLASSES.values()),
    *((f"{name}Constructor[nn.Module]", "nn.Linear") for name in BUILT),
    *((f"{name}[Tensor]", "nn.Linear(8, 8)") for name in ("TinyTransformerLM", "Transformer")),
    *((f"TransformerBlock{kind}[Tensor]", "Block(8, 2, 32)") for kind in ("", "Module")),
    *((f"TransformerBlock{kind}[Tensor]", "ModuleCalled(8, 2, 32)") for kind in ("", "Module")),
    ("TransformerBlockModule[Tensor]", "ModuleForward(8, 2, 32)"),
    *((f"TransformerBlockConstructor[TransformerBlock{kind}[Tensor]]", "Block") for kind in ("", "Module")),
    *((f"TransformerBlockConstructor[TransformerBlock{kind}[Tensor]]", "ModuleCalled") for kind in ("", "Module")),
    ("TransformerBlockConstructor[TransformerBlockModule[Tensor]]", "ModuleForward"),
    ("TransformerBlock", "reference.TransformerBlock(8, 2, 32)"),  # --strict demands the type of arrays
    ("MultiHeadAttentionConstructor[MultiHeadAttention[Tensor]]", "Attend"),
    *((NUMPY, name) for name in ("OtherArgument", "OtherType", "NeverCausal", "OneMore")),
    *(
        ("ScaledDotProductAttention[Floats]", name)
        for name in ("attend_unmasked", "attend_always_masked", "attend_hidden", "Attend")
    ),
    ("ScaledDotProductAttention[Tensor]", "attend"),
]

CONFIGURATION = """
[mypy]
strict = true
namespace_packages = true
explicit_package_bases = true
disable_error_code = empty-body
follow_imports = silent
# Most of PyTorch is not needed here, and takes mypy long to read.
[mypy-torch.*,sympy.*,safetensors.*,tokenizers.*]
follow_imports = skip
[mypy-torch,torch._C,torch._tensor,torch.nn,torch.nn.modules.*,torch.nn.parameter,torch.autograd,torch.autograd.grad_mode,torch.utils._contextlib]
follow_imports = silent
"""


def examples():
    """Return the examples in docs/static.md: PyTorch, one instance in PyTorch, NumPy."""
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "static.md").read_text(encoding="utf-8"), re.DOTALL)


def checked(folder):
    """Return the lines of the cases that mypy refuses, and its errors in the examples of docs/static.md.

    One run for all of them: mypy reads PyTorch and NumPy, which takes seconds.
    """
    (folder / "conformkit").mkdir()
    for part in ("spec", "reference"):
        (folder / "conformkit" / part).symlink_to(ROOT / part)
    cases = [f"case_{n}: {kind} = {value}" for n, (kind, value) in enumerate([*ACCEPTED, *REFUSED])]
    files = {
        "mypy.ini": CONFIGURATION,
        "cases.py": HEAD + "\n".join(cases),
        "in_torch.py": "from conformkit.reference import *",
        "in_numpy.py": "from cases import Attend, attend\nscaled_dot_product_attention = attend\n"
        "class MultiHeadAttention(Attend): ...",
    }
    packages = ("in_torch", "in_torch", "in_numpy")
    for n, (package, text) in enumerate(zip(packages, examples(), strict=True)):
        files[f"example_{n}.py"] = text.replace("mypkg", package)
    for name, text in files.items():
        (folder / name).write_text(text + "\n", encoding="utf-8")
    checked_files = [name for name in files if name.startswith(("cases", "example"))]
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", "cache", *checked_files]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    lines = {int(number) for number in re.findall(r"^cases\.py:(\d+): error: ", done.stdout, re.MULTILINE)}
    first = len(HEAD.splitlines()) + 1
    return [number - first for number in sorted(lines)], [line for line in errors if not line.startswith("cases.py")]


def test_mypy_accepts_the_reference_and_refuses_other_modules(tmp_path):
    refused, elsewhere = checked(tmp_path)
    every = [*ACCEPTED, *REFUSED]
    assert elsewhere == []
    assert [every[n] for n in refused if 0 <= n < len(ACCEPTED)] == []
    assert [case for n, case in enumerate(every) if n >= len(ACCEPTED) and n not in refused] == []
    assert [n for n in refused if n < 0] == []


def test_every_export_of_the_contract_has_a_protocol():
    called = {component(name).name for name in (*COMPONENTS, *SEVERAL_NAMES)}
    assert {component(name).export for name in called} | set(TOOLS) == set(CLASSES) | set(FUNCTIONS)
    named = {word for kind in (CLASSES | FUNCTIONS).values() for word in re.findall(r"\w+", kind)} - {"Tensor"}
    assert named | set(BUILT) | {"LabelSmoothingLoss", "AdamW"} == set(law.__all__)


@pytest.mark.parametrize("name", law.__all__)
def test_a_protocol_is_exported_by_name_and_runtime_checkable(name):
    protocol = getattr(law, name)
    assert protocol.__name__ == name
    assert protocol.__module__.startswith("conformkit.spec.")
    assert not isinstance(object(), protocol)


def test_names_that_are_not_exported_are_unknown():
    with pytest.raises(AttributeError, match="has no attribute 'MultiHeadAtention'"):
        law.MultiHeadAtention  # noqa: B018 - the access is the test


def arguments(protocol, method="__call__"):
    """Return the arguments of a method by name, with defaults."""
    given = list(inspect.signature(getattr(protocol, method)).parameters.values())[1:]
    return [(a.name, a.default) for a in given]


def contract(described):
    """Return the contract's arguments by name, with defaults."""
    return [(a.name, inspect.Parameter.empty if a.required else a.default) for a in described]


@pytest.mark.parametrize("name", [name for name in BUILT if name != "Transformer"])
def test_a_constructor_takes_the_arguments_of_the_contract(name):
    assert arguments(getattr(law, f"{name}Constructor")) == contract(component(name).arguments)


def test_the_constructor_of_an_encoder_decoder_may_require_max_len():
    wanted = dict(contract(component("Transformer").arguments)) | {"max_len": inspect.Parameter.empty}
    assert dict(arguments(law.TransformerConstructor)) == wanted


@pytest.mark.parametrize("name", BUILT)
def test_a_module_is_called_like_other_components(name):
    protocol, module = getattr(law, name), getattr(law, f"{name}Module")
    assert arguments(module, "forward") == arguments(protocol)
    masks = [argument for argument, default in arguments(protocol) if default is None and argument != "segments"]
    assert [argument for argument, _ in arguments(protocol) if argument.endswith("mask")] == masks
    assert len(arguments(protocol)) == len(component(name).inputs)


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() & TOOLS.keys()))
def test_a_tool_takes_the_arguments_of_the_contract(name):
    protocol = getattr(law, FUNCTIONS[name].partition("[")[0])
    assert arguments(protocol) == contract(TOOLS[name].calls[FUNCTION])


def test_isinstance_tells_what_can_be_called_generated_or_passed_forward():
    model, block, linear = (
        reference.TinyTransformerLM(5, 8, 2, 1, 32, 4),
        reference.TransformerBlock(8, 2, 32),
        nn.Linear(8, 8),
    )
    assert isinstance(model, law.TinyTransformerLM)
    assert not isinstance(block, law.TinyTransformerLM)
    assert isinstance(block, law.TransformerBlockModule)
    assert not isinstance(np.tanh, law.TransformerBlockModule)
    assert isinstance(linear, law.MultiHeadAttention)  # it can be called: isinstance looks no further
    assert isinstance(reference.scaled_dot_product_attention, law.ScaledDotProductAttention)
    assert not isinstance(linear, law.ScaledDotProductAttention)


def test_importing_the_law_imports_no_numpy():
    code = "import sys, conformkit.spec; print({'numpy', 'conformkit.spec.attention'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
