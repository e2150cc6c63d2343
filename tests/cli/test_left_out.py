"""A known mistake that is taken out of the catalogue is no name that a diagnosis can give."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "left_out.py"
ASK = f"""
import sys
sys.path.insert(0, r"{SCRIPT.parent}")
import left_out
from conformkit.conformance.defects import defect, defects
from conformkit.conformance.defects.kills import kills, named
from conformkit.conformance.defects.twins import twins_of

name = "sdpa-scale-dk"
before = name in kills() and name in named() and defect(name) is not None and name in defects()
left_out.forget({{name}})
after = name in kills() or name in named() or defect(name) is not None or name in defects()
print(before, after, left_out.drawn(3, 1, "core") == left_out.drawn(3, 1, "core"))
"""


def test_what_is_left_out_is_nowhere_in_the_catalogue():
    """Catches a figure that counts names from the mistake's own file: an answer that was remembered."""
    told = subprocess.run([sys.executable, "-P", "-c", ASK], stdout=subprocess.PIPE, check=True, text=True)
    assert told.stdout.split() == ["True", "False", "True"]


def test_a_table_that_was_read_is_counted(tmp_path):
    read = tmp_path / "read.tsv"
    read.write_text("read\tmistake\nright\ta\nright\tb\nnone\tc\n", encoding="utf-8")
    told = subprocess.run([sys.executable, "-P", SCRIPT, "--read", read], stdout=subprocess.PIPE, check=True, text=True)
    assert told.stdout.strip() == "2 right, 0 near, 0 wrong, 1 none"
