"""The figures that README.md gives of the suite are those that the suite has."""

import re
from pathlib import Path

from conformkit.conformance.defects import defects
from conformkit.conformance.defects.kills import kill_rate, kills

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_kill_rate_is_that_of_the_known_mistakes():
    (at_least, share), *_ = re.findall(r"lists more than ([\d,]+) of them.*?(\d+) in 100\s+break", README, re.DOTALL)
    killed, total = kill_rate({name: kills()[name] for name in defects()})
    assert total > int(at_least.replace(",", ""))
    assert round(100 * killed / total) == int(share)


def test_the_points_of_the_errata_are_counted():
    (points,) = re.findall(r"lists (\d+) points where they are wrong", README)
    errata = (ROOT / "spec" / "errata.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^### ERR-", errata, re.MULTILINE)) == int(points)
