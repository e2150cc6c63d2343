"""Measure the encoder-decoder: updates until it copies, decoding with and without caches, memory against length.

python benchmarks/seq2seq.py copy [--seeds N]
python benchmarks/seq2seq.py decoding [--rounds N] [--device D]
python benchmarks/seq2seq.py memory [--device D]

To compare seconds, the candidates take turns in one process and medians are divided. Bytes are counted by the
allocator, not sampled: on a CPU by the profiler's record of every allocation, on a GPU by its own peak.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable

os.environ.setdefault("KINETO_LOG_LEVEL", "5")  # the profiler's own remarks

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from conformkit.reference import Transformer
from conformkit.reference.analysis import fit_power_law
from conformkit.reference.seq2seq.tasks import COPY, REVERSE, Task, learn, small_model, token_accuracy, written_accuracy

VOCABULARY, WIDTH, HEADS, LAYERS, D_FF = 100, 128, 4, 2, 512
LENGTHS = (64, 128, 256, 512, 1024)
BATCH = 4
Run = Callable[[], object]


class TorchSeq2Seq(nn.Module):
    """The same sizes around `torch.nn.Transformer`: pre-norm, GELU, learned positions, masks from the ids."""

    def __init__(self, max_len: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Parameter(torch.zeros(max_len, WIDTH))
        self.stacks = nn.Transformer(
            WIDTH, HEADS, LAYERS, LAYERS, D_FF, 0.0, activation="gelu", batch_first=True, norm_first=True, bias=False
        )
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Map ids (B, S) and (B, T) to logits (B, T, V)."""
        x, y = (self.embedding(ids) + self.positions[: ids.shape[1]] for ids in (src, tgt))
        future = nn.Transformer.generate_square_subsequent_mask(tgt.shape[1], device=src.device)
        hidden = torch.zeros_like(src, dtype=torch.float32).masked_fill(src == 0, float("-inf"))
        z = self.stacks(x, y, tgt_mask=future, memory_key_padding_mask=hidden, src_key_padding_mask=hidden)
        logits: Tensor = self.head(z)
        return logits


def main() -> int:
    """Measure, print the table, and return 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["copy", "decoding", "memory"])
    parser.add_argument("--seeds", type=int, default=5, help="runs of each task")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    torch.manual_seed(0)
    if options.what == "copy":
        torch.set_num_threads(1)
        rows = [*convergence(COPY, options.seeds), *convergence(REVERSE, options.seeds)[2:]]
    else:
        device = torch.device(options.device)
        rows = decoding(device, options.rounds) if options.what == "decoding" else memory(device)
    print("\n".join(rows))
    print(f"\n{torch.get_num_threads()} threads, load {os.getloadavg()[0]:.1f}, torch {torch.__version__}")
    return 0


def convergence(task: Task, seeds: int) -> list[str]:
    """Train a task with each seed: accuracy after its updates, and seconds of one core."""
    held_out = task.batch(512, torch.Generator().manual_seed(10_000))
    taught, written, seconds = [], [], []
    for seed in range(seeds):
        torch.manual_seed(seed)
        model = small_model(task)
        started = time.process_time()
        learn(model, task, task.updates, seed=seed)
        seconds.append(time.process_time() - started)
        taught.append(token_accuracy(model, held_out))
        written.append(written_accuracy(model, held_out))
        print(f"{task.name}, seed {seed}: {taught[-1]:.4f} taught, {written[-1]:.4f} written, {seconds[-1]:.2f} s")
    return [
        f"| {seeds} seeds | updates | accuracy with teacher forcing | accuracy of generated ids | seconds |",
        "| --- | --- | --- | --- | --- |",
        f"| {task.name} | {task.updates} | {_span(taught)} | {_span(written)} | {statistics.median(seconds):.1f} |",
    ]


def decoding(device: torch.device, rounds: int) -> list[str]:
    """Generate targets of several lengths with and without caches, in turns."""
    rows = ["| generated ids | tokens per second, without | with caches | ratio |", "| --- | --- | --- | --- |"]
    for length in (16, *LENGTHS[:3]):
        model = _reference(length).to(device).eval()
        src = _ids(length, device)
        seconds: dict[bool, list[float]] = {False: [], True: []}
        for number in range(rounds + 1):
            for use_cache, group in seconds.items():
                _settle(device)
                started = time.perf_counter()
                model.generate(src, length, bos_id=1, use_cache=use_cache)
                _settle(device)
                group.extend([time.perf_counter() - started] if number else [])  # the first round warms up
        without, cached = (BATCH * length / statistics.median(seconds[use_cache]) for use_cache in (False, True))
        rows.append(f"| {length} | {without:,.0f} | {cached:,.0f} | {cached / without:.2f} |")
        print(rows[-1], flush=True)
    return rows


def memory(device: torch.device) -> list[str]:
    """Count the peak bytes of an update and a forward pass, and compare them with PyTorch's own layers."""
    makers: dict[str, Callable[[int], nn.Module]] = {"reference": _reference, "torch": TorchSeq2Seq}
    rows = ["| peak memory, in MiB | " + " | ".join(f"T = {n}" for n in LENGTHS) + " | grows as |"]
    rows.append("| --- " * (len(LENGTHS) + 2) + "|")
    all_peaks: dict[tuple[str, str], list[int]] = {}
    for name, make in makers.items():
        peaks: dict[str, list[int]] = {"an update": [], "a forward pass": []}
        for length in LENGTHS:
            model, src = make(length).to(device), _ids(length, device)
            _update(model, src)  # gradients and workspaces are allocated before the count
            peaks["an update"].append(_peak(lambda model=model, src=src: _update(model, src), device))
            peaks["a forward pass"].append(_peak(lambda model=model, src=src: _forward(model, src), device))
        for what, found in peaks.items():
            last = -fit_power_law(LENGTHS[-2:], found[-2:])[0]
            exponent = -fit_power_law(LENGTHS, found)[0]
            sizes = " | ".join(f"{size / 2**20:,.1f}" for size in found)
            rows.append(f"| {name}, {what} | {sizes} | T^{exponent:.2f}, from {LENGTHS[-2]} on T^{last:.2f} |")
            print(rows[-1], flush=True)
            all_peaks[name, what] = found
    for what in ("an update", "a forward pass"):
        pairs = zip(all_peaks["reference", what], all_peaks["torch", what], strict=True)
        rows.append(
            f"| reference ÷ torch, {what} | " + " | ".join(f"{one / other:.1f}" for one, other in pairs) + " | |"
        )
    return rows


def _span(shares: list[float]) -> str:
    return f"{min(shares):.3f} … {max(shares):.3f}"


def _reference(length: int) -> Transformer:
    return Transformer(VOCABULARY, VOCABULARY, WIDTH, HEADS, LAYERS, LAYERS, D_FF, length)


def _ids(length: int, device: torch.device) -> Tensor:
    return torch.randint(3, VOCABULARY, (BATCH, length)).to(device)


def _update(model: nn.Module, src: Tensor) -> None:
    model.zero_grad(set_to_none=False)
    loss = nn.functional.cross_entropy(model(src, src).flatten(0, 1), src.flatten())
    loss.backward()


@torch.no_grad()
def _forward(model: nn.Module, src: Tensor) -> None:
    model(src, src)


def _peak(run: Run, device: torch.device) -> int:
    """Return the peak of allocated bytes, minus those allocated before."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        run()
        return torch.cuda.max_memory_allocated(device) - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        run()
    assert record.profiler is not None
    events = [event for event in record.profiler.kineto_results.events() if event.name() == "[memory]"]
    held = most = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return most


def _settle(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    sys.exit(main())
