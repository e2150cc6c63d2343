"""What a run measured, a JSON object a line: it can be read during the run, and however the run ended.

{"kind": "step", "step": 1, "loss": 2.5, "rate": 0.0003, "norm": 1.2, "seconds": 0.4}
{"kind": "evaluation", "step": 250, "loss": 1.3, "best": true}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from conformkit.reference.checkpoints import replace_file

__all__ = ["MetricRecord", "append", "best_evaluation", "cut_after", "evaluations", "read_lines"]

MetricRecord = Mapping[str, Any]


def append(path: Path, records: Iterable[MetricRecord]) -> None:
    """Add lines to the file. Raises OSError, which names the file, where it can't be written."""
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    try:
        with path.open("a", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        error.filename = str(path)
        raise


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return all whole lines, without an incomplete last one that a stopped process left."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


def evaluations(records: Iterable[MetricRecord]) -> list[MetricRecord]:
    """Return the lines of evaluations."""
    return [record for record in records if record["kind"] == "evaluation"]


def best_evaluation(records: Sequence[MetricRecord]) -> MetricRecord:
    """Return the line of the evaluation with the least loss, the first of several."""
    return min(evaluations(records), key=lambda record: record["loss"])


def cut_after(path: Path, step: int) -> None:
    """Drop what was measured after the step from which a run resumes: it will be measured again."""
    kept = [record for record in read_lines(path) if record["step"] <= step]
    replace_file(path, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in kept).encode())
