"""conform defects: what measuring tells the author of a known mistake."""

from dataclasses import replace

import pytest
from typer.testing import CliRunner

from conformkit.cli.app import app
from conformkit.conformance import defects as catalogue
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


def test_a_patch_that_does_not_fit_names_its_file_and_is_no_failure_of_the_kit(monkeypatch):
    """Would break if a typo in `find` ended with "the kit itself failed" and a traceback's last line."""
    known = defect("sdpa-no-scale")
    typo = replace(known, patches=(replace(known.patches[0], find="(q / math.sqr(q.shape"),))
    monkeypatch.setattr(catalogue, "defects", lambda: {known.id: typo})
    done = CliRunner().invoke(app, ["defects", "--measure", "sdpa-no-scale"])
    assert done.exit_code == 2, done.output
    assert "conformance/defects/attention/sdpa-no-scale.toml: " in done.output
    assert "`find` must occur once" in done.output
