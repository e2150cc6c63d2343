"""Compare `conform watch`, from a save to its verdicts, with a bare `import torch`, by ratios.

python benchmarks/watch.py [--rounds N]

A copy of the example with three mistakes is watched. Each round fixes its attention, breaks it again, imports torch.
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "three_mistakes"
WRONG, RIGHT = "math.sqrt(d_model)", "math.sqrt(d_model // num_heads)"


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        home = Path(shutil.copytree(EXAMPLE, Path(folder) / "watched"))
        command = [sys.executable, "-P", "-m", "conformkit.cli", "watch", "--impl", str(home)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            until(process, "^watching")
            found = [one_round(process, home / "attention.py") for _ in range(rounds)]
            process.terminate()
    torch, early, whole = (statistics.median(column) for column in zip(*found, strict=True))
    print(f"medians of {rounds} rounds, two saves in each\n")
    print("| what | ratio or figure | want |\n| --- | --- | --- |")
    print(f"| from a save to the verdict on the changes ÷ `import torch` | {early / torch:.2f} | at most 1 |")
    print(f"| to the verdict on everything, with mistakes named | {whole / torch:.2f} | |")
    print(f"\n`import torch`: {torch:.2f} s; to the first verdict: {early:.2f} s; to the last: {whole:.2f} s")
    return 0


def one_round(process: subprocess.Popen[str], path: Path) -> tuple[float, float, float]:
    """Return the seconds of an import, and the means over two saves to the first and to the last verdict."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    torch = time.perf_counter() - started
    text = path.read_text(encoding="utf-8")
    saves = [save(process, path, text.replace(WRONG, RIGHT)), save(process, path, text)]
    return torch, statistics.mean(s[0] for s in saves), statistics.mean(s[1] for s in saves)


def save(process: subprocess.Popen[str], path: Path, text: str) -> tuple[float, float]:
    """Save a file; return the seconds to the first and to the last verdict."""
    path.write_text(text, encoding="utf-8")
    started = time.perf_counter()
    until(process, "^(mended|broke):")
    early = time.perf_counter() - started
    until(process, "^watching")
    return early, time.perf_counter() - started


def until(process: subprocess.Popen[str], pattern: str) -> None:
    """Read lines up to one with this beginning."""
    assert process.stdout is not None
    if not any(re.match(pattern, line) for line in process.stdout):
        sys.exit("conform watch ended")


if __name__ == "__main__":
    sys.exit(main())
