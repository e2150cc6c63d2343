"""Compare the training speed of the reference with a model of the same size from `torch.nn.TransformerEncoderLayer`.

python benchmarks/training.py [--recipe NAME] [--rounds N] [--steps N] [--device D] [--precision P] [--compile]
python benchmarks/training.py --recipe nanogpt --device cuda --corpus tinyshakespeare.txt --until 1.47

Both train on the same random windows with the same schedule of rounds, in turns in one process, so a machine
that slows down affects both; medians are compared. `--until` trains the recipe on a text instead, and reports when the
validation loss first reached that value.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from conformkit.reference.optimization import clip_grad_norm
from conformkit.reference.steps import accumulate
from conformkit.reference.training import config as configs
from conformkit.reference.training.config import TrainingConfig
from conformkit.reference.training.loop import Measured, train
from conformkit.reference.training.run import build_model
from conformkit.reference.training.session import begin
from conformkit.reference.training.speed import Fast, check_device, criterion_for, optimizer_for

VOCABULARY = 65
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
Step = Callable[[Tensor, Tensor], None]


class TorchLM(nn.Module):
    """The same sizes from PyTorch's own layers: learned positions, pre-norm, GELU, a causal mask."""

    def __init__(self, config: TrainingConfig) -> None:
        super().__init__()
        sizes, variant = config.model, config.variant
        self.embedding = nn.Embedding(VOCABULARY, sizes.d_model)
        self.positions = nn.Parameter(torch.zeros(sizes.block_size, sizes.d_model))
        layer = nn.TransformerEncoderLayer(
            sizes.d_model, sizes.num_heads, sizes.d_ff, sizes.dropout, activation="gelu", batch_first=True,
            norm_first=True, bias=variant.ffn_bias,
        )  # fmt: skip
        self.layers = nn.TransformerEncoder(
            layer, sizes.num_layers, nn.LayerNorm(sizes.d_model), enable_nested_tensor=False
        )
        self.head = nn.Linear(sizes.d_model, VOCABULARY, bias=variant.head_bias)
        mask = nn.Transformer.generate_square_subsequent_mask(sizes.block_size)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, ids: Tensor) -> Tensor:
        """Map ids (B, T) to logits (B, T, V)."""
        x = self.embedding(ids) + self.positions[: ids.shape[1]]
        logits: Tensor = self.head(self.layers(x, mask=self.mask, is_causal=True))
        return logits


def main() -> int:
    """Measure, print the table, and return 0."""
    options = parsed()
    check_device(options.device)
    config = chosen(options)
    if options.until:
        return until(config, options.until)
    steps = {"reference": reference_step(config), "transparent": reference_step(written_out(config))}
    steps |= {"torch": torch_step(config, compiled=options.compile)}
    if options.device != "cpu" or options.no_transparent:
        del steps["transparent"]
    seconds = measure(steps, config, options.rounds, options.steps)
    print("\n".join(table(seconds, config)))
    return 0


def parsed() -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--recipe", default="tiny", choices=sorted(configs.recipes()))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=10, help="updates in a round")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="float32", choices=sorted(TYPES))
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--no-transparent", action="store_true", help="skip the path with explicit formulas")
    parser.add_argument("--corpus", default="shakespeare")
    parser.add_argument("--until", type=float, default=0.0, help="train until the validation loss reaches this value")
    return parser.parse_args()


def chosen(options: argparse.Namespace) -> TrainingConfig:
    """Return the recipe with the options applied."""
    changes = {
        "speed.device": options.device, "speed.precision": options.precision, "data.corpus": options.corpus,
        "speed.compile": "inductor" if options.compile else "none",
        "speed.fused_optimizer": options.device.startswith("cuda"),
    }  # fmt: skip
    return configs.with_changes(configs.recipe(options.recipe), changes)


def written_out(config: TrainingConfig) -> TrainingConfig:
    """Return the same without the fast switches."""
    return configs.with_changes(config, {"speed.fused": False, "speed.compile": "none"})


def reference_step(config: TrainingConfig) -> Step:
    """Return one update of the reference."""
    torch.manual_seed(0)
    model = build_model(config, VOCABULARY).to(config.speed.device)
    fast, optimizer, criterion = Fast(model, config.speed), optimizer_for(model, config), criterion_for(config.speed)

    def step(x: Tensor, y: Tensor) -> None:
        fast.train()
        optimizer.zero_grad()
        accumulate(fast, [(x, y)], criterion)
        clip_grad_norm(model.parameters(), config.optimizer.max_norm)
        optimizer.step()

    step.__doc__ = f"{sum(parameter.numel() for parameter in model.parameters()):,}"
    return step


def torch_step(config: TrainingConfig, *, compiled: bool) -> Step:
    """Return one update of PyTorch's own layers."""
    torch.manual_seed(0)
    device = torch.device(config.speed.device)
    model = TorchLM(config).to(device).train()
    if compiled:
        model.compile()
    rate, dtype = config.optimizer, TYPES[config.speed.precision]
    optimizer = torch.optim.AdamW(
        model.parameters(), rate.peak, (rate.beta1, rate.beta2), weight_decay=rate.weight_decay,
        fused=device.type == "cuda",
    )  # fmt: skip

    def step(x: Tensor, y: Tensor) -> None:
        optimizer.zero_grad()
        with torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
            logits = model(x)
        F.cross_entropy(logits.float().flatten(0, 1), y.flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), config.optimizer.max_norm)
        optimizer.step()

    step.__doc__ = f"{sum(parameter.numel() for parameter in model.parameters()):,}"
    return step


def measure(steps: dict[str, Step], config: TrainingConfig, rounds: int, count: int) -> dict[str, list[float]]:
    """Return seconds per update for each candidate and round; a first round is not counted."""
    device, found = torch.device(config.speed.device), {name: [] for name in steps}
    size = (config.training.batch_size, config.model.block_size + 1)
    for number in range(rounds + 1):
        windows = [torch.randint(VOCABULARY, size).to(device) for _ in range(count)]
        for name, step in steps.items():
            settle(device)
            started = time.perf_counter()
            for window in windows:
                step(window[:, :-1].contiguous(), window[:, 1:].contiguous())
            settle(device)
            if number:
                found[name].append((time.perf_counter() - started) / count)
        parameters = ", ".join(f"{name} {step.__doc__}" for name, step in steps.items())
        print(f"round {number} of {rounds} ({parameters} parameters)" if number == 0 else ".", end="", flush=True)
    print("\n")
    return found


def settle(device: torch.device) -> None:
    """Wait until a GPU has finished its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def table(seconds: dict[str, list[float]], config: TrainingConfig) -> list[str]:
    """Return the rows: tokens per second, and the speedup over PyTorch's own layers."""
    tokens = config.training.batch_size * config.model.block_size
    medians = {name: statistics.median(group) for name, group in seconds.items()}
    words = {"reference": "the reference", "transparent": "the reference, with explicit formulas"}
    speed = config.speed
    rows = [
        f"| {config.title} on {speed.device}, {speed.precision} | tokens per second | ratio |",
        "| --- | --- | --- |",
    ]
    for name, median in medians.items():
        ratio = medians["torch"] / median
        rows.append(f"| {words.get(name, '`nn.TransformerEncoderLayer`')} | {tokens / median:,.0f} | {ratio:.2f} |")
    spread = {name: ", ".join(f"{1000 * one:.1f}" for one in group) for name, group in seconds.items()}
    threads = f"{torch.get_num_threads()} threads, load {os.getloadavg()[0]:.1f}"
    return [*rows, "", *(f"{name}: {group} ms per update" for name, group in spread.items()), threads]


class Watch:
    """Records when the validation loss first was low enough."""

    def __init__(self, loss: float) -> None:
        self.wanted, self.started, self.reached = loss, time.perf_counter(), 0.0
        self.speed: list[float] = []

    def measured(self, last: Measured) -> None:
        """Record the speed."""
        self.speed.append(last.speed)

    def evaluated(self, step: int, loss: float, *, best: bool) -> None:
        """Record the time."""
        seconds = time.perf_counter() - self.started
        print(f"step {step}: validation {loss:.4f} after {seconds:.1f} s{', the best' if best else ''}", flush=True)
        if loss <= self.wanted and not self.reached:
            self.reached = seconds


def until(config: TrainingConfig, loss: float) -> int:
    """Train a recipe on its text, and report when its validation loss first reached that value."""
    with tempfile.TemporaryDirectory() as folder:
        session = begin(config, Path(folder) / "run")
        watch = Watch(loss)
        outcome = train(session.run, session.folder, watch, lambda: bool(watch.reached))
    print(f"\n{statistics.median(watch.speed):,.0f} tokens per second (median), best loss {outcome.best}")
    print(f"validation loss {loss} after {watch.reached:.1f} s" if watch.reached else f"{loss} was not reached")
    return 0 if watch.reached else 1


if __name__ == "__main__":
    sys.exit(main())
