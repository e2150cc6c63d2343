"""Where each id has a parameter of its own, those of ids that a text does not have get no gradient."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from conformkit.conformance import check

ALL = "table = torch.stack(list(self.words))"
USED = """used = sorted(set(ids.flatten().tolist()))
        table = torch.stack([self.words[i] for i in used])
        ids = torch.searchsorted(torch.tensor(used), ids)"""
RIGHT = Path(__file__).resolve().parents[1] / "right" / "rows_alone"


def untied(folder: Path, lookup: str) -> Path:
    """Write a model without a tied head, whose rows are looked up one by one, or in a table of all of them."""
    package = folder / "rows_untied"
    shutil.copytree(RIGHT, package)
    words = package / "words.py"
    source = words.read_text(encoding="utf-8")
    for before, after in {
        "@ table.T": "@ self.head.weight.T",
        "self.end =": "self.head = nn.Linear(width, words, bias=False)\n        self.end =",
        ALL: lookup,
    }.items():
        assert before in source
        source = source.replace(before, after)
    words.write_text(source, encoding="utf-8")
    declared = package / "conform.toml"
    text = declared.read_text(encoding="utf-8").replace("tied = true", "tied = false")
    declared.write_text(f'{text}"head.weight" = "head.weight"\n', encoding="utf-8")
    return package


@pytest.mark.parametrize("lookup", [ALL, USED], ids=["all", "used"])
@pytest.mark.parametrize("seed", [0, 3])
def test_a_row_of_an_id_that_is_not_read_gets_no_gradient(tmp_path: Path, lookup: str, seed: int) -> None:
    """Would break if a parameter of an id had to be reached whether the text has the id or not."""
    report = check(untied(tmp_path, lookup), only=["LM-GRAD-ALL"], seed=seed)
    assert [r for r in report.results if r.verdict.red] == []


def test_a_row_of_an_id_that_is_read_gets_one(tmp_path: Path) -> None:
    """Would break if any row might be left out."""
    lookup = "table = torch.stack([w.detach() if i % 2 else w for i, w in enumerate(self.words)])"
    report = check(untied(tmp_path, lookup), only=["LM-GRAD-ALL"])
    assert not report.conforms


ROWS = """class Rows(nn.Module):
    def __init__(self, count, width):
        super().__init__()
        self.rows = nn.ParameterList(nn.Parameter(torch.randn(width)) for _ in range(count))

    def forward(self, ids):
        return torch.stack([torch.stack([self.rows[int(i)] for i in row]) for row in ids])


"""


def test_a_row_of_each_id_is_read_where_no_weights_are_bound(tmp_path: Path) -> None:
    """Would break if ids that no text has were only known to be such where it is known which parameters are theirs."""
    source = RIGHT.with_name("fused_kernel.py").read_text(encoding="utf-8")
    head = "class TransformerBlock"
    source = source.replace(head, f"{ROWS}{head}").replace(
        "nn.Embedding(vocab_size, d_model)", "Rows(vocab_size, d_model)"
    )
    (tmp_path / "theirs.py").write_text(source, encoding="utf-8")
    report = check(tmp_path / "theirs.py", only=["LM-GRAD-ALL"])
    assert [r for r in report.results if r.verdict.red] == []
