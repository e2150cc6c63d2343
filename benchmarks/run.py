"""Compare `conform` with a bare `import torch` by ratios, because seconds differ from machine to machine.

python benchmarks/run.py [--rounds N] [--seconds N] [--impl NAME]
python benchmarks/run.py --processor encoder vit [--rounds N]

The second form compares runs of whole profiles by processor time, which other work on the machine stretches less than
seconds.

The kit is compiled to bytecode first, as pip does when it installs something; torch, to which it is compared, has been.

Commands take turns within each round, so a machine that slows down affects all of them; medians are compared. Those
that train take long and are measured in two rounds. No round begins that would end after `--seconds`, 580 by default.
The rows are part of figures.toml, of which docs/quality.md is made.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WRONG = str(ROOT / "examples" / "three_mistakes")
CONFORM = (sys.executable, "-P", "-m", "conformkit.cli")
SEQ2SEQ = ("--profile", "seq2seq", "--without", "COPY")
"""The whole profile except training."""
COMPILED = ",".join(f"PATH-{how}{which}" for how in ("COMPILED", "EXPORTED") for which in ("", "-CAUSAL", "-PADDED"))
PATHS = ("--profile", "paths", "--without", COMPILED)
"""All ways through a model but compiled and exported ones, which take a compiler's time."""
LONG, LONG_ROUNDS = ("lm", "whole seq2seq"), 2
"""Commands that train, and in how many rounds they are measured: once more in each would take most of the time."""


def environment() -> dict[str, str]:
    """Return the environment of what is measured: as a user has it, with the bytecode that Python keeps."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**own, "PYTHONSAFEPATH": "1"}


@dataclass(frozen=True)
class Run:
    """One run of a command: its seconds, and the peak memory of its own process."""

    seconds: float
    megabytes: float
    code: int


def main() -> int:
    """Measure, print the table, and return 0 when the judged implementation conforms."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=580.0, help="begin no round that would end later")
    parser.add_argument("--impl", default="conformkit.reference")
    parser.add_argument("--processor", nargs="+", metavar="PROFILE", help="compare these profiles by processor time")
    options = parser.parse_args()
    for package in ("cli", "conformance", "fixtures", "reference", "spec"):
        compileall.compile_dir(ROOT / package, quiet=2)
    if options.processor:
        return by_processor(options.processor, options.impl, options.rounds)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        commands = {
            "torch": (sys.executable, "-c", "import torch"),
            "run": (*CONFORM, "run", "--impl", options.impl, "--quiet", "--json", str(report)),
            "alone": (*CONFORM, "run", "--impl", options.impl, "--quiet", "-n", "1"),
            "strict": (*CONFORM, "run", "--impl", options.impl, "--quiet", "--strict"),
            "wrong": (*CONFORM, "run", "--impl", WRONG, "--quiet"),
            "help": (*CONFORM, "--help"),
            "spec": (*CONFORM, "spec"),
            "explain": (*CONFORM, "explain", "SDPA-SCALE"),
            "seq2seq": (*CONFORM, "run", "--impl", options.impl, "--quiet", *SEQ2SEQ),
            "paths": (*CONFORM, "run", "--impl", options.impl, "--quiet", *PATHS),
        }
        for name in ("encoder", "vit", "model", "lm"):
            commands[name] = (*CONFORM, "run", "--impl", options.impl, "--quiet", "--profile", name)
        commands["whole seq2seq"] = (*CONFORM, "run", "--impl", options.impl, "--quiet", "--profile", "seq2seq")
        runs = measure(commands, options.rounds, options.seconds)
        if not report.exists():
            sys.exit(f"conform run ended with exit code {runs['run'][-1].code} and without a report")
        ledger = json.loads(report.read_text(encoding="utf-8"))["ledger"]
    judged = sum(ledger[name] for name in ("pass", "fail", "error", "crash", "timeout"))
    print(f"{options.impl}: {judged} of {ledger['clauses']} clauses judged; medians of {len(runs['run'])} rounds\n")
    print("\n".join(table(runs, judged)))
    return runs["run"][-1].code


def measure(commands: Mapping[str, Sequence[str]], rounds: int, seconds: float) -> dict[str, list[Run]]:
    """Run the commands once unmeasured, so that files are read and compiled, then in turns as long as there is time."""
    started = time.perf_counter()
    for name, command in commands.items():
        if name not in LONG:
            once(command)
    found: dict[str, list[Run]] = {name: [] for name in commands}
    for turn in range(rounds):
        turns = [name for name in commands if name not in LONG or turn < LONG_ROUNDS]
        expected = sum(max((run.seconds for run in found[name]), default=0.0) for name in turns)
        if turn and time.perf_counter() - started + expected > seconds:
            break
        for name in turns:
            found[name].append(once(commands[name]))
    return found


def by_processor(profiles: Sequence[str], impl: str, rounds: int) -> int:
    """Print how much processor time, of all processes, a run of each profile takes, as a multiple of torch's import."""
    base = (sys.executable, "-c", "import torch")
    commands = {name: (*CONFORM, "run", "--impl", impl, "--quiet", "--profile", name) for name in profiles}
    imports: list[float] = []
    found: dict[str, list[float]] = {name: [] for name in profiles}
    for command in (base, *commands.values()):
        processor_seconds(command)  # unmeasured, so that files are in memory
    for _ in range(rounds):
        for name, command in commands.items():
            imports.append(processor_seconds(base))
            found[name].append(processor_seconds(command))
    print(f"{impl}: medians of {rounds} rounds, processor time\n")
    for name, each in found.items():
        told = ratio(statistics.median(each), statistics.median(imports), "s")
        print(f"| `conform run --profile {name}` ÷ `import torch` | {told} | at most 3 |")
    return 0


def processor_seconds(command: Sequence[str]) -> float:
    """Run a command, and return the processor time of it and of all that it waited for.

    Code may be wrong, which is exit code 1. Raises CalledProcessError for any other.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(command, stdout=subprocess.DEVNULL, check=False, env=environment())
    if ended.returncode > 1:
        ended.check_returncode()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def once(command: Sequence[str]) -> Run:
    """Run a command; its memory is read while it runs, because the kernel's later record includes its children."""
    peak = 0
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment())
    while process.poll() is None:
        peak = max(peak, peak_kilobytes(process.pid))
        time.sleep(0.002)
    return Run(time.perf_counter() - started, peak / 1024, process.returncode)


def peak_kilobytes(pid: int) -> int:
    """Return the peak memory of this process so far, 0 if the system does not report it."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def table(runs: Mapping[str, Sequence[Run]], judged: int) -> list[str]:
    """Return the rows of the table, with seconds next to the ratios."""
    seconds = {name: statistics.median(run.seconds for run in group) for name, group in runs.items()}
    torch, whole, clause = seconds["torch"], seconds["run"], seconds["run"] / max(judged, 1)
    memory = max(run.megabytes for run in runs["run"])
    rows = (
        ("what", "ratio or figure", "want"),
        ("---", "---", "---"),
        ('`conform run` on the reference ÷ `python -c "import torch"`', ratio(whole, torch, "s"), "at most 4"),
        ("the same with one worker (`-n 1`)", ratio(seconds["alone"], torch, "s"), "at most 5"),
        ("the same with `--strict`", ratio(seconds["strict"], torch, "s"), "at most 5"),
        ("an example with three mistakes, which it names", ratio(seconds["wrong"], torch, "s"), "at most 5"),
        ("`--profile seq2seq` without training ÷ `import torch`", ratio(seconds["seq2seq"], torch, "s"), "at most 5"),
        ("the reference in profile paths, compiled ones apart", ratio(seconds["paths"], torch, "s"), "at most 6"),
        *(
            (what, ratio(seconds[name], torch, "s"), f"at most {most}")
            for name, what, most in (
                ("encoder", "`--profile encoder` ÷ `import torch`", 3),
                ("vit", "`--profile vit` ÷ `import torch`", 2),
                ("model", "`--profile model` ÷ `import torch`", 3),
                ("lm", "`--profile lm` ÷ `import torch`, training included", 10),
                ("whole seq2seq", "`--profile seq2seq` ÷ `import torch`, training included", 10),
            )
        ),
        ("cost of a clause ÷ `import torch`, start-up included", ratio(clause, torch, "s"), "at most 0.028"),
        ("`conform --help`", f"{seconds['help']:.2f} s", "under 0.3 s"),
        ("`conform spec`", f"{seconds['spec']:.2f} s", "under 0.3 s"),
        ("`conform explain SDPA-SCALE`", f"{seconds['explain']:.2f} s", "under 0.3 s"),
        ("memory of the harness", f"{memory:.0f} MB", "under 160 MB"),
    )
    spread = ", ".join(f"{run.seconds:.2f}" for run in runs["run"])
    return [*(f"| {' | '.join(row)} |" for row in rows), "", f"Each `conform run`: {spread} s."]


def ratio(part: float, whole: float, unit: str) -> str:
    """Return the ratio with both of its numbers."""
    return f"{part / whole:.3g} ({part:.3g} {unit} ÷ {whole:.3g} {unit})"


if __name__ == "__main__":
    sys.exit(main())
