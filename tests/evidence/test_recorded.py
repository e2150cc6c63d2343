"""What is compiled and exported is judged where it can be, and no limit of torch's is a mistake."""

import pytest

from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.runner import run

MODEL = '''
import torch
from torch import nn

class TinyTransformerLM(nn.Module):
    """A bag of earlier ids; right in every way."""
    kept = None
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size):
        super().__init__()
        self.embedding, self.head = nn.Embedding(vocab_size, d_model), nn.Linear(d_model, vocab_size)
        self.vocab_size = vocab_size
    def forward(self, ids):
        LINE
        if self.kept is None or self.kept.shape[0] < ids.shape[1]:
            self.kept = torch.arange(1, ids.shape[1] + 1)[:, None]
        return self.head(self.embedding(ids).cumsum(1) / self.kept[: ids.shape[1]])
'''
IF = "if torch.compiler.is_compiling(): return "
CLAUSES = ("PATH-COMPILED-CAUSAL", "PATH-COMPILED", "PATH-EXPORTED-CAUSAL", "PATH-EXPORTED")


def judged(tmp_path, source, clauses=CLAUSES):
    package = tmp_path / "mypkg.py"
    package.write_text(source)
    request = RunRequest(impl=str(package), profile="paths", only=clauses, processes=1, diagnose=False)
    report = run(request)
    return {result.clause.id: result for result in report.results}, report.notes


def test_code_that_looks_at_values_is_compiled_in_pieces_and_not_exported(tmp_path):
    """Would break if a limit of torch's tools turned right code red, or if the number of graphs were not told."""
    source = MODEL.replace("LINE", "assert int(ids.max()) < self.vocab_size")
    results, notes = judged(tmp_path, source)
    assert [results[name].verdict for name in CLAUSES] == [Verdict.PASS] * 2 + [Verdict.NOT_APPLICABLE] * 2
    assert "it cannot be exported here: GuardOnDataDependentSymNode" in results["PATH-EXPORTED"].reason
    assert any("compiled: 2 graphs, so not with fullgraph=True" in note for note in notes)


@pytest.mark.parametrize(
    ("line", "red"),
    [
        ("pass", []),
        (
            IF + "self.head(self.embedding(ids).flip(1).cumsum(1).flip(1))",
            CLAUSES[:1],
        ),
        (IF + "self.head(self.embedding(ids).cumsum(1))", CLAUSES[1:2]),
    ],
    ids=["right", "not causal", "unscaled"],
)
def test_code_of_its_own_for_the_compiler_is_compared(tmp_path, line, red):
    """What is right is exported, too; the mistakes are the compiler's alone."""
    results, _ = judged(tmp_path, MODEL.replace("LINE", line), CLAUSES[:2] if red else CLAUSES)
    assert [name for name, result in results.items() if result.verdict.red] == list(red)
    assert results["PATH-COMPILED-CAUSAL"].verdict is not Verdict.NOT_APPLICABLE


def test_arrays_of_numpy_are_not_compiled(tmp_path):
    source = """
import numpy as np
class TinyTransformerLM:
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size):
        self.table = np.random.randn(vocab_size, vocab_size)
    def __call__(self, ids):
        return self.table[ids]
"""
    results, notes = judged(tmp_path, source)
    assert {result.verdict for result in results.values()} == {Verdict.NOT_APPLICABLE}
    assert not any("compiled" in note for note in notes)
