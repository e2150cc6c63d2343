"""Compare `conform port` of a checkpoint of GPT-2's smallest size with a bare `import torch`; measure its memory.

python benchmarks/port.py [--rounds N]

124 million random numbers in float32, in a file by GPT-2's names, are converted for tests/right/nano_gpt, proved, and
written. Memory is that of all processes together, each shared page counted once among those that share it.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

ROOT = Path(__file__).resolve().parents[1]
OURS = ROOT / "tests" / "right" / "nano_gpt"
WIDTH, LAYERS, VOCABULARY, LENGTH = 768, 12, 50257, 1024


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        theirs = Path(folder, "model.safetensors")
        save_file(weights(), theirs)
        size = theirs.stat().st_size
        found = [one_round(theirs, Path(folder, "mine.safetensors")) for _ in range(rounds)]
    torch, port = (statistics.median(one[n] for one in found) for n in (0, 1))
    print(f"medians of {rounds} rounds\n")
    print("| what | ratio or figure | want |\n| --- | --- | --- |")
    print(f"| `conform port` of GPT-2-small's shape, proved ÷ `import torch` | {port / torch:.1f} | at most 40 |")
    most = max(one[2] for one in found)
    print(f"| memory for a file of {size / 1e6:.0f} MB | {most / 1e6:.0f} MB | under 1500 MB |")
    print(f"\n`import torch`: {torch:.2f} s; `conform port`: {port:.2f} s")
    return 0


def weights() -> dict[str, np.ndarray]:
    """Return random weights by GPT-2's names."""
    draw = np.random.default_rng(0)

    def drawn(*shape: int) -> np.ndarray:
        return (0.02 * draw.standard_normal(shape)).astype(np.float32)

    found = {"transformer.wte.weight": drawn(VOCABULARY, WIDTH), "transformer.wpe.weight": drawn(LENGTH, WIDTH)}
    shapes = {
        "attn.c_attn": (WIDTH, 3 * WIDTH), "attn.c_proj": (WIDTH, WIDTH), "mlp.c_fc": (WIDTH, 4 * WIDTH),
        "mlp.c_proj": (4 * WIDTH, WIDTH),
    }  # fmt: skip
    for layer in range(LAYERS):
        for name, (rows, columns) in shapes.items():
            found[f"transformer.h.{layer}.{name}.weight"] = drawn(rows, columns)
            found[f"transformer.h.{layer}.{name}.bias"] = drawn(columns)
        found |= norm(f"transformer.h.{layer}.ln_1", drawn) | norm(f"transformer.h.{layer}.ln_2", drawn)
    return found | norm("transformer.ln_f", drawn)


def norm(name: str, drawn: Callable[..., np.ndarray]) -> dict[str, np.ndarray]:
    """Return the weights of a norm, near 1, and its biases."""
    return {f"{name}.weight": 1.0 + drawn(WIDTH), f"{name}.bias": drawn(WIDTH)}


def one_round(theirs: Path, ours: Path) -> tuple[float, float, int]:
    """Return the seconds of an import and of a port, and the largest memory of the port in bytes."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    torch = time.perf_counter() - started
    options = ["--like", "gpt2", "--size", "num_heads=12", "--out", str(ours)]
    command = [sys.executable, "-P", "-m", "conformkit.cli", "port", "--check", str(theirs), str(OURS), *options]
    started, most = time.perf_counter(), 0
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        while process.poll() is None:
            most = max(most, memory(process.pid))
            time.sleep(0.05)
        if process.returncode:
            sys.exit(f"conform port ended with {process.returncode}")
    return torch, time.perf_counter() - started, most


def memory(pid: int) -> int:
    """Return the bytes that a process and all that it started hold."""
    waiting, total = [pid], 0
    while waiting:
        one = Path("/proc", str(waiting.pop()))
        try:
            total += sum(1024 * int(line.split()[1]) for line in (one / "smaps_rollup").open() if line[:4] == "Pss:")
            for task in (one / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except (OSError, ValueError):
            continue  # it has ended
    return total


if __name__ == "__main__":
    sys.exit(main())
