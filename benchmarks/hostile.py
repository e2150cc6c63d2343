"""Judge hostile packages that somebody wrote without having seen tests/attacks.

    python benchmarks/hostile.py [--jobs 2] [NAME…]

hostile.toml says what they are. Each is judged by `conform run --strict --isolation sandbox`; those that want to tell
drawn numbers, four times with `--hidden`. Printed are those that passed, ended with 5 or late, or told something;
those that pass as docs/security.md concedes are counted apart, and printed if they do not.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CONFORM = (sys.executable, "-P", "-m", "conformkit.cli")
LATE = 400
REFUSED = (1, 2, 3)
SEEDS = (11, 12, 13, 14)
RED = ("fail", "error", "crash", "timeout")
TABLES = ("tolerances", "limits", "sizes", "variant", "components.MultiHeadAttention")
MADE = {
    "@brackets": "x = " + "(" * 20_000,
    "@long": "x = 1  # " + "y" * 4_000_000,
    "@nested": "a = " + "[" * 50_000,
    "@numbers": "\n".join(f"[{table}]\na = 0x{'f' * 5000}\nb = 1979-05-27\nc = inf" for table in TABLES),
}
Attack = dict[str, Any]


def main() -> int:
    """Judge all attacks, or those that are named, and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    attacks = tomllib.loads((HERE / "hostile.toml").read_text(encoding="utf-8"))["attack"]
    chosen = [attack for attack in attacks if not asked.names or attack["name"] in asked.names]
    with ThreadPoolExecutor(asked.jobs) as pool:
        outcomes = list(pool.map(outcome, chosen))
    for attack, told in zip(chosen, outcomes, strict=True):
        if told:
            print(f"{attack['name']}: {told} ({attack['idea']})")
    conceded = sum("conceded" in attack for attack in chosen)
    print(
        f"{len(chosen)} hostile packages, {sum(map(bool, outcomes))} that ended otherwise than they should;"
        f" {conceded} pass as docs/security.md concedes"
    )
    return 0


def outcome(attack: Attack) -> str:
    """Return what an attack achieved; nothing if nothing."""
    with tempfile.TemporaryDirectory() as folder:
        written(attack, Path(folder))
        if attack.get("command") == "hidden":
            return told_apart(attack, Path(folder))
        ended, _ = judged(attack, Path(folder), "--strict")
        wanted = (0,) if "conceded" in attack else attack.get("ends", REFUSED)
        return "" if ended in wanted else f"exit code {ended}"


def written(attack: Attack, folder: Path) -> None:
    """Write the package of an attack, and what lies beside it."""
    shutil.copytree(HERE.parent / "examples" / "handout", folder / "pkg", ignore=shutil.ignore_patterns("__pycache__"))
    own = {attack.get("file", "attention.py"): attack["code"], **attack.get("also", {})}
    for name, code in own.items():
        with (folder / "pkg" / name).open("a", encoding="utf-8") as file:
            file.write(f"\n\n{code}")
    for name, text in attack.get("files", {}).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(MADE.get(text, text), encoding="utf-8")


def judged(attack: Attack, folder: Path, *options: str) -> tuple[int, str]:
    """Return the exit code of a run, and what it printed."""
    only = ("--only", attack["only"]) if "only" in attack else ("--only", "SDPA,MHA")
    command = (*CONFORM, "run", "--impl", "pkg", "--isolation", "sandbox", *only, *options, *attack.get("options", ()))
    try:
        ended = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, timeout=LATE)
    except subprocess.TimeoutExpired:
        return -1, ""
    return ended.returncode, ended.stdout + ended.stderr


def told_apart(attack: Attack, folder: Path) -> str:
    """Return what runs on different hidden draws say differently of a clause that fails alike."""
    runs = []
    for seed in SEEDS:
        ended, _ = judged(attack, folder, "--hidden", "--seed", str(seed), "--json", f"{seed}.json")
        if ended != 1:
            return f"exit code {ended}"
        report = json.loads((folder / f"{seed}.json").read_text(encoding="utf-8"))
        runs.append({clause["id"]: clause for clause in report["clauses"]})
    alike = [
        (a[name], b[name]) for a, b in combinations(runs, 2) for name in a
        if a[name]["verdict"] == b[name]["verdict"] and a[name]["verdict"] in RED
    ]  # fmt: skip
    apart = next((f"{a} / {b}" for a, b in alike if a != b), "")
    return apart or ("" if alike else "no clause fails alike")


if __name__ == "__main__":
    sys.exit(main())
