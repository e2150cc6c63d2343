"""Repeat the experiments of the sources, and write docs/results.md from what the runs measured.

python benchmarks/results.py                # run what has no result yet, resume what was stopped, write the page
python benchmarks/results.py --only copy    # one experiment, anew
python benchmarks/results.py --write        # only write the page

Experiments are listed in benchmarks/experiments.toml. What a run measured stands in benchmarks/results/ID.json, and the
page is made from these files alone: no figure is typed. Runs are kept in runs/results, so a stopped one goes on.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import resource
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_name("experiments.toml")
FOUND = Path(__file__).with_name("results")
RUNS = ROOT / "runs" / "results"
PAGE = ROOT / "docs" / "results.md"
CONFORM = [sys.executable, "-P", "-m", "conformkit.cli"]

Experiment = Mapping[str, Any]
Result = dict[str, Any]


def main() -> int:
    """Run what is missing, write the page, and return 0, or 1 where an experiment failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", default=[], help="run this experiment anew; repeat it for several")
    parser.add_argument("--write", action="store_true", help="run nothing, write the page")
    options = parser.parse_args()
    failed = []
    for one in [] if options.write else experiments():
        place = FOUND / f"{one['id']}.json"
        wanted = one["id"] in options.only if options.only else not place.exists()
        if one["kind"] == "gpu" or not wanted:
            continue
        print(f"{one['id']}: {command(one)}", flush=True)
        if one["id"] in options.only:
            shutil.rmtree(RUNS / one["id"], ignore_errors=True)
        try:
            measured = KINDS[one["kind"]](one)
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"{one['id']} failed: {error}", file=sys.stderr)
            failed.append(one["id"])
            continue
        FOUND.mkdir(exist_ok=True)
        place.write_text(json.dumps(measured | about(), indent=2) + "\n", encoding="utf-8")
        PAGE.write_text(page(), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
    return 1 if failed else 0


def experiments() -> list[Experiment]:
    """Return all experiments, in the order of the page."""
    found: list[Experiment] = tomllib.loads(TABLE.read_text(encoding="utf-8"))["experiment"]
    return found


def about() -> Result:
    """Return where and when something was measured."""
    import torch

    return {"date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": f"{os.cpu_count()} cores, {platform.machine()}",
            "torch": torch.__version__}  # fmt: skip


def command(one: Experiment) -> str:
    """Return the command that repeats an experiment."""
    if one["kind"] in {"speed", "compare"}:
        return f"python benchmarks/results.py --only {one['id']}"
    verb = {"train": ["train"], "ablate": ["train"], "run": ["run"], "gpu": []}[one["kind"]]
    return "conform " + shlex.join([*verb, *one["arguments"]])


def trained(one: Experiment) -> Result:
    """Train, or go on training, and return what the folder of the run says."""
    place = RUNS / one["id"]
    started = any((place / "checkpoints").glob("0*.safetensors"))
    if not started:
        shutil.rmtree(place, ignore_errors=True)
    arguments = ["--resume", str(place)] if started else [*one["arguments"], "--out", str(place)]
    took = called(["train", *arguments, "-q"])
    seconds = None if started else took  # of a resumed run only the last part was timed
    records = [json.loads(line) for line in (place / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    evaluations = [record for record in records if record["kind"] == "evaluation"]
    best = min(evaluations, key=lambda record: record["loss"])
    found: Result = {"steps": records[-1]["step"], "loss": best["loss"], "step": best["step"], "seconds": seconds}
    if "accuracy" in best:
        found["accuracy"] = best["accuracy"]
        found |= {"next_sentence": best["next_sentence"]} if "next_sentence" in best else {}
        found["first_95"] = next((r["step"] for r in evaluations if r["accuracy"] >= 0.95), None)
    scores = place / "scores.json"
    if scores.exists():
        found["scores"] = json.loads(scores.read_text(encoding="utf-8"))
    return found


def ablated(one: Experiment) -> Result:
    """Train a table of variants, or go on, and return its rows and the fit."""
    from conformkit.reference.training.ablation import AblationRow, fitted, read_table

    place = RUNS / one["id"]
    started = place.exists()
    took = called(["train", *one["arguments"], "--out", str(place), "-q"])
    seconds = None if started else took
    table = one["arguments"][one["arguments"].index("--ablate") + 1]
    order = [variant.folder for variant in read_table(table)[1]]
    rows = [json.loads((place / name / "row.json").read_text(encoding="utf-8")) for name in order]
    fit = fitted([AblationRow(**row) for row in rows])
    kept = [{key: row[key] for key in ("axis", "name", "parameters", "loss", "seconds")} for row in rows]
    return {"rows": kept, "exponent": fit.exponent if fit else None, "error": fit.error if fit else None,
            "seconds": seconds}  # fmt: skip


def compared(one: Experiment) -> Result:
    """Train, let each way of sampling write texts with the best model, and return what was measured of them."""
    found = trained(one)
    place = RUNS / one["id"]
    took = called(["sample", str(place), *one["sample"], "--compare", str(place / "ways")])
    ways = json.loads((place / "ways" / "samplers.json").read_text(encoding="utf-8"))
    rows = [{name: value for name, value in way.items() if name != "texts"} for way in ways]
    return {"loss": found["loss"], "ways": rows, "seconds": took}


def judged(one: Experiment) -> Result:
    """Judge the reference, and return how many clauses there are and how many pass."""
    place = RUNS / f"{one['id']}.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    seconds = called(["run", *one["arguments"], "--json", str(place), "--seconds", "3000"])
    report = json.loads(place.read_text(encoding="utf-8"))
    outcomes = [clause["verdict"] for clause in report["clauses"]]
    return {"clauses": len(outcomes), "passed": outcomes.count("pass"), "failed": outcomes.count("fail"),
            "inapplicable": outcomes.count("not applicable"), "seconds": seconds}  # fmt: skip


def called(arguments: Sequence[str]) -> float:
    """Run `conform`, and return the seconds of processor time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*CONFORM, *arguments], cwd=ROOT, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1)


def measured(one: Experiment) -> Result:
    """Measure speed or memory in this process, on one thread."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    return {"decoding": decoding, "throughput": throughput, "memory": memory}[one["id"]]()


def processor_seconds(work: Callable[[], object], times: int) -> float:
    """Return the processor time of one call, the least of several."""
    found = []
    for _ in range(times):
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return min(found)


def decoding() -> Result:
    """Generate 64 tokens greedily and with four beams, with caches, by an encoder-decoder."""
    import torch

    from conformkit.reference import Transformer

    model = Transformer(100, 100, 128, 4, 2, 2, 512, 64).eval()
    src = torch.randint(3, 100, (1, 32))
    greedy = processor_seconds(lambda: model.generate(src, 64, 1, use_cache=True), 5)
    beam = processor_seconds(lambda: model.beam_search(src, 64, 1, 4), 5)
    return {"tokens_a_second": 64 / greedy, "beam_by_greedy": beam / greedy}


def throughput() -> Result:
    """Pass 8 sequences of 50 tokens through the language model of the handout's size."""
    import torch

    from conformkit.reference import TinyTransformerLM

    model = TinyTransformerLM(65, 128, 4, 4, 512, 64).eval()
    ids = torch.randint(65, (8, 50))
    with torch.no_grad():
        return {"sequences_a_second": 8 / processor_seconds(lambda: model(ids), 5)}


def memory() -> Result:
    """Estimate the memory of an update for lengths and batches, and the exponents of growth at the end."""
    import tempfile

    from conformkit.reference.analysis import fit_power_law
    from conformkit.reference.training.config import recipe, with_changes
    from conformkit.reference.training.memory import memory_estimate
    from conformkit.reference.training.session import begin

    def size(length: int, batch: int) -> int:
        changes = {
            "model.block_size": length,
            "training.batch_size": batch,
            "speed.fused": False,
            "samples.prompts": ["a"],
        }
        with tempfile.TemporaryDirectory() as folder:
            return memory_estimate(begin(with_changes(recipe("tiny"), changes), Path(folder) / "run").run)

    lengths, batches = (64, 128, 256, 512), (8, 16, 32)
    by_length = [size(length, 8) for length in lengths]
    by_batch = [size(128, batch) for batch in batches]
    return {
        "lengths": dict(zip(map(str, lengths), by_length, strict=True)),
        "batches": dict(zip(map(str, batches), by_batch, strict=True)),
        "length_exponent": -fit_power_law(lengths[-2:], by_length[-2:])[0],
        "batch_exponent": -fit_power_law(batches[-2:], by_batch[-2:])[0],
    }


KINDS: Mapping[str, Callable[[Experiment], Result]] = {
    "train": trained, "ablate": ablated, "compare": compared, "run": judged, "speed": measured,
}  # fmt: skip


def page() -> str:
    """Return docs/results.md, from the experiments and what was measured."""
    rows, details, dates = [], [], set()
    for one in experiments():
        found = result(one)
        dates |= {f"{found['date']}, {found['machine']}, torch {found['torch']}"} if found else set()
        cells = (one["what"], one["source"], one["printed"], told(one, found), one["why"], f"`{command(one)}`")
        rows.append(f"| {' | '.join(cells)} |")
        if found and one["kind"] == "ablate":
            details += table(one, found)
        if found and one["kind"] == "compare":
            details += table_of_ways(one, found)
    head = [
        "# Results", "",
        "Each experiment that the sources describe, what they print, and what this repository measured. The page is",
        "made by `python benchmarks/results.py` from the files in benchmarks/results, which the runs wrote. What there",
        "is to run stands in benchmarks/experiments.toml; the command goes on where it was stopped, and skips what has",
        "a result.", "",
        f"Measured {'; '.join(sorted(dates)) or 'nowhere yet'}. Seconds are those of one processor core.", "",
        "| experiment | source | printed | here | why they differ | command |", "| --- | --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    return "\n".join([*head, *rows, *details]) + "\n"


def result(one: Experiment) -> Result | None:
    """Return what was measured of an experiment, if it was."""
    place = FOUND / f"{one['id']}.json"
    return json.loads(place.read_text(encoding="utf-8")) if place.exists() else None


def told(one: Experiment, found: Result | None) -> str:
    """Return the figures of a result in words."""
    if found is None:
        return "not run here" if one["kind"] == "gpu" else "not run yet"
    return WORDS.get(one["id"], WORDS.get(one["kind"], str))(found)


def told_of_training(found: Result) -> str:
    """Return loss, perplexity, accuracy and BLEU of a run."""
    parts = [f"validation loss {found['loss']:.4f} at step {found['step']:,}"]
    if "scores" not in found and "accuracy" in found:
        parts.append(f"{found['accuracy']:.1%} right")
        parts += [f"next sentence {found['next_sentence']:.1%} right"] if "next_sentence" in found else []
    elif "scores" not in found:
        parts.append(f"perplexity {math.exp(found['loss']):.2f}")
    else:
        if found["first_95"] is not None:
            parts.append(f"95 % of tokens by step {found['first_95']}")
        parts += [
            f"{name}: {one['tokens']:.1%} of tokens, {one['exact']:.1%} exact"
            + (f", BLEU {one['bleu']:.1f}" if one["bleu"] else "")
            for name, one in found["scores"].items()
            if isinstance(one, dict)
        ]
    return "; ".join([*parts, *timed(found)])


def timed(found: Result) -> list[str]:
    """Return the seconds that a run took, where it was not stopped in between."""
    return [] if found["seconds"] is None else [f"{found['seconds']:.0f} s"]


def told_of_ablation(found: Result) -> str:
    """Return the fit and the number of rows."""
    fit = f"exponent {found['exponent']:.4f} ± {found['error']:.4f}; " if found["exponent"] is not None else ""
    return "; ".join([f"{fit}{len(found['rows'])} variants, below", *timed(found)])


def told_of_memory(found: Result) -> str:
    """Return sizes by length and batch."""
    sizes = ", ".join(f"T = {length}: {size / 2**20:.0f} MiB" for length, size in found["lengths"].items())
    return f"{sizes}; grows as T^{found['length_exponent']:.2f} at the end, as B^{found['batch_exponent']:.2f}"


WORDS: Mapping[str, Callable[[Result], str]] = {
    "train": told_of_training,
    "ablate": told_of_ablation,
    "compare": lambda found: "; ".join([f"{len(found['ways'])} ways, below", *timed(found)]),
    "run": lambda found: (
        f"{found['passed']} of {found['clauses'] - found['inapplicable']} clauses pass, {found['failed']} fail"
    ),
    "decoding": lambda found: (
        f"{found['tokens_a_second']:.0f} tokens a second; {found['beam_by_greedy']:.2f} times greedy"
    ),
    "throughput": lambda found: f"{found['sequences_a_second']:.0f}",
    "memory": told_of_memory,
}


def table(one: Experiment, found: Result) -> list[str]:
    """Return the rows of an ablation as a table."""
    base, timed = found["rows"][0]["loss"], all("seconds" in row for row in found["rows"])
    columns = ["axis", "variant", "parameters", "loss", "difference", *(["wall seconds"] if timed else [])]
    head = [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
    lines = ["", f"## {one['what'][0].upper()}{one['what'][1:]}", "", *head]
    for row in found["rows"]:
        loss = "diverged" if row["loss"] is None else f"{row['loss']:.4f}"
        gap = "" if row["loss"] is None or row is found["rows"][0] else f"{row['loss'] - base:+.4f}"
        cells = [row["axis"], row["name"], f"{row['parameters']:,}", loss, gap]
        cells += [f"{row['seconds']:.0f}"] if timed else []
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def table_of_ways(one: Experiment, found: Result) -> list[str]:
    """Return the ways of sampling as a table."""
    columns = ["way", "distinct-1", "distinct-2", "distinct-4", "self-BLEU", "perplexity"]
    title, loss = one["what"][0].upper() + one["what"][1:], f"{found['loss']:.4f}"
    lines = ["", f"## {title}", "", f"The model's validation loss is {loss}.", ""]
    lines += [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
    for row in found["ways"]:
        shares = [f"{row[name]:.3f}" for name in ("distinct_1", "distinct_2", "distinct_4", "self_bleu")]
        lines.append(f"| {' | '.join([row['way'], *shares, format(row['perplexity'], '.2f')])} |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
