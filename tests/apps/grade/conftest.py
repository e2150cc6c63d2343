"""Submissions that take a second to grade: one function in NumPy, judged on few clauses, in a process."""

import io
import tarfile
import zipfile
from dataclasses import replace

import pytest

from conformkit.conformance.apps.grade.policy_file import parse_policy

ATTENTION = """import numpy as np


def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v
"""
UNSCALED = ATTENTION.replace(" / np.sqrt(q.shape[-1])", "")
POLICY = """
seed = 3
hints = 0
isolation = "process"
limits = { load_seconds = 20, call_seconds = 5, seconds = 60 }

[[groups]]
name = "attention"
points = 10
clauses = ["SDPA-OUT-SHAPE", "SDPA-SCALE", "SDPA-FORMULA"]
"""


@pytest.fixture
def policy():
    """Parse a policy, or change one field of the small one."""

    def make(text=POLICY, **changes):
        return replace(parse_policy(text), **changes)

    return make


@pytest.fixture
def submissions(tmp_path):
    """Make a folder of submissions from file names and contents; a folder's content is a dictionary."""

    def make(name="submissions", **files):
        folder = tmp_path / name
        folder.mkdir()
        for path, content in files.items():
            fill(folder / path.replace("__", "."), content)
        return folder

    return make


def fill(path, content):
    if isinstance(content, dict):
        path.mkdir()
        for name, inner in content.items():
            fill(path / name, inner)
    elif isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content, encoding="utf-8")


def zipped(*entries, mode=0o100644):
    """Return the bytes of a zip with these (name, content) pairs, written exactly as given."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            entry = zipfile.ZipInfo("x")
            entry.filename = entry.orig_filename = name
            entry.external_attr = mode << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return stream.getvalue()


def tarred(*entries, kind=tarfile.REGTYPE, compression="gz"):
    """Return the bytes of a tar with these (name, content) pairs; for links the content is the target."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=f"w:{compression}") as archive:
        for name, content in entries:
            entry = tarfile.TarInfo(name)
            entry.type = kind
            if kind == tarfile.REGTYPE:
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content.encode() if isinstance(content, str) else content))
            else:
                entry.linkname = content
                archive.addfile(entry)
    return stream.getvalue()


@pytest.fixture(autouse=True)
def _torch_is_imported_once():
    """Not here: these tests are about the processes that a run starts."""
