"""Answers recorded with the public draws are useless with other draws."""

from __future__ import annotations

from pathlib import Path

from .attack import FOLDER
from .world import World

CLAUSES = ("SDPA-OUT-SHAPE", "SDPA-SCALE", "SDPA-FORMULA")

TABLE = """
import hashlib
import numpy as np
from pathlib import Path
from . import right, wrong

FILE = Path(__file__).with_name("answers.npz")


def key(*arrays):
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(repr(None if array is None else (array.shape, array.dtype.str)).encode())
        digest.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
"""
RECORDER = """
ANSWERS = {}


def scaled_dot_product_attention(q, k, v, mask=None):
    found = right.scaled_dot_product_attention(q, k, v, mask)
    ANSWERS[key(q, k, v, mask)] = found
    np.savez(FILE, **ANSWERS)
    return found
"""
PLAYER = """
with np.load(FILE) as file:
    ANSWERS = dict(file)


def scaled_dot_product_attention(q, k, v, mask=None):
    found = ANSWERS.get(key(q, k, v, mask))
    return wrong.scaled_dot_product_attention(q, k, v, mask) if found is None else found
"""


def test_recorded_answers_fail_with_another_seed(world: World, tmp_path: Path) -> None:
    package = tmp_path / "recorded"
    package.mkdir()
    for base in ("right", "wrong"):
        (package / f"{base}.py").write_bytes((FOLDER / "base" / f"{base}.py").read_bytes())
    (package / "__init__.py").write_text(TABLE + RECORDER, encoding="utf-8")
    assert world.judge(package, only=CLAUSES).conforms
    (package / "__init__.py").write_text(TABLE + PLAYER, encoding="utf-8")
    assert world.judge(package, only=CLAUSES).conforms, "the recording is no good, and this test shows nothing"
    assert not world.judge(package, only=CLAUSES, seed=1).conforms
