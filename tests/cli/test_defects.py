"""conform defects: what measuring tells the author of a known mistake."""

import pytest
from typer.testing import CliRunner

from conformkit.cli.app import app
from conformkit.conformance.defects import defect
from conformkit.conformance.diagnosis import measuring


@pytest.mark.parametrize(
    ("further", "spared", "said"),
    [
        ((), 0, ""), (("PE-SHAPE",), 0, "attention/sdpa-no-scale.toml"),
        ((), 1, "not broken, although the file names them"),
    ],
    ids=["as-told", "more", "less"],
)  # fmt: skip
def test_measuring_says_what_a_mistakes_file_must_tell(monkeypatch, further, spared, said):
    """Would break if only a test of the kit, an hour later, reported that `also` is out of date."""
    known = defect("sdpa-no-scale")
    red = [*known.clauses[spared:], *known.also, *further]
    monkeypatch.setattr(measuring, "measure", lambda ids, seed: ((name, red) for name in ids))
    done = CliRunner().invoke(app, ["defects", "--measure", "sdpa-no-scale"])
    assert done.exit_code == 0, done.output
    first, *advice = done.stdout.partition("\n\n")[0].splitlines()
    assert first == f"sdpa-no-scale: {', '.join(red) or 'nothing'}"
    assert len(advice) == bool(said)
    assert said in "".join(advice)
    assert all(name in "".join(advice) for name in further)
