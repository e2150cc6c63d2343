"""Each known mistake is judged once in a test session, whichever test and whichever process asks first."""

from __future__ import annotations

import json
import os
from pathlib import Path

from conformkit.conformance.defects import Defect
from conformkit.conformance.diagnosis.measuring import Breakage, named_with
from conformkit.conformance.driver.spawn.warm import WorkerFactory


def judged_once(defect: Defect, warm: WorkerFactory, session: Path) -> Breakage:
    """Return what a known mistake does to the clauses that it names; `session` is a folder of this session."""
    file = session / f"{defect.id}.json"
    if not file.exists():
        found = named_with(defect, warm)
        written = file.with_suffix(f".{os.getpid()}")
        written.write_text(json.dumps([found.red, found.failures]), encoding="utf-8")
        written.replace(file)
        return found
    red, failures = json.loads(file.read_text(encoding="utf-8"))
    return Breakage(tuple(red), tuple((name, message, tuple(details)) for name, message, details in failures))
